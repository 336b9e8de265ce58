// Compares runs with runs of the model without optimizations, for users who doubt these.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "runtime/session_builder.h"

namespace tenon {

class RunVerifier {
 public:
  // Null unless the config entry tenon.verify is 1. `providers` are those of the session, `build`
  // makes sessions of its model. Errors: a bad tenon.verify.tolerance; that of making the session
  // without optimizations.
  static Result<std::unique_ptr<RunVerifier>> Make(const StringMap& config,
                                                   std::vector<std::string> providers,
                                                   SessionBuilder build);

  // Calls `run`, which is Session::Run with these arguments, and compares the tensors that it
  // fetches on the host. Errors: that of `run`; kFail naming the first output that differs, and the
  // optimization from which on it does.
  Status Run(const RunOptions& options, std::span<const std::string_view> feed_names,
             std::span<const Value> feeds, std::span<const std::string_view> fetch_names,
             std::span<Value> fetches, FunctionRef<Status()> run);

 private:
  struct Arguments;
  // Of an output, as a part of its greatest element; infinite if it cannot be told.
  struct Difference {
    size_t output = 0;
    double size = 0;
  };

  RunVerifier(std::optional<double> tolerance, std::vector<std::string> providers,
              SessionBuilder build)
      : tolerance_(tolerance), providers_(std::move(providers)), build_(std::move(build)) {}

  // A session whose model is rewritten at most so often; `rewrites` receives what was rewritten.
  Result<std::unique_ptr<Session>> Build(size_t most_rewrites,
                                         std::vector<std::string>* rewrites) const;
  // The outputs of a run on such a session.
  Result<std::vector<Value>> OutputsWith(size_t most_rewrites, const Arguments& arguments,
                                         std::vector<std::string>* rewrites = nullptr) const;
  double ToleranceOf(const Value& value) const;
  // The first output that differs too much.
  std::optional<Difference> FirstDifference(std::span<const Value> expected,
                                            std::span<const Value> got) const;
  // "the first optimization with which it differs is 2 of 7: 'RULE' at Conv-11 node 'NAME'".
  std::string Blame(const Arguments& arguments, std::span<const Value> expected) const;

  const std::optional<double> tolerance_;  // the type's if absent
  const std::vector<std::string> providers_;
  const SessionBuilder build_;
  std::unique_ptr<Session> reference_;
};

}  // namespace tenon
