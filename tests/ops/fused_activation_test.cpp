// Activations that operators apply to their results, and those that a session fuses: each of
// base/unary_functions.inc gives the bits that it gives alone, on every type.
#include "ops/framework/fused_activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "ir/graph_builder.h"
#include "ir/schema.h"
#include "kernels/unary_cases.h"
#include "ops/run_op.h"
#include "runtime/test_provider.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

// Of both signs, up to 3, so that sums of products reach where functions saturate.
template <class T>
Tensor Operand(Shape shape, uint32_t seed) {
  Tensor x = Tensor::Allocate(DataTypeOf<T>(), std::move(shape)).value();
  uint32_t state = seed * 2654435761u + 12345u;
  for (int64_t i = 0; i < x.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    const double number = static_cast<double>(state >> 8) / (1 << 23) - 1;
    x.data<T>()[i] = static_cast<T>(static_cast<float>(3 * number * number * number));
  }
  return x;
}

Tensor Operand(DataType type, Shape shape, uint32_t seed) {
  if (type == DataType::kDouble) return Operand<double>(std::move(shape), seed);
  if (type == DataType::kFloat16) return Operand<Float16>(std::move(shape), seed);
  if (type == DataType::kBfloat16) return Operand<Bfloat16>(std::move(shape), seed);
  return Operand<float>(std::move(shape), seed);
}

// The same bytes, but any NaN for a NaN.
template <class T>
void ExpectSame(const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.shape(), expected.shape());
  ASSERT_EQ(got.type(), expected.type());
  for (int64_t i = 0; i < got.size(); ++i) {
    const T a = got.data<T>()[i], b = expected.data<T>()[i];
    const bool are_nan = std::isnan(static_cast<float>(a)) && std::isnan(static_cast<float>(b));
    ASSERT_TRUE(are_nan || std::memcmp(&a, &b, sizeof a) == 0)
        << "at " << i << ": expected " << static_cast<float>(b) << ", got "
        << static_cast<float>(a);
  }
}

void ExpectSame(const Tensor& got, const Tensor& expected) {
  switch (got.type()) {
    case DataType::kDouble:
      return ExpectSame<double>(got, expected);
    case DataType::kFloat16:
      return ExpectSame<Float16>(got, expected);
    case DataType::kBfloat16:
      return ExpectSame<Bfloat16>(got, expected);
    default:
      return ExpectSame<float>(got, expected);
  }
}

Tensor Alone(const UnaryCase& test, const Tensor& x) {
  Tensor y = Tensor::Allocate(x.type(), x.shape()).value();
  const auto n = static_cast<size_t>(x.size());
  if (x.type() == DataType::kDouble) {
    kernels::ApplyInDouble(test.op, x.data<double>(), y.data<double>(), n, test.a, test.b);
  } else {
    kernels::FindUnary(test.op)(x.data<float>(), y.data<float>(), n, test.a, test.b);
  }
  return y;
}

// --- Operators that name an activation ---

std::vector<Attribute> InAList(const UnaryCase& test) {
  const UnaryInfo& info = InfoOf(test.op);
  std::vector<float> parameters = {test.a, test.b};
  parameters.resize(info.parameter_count());
  return MakeAttributes(Attr("activation", std::string(info.name)),
                        Attr("activation_params", parameters));
}

std::vector<Attribute> ByName(const UnaryCase& test) {
  const UnaryInfo& info = InfoOf(test.op);
  const bool has_gamma = info.parameters[1].name == "gamma";
  return MakeAttributes(Attr("activation", std::string(info.name)),
                        Attr("activation_alpha", test.a),
                        Attr(has_gamma ? "activation_gamma" : "activation_beta", test.b));
}

struct Scene {
  const char* op_type;
  const char* domain;
  const char* plain_op_type;  // the same without an activation
  const char* plain_domain;
  Shape x, w, bias;
  bool is_by_name;
  std::vector<DataType> types = {DataType::kFloat, DataType::kDouble};
  std::vector<Attribute> (*attributes)() = [] { return std::vector<Attribute>(); };
};

