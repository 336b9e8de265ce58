// Resize and Upsample, if WebNN reads the same elements.
//
// WebNN's coordinates are half_pixel's, cut off at the borders, and the nearest element is
// ceil(coordinate - 0.5): round_prefer_floor. Other forms are the same for some sizes, such as
// asymmetric with floor for integral scales; each axis is compared at all of its coordinates.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "webnn/emission.h"

namespace tenon::webnn {
namespace {

// One axis of the node.
struct ResizedAxis {
  int64_t in = 1, out = 1;
  double scale = 1;
};

struct ResizeForm {
  std::string_view coordinates, nearest;
  bool is_linear = false;
};

// ONNX's input coordinate for coordinate `x` of the output.
double OnnxCoordinate(const ResizeForm& form, const ResizedAxis& axis, double x) {
  const auto out = static_cast<double>(axis.out), in = static_cast<double>(axis.in);
  if (form.coordinates == "asymmetric") return x / axis.scale;
  if (form.coordinates == "pytorch_half_pixel") {
    return axis.out > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
  }
  if (form.coordinates == "align_corners") return axis.out > 1 ? x * (in - 1) / (out - 1) : 0;
  if (form.coordinates == "half_pixel_symmetric") {
    const double adjustment = out / (axis.scale * in);
    return in / 2 * (1 - adjustment) + (x + 0.5) / axis.scale - 0.5;
  }
  return (x + 0.5) / axis.scale - 0.5;
}

double Nearest(std::string_view mode, double x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}

bool IsSame(const ResizeForm& form, const ResizedAxis& axis) {
  const double last = static_cast<double>(axis.in) - 1;
  for (int64_t i = 0; i < axis.out; ++i) {
    const auto x = static_cast<double>(i);
    const double onnx = OnnxCoordinate(form, axis, x);
    const double half = (x + 0.5) / axis.scale - 0.5;
    const double webnn = std::clamp(half, 0.0, last);
    const bool is_same = form.is_linear ? std::abs(std::clamp(onnx, 0.0, last) - webnn) < 1e-6
                                        : std::clamp(Nearest(form.nearest, onnx), 0.0, last) ==
                                              std::clamp(std::ceil(webnn - 0.5), 0.0, last);
    if (!is_same) return false;
  }
  return true;
}

Result<ResizeForm> FormOf(const NodeContext& context) {
  const Node& node = context.node();
  ResizeForm form;
  const std::string_view mode = node.GetString("mode", "nearest");
  form.is_linear = mode == "linear" || mode == "bilinear";
  if (!form.is_linear && mode != "nearest") {
    return NotImplemented("WebNN does not resize by mode '{}'", mode);
  }
  // Upsample and Resize-10 have one form.
  const bool is_old = node.op_type == "Upsample" || context.since() < 11;
  form.coordinates =
      is_old ? "asymmetric" : node.GetString("coordinate_transformation_mode", "half_pixel");
  form.nearest = is_old ? "floor" : node.GetString("nearest_mode", "round_prefer_floor");
  if (form.coordinates == "tf_crop_and_resize") return NotImplemented("WebNN does not crop");
  if (node.GetInt("antialias", 0) != 0) return NotImplemented("WebNN does not smooth");
  return form;
}

// The scales of all axes that the node has; nothing if it has sizes.
Result<std::vector<double>> ScalesOf(NodeContext& context, size_t rank) {
  const Node& node = context.node();
  std::vector<double> scales;
  const size_t input = node.op_type == "Upsample" || context.since() < 11 ? 1 : 2;
  if (context.HasInput(input)) {
    TENON_ASSIGN_OR_RETURN(const Tensor* const tensor, context.Constant(input));
    const std::span<const float> values = tensor->values<float>();
    scales.assign(values.begin(), values.end());
  } else if (const Attribute* const attribute = node.FindAttribute("scales")) {
    const auto* const values = attribute->get<std::vector<float>>();
    if (values != nullptr) scales.assign(values->begin(), values->end());
  }
  const std::vector<int64_t> axes = node.GetInts("axes");
  if (axes.empty() || scales.empty()) return scales;
  std::vector<double> all(rank, 1);
  for (size_t i = 0; i < axes.size() && i < scales.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const int64_t axis, context.Axis(axes[i], rank));
    all[static_cast<size_t>(axis)] = scales[i];
  }
  return all;
}

Status EmitResize(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const ResizeForm form, FormOf(context));
  TENON_ASSIGN_OR_RETURN(Operand x, context.Input(0));
  const Shape in = b.ShapeOf(x);
  TENON_ASSIGN_OR_RETURN(const Shape out, context.OutputShape(0));
  TENON_ASSIGN_OR_RETURN(const std::vector<double> scales, ScalesOf(context, in.rank()));
  // With keep_aspect_ratio_policy, sizes have separate scales, which the shape does not determine.
  if (scales.empty() &&
      context.node().GetString("keep_aspect_ratio_policy", "stretch") != "stretch") {
    return NotImplemented("WebNN stretches to given sizes");
  }
  Numbers axes;
  for (size_t i = 0; i < in.rank(); ++i) {
    const auto exact = static_cast<double>(out[i]) / static_cast<double>(in[i]);
    const ResizedAxis axis = {in[i], out[i], i < scales.size() ? scales[i] : exact};
    if (in[i] == out[i] && axis.scale == 1) continue;
    axes.push_back(static_cast<int64_t>(i));
    if (std::abs(axis.scale - exact) > 1e-6) {
      return NotImplemented("a scale of {} does not lead to a whole number of elements",
                            axis.scale);
    }
    if (!IsSame(form, axis)) {
      return NotImplemented("coordinates by {} ({}) differ from WebNN's", form.coordinates,
                            form.is_linear ? "linear" : form.nearest);
    }
  }
  if (axes.size() > 2) return NotImplemented("WebNN resizes two axes");
  if (axes.empty()) {
    TENON_ASSIGN_OR_RETURN(const Operand same, b.Unary("identity", x));
    return context.SetOutput(0, same);
  }
  // WebNN needs four axes, of which two are resized, in order.
  Shape wide_in = in, wide_out = out;
  const size_t missing = in.rank() < 4 ? 4 - in.rank() : 0;
  if (missing > 0) {
    wide_in = Shape(missing, 1);
    wide_out = Shape(missing, 1);
    for (size_t i = 0; i < in.rank(); ++i) {
      wide_in.Append(in[i]);
      wide_out.Append(out[i]);
    }
    for (int64_t& axis : axes) axis += static_cast<int64_t>(missing);
    TENON_ASSIGN_OR_RETURN(x, b.Reshape(x, wide_in));
  }
  if (axes.size() == 1) axes.insert(axes.begin(), axes[0] > 0 ? axes[0] - 1 : 1);
  std::sort(axes.begin(), axes.end());
  const Numbers sizes = {wide_out[static_cast<size_t>(axes[0])],
                         wide_out[static_cast<size_t>(axes[1])]};
  TENON_ASSIGN_OR_RETURN(
      Operand y, b.Call("resample2d", {{"input", x}},
                        {{"mode", std::string_view(form.is_linear ? "linear" : "nearest-neighbor")},
                         {"sizes", sizes},
                         {"axes", axes}},
                        {b.TypeOf(x), wide_out}));
  if (missing > 0) {
    TENON_ASSIGN_OR_RETURN(y, b.Reshape(y, out));
  }
  return context.SetOutput(0, y);
}

constexpr std::string_view kForms =
    "nearest and linear where WebNN's half-pixel coordinates are the same; two axes, to whole "
    "numbers of elements";

constexpr Row kRows[] = {
    {"Resize", EmitResize, "resample2d", kForms, "", false, true},
    {"Upsample", EmitResize, "resample2d", kForms},
};

}  // namespace

TENON_WEBNN_FAMILY(Resize, kRows);

}  // namespace tenon::webnn
