#include "kernels/box_overlap.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/box_overlap.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"

#ifndef TENON_KERNELS_BOX_OVERLAP_ONCE
#define TENON_KERNELS_BOX_OVERLAP_ONCE
namespace tenon::kernels {
struct BoxOverlapTable {
  bool (*overlaps_any)(const Box& box, const BoxArrays& boxes, size_t count, float threshold);
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Of the boxes [i, i + Lanes(d)).
template <class D>
HWY_INLINE bool OverlapsOneOf(D d, const Box& box, const BoxArrays& boxes, size_t i,
                              float threshold) {
  const auto zero = hn::Zero(d);
  const auto height = hn::Sub(hn::Min(hn::Set(d, box.high_y), hn::LoadU(d, boxes.high_y + i)),
                              hn::Max(hn::Set(d, box.low_y), hn::LoadU(d, boxes.low_y + i)));
  const auto width = hn::Sub(hn::Min(hn::Set(d, box.high_x), hn::LoadU(d, boxes.high_x + i)),
                             hn::Max(hn::Set(d, box.low_x), hn::LoadU(d, boxes.low_x + i)));
  const auto area = hn::LoadU(d, boxes.area + i);
  const auto common = hn::Mul(height, width);
  const auto whole = hn::Sub(hn::Add(hn::Set(d, box.area), area), common);
  const auto meet = hn::And(hn::And(hn::Gt(height, zero), hn::Gt(width, zero)),
                            hn::And(hn::Gt(area, zero), hn::Gt(whole, zero)));
  const auto exceeds = hn::Gt(hn::Div(common, whole), hn::Set(d, threshold));
  return !hn::AllFalse(d, hn::And(meet, exceeds));
}

bool OverlapsAnyOf(const Box& box, const BoxArrays& boxes, size_t count, float threshold) {
  if (!(box.area > 0)) return false;
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    if (OverlapsOneOf(d, box, boxes, i, threshold)) return true;
  }
  for (; i < count; ++i) {
    if (OverlapsOneOf(d1, box, boxes, i, threshold)) return true;
  }
  return false;
}

const BoxOverlapTable kBoxOverlapTable = {&OverlapsAnyOf};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

bool OverlapsAny(const Box& box, const BoxArrays& boxes, size_t count, float threshold) {
  return TENON_SELECT_TABLE(BoxOverlapTable, kBoxOverlapTable)
      .overlaps_any(box, boxes, count, threshold);
}

}  // namespace tenon::kernels
#endif