const Scene kScenes[] = {
    {"FusedMatMul",
     "com.tenon",
     "FusedMatMul",
     "com.tenon",
     {5, 33},
     {33, 35},
     {35},
     false,
     {DataType::kFloat}},
    {"FusedMatMulActivation",
     kMicrosoft,
     "FusedMatMul",
     kMicrosoft,
     {2, 5, 33},
     {33, 35},
     {},
     true},
    {"FusedGemm", kMicrosoft, "Gemm", "", {5, 33}, {33, 35}, {35}, true},
    {"FusedConv", kMicrosoft, "Conv", "", {2, 6, 9, 35}, {8, 6, 3, 3}, {8}, false},
    {"FusedConv",
     kMicrosoft,
     "Conv",
     "",
     {2, 6, 9, 9},
     {6, 1, 3, 3},
     {6},
     false,
     {DataType::kFloat, DataType::kDouble},
     [] { return MakeAttributes(Attr("group", int64_t{6})); }},
    // More axes than the kernels serve.
    {"FusedConv", kMicrosoft, "Conv", "", {1, 3, 3, 4, 3, 4}, {5, 3, 2, 2, 2, 2}, {5}, false},
};

void CheckScene(const Scene& scene, DataType type, const UnaryCase& test) {
  const Tensor x = Operand(type, scene.x, 1), w = Operand(type, scene.w, 2);
  std::vector<Value> inputs = {x, w};
  if (scene.bias.rank() > 0) inputs.push_back(Operand(type, scene.bias, 3));
  OpCall plain = {scene.plain_op_type, scene.plain_domain[0] ? 1 : 0, inputs, scene.attributes()};
  plain.domain = scene.plain_domain;
  OpCall fused = {scene.op_type, 1, inputs, scene.attributes()};
  fused.domain = scene.domain;
  for (Attribute& attribute : scene.is_by_name ? ByName(test) : InAList(test)) {
    fused.attributes.push_back(std::move(attribute));
  }
  const Tensor sums = RunTensorOp(std::move(plain));
  ASSERT_NO_FATAL_FAILURE(ExpectSame(RunTensorOp(std::move(fused)), Alone(test, sums)));
}

TEST(FusedActivationTest, OperatorsGiveTheBitsOfTheFunctionAlone) {
  for (const UnaryCase& test : kUnaryCases) {
    if (!InfoOf(test.op).Has(kFused)) continue;
    for (const Scene& scene : kScenes) {
      for (const DataType type : scene.types) {
        SCOPED_TRACE(
            Format("{} of {}, {}", InfoOf(test.op).name, scene.op_type, DataTypeName(type)));
        CheckScene(scene, type, test);
      }
    }
  }
}

TEST(FusedActivationTest, BiasActivationsGiveTheBitsOfTheFunctionAlone) {
  const std::pair<const char*, UnaryOp> operators[] = {{"BiasGelu", UnaryOp::kGelu},
                                                       {"FastGelu", UnaryOp::kGeluTanh}};
  for (const auto& [name, op] : operators) {
    for (const DataType type : {DataType::kFloat, DataType::kDouble}) {
      SCOPED_TRACE(Format("{}, {}", name, DataTypeName(type)));
      const Tensor x = Operand(type, {7, 35}, 1), bias = Operand(type, {35}, 2);
      const Tensor sums = RunTensorOp({"Add", 0, {x, bias}});
      OpCall call = {name, 1, {x, bias}};
      call.domain = kMicrosoft;
      ExpectSame(RunTensorOp(std::move(call)), Alone(CaseOf(op), sums));
    }
  }
}

// --- Nodes that a session fuses ---

// What follows the node `sums`; kNone if there is nothing by which ONNX could say it.
ValueId ActivationNode(GraphBuilder& b, const UnaryCase& test, ValueId sums, DataType type) {
  const UnaryInfo& info = InfoOf(test.op);
  if (test.op == UnaryOp::kGeluTanh) {
    return b.Op("Gelu", {sums}, MakeAttributes(Attr("approximate", std::string("tanh"))));
  }
  if (!info.is_operator) return ValueId::kNone;
  if (test.op == UnaryOp::kClip) {
    const auto bound = [&](float value) {
      Tensor scalar = Operand(type, {}, 1);
      if (type == DataType::kDouble) *scalar.data<double>() = value;
      if (type == DataType::kFloat) *scalar.data<float>() = value;
      if (type == DataType::kFloat16) *scalar.data<Float16>() = Float16(value);
      if (type == DataType::kBfloat16) *scalar.data<Bfloat16>() = Bfloat16(value);
      return b.Constant(std::move(scalar));
    };
    return b.Op("Clip", {sums, bound(test.a), bound(test.b)});
  }
  std::vector<Attribute> attributes;
  const float parameters[] = {test.a, test.b};
  for (size_t i = 0; i < info.parameter_count(); ++i) {
    attributes.push_back(Attr(std::string(info.parameters[i].name), parameters[i]));
  }
  return b.Op(std::string(info.name), {sums}, std::move(attributes));
}

