#include "ops/framework/widen_narrow.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "ir/graph.h"
#include "ir/schema.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_bf16.h"
#include "ops/framework/narrow_types.h"
#include "ops/framework/registry.h"

namespace tenon {
namespace {

constexpr int32_t kCastOpset = 13;
constexpr int32_t kNarrowCastOpset = 28;  // the first that has all types

// The type that has all values of `type` and more kernels; `type` itself if it is wide enough.
DataType WideTypeOf(DataType type) {
  switch (type) {
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return DataType::kFloat;
    case DataType::kInt4:
    case DataType::kInt2:
      return DataType::kInt8;
    case DataType::kUint4:
    case DataType::kUint2:
      return DataType::kUint8;
    default:
      return IsNarrowFloat(type) ? DataType::kFloat : type;
  }
}

// Inputs of Attention whose types may differ, although its kernel needs one type for all.
enum AttentionInput : size_t { kQ, kV = 2, kMask, kPastValue = 5 };

bool IsAttention(const Node& node) { return node.op_type == "Attention" && node.domain.empty(); }

bool HasMixedTypes(const Graph& graph, const Node& node) {
  if (!IsAttention(node) || !node.has_input(kQ) || !node.has_input(kV)) return false;
  const DataType query = graph.value(node.inputs[kQ]).type.element_type;
  if (query == DataType::kUndefined) return false;
  for (const size_t i : {kV, kMask, kPastValue}) {
    if (!node.has_input(i)) continue;
    const DataType type = graph.value(node.inputs[i]).type.element_type;
    if (type != query && type != DataType::kBool && type != DataType::kUndefined) return true;
  }
  return false;
}

// The type that a kernel of an Attention with mixed types computes in: one that has all values of
// its query and its values.
DataType AttentionType(const Graph& graph, const Node& node) {
  for (const size_t i : {kQ, kV}) {
    const DataType type = graph.value(node.inputs[i]).type.element_type;
    if (type == DataType::kDouble) return type;
  }
  return DataType::kFloat;
}

// The row of a kernel that takes an input of the node in 16 bits as it is, such as a cache of which
// a run reads and writes a part; null if there is none.
const OpRow* RowOfNarrowInputs(const Graph& graph, const Node& node) {
  const OpRow* const row = FindOpRow(node.domain, node.op_type, node.opset, DataType::kFloat);
  if (row == nullptr) return nullptr;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.has_input(i) || !row->options.TakesNarrowInput(i)) continue;
    const DataType type = graph.value(node.inputs[i]).type.element_type;
    if (type == DataType::kFloat16 || type == DataType::kBfloat16) return row;
  }
  return nullptr;
}

bool HasBfloat16Input(const Graph& graph, const Node& node) {
  return node.has_input(0) && graph.value(node.inputs[0]).type.element_type == DataType::kBfloat16;
}

bool IsOneOf(const Node& node, std::span<const std::string_view> op_types) {
  return std::find(op_types.begin(), op_types.end(), node.op_type) != op_types.end();
}

// The operators that have kernels for bfloat16 where the processor multiplies such numbers.
bool IsMatrixProduct(const Node& node) {
  constexpr std::string_view kProducts[] = {
      "MatMul", "Gemm", "FusedMatMul", "FusedGemm", "TransposeMatMul", "FusedMatMulActivation"};
  return IsOneOf(node, kProducts);
}

// All that multiply matrices, and round the operands themselves.
bool Multiplies(const Node& node) {
  constexpr std::string_view kOthers[] = {"Conv",        "ConvGrad", "LSTM",
                                          "GRU",         "RNN",      "LSTMTraining",
                                          "GRUTraining", "LSTMGrad", "GRUGrad"};
  return IsMatrixProduct(node) || IsOneOf(node, kOthers);
}

bool IsCast(const Node& node) { return node.op_type == "Cast" && node.domain.empty(); }

// Whether a cast from or to float32, which the wide form of its neighbours can leave out.
bool IsFloatCast(const Graph& graph, const Node& node) {
  constexpr auto kFloat = DataType::kFloat;
  return IsCast(node) && (graph.value(node.inputs[0]).type.element_type == kFloat ||
                          graph.value(node.outputs[0]).type.element_type == kFloat);
}

