// The gradients of pools, and of other windows that move over images: Col2Im and MaxUnpool.
#include <algorithm>
#include <array>
#include <numeric>

#include "ir/gradient_rules.h"

namespace tenon {
namespace {

// ---- windows ------------------------------------------------------------------------------------

// Windows that move over the spatial axes of [N, C, spatial...]. Lists have an entry for each axis.
class Windows {
 public:
  // Those of a pool of x to y.
  static Windows OfPool(Builder& b, const Inputs& in, int64_t rank) {
    Windows windows(b, in.node, rank);
    windows.kernel_ = b.Integers(in.node.GetInts("kernel_shape"));
    windows.steps_ = Sizes(b, in.y(), 2, rank + 2);
    const std::string_view auto_pad = in.node.GetString("auto_pad", "NOTSET");
    if (auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER") {
      const bool has_pads = auto_pad != "VALID";
      windows.begin_ = b.Integers(has_pads ? windows.PadsAt(in.node, 0) : windows.Zeros());
      return windows;
    }
    const ValueId zero = b.IntegerScalar(0);
    const ValueId missing = Sub(b, windows.Whole(), Sizes(b, in.x(0), 2, rank + 2));
    const ValueId total = Where(b, b.Op("Less", {missing, zero}), zero, missing);
    const ValueId half = Div(b, total, b.IntegerScalar(2));
    windows.begin_ = auto_pad == "SAME_UPPER" ? half : Sub(b, total, half);
    return windows;
  }

  // The blocks of Col2Im.
  static Windows OfBlocks(Builder& b, const Inputs& in, int64_t rank) {
    Windows windows(b, in.node, rank);
    windows.kernel_ = in.x(2);
    const std::vector<int64_t> begin = windows.PadsAt(in.node, 0), end = windows.PadsAt(in.node, 1);
    windows.begin_ = b.Integers(begin);
    const ValueId padded = Add(b, in.x(1), Add(b, windows.begin_, b.Integers(end)));
    windows.steps_ =
        windows.Plus(Div(b, Sub(b, padded, windows.Extent()), b.Integers(windows.strides_)), 1);
    return windows;
  }

  // The same windows of an image that has its pads.
  Windows OfPadded() const {
    Windows windows = *this;
    windows.begin_ = b_->Integers(Zeros());
    return windows;
  }

  // [N, C, kernel..., steps...] of [N, C, spatial...]. Outside the image are zeros.
  ValueId Unfolded(ValueId image) const {
    ValueId elements = b_->Op("Pad", {image, PadsOf(Sizes(*b_, image, 2, rank_ + 2))});
    std::vector<int64_t> order = {0, 1};
    for (int64_t i = 0; i < rank_; ++i) {
      const ValueId first = Positions(kernel_, dilations_, i),
                    step = Positions(steps_, strides_, i);
      const ValueId place = Add(*b_, Unsqueezed(*b_, first, 1), step);
      elements = b_->Op("Gather", {elements, place}, Attributes(Int("axis", 2 + 2 * i)));
      order.push_back(2 + 2 * i);
    }
    for (int64_t i = 0; i < rank_; ++i) order.push_back(3 + 2 * i);
    return Transposed(*b_, elements, std::move(order));
  }

  // The sums in an image of these sizes if each element of a window has what `steps`, [N, C,
  // steps...], has for the window.
  ValueId Folded(ValueId steps, ValueId image_sizes) const {
    const ValueId one = Integer(*b_, 1), batch = Sizes(*b_, steps, 0, 1);
    const ValueId channels = Sizes(*b_, steps, 1, 2), count = Product(steps_);
    const ValueId rows = b_->Op("Reshape", {steps, Joined(*b_, {batch, channels, one, count}, 0)});
    const ValueId repeats = Joined(*b_, {one, one, Product(kernel_), one}, 0);
    const ValueId columns =
        b_->Op("Reshape", {b_->Op("Expand", {rows, repeats}),
                           Joined(*b_, {batch, Mul(*b_, channels, Product(kernel_)), count}, 0)});
    const ValueId whole =
        b_->Op("Col2Im", {columns, Whole(), kernel_},
               Attributes(Attribute("strides", strides_), Attribute("dilations", dilations_)));
    return b_->Op("Pad", {whole, b_->Op("Neg", {PadsOf(image_sizes)})});
  }

