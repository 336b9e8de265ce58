// The gradients of operators that move elements, and of those that pick some.
#include <array>

#include "ir/gradient_rules.h"

namespace tenon {
namespace {

// ---- moves --------------------------------------------------------------------------------------

// Reshape, Squeeze, Unsqueeze, Flatten.
Result<Gradients> Reshape(Builder& b, const Inputs& in) {
  return Gradients{ReshapeLike(b, in.dy(), in.x(0))};
}

Result<Gradients> Expand(Builder& b, const Inputs& in) {
  return Gradients{SumTo(b, in, in.dy(), in.x(0))};
}

Result<Gradients> Transpose(Builder& b, const Inputs& in) {
  const std::vector<int64_t> permutation = in.node.GetInts("perm");
  if (permutation.empty()) return Gradients{b.Op("Transpose", {in.dy()})};  // reversed, and back
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    const auto axis = static_cast<size_t>(permutation[i]);
    if (axis >= inverse.size()) return InvalidGraph("perm has entry {}", permutation[i]);
    inverse[axis] = static_cast<int64_t>(i);
  }
  return Gradients{b.Op("Transpose", {in.dy()}, Attributes(Attribute("perm", std::move(inverse))))};
}

// The sizes of an axis of a value, as one integer in one dimension.
ValueId SizeOf(Builder& b, ValueId value, int64_t axis) {
  return b.Op("Gather", {b.Op("Shape", {value}), Integer(b, axis)});
}

ValueId Joined(Builder& b, const std::vector<ValueId>& parts, int64_t axis) {
  return b.Op("Concat", parts, Attributes(Int("axis", axis)));
}

Result<Gradients> Concat(Builder& b, const Inputs& in) {
  const int64_t axis = in.node.GetInt("axis", 1);
  const size_t count = in.node.inputs.size();
  if (count == 1) return Gradients{in.dy()};
  std::vector<ValueId> sizes;
  for (const ValueId x : in.node.inputs) sizes.push_back(SizeOf(b, x, axis));
  return b.Ops("Split", std::array{in.dy(), Joined(b, sizes, 0)}, count,
               Attributes(Int("axis", axis)));
}

Result<Gradients> Split(Builder& b, const Inputs& in) {
  std::vector<ValueId> parts;
  for (size_t i = 0; i < in.node.outputs.size(); ++i) {
    const ValueId known = in.output_gradients[i];
    parts.push_back(known != ValueId::kNone ? known : b.Filled(0, b.OutputOf(in.node, i)));
  }
  return Gradients{Joined(b, parts, in.node.GetInt("axis", 0))};
}

// What repetition made of each element comes together: an axis of the sizes [repeats, size] before
// each.
Result<Gradients> Tile(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const ValueId one = Integer(b, 1);
  const auto column = [&](ValueId sizes) { return b.Op("Unsqueeze", {sizes, one}); };
  const ValueId pairs = Joined(b, {column(in.x(1)), column(b.Op("Shape", {in.x(0)}))}, 1);
  const ValueId whole = b.Op("Reshape", {in.dy(), b.Op("Reshape", {pairs, Integer(b, -1)})});
  std::vector<int64_t> repeats;
  for (int64_t i = 0; i < rank; ++i) repeats.push_back(2 * i);
  return Gradients{SumOver(b, whole, repeats, false)};
}

// The positions of all elements, moved like the elements.
ValueId Moved(Builder& b, const Inputs& in) {
  std::vector<ValueId> inputs = in.node.inputs;
  inputs[0] = b.Positions(in.x(0));
  return b.Op(in.node.op_type, inputs, AttributesBut(in.node));
}

// Pad by as much less; in other modes elements are repeated, and what they get is added.
Result<Gradients> Pad(Builder& b, const Inputs& in) {
  constexpr int32_t kFirstWithPadsAsInput = 11;
  std::vector<int64_t> given = in.node.GetInts("pads");
  ValueId pads = in.x(1);
  if (in.node.opset < kFirstWithPadsAsInput) pads = b.Integers(given);
  std::vector<ValueId> inputs = {in.dy(), b.Op("Neg", {pads})};
  if (in.x(3) != ValueId::kNone) {
    inputs.push_back(ValueId::kNone);
    inputs.push_back(in.x(3));
  }
  if (in.node.GetString("mode", "constant") != "constant") {
    inputs[0] = b.Positions(in.x(0)), inputs[1] = pads;
    const ValueId positions = b.Op("Pad", inputs, AttributesBut(in.node, {"pads", "value"}));
    return Gradients{b.ScatteredByPosition(in.x(0), positions, in.dy())};
  }
  Gradients all = {b.Op("Pad", inputs, {})};
  // The elements outside have the constant.
  if (in.x(2) != ValueId::kNone) {
    const auto sum = [&](ValueId value) {
      return b.Op("ReduceSum", {value}, Attributes(Int("keepdims", 0)));
    };
    all.push_back(ValueId::kNone);
    all.push_back(ReshapeLike(b, Sub(b, sum(in.dy()), sum(all[0])), in.x(2)));
  }
  return all;
}

Result<Gradients> SpaceToDepth(Builder& b, const Inputs& in) {
  return Gradients{b.Op("DepthToSpace", {in.dy()}, AttributesBut(in.node))};
}

// [N, C, H b, W b] of [N, C b b, H, W]. SpaceToDepth is the inverse of the order DCR alone.
Result<Gradients> DepthToSpace(Builder& b, const Inputs& in) {
  if (in.node.GetString("mode", "DCR") == "DCR") {
    return Gradients{b.Op("SpaceToDepth", {in.dy()}, AttributesBut(in.node, {"mode"}))};
  }
  const ValueId block = Integer(b, in.node.GetInt("blocksize", 1));
  const ValueId sizes = Joined(b,
                               {SizeOf(b, in.dy(), 0), SizeOf(b, in.dy(), 1), SizeOf(b, in.x(0), 2),
                                block, SizeOf(b, in.x(0), 3), block},
                               0);
  const ValueId blocks =
      b.Op("Transpose", {b.Op("Reshape", {in.dy(), sizes})},
           Attributes(Attribute("perm", std::vector<int64_t>{0, 1, 3, 5, 2, 4})));
  return Gradients{ReshapeLike(b, blocks, in.x(0))};
}

Result<Gradients> Trilu(Builder& b, const Inputs& in) {
  std::vector<ValueId> inputs = in.node.inputs;
  inputs[0] = in.dy();
  return Gradients{b.Op("Trilu", inputs, AttributesBut(in.node))};
}

// The sums from the other end.
Result<Gradients> CumSum(Builder& b, const Inputs& in) {
  std::vector<Attribute> attributes = AttributesBut(in.node, {"reverse"});
  attributes.push_back(Int("reverse", in.node.GetInt("reverse", 0) == 0));
  return Gradients{b.Op("CumSum", {in.dy(), in.x(1)}, std::move(attributes))};
}

// ---- picks --------------------------------------------------------------------------------------

// Zeros in the shape of `like`, with `updates` added at `indices` along `axis`.
ValueId Scattered(Builder& b, ValueId like, ValueId indices, ValueId updates, int64_t axis) {
  return b.Op("ScatterElements", {b.Filled(0, like), indices, updates},
              Attributes(Int("axis", axis), Attribute("reduction", std::string("add"))));
}

Result<Gradients> Gather(Builder& b, const Inputs& in) {
  const int64_t axis = in.node.GetInt("axis", 0);
  if (b.MayUseKernels(in.x(0))) {
    return Gradients{b.Op("GatherGrad", {b.Op("Shape", {in.x(0)}), in.x(1), in.dy()},
                          Attributes(Int("axis", axis)), kMicrosoft)};
  }
  return Gradients{b.ScatteredByPosition(in.x(0), Moved(b, in), in.dy())};
}

Result<Gradients> GatherElements(Builder& b, const Inputs& in) {
  return Gradients{Scattered(b, in.x(0), in.x(1), in.dy(), in.node.GetInt("axis", 0))};
}

Result<Gradients> Slice(Builder& b, const Inputs& in) {
  std::vector<ValueId> inputs = in.node.inputs;
  constexpr int32_t kFirstWithBoundsAsInputs = 10;
  if (in.node.opset < kFirstWithBoundsAsInputs) {
    inputs = {ValueId::kNone, b.Integers(in.node.GetInts("starts")),
              b.Integers(in.node.GetInts("ends"))};
    const std::vector<int64_t> axes = in.node.GetInts("axes");
    if (!axes.empty()) inputs.push_back(b.Integers(axes));
  }
  inputs[0] = b.Op("Shape", {in.x(0)});
  inputs.insert(inputs.begin(), in.dy());
  return Gradients{b.Op("SliceGrad", inputs, {}, kMicrosoft)};
}

Result<Gradients> SliceGrad(Builder& b, const Inputs& in) {
  std::vector<ValueId> inputs = in.node.inputs;
  inputs.erase(inputs.begin() + 1);
  inputs[0] = in.dy();
  return Gradients{b.Op("Slice", inputs, {})};
}

Result<Gradients> TopK(Builder& b, const Inputs& in) {
  return Gradients{
      Scattered(b, in.x(0), b.OutputOf(in.node, 1), in.dy(), in.node.GetInt("axis", -1))};
}

// Compress, GatherND.
Result<Gradients> Picks(Builder& b, const Inputs& in) {
  return Gradients{b.ScatteredByPosition(in.x(0), Moved(b, in), in.dy())};
}

// Scatters that replace or add elements; what other reductions do has no gradient yet.
Result<bool> DoesAdd(const Inputs& in) {
  const std::string_view reduction = in.node.GetString("reduction", "none");
  if (reduction == "none" || reduction == "add") return reduction == "add";
  return NotImplemented("{} has no gradient yet with reduction {}", in.node.Describe(), reduction);
}

Result<Gradients> ScatterElements(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const bool does_add, DoesAdd(in));
  const std::vector<int64_t> axis = {in.node.GetInt("axis", 0)};
  const ValueId updates =
      b.Op("GatherElements", {in.dy(), in.x(1)}, Attributes(Int("axis", axis[0])));
  if (does_add) return Gradients{in.dy(), ValueId::kNone, updates};
  const ValueId kept = b.Op("ScatterElements", {in.dy(), in.x(1), b.Filled(0, in.x(2))},
                            Attributes(Int("axis", axis[0])));
  return Gradients{kept, ValueId::kNone, updates};
}

