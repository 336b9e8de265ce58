// The gradients of operators that take samples of images at computed positions: GridSample and
// DeformConv. They are computed again, by operators that pick the elements around each position.
#include <algorithm>
#include <array>

#include "ir/gradient_rules.h"

namespace tenon {
namespace {

// An element of each position along one axis, and what it counts.
struct AxisTap {
  ValueId index, weight;
};

// All combinations of the taps of the axes.
std::vector<AxisTap> Combined(Builder& b, const std::vector<std::vector<AxisTap>>& axes) {
  std::vector<AxisTap> taps = axes[0];
  for (size_t axis = 1; axis < axes.size(); ++axis) {
    std::vector<AxisTap> all;
    for (const AxisTap& before : taps) {
      for (const AxisTap& tap : axes[axis]) {
        all.push_back(
            {Joined(b, {before.index, tap.index}, -1), Mul(b, before.weight, tap.weight)});
      }
    }
    taps = std::move(all);
  }
  return taps;
}

// The sums of the elements of the taps in images [batch..., spatial..., channels], with as many
// axes of batches.
ValueId Sampled(Builder& b, ValueId images, int64_t batches, const std::vector<AxisTap>& taps) {
  ValueId sum = ValueId::kNone;
  for (const AxisTap& tap : taps) {
    const ValueId picked =
        b.Op("GatherND", {images, tap.index}, Attributes(Int("batch_dims", batches)));
    const ValueId part = Mul(b, picked, tap.weight);
    sum = sum == ValueId::kNone ? part : Add(b, sum, part);
  }
  return sum;
}

// One spatial axis of images. `size` is a scalar in the type of positions.
class SampledAxis {
 public:
  SampledAxis(Builder& b, ValueId size) : b_(b), size_(size), last_(Plus(b, size, -1)) {}

  // The two neighbours of positions in elements; those outside are 0.
  std::vector<AxisTap> Linear(ValueId x) {
    const ValueId first = b_.Op("Floor", {x}), ratio = Sub(b_, x, first);
    return {Tap(first, OneMinus(ratio)), Tap(Plus(b_, first, 1), ratio)};
  }

 protected:
  ValueId OneMinus(ValueId x) { return Plus(b_, b_.Op("Neg", {x}), 1); }

  ValueId Inside(ValueId x) {
    const ValueId zero = b_.Scalar(0, x);
    x = Where(b_, b_.Op("Less", {x, zero}), zero, x);
    return Where(b_, b_.Op("Less", {last_, x}), last_, x);
  }

  // Elements outside count nothing.
  AxisTap Tap(ValueId x, ValueId weight) {
    const ValueId index = Inside(x);
    const ValueId is_inside = b_.CastTo(b_.Op("Equal", {x, index}), x);
    const auto type = static_cast<int64_t>(DataType::kInt64);
    const ValueId whole = b_.Op("Cast", {index}, Attributes(Int("to", type)));
    return {Unsqueezed(b_, whole, -1), Unsqueezed(b_, Mul(b_, weight, is_inside), -1)};
  }

  Builder& b_;
  ValueId size_, last_;
};

ValueId SizeAs(Builder& b, ValueId value, int64_t axis, ValueId like) {
  return b.CastTo(b.Op("Gather", {b.Op("Shape", {value}), b.IntegerScalar(axis)}), like);
}

// ---- GridSample ---------------------------------------------------------------------------------

// One axis of GridSample, whose positions are -1 and 1 at its ends.
class GridAxis : public SampledAxis {
 public:
  GridAxis(Builder& b, const Node& node, ValueId x, int64_t axis)
      : SampledAxis(b, SizeAs(b, x, axis + 2, x)),
        mode_(node.GetString("mode", "linear")),
        padding_(node.GetString("padding_mode", "zeros")),
        is_aligned_(node.GetInt("align_corners", 0) != 0) {}

  std::vector<AxisTap> Taps(ValueId normalized) {
    ValueId x = Plus(b_, normalized, 1);
    x = is_aligned_ ? Mul(b_, Times(b_, x, 0.5), last_)
                    : Times(b_, Plus(b_, Mul(b_, x, size_), -1), 0.5);
    if (mode_ == "cubic" || mode_ == "bicubic") return Cubic(x);
    if (mode_ == "nearest") x = b_.Op("Round", {x});
    x = Padded(x);
    if (mode_ == "nearest") return {Tap(x, b_.Filled(1, x))};
    return Linear(x);
  }

