// What a plan says of working in place.
#include "runtime/in_place.h"

#include <gtest/gtest.h>

#include "ir/inference.h"
#include "runtime/build_plan.h"
#include "runtime/data_transfer.h"
#include "runtime/partition.h"
#include "runtime/rows.h"
#include "runtime/test_provider.h"

namespace tenon {
namespace {

const Dim n = Dim::Symbol("n");

// The ways of all steps, as "<operator> <output> over <input>".
std::vector<std::string> WaysIn(ModelBuilder& builder) {
  Model model = builder.Build();
  std::vector<std::unique_ptr<ExecutionProvider>> providers;
  providers.push_back(MakeTestProvider());
  Logger logger("test", Severity::kWarning, 0, StderrSink());
  EXPECT_TRUE(InferTypes(*model.graph, TestShapeFunctions()).ok());
  EXPECT_TRUE(Partitioner(*model.graph, providers, logger).Assign(*model.graph).ok());
  ExecutionProvider* const provider = providers.front().get();
  const Location memory = MemoryOf(*provider);
  const DataTransfers transfers;
  const auto plan =
      BuildPlan(*model.graph, {{&provider, 1}, {&memory, 1}, SharedCpuAllocator(), &transfers});
  EXPECT_TRUE(plan) << plan.error().message();
  std::vector<std::string> ways;
  for (const Step& step : plan->steps) {
    for (const InPlace& way : plan->InPlaceOf(step)) {
      ways.push_back(Format("{} {} over {}", step.node->op_type, way.output, way.input));
    }
  }
  return ways;
}

using Ways = std::vector<std::string>;

TEST(InPlaceTest, OverWhatIsReadLast) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"s"}).Node("Reuse", {"s"}, {"y"}).Output("y");
  // The run sees whether the memory of what it is fed is its own.
  EXPECT_EQ(WaysIn(b), (Ways{"Scale 0 over 0", "Reuse 0 over 0"}));
}

TEST(InPlaceTest, OverEitherInputThePreferredFirst) {
  ModelBuilder b;
  b.Input("x", {n}).Input("z", {n}).Node("Add", {"x", "z"}, {"s"});
  b.Node("Positive", {"s"}, {"p"}).Output("p");
  EXPECT_EQ(WaysIn(b), (Ways{"Add 0 over 0", "Add 0 over 1"}));
}

TEST(InPlaceTest, NotOverWhatIsReadLater) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Positive", {"x"}, {"s"}).Node("Scale", {"s"}, {"t"});
  b.Node("Fold", {"t", "s"}, {"y"}).Output("y");
  EXPECT_EQ(WaysIn(b), (Ways{"Fold 0 over 1"}));
}

TEST(InPlaceTest, NotOverWhatIsReadTwice) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Positive", {"x"}, {"s"}).Node("Add", {"s", "s"}, {"y"}).Output("y");
  EXPECT_EQ(WaysIn(b), Ways{});
}

TEST(InPlaceTest, NotOverConstants) {
  ModelBuilder b;
  b.Input("x", {n}).Constant("c", Row({1, 2})).Node("Positive", {"x"}, {"s"});
  b.Node("Add", {"c", "s"}, {"y"}).Output("y");
  EXPECT_EQ(WaysIn(b), (Ways{"Add 0 over 1"}));
}

TEST(InPlaceTest, NotOverOutputsOfTheGraph) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Positive", {"x"}, {"s"}).Node("Reuse", {"s"}, {"t"});
  b.Node("Scale", {"t"}, {"y"}).Output("s").Output("t").Output("y");
  EXPECT_EQ(WaysIn(b), Ways{});
}

TEST(InPlaceTest, AnOutputOfAsManyBytesFits) {
  const Tensor floats = Row({1, 2});
  EXPECT_TRUE(FitsInto(floats, DataType::kFloat, Shape({2})));
  EXPECT_TRUE(FitsInto(floats, DataType::kInt64, Shape({1, 1})));
  EXPECT_FALSE(FitsInto(floats, DataType::kFloat, Shape({1})));
  EXPECT_FALSE(FitsInto(floats, DataType::kFloat, Shape({3})));
  EXPECT_FALSE(FitsInto(floats, DataType::kString, Shape({1})));
}

}  // namespace
}  // namespace tenon