struct Source {
  const char* name;
  Shape x;
  ValueId (*sums)(GraphBuilder& b, ValueId x, DataType type);
  bool fuses_doubles = false;
};

const Source kSources[] = {
    {"MatMul",
     {3, 33},
     [](GraphBuilder& b, ValueId x, DataType type) {
       return b.Op("MatMul", {x, b.Constant(Operand(type, {33, 20}, 2))});
     }},
    {"Gemm",
     {3, 33},
     [](GraphBuilder& b, ValueId x, DataType type) {
       return b.Op("Gemm",
                   {x, b.Constant(Operand(type, {33, 20}, 2)), b.Constant(Operand(type, {20}, 3))});
     }},
    {"Conv of one dimension",
     {1, 5, 40},
     [](GraphBuilder& b, ValueId x, DataType type) {
       return b.Op("Conv", {x, b.Constant(Operand(type, {6, 5, 3}, 2))});
     },
     true},
    {"Conv in blocks",
     {1, 24, 16, 18},
     [](GraphBuilder& b, ValueId x, DataType type) {
       return b.Op("Conv", {x, b.Constant(Operand(type, {20, 24, 3, 3}, 2))});
     },
     true},
};

struct Outcome {
  std::map<std::string, int> operators;
  Tensor y;
};

std::string NodeName(UnaryOp op) {
  return std::string(op == UnaryOp::kGeluTanh ? "Gelu" : InfoOf(op).name);
}

// Runs the source and the activation; if it is shared, another node reads the source as well, so
// that nothing can be fused with it.
Outcome Run(const Source& source, const UnaryCase& test, DataType type, bool is_shared) {
  const int32_t opset = NewestOpset("");
  GraphBuilder b(opset);
  const ValueId x = b.Input("x", type, SymbolicShape(source.x));
  const ValueId sums = source.sums(b, x, type);
  b.Output(ActivationNode(b, test, sums, type));
  if (is_shared) b.Output(sums);
  Model model;
  model.ir_version = 10;
  model.opsets = {{"", opset}};
  model.graph = std::move(b.graph);
  Environment environment;
  auto session = MakeSession(environment, std::move(model));
  Outcome outcome;
  if (!session) {
    ADD_FAILURE() << session.error().message();
    return outcome;
  }
  const Graph& graph = *(*session)->model().graph;
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (node) ++outcome.operators[node->op_type];
  }
  const std::string_view names[] = {"x"}, outputs[] = {(*session)->outputs()[0].name};
  const Value feeds[] = {Operand(type, source.x, 1)};
  Value fetches[1];
  const Status status = (*session)->Run({}, names, feeds, outputs, fetches);
  EXPECT_TRUE(status.ok()) << status.message();
  if (status.ok()) outcome.y = fetches[0].tensor();
  return outcome;
}

void CheckSource(const Source& source, const UnaryCase& test, DataType type) {
  const std::string op_type = NodeName(test.op);
  const Outcome alone = Run(source, test, type, true);
  const Outcome fused = Run(source, test, type, false);
  // Halves are widened first, and some operators on them taken apart.
  if (type == DataType::kFloat || type == DataType::kDouble) {
    const bool is_fused = type == DataType::kFloat || source.fuses_doubles;
    EXPECT_EQ(alone.operators.count(op_type), 1u);
    EXPECT_EQ(fused.operators.count(op_type), is_fused ? 0u : 1u);
  }
  if (source.x.rank() == 4 && type == DataType::kFloat) {
    EXPECT_EQ(fused.operators.count("NchwcConv"), 1u);
    EXPECT_EQ(alone.operators.count("NchwcConv"), 1u);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectSame(fused.y, alone.y));
}

TEST(FusedActivationTest, SessionsGiveTheBitsOfTheOperatorAlone) {
  for (const UnaryCase& test : kUnaryCases) {
    const bool is_node = InfoOf(test.op).is_operator || test.op == UnaryOp::kGeluTanh;
    if (!is_node || !InfoOf(test.op).Has(kFused)) continue;
    const OpSchema* schema = FindSchema("", InfoOf(test.op).name, NewestOpset(""));
    if (schema && schema->deprecated) continue;
    for (const Source& source : kSources) {
      for (const DataType type :
           {DataType::kFloat, DataType::kDouble, DataType::kFloat16, DataType::kBfloat16}) {
        SCOPED_TRACE(
            Format("{} after {}, {}", InfoOf(test.op).name, source.name, DataTypeName(type)));
        CheckSource(source, test, type);
      }
    }
  }
}

}  // namespace
}  // namespace tenon
