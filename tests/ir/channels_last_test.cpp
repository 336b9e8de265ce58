#include "ir/channels_last.h"

#include <gtest/gtest.h>

#include "ir/graph_builder.h"
#include "ir/schema.h"

namespace tenon {
namespace {

// Images are always [1, 4, 8, 6]: only the order of axes matters.
class ChannelsLastTest : public ::testing::Test {
 protected:
  ChannelsLastTest() { b_.Shaped(x_, kImage); }

  ValueId Op(std::string op_type, std::vector<ValueId> inputs,
             std::vector<Attribute> attributes = {}) {
    return b_.Shaped(b_.Op(std::move(op_type), std::move(inputs), std::move(attributes)), kImage);
  }
  ValueId Conv(ValueId x) { return Op("Conv", {x, w_}); }
  ValueId Floats(Shape shape) {
    const std::vector<float> values(static_cast<size_t>(shape.NumElements()), 1);
    return b_.Constant(Tensor::Of<float>(std::move(shape), values));
  }
  Graph& graph() { return *b_.graph; }
  const Node& Producer(ValueId id) { return graph().node(graph().value(id).producer); }

  // Converts all nodes that have the form; returns their number.
  size_t Turn(bool to_last) {
    std::vector<NodeId> nodes, turning;
    for (size_t i = 0; i < graph().node_capacity(); ++i) {
      const Node* const node = graph().FindNode(static_cast<NodeId>(i));
      if (node == nullptr) continue;
      nodes.push_back(node->id);
      const bool may =
          to_last ? MayPutChannelsLast(graph(), *node) : MayPutChannelsFirst(graph(), *node);
      if (may) turning.push_back(node->id);
    }
    ChannelLayout layout(graph(), nodes);
    for (const NodeId id : turning) {
      if (to_last) layout.PutChannelsLast(id);
      if (!to_last) layout.PutChannelsFirst(id);
    }
    layout.Settle();
    return turning.size();
  }
  // The operators in order.
  std::string Operators() {
    std::vector<std::string> names;
    const auto order = graph().TopologicalOrder();
    for (const NodeId id : *order) {
      const Node& node = graph().node(id);
      EXPECT_EQ(node.schema, FindSchema(node.domain, node.op_type, node.opset));
      names.push_back((node.domain.empty() ? "" : "nhwc.") + node.op_type);
    }
    std::string text;
    for (const std::string& name : names) text += Format("{}{}", text.empty() ? "" : " ", name);
    return text;
  }