// Whether something that makes or reads the node's values has no kernel for their narrow types, or
// casts them from or to float32.
bool HasWideNeighbour(const Graph& graph, const Node& node) {
  const auto is_wide = [&](NodeId id) {
    if (id == NodeId::kNone) return false;
    const Node& other = graph.node(id);
    return IsFloatCast(graph, other) || FindOpRow(graph, other) == nullptr;
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.has_input(i) && is_wide(graph.value(node.inputs[i]).producer)) return true;
  }
  const std::vector<NodeId>& readers = graph.value(node.outputs[0]).consumers;
  return std::any_of(readers.begin(), readers.end(), is_wide);
}

bool IsHalf(const Graph& graph, ValueId id) {
  if (id == ValueId::kNone) return false;
  const ValueType& type = graph.value(id).type;
  return type.is_tensor() &&
         (type.element_type == DataType::kFloat16 || type.element_type == DataType::kBfloat16);
}

bool TouchesHalf(const Graph& graph, const Node& node) {
  const auto is_half = [&](ValueId id) { return IsHalf(graph, id); };
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_half) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_half);
}

bool HasHalf(const Graph& graph) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* const node = graph.FindNode(static_cast<NodeId>(i));
    if (node != nullptr && TouchesHalf(graph, *node)) return true;
  }
  return false;
}

bool HasWideKernel(const Node& node) {
  return FindOpRow(node.domain, node.op_type, node.opset, DataType::kFloat) != nullptr;
}

// Whether the node reads 16-bit floats that these nodes make, and else constants alone.
bool ReadsOnly(const Graph& graph, const Node& node, const std::unordered_set<NodeId>& makers) {
  const auto is_tensor = [&](ValueId id) {
    return id == ValueId::kNone || graph.value(id).type.is_tensor();
  };
  if (node.op_type == "Cast" || node.op_type == "CastLike" || !node.Subgraphs().empty() ||
      !std::all_of(node.inputs.begin(), node.inputs.end(), is_tensor) ||
      !std::all_of(node.outputs.begin(), node.outputs.end(), is_tensor)) {
    return false;
  }
  bool reads = false;
  for (const ValueId input : node.inputs) {
    if (!IsHalf(graph, input) || graph.StoredConstantOf(input) != nullptr) continue;
    const NodeId producer = graph.value(input).producer;
    if (producer == NodeId::kNone || makers.count(producer) == 0) return false;
    reads = true;
  }
  return reads;
}

bool IsNarrow(const ValueType& type) {
  return type.is_tensor() && WideTypeOf(type.element_type) != type.element_type;
}

class NarrowWidening {
 public:
  NarrowWidening(Graph& graph, int32_t provider) : graph_(graph), provider_(provider) {}

  Result<std::vector<NodeId>> Order() { return graph_.TopologicalOrder(); }

