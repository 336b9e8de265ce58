#include <gtest/gtest.h>

#include "ir/graph_builder.h"
#include "ir/inference.h"
#include "ops/cpu_provider.h"
#include "ops/framework/registry.h"
#include "runtime/environment.h"
#include "runtime/session.h"

namespace tenon {
namespace {

using Floats = std::vector<float>;

class ControlFlowTest : public ::testing::Test {
 protected:
  void Open(GraphBuilder& builder, int64_t opset = 20) {
    Model model;
    model.ir_version = 10;
    model.opsets[""] = opset;
    model.graph = std::move(builder.graph);
    SessionParts parts;
    parts.providers.push_back(MakeCpuProvider());
    parts.shape_functions = &OpShapeFunctions();
    auto session = Session::Create(environment_, std::move(model), {}, std::move(parts));
    ASSERT_TRUE(session) << session.error().message();
    session_ = std::move(*session);
  }

  // The outputs of the model, by position.
  std::vector<Value> Run(std::vector<Value> feeds) {
    std::vector<std::string_view> inputs, outputs;
    for (const SessionValue& input : session_->inputs()) inputs.push_back(input.name);
    for (const SessionValue& output : session_->outputs()) outputs.push_back(output.name);
    std::vector<Value> fetches(outputs.size());
    const Status status = session_->Run({}, inputs, feeds, outputs, fetches);
    EXPECT_TRUE(status.ok()) << status.message();
    return fetches;
  }

