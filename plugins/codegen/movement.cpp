// Operators that move elements: most are views, Concat and Pad write parts of their output.

#include <algorithm>
#include <numeric>

#include "operators.h"

namespace codegen {
namespace {

Status LowerIdentity(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  return planner.SetOutput(node, 0, planner.Expression(x->type, x->shape, "$0", {x}));
}

Status ReshapeTo(Planner& planner, const Node& node, Shape shape) {
  PLUGIN_ASSIGN_OR_RETURN(TensorRef y, planner.Reshape(planner.Input(node, 0), std::move(shape)));
  return planner.SetOutput(node, 0, std::move(y));
}

Status LowerReshape(Planner& planner, const Node& node) {
  const Shape& x = planner.Input(node, 0)->shape;
  PLUGIN_ASSIGN_OR_RETURN(Shape shape, planner.KnownInput(node, 1));
  const bool zero_is_zero = node.Int("allowzero", 0) != 0;
  int64_t known = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !zero_is_zero) {
      if (i >= x.size()) return Failure("expected at most {} sizes, got {}", x.size(), shape);
      shape[i] = x[i];
    }
    if (shape[i] != -1) known *= shape[i];
  }
  for (int64_t& dim : shape) {
    if (dim == -1) dim = known == 0 ? 0 : ElementCount(x) / known;
  }
  return ReshapeTo(planner, node, std::move(shape));
}

Status LowerFlatten(Planner& planner, const Node& node) {
  const Shape& x = planner.Input(node, 0)->shape;
  const auto rank = static_cast<int64_t>(x.size());
  int64_t axis = node.Int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) return Failure("expected an axis of {}, got {}", x, axis);
  return ReshapeTo(
      planner, node,
      {ElementCount({x.begin(), x.begin() + axis}), ElementCount({x.begin() + axis, x.end()})});
}

// Axes are an attribute before opset 13.
Result<std::vector<int64_t>> AxesOf(Planner& planner, const Node& node) {
  if (planner.HasInput(node, 1)) return planner.KnownInput(node, 1);
  return node.Ints("axes", {});
}

Status LowerSqueeze(Planner& planner, const Node& node) {
  const Shape& x = planner.Input(node, 0)->shape;
  PLUGIN_ASSIGN_OR_RETURN(const auto axes, AxesOf(planner, node));
  std::vector<bool> is_gone(x.size(), false);
  for (const int64_t axis : axes) {
    PLUGIN_ASSIGN_OR_RETURN(const size_t normalized, NormalizeAxis(axis, x.size()));
    is_gone[normalized] = true;
  }
  Shape shape;
  for (size_t i = 0; i < x.size(); ++i) {
    if (axes.empty() ? x[i] != 1 : !is_gone[i]) shape.push_back(x[i]);
  }
  return ReshapeTo(planner, node, std::move(shape));
}

Status LowerUnsqueeze(Planner& planner, const Node& node) {
  const Shape& x = planner.Input(node, 0)->shape;
  PLUGIN_ASSIGN_OR_RETURN(const auto axes, AxesOf(planner, node));
  Shape shape(x.size() + axes.size(), 0);
  for (const int64_t axis : axes) {
    PLUGIN_ASSIGN_OR_RETURN(const size_t normalized, NormalizeAxis(axis, shape.size()));
    shape[normalized] = 1;
  }
  auto next = x.begin();
  for (int64_t& dim : shape) {
    if (dim == 0) {
      if (next == x.end()) return Failure("expected axes that differ, got {}", axes);
      dim = *next++;
    }
  }
  return ReshapeTo(planner, node, std::move(shape));
}

Status LowerTranspose(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  const size_t rank = x->shape.size();
  std::vector<int64_t> reversed(rank);
  std::iota(reversed.rbegin(), reversed.rend(), int64_t{0});
  const auto permutation = node.Ints("perm", reversed);
  if (permutation.size() != rank) return Failure("expected {} axes, got {}", rank, permutation);
  PLUGIN_RETURN_IF_ERROR(planner.Store(x));
  Shape shape;
  Shape strides;
  for (const int64_t axis : permutation) {
    PLUGIN_ASSIGN_OR_RETURN(const size_t source, NormalizeAxis(axis, rank));
    shape.push_back(x->shape[source]);
    strides.push_back(x->strides[source]);
  }
  PLUGIN_ASSIGN_OR_RETURN(TensorRef y, planner.View(x, std::move(shape), std::move(strides), 0));
  return planner.SetOutput(node, 0, std::move(y));
}