 private:
  Windows(Builder& b, const Node& node, int64_t rank)
      : b_(&b),
        rank_(rank),
        strides_(node.GetInts("strides")),
        dilations_(node.GetInts("dilations")) {
    strides_.resize(static_cast<size_t>(rank), 1);
    dilations_.resize(static_cast<size_t>(rank), 1);
  }

  std::vector<int64_t> Zeros() const { return std::vector<int64_t>(static_cast<size_t>(rank_), 0); }

  // Those before the axes for end 0, and those after them for end 1.
  std::vector<int64_t> PadsAt(const Node& node, int64_t end) const {
    const std::vector<int64_t> pads = node.GetInts("pads");
    if (pads.size() != 2 * static_cast<size_t>(rank_)) return Zeros();
    return {pads.begin() + end * rank_, pads.begin() + (end + 1) * rank_};
  }

  ValueId Plus(ValueId list, int64_t term) const { return Add(*b_, list, b_->IntegerScalar(term)); }
  ValueId Product(ValueId list) const { return b_->Op("ReduceProd", {list}); }

  // From the first to the last element of a window, and of all.
  ValueId Extent() const { return Span(kernel_, b_->Integers(dilations_), b_->IntegerScalar(1)); }
  ValueId Whole() const { return Span(steps_, b_->Integers(strides_), Extent()); }
  ValueId Span(ValueId count, ValueId distance, ValueId last) const {
    return Add(*b_, Mul(*b_, Plus(count, -1), distance), last);
  }

  // What is added to an image of these sizes to make it Whole().
  ValueId PadsOf(ValueId sizes) const {
    const ValueId none = b_->Integers(std::array<int64_t, 2>{0, 0});
    return Joined(*b_, {none, begin_, none, Sub(*b_, Sub(*b_, Whole(), sizes), begin_)}, 0);
  }

  // 0, distance, 2 distance ... along axis i.
  ValueId Positions(ValueId counts, const std::vector<int64_t>& distances, int64_t i) const {
    const ValueId count = b_->Op("Gather", {counts, b_->IntegerScalar(i)});
    return Mul(*b_, NumbersTo(*b_, count), b_->IntegerScalar(distances[static_cast<size_t>(i)]));
  }

  Builder* b_;
  int64_t rank_;
  std::vector<int64_t> strides_, dilations_;
  ValueId kernel_, steps_, begin_;  // begin: pads before the image
};

// The sums of overlapping blocks: what each block's elements get is read from the image.
Result<Gradients> Col2Im(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.y()));
  const Windows windows = Windows::OfBlocks(b, in, rank - 2);
  return Gradients{ReshapeLike(b, windows.Unfolded(in.dy()), in.x(0))};
}

// ---- pools --------------------------------------------------------------------------------------

// Whether all sizes but the first are numbers, as the operators for pools need.
bool HasKnownSizes(const SymbolicShape* shape) {
  if (shape == nullptr || shape->rank() < 3) return false;
  for (size_t i = 1; i < shape->rank(); ++i) {
    if (!(*shape)[i].is_number()) return false;
  }
  return true;
}

Result<Gradients> MaxPool(Builder& b, const Inputs& in) {
  TENON_RETURN_IF_ERROR(CheckOnlyFirst(in));
  const ValueId x = in.x(0);
  // The positions of the other order are those of another layout.
  const ValueId positions =
      in.node.GetInt("storage_order", 0) == 0
          ? b.OutputOf(in.node, 1)
          : b.Ops("MaxPool", std::array{x}, 2, AttributesBut(in.node, {"storage_order"}))[1];
  if (!b.MayUseKernels(x) || !HasKnownSizes(b.ShapeOf(x))) {
    return Gradients{b.ScatteredByPosition(x, positions, in.dy())};
  }
  const ValueId dx = b.Op("MaxPoolGrad", {in.dy(), positions});
  b.graph().value(dx).type.shape = *b.ShapeOf(x);
  return Gradients{dx};
}