  inline static const SymbolicShape kImage = {Dim(1), Dim(4), Dim(8), Dim(6)};
  inline static const SymbolicShape kTurned = {Dim(1), Dim(8), Dim(6), Dim(4)};
  GraphBuilder b_;
  ValueId x_ = b_.Input("x"), w_ = b_.Input("w");
};

TEST_F(ChannelsLastTest, PairsOfTransposesGo) {
  const ValueId a = Conv(x_), b = Op("Relu", {a}), c = Op("MaxPool", {b}), y = Conv(c);
  b_.Output(y);
  EXPECT_EQ(Turn(true), 3u);
  EXPECT_EQ(Operators(), "Transpose nhwc.Conv Relu nhwc.MaxPool nhwc.Conv Transpose");
  const Node& last = Producer(y);
  EXPECT_EQ(PermutationOf(last, 4), (Permutation{0, 3, 1, 2}));
  EXPECT_EQ(graph().value(last.inputs[0]).type.shape, kTurned);
  EXPECT_EQ(graph().value(y).type.shape, kImage);
  EXPECT_EQ(Turn(false), 3u);
  EXPECT_EQ(Operators(), "Conv Relu MaxPool Conv");
  EXPECT_EQ(Producer(y).inputs[1], w_);
}

TEST_F(ChannelsLastTest, BranchesAreJoinedInTheirOrder) {
  const ValueId a = Conv(x_);
  const ValueId sum = Op("Add", {Conv(a), a});
  const ValueId joined = Op("Concat", {sum, Conv(sum)}, MakeAttributes(Attr("axis", int64_t{-3})));
  b_.Output(Conv(joined));
  Turn(true);
  EXPECT_EQ(Operators(), "Transpose nhwc.Conv nhwc.Conv Add nhwc.Conv Concat nhwc.Conv Transpose");
  const auto order = graph().TopologicalOrder();
  for (const NodeId id : *order) {
    const Node& node = graph().node(id);
    if (node.op_type == "Concat") {
      EXPECT_EQ(node.GetInt("axis", 0), 3);
    }
  }
}

// A value that several nodes read is transposed once.
TEST_F(ChannelsLastTest, ReadersShareATranspose) {
  b_.Output(Op("Add", {Conv(x_), Conv(x_)}));
  Turn(true);
  EXPECT_EQ(Operators(), "Transpose nhwc.Conv nhwc.Conv Add Transpose");
}

TEST_F(ChannelsLastTest, ConstantsOfChannelsFollow) {
  const ValueId scaled = Op("Mul", {Conv(x_), Floats({4, 1, 1})});
  const ValueId shifted = Op("Add", {Floats({1}), scaled});
  const ValueId y = Op("PRelu", {shifted, Floats({1, 1, 1, 6})});
  b_.Output(y);
  Turn(true);
  EXPECT_EQ(Operators(), "Transpose nhwc.Conv Mul Add PRelu Transpose");
  const Node& prelu = Producer(Producer(y).inputs[0]);
  EXPECT_EQ(graph().ConstantOf(prelu.inputs[1])->shape(), Shape({1, 1, 6, 1}));
  const Node& add = Producer(prelu.inputs[0]);
  EXPECT_EQ(graph().ConstantOf(add.inputs[0])->shape(), Shape({1}));
  const Node& mul = Producer(add.inputs[1]);
  EXPECT_EQ(graph().ConstantOf(mul.inputs[1])->shape(), Shape({1, 1, 1, 4}));
}

// A node with its own axis order, or with unknown operands, stops a Transpose.
TEST_F(ChannelsLastTest, OtherNodesKeepTheirOrder) {
  const ValueId z = b_.Shaped(b_.Input("z"), kImage);
  for (const ValueId end :
       {Op("Softmax", {Conv(x_)}), Op("Add", {Conv(x_), z}), Op("Mul", {Conv(x_), Floats({8, 6})}),
        Op("Clip", {Conv(x_), z}), Op("Concat", {Conv(x_), Conv(z)}),
        Op("Concat", {Conv(x_), Conv(z)}, MakeAttributes(Attr("axis", int64_t{4}))),
        Op("QuantizeLinear", {Conv(x_), Floats({4})})}) {
    b_.Output(end);
  }
  Turn(true);
  for (const GraphOutput& output : graph().outputs()) {
    const Node& node = Producer(output.value);
    const bool joins = node.op_type == "Concat" || node.op_type == "Transpose";
    EXPECT_TRUE(joins || Producer(node.inputs[0]).op_type == "Transpose") << node.Describe();
  }
}

TEST_F(ChannelsLastTest, OutputsOfTheGraphKeepAProducer) {
  const ValueId a = Conv(x_);
  const ValueId b = Op("Transpose", {a}, MakeAttributes(Attr("perm", Permutation{0, 2, 3, 1})));
  b_.Output(a);
  b_.Output(b);
  Turn(true);
  EXPECT_EQ(Operators(), "Transpose nhwc.Conv Transpose");
  EXPECT_EQ(graph().outputs()[1].value, b);
  EXPECT_EQ(Producer(b).op_type, "Conv");
  EXPECT_EQ(Producer(a).inputs[0], b);
}

TEST_F(ChannelsLastTest, SizesOfAResizeArePermuted) {
  const ValueId none = b_.Constant(Tensor::Of<float>({0}, {}));
  const ValueId scales = b_.Constant(Tensor::Of<float>({4}, {1, 2, 3, 4}));
  const ValueId by_scales = Op("Resize", {x_, none, scales});
  const ValueId by_sizes =
      Op("Resize", {x_, ValueId::kNone, ValueId::kNone, b_.Ints({1, 4, 16, 12})});
  const ValueId by_axes = Op("Resize", {x_, none, b_.Constant(Tensor::Of<float>({2}, {2, 3}))},
                             MakeAttributes(Attr("axes", Permutation{-2, 3})));
  for (const ValueId y : {by_scales, by_sizes, by_axes}) b_.Output(y);
  EXPECT_EQ(Turn(true), 3u);
  const auto resize = [&](ValueId y) { return &Producer(Producer(y).inputs[0]); };
  const auto constant = [&](ValueId y, size_t i) {
    return graph().ConstantOf(resize(y)->inputs[i]);
  };
  EXPECT_EQ(constant(by_scales, 2)->values<float>()[1], 3);
  EXPECT_EQ(constant(by_scales, 2)->values<float>()[3], 2);
  EXPECT_EQ(*IntegersOf(*constant(by_sizes, 3)), Shape({1, 16, 12, 4}));
  EXPECT_EQ(resize(by_axes)->GetInts("axes"), (Permutation{1, 2}));
  EXPECT_EQ(constant(by_axes, 2)->size(), 2);
  Turn(false);
  EXPECT_EQ(Operators(), "Resize Resize Resize");
  EXPECT_EQ(*IntegersOf(*graph().ConstantOf(Producer(by_sizes).inputs[3])), Shape({1, 4, 16, 12}));
  EXPECT_EQ(Producer(by_axes).GetInts("axes"), (Permutation{2, 3}));
}

TEST_F(ChannelsLastTest, SomeNodesHaveOneFormOnly) {
  const ValueId unknown = b_.Input("unknown");
  const ValueId flat = b_.Shaped(b_.Input("flat"), {Dim(2), Dim(3)});
  const ValueId sizes = b_.Shaped(b_.Input("sizes"), {Dim(4)}, DataType::kInt64);
  const std::vector<ValueId> pooled = b_.OpN("MaxPool", {x_}, 2);
  b_.Output(pooled[1]);
  for (const ValueId y :
       {Op("Relu", {x_}), Conv(unknown), Op("BatchNormalization", {flat, w_, w_, w_, w_}),
        Op("Resize", {x_, ValueId::kNone, ValueId::kNone, sizes}),
        Op("Resize", {x_, ValueId::kNone, b_.Constant(Tensor::Of<float>({3}, {1, 2, 3}))}),
        Op("Resize", {x_, w_, b_.Constant(Tensor::Of<float>({4}, {1, 1, 2, 2}))},
           MakeAttributes(
               Attr("coordinate_transformation_mode", std::string("tf_crop_and_resize")))),
        Op("Resize", {x_, ValueId::kNone, b_.Constant(Tensor::Of<float>({1}, {2}))},
           MakeAttributes(Attr("axes", Permutation{4}))),
        Op("MaxUnpool", {x_, w_}), pooled[0], b_.Op("Conv", {x_, w_}, {}, "com.microsoft")}) {
    EXPECT_FALSE(MayPutChannelsLast(graph(), Producer(y))) << Producer(y).Describe();
    EXPECT_FALSE(MayPutChannelsFirst(graph(), Producer(y))) << Producer(y).Describe();
  }
}

}  // namespace
}  // namespace tenon