Status LowerExpand(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  PLUGIN_ASSIGN_OR_RETURN(const Shape wanted, planner.KnownInput(node, 1));
  PLUGIN_ASSIGN_OR_RETURN(Shape shape, BroadcastShape(x->shape, wanted));
  if (x->storage < 0 && !x->deferred) {
    return planner.SetOutput(node, 0, planner.Expression(x->type, std::move(shape), "$0", {x}));
  }
  PLUGIN_RETURN_IF_ERROR(planner.Store(x));
  Shape strides = BroadcastStrides(*x, shape);
  PLUGIN_ASSIGN_OR_RETURN(TensorRef y, planner.View(x, std::move(shape), std::move(strides), 0));
  return planner.SetOutput(node, 0, std::move(y));
}

// Where a slice of one axis starts, and how many elements it has.
struct Range {
  int64_t start;
  int64_t count;
};

Result<Range> SliceRange(int64_t size, int64_t start, int64_t end, int64_t step) {
  if (step == 0) return Failure("expected steps that are not 0");
  const auto place = [size](int64_t i, int64_t low, int64_t high) {
    return std::clamp(i < 0 ? i + size : i, low, high);
  };
  if (step > 0) {
    const int64_t first = place(start, 0, size);
    const int64_t last = place(std::max(end, -size), 0, size);
    return Range{first, last > first ? (last - first - 1) / step + 1 : 0};
  }
  if (size == 0) return Range{0, 0};
  const int64_t first = place(std::max(start, -size - 1), -1, size - 1);
  const int64_t last = end < -size ? -1 : place(end, -1, size - 1);
  // -step overflows for the least integer only, which passes over everything.
  const auto stride = -static_cast<uint64_t>(step);
  const auto span = static_cast<uint64_t>(std::max<int64_t>(0, first - last));
  return Range{first, span == 0 ? 0 : static_cast<int64_t>((span - 1) / stride) + 1};
}

// Attributes before Slice-10.
Status LowerSlice(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  const size_t rank = x->shape.size();
  const auto read = [&](size_t input, const char* attribute) -> Result<std::vector<int64_t>> {
    if (planner.HasInput(node, input)) return planner.KnownInput(node, input);
    return node.Ints(attribute, {});
  };
  PLUGIN_ASSIGN_OR_RETURN(const auto starts, read(1, "starts"));
  PLUGIN_ASSIGN_OR_RETURN(const auto ends, read(2, "ends"));
  PLUGIN_ASSIGN_OR_RETURN(auto axes, read(3, "axes"));
  PLUGIN_ASSIGN_OR_RETURN(auto steps, read(4, "steps"));
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return Failure("expected as many ends, axes and steps as starts ({})", starts.size());
  }
  PLUGIN_RETURN_IF_ERROR(planner.Store(x));
  Shape shape = x->shape;
  Shape strides = x->strides;
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    PLUGIN_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(axes[i], rank));
    PLUGIN_ASSIGN_OR_RETURN(const Range range,
                            SliceRange(x->shape[axis], starts[i], ends[i], steps[i]));
    shape[axis] = range.count;
    if (range.count > 0) offset += range.start * x->strides[axis];
    strides[axis] = range.count > 1 ? x->strides[axis] * steps[i] : x->strides[axis];
  }
  PLUGIN_ASSIGN_OR_RETURN(TensorRef y,
                          planner.View(x, std::move(shape), std::move(strides), offset));
  return planner.SetOutput(node, 0, std::move(y));
}