// The number of elements that count in each window of AveragePool, [1, 1, steps...].
ValueId Counts(Builder& b, const Inputs& in, const Windows& windows, int64_t rank) {
  const ValueId one = b.Scalar(1, in.x(0));
  const ValueId sizes =
      Joined(b, {b.Integers(std::array<int64_t, 2>{1, 1}), Sizes(b, in.x(0), 2, rank)}, 0);
  ValueId ones = b.Op("Expand", {one, sizes});
  const bool counts_pads = in.node.GetInt("count_include_pad", 0) != 0;
  std::vector<int64_t> pads = in.node.GetInts("pads");
  const std::string_view auto_pad = in.node.GetString("auto_pad", "NOTSET");
  if (counts_pads && auto_pad.substr(0, 4) == "SAME") {
    const std::vector<int64_t> kernel = in.node.GetInts("kernel_shape");
    const auto count = std::accumulate(kernel.begin(), kernel.end(), 1.0, std::multiplies<>());
    return b.Scalar(count, in.x(0));
  }
  if (!counts_pads || pads.empty() || auto_pad == "VALID") {
    return SumOver(b, windows.Unfolded(ones), AxesBetween(2, rank), false);
  }
  // What windows have beyond the pads, in ceil_mode, does not count.
  pads.insert(pads.begin() + (rank - 2), 2, 0);
  pads.insert(pads.begin(), 2, 0);
  ones = b.Op("Pad", {ones, b.Integers(pads), one});
  return SumOver(b, windows.OfPadded().Unfolded(ones), AxesBetween(2, rank), false);
}

Result<Gradients> AveragePool(Builder& b, const Inputs& in) {
  const std::vector<int64_t> dilations = in.node.GetInts("dilations");
  const bool is_plain =
      in.node.GetInt("ceil_mode", 0) == 0 &&
      std::all_of(dilations.begin(), dilations.end(), [](int64_t step) { return step == 1; });
  const ValueId x = in.x(0);
  const bool is_float = b.graph().value(x).type.element_type == DataType::kFloat;
  if (!is_plain || !is_float || !HasKnownSizes(b.ShapeOf(x))) {
    TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, x));
    const Windows windows = Windows::OfPool(b, in, rank - 2);
    const ValueId share = Div(b, in.dy(), Counts(b, in, windows, rank));
    return Gradients{windows.Folded(share, Sizes(b, x, 2, rank))};
  }
  const ValueId dx =
      b.Op("AveragePoolGrad", {in.dy()}, AttributesBut(in.node, {"ceil_mode", "dilations"}));
  b.graph().value(dx).type.shape = *b.ShapeOf(x);
  return Gradients{dx};
}

// It is linear.
Result<Gradients> AveragePoolGradient(Builder& b, const Inputs& in) {
  return Gradients{b.Op("AveragePool", {in.dy()}, AttributesBut(in.node))};
}

Result<Gradients> GlobalAveragePool(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const ValueId ones = b.Filled(1, in.x(0));
  const ValueId count = SumOver(b, ones, AxesBetween(2, rank));
  return Gradients{Mul(b, ones, Div(b, in.dy(), count))};
}

// The first of equal elements gets the gradient, as in MaxPool.
Result<Gradients> GlobalMaxPool(Builder& b, const Inputs& in) {
  const ValueId rows = b.Op("Reshape", {in.x(0), b.Integers(std::array<int64_t, 3>{0, 0, -1})});
  const ValueId place = b.Op("ArgMax", {rows}, Attributes(Int("axis", 2), Int("keepdims", 1)));
  const ValueId slopes = b.Op("Reshape", {in.dy(), b.Integers(std::array<int64_t, 3>{0, 0, 1})});
  const ValueId dx =
      b.Op("ScatterElements", {b.Filled(0, rows), place, slopes}, Attributes(Int("axis", 2)));
  return Gradients{ReshapeLike(b, dx, in.x(0))};
}

// y = (sum |x|^p)^(1/p), so dx = dy y^(1-p) |x|^(p-1) sign x: of each, what y has.
struct LpSlopes {
  ValueId of_x, of_y;  // of_y is 0 where y is
};

LpSlopes SlopesOfLp(Builder& b, const Inputs& in) {
  const auto p = static_cast<double>(in.node.GetInt("p", 2));
  const ValueId x = in.x(0), y = in.y(), zero = b.Scalar(0, y);
  const auto power = [&](ValueId base, double exponent) {
    return b.Op("Pow", {base, b.Scalar(exponent, base)});
  };
  const ValueId share = Mul(b, in.dy(), power(y, 1 - p));
  return {Mul(b, b.Op("Sign", {x}), power(b.Op("Abs", {x}), p - 1)),
          Where(b, b.Op("Equal", {y, zero}), zero, share)};
}