  Environment environment_{{.threads = {.threads = 2}}};
  std::unique_ptr<Session> session_;
};

Floats ValuesOf(const Value& value) {
  const auto values = value.tensor().values<float>();
  return {values.begin(), values.end()};
}

const SymbolicShape kVector = {Dim::Symbol("n")};

// condition ? x joined with itself : x
TEST_F(ControlFlowTest, IfRunsOneBranch) {
  GraphBuilder b;
  const ValueId condition = b.Input("condition", DataType::kBool, SymbolicShape());
  const ValueId x = b.Input("x", DataType::kFloat, kVector);
  GraphBuilder on_true, on_false;
  const ValueId captured = on_true.Capture(x, "x_then");
  on_true.Output(
      on_true.Op("Concat", {captured, captured}, MakeAttributes(Attr("axis", int64_t{0}))));
  on_false.Output(on_false.Op("Identity", {on_false.Capture(x, "x_else")}));
  std::vector<Attribute> branches;
  branches.emplace_back("else_branch", std::move(on_false.graph));
  branches.emplace_back("then_branch", std::move(on_true.graph));
  b.Output(b.Op("If", {condition}, std::move(branches)));
  Open(b);
  for (int run = 0; run < 3; ++run) {
    const Tensor feed = Tensor::Of<float>({2}, {1, 2});
    EXPECT_EQ(ValuesOf(Run({Tensor::Of<bool>({}, {true}), feed})[0]), (Floats{1, 2, 1, 2}));
    const auto same = Run({Tensor::Of<bool>({}, {false}), feed});
    EXPECT_EQ(ValuesOf(same[0]), (Floats{1, 2}));
    EXPECT_NE(same[0].tensor().raw(), feed.raw());
  }
}

// Nodes after it read the memory as the type that is known before the run.
TEST_F(ControlFlowTest, TypesMayNotDependOnTheRun) {
  const auto cast = [](GraphBuilder& b, ValueId x) {
    return b.Op("Cast", {x}, MakeAttributes(Attr("to", static_cast<int64_t>(DataType::kInt8))));
  };
  const auto error_of = [](GraphBuilder& b) {
    // Without the description of the node and its inputs at the end.
    const std::string text(InferTypes(*b.graph, OpShapeFunctions()).message());
    return text.substr(0, text.find(" (node"));
  };
  GraphBuilder branches, then_branch, else_branch;
  const ValueId x = branches.Input("x", DataType::kFloat, kVector);
  then_branch.Output(then_branch.Op("Neg", {then_branch.Capture(x, "x")}));
  else_branch.Output(cast(else_branch, else_branch.Capture(x, "x")));
  std::vector<Attribute> attributes;
  attributes.emplace_back("then_branch", std::move(then_branch.graph));
  attributes.emplace_back("else_branch", std::move(else_branch.graph));
  branches.Op("If", {branches.Input("condition", DataType::kBool)}, std::move(attributes));
  EXPECT_EQ(error_of(branches),
            "If-19 node 'If0': output 0 'v': expected one type, got tensor(float) and "
            "tensor(int8)");
  GraphBuilder loop, body;
  body.Input("i", DataType::kInt64);
  body.Output(body.Op("Identity", {body.Input("goes_on", DataType::kBool)}));
  body.Output(cast(body, body.Input("carried")));
  attributes.clear();
  attributes.emplace_back("body", std::move(body.graph));
  loop.Op("Loop", {loop.Input("n", DataType::kInt64), ValueId::kNone, loop.Input("x")},
          std::move(attributes));
  EXPECT_EQ(error_of(loop),
            "Loop-19 node 'Loop0': output 0 'v': expected one type, got tensor(float) and "
            "tensor(int8)");
}

// Each trip appends the input's elements to the state and reports the state's first two elements.
TEST_F(ControlFlowTest, LoopCarriesValuesAndCollectsOthers) {
  GraphBuilder b;
  const ValueId trips = b.Input("trips", DataType::kInt64, SymbolicShape());
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape({Dim(2)}));
  GraphBuilder body;
  body.Input("trip", DataType::kInt64, SymbolicShape());
  const ValueId condition = body.Input("go_on", DataType::kBool, SymbolicShape());
  const ValueId state = body.Input("state", DataType::kFloat);
  body.Output(body.Op("Identity", {condition}));
  body.Output(body.Op("Concat", {body.Capture(x, "x_body"), state},
                      MakeAttributes(Attr("axis", int64_t{0}))));
  body.Output(body.Op("Slice", {state, body.Ints({0}), body.Ints({2})}));
  std::vector<Attribute> attributes;
  attributes.emplace_back("body", std::move(body.graph));
  const auto outputs = b.OpN("Loop", {trips, ValueId::kNone, x}, 2, std::move(attributes));
  b.Output(outputs[0]);
  b.Output(outputs[1]);
  Open(b);
  const Tensor feed = Tensor::Of<float>({2}, {1, 2});
  for (const int64_t count : {2, 0, 3}) {
    const auto y = Run({Tensor::Of<int64_t>({}, {count}), feed});
    EXPECT_EQ(y[0].tensor().shape(), Shape({2 + 2 * count}));
    EXPECT_EQ(y[1].tensor().shape()[0], count);
    for (int64_t i = 0; i < y[0].tensor().size(); ++i) {
      EXPECT_EQ(y[0].tensor().data<float>()[i], static_cast<float>(1 + i % 2));
    }
    for (int64_t i = 0; i < y[1].tensor().size(); ++i) {
      EXPECT_EQ(y[1].tensor().data<float>()[i], static_cast<float>(1 + i % 2));
    }
    EXPECT_NE(y[0].tensor().raw(), feed.raw());
  }
}

// (a, b) -> (b, a + b): an iteration's inputs leave it, and the iteration after the next one reuses
// their memory; a third value stays what it was outside.
TEST_F(ControlFlowTest, LoopPassesValuesOn) {
  GraphBuilder b;
  const ValueId trips = b.Input("trips", DataType::kInt64, SymbolicShape());
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape({Dim(2)}));
  const ValueId y = b.Input("y", DataType::kFloat, SymbolicShape({Dim(2)}));
  GraphBuilder body;
  body.Input("trip", DataType::kInt64, SymbolicShape());
  const ValueId condition = body.Input("go_on", DataType::kBool, SymbolicShape());
  const ValueId first = body.Input("a", DataType::kFloat);
  const ValueId second = body.Input("b", DataType::kFloat);
  body.Input("c", DataType::kFloat);
  body.Output(body.Op("Identity", {condition}));
  body.Output(body.Op("Identity", {second}));
  body.Output(body.Op("Add", {first, second}));
  body.Output(body.Op("Identity", {body.Capture(x, "x_body")}));
  body.Output(second);
  std::vector<Attribute> attributes;
  attributes.emplace_back("body", std::move(body.graph));
  const auto outputs = b.OpN("Loop", {trips, ValueId::kNone, x, y, y}, 4, std::move(attributes));
  for (const ValueId output : outputs) b.Output(output);
  Open(b);
  for (int run = 0; run < 3; ++run) {
    const auto z = Run({Tensor::Of<int64_t>({}, {10}), Tensor::Of<float>({2}, {0, 1}),
                        Tensor::Of<float>({2}, {1, 1})});
    EXPECT_EQ(ValuesOf(z[0]), (Floats{55, 89}));
    EXPECT_EQ(ValuesOf(z[1]), (Floats{89, 144}));
    EXPECT_EQ(ValuesOf(z[2]), (Floats{0, 1}));
    const Floats first_elements = {1, 1, 2, 3, 5, 8, 13, 21, 34, 55};
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(ValuesOf(z[3])[2 * i], first_elements[i]);
  }
}

