// Errors as values, within the provider. At its border they become OrtStatus objects.
#pragma once

#define FMT_HEADER_ONLY
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <utility>

namespace codegen {

// Success, or a text that says what went wrong.
class [[nodiscard]] Status {
 public:
  Status() = default;
  bool ok() const { return !text_; }
  const std::string& text() const { return *text_; }

  static Status Failure(std::string text) {
    Status status;
    status.text_ = std::move(text);
    return status;
  }

 private:
  std::optional<std::string> text_;
};

// A value, or a text that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}            // NOLINT: as returned
  Result(Status failure) : status_(std::move(failure)) {}  // NOLINT: as returned
  bool ok() const { return value_.has_value(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  const Status& status() const { return status_; }

 private:
  std::optional<T> value_;
  Status status_;
};

template <class... Args>
Status Failure(fmt::format_string<Args...> format, Args&&... args) {
  return Status::Failure(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace codegen

#define PLUGIN_RETURN_IF_ERROR(expression)                          \
  do {                                                              \
    if (auto status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define PLUGIN_CONCAT_INNER(a, b) a##b
#define PLUGIN_CONCAT(a, b) PLUGIN_CONCAT_INNER(a, b)
#define PLUGIN_ASSIGN_IMPL(result, target, expression) \
  auto result = (expression);                          \
  if (!result.ok()) return result.status();            \
  target = std::move(*result)
// Declares or assigns `target` from a Result, or returns its failure.
#define PLUGIN_ASSIGN_OR_RETURN(target, expression) \
  PLUGIN_ASSIGN_IMPL(PLUGIN_CONCAT(result_, __LINE__), target, expression)
