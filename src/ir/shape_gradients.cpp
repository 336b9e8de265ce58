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
  return b.Op(in.node.op_type.c_str(), inputs, AttributesBut(in.node));
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
    if (b.MayUseKernels(in.x(0))) {
      return Gradients{b.Op("PadGrad", {in.dy(), b.Op("Shape", {in.x(0)}), pads, in.x(3)},
                            AttributesBut(in.node, {"pads", "value"}), kMicrosoft)};
    }
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

// The sums from the other end than those of CumSum, or the products of CumProd.
ValueId SumsBack(Builder& b, const Inputs& in, ValueId value) {
  std::vector<Attribute> attributes = AttributesBut(in.node, {"reverse"});
  attributes.push_back(Int("reverse", in.node.GetInt("reverse", 0) == 0));
  return b.Op("CumSum", {value, in.x(1)}, std::move(attributes));
}

Result<Gradients> CumSum(Builder& b, const Inputs& in) {
  return Gradients{SumsBack(b, in, in.dy())};
}

// An element's slope is the sum of dy y / x over the products that have it. For the first 0, these
// are made with 1 in its place; the products of elements after it are 0.
Result<Gradients> CumProd(Builder& b, const Inputs& in) {
  const ValueId x = in.x(0), zero = b.Scalar(0, x), one = b.Scalar(1, x);
  const ValueId is_zero = b.Op("Equal", {x, zero});
  const ValueId zeros_before =
      b.Op("CumSum", {b.CastTo(is_zero, x), in.x(1)},
           Attributes(Int("exclusive", 1), Int("reverse", in.node.GetInt("reverse", 0))));
  const ValueId is_after = b.Op("Less", {zero, zeros_before});
  const ValueId is_first = b.Op("And", {is_zero, b.Op("Not", {is_after})});
  const ValueId products =
      b.Op("CumProd", {Where(b, is_first, one, x), in.x(1)}, AttributesBut(in.node));
  const ValueId of_first = SumsBack(b, in, Mul(b, in.dy(), products));
  const ValueId of_others =
      Div(b, SumsBack(b, in, Mul(b, in.dy(), in.y())), Where(b, is_zero, one, x));
  return Gradients{Where(b, is_after, zero, Where(b, is_first, of_first, of_others))};
}

// ---- picks --------------------------------------------------------------------------------------

Attribute Adding() { return Attribute("reduction", std::string("add")); }

// Zeros in the shape of `like`, with `updates` added at `indices` along `axis`.
ValueId Added(Builder& b, ValueId like, ValueId indices, ValueId updates, int64_t axis) {
  return b.Op("ScatterElements", {b.Filled(0, like), indices, updates},
              Attributes(Int("axis", axis), Adding()));
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
  return Gradients{Added(b, in.x(0), in.x(1), in.dy(), in.node.GetInt("axis", 0))};
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
  return Gradients{Added(b, in.x(0), b.OutputOf(in.node, 1), in.dy(), in.node.GetInt("axis", -1))};
}

Result<Gradients> Compress(Builder& b, const Inputs& in) {
  return Gradients{b.ScatteredByPosition(in.x(0), Moved(b, in), in.dy())};
}

// The places that GatherND reads, without batches: before the given indices those of the axes that
// all of them share.
Result<ValueId> PlacesOf(Builder& b, const Inputs& in) {
  const ValueId indices = in.x(1);
  const int64_t batches = in.node.GetInt("batch_dims", 0);
  if (batches == 0) return indices;
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, indices));
  const ValueId shape = Joined(b, {Sizes(b, indices, 0, rank - 1), Integer(b, 1)}, 0);
  std::vector<ValueId> parts;
  for (int64_t axis = 0; axis < batches; ++axis) {
    const ValueId numbers = AlongAxis(b, Numbers(b, indices, axis), axis, rank);
    parts.push_back(b.Op("Expand", {numbers, shape}));
  }
  parts.push_back(indices);
  return Joined(b, parts, -1);
}