  bool Widen(NodeId id) {
    Node& node = graph_.node(id);
    if (IsCast(node)) return SkipRounding(node);
    const bool is_mixed = HasMixedTypes(graph_, node);
    if (node.provider >= 0 || !(is_mixed || Touches(node))) return false;
    const DataType common = is_mixed ? AttentionType(graph_, node) : DataType::kUndefined;
    const bool is_product = Multiplies(node) && HasBfloat16Input(graph_, node);
    const bool rounds = is_product && kernels::IsBf16GemmFast(kernels::Bf16Parts::kOne);
    if (rounds) node.SetAttribute(std::string(kFromBfloat16), int64_t{1});
    const OpRow* const narrow = RowOfNarrowInputs(graph_, node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.has_input(i) || (is_mixed && i > kPastValue)) continue;
      if (narrow && narrow->options.TakesNarrowInput(i)) continue;
      const DataType wide = TypeFor(graph_.value(node.inputs[i]).type, common);
      if (wide == DataType::kUndefined) continue;
      if (i == 1 && TakesWeightsAsTheyAre(node)) {
        node.schema = nullptr;  // the standard's operator has operands of one type
        node.provider = provider_;
        continue;
      }
      if (i == 1 && TakesConstantAsItIs(node, rounds)) {
        // The standard's operators have operands of one type.
        node.op_type = "FusedMatMul";
        node.domain = "com.tenon";
        node.schema = nullptr;
        std::erase_if(node.attributes, [](const Attribute& one) { return one.name == "beta"; });
        continue;
      }
      const ValueId rounded = is_product ? BeforeRounding(node.inputs[i]) : ValueId::kNone;
      graph_.SetInput(id, i,
                      rounded != ValueId::kNone ? rounded : WideOf(node.inputs[i], wide, node));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.has_output(i)) continue;
      if (narrow && narrow->options.MakesNarrowOutput(i)) continue;
      const DataType wide = TypeFor(graph_.value(node.outputs[i]).type, common);
      if (wide != DataType::kUndefined) Narrow(id, i, wide);
    }
    return true;
  }

  // Removes casts that nothing reads any more.
  void RemoveSpareCasts() {
    while (!spare_.empty()) {
      const NodeId id = spare_.back();
      spare_.pop_back();
      const Node* cast = graph_.FindNode(id);
      if (cast == nullptr || !graph_.IsUnused(cast->outputs[0])) continue;
      const NodeId before = graph_.value(cast->inputs[0]).producer;
      if (before != NodeId::kNone && IsCast(graph_.node(before))) spare_.push_back(before);
      graph_.RemoveNode(id);
    }
  }

 private:
  // The new type of a value of type `type`: `common` if there is one, except for booleans.
  // kUndefined: it is not converted.
  static DataType TypeFor(const ValueType& type, DataType common) {
    if (!type.is_tensor() || type.element_type == DataType::kBool ||
        type.element_type == DataType::kUndefined) {
      return DataType::kUndefined;
    }
    const DataType wide = common != DataType::kUndefined ? common : WideTypeOf(type.element_type);
    return wide == type.element_type ? DataType::kUndefined : wide;
  }

  bool Touches(const Node& node) const {
    const auto is_narrow = [this](ValueId id) {
      return id != ValueId::kNone && IsNarrow(graph_.value(id).type);
    };
    return std::any_of(node.inputs.begin(), node.inputs.end(), is_narrow) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), is_narrow);
  }

  ValueId NewValue(ValueId like, DataType wide) {
    const ValueInfo& info = graph_.value(like);
    ValueType type = info.type;
    type.element_type = wide;
    return graph_.AddValue(graph_.UnusedName(Format("{}/wide", info.name)), std::move(type));
  }

  void AddCast(ValueId from, ValueId to, const Node& for_node) {
    NodeSpec spec;
    spec.op_type = "Cast";
    spec.inputs = {from};
    spec.outputs = {to};
    const DataType target = graph_.value(to).type.element_type;
    const bool is_common =
        kFloats.Contains(target) && kFloats.Contains(graph_.value(from).type.element_type);
    spec.opset = is_common ? kCastOpset : kNarrowCastOpset;
    spec.name = Format("{}/widen", for_node.name);
    spec.attributes.emplace_back("to", static_cast<int64_t>(target));
    // Keeps infinity if the target has it.
    if (!is_common) spec.attributes.emplace_back("saturate", int64_t{0});
    Node& cast = graph_.AddNode(std::move(spec));
    spare_.push_back(cast.id);
    cast.schema = FindSchema("", "Cast", cast.opset);
  }

  // The form of a narrow value in the type `type`.
  ValueId WideOf(ValueId narrow, DataType type, const Node& for_node) {
    const auto known = wide_.find({narrow, type});
    if (known != wide_.end()) return known->second;
    const ValueId wide = NewValue(narrow, type);
    AddCast(narrow, wide, for_node);
    wide_[{narrow, type}] = wide;
    return wide;
  }

  static constexpr int64_t kWorthwhile = 64 << 10;  // elements of a constant

  // Whether the right operand of the product is a constant that its kernel reads as it is, so that
  // no copy in float32 is made: bfloat16 numbers if it rounds to them, float16 numbers if there are
  // enough for that to matter.
  bool TakesConstantAsItIs(const Node& node, bool rounds) const {
    const Tensor* constant = graph_.StoredConstantOf(node.inputs[1]);
    if (constant == nullptr || constant->rank() != 2 || !node.domain.empty()) return false;
    const bool is_half = constant->type() == DataType::kFloat16 &&
                         constant->size() >= kWorthwhile && kernels::IsHalfGemmFast();
    if (!rounds && !is_half) return false;
    if (node.op_type == "MatMul") return rounds || constant->shape()[1] > 1;
    return is_half && IsGemmWithVector(node) &&
           constant->shape()[node.GetInt("transB", 0) ? 0 : 1] > 1;
  }

  // The same for weights of a convolution that may run in the blocked layout, whose kernel packs
  // them.
  bool TakesWeightsAsTheyAre(const Node& node) const {
    const Tensor* constant = graph_.StoredConstantOf(node.inputs[1]);
    return node.op_type == "Conv" && node.domain.empty() && constant != nullptr &&
           constant->type() == DataType::kFloat16 && constant->rank() == 4 &&
           constant->size() >= kWorthwhile && node.GetInt("group", 1) == 1;
  }

  // Whether all that the node adds to the product is a vector for each row.
  bool IsGemmWithVector(const Node& node) const {
    if (node.op_type != "Gemm") return false;
    if (!node.has_input(2)) return true;
    const auto& shape = graph_.value(node.inputs[2]).type.shape;
    return shape && shape->rank() == 1 && node.GetFloat("beta", 1) == 1;
  }

  // Lets the readers of a cast of a value whose wide form is known read that.
  bool SkipRounding(const Node& cast) {
    const ValueId to = cast.outputs[0];
    const auto known = wide_.find({cast.inputs[0], graph_.value(to).type.element_type});
    if (known == wide_.end()) return false;
    graph_.ReplaceUses(to, known->second);
    spare_.push_back(cast.id);
    return true;
  }

  // The float32 numbers that were rounded to this value; kNone if it has another origin. A product
  // of bfloat16 numbers rounds them itself.
  ValueId BeforeRounding(ValueId narrow) {
    const NodeId producer = graph_.value(narrow).producer;
    if (producer == NodeId::kNone || !IsCast(graph_.node(producer))) return ValueId::kNone;
    const ValueId source = graph_.node(producer).inputs[0];
    if (graph_.value(source).type.element_type != DataType::kFloat) return ValueId::kNone;
    spare_.push_back(producer);
    return source;
  }

  // Computes output `i` in the type `type` and casts it to the former value.
  void Narrow(NodeId id, size_t i, DataType type) {
    const ValueId narrow = graph_.node(id).outputs[i];
    const ValueId wide = NewValue(narrow, type);
    graph_.SetOutputValue(id, i, wide);
    AddCast(wide, narrow, graph_.node(id));
    wide_[{narrow, type}] = wide;
  }

  Graph& graph_;
  const int32_t provider_;
  std::map<std::pair<ValueId, DataType>, ValueId> wide_;
  std::vector<NodeId> spare_;  // casts that may have lost their readers
};

}  // namespace

