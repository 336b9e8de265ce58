#include "kernels/conv/conv_blocked.h"

#include <algorithm>

#include "kernels/conv/conv_blocked_plan.h"
#include "kernels/conv/conv_tile.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_blocked.cpp"
#include <hwy/foreach_target.h>

#include "kernels/conv/conv_blocked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using ConvBlockedTask = void (*)(const ConvBlockedArgs&, size_t, void*);

namespace HWY_NAMESPACE {

const ConvBlockedTask kConvBlockedTask = &RunBlockedTask<WholeBlocks>;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
bool ConvBlockedSupports(const Conv2dShape& shape) {
  const bool whole_groups = shape.groups > 0 &&
                            shape.in_channels % (shape.groups * kChannelBlock) == 0 &&
                            shape.out_channels % (shape.groups * kChannelBlock) == 0;
  return (shape.groups == 1 || whole_groups) && shape.in_width < (size_t{1} << 26);
}

size_t ConvBlockedTaskCount(const Conv2dShape& shape, bool packed_weights) {
  const BlockedPlan plan(shape, kChannelBlock);
  return packed_weights ? plan.TaskCount() : std::min(plan.TaskCount(), plan.WeightTasks());
}

size_t ConvBlockedScratchSize(const Conv2dShape& shape, bool packed_weights) {
  const size_t offsets = shape.kernel_width * kMaxTilePixels * sizeof(int32_t);
  if (packed_weights) return offsets;
  return kMaxTileBlocks * BlockedPlan(shape, kChannelBlock).BlockFloats() * sizeof(float) + offsets;
}

void RunConvBlockedTask(const ConvBlockedArgs& args, size_t task, void* scratch) {
  TENON_SELECT_TABLE(ConvBlockedTask, kConvBlockedTask)(args, task, scratch);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