 private:
  // The taps are moved inside one by one.
  std::vector<AxisTap> Cubic(ValueId x) {
    const ValueId floor = b_.Op("Floor", {x}), ratio = Sub(b_, x, floor), other = OneMinus(ratio);
    return {Tap(Padded(Plus(b_, floor, -1)), Far(Plus(b_, ratio, 1))),
            Tap(Padded(floor), Near(ratio)), Tap(Padded(Plus(b_, floor, 1)), Near(other)),
            Tap(Padded(Plus(b_, floor, 2)), Far(Plus(b_, other, 1)))};
  }

  // The weights of elements at distances up to 1, and from 1 to 2.
  static constexpr double kA = -0.75;
  ValueId Near(ValueId x) {
    return Plus(b_, Mul(b_, Plus(b_, Times(b_, x, kA + 2), -(kA + 3)), Square(b_, x)), 1);
  }
  ValueId Far(ValueId x) {
    const ValueId slope = Plus(b_, Mul(b_, Plus(b_, Times(b_, x, kA), -5 * kA), x), 8 * kA);
    return Plus(b_, Mul(b_, slope, x), -4 * kA);
  }

  ValueId Padded(ValueId x) {
    if (padding_ == "reflection") x = Reflected(x);
    return padding_ == "zeros" ? x : Inside(x);
  }

  ValueId Reflected(ValueId x) {
    // An axis of one element has no length between corners: any will do.
    const ValueId range = is_aligned_ ? b_.Op("Max", {last_, b_.Scalar(1, x)}) : size_;
    const double least = is_aligned_ ? 0 : -0.5;
    const ValueId beyond = b_.Op("Mod", {b_.Op("Abs", {Plus(b_, x, -least)}), Times(b_, range, 2)},
                                 Attributes(Int("fmod", 1)));
    const ValueId back = Sub(b_, Times(b_, range, 2), beyond);
    return Plus(b_, Where(b_, b_.Op("Less", {beyond, range}), beyond, back), least);
  }

  std::string_view mode_, padding_;
  bool is_aligned_;
};

Result<Gradients> GridSample(Builder& b, const Inputs& in) {
  if (b.MayUseKernels(in.x(0)) && b.MayUseKernels(in.x(1))) {
    return b.Ops("GridSampleGrad", std::array{in.dy(), in.x(0), in.x(1)}, 2, AttributesBut(in.node),
                 kMicrosoft);
  }
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    std::vector<int64_t> channels_last = AxesBetween(1, rank),
                         channels_first = AxesBetween(0, rank - 1);
    std::rotate(channels_last.begin(), channels_last.begin() + 1, channels_last.end());
    channels_last.insert(channels_last.begin(), 0);
    channels_first.insert(channels_first.begin() + 1, rank - 1);
    const ValueId x = Transposed(b, inputs[0], std::move(channels_last));
    const ValueId grid = b.CastTo(inputs[1], inputs[0]);
    std::vector<std::vector<AxisTap>> axes;
    for (int64_t axis = 0; axis < rank - 2; ++axis) {
      // The grid has the last axis first.
      const ValueId positions =
          b.Op("Gather", {grid, b.IntegerScalar(rank - 3 - axis)}, Attributes(Int("axis", -1)));
      axes.push_back(GridAxis(b, in.node, inputs[0], axis).Taps(positions));
    }
    const ValueId y = Sampled(b, x, 1, Combined(b, axes));
    return Gradients{Transposed(b, y, std::move(channels_first))};
  });
}

// ---- DeformConv ---------------------------------------------------------------------------------

// DeformConv of images with `spatial` axes, made of simpler operators.
class DeformedProduct {
 public:
  DeformedProduct(Builder& b, const Node& node, int64_t spatial)
      : b_(b),
        node_(node),
        spatial_(spatial),
        groups_(node.GetInt("group", 1)),
        offset_groups_(node.GetInt("offset_group", 1)) {}

