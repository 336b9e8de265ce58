#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ir/make_attributes.h"
#include "ir/schema.h"
#include "ops/cpu_provider.h"
#include "ops/framework/registry.h"
#include "ops/reference.h"
#include "runtime/environment.h"
#include "runtime/session.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

// Builds a model whose nodes name their values.
class Builder {
 public:
  Builder() {
    model_.graph = std::make_unique<Graph>();
    model_.ir_version = 8;
    model_.opsets = {{"", 17}, {"com.microsoft", 1}};
  }

  ValueId Input(const std::string& name, Dims shape) {
    const ValueId id = graph().AddValue(
        name, ValueType::Tensor(DataType::kFloat, SymbolicShape(std::move(shape))));
    graph().AddInput(id);
    return id;
  }
  ValueId Weights(Shape shape) {
    Tensor tensor = Scattered(shape, ++seed_);
    // Near one product of unit variance, so that deep graphs stay in range.
    const double scale = 1 / std::sqrt(static_cast<double>(shape.Product(1, shape.rank())));
    for (float& v : std::span(tensor.data<float>(), static_cast<size_t>(tensor.size()))) {
      v = static_cast<float>(v * scale);
    }
    return graph().AddInitializer(graph().UnusedName("weights"), std::move(tensor));
  }
  ValueId Op(const std::string& op_type, std::vector<ValueId> inputs,
             std::vector<Attribute> attributes = {}) {
    NodeSpec spec;
    spec.op_type = op_type;
    spec.inputs = std::move(inputs);
    spec.outputs = {graph().AddValue(graph().UnusedName(op_type))};
    spec.attributes = std::move(attributes);
    spec.opset = 17;
    Node& node = graph().AddNode(std::move(spec));
    node.schema = FindSchema("", op_type, 17);
    return node.outputs[0];
  }
  // Pieces of these sizes, or equal ones.
  std::vector<ValueId> Split(ValueId x, size_t count, const std::vector<int64_t>& sizes = {}) {
    NodeSpec spec;
    spec.op_type = "Split";
    spec.inputs = {x};
    if (!sizes.empty()) spec.inputs.push_back(Constant<int64_t>(sizes));
    for (size_t i = 0; i < count; ++i) {
      spec.outputs.push_back(graph().AddValue(graph().UnusedName("Split")));
    }
    spec.attributes = MakeAttributes(Attr("axis", int64_t{1}));
    spec.opset = 17;
    Node& node = graph().AddNode(std::move(spec));
    node.schema = FindSchema("", "Split", 17);
    return node.outputs;
  }
  template <class T>
  ValueId Constant(const std::vector<T>& values) {
    const Shape shape({static_cast<int64_t>(values.size())});
    return graph().AddInitializer(graph().UnusedName("constant"),
                                  Tensor::Of<T>(shape, std::span<const T>(values)));
  }
  // A convolution that keeps H and W for odd kernels and stride 1.
  ValueId Conv(ValueId x, int64_t in, int64_t out, int64_t kernel, int64_t stride = 1,
               int64_t group = 1) {
    const int64_t pad = kernel / 2;
    return Op("Conv", {x, Weights({out, in / group, kernel, kernel}), Weights({out})},
              MakeAttributes(Attr("pads", Ints{pad, pad, pad, pad}),
                             Attr("strides", Ints{stride, stride}), Attr("group", group)));
  }
  // BatchNormalization, and a scale and shift per channel.
  ValueId Normalize(ValueId x, int64_t channels) {
    const auto all_channels = [&] { return Weights({channels, 1, 1}); };
    const ValueId variance = Op("Abs", {Weights({channels})});
    const ValueId y =
        Op("BatchNormalization",
           {x, Weights({channels}), Weights({channels}), Weights({channels}), variance},
           MakeAttributes(Attr("epsilon", 0.1F)));
    return Op("Add", {Op("Mul", {y, all_channels()}), all_channels()});
  }
  void Output(ValueId id) { graph().AddOutput(Format("output{}", graph().outputs().size()), id); }
  Graph& graph() { return *model_.graph; }
  Model Build() { return std::move(model_); }

 private:
  Model model_;
  uint32_t seed_ = 10;
};

struct Outcome {
  std::vector<Tensor> outputs;
  std::map<std::string, int> operators;  // of the optimised graph
};

