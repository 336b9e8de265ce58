// The gradients of operators that sample images: Resize and Upsample.
#include <array>

#include "ir/gradient_rules.h"

namespace tenon {
namespace {

bool KeepsRatios(const Inputs& in) {
  return in.node.GetString("keep_aspect_ratio_policy", "stretch") != "stretch";
}

// The scale of all axes where Resize keeps their ratios, in double.
ValueId CommonScale(Builder& b, const Inputs& in, const std::vector<int64_t>& axes) {
  const auto in_double = [&](ValueId value) {
    return b.Op("Cast", {value}, Attributes(Int("to", static_cast<int64_t>(DataType::kDouble))));
  };
  const ValueId before = b.Op("Gather", {b.Op("Shape", {in.x(0)}), b.Integers(axes)});
  const ValueId scales = Div(b, in_double(in.x(3)), in_double(before));
  const bool not_larger = in.node.GetString("keep_aspect_ratio_policy", "") == "not_larger";
  return b.Op(not_larger ? "ReduceMin" : "ReduceMax", {scales});
}

// What Resize does along one axis, as a matrix [in, out], in the type of x: rows of ones and zeros,
// resized. `common` is the scale where it keeps the ratios of axes.
ValueId ResizeMatrix(Builder& b, const Inputs& in, ValueId common, int64_t axis, size_t place,
                     size_t count) {
  constexpr int32_t kFirstWithScalesAsInput = 9, kFirstWithSizes = 11;
  const auto size = [&](ValueId value) {
    return b.Op("Gather", {b.Op("Shape", {value}), Integer(b, axis)});
  };
  const auto pair = [&](ValueId first, ValueId second) {
    return b.Op("Concat", {first, second}, Attributes(Int("axis", 0)));
  };
  const ValueId x = in.x(0), rows = size(x);
  const ValueId identity =
      b.Op("EyeLike", {b.Op("Expand", {b.Scalar(0, x), pair(rows, rows)})}, {});
  std::vector<Attribute> attributes =
      AttributesBut(in.node, {"axes", "extrapolation_value", "keep_aspect_ratio_policy", "scales"});
  const auto element = [&](ValueId list, size_t i) {
    return b.Op("Gather", {list, Integer(b, static_cast<int64_t>(i))});
  };
  const auto number = [&](int64_t value, ValueId like) {
    return b.CastTo(Integer(b, value), like);
  };
  if (in.node.opset < kFirstWithScalesAsInput) {
    const Attribute* given = in.node.FindAttribute("scales");
    const auto& scales = *given->get<std::vector<float>>();
    attributes.emplace_back("scales", std::vector<float>{1, scales[static_cast<size_t>(axis)]});
    return b.Op(in.node.op_type.c_str(), {identity}, std::move(attributes));
  }
  if (in.node.opset < kFirstWithSizes) {
    const ValueId scales = pair(number(1, in.x(1)), element(in.x(1), place));
    return b.Op(in.node.op_type.c_str(), {identity, scales}, std::move(attributes));
  }
  const ValueId roi = in.x(1);
  std::vector<ValueId> inputs = {identity, ValueId::kNone, ValueId::kNone, ValueId::kNone};
  if (roi != ValueId::kNone &&
      in.node.GetString("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    inputs[1] =
        b.Op("Concat",
             {number(0, roi), element(roi, place), number(1, roi), element(roi, place + count)},
             Attributes(Int("axis", 0)));
  }
  if (in.x(3) != ValueId::kNone) {
    inputs[3] = pair(rows, size(in.y()));
    if (common != ValueId::kNone) {
      inputs[2] = pair(number(1, common), common);
      return b.Op("ScaledResize", inputs, std::move(attributes), kTenon);
    }
  } else {
    inputs[2] = pair(number(1, in.x(2)), element(in.x(2), place));
    inputs.pop_back();
  }
  return b.Op("Resize", inputs, std::move(attributes));
}

// Whether Resize leaves an axis as it is, as far as that is known.
bool IsKept(Builder& b, const Inputs& in, int64_t axis, size_t place) {
  if (in.node.GetString("coordinate_transformation_mode", "") == "tf_crop_and_resize") return false;
  if (KeepsRatios(in)) return false;  // rounded to the same size, elements move all the same
  const auto i = static_cast<size_t>(axis);
  const Attribute* attribute = in.node.FindAttribute("scales");
  if (attribute != nullptr) return (*attribute->get<std::vector<float>>())[i] == 1;
  const SymbolicShape *x = b.ShapeOf(in.x(0)), *y = b.ShapeOf(in.y());
  const ValueId list = in.node.opset < 11 ? in.x(1) : in.x(2);
  const Tensor* scales = list == ValueId::kNone ? nullptr : b.graph().ConstantOf(list);
  if (scales != nullptr && scales->size() > 0) return scales->values<float>()[place] == 1;
  return in.x(3) != ValueId::kNone && x && y && (*x)[i] == (*y)[i];
}

// Resize, Upsample: linear in x along one axis after the other, so each is undone by the product
// with the transposed matrix of what it did.
Result<Gradients> Resize(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  std::vector<int64_t> axes = in.node.GetInts("axes");
  if (in.node.FindAttribute("axes") == nullptr) axes = AxesBetween(0, rank);
  const ValueId common =
      KeepsRatios(in) && in.x(3) != ValueId::kNone ? CommonScale(b, in, axes) : ValueId::kNone;
  ValueId dx = in.dy();
  for (size_t place = 0; place < axes.size(); ++place) {
    const int64_t axis = axes[place] < 0 ? axes[place] + rank : axes[place];
    if (IsKept(b, in, axis, place)) continue;
    const ValueId matrix = ResizeMatrix(b, in, common, axis, place, axes.size());
    if (axis == rank - 2) {
      dx = b.Op("MatMul", {matrix, dx});
      continue;
    }
    // The axis as the last one.
    std::vector<int64_t> order = AxesBetween(0, rank);
    std::swap(order[static_cast<size_t>(axis)], order.back());
    const auto swapped = [&](ValueId value) {
      if (axis == rank - 1) return value;
      return b.Op("Transpose", {value}, Attributes(Attribute("perm", order)));
    };
    const ValueId rows = swapped(dx);
    dx = swapped(b.Op("MatMul", {rows, b.Op("Transpose", {matrix})}));
  }
  return Gradients{dx};
}

constexpr NamedGradientRule kRules[] = {
    {"Resize", Resize, 10},
    {"Upsample", Resize, 7},
};

}  // namespace

std::span<const NamedGradientRule> ImageGradients() { return kRules; }

}  // namespace tenon
