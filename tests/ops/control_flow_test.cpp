#include <gtest/gtest.h>

#include "ir/graph_builder.h"
#include "ops/cpu_provider.h"
#include "ops/registry.h"
#include "runtime/session.h"

namespace tenon {
namespace {

using Floats = std::vector<float>;

class ControlFlowTest : public ::testing::Test {
 protected:
  void Open(GraphBuilder& builder) {
    Model model;
    model.ir_version = 10;
    model.opsets[""] = 20;
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

}  // namespace
}  // namespace tenon
