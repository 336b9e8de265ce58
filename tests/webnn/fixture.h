// Sessions with WebNN, and a stand-in for WebNN: what a partition computes is computed by a session
// of its nodes on the CPU.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph_builder.h"
#include "runtime/environment.h"
#include "runtime/session.h"
#include "webnn/barrier_run.h"
#include "webnn/limits_text.h"

namespace tenon::webnn {

inline const SymbolicShape kRow = {2, 3};

Model ModelOf(const Graph& graph, int32_t opset = 21);

// A tensor of some type with elements that depend on their place and on `seed`, small enough for
// indices of none.
Value SomeValue(DataType type, const Shape& shape, int seed = 0);

// Equal types, shapes and elements; floats up to `tolerance`.
void ExpectSame(const Value& expected, const Value& got, double tolerance, const std::string& what);

class WebnnTest : public ::testing::Test {
 protected:
  struct OpenOptions {
    std::string limits = LimitsText();
    std::string excluded = "";
    SessionOptions session = {};
    int32_t opset = 21;
  };

  // A session of the graph, and one on the CPU alone.
  void Open(const Graph& graph, OpenOptions options);
  void Open(const Graph& graph) { Open(graph, OpenOptions()); }

  // A run of the CPU's session.
  std::vector<Value> RunOnCpu(std::span<const Value> feeds);
  // A run with barriers: outputs of the session. Failures of the run are the test's.
  std::vector<Value> RunWithBarriers(std::span<const Value> feeds);
  // Both, which give the same; feeds are made up.
  void ExpectSameAsCpu(double tolerance = 1e-5, const std::vector<Shape>& shapes = {});

  // What the stand-in gives for the partition at which the run stands, by output.
  std::vector<Value> Compute(const std::map<std::string, Value>& inputs);
  // One step to the next barrier, whose partition is computed.
  Status Step();
  std::span<const Value> Hidden(std::span<const Value> feeds);

  size_t partitions() const { return plan_->partition_count(); }

  Environment environment_{{.severity = Severity::kFatal, .threads = {.threads = 2}}};
  std::unique_ptr<Session> cpu_, session_;
  std::unique_ptr<BarrierPlan> plan_;
  std::unique_ptr<BarrierRun> run_;
  std::map<std::string, Value> values_;  // of partitions, in the run
  std::vector<Value> feeds_, hidden_;
  std::map<const Partition*, std::unique_ptr<Session>> bodies_;
};

}  // namespace tenon::webnn
