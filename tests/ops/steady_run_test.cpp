// Runs of known shapes allocate nothing, in the runtime or in kernels.
#include <gtest/gtest.h>

#include <functional>

#include "base/allocation_count.h"
#include "ir/graph_builder.h"
#include "ir/schema.h"
#include "ops/cpu_provider.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "runtime/session.h"

namespace tenon {
namespace {

using B = GraphBuilder;
using Ints = std::vector<int64_t>;

constexpr int32_t kOpset = 20;

struct SteadyCase {
  const char* name;
  // Builds nodes upon the input, float [2, 4, 6, 6], and returns what the graph gives.
  std::function<ValueId(B&, ValueId)> build;
};

ValueId Weights(B& b, Shape shape) { return b.Constant(Scattered(shape, 3)); }

ValueId Convolution(B& b, ValueId x) {
  return b.Op("Conv", {x, Weights(b, {4, 4, 3, 3}), Weights(b, {4})},
              MakeAttributes(Attr("pads", Ints{1, 1, 1, 1})));
}

// The input as [12, 24], of which a product takes the rows.
ValueId Rows(B& b, ValueId x) { return b.Op("Reshape", {x, b.Ints({12, 24})}); }

ValueId Transposed(B& b, ValueId x, Ints permutation) {
  return b.Op("Transpose", {x}, MakeAttributes(Attr("perm", std::move(permutation))));
}

const SteadyCase kSteadyCases[] = {
    {"Add",
     [](B& b, ValueId x) {
       return b.Op("Add", {x, Weights(b, {4, 1, 1})});
     }},
    {"Sigmoid", [](B& b, ValueId x) { return b.Op("Sigmoid", {x}); }},
    {"Where",
     [](B& b, ValueId x) {
       return b.Op("Where", {b.Op("Less", {x, b.Scalar(0)}), x, Weights(b, {1, 6})});
     }},
    {"Transpose",
     [](B& b, ValueId x) {
       return Transposed(b, x, {3, 1, 0, 2});
     }},
    {"Concat",
     [](B& b, ValueId x) {
       return b.Op("Concat", {x, b.Op("Neg", {x})}, MakeAttributes(Attr("axis", int64_t{2})));
     }},
    {"Slice",
     [](B& b, ValueId x) {
       return b.Op("Slice", {x, b.Ints({5, 1}), b.Ints({0, 3}), b.Ints({3, 1}), b.Ints({-2, 1})});
     }},
    {"Split",
     [](B& b, ValueId x) {
       const auto parts =
           b.OpN("Split", {x, b.Ints({1, 3})}, 2, MakeAttributes(Attr("axis", int64_t{1})));
       return b.Op("Mul", {parts[1], parts[0]});
     }},
    {"Pad",
     [](B& b, ValueId x) {
       return b.Op("Pad", {x, b.Ints({0, 0, 1, 2, 0, 0, 2, 1})},
                   MakeAttributes(Attr("mode", std::string("reflect"))));
     }},
    {"Tile",
     [](B& b, ValueId x) {
       return b.Op("Tile", {x, b.Ints({1, 2, 1, 3})});
     }},
    {"Expand",
     [](B& b, ValueId x) {
       return b.Op("Expand", {b.Op("Reshape", {x, b.Ints({2, 4, 1, 36})}), b.Ints({2, 4, 5, 36})});
     }},
    {"Gather",
     [](B& b, ValueId x) {
       return b.Op("Gather", {x, b.Ints({1, 0, 1})});
     }},
    {"DepthToSpace",
     [](B& b, ValueId x) {
       return b.Op("DepthToSpace", {x}, MakeAttributes(Attr("blocksize", int64_t{2})));
     }},
    {"Resize",
     [](B& b, ValueId x) {
       return b.Op("Resize", {x, ValueId::kNone, ValueId::kNone, b.Ints({2, 4, 9, 11})},
                   MakeAttributes(Attr("mode", std::string("linear"))));
     }},
    {"ReduceMean",
     [](B& b, ValueId x) {
       return b.Op("ReduceMean", {x, b.Ints({1, -1})});
     }},
    {"ReduceMax", [](B& b, ValueId x) { return b.Op("ReduceMax", {x}); }},
    {"ArgMax", [](B& b, ValueId x) { return b.Op("ArgMax", {x}); }},
    {"TopK",
     [](B& b, ValueId x) {
       return b.OpN("TopK", {x, b.Ints({3})}, 2)[0];
     }},
    {"Softmax",
     [](B& b, ValueId x) {
       return b.Op("Softmax", {x}, MakeAttributes(Attr("axis", int64_t{1})));
     }},
    {"LayerNormalization",
     [](B& b, ValueId x) {
       return b.Op("LayerNormalization", {x, Weights(b, {6}), Weights(b, {6})});
     }},
    {"Conv", Convolution},
    {"ConvTranspose",
     [](B& b, ValueId x) {
       return b.Op("ConvTranspose", {x, Weights(b, {4, 3, 2, 2})},
                   MakeAttributes(Attr("strides", Ints{2, 2})));
     }},
    {"MaxPool",
     [](B& b, ValueId x) {
       return b.Op("MaxPool", {Convolution(b, x)},
                   MakeAttributes(Attr("kernel_shape", Ints{2, 2})));
     }},
    {"MatMul",
     [](B& b, ValueId x) {
       return b.Op("MatMul", {x, Weights(b, {6, 5})});
     }},
    {"MatMul of activations",
     [](B& b, ValueId x) {
       return b.Op("MatMul", {x, Transposed(b, x, {0, 1, 3, 2})});
     }},
    {"Gemm",
     [](B& b, ValueId x) {
       return b.Op("Gemm", {Rows(b, x), Weights(b, {24, 7}), Weights(b, {7})});
     }},
    {"LSTM",
     [](B& b, ValueId x) {
       const ValueId sequence = b.Op("Reshape", {x, b.Ints({8, 6, 6})});
       return b.OpN("LSTM", {sequence, Weights(b, {1, 20, 6}), Weights(b, {1, 20, 5})}, 3,
                    MakeAttributes(Attr("hidden_size", int64_t{5})))[1];
     }},
    {"a shape that follows from another",
     [](B& b, ValueId x) {
       const ValueId rows = b.Op("Gather", {b.Op("Shape", {x}), b.Ints({0})});
       const ValueId shape =
           b.Op("Concat", {rows, b.Ints({-1})}, MakeAttributes(Attr("axis", int64_t{0})));
       return b.Op("Reshape", {Convolution(b, x), shape});
     }},
};

// Allocations of 20 runs when shapes and memory are known.
size_t AllocationsOf(const SteadyCase& c, Environment& environment) {
  const Shape shape = {2, 4, 6, 6};
  Model model;
  model.ir_version = 9;
  model.opsets = {{"", kOpset}};
  B b(kOpset);
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape(shape));
  b.Output(c.build(b, x));
  model.graph = std::move(b.graph);
  const std::string output = model.graph->outputs()[0].name;
  for (size_t i = 0; i < model.graph->node_capacity(); ++i) {
    Node* node = model.graph->FindNode(static_cast<NodeId>(i));
    if (node) node->schema = FindSchema(node->domain, node->op_type, kOpset);
  }
  SessionParts parts;
  parts.providers.push_back(MakeCpuProvider());
  parts.shape_functions = &OpShapeFunctions();
  auto session = Session::Create(environment, std::move(model), {}, std::move(parts));
  if (!session) {
    ADD_FAILURE() << c.name << ": " << session.error().message();
    return 0;
  }
  const std::string_view names[] = {"x"}, outputs[] = {output};
  const Value feeds[] = {Scattered(shape)};
  Value fetches[1];
  const auto run = [&] {
    fetches[0] = Value();
    const Status status = (*session)->Run({}, names, feeds, outputs, fetches);
    ASSERT_TRUE(status.ok()) << c.name << ": " << status.message();
  };
  for (int i = 0; i < 3; ++i) run();
  const size_t before = AllocationsOnThisThread();
  for (int i = 0; i < 20; ++i) run();
  return AllocationsOnThisThread() - before;
}

TEST(SteadyRunTest, KernelsAllocateNothing) {
  Environment environment({.threads = {.threads = 1}});
  for (const SteadyCase& c : kSteadyCases) {
    EXPECT_EQ(AllocationsOf(c, environment), 0u) << c.name;
  }
}

}  // namespace
}  // namespace tenon