  ValueId Of(const std::vector<ValueId>& inputs) {
    enum Input : size_t { kX, kW, kOffset, kBias, kMask };
    const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : ValueId::kNone; };
    kernel_ = Sizes(b_, inputs[kW], 2, spatial_ + 2);
    out_ = Sizes(b_, inputs[kOffset], 2, spatial_ + 2);
    batch_ = Sizes(b_, inputs[kX], 0, 1);
    ValueId samples = Sampled(b_, ImagesOf(inputs[kX]), 2, Taps(inputs[kX], inputs[kOffset]));
    if (input(kMask) != ValueId::kNone) {
      const ValueId shape = Joined(b_, {batch_, Number(offset_groups_), kernel_, out_}, 0);
      samples = Mul(b_, samples, Unsqueezed(b_, b_.Op("Reshape", {inputs[kMask], shape}), -1));
    }
    // The columns of each group, [N, group, channels and kernel, positions].
    const int64_t last = 2 * spatial_ + 2;
    std::vector<int64_t> order = {0, 1, last};
    for (int64_t axis = 2; axis < last; ++axis) order.push_back(axis);
    const ValueId per_filter = b_.Op("ReduceProd", {Sizes(b_, inputs[kW], 1, spatial_ + 2)});
    const ValueId positions = b_.Op("ReduceProd", {out_});
    const ValueId columns =
        b_.Op("Reshape", {Transposed(b_, samples, std::move(order)),
                          Joined(b_, {batch_, Number(groups_), per_filter, positions}, 0)});
    const ValueId filters =
        b_.Op("Reshape", {inputs[kW], Joined(b_, {Number(groups_), Number(-1), per_filter}, 0)});
    const ValueId y =
        b_.Op("Reshape", {b_.Op("MatMul", {filters, columns}),
                          Joined(b_, {batch_, Sizes(b_, inputs[kW], 0, 1), out_}, 0)});
    if (input(kBias) == ValueId::kNone) return y;
    return Add(b_, y, AlongAxis(b_, inputs[kBias], 0, spatial_ + 1));
  }

 private:
  ValueId Number(int64_t value) { return Integer(b_, value); }

  // [N, offset_group, spatial..., channels of an offset group]
  ValueId ImagesOf(ValueId x) {
    const ValueId channels = Div(b_, Sizes(b_, x, 1, 2), Number(offset_groups_));
    const ValueId shape =
        Joined(b_, {batch_, Number(offset_groups_), channels, Sizes(b_, x, 2, spatial_ + 2)}, 0);
    std::vector<int64_t> order = AxesBetween(0, spatial_ + 3);
    std::rotate(order.begin() + 2, order.begin() + 3, order.end());
    return Transposed(b_, b_.Op("Reshape", {x, shape}), std::move(order));
  }

  // Of positions [N, offset_group, kernel..., out...].
  std::vector<AxisTap> Taps(ValueId x, ValueId offset) {
    const ValueId shape =
        Joined(b_, {batch_, Number(offset_groups_), kernel_, Number(spatial_), out_}, 0);
    const ValueId offsets = b_.Op("Reshape", {offset, shape});
    std::vector<std::vector<AxisTap>> axes;
    for (int64_t axis = 0; axis < spatial_; ++axis) {
      const ValueId moved =
          b_.Op("Gather", {offsets, b_.IntegerScalar(axis)}, Attributes(Int("axis", 2 + spatial_)));
      const ValueId position = Add(b_, moved, b_.CastTo(Regular(axis), x));
      axes.push_back(SampledAxis(b_, SizeAs(b_, x, axis + 2, x)).Linear(position));
    }
    return Combined(b_, axes);
  }

  // Where a kernel without offsets is along an axis, to be broadcast to [kernel..., out...].
  ValueId Regular(int64_t axis) {
    const auto setting = [&](const char* name, int64_t otherwise) {
      const std::vector<int64_t> list = node_.GetInts(name);
      return b_.IntegerScalar(list.empty() ? otherwise : list[static_cast<size_t>(axis)]);
    };
    const auto numbers = [&](ValueId counts, const char* distance, int64_t place) {
      const ValueId count = b_.Op("Gather", {counts, b_.IntegerScalar(axis)});
      const ValueId all = Mul(b_, NumbersTo(b_, count), setting(distance, 1));
      return AlongAxis(b_, all, place, 2 * spatial_);
    };
    const ValueId starts = Sub(b_, numbers(out_, "strides", spatial_ + axis), setting("pads", 0));
    return Add(b_, starts, numbers(kernel_, "dilations", axis));
  }

  Builder& b_;
  const Node& node_;
  const int64_t spatial_, groups_, offset_groups_;
  ValueId kernel_, out_, batch_;  // sizes, in one dimension
};

Result<Gradients> DeformConv(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    return Gradients{DeformedProduct(b, in.node, rank - 2).Of(inputs)};
  });
}

constexpr NamedGradientRule kRules[] = {
    {"DeformConv", DeformConv, 19},
    {"GridSample", GridSample, 16},
};

}  // namespace

std::span<const NamedGradientRule> SampledGradients() { return kRules; }

}  // namespace tenon