Result<Gradients> GatherNd(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const ValueId places, PlacesOf(b, in));
  return Gradients{
      b.Op("ScatterND", {b.Filled(0, in.x(0)), places, in.dy()}, Attributes(Adding()))};
}

// What ScatterElements and ScatterND do at the indices of a node.
class Scatter {
 public:
  Scatter(Builder& b, const Inputs& in)
      : b_(b), in_(in), has_tuples_(in.node.op_type == "ScatterND") {}

  // The elements of a value that updates go to.
  ValueId Read(ValueId from) const {
    if (has_tuples_) return b_.Op("GatherND", {from, in_.x(1)});
    return b_.Op("GatherElements", {from, in_.x(1)}, Attributes(Axis()));
  }

  ValueId Written(ValueId to, ValueId updates, std::string_view reduction = "none") const {
    std::vector<Attribute> attributes;
    if (reduction != "none") attributes.emplace_back("reduction", std::string(reduction));
    if (!has_tuples_) attributes.push_back(Axis());
    return b_.Op(has_tuples_ ? "ScatterND" : "ScatterElements", {to, in_.x(1), updates},
                 std::move(attributes));
  }

 private:
  Attribute Axis() const { return Int("axis", in_.node.GetInt("axis", 0)); }

  Builder& b_;
  const Inputs& in_;
  const bool has_tuples_;
};

// The product of the other factors: what all but zeros make, over the factor itself; but where one
// factor is 0, it alone has a slope.
Gradients ScatteredProduct(Builder& b, const Inputs& in, const Scatter& scatter) {
  const ValueId data = in.x(0), updates = in.x(2), zero = b.Scalar(0, data);
  const auto is_zero = [&](ValueId x) { return b.Op("Equal", {x, zero}); };
  const auto filled = [&](ValueId x) { return Where(b, is_zero(x), b.Scalar(1, x), x); };
  const auto count = [&](ValueId x) { return b.CastTo(is_zero(x), x); };
  const ValueId slope = Mul(b, in.dy(), scatter.Written(filled(data), filled(updates), "mul"));
  const ValueId zeros = scatter.Written(count(data), count(updates), "add");
  const auto of_factor = [&](ValueId x, ValueId its_slope, ValueId its_zeros) {
    const ValueId has_others = b.Op("Less", {zero, Sub(b, its_zeros, count(x))});
    return Where(b, has_others, zero, Div(b, its_slope, filled(x)));
  };
  return {of_factor(data, slope, zeros), ValueId::kNone,
          of_factor(updates, scatter.Read(slope), scatter.Read(zeros))};
}

// Elements that are equal share the gradient, as in PyTorch.
Gradients ScatteredExtreme(Builder& b, const Inputs& in, const Scatter& scatter) {
  const auto is_chosen = [&](ValueId x, ValueId y) { return b.CastTo(b.Op("Equal", {x, y}), x); };
  const ValueId is_data = is_chosen(in.x(0), in.y());
  const ValueId is_update = is_chosen(in.x(2), scatter.Read(in.y()));
  const ValueId share = Div(b, in.dy(), scatter.Written(is_data, is_update, "add"));
  return {Mul(b, is_data, share), ValueId::kNone, Mul(b, is_update, scatter.Read(share))};
}

// ScatterElements, ScatterND.
Result<Gradients> Scattered(Builder& b, const Inputs& in) {
  const Scatter scatter(b, in);
  const std::string_view reduction = in.node.GetString("reduction", "none");
  if (reduction == "mul") return ScatteredProduct(b, in, scatter);
  if (reduction == "max" || reduction == "min") return ScatteredExtreme(b, in, scatter);
  const ValueId updates = scatter.Read(in.dy());
  if (reduction == "add") return Gradients{in.dy(), ValueId::kNone, updates};
  return Gradients{scatter.Written(in.dy(), b.Filled(0, in.x(2))), ValueId::kNone, updates};
}