bool IsBetterWide(const Graph& graph, const Node& node) {
  if (HasMixedTypes(graph, node)) return true;
  if (IsMatrixProduct(node) && HasBfloat16Input(graph, node)) {
    return !kernels::IsBf16GemmFast(kernels::Bf16Parts::kOne) || HasWideNeighbour(graph, node);
  }
  return node.op_type == "Where" && node.domain.empty() && node.has_output(0) &&
         IsNarrow(graph.value(node.outputs[0]).type);
}

bool CanWiden(const Graph& graph, const Node& node) {
  const DataType type = TypeOfRow(graph, node);
  const DataType wide = WideTypeOf(type);
  return wide != type && FindOpRow(node.domain, node.op_type, node.opset, wide) != nullptr;
}

std::unordered_set<NodeId> NodesBetterWide(const Graph& graph) {
  std::unordered_set<NodeId> wide;
  if (!HasHalf(graph)) return wide;
  const Result<std::vector<NodeId>> order = graph.TopologicalOrder();
  if (!order) return wide;  // the planner reports the error
  for (const NodeId id : *order) {
    const Node& node = graph.node(id);
    if (node.provider >= 0 || !TouchesHalf(graph, node)) continue;
    if (IsBetterWide(graph, node) || (HasWideKernel(node) && (FindOpRow(graph, node) == nullptr ||
                                                              ReadsOnly(graph, node, wide)))) {
      wide.insert(id);
    }
  }
  return wide;
}

size_t WidenNarrow(Graph& graph, int32_t provider) {
  NarrowWidening widening(graph, provider);
  const Result<std::vector<NodeId>> order = widening.Order();
  if (!order) return 0;
  size_t widened = 0;
  for (const NodeId id : *order) {
    for (Graph* subgraph : graph.node(id).Subgraphs()) widened += WidenNarrow(*subgraph, provider);
    widened += widening.Widen(id) ? 1 : 0;
  }
  widening.RemoveSpareCasts();
  return widened;
}

}  // namespace tenon