Outcome RunModel(Model model, OptimizationLevel level, const Shape& input, int threads) {
  Environment environment({.threads = {.threads = threads}});
  SessionParts parts;
  parts.providers.push_back(MakeCpuProvider());
  parts.shape_functions = &OpShapeFunctions();
  SessionOptions options;
  options.optimization_level = level;
  auto session =
      Session::Create(environment, std::move(model), std::move(options), std::move(parts));
  Outcome outcome;
  if (!session) {
    ADD_FAILURE() << session.error().message();
    return outcome;
  }
  const Graph& graph = *(*session)->model().graph;
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    if (const Node* node = graph.FindNode(static_cast<NodeId>(i)))
      ++outcome.operators[node->op_type];
  }
  std::vector<std::string_view> names;
  for (const SessionValue& output : (*session)->outputs()) names.push_back(output.name);
  // The second run takes the planned path.
  for (int run = 0; run < 2; ++run) {
    std::vector<Value> fetches(names.size());
    const std::string_view feed_names[] = {(*session)->inputs()[0].name};
    const Value feeds[] = {Scattered(input)};
    const Status status = (*session)->Run({}, feed_names, feeds, names, fetches);
    if (!status.ok()) {
      ADD_FAILURE() << status.message();
      return outcome;
    }
    outcome.outputs.clear();
    for (const Value& value : fetches) outcome.outputs.push_back(value.tensor());
  }
  return outcome;
}

struct LayoutCase {
  std::string name;
  Dims declared;
  Shape input;
  void (*build)(Builder& b, ValueId x);
  std::map<std::string, int> expected;  // how often operators are there afterwards
};

void BuildResidualNetwork(Builder& b, ValueId x) {
  const ValueId stem = b.Op("Relu", {b.Conv(x, 3, 32, 3, 2)});
  const ValueId pool =
      b.Op("MaxPool", {stem},
           MakeAttributes(Attr("kernel_shape", Ints{3, 3}), Attr("strides", Ints{2, 2}),
                          Attr("pads", Ints{1, 1, 1, 1})));
  const ValueId a = b.Op("Relu", {b.Conv(pool, 32, 48, 3)});
  const ValueId sum = b.Op("Relu", {b.Op("Add", {b.Conv(a, 48, 32, 1), pool})});
  const ValueId joined = b.Op("Concat", {sum, a, pool}, MakeAttributes(Attr("axis", int64_t{1})));
  const ValueId mean = b.Op("GlobalAveragePool", {b.Conv(joined, 112, 40, 3)});
  const ValueId flat = b.Op("Flatten", {mean});
  b.Output(b.Op("Gemm", {flat, b.Weights({40, 10})}));
}

// Channel counts that are no multiples of 16, a gate per channel, depthwise and grouped.
void BuildGatedNetwork(Builder& b, ValueId x) {
  const ValueId wide = b.Op("HardSwish", {b.Conv(x, 3, 24, 3)});
  const ValueId deep = b.Op("Relu", {b.Conv(wide, 24, 24, 5, 2, 24)});
  const ValueId mean = b.Op("ReduceMean", {deep},
                            MakeAttributes(Attr("axes", Ints{2, 3}), Attr("keepdims", int64_t{1})));
  const ValueId gate =
      b.Op("HardSigmoid", {b.Conv(b.Op("Relu", {b.Conv(mean, 24, 8, 1)}), 8, 24, 1)});
  const ValueId gated = b.Op("Mul", {deep, gate});
  const ValueId grouped = b.Op("Sigmoid", {b.Conv(gated, 24, 24, 3, 1, 6)});
  b.Output(
      b.Op("AveragePool", {grouped},
           MakeAttributes(Attr("kernel_shape", Ints{3, 3}), Attr("ceil_mode", int64_t{0}),
                          Attr("pads", Ints{1, 1, 1, 1}), Attr("count_include_pad", int64_t{1}))));
}

// The nchw form of blocked values is needed in the middle and by an operator without a blocked
// form.
void BuildMixedNetwork(Builder& b, ValueId x) {
  const ValueId a = b.Op("Relu", {b.Conv(x, 20, 40, 3)});
  b.Output(a);
  const ValueId c = b.Conv(a, 40, 33, 3);
  b.Output(b.Op("Softmax", {c}, MakeAttributes(Attr("axis", int64_t{1}))));
  b.Output(b.Conv(c, 33, 40, 3));
}

void BuildTinyConvolution(Builder& b, ValueId x) { b.Output(b.Conv(b.Op("Exp", {x}), 20, 4, 1)); }

