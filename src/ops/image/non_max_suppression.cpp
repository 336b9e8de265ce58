// NonMaxSuppression: the boxes with the highest scores that do not overlap too much.
#include <algorithm>
#include <cmath>

#include "base/arithmetic.h"
#include "base/stop_signal.h"
#include "kernels/box_overlap.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// NonMaxSuppression-11.
struct NmsAttrs {
  bool center_point_box = false;
  static constexpr auto Fields() {
    return std::tuple(Field("center_point_box", &NmsAttrs::center_point_box));
  }
};

Status CheckShapes(const SymbolicShape& boxes, const SymbolicShape& scores) {
  const auto differ = [](const Dim& a, const Dim& b) {
    return a.is_number() && b.is_number() && a.value() != b.value();
  };
  if (boxes.rank() != 3 || differ(boxes[2], Dim(4))) {
    return InvalidArgument("input 0: expected [batches, boxes, 4], got {}", boxes);
  }
  if (scores.rank() != 3 || differ(boxes[0], scores[0]) || differ(boxes[1], scores[2])) {
    return InvalidArgument("input 1: expected [batches, classes, boxes] of boxes {}, got {}", boxes,
                           scores);
  }
  return OkStatus();
}

Status InferNms(const NmsAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape boxes, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape scores, context.Input(1));
  TENON_RETURN_IF_ERROR(CheckShapes(boxes, scores));
  return context.SetOutput(0, {Dim::Unknown(), Dim(3)}, DataType::kInt64);
}

// The only number of input `i`; its default if it is absent.
template <class T>
Result<T> ScalarOf(const KernelContext& context, size_t i, T fallback) {
  if (!context.HasInput(i) || context.Input(i).size() == 0) return fallback;
  const Tensor& input = context.Input(i);
  if (input.size() != 1) {
    return InvalidArgument("input {}: expected one number, got {}", i, input.shape());
  }
  return *input.data<T>();
}

struct Limits {
  size_t most = 0;  // boxes of a class
  float overlap = 0;
  float score = -INFINITY;
  bool has_score = false;
};

Result<Limits> LimitsOf(const KernelContext& context, int64_t boxes) {
  Limits limits;
  TENON_ASSIGN_OR_RETURN(const int64_t most, ScalarOf<int64_t>(context, 2, 0));
  limits.most = static_cast<size_t>(std::clamp<int64_t>(most, 0, boxes));
  TENON_ASSIGN_OR_RETURN(limits.overlap, ScalarOf<float>(context, 3, 0));
  if (!(limits.overlap >= 0 && limits.overlap <= 1)) {
    return InvalidArgument("input 3: expected a threshold in [0, 1], got {}", limits.overlap);
  }
  limits.has_score = context.HasInput(4) && context.Input(4).size() > 0;
  TENON_ASSIGN_OR_RETURN(limits.score, ScalarOf<float>(context, 4, -INFINITY));
  return limits;
}

kernels::Box BoxOf(const float* numbers, bool center_point_box) {
  kernels::Box box;
  if (center_point_box) {
    const float half_width = numbers[2] / 2, half_height = numbers[3] / 2;
    box = {numbers[1] - half_height, numbers[0] - half_width, numbers[1] + half_height,
           numbers[0] + half_width, 0};
  } else {
    box = {std::min(numbers[0], numbers[2]), std::min(numbers[1], numbers[3]),
           std::max(numbers[0], numbers[2]), std::max(numbers[1], numbers[3]), 0};
  }
  box.area = (box.high_y - box.low_y) * (box.high_x - box.low_x);
  return box;
}

struct Candidate {
  float score;
  int32_t box;
  // The best is last; of equals the one with the lowest index.
  bool operator<(const Candidate& other) const {
    return score != other.score ? score < other.score : box > other.box;
  }
};

constexpr size_t kArrays = sizeof(kernels::Box) / sizeof(float);

kernels::BoxArrays ArraysIn(float* memory, size_t n) {
  return {memory, memory + n, memory + 2 * n, memory + 3 * n, memory + 4 * n};
}

// Memory of one class: its candidates, and the boxes selected so far.
size_t ClassBytes(size_t boxes, size_t most) {
  return boxes * sizeof(Candidate) + kArrays * most * sizeof(float);
}