// A loop that nothing ends but the run's timeout or its terminate flag.
TEST_F(ControlFlowTest, LoopWithoutEndIsStopped) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape());
  GraphBuilder body;
  body.Input("trip", DataType::kInt64, SymbolicShape());
  const ValueId condition = body.Input("go_on", DataType::kBool, SymbolicShape());
  const ValueId state = body.Input("state", DataType::kFloat, SymbolicShape());
  body.Output(condition);
  body.Output(state);
  std::vector<Attribute> attributes;
  attributes.emplace_back("body", std::move(body.graph));
  b.Output(b.Op("Loop", {ValueId::kNone, ValueId::kNone, x}, std::move(attributes)));
  Open(b);
  const std::string_view input = session_->inputs()[0].name, output = session_->outputs()[0].name;
  const Value feed = Tensor::Of<float>({}, {1});
  Value fetch;
  RunOptions options;
  options.timeout = std::chrono::milliseconds(20);
  const Status late = session_->Run(options, {&input, 1}, {&feed, 1}, {&output, 1}, {&fetch, 1});
  EXPECT_NE(late.message().find("the run passed its deadline"), std::string::npos);
  const std::atomic<bool> terminate = true;
  options = {};
  options.terminate = &terminate;
  EXPECT_FALSE(session_->Run(options, {&input, 1}, {&feed, 1}, {&output, 1}, {&fetch, 1}).ok());
}

// A loop that appends to a sequence returns the appended elements, even if the sequence is shared.
TEST_F(ControlFlowTest, LoopCarriesSequences) {
  GraphBuilder b;
  const ValueId trips = b.Input("trips", DataType::kInt64, SymbolicShape());
  const ValueId x = b.Input("x", DataType::kFloat, kVector);
  const ValueId start = b.Op("SequenceConstruct", {x});
  GraphBuilder body;
  body.Input("trip", DataType::kInt64, SymbolicShape());
  const ValueId condition = body.Input("go_on", DataType::kBool, SymbolicShape());
  const ValueId state = body.Input("state");
  body.graph->value(state).type = ValueType::Sequence(ValueType::Tensor(DataType::kFloat));
  body.Output(body.Op("Identity", {condition}));
  body.Output(body.Op("SequenceInsert", {state, body.Capture(x, "x_body")}));
  std::vector<Attribute> attributes;
  attributes.emplace_back("body", std::move(body.graph));
  b.Output(b.Op("Loop", {trips, ValueId::kNone, start}, std::move(attributes)));
  b.Output(start);
  Open(b);
  for (const int64_t count : {0, 1, 5, 2}) {
    const Tensor feed = Tensor::Of<float>({2}, {3, 4});
    const auto y = Run({Tensor::Of<int64_t>({}, {count}), feed});
    ASSERT_EQ(y[0].sequence().elements.size(), static_cast<size_t>(count) + 1);
    EXPECT_EQ(y[1].sequence().elements.size(), 1u);
    for (const Value& element : y[0].sequence().elements) {
      EXPECT_EQ(ValuesOf(element), (Floats{3, 4}));
      EXPECT_NE(element.tensor().raw(), feed.raw());
    }
  }
}