// Every method, and an nchw convolution, with factors for its weights.
void BuildNormalizedNetwork(Builder& b, ValueId x) {
  const ValueId stem = b.Normalize(b.Conv(x, 3, 32, 3, 2), 32);
  const ValueId direct = b.Normalize(b.Conv(stem, 32, 56, 1), 56);
  const ValueId winograd = b.Normalize(b.Conv(direct, 56, 48, 3), 48);
  const ValueId grouped = b.Normalize(b.Conv(winograd, 48, 48, 3, 1, 3), 48);
  const ValueId depthwise = b.Normalize(b.Conv(grouped, 48, 48, 3, 1, 48), 48);
  b.Output(b.Normalize(b.Conv(b.Op("Sqrt", {b.Op("Abs", {depthwise})}), 48, 4, 1), 4));
}

// Scales and shifts of channels after operators that cannot take them in. Differences from a
// constant, and scalars, are something else.
void BuildScaledNetwork(Builder& b, ValueId x) {
  const ValueId wide = b.Op("Relu", {b.Conv(x, 20, 40, 3)});
  const ValueId normal = b.Normalize(wide, 40);
  const ValueId scaled = b.Op("Mul", {b.Weights({1, 40, 1, 1}), b.Op("Sub", {normal, wide})});
  const ValueId shifted = b.Op("Sub", {scaled, b.Weights({40, 1, 1})});
  const ValueId half = b.Op("Mul", {shifted, b.Weights({1})});
  b.Output(b.Conv(b.Op("Add", {half, wide}), 40, 40, 3));
  b.Output(b.Op("Sub", {b.Weights({40, 1, 1}), half}));
}

// Normalizations that no convolution comes right before, with what follows them.
void BuildNormalizedSum(Builder& b, ValueId x) {
  const ValueId wide = b.Op("Relu", {b.Conv(x, 20, 40, 3)});
  const ValueId inner = b.Op("Relu", {b.Normalize(wide, 40)});
  const ValueId deep = b.Op("Relu", {b.Conv(inner, 40, 40, 3)});
  const ValueId sum = b.Op("Sigmoid", {b.Op("Add", {b.Normalize(deep, 40), inner})});
  b.Output(b.Conv(sum, 40, 40, 3));
}

// What detectors have between the convolutions of their pyramids.
void BuildPyramid(Builder& b, ValueId x) {
  const ValueId wide = b.Op("Relu", {b.Conv(x, 3, 64, 3)});
  const std::vector<ValueId> halves = b.Split(wide, 2);
  const ValueId deep = b.Op("Relu", {b.Conv(halves[1], 32, 40, 3, 2)});
  const ValueId scales = b.Constant<float>({1, 1, 2, 2});
  const ValueId larger =
      b.Op("Resize", {deep, ValueId::kNone, scales},
           MakeAttributes(Attr("mode", std::string("nearest")),
                          Attr("coordinate_transformation_mode", std::string("asymmetric"))));
  const ValueId joined =
      b.Op("Concat", {halves[0], wide, larger}, MakeAttributes(Attr("axis", int64_t{1})));
  const ValueId narrow = b.Conv(joined, 136, 56, 1);
  const std::vector<ValueId> parts = b.Split(narrow, 3, {16, 32, 8});
  const ValueId sizes = b.Constant<int64_t>({2, 32, 11, 13});
  const ValueId smaller = b.Op("Resize", {parts[1], ValueId::kNone, ValueId::kNone, sizes},
                               MakeAttributes(Attr("mode", std::string("linear"))));
  b.Output(b.Conv(parts[0], 16, 40, 3));
  b.Output(b.Conv(smaller, 32, 40, 3));
  b.Output(b.Conv(parts[2], 8, 40, 3));
}

// Pieces that are no blocks, and sizes of channels that change.
void BuildUnevenPieces(Builder& b, ValueId x) {
  const ValueId wide = b.Op("Relu", {b.Conv(x, 3, 48, 3)});
  const std::vector<ValueId> parts = b.Split(wide, 2, {20, 28});
  const ValueId scales = b.Constant<float>({1, 0.5F, 1, 1});
  b.Output(b.Op("Resize", {b.Conv(parts[0], 20, 40, 3), ValueId::kNone, scales},
                MakeAttributes(Attr("mode", std::string("nearest")))));
  b.Output(b.Conv(parts[1], 28, 40, 3));
}

