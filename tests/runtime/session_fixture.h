// A session of the test provider's operators, and short functions to run it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/rows.h"
#include "runtime/session.h"
#include "runtime/test_provider.h"

namespace tenon {

class SessionTest : public ::testing::Test {
 protected:
  void Open(ModelBuilder& builder) {
    ResetRuns();
    auto session = MakeSession(environment_, builder.Build());
    ASSERT_TRUE(session) << session.error().message();
    session_ = std::move(*session);
  }

  Status Run(const std::vector<std::string_view>& names, const std::vector<Value>& feeds,
             const std::vector<std::string_view>& outputs, std::vector<Value>& fetches,
             const RunOptions& options = {}) {
    fetches.resize(outputs.size());
    return session_->Run(options, names, feeds, outputs, fetches);
  }

  // One input "x", one output "y".
  Floats RunRow(const Floats& x) {
    std::vector<Value> fetches;
    const Status status = Run({"x"}, {Row(x)}, {"y"}, fetches);
    if (!status.ok()) {
      ADD_FAILURE() << status.message();
      return {};
    }
    return ValuesOf(fetches[0]);
  }

  Environment environment_{{.threads = {.threads = 2}}};
  std::unique_ptr<Session> session_;
};

inline const Dim n = Dim::Symbol("n");

}  // namespace tenon