Status LowerSplit(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  PLUGIN_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(node.Int("axis", 0), x->shape.size()));
  std::vector<int64_t> sizes = node.Ints("split", {});
  if (planner.HasInput(node, 1)) {
    PLUGIN_ASSIGN_OR_RETURN(sizes, planner.KnownInput(node, 1));
  }
  if (sizes.empty()) {
    const auto parts = static_cast<int64_t>(node.outputs.size());
    const int64_t part = (x->shape[axis] + parts - 1) / parts;
    sizes.assign(node.outputs.size(), part);
    sizes.back() = x->shape[axis] - part * (parts - 1);
  }
  if (sizes.size() != node.outputs.size() ||
      std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != x->shape[axis] ||
      *std::min_element(sizes.begin(), sizes.end()) < 0) {
    return Failure("expected {} sizes that add up to {}, got {}", node.outputs.size(),
                   x->shape[axis], sizes);
  }
  PLUGIN_RETURN_IF_ERROR(planner.Store(x));
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Shape shape = x->shape;
    shape[axis] = sizes[i];
    PLUGIN_ASSIGN_OR_RETURN(
        TensorRef part, planner.View(x, std::move(shape), x->strides, start * x->strides[axis]));
    PLUGIN_RETURN_IF_ERROR(planner.SetOutput(node, i, std::move(part)));
    start += sizes[i];
  }
  return Status();
}

Status LowerConcat(Planner& planner, const Node& node) {
  const TensorRef first = planner.Input(node, 0);
  PLUGIN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalizeAxis(node.Int("axis", 0), first->shape.size()));
  Shape shape = first->shape;
  shape[axis] = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    Shape other = planner.Input(node, i)->shape;
    if (other.size() != shape.size()) {
      return Failure("input {}: expected rank {}, got {}", i, shape.size(), other.size());
    }
    shape[axis] += std::exchange(other[axis], first->shape[axis]);
    if (other != first->shape) {
      return Failure("input {}: expected {} beside axis {}, got {}", i, first->shape, axis, other);
    }
  }
  const TensorRef result = planner.Allocate(first->type, std::move(shape));
  int64_t offset = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorRef part = planner.Input(node, i);
    const int64_t size = part->shape[axis];
    PLUGIN_RETURN_IF_ERROR(planner.StoreInto(part, *result, result->strides, offset));
    offset += size * result->strides[axis];
  }
  return planner.SetOutput(node, 0, result);
}

// ConstantOfShape of floats; integers are the host's, if they are few.
Status LowerConstantOfShape(Planner& planner, const Node& node) {
  PLUGIN_ASSIGN_OR_RETURN(Shape shape, planner.KnownInput(node, 0));
  const auto it = node.attributes.find("value");
  HostTensor value{DataType::kFloat, {1}, std::vector<std::byte>(sizeof(float))};
  if (it != node.attributes.end()) value = std::get<HostTensor>(it->second);
  auto number = std::make_shared<Tensor>(value.type, Shape{1});
  number->scalar = value.Float();
  number->known = value.Integers();
  return planner.SetOutput(node, 0,
                           planner.Expression(value.type, std::move(shape), "$0", {number}));
}

}  // namespace

std::span<const Operator> MovementOperators() {
  static constexpr Operator kRows[] = {
      {.type = "Identity", .lower = LowerIdentity},
      {.type = "Dropout",
       .lower = LowerIdentity,
       .types = kFloats,
       .accepts =
           [](const Graph&, const Node& node) {
             return node.inputs.size() < 2 && (node.outputs.size() < 2 || node.outputs[1] < 0);
           }},
      {.type = "Reshape", .lower = LowerReshape, .known_inputs = 2, .since = 5},
      {.type = "Flatten", .lower = LowerFlatten},
      {.type = "Squeeze", .lower = LowerSqueeze, .known_inputs = 2},
      {.type = "Unsqueeze", .lower = LowerUnsqueeze, .known_inputs = 2},
      {.type = "Transpose", .lower = LowerTranspose},
      {.type = "Expand", .lower = LowerExpand, .known_inputs = 2},
      {.type = "Slice", .lower = LowerSlice, .known_inputs = 2 | 4 | 8 | 16},
      {.type = "Split", .lower = LowerSplit, .known_inputs = 2},
      {.type = "Concat", .lower = LowerConcat, .since = 4},
      {.type = "ConstantOfShape", .lower = LowerConstantOfShape, .known_inputs = 1},
  };
  return kRows;
}

}  // namespace codegen
