// Pad: with a constant, or with elements of the tensor.

#include <algorithm>
#include <numeric>

#include "kernel_writer.h"
#include "operators.h"

namespace codegen {
namespace {

// The number of elements before each axis, and the padded shape.
struct Padded {
  std::vector<int64_t> begins;
  Shape shape;
};

// Before Pad-11 the pads are an attribute.
Result<Padded> ReadPads(Planner& planner, const Node& node, const Shape& shape) {
  const size_t rank = shape.size();
  std::vector<int64_t> pads = node.Ints("pads", {});
  if (planner.HasInput(node, 1)) {
    PLUGIN_ASSIGN_OR_RETURN(pads, planner.KnownInput(node, 1));
  }
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  if (planner.HasInput(node, 3)) {
    PLUGIN_ASSIGN_OR_RETURN(axes, planner.KnownInput(node, 3));
  }
  if (pads.size() != 2 * axes.size()) {
    return Failure("expected {} pads, got {}", 2 * axes.size(), pads.size());
  }
  Padded padded = {std::vector<int64_t>(rank, 0), shape};
  for (size_t i = 0; i < axes.size(); ++i) {
    PLUGIN_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(axes[i], rank));
    const int64_t begin = pads[i], end = pads[i + axes.size()];
    if (begin < 0 || end < 0) return Failure("expected pads of 0 or more");
    padded.begins[axis] = begin;
    padded.shape[axis] += begin + end;
  }
  return padded;
}

Status PadWithConstant(Planner& planner, const Node& node, const TensorRef& x, Padded padded) {
  const TensorRef result = planner.Allocate(x->type, padded.shape);
  TensorRef value;
  if (planner.HasInput(node, 2)) {
    value = planner.Input(node, 2);
  } else {
    value = std::make_shared<Tensor>(x->type, Shape{});
    value->scalar = node.Float("value", 0);
  }
  const TensorRef fill = planner.Expression(x->type, std::move(padded.shape), "$0", {value});
  PLUGIN_RETURN_IF_ERROR(planner.StoreInto(fill, *result, result->strides, 0));
  int64_t offset = 0;
  for (size_t i = 0; i < padded.begins.size(); ++i) {
    offset += padded.begins[i] * result->strides[i];
  }
  PLUGIN_RETURN_IF_ERROR(planner.StoreInto(x, *result, result->strides, offset));
  return planner.SetOutput(node, 0, result);
}

// The element that stands at `place`, which may be outside of an axis of `size` elements.
const char* PlaceInside(const std::string& mode) {
  if (mode == "edge") return "#define INSIDE(place, size) clamp(place, 0, size - 1)\n";
  if (mode == "wrap") return "#define INSIDE(place, size) (((place) % size + size) % size)\n";
  // Mirrored at the first and the last element, as often as it takes.
  return "#define PERIOD(size) max(2 * (size - 1), 1)\n"
         "#define FOLDED(place, size) ((int)abs(place) % PERIOD(size))\n"
         "#define INSIDE(place, size) (FOLDED(place, size) < size ? FOLDED(place, size) "
         ": PERIOD(size) - FOLDED(place, size))\n";
}

KernelBody WritePad(KernelWriter& writer, const TensorRef& x, const Padded& padded,
                    const char* inside, size_t group_size) {
  const int64_t count = ElementCount(padded.shape);
  std::string code = fmt::format(
      "{}  int rest = get_global_id(0);\n  const int item = rest;\n  if (item >= {}) return;\n"
      "  int source = 0;\n",
      inside, writer.Int(count));
  for (size_t axis = padded.shape.size(); axis-- > 0;) {
    const std::string size = writer.Int(padded.shape[axis]);
    std::string place = fmt::format("rest % {}", size);
    if (padded.shape[axis] != x->shape[axis]) {
      place = fmt::format("INSIDE({} - {}, {})", place, writer.Int(padded.begins[axis]),
                          writer.Int(x->shape[axis]));
    }
    code += fmt::format("  source += ({}) * {};\n  rest /= {};\n", place,
                        writer.Int(x->strides[axis]), size);
  }
  code += fmt::format("  STORE(item, {});\n", writer.Input(*x).Read("source"));
  const auto items = (static_cast<size_t>(count) + group_size - 1) / group_size * group_size;
  return {
      .name = "pad", .code = std::move(code), .global = {items, 1, 1}, .local = {group_size, 1, 1}};
}

Status LowerPad(Planner& planner, const Node& node) {
  const std::string mode = node.String("mode", "constant");
  TensorRef x = planner.Input(node, 0);
  PLUGIN_ASSIGN_OR_RETURN(Padded padded, ReadPads(planner, node, x->shape));
  if (mode == "constant") return PadWithConstant(planner, node, x, std::move(padded));
  if (ElementCount(x->shape) == 0 && ElementCount(padded.shape) > 0) {
    return Failure("expected elements to pad with, got {}", x->shape);
  }
  PLUGIN_ASSIGN_OR_RETURN(x, planner.Contiguous(x));
  Shape shape = padded.shape;
  return planner.SetOutput(
      node, 0,
      planner.FromRoot(
          x->type, std::move(shape),
          [x, padded = std::move(padded), inside = PlaceInside(mode), size = planner.group_size()](
              KernelWriter& writer) { return WritePad(writer, x, padded, inside, size); }));
}

bool Pads(const Graph&, const Node& node) {
  const std::string mode = node.String("mode", "constant");
  const auto pads = node.Ints("pads", {});
  return (mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap") &&
         std::none_of(pads.begin(), pads.end(), [](int64_t pad) { return pad < 0; });
}

}  // namespace

std::span<const Operator> PadOperators() {
  static constexpr Operator kRows[] = {
      {.type = "Pad", .lower = LowerPad, .known_inputs = 2 | 8, .accepts = Pads}};
  return kRows;
}

}  // namespace codegen