// Writes the selected boxes of one class to `selected` and returns how many there are.
int64_t SelectOfClass(const kernels::BoxArrays& boxes, const float* scores, size_t n,
                      const Limits& limits, std::byte* memory, int32_t* selected) {
  auto* const candidates = reinterpret_cast<Candidate*>(memory);
  const kernels::BoxArrays kept = ArraysIn(reinterpret_cast<float*>(candidates + n), limits.most);
  size_t left = 0;
  for (size_t i = 0; i < n; ++i) {
    const bool counts = limits.has_score ? scores[i] > limits.score : !std::isnan(scores[i]);
    if (counts) candidates[left++] = {scores[i], static_cast<int32_t>(i)};
  }
  // A heap, because often only a few of many are read.
  std::make_heap(candidates, candidates + left);
  size_t count = 0;
  while (left > 0 && count < limits.most && !StopSignal::CutsCurrent()) {
    std::pop_heap(candidates, candidates + left);
    const int32_t index = candidates[--left].box;
    const kernels::Box box = boxes.Get(static_cast<size_t>(index));
    if (kernels::OverlapsAny(box, kept, count, limits.overlap)) continue;
    kept.Set(count, box);
    selected[count++] = index;
  }
  return static_cast<int64_t>(count);
}

Status WriteSelected(const int64_t* counts, const int32_t* selected, size_t tasks, size_t classes,
                     size_t most, KernelContext& context) {
  int64_t total = 0;
  for (size_t task = 0; task < tasks; ++task) total += counts[task];
  TENON_ASSIGN_OR_RETURN(Tensor * output, context.AllocateOutput(0, DataType::kInt64, {total, 3}));
  int64_t* to = output->data<int64_t>();
  for (size_t task = 0; task < tasks; ++task) {
    for (int64_t i = 0; i < counts[task]; ++i) {
      *to++ = static_cast<int64_t>(task / classes);
      *to++ = static_cast<int64_t>(task % classes);
      *to++ = selected[task * most + static_cast<size_t>(i)];
    }
  }
  return OkStatus();
}

Status RunNms(const NmsAttrs& attrs, KernelContext& context) {
  const Shape& scores = context.Input(1).shape();
  TENON_RETURN_IF_ERROR(CheckShapes(context.Input(0).shape(), scores));
  if (scores[2] > INT32_MAX) return NotImplemented("{} boxes", scores[2]);
  const auto batch = static_cast<size_t>(scores[0]), classes = static_cast<size_t>(scores[1]);
  const auto n = static_cast<size_t>(scores[2]);
  TENON_ASSIGN_OR_RETURN(const Limits limits, LimitsOf(context, scores[2]));
  const size_t tasks = batch * classes;
  if (tasks * limits.most == 0) return WriteSelected(nullptr, nullptr, 0, classes, 0, context);

  const size_t class_bytes = ClassBytes(n, limits.most);
  const size_t box_bytes = RoundUp<size_t>(batch * kArrays * n * sizeof(float), 64);
  const size_t count_bytes = RoundUp<size_t>(tasks * sizeof(int64_t), 64);
  const size_t selected_bytes = RoundUp<size_t>(tasks * limits.most * sizeof(int32_t), 64);
  auto* memory = static_cast<std::byte*>(context.Scratch(
      box_bytes + count_bytes + selected_bytes + context.TaskScratchBytes(tasks, class_bytes)));
  if (memory == nullptr) return RuntimeException("out of memory for {} boxes", n);
  auto* const boxes = reinterpret_cast<float*>(memory);
  auto* const counts = reinterpret_cast<int64_t*>(memory + box_bytes);
  auto* const selected = reinterpret_cast<int32_t*>(memory + box_bytes + count_bytes);
  std::fill_n(counts, tasks, 0);  // also of classes that a stopped run leaves out
  const float* numbers = context.Input(0).data<float>();
  for (size_t b = 0; b < batch; ++b) {
    const kernels::BoxArrays arrays = ArraysIn(boxes + b * kArrays * n, n);
    for (size_t i = 0; i < n; ++i) {
      arrays.Set(i, BoxOf(numbers + (b * n + i) * 4, attrs.center_point_box));
    }
  }
  context.ForEachTaskIn(memory + box_bytes + count_bytes + selected_bytes, tasks, class_bytes,
                        [&](size_t task, std::byte* scratch) {
                          counts[task] =
                              SelectOfClass(ArraysIn(boxes + task / classes * kArrays * n, n),
                                            context.Input(1).data<float>() + task * n, n, limits,
                                            scratch, selected + task * limits.most);
                        });
  return WriteSelected(counts, selected, tasks, classes, limits.most, context);
}

constexpr OpRow kRows[] = {
    Op<InferNms, RunNms>(
        "NonMaxSuppression",
        {.since = 10, .types = kFloat32Only, .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(NonMaxSuppression, kRows);

}  // namespace tenon