const LayoutCase kCases[] = {
    {"pyramid",
     {2, 3, 32, 36},
     {2, 3, 32, 36},
     BuildPyramid,
     {{"NchwcConv", 6},
      {"Split", 2},
      {"Resize", 2},
      {"NchwcReorderInput", 0},
      {"NchwcReorderOutput", 3}}},
    {"uneven pieces",
     {1, 3, 32, 36},
     {1, 3, 32, 36},
     BuildUnevenPieces,
     {{"NchwcConv", 2}, {"Split", 1}, {"Resize", 1}}},
    {"residual",
     {2, 3, 33, 29},
     {2, 3, 33, 29},
     BuildResidualNetwork,
     {{"NchwcConv", 4},
      {"NchwcMaxPool", 1},
      {"NchwcGlobalAveragePool", 1},
      {"Concat", 1},
      {"NchwcReorderOutput", 1},
      {"NchwcReorderInput", 0},
      {"Relu", 0},
      {"Conv", 0}}},
    {"residual with symbols",
     {Dim::Symbol("n"), 3, Dim::Symbol("h"), Dim::Symbol("w")},
     {1, 3, 40, 41},
     BuildResidualNetwork,
     {{"NchwcConv", 4}, {"NchwcReorderOutput", 1}, {"NchwcReorderInput", 0}}},
    {"gated",
     {1, 3, 34, 30},
     {1, 3, 34, 30},
     BuildGatedNetwork,
     {{"NchwcConv", 5},
      {"NchwcGlobalAveragePool", 1},
      {"NchwcAveragePool", 1},
      {"ReduceMean", 0},
      {"NchwcReorderOutput", 1},
      {"NchwcReorderInput", 0}}},
    {"mixed",
     {1, 20, 28, 28},
     {1, 20, 28, 28},
     BuildMixedNetwork,
     {{"NchwcConv", 3}, {"NchwcReorderInput", 1}, {"NchwcReorderOutput", 3}}},
    {"normalized",
     {1, 3, 56, 56},
     {1, 3, 56, 56},
     BuildNormalizedNetwork,
     {{"NchwcConv", 5}, {"Conv", 1}, {"BatchNormalization", 0}, {"Mul", 0}, {"Add", 0}}},
    {"scaled",
     {1, 20, 28, 28},
     {1, 20, 28, 28},
     BuildScaledNetwork,
     // The last difference, from a constant, is computed in nchw.
     {{"NchwcConv", 2 + 5},
      {"BatchNormalization", 0},
      {"NchwcReorderInput", 1},
      {"NchwcReorderOutput", 2},
      {"FusedElements", 0},
      {"Mul", 1},
      {"Add", 1},
      {"Sub", 2}}},
    {"normalized sum",
     {2, 20, 28, 28},
     {2, 20, 28, 28},
     BuildNormalizedSum,
     {{"NchwcConv", 3 + 2 * 3},
      {"BatchNormalization", 0},
      {"Relu", 0},
      {"Mul", 0},
      {"Add", 0},
      {"Sigmoid", 0},
      {"FusedElements", 0}}},
    {"tiny",
     {1, 20, 28, 28},
     {1, 20, 28, 28},
     BuildTinyConvolution,
     {{"NchwcConv", 0}, {"NchwcReorderInput", 0}, {"NchwcReorderOutput", 0}, {"Conv", 1}}},
};

TEST(NchwcLayoutTest, ComputesWhatNchwDoes) {
  for (const LayoutCase& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto run = [&](OptimizationLevel level, int threads) {
      Builder builder;
      c.build(builder, builder.Input("x", c.declared));
      return RunModel(builder.Build(), level, c.input, threads);
    };
    const Outcome nchw = run(OptimizationLevel::kBasic, 1);
    const Outcome blocked = run(OptimizationLevel::kAll, 1);
    const Outcome threaded = run(OptimizationLevel::kAll, 2);
    EXPECT_EQ(nchw.operators.count("NchwcConv"), 0u);
    for (const auto& [op_type, count] : c.expected) {
      const auto found = blocked.operators.find(op_type);
      EXPECT_EQ(found == blocked.operators.end() ? 0 : found->second, count) << op_type;
    }
    ASSERT_EQ(blocked.outputs.size(), nchw.outputs.size());
    ASSERT_EQ(threaded.outputs.size(), nchw.outputs.size());
    for (size_t i = 0; i < nchw.outputs.size(); ++i) {
      const float* expected = nchw.outputs[i].data<float>();
      ExpectElements(blocked.outputs[i], nchw.outputs[i].shape(), 1e-4,
                     [&](int64_t k) { return static_cast<double>(expected[k]); });
      const float* same = blocked.outputs[i].data<float>();
      ExpectElements(threaded.outputs[i], nchw.outputs[i].shape(), 0,
                     [&](int64_t k) { return static_cast<double>(same[k]); });
    }
  }
}

}  // namespace
}  // namespace tenon
