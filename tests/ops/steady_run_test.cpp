// Steady runs allocate nothing, in the runtime or in kernels.
#include <gtest/gtest.h>

#include <functional>

#include "base/allocation_count.h"
#include "ir/graph_builder.h"
#include "ir/schema.h"
#include "ops/cpu_provider.h"
#include "ops/framework/registry.h"
#include "ops/reference.h"
#include "runtime/environment.h"
#include "runtime/session.h"

namespace tenon {
namespace {

using B = GraphBuilder;
using Ints = std::vector<int64_t>;

constexpr int32_t kOpset = 20;
constexpr const char* kMicrosoft = "com.microsoft";
constexpr const char* kMl = "ai.onnx.ml";
constexpr int32_t kMlOpset = 4;

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

// A number that is known only in a run, so that everything that follows from it depends on data.
ValueId FoundNumber(B& b, ValueId x, float number, DataType type = DataType::kInt64,
                    Shape shape = {1}) {
  const ValueId zero = b.Op("Mul", {b.Op("ReduceMax", {x}), b.Scalar(0)});
  Tensor filled = Scattered(shape);
  std::fill_n(filled.data<float>(), filled.size(), number);
  const ValueId sum = b.Op("Add", {b.Constant(std::move(filled)),
                                   b.Op("Reshape", {zero, b.Ints(Ints(shape.rank(), 1))})});
  return b.Op("Cast", {sum}, MakeAttributes(Attr("to", static_cast<int64_t>(type))));
}

std::vector<Attribute> Subgraph(const char* name, B& graph, std::vector<Attribute> others = {}) {
  others.emplace_back(name, std::move(graph.graph));
  return others;
}

// Adds the input to a state again and again, and collects the sums. `trips`: an int64.
std::vector<ValueId> AddInLoop(B& b, ValueId x, ValueId trips) {
  B body(kOpset);
  body.Input("trip", DataType::kInt64, SymbolicShape());
  const ValueId goes_on = body.Input("goes_on", DataType::kBool, SymbolicShape());
  const ValueId state = body.Input("state", DataType::kFloat);
  const ValueId sum = body.Op("Add", {state, body.Capture(x, "x_body")});
  body.Output(body.Op("Identity", {goes_on}));
  body.Output(sum);
  body.Output(body.Op("ReduceSum", {sum}));
  return b.OpN("Loop", {trips, ValueId::kNone, x}, 2, Subgraph("body", body));
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
    {"Einsum",
     [](B& b, ValueId x) {
       return b.Op("Einsum", {x, x, Weights(b, {6})},
                   MakeAttributes(Attr("equation", std::string("b...ij,bckj,j->...bik"))));
     }},
    {"If",
     [](B& b, ValueId x) {
       B yes(kOpset), no(kOpset);
       yes.Output(yes.Op("Neg", {yes.Capture(x, "x_then")}));
       no.Output(no.Op("Exp", {no.Capture(x, "x_else")}));
       const ValueId most = b.Op("ReduceMax", {x}, MakeAttributes(Attr("keepdims", int64_t{0})));
       return b.Op("If", {b.Op("Less", {most, b.Scalar(100)})},
                   Subgraph("then_branch", yes, Subgraph("else_branch", no)));
     }},
    {"Loop",
     [](B& b, ValueId x) {
       const auto outputs = AddInLoop(b, x, b.Constant(Tensor::Of<int64_t>({}, {7})));
       return b.Op("Add", {outputs[0], b.Op("ReduceSum", {outputs[1]})});
     }},
    {"Loop of trips that depend on data",
     [](B& b, ValueId x) { return AddInLoop(b, x, FoundNumber(b, x, 200))[1]; }},
    {"Scan",
     [](B& b, ValueId x) {
       B body(kOpset);
       const ValueId state = body.Input("state", DataType::kFloat);
       const ValueId slice = body.Input("slice", DataType::kFloat);
       const ValueId sum = body.Op("Add", {state, slice});
       body.Output(sum);
       body.Output(body.Op("Relu", {sum}));
       const ValueId start = Weights(b, {2, 4, 6});
       auto attributes =
           MakeAttributes(Attr("num_scan_inputs", int64_t{1}), Attr("scan_input_axes", Ints{2}),
                          Attr("scan_output_axes", Ints{1}));
       return b.OpN("Scan", {start, x}, 2, Subgraph("body", body, std::move(attributes)))[1];
     }},
    {"GroupQueryAttention",
     [](B& b, ValueId x) {
       // Heads of 18: four of queries, two of keys and of values.
       const ValueId packed = b.Op("Reshape", {x, b.Ints({2, 1, 144})});
       const ValueId past = Weights(b, {2, 2, 10, 18});
       const ValueId last = FoundNumber(b, x, 5, DataType::kInt32, {2});
       const ValueId total = FoundNumber(b, x, 6, DataType::kInt32);
       return b.OpN("GroupQueryAttention",
                    {packed, ValueId::kNone, ValueId::kNone, past, past, last, total}, 3,
                    MakeAttributes(Attr("num_heads", int64_t{4}), Attr("kv_num_heads", int64_t{2})),
                    kMicrosoft)[1];
     }},
    {"PackedMultiHeadAttention",
     [](B& b, ValueId x) {
       const ValueId rows = Rows(b, x);
       const ValueId offsets =
           b.Constant(Tensor::Of<int32_t>({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
       const ValueId starts = b.Constant(Tensor::Of<int32_t>({4}, {0, 4, 8, 12}));
       return b.Op("PackedMultiHeadAttention",
                   {rows, rows, rows, Weights(b, {72}), offsets, starts},
                   MakeAttributes(Attr("num_heads", int64_t{2})), kMicrosoft);
     }},
    {"NonMaxSuppression",
     [](B& b, ValueId x) {
       const ValueId boxes = b.Op("Reshape", {x, b.Ints({2, 36, 4})});
       const ValueId scores = Transposed(b, boxes, {0, 2, 1});
       return b.Op("NonMaxSuppression", {boxes, scores, b.Ints({5}), b.Scalar(0.5f)});
     }},
    {"TfIdfVectorizer",
     [](B& b, ValueId x) {
       const ValueId tokens = b.Op("Cast", {Rows(b, x)}, MakeAttributes(Attr("to", int64_t{7})));
       return b.Op(
           "TfIdfVectorizer", {tokens},
           MakeAttributes(Attr("mode", std::string("TF")), Attr("min_gram_length", int64_t{1}),
                          Attr("max_gram_length", int64_t{2}), Attr("max_skip_count", int64_t{1}),
                          Attr("ngram_counts", Ints{0, 2}), Attr("ngram_indexes", Ints{0, 1, 2}),
                          Attr("pool_int64s", Ints{0, 1, 1, 0})));
     }},
    {"LabelEncoder from texts to numbers",
     [](B& b, ValueId x) {
       using Texts = std::vector<std::string>;
       const ValueId numbers = b.Op("Cast", {x}, MakeAttributes(Attr("to", int64_t{7})));
       const ValueId words = b.Op("LabelEncoder", {numbers},
                                  MakeAttributes(Attr("keys_int64s", Ints{0, 1}),
                                                 Attr("values_strings", Texts{"no", "yes"})),
                                  kMl);
       return b.Op("LabelEncoder", {words},
                   MakeAttributes(Attr("keys_strings", Texts{"no", "yes", "a longer one, unused"}),
                                  Attr("values_floats", std::vector<float>{1, 2, 3})),
                   kMl);
     }},
    {"Multinomial",
     [](B& b, ValueId x) {
       return b.Op("Multinomial", {Rows(b, x)}, MakeAttributes(Attr("sample_size", int64_t{9})));
     }},
    {"MaxUnpool",
     [](B& b, ValueId x) {
       auto attributes = [] {
         return MakeAttributes(Attr("kernel_shape", Ints{2, 2}), Attr("strides", Ints{2, 2}));
       };
       const auto pooled = b.OpN("MaxPool", {x}, 2, attributes());
       return b.Op("MaxUnpool", {pooled[0], pooled[1]}, attributes());
     }},
    {"NonZero", [](B& b, ValueId x) { return b.Op("NonZero", {b.Op("Relu", {x})}); }},
    {"Compress",
     [](B& b, ValueId x) {
       const ValueId flat = b.Op("Reshape", {x, b.Ints({-1})});
       return b.Op("Compress", {flat, b.Op("Less", {flat, b.Scalar(0)})});
     }},
    {"Reshape to a shape from data",
     [](B& b, ValueId x) {
       return b.Op("Reshape", {x, b.Op("Concat", {FoundNumber(b, x, 3), b.Ints({-1})},
                                       MakeAttributes(Attr("axis", int64_t{0})))});
     }},
    {"Squeeze and Unsqueeze of axes from data",
     [](B& b, ValueId x) {
       const ValueId axis = FoundNumber(b, x, 2);
       return b.Op("Squeeze", {b.Op("Unsqueeze", {x, axis}), axis});
     }},
    {"Slice to an end from data",
     [](B& b, ValueId x) {
       return b.Op("Slice", {x, b.Ints({1}), FoundNumber(b, x, 3), b.Ints({2}), b.Ints({1})});
     }},
    {"Pad by data",
     [](B& b, ValueId x) {
       return b.Op("Pad", {x, FoundNumber(b, x, 1, DataType::kInt64, {8})});
     }},
    {"Expand by data",
     [](B& b, ValueId x) {
       return b.Op("Expand", {b.Op("ReduceMax", {x}), FoundNumber(b, x, 3, DataType::kInt64, {4})});
     }},
    {"TopK of as many as data says",
     [](B& b, ValueId x) {
       return b.OpN("TopK", {x, FoundNumber(b, x, 3)}, 2)[0];
     }},
    {"Range to data",
     [](B& b, ValueId x) {
       const ValueId end = b.Op("Squeeze", {FoundNumber(b, x, 50)});
       return b.Op("Range", {b.Constant(Tensor::Of<int64_t>({}, {0})), end,
                             b.Constant(Tensor::Of<int64_t>({}, {2}))});
     }},
    {"ReduceSum along axes from data",
     [](B& b, ValueId x) {
       return b.Op("ReduceSum", {x, FoundNumber(b, x, 1)});
     }},
    {"ConstantOfShape of data",
     [](B& b, ValueId x) {
       return b.Op("ConstantOfShape", {FoundNumber(b, x, 4, DataType::kInt64, {3})});
     }},
    {"OneHot of a depth from data",
     [](B& b, ValueId x) {
       const ValueId indices = b.Op("Cast", {x}, MakeAttributes(Attr("to", int64_t{7})));
       return b.Op("OneHot", {indices, FoundNumber(b, x, 3), b.Constant(Scattered({2}))});
     }},
    {"Resize to data",
     [](B& b, ValueId x) {
       const ValueId sizes =
           b.Op("Concat", {b.Ints({2, 4}), FoundNumber(b, x, 9, DataType::kInt64, {2})},
                MakeAttributes(Attr("axis", int64_t{0})));
       return b.Op("Resize", {x, ValueId::kNone, ValueId::kNone, sizes});
     }},
};

void SetSchemas(Graph& graph) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    if (node->domain == kMl) node->opset = kMlOpset;
    node->schema = FindSchema(node->domain, node->op_type, node->opset);
    for (Graph* subgraph : node->Subgraphs()) SetSchemas(*subgraph);
  }
}

// Allocations of 20 runs when shapes and memory are known.
size_t AllocationsOf(const SteadyCase& c, Environment& environment) {
  const Shape shape = {2, 4, 6, 6};
  Model model;
  model.ir_version = 9;
  model.opsets = {{"", kOpset}, {kMicrosoft, 1}, {kMl, kMlOpset}};
  B b(kOpset);
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape(shape));
  b.Output(c.build(b, x));
  model.graph = std::move(b.graph);
  const std::string output = model.graph->outputs()[0].name;
  SetSchemas(*model.graph);
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
