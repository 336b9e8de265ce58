// Which nodes become which partitions. Requirements: web (WB-n).
#include <nlohmann/json.hpp>

#include "webnn/fixture.h"

namespace tenon::webnn {
namespace {

using Json = nlohmann::json;
using PartitionTest = WebnnTest;

// Gives the values that are not 0; WebNN has nothing like it. With one input the shape stays.
ValueId OnCpu(GraphBuilder& b, ValueId x) { return b.Op("Hardmax", {x}); }

// WB-50: a node that WebNN lacks is a barrier; what is beside it is not divided.
TEST_F(PartitionTest, FewestPartitionsWithoutCycles) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, kRow);
  const ValueId a = b.Op("Relu", {x});
  const ValueId c = OnCpu(b, a);
  const ValueId beside = b.Op("Exp", {a});
  const ValueId apart = b.Op("Tanh", {b.Input("other", DataType::kFloat, kRow)});
  b.Output(b.Op("Add", {b.Op("Add", {c, beside}), apart}));
  Open(*b.graph);
  ASSERT_EQ(partitions(), 2u);
  EXPECT_EQ(plan_->partition(0).node_count(), 3u);  // Relu, Exp, Tanh
  EXPECT_EQ(plan_->partition(1).node_count(), 2u);  // both Adds
  ExpectSameAsCpu();
}

// WB-50
TEST_F(PartitionTest, MovesBetweenNodesOnTheCpuStayThere) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, kRow);
  const ValueId a = OnCpu(b, x);
  const ValueId moved = b.Op("Transpose", {b.Op("Reshape", {a, b.Ints({3, 2})})});
  b.Output(OnCpu(b, moved));
  Open(*b.graph);
  EXPECT_EQ(partitions(), 0u);
  ExpectSameAsCpu();
}

TEST_F(PartitionTest, MovesBesideOthersOfWebnnGoAlong) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, kRow);
  const ValueId moved = b.Op("Transpose", {OnCpu(b, x)});
  b.Output(b.Op("Relu", {moved}));
  b.Output(OnCpu(b, moved));
  Open(*b.graph);
  ASSERT_EQ(partitions(), 1u);
  EXPECT_EQ(plan_->partition(0).node_count(), 2u);
  ExpectSameAsCpu();
}

// What the glue is told: where values come from and go to.
TEST_F(PartitionTest, Description) {
  GraphBuilder b;
  const ValueId image = b.Input("image", DataType::kFloat, kRow);
  const ValueId mask = b.Input("mask", DataType::kFloat, kRow);
  const ValueId a = b.Op("Relu", {image});
  const ValueId masked = OnCpu(b, b.Op("Hardmax", {mask}));
  const ValueId sum = b.Op("Add", {a, OnCpu(b, a)});
  b.graph->AddOutput("logits", b.Op("Mul", {b.Op("Add", {sum, masked}), image}));
  b.graph->AddOutput("relu", a);
  Open(*b.graph);
  const Json json = Json::parse(plan_->ToText());
  ASSERT_EQ(json["partitions"].size(), 2u) << json.dump(1);
  EXPECT_EQ(json["hostFeeds"], Json::parse(R"(["mask"])"));
  const Json first = json["partitions"][0], second = json["partitions"][1];
  EXPECT_EQ(first["firstNode"], "Relu0");
  EXPECT_TRUE(first["isStatic"].get<bool>());
  EXPECT_EQ(first["inputs"], Json::parse(R"([{"name": "image", "source": {"feed": "image"}}])"));
  EXPECT_EQ(first["outputs"].size(), 1u);
  EXPECT_TRUE(first["outputs"][0]["host"].get<bool>());
  EXPECT_EQ(first["outputs"][0]["fetches"], Json::parse(R"(["relu"])"));
  size_t from_partition = 0, from_host = 0, from_feed = 0;
  for (const Json& input : second["inputs"]) {
    const Json& source = input["source"];
    from_host += source == "host";
    from_partition += source == Json::parse(R"({"partition": 0, "output": 0})");
    from_feed += source == Json::parse(R"({"feed": "image"})");
  }
  EXPECT_EQ(from_host, 2u);
  EXPECT_EQ(from_partition, 1u);
  EXPECT_EQ(from_feed, 1u);
  EXPECT_EQ(second["outputs"][0]["fetches"], Json::parse(R"(["logits"])"));
  EXPECT_FALSE(second["outputs"][0]["host"].get<bool>());
  ExpectSameAsCpu();
}

// WB-51: nodes of a partition that could not be built stay on the CPU; the others do not change.
TEST_F(PartitionTest, ExcludedPartitions) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, kRow);
  const ValueId a = b.Op("Relu", {x});
  b.Output(b.Op("Exp", {OnCpu(b, a)}));
  Open(*b.graph);
  ASSERT_EQ(partitions(), 2u);
  const std::string first = plan_->partition(0).first_node();
  Open(*b.graph, {.excluded = first + "\nsomething else"});
  ASSERT_EQ(partitions(), 1u);
  EXPECT_NE(plan_->partition(0).first_node(), first);
  ExpectSameAsCpu();
}

// Nodes without names, or with one that others have, too.
TEST_F(PartitionTest, FirstNodesHaveNamesOfTheirOwn) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, kRow);
  const ValueId a = b.Op("Relu", {x});
  const ValueId c = OnCpu(b, a);
  b.Output(b.Op("Exp", {c}));
  b.graph->node(NodeId{0}).name = "same";
  b.graph->node(NodeId{2}).name = "same";
  Open(*b.graph);
  ASSERT_EQ(partitions(), 2u);
  EXPECT_NE(plan_->partition(0).first_node(), plan_->partition(1).first_node());
}

