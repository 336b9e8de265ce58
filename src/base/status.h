// Status and Result: how Tenon reports errors in a model, a file or a call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "base/text.h"

namespace tenon {

// Same numbers as OrtErrorCode of the C ABI.
enum class StatusCode : int32_t {
  kOk = 0,
  kFail = 1,
  kInvalidArgument = 2,
  kNoSuchFile = 3,
  kNoModel = 4,
  kEngineError = 5,
  kRuntimeException = 6,
  kInvalidProtobuf = 7,
  kModelLoaded = 8,
  kNotImplemented = 9,
  kInvalidGraph = 10,
  kEpFail = 11,
  kModelLoadCanceled = 12,
  kModelRequiresCompilation = 13,
  kNotFound = 14,
};

// The outcome of a call: OK, or a code and one message. Costs one pointer; OK allocates nothing.
// Immutable once made; distinct objects may be used from several threads.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  // Empty for OK. Valid as long as this Status.
  const std::string& message() const;

  // The same failure with `context` and ": " before its message; OK stays OK.
  Status WithContext(std::string_view context) &&;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
  };
  std::unique_ptr<Rep> rep_;
};

inline Status OkStatus() { return Status(); }

template <class T>
using Result = tl::expected<T, Status>;

// The failure that a function with the result Result<T> returns.
inline tl::unexpected<Status> Failure(Status status) {
  return tl::unexpected<Status>(std::move(status));
}

// Converts to Status and to any Result<T>, so that one line ends either kind of function.
class [[nodiscard]] Error {
 public:
  Error(StatusCode code, std::string message) : status_(code, std::move(message)) {}
  explicit Error(Status&& status) : status_(std::move(status)) {}
  operator Status() && { return std::move(status_); }  // NOLINT(google-explicit-constructor)
  template <class T>
  operator Result<T>() && {  // NOLINT(google-explicit-constructor)
    return tl::unexpected<Status>(std::move(status_));
  }

 private:
  Status status_;
};

// InvalidArgument("expected {} dimensions, got {}", 2, rank) and so on, one per code.
#define TENON_DEFINE_ERROR(Name)                                                        \
  template <class... Args>                                                              \
  Error Name(fmt::format_string<Args...> format, Args&&... args) {                      \
    return Error(StatusCode::k##Name, FormatV(format, fmt::make_format_args(args...))); \
  }
TENON_DEFINE_ERROR(Fail)
TENON_DEFINE_ERROR(InvalidArgument)
TENON_DEFINE_ERROR(NoSuchFile)
TENON_DEFINE_ERROR(NoModel)
TENON_DEFINE_ERROR(RuntimeException)
TENON_DEFINE_ERROR(InvalidProtobuf)
TENON_DEFINE_ERROR(NotImplemented)
TENON_DEFINE_ERROR(InvalidGraph)
TENON_DEFINE_ERROR(EpFail)
TENON_DEFINE_ERROR(NotFound)
#undef TENON_DEFINE_ERROR

namespace internal {
inline Status&& TakeStatus(Status& status) { return std::move(status); }
template <class T>
Status&& TakeStatus(Result<T>& result) {
  return std::move(result.error());
}
inline bool IsOk(const Status& status) { return status.ok(); }
template <class T>
bool IsOk(const Result<T>& result) {
  return result.has_value();
}
}  // namespace internal

// Ends the enclosing function with the failure of `expression`, a Status or a Result<T>.
#define TENON_RETURN_IF_ERROR(expression)                                           \
  do {                                                                              \
    if (auto tenon_status = (expression); !::tenon::internal::IsOk(tenon_status)) { \
      return ::tenon::Error(::tenon::internal::TakeStatus(tenon_status));           \
    }                                                                               \
  } while (false)

#define TENON_CONCAT_INNER(a, b) a##b
#define TENON_CONCAT(a, b) TENON_CONCAT_INNER(a, b)
// TENON_ASSIGN_OR_RETURN(auto x, F()): x is the value of F(), or the function ends with its
// failure.
#define TENON_ASSIGN_OR_RETURN(declaration, expression) \
  TENON_ASSIGN_OR_RETURN_INNER(TENON_CONCAT(tenon_result_, __LINE__), declaration, expression)
#define TENON_ASSIGN_OR_RETURN_INNER(result, declaration, expression)        \
  auto result = (expression);                                                \
  if (!result.has_value()) return ::tenon::Error(std::move(result.error())); \
  declaration = std::move(*result)

}  // namespace tenon