Result<Gradients> GlobalLpPool(Builder& b, const Inputs& in) {
  const LpSlopes slopes = SlopesOfLp(b, in);
  return Gradients{Mul(b, slopes.of_x, slopes.of_y)};
}

Result<Gradients> LpPool(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const LpSlopes slopes = SlopesOfLp(b, in);
  const ValueId sums =
      Windows::OfPool(b, in, rank - 2).Folded(slopes.of_y, Sizes(b, in.x(0), 2, rank));
  return Gradients{Mul(b, slopes.of_x, sums)};
}

// Reads dy where x was written: at positions in the output that MaxPool of the same attributes
// pools, which may be the beginning of a larger one. Of elements at one place each gets all, as in
// PyTorch.
Result<Gradients> MaxUnpool(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  ValueId dy = in.dy();
  if (in.x(2) != ValueId::kNone) {
    const auto spatial = static_cast<size_t>(rank - 2);
    std::vector<int64_t> strides = in.node.GetInts("strides"),
                         rest = in.node.GetInts("kernel_shape");
    const std::vector<int64_t> pads = in.node.GetInts("pads");
    strides.resize(spatial, 1);
    for (size_t i = 0; i < std::min(spatial, rest.size()); ++i) {
      rest[i] -= strides[i];
      if (pads.size() == 2 * spatial) rest[i] -= pads[i] + pads[spatial + i];
    }
    const ValueId sizes =
        Add(b, Mul(b, Sizes(b, in.x(0), 2, rank), b.Integers(strides)), b.Integers(rest));
    const std::vector<int64_t> starts(spatial, 0);
    dy = b.Op("Slice", {dy, b.Integers(starts), sizes, b.Integers(AxesBetween(2, rank))});
  }
  return Gradients{b.Op("Gather", {b.Op("Reshape", {dy, Integer(b, -1)}), in.x(1)})};
}

// ---- regions ------------------------------------------------------------------------------------

// RoiAlign, of images, regions and the image of each: as in torchvision, regions have no gradient.
Result<Gradients> RoiAlign(Builder& b, const Inputs& in) {
  constexpr const char* kMode = "coordinate_transformation_mode";
  constexpr int32_t kFirstWithMode = 16;
  std::vector<Attribute> attributes = AttributesBut(in.node);
  if (in.node.opset < kFirstWithMode) {
    attributes.emplace_back(kMode, std::string("output_half_pixel"));
  }
  const ValueId dx =
      b.Op("RoiAlignGrad", {in.dy(), in.x(0), in.x(1), in.x(2)}, std::move(attributes), kMicrosoft);
  return Gradients{dx, ValueId::kNone, ValueId::kNone};
}

// It is linear in dY, and RoiAlign of the other direction; where the largest elements are chosen,
// the choice is not RoiAlign's.
Result<Gradients> RoiAlignGradient(Builder& b, const Inputs& in) {
  if (in.node.GetString("mode", "avg") != "avg") {
    return NotImplemented("{} has no gradient yet in mode max", in.node.Describe());
  }
  const ValueId dy = b.Op("RoiAlign", {in.dy(), in.x(2), in.x(3)}, AttributesBut(in.node));
  return Gradients{dy, ValueId::kNone, ValueId::kNone, ValueId::kNone};
}

Result<Gradients> MaxRoiPool(Builder& b, const Inputs& in) {
  const ValueId dx =
      b.Op("MaxRoiPoolGrad", {in.dy(), in.x(0), in.x(1)}, AttributesBut(in.node), kMicrosoft);
  return Gradients{dx, ValueId::kNone};
}

constexpr NamedGradientRule kRules[] = {
    {"AveragePool", AveragePool},
    {"AveragePoolGrad", AveragePoolGradient},
    {"Col2Im", Col2Im, 18},
    {"GlobalAveragePool", GlobalAveragePool},
    {"GlobalLpPool", GlobalLpPool, 2},
    {"GlobalMaxPool", GlobalMaxPool},
    {"LpPool", LpPool, 2},
    {"MaxPool", MaxPool, 8},
    {"MaxRoiPool", MaxRoiPool},
    {"MaxUnpool", MaxUnpool, 9},
    {"RoiAlign", RoiAlign},
    {"RoiAlignGrad", RoiAlignGradient, 1, kMicrosoft},
};

}  // namespace

std::span<const NamedGradientRule> PoolGradients() { return kRules; }

}  // namespace tenon