// Nothing inside of control flow: a run cannot stop there.
TEST_F(PartitionTest, SubgraphsStayOnTheCpu) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, kRow);
  const ValueId condition = b.Input("condition", DataType::kBool, SymbolicShape{});
  const ValueId a = b.Op("Relu", {x});
  std::vector<Attribute> branches;
  for (const char* name : {"then_branch", "else_branch"}) {
    GraphBuilder inner;
    const ValueId captured = inner.Capture(a, "a");
    inner.Output(inner.Op(name[0] == 't' ? "Exp" : "Abs", {captured}));
    branches.push_back(Attribute(name, std::move(inner.graph)));
  }
  const ValueId y = b.Op("If", {condition}, std::move(branches));
  b.Output(b.Op("Tanh", {y}));
  Open(*b.graph);
  ASSERT_EQ(partitions(), 2u);
  // The branches read what the first partition makes.
  EXPECT_TRUE(plan_->stages()[0].outputs[0].is_read_by_host);
  ExpectSameAsCpu();
}

// WB-55: sizes that the first run tells, shapes that are computed from them.
TEST_F(PartitionTest, OpenSizes) {
  GraphBuilder b;
  const Dim n = Dim::Symbol("n"), m = Dim::Symbol("m");
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{n, m, 4});
  const ValueId shape = b.Op("Shape", {b.Op("Relu", {x})});
  const ValueId first = b.Op("Gather", {shape, b.Ints({0})});
  const ValueId rows =
      b.Op("Concat", {first, b.Ints({-1})}, MakeAttributes(Attr("axis", int64_t{0})));
  const ValueId flat = b.Op("Reshape", {x, rows});
  b.Output(b.Op("Softmax", {flat}));
  Open(*b.graph);
  ASSERT_EQ(partitions(), 1u);
  EXPECT_FALSE(plan_->partition(0).is_static());
  EXPECT_FALSE(plan_->stages()[0].outputs[0].is_read_by_host);
  for (const Shape& size : {Shape{2, 3, 4}, Shape{5, 1, 4}, Shape{2, 3, 4}}) {
    ExpectSameAsCpu(1e-5, {size});
  }
  // The program for the shapes at the barrier.
  const Value feed = SomeValue(DataType::kFloat, Shape{3, 2, 4});
  const bool is_fetched = false;
  const Value fetch;
  ASSERT_TRUE(run_->Begin({}, Hidden({&feed, 1}), {&is_fetched, 1}, {&fetch, 1}).ok());
  ASSERT_TRUE(run_->Next().ok());
  const auto text = plan_->partition(0).Program(run_->binding());
  ASSERT_TRUE(text) << text.error().message();
  const Json program = Json::parse(**text);
  EXPECT_EQ(program["inputs"][0]["shape"], Json::parse("[3, 2, 4]"));
  EXPECT_EQ(program["outputs"][0]["shape"], Json::parse("[3, 8]"));
  run_->End();
}

// A window that the first example of a size is too small for.
TEST_F(PartitionTest, LargeWindowsOverOpenSizes) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{1, 1, Dim::Symbol("h"), 100});
  b.Output(b.Op("MaxPool", {b.Op("Relu", {x})},
                MakeAttributes(Attr("kernel_shape", std::vector<int64_t>{100, 100}))));
  Open(*b.graph);
  ASSERT_EQ(partitions(), 1u);
  EXPECT_EQ(plan_->partition(0).node_count(), 2u);
  ExpectSameAsCpu(1e-5, {Shape{1, 1, 120, 100}});
}

// Shape arithmetic whose results nodes on the CPU read, too, stays there; what is computed there is
// a constant of the program.
TEST_F(PartitionTest, SizesThatTheCpuReadsToo) {
  GraphBuilder b;
  const Dim n = Dim::Symbol("n");
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{n, 4});
  const ValueId y = b.Input("y", DataType::kFloat, SymbolicShape{n, 2, 2});
  const ValueId shape = b.Op("Shape", {y});
  b.Output(b.Op("Relu", {b.Op("Reshape", {x, shape})}));
  b.Output(b.Op("NonZero", {shape}));
  Open(*b.graph);
  ASSERT_EQ(partitions(), 1u);
  ExpectSameAsCpu(1e-5, {Shape{3, 4}, Shape{3, 2, 2}});
  ExpectSameAsCpu(1e-5, {Shape{5, 4}, Shape{5, 2, 2}});
}

// Sizes that depend on data.
TEST_F(PartitionTest, DataDependentSizesStayOnTheCpu) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, kRow);
  const ValueId places = b.Op("NonZero", {b.Op("Relu", {x})});
  b.Output(b.Op("Cast", {places}, MakeAttributes(Attr("to", int64_t{1}))));
  Open(*b.graph);
  ASSERT_EQ(partitions(), 1u);
  EXPECT_EQ(plan_->partition(0).node_count(), 1u);
  ExpectSameAsCpu();
}

// A size of 0, which WebNN does not have, is an error of the program alone.
TEST_F(PartitionTest, NoElements) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim::Symbol("n"), 2});
  b.Output(b.Op("Relu", {x}));
  Open(*b.graph);
  ASSERT_EQ(partitions(), 1u);
  const Value feed = SomeValue(DataType::kFloat, Shape{0, 2});
  const bool is_fetched = false;
  const Value fetch;
  ASSERT_TRUE(run_->Begin({}, Hidden({&feed, 1}), {&is_fetched, 1}, {&fetch, 1}).ok());
  ASSERT_TRUE(run_->Next().ok());
  EXPECT_EQ(plan_->partition(0).Program(run_->binding()).error().code(),
            StatusCode::kNotImplemented);
  run_->End();
  ExpectSameAsCpu(1e-5, {Shape{3, 2}});
}

}  // namespace
}  // namespace tenon::webnn
