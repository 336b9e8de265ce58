// The axes of a padded tensor.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ops/framework/op_row.h"

namespace tenon {

enum class PadMode : uint8_t { kConstant, kReflect, kEdge, kWrap };

Result<PadMode> PadModeFromName(std::string_view name);

// The padding of one axis: [first, first + kept) of the input is kept, `before` elements go before
// it.
struct PadAxis {
  int64_t before = 0;
  int64_t first = 0;
  int64_t kept = 0;
  // Elements of the axis in the input and in the output.
  int64_t in = 0;
  int64_t out = 0;

  bool is_whole() const { return kept == in && kept == out; }

  // The input's index at output index `o`, or -1 for a constant.
  int64_t SourceOf(int64_t o, PadMode mode) const {
    int64_t i = o - before;
    if (i >= 0 && i < kept) return first + i;
    switch (mode) {
      case PadMode::kConstant:
        return -1;
      case PadMode::kEdge:
        return first + std::clamp<int64_t>(i, 0, kept - 1);
      case PadMode::kWrap:
        i %= kept;
        return first + (i < 0 ? i + kept : i);
      case PadMode::kReflect:
        break;
    }
    if (kept == 1) return first;
    const int64_t period = 2 * (kept - 1);
    i = i < 0 ? -i : i;
    if (i >= period) i %= period;  // rarely needed: a division takes as long as many copies
    return first + (i < kept ? i : period - i);
  }
};

// The shape of what is padded with two pads for each of `axes`, or of all axes.
Result<SymbolicShape> PaddedShape(SymbolicShape shape, const Dims& pads,
                                  const std::optional<Shape>& axes, PadMode mode);

// At least one axis; fewer than the tensor has where some can be treated as one.
class PadAxes {
 public:
  // Of an input and an output of these shapes.
  static Result<PadAxes> Make(const Shape& in, const Shape& out, const Shape& pads,
                              const std::optional<Shape>& axes, PadMode mode);

  std::span<const PadAxis> span() const { return std::span(axes_).first(count_); }
  // Which elements of the last axis go before and after those that are kept; none if the padding
  // is constant.
  std::span<const int64_t> sources() const { return sources_; }

 private:
  static constexpr size_t kMaxRank = 32;

  void Merge(PadMode mode);
  void FindSources(PadMode mode);

  std::array<PadAxis, kMaxRank> axes_;
  size_t count_ = 0;
  PooledVector<int64_t> sources_;
};

}  // namespace tenon