// What is written to the cache is read from dy, at the same places of each sequence.
Result<Gradients> TensorScatter(Builder& b, const Inputs& in) {
  const ValueId update = in.x(1);
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, update));
  const int64_t given = in.node.GetInt("axis", -2), axis = given < 0 ? given + rank : given;
  std::vector<ValueId> inputs = {in.dy(), b.Filled(0, update)};
  ValueId places = AlongAxis(b, Numbers(b, update, axis), axis, rank);
  if (in.x(2) != ValueId::kNone) {
    inputs.push_back(in.x(2));
    places =
        b.Op("Mod", {Add(b, places, AlongAxis(b, in.x(2), 0, rank)), SizeOf(b, in.x(0), axis)});
  }
  const ValueId all = b.Op("Expand", {places, b.Op("Shape", {update})});
  return Gradients{b.Op("TensorScatter", inputs, AttributesBut(in.node)),
                   b.Op("GatherElements", {in.dy(), all}, Attributes(Int("axis", axis)))};
}

// The two values: that of each place which is hot has the sum of what such places get.
Result<Gradients> OneHot(Builder& b, const Inputs& in) {
  const ValueId numbers = b.CastTo(b.Integers(std::array<int64_t, 2>{0, 1}), in.x(2));
  const ValueId is_hot = b.Op("OneHot", {in.x(0), in.x(1), numbers}, AttributesBut(in.node));
  const ValueId hot = Mul(b, in.dy(), is_hot);
  const auto sum = [&](ValueId value) {
    const ValueId all = b.Op("ReduceSum", {value}, Attributes(Int("keepdims", 0)));
    return b.Op("Reshape", {all, Integer(b, 1)});
  };
  return Gradients{ValueId::kNone, ValueId::kNone,
                   Joined(b, {sum(Sub(b, in.dy(), hot)), sum(hot)}, 0)};
}

// Each sequence is reversed again.
Result<Gradients> ReverseSequence(Builder& b, const Inputs& in) {
  return Gradients{b.Op("ReverseSequence", {in.dy(), in.x(1)}, AttributesBut(in.node))};
}

// What was cut off is padded with zeros, and what was padded is cut off: an odd element is at the
// end both times.
Result<Gradients> CenterCropPad(Builder& b, const Inputs& in) {
  ValueId sizes = b.Op("Shape", {in.x(0)});
  const std::vector<int64_t> axes = in.node.GetInts("axes");
  if (!axes.empty()) sizes = b.Op("Gather", {sizes, b.Integers(axes)});
  const ValueId inputs[] = {in.dy(), sizes};
  return Gradients{b.Op("CenterCropPad", inputs, AttributesBut(in.node))};
}

constexpr NamedGradientRule kRules[] = {
    {"CenterCropPad", CenterCropPad, 18},
    {"Compress", Compress},
    {"Concat", Concat},
    {"CumProd", CumProd},
    {"CumSum", CumSum},
    {"DepthToSpace", DepthToSpace},
    {"Expand", Expand},
    {"Flatten", Reshape},
    {"Gather", Gather},
    {"GatherElements", GatherElements},
    {"GatherND", GatherNd},
    {"OneHot", OneHot},
    {"Pad", Pad, 2},
    {"Reshape", Reshape},
    {"ReverseSequence", ReverseSequence, 10},
    {"Scatter", Scattered},
    {"ScatterElements", Scattered},
    {"ScatterND", Scattered},
    {"Slice", Slice},
    {"SliceGrad", SliceGrad, 1, kMicrosoft},
    {"SpaceToDepth", SpaceToDepth},
    {"Split", Split, 2},
    {"Squeeze", Reshape},
    {"TensorScatter", TensorScatter},
    {"Tile", Tile, 6},
    {"TopK", TopK, 10},
    {"Transpose", Transpose},
    {"Trilu", Trilu},
    {"Unsqueeze", Reshape},
};

}  // namespace

std::span<const NamedGradientRule> ShapeGradients() { return kRules; }

}  // namespace tenon