Result<Gradients> ScatterNd(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const bool does_add, DoesAdd(in));
  const ValueId updates = b.Op("GatherND", {in.dy(), in.x(1)});
  if (does_add) return Gradients{in.dy(), ValueId::kNone, updates};
  const ValueId kept = b.Op("ScatterND", {in.dy(), in.x(1), b.Filled(0, in.x(2))});
  return Gradients{kept, ValueId::kNone, updates};
}

// Each sequence is reversed again.
Result<Gradients> ReverseSequence(Builder& b, const Inputs& in) {
  return Gradients{b.Op("ReverseSequence", {in.dy(), in.x(1)}, AttributesBut(in.node))};
}

constexpr NamedGradientRule kRules[] = {
    {"Compress", Picks},
    {"Concat", Concat},
    {"CumSum", CumSum},
    {"DepthToSpace", DepthToSpace},
    {"Expand", Expand},
    {"Flatten", Reshape},
    {"Gather", Gather},
    {"GatherElements", GatherElements},
    {"GatherND", Picks},
    {"Pad", Pad, 2},
    {"Reshape", Reshape},
    {"ReverseSequence", ReverseSequence, 10},
    {"ScatterElements", ScatterElements},
    {"ScatterND", ScatterNd},
    {"Slice", Slice},
    {"SliceGrad", SliceGrad, 1, kMicrosoft},
    {"SpaceToDepth", SpaceToDepth},
    {"Split", Split, 2},
    {"Squeeze", Reshape},
    {"Tile", Tile, 6},
    {"TopK", TopK, 10},
    {"Transpose", Transpose},
    {"Trilu", Trilu},
    {"Unsqueeze", Reshape},
};

}  // namespace

std::span<const NamedGradientRule> ShapeGradients() { return kRules; }

}  // namespace tenon