// Sums of the columns so far, from the last column to the first, put in the order of the columns.
TEST_F(ControlFlowTest, ScanRunsOverAnyAxisInAnyDirection) {
  GraphBuilder b;
  const ValueId zero = b.Input("zero", DataType::kFloat, SymbolicShape({Dim(2)}));
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape({Dim(2), Dim::Symbol("n")}));
  GraphBuilder body;
  const ValueId sum = body.Input("sum", DataType::kFloat, SymbolicShape({Dim(2)}));
  const ValueId column = body.Input("column", DataType::kFloat, SymbolicShape({Dim(2)}));
  const ValueId next = body.Op("Add", {sum, column});
  body.Output(next);
  body.Output(body.Op("Identity", {next}));
  const auto one = [](int64_t value) { return std::vector<int64_t>{value}; };
  std::vector<Attribute> attributes =
      MakeAttributes(Attr("num_scan_inputs", int64_t{1}), Attr("scan_input_axes", one(-1)),
                     Attr("scan_input_directions", one(1)), Attr("scan_output_axes", one(1)),
                     Attr("scan_output_directions", one(1)));
  attributes.emplace_back("body", std::move(body.graph));
  const auto outputs = b.OpN("Scan", {zero, x}, 2, std::move(attributes));
  b.Output(outputs[0]);
  b.Output(outputs[1]);
  Open(b);
  const Tensor start = Tensor::Of<float>({2}, {0, 100});
  for (int run = 0; run < 2; ++run) {
    const auto y = Run({start, Tensor::Of<float>({2, 3}, {1, 2, 3, 10, 20, 30})});
    EXPECT_EQ(ValuesOf(y[0]), (Floats{6, 160}));
    EXPECT_EQ(y[1].tensor().shape(), Shape({2, 3}));
    EXPECT_EQ(ValuesOf(y[1]), (Floats{6, 5, 3, 160, 150, 130}));
    const auto none = Run({start, Tensor::Of<float>({2, 0}, {})});
    EXPECT_EQ(ValuesOf(none[0]), (Floats{0, 100}));
    EXPECT_EQ(none[1].tensor().shape(), Shape({2, 0}));
  }
}

TEST_F(ControlFlowTest, OldScanLeavesZerosAfterShortSequences) {
  constexpr int64_t kSteps = 300;
  GraphBuilder b(8);
  const ValueId lengths = b.Input("lengths", DataType::kInt64, SymbolicShape({Dim(2)}));
  const ValueId start = b.Input("start", DataType::kFloat, SymbolicShape({Dim(2), Dim(4)}));
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape({Dim(2), Dim(kSteps), Dim(4)}));
  GraphBuilder body(8);
  const ValueId sum = body.Input("sum", DataType::kFloat, SymbolicShape({Dim(4)}));
  const ValueId next =
      body.Op("Add", {sum, body.Input("x", DataType::kFloat, SymbolicShape({Dim(4)}))});
  body.Output(next);
  body.Output(body.Op("Identity", {next}));
  std::vector<Attribute> attributes = MakeAttributes(Attr("num_scan_inputs", int64_t{1}));
  attributes.emplace_back("body", std::move(body.graph));
  const auto outputs = b.OpN("Scan", {lengths, start, x}, 2, std::move(attributes));
  b.Output(outputs[0]);
  b.Output(outputs[1]);
  Open(b, 8);
  const Tensor ones = Tensor::Of<float>({2, kSteps, 4}, Floats(2 * kSteps * 4, 1));
  const Tensor zeros = Tensor::Of<float>({2, 4}, Floats(8, 0));
  for (const auto& [first, second] : {std::pair<int64_t, int64_t>(kSteps, 1), {0, 0}}) {
    const auto y = Run({Tensor::Of<int64_t>({2}, {first, second}), zeros, ones});
    ASSERT_EQ(y[1].tensor().shape(), Shape({2, kSteps, 4}));
    Floats expected(2 * kSteps * 4, 0);
    for (int64_t i = 0; i < 4 * first; ++i) expected[i] = static_cast<float>(i / 4 + 1);
    for (int64_t i = 0; i < 4 * second; ++i) expected[kSteps * 4 + i] = 1;
    EXPECT_EQ(ValuesOf(y[1]), expected) << first;
  }
}

}  // namespace
}  // namespace tenon
