// The rules that apply to any provider: operations without effect are removed, and pairs that
// cancel.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "ir/passes.h"
#include "ir/permutation.h"
#include "ir/rewrite.h"
#include "ir/scalar.h"

namespace tenon {
namespace {

// Any operator that only changes the shape of its first input.
Pattern View(Pattern input) {
  return OpOf({"Reshape", "Flatten", "Squeeze", "Unsqueeze"}, {std::move(input)}).WithMoreInputs();
}

ValueId TakeX(Replacement& r) { return r["x"]; }

// Whether x and the root's output have provably the same type and shape.
bool SameTypeAsX(const Match& match) {
  const ValueType& x = match.type("x");
  const ValueType& y = match.output_type();
  return x.is_tensor() && y.is_tensor() && x.element_type == y.element_type &&
         x.element_type != DataType::kUndefined && x.shape && y.shape && *x.shape == *y.shape;
}

Rule Drop(std::string_view name, Pattern pattern,
          std::function<bool(const Match&)> when = nullptr) {
  return {.name = name, .pattern = std::move(pattern), .when = std::move(when), .replace = TakeX};
}

bool AllEqual(const Tensor& tensor, int64_t value) {
  const Result<Shape> integers = IntegersOf(tensor);
  return integers && std::all_of(integers->begin(), integers->end(),
                                 [value](int64_t entry) { return entry == value; });
}

bool IsFloat(DataType type) { return kFloats.Contains(type); }

// --- Casts ---

DataType CastTarget(const Node& cast) {
  const int64_t to = cast.GetInt("to", 0);
  return IsDataType(to) ? static_cast<DataType>(to) : DataType::kUndefined;
}

bool IsCastToItself(const Match& match) {
  const DataType type = match.type("x").element_type;
  return type != DataType::kUndefined && type == CastTarget(match.node("cast"));
}

// Digits of the mantissa, or of an integer without its sign; range by the exponent's bits.
struct Precision {
  bool is_float, is_signed;
  int digits, exponent_bits;
};

std::optional<Precision> PrecisionOf(DataType type) {
  switch (type) {
    case DataType::kBool:
      return Precision{false, false, 1, 0};
    case DataType::kUint8:
      return Precision{false, false, 8, 0};
    case DataType::kInt8:
      return Precision{false, true, 7, 0};
    case DataType::kUint16:
      return Precision{false, false, 16, 0};
    case DataType::kInt16:
      return Precision{false, true, 15, 0};
    case DataType::kInt32:
      return Precision{false, true, 31, 0};
    case DataType::kInt64:
      return Precision{false, true, 63, 0};
    case DataType::kFloat16:
      return Precision{true, true, 11, 5};
    case DataType::kBfloat16:
      return Precision{true, true, 8, 8};
    case DataType::kFloat:
      return Precision{true, true, 24, 8};
    case DataType::kDouble:
      return Precision{true, true, 53, 11};
    default:
      return std::nullopt;
  }
}

// Whether every value of `from` is a value of `to`.
bool IsLossless(DataType from, DataType to) {
  const auto a = PrecisionOf(from), b = PrecisionOf(to);
  if (!a || !b || to == DataType::kBool) return from == to;
  const bool holds_sign = !a->is_signed || b->is_signed;
  const bool holds_kind = !a->is_float || (b->is_float && b->exponent_bits >= a->exponent_bits);
  return holds_sign && holds_kind && b->digits >= a->digits;
}

// The text of a number depends on its type: 123456789 and, for a double, 1.2345679e+08.
bool InnerCastIsLossless(const Match& match) {
  return CastTarget(match.node("cast")) != DataType::kString &&
         IsLossless(match.type("x").element_type, CastTarget(match.node("inner")));
}

ValueId CastFromX(Replacement& r) { return r.Op("Cast", {r["x"]}, r.AttributesOf("cast")); }

bool IsLikeKnownType(const Match& match) {
  return match.type("like").is_tensor() && match.type("like").element_type != DataType::kUndefined;
}

// Runtimes of other versions of the standard have Cast, and it needs no value of that type.
ValueId CastToTypeOfLike(Replacement& r) {
  std::vector<Attribute> attributes = r.AttributesOf("cast");
  attributes.emplace_back("to", static_cast<int64_t>(r.type("like").element_type));
  return r.Op("Cast", {r["x"]}, std::move(attributes));
}

// --- Views ---

// Whether the constant shape has the same meaning for any input with as many elements.
bool IsSelfContainedShape(const Match& match) {
  const Tensor* shape = match.constant("shape");
  if (shape == nullptr || match.root().GetInt("allowzero", 0) != 0) return false;
  const Result<Shape> entries = IntegersOf(*shape);
  return entries &&
         std::all_of(entries->begin(), entries->end(), [](int64_t entry) { return entry != 0; });
}

ValueId ReshapeX(Replacement& r) {
  return r.Op("Reshape", {r["x"], r["shape"]}, r.AttributesOf("reshape"));
}

// --- Transposes ---

bool KeepsOrder(const Match& match) {
  const SymbolicShape* shape = match.shape("x");
  if (shape == nullptr) return false;
  const Permutation permutation = PermutationOf(match.node("transpose"), shape->rank());
  return permutation.size() == shape->rank() && IsIdentity(permutation);
}

ValueId MergeTransposes(Replacement& r) {
  const SymbolicShape* shape = r.shape("x");
  if (shape == nullptr) return ValueId::kNone;
  const Permutation inner = PermutationOf(r.node("inner"), shape->rank());
  const Permutation outer = PermutationOf(r.node("transpose"), shape->rank());
  if (inner.size() != shape->rank() || outer.size() != shape->rank()) return ValueId::kNone;
  Permutation merged = Composed(inner, outer);
  if (IsIdentity(merged)) return r["x"];
  std::vector<Attribute> attributes;
  attributes.emplace_back("perm", std::move(merged));
  return r.Op("Transpose", {r["x"]}, std::move(attributes));
}

// --- Slices and pads ---

// Every element of every axis is taken in order: the shape does not change and no step is negative.
bool TakesEverything(const Match& match) {
  if (!SameTypeAsX(match)) return false;
  const Node& slice = match.node("slice");
  if (!slice.has_input(4)) return true;
  const Tensor* steps = match.graph().ConstantOf(slice.inputs[4]);
  return steps && AllEqual(*steps, 1);
}

bool IsInferenceDropout(const Match& match) {
  const Node& dropout = match.node("dropout");
  if (dropout.opset < 7) return dropout.GetInt("is_test", 0) != 0;
  if (!dropout.has_input(2)) return true;
  const Tensor* training = match.graph().ConstantOf(dropout.inputs[2]);
  return training && training->type() == DataType::kBool && training->size() == 1 &&
         !*training->data<bool>();
}

// --- Arithmetic ---

// From this version on Sum broadcasts, as Add does from then on.
constexpr int64_t kBroadcastingSum = 8;

// Whether c and 1 / c are both powers of two, so that multiplying by 1 / c is as exact as dividing.
bool HasExactReciprocal(const Match& match) {
  const Tensor* constant = match.constant("c");
  if (!IsFloat(constant->type())) return false;
  int exponent;
  const double mantissa = std::frexp(match.scalar("c"), &exponent);
  // Not near the ends of the range of float16, the smallest type.
  return std::abs(mantissa) == 0.5 && std::abs(exponent) <= 12;
}

ValueId MultiplyByReciprocal(Replacement& r) {
  const Tensor& constant = *r.constant("c");
  Result<Tensor> reciprocal = MakeScalar(constant.type(), 1 / r.scalar("c"), constant.shape());
  if (!reciprocal) return ValueId::kNone;
  return r.Op("Mul", {r["x"], r.Constant("reciprocal", std::move(*reciprocal))});
}

std::vector<Rule> MakeRules() {
  const Pattern x = Any("x");
  const Pattern cast = Op("Cast", {x}).As("cast");
  const Pattern transpose = Op("Transpose", {x}).As("transpose");
  return {
      Drop("identity", Op("Identity", {x})),
      Drop("dropout", Op("Dropout", {x}).WithMoreInputs().As("dropout"), IsInferenceDropout),
      Drop("one of one", OpOf({"Concat", "Sum", "Max", "Min", "Mean"}, {x})),
      Drop("not not", Op("Not", {Op("Not", {x}).Shared()})),
      Drop("neg neg", Op("Neg", {Op("Neg", {x}).Shared()})),

      Drop("cast to itself", cast, IsCastToItself),
      {.name = "cast cast",
       .pattern = Op("Cast", {Op("Cast", {x}).As("inner").Shared()}).As("cast"),
       .when = InnerCastIsLossless,
       .replace = CastFromX},

      {.name = "cast like a known type",
       .pattern = Op("CastLike", {x, Any("like")}).As("cast"),
       .when = IsLikeKnownType,
       .replace = CastToTypeOfLike},

      Drop("view to the same shape", View(x), SameTypeAsX),

      Drop("transpose that keeps the order", transpose, KeepsOrder),
      {.name = "transpose transpose",
       .pattern = Op("Transpose", {Op("Transpose", {x}).As("inner").Shared()}).As("transpose"),
       .replace = MergeTransposes},

      Drop("slice of everything", Op("Slice", {x}).WithMoreInputs().As("slice"), TakesEverything),
      Drop("expand to the same shape", Op("Expand", {x, Any("shape")}), SameTypeAsX),
      Drop("tile once",
           Op("Tile", {x, Constant("repeats",
                                   [](const Tensor& repeats) { return AllEqual(repeats, 1); })})),
      Drop("pad by nothing",
           Op("Pad", {x, Constant("pads", [](const Tensor& pads) { return AllEqual(pads, 0); })})
               .WithMoreInputs()),

      Drop("add zero", Op("Add", {x, ExactScalar(0)})),
      {.name = "sum of two",
       .pattern = Op("Sum", {x, Any("y")}),
       .when = [](const Match& match) { return match.root().opset >= kBroadcastingSum; },
       .replace =
           [](Replacement& r) {
             return r.Op("Add", {r["x"], r["y"]});
           }},
      Drop("subtract zero", Op("Sub", {x, ExactScalar(0)})),
      Drop("multiply by one", Op("Mul", {x, ExactScalar(1)})),
      Drop("divide by one", Op("Div", {x, ExactScalar(1)})),
      Drop("first power", Op("Pow", {x, ExactScalar(1)}), SameTypeAsX),
  };
}

// Those that change what tools look for in exported models, such as the division by the root of a
// head's size.
std::vector<Rule> MakeRulesForExportedPatterns() {
  const Pattern x = Any("x");
  return {
      Drop("view back", View(View(x).Shared()), SameTypeAsX),
      {.name = "reshape of a view",
       .pattern = Op("Reshape", {View(x).Shared(), Constant("shape")}).As("reshape"),
       .when = IsSelfContainedShape,
       .replace = ReshapeX},
      {.name = "divide by a power of two",
       .pattern = Op("Div", {x, Scalar("c")}),
       .when = HasExactReciprocal,
       .replace = MultiplyByReciprocal},
  };
}

std::vector<Rule> AllRules() {
  std::vector<Rule> rules = MakeRules();
  std::vector<Rule> more = MakeRulesForExportedPatterns();
  std::move(more.begin(), more.end(), std::back_inserter(rules));
  return rules;
}

}  // namespace

const RuleSet& SimplifyingRules() {
  static const auto* const rules = new RuleSet(AllRules());
  return *rules;
}

const RuleSet& RulesKeepingExportedPatterns() {
  static const auto* const rules = new RuleSet(MakeRules());
  return *rules;
}

size_t Simplify(Graph& graph, const RuleSet& rules) {
  size_t changes = ApplyRules(graph, rules);
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) changes += Simplify(*subgraph, rules);
  }
  return changes;
}

}  // namespace tenon
