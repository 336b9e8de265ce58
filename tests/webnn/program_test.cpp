// Programs in their text form. Requirements: web (WB-n).
#include <nlohmann/json.hpp>

#include "webnn/fixture.h"

namespace tenon::webnn {
namespace {

using Json = nlohmann::json;

class ProgramTest : public WebnnTest {
 protected:
  // The program of the only partition, which has known shapes.
  Json ProgramOf(GraphBuilder& b, const LimitsChange& limits = {}) {
    Open(*b.graph, {.limits = LimitsText(limits)});
    if (plan_ == nullptr || partitions() != 1) {
      ADD_FAILURE() << "expected one partition";
      return {};
    }
    Partition& partition = plan_->partition(0);
    const auto text = partition.Program(partition.static_binding());
    if (!text) {
      ADD_FAILURE() << text.error().message();
      return {};
    }
    return Json::parse(**text);
  }
};

// WB-53, WB-54: a program as the glue replays it; constants are views.
TEST_F(ProgramTest, ConvolutionWithReluAndSoftmax) {
  GraphBuilder b;
  const ValueId x = b.Input("image", DataType::kFloat, SymbolicShape{1, 2, 4, 4});
  const ValueId w = b.Constant(Tensor::Of<float>({1, 2, 1, 1}, {0.5F, 2}));
  const ValueId y =
      b.Op("Conv", {x, w}, MakeAttributes(Attr("pads", std::vector<int64_t>{1, 0, 1, 0})));
  const ValueId z = b.Op("Relu", {y});
  b.Output(b.Op("Softmax", {z}, MakeAttributes(Attr("axis", int64_t{3}))));
  Json program = ProgramOf(b);
  ASSERT_EQ(program["constants"].size(), 1u);
  const auto* const weights =
      reinterpret_cast<const float*>(program["constants"][0]["address"].get<uintptr_t>());
  EXPECT_EQ(weights[0], 0.5F);
  EXPECT_EQ(weights[1], 2);
  program["constants"][0].erase("address");
  const std::string output = b.graph->outputs()[0].name;
  EXPECT_EQ(program, Json::parse(R"({
    "inputs": [{"name": "image", "dataType": "float32", "shape": [1, 2, 4, 4]}],
    "constants": [{"dataType": "float32", "shape": [1, 2, 1, 1], "byteLength": 8}],
    "calls": [
      {"method": "conv2d", "args": [{"operand": 0}, {"operand": 1}], "results": 1,
       "options": {"padding": [1, 1, 0, 0], "strides": [1, 1], "dilations": [1, 1], "groups": 1,
                   "inputLayout": "nchw", "filterLayout": "oihw"}},
      {"method": "relu", "args": [{"operand": 2}], "results": 1},
      {"method": "softmax", "args": [{"operand": 3}, 3], "results": 1}],
    "outputs": [{"name": ")" + output +
                                 R"(", "operand": 4, "dataType": "float32",
                 "shape": [1, 1, 6, 4]}]})"))
      << program.dump(1);
}

TEST_F(ProgramTest, ListsOfOperandsAndNumbersThatJsonLacks) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{2, 2});
  const ValueId y = b.Op("Concat", {x, x}, MakeAttributes(Attr("axis", int64_t{0})));
  b.Output(b.Op("Clip", {y, b.Scalar(-INFINITY), b.Scalar(6)}));
  const Json program = ProgramOf(b);
  EXPECT_EQ(program["calls"][0]["args"], Json::parse(R"([[{"operand": 0}, {"operand": 0}], 0])"));
  EXPECT_EQ(program["calls"][1]["options"],
            Json::parse(R"({"minValue": {"number": "-Infinity"}, "maxValue": 6.0})"));
}

// WB-52: the input itself, and one value under two names.
TEST_F(ProgramTest, OutputsAreMadeOnceEach) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{2});
  const ValueId y = b.Op("Relu", {x});
  b.graph->AddOutput("once", y);
  b.graph->AddOutput("again", y);
  Open(*b.graph);
  ASSERT_EQ(partitions(), 1u);
  // Both names are one value of the model, which one output of the partition gives.
  EXPECT_EQ(plan_->stages()[0].outputs.size(), 1u);
  EXPECT_EQ(plan_->stages()[0].outputs[0].fetches, (std::vector<size_t>{0, 1}));
  ExpectSameAsCpu();

  const Limits limits = *Limits::Parse(LimitsText());
  ProgramBuilder builder(limits);
  const Operand in = *builder.Input("in", DataType::kFloat, Shape{2});
  const Operand abs = *builder.Unary("abs", in);
  for (const Operand operand : {in, abs, abs}) {
    ASSERT_TRUE(builder.Output("o", DataType::kFloat, operand).ok());
  }
  const Json program = Json::parse(builder.ToText());
  EXPECT_EQ(program["calls"].size(), 3u);
  EXPECT_EQ(program["calls"][1]["method"], "identity");
  EXPECT_EQ(program["outputs"][0]["operand"], 2);
  EXPECT_EQ(program["outputs"][1]["operand"], 1);
  EXPECT_EQ(program["outputs"][2]["operand"], 3);
}

// WB-54: integers that a context lacks.
TEST_F(ProgramTest, WideIntegersBecomeInt32) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kInt64, SymbolicShape{3});
  b.Output(b.Op("Add", {x, b.Ints({1, -2, 3})}));
  const Json program = ProgramOf(b, {.without_types = "l"});
  EXPECT_EQ(program["inputs"][0]["dataType"], "int32");
  EXPECT_EQ(program["inputs"][0]["coreType"], "int64");
  EXPECT_EQ(program["outputs"][0]["coreType"], "int64");
  ASSERT_EQ(program["constants"][0]["byteLength"], 12);
  const auto* const values =
      reinterpret_cast<const int32_t*>(program["constants"][0]["address"].get<uintptr_t>());
  EXPECT_EQ(values[1], -2);
}

// WB-54: a constant that int32 cannot hold keeps its node on the CPU.
TEST_F(ProgramTest, ConstantsThatDoNotFitAreRefused) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kInt64, SymbolicShape{1});
  b.Output(b.Op("Add", {x, b.Ints({int64_t{1} << 40})}));
  Open(*b.graph, {.limits = LimitsText({.without_types = "l"})});
  EXPECT_EQ(partitions(), 0u);
  ExpectSameAsCpu();
}

// WB-54: truth values are uint8, or int32.
TEST_F(ProgramTest, TruthValues) {
  for (const bool has_bytes : {true, false}) {
    GraphBuilder b;
    const ValueId x = b.Input("x", DataType::kBool, SymbolicShape{3});
    b.Output(b.Op("Not", {x}));
    const Json program = ProgramOf(b, {.without_types = has_bytes ? "" : "B"});
    if (program.is_null()) continue;
    EXPECT_EQ(program["inputs"][0]["dataType"], "uint8");
    EXPECT_FALSE(program["inputs"][0].contains("coreType"));
    break;
  }
}

// WB-56
TEST_F(ProgramTest, ScalarsWhereAContextHasNone) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{});
  b.Output(b.Op("Abs", {x}));
  EXPECT_EQ(ProgramOf(b)["inputs"][0]["shape"], Json::array());
  const Json program = ProgramOf(b, {.min_rank = 1});
  EXPECT_EQ(program["inputs"][0]["shape"], Json::parse("[1]"));
  EXPECT_EQ(program["outputs"][0]["shape"], Json::parse("[1]"));
  EXPECT_EQ(program["calls"][0], Json::parse(R"({"method": "reshape", "results": 1,
                                                 "args": [{"operand": 0}, []]})"));
  EXPECT_EQ(program["calls"][2]["args"], Json::parse(R"([{"operand": 2}, [1]])"));
}

// What no output needs is left out, inputs too.
TEST_F(ProgramTest, OnlyWhatIsNeeded) {
  const Limits limits = *Limits::Parse(LimitsText());
  ProgramBuilder builder(limits);
  const Operand x = *builder.Input("x", DataType::kFloat, Shape{2});
  const Operand y = *builder.Input("y", DataType::kFloat, Shape{2});
  ASSERT_TRUE(builder.Unary("abs", x));
  ASSERT_TRUE(builder.Scalar(DataType::kFloat, 1));
  ASSERT_TRUE(builder.Output("o", DataType::kFloat, *builder.Unary("neg", y)).ok());
  EXPECT_EQ(Json::parse(builder.ToText()), Json::parse(R"({
    "inputs": [{"name": "y", "dataType": "float32", "shape": [2]}], "constants": [],
    "calls": [{"method": "neg", "args": [{"operand": 0}], "results": 1}],
    "outputs": [{"name": "o", "operand": 1, "dataType": "float32", "shape": [2]}]})"));
}

// WB-34
TEST_F(ProgramTest, ConstantsAreReleased) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{2});
  Tensor weights = Tensor::Of<float>({2}, {1, 2});
  const std::weak_ptr<void> memory = weights.owner();
  b.Output(b.Op("Mul", {x, b.Constant(std::move(weights))}));
  Open(*b.graph);
  ASSERT_EQ(partitions(), 1u);
  cpu_.reset();
  b.graph.reset();
  EXPECT_FALSE(memory.expired());
  plan_->partition(0).ReleaseConstants();
  EXPECT_TRUE(memory.expired());
  EXPECT_EQ(plan_->partition(0).Program(plan_->partition(0).static_binding()).error().code(),
            StatusCode::kFail);
}

}  // namespace
}  // namespace tenon::webnn
