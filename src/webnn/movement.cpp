// Operators that move, repeat or drop elements.
#include <algorithm>
#include <numeric>

#include "webnn/emission.h"

namespace tenon::webnn {
namespace {

Numbers NumbersOf(const Shape& shape) { return Numbers(shape.begin(), shape.end()); }

// These only need the output's shape.
Status EmitReshape(NodeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  TENON_ASSIGN_OR_RETURN(const Operand y, context.builder().Reshape(x, shape));
  return context.SetOutput(0, y);
}

Status EmitTranspose(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  Numbers permutation = context.node().GetInts("perm");
  if (permutation.empty()) {
    permutation.resize(builder.RankOf(x));
    std::iota(permutation.rbegin(), permutation.rend(), 0);
  }
  for (int64_t& axis : permutation) {
    TENON_ASSIGN_OR_RETURN(axis, context.Axis(axis, builder.RankOf(x)));
  }
  TENON_ASSIGN_OR_RETURN(const Operand y, builder.Transpose(x, permutation));
  return context.SetOutput(0, y);
}

Status EmitConcat(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  Operands inputs;
  for (size_t i = 0; i < context.input_count(); ++i) {
    TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(i));
    inputs.push_back(x);
  }
  const int64_t fallback = context.since() < 4 ? 1 : 0;
  TENON_ASSIGN_OR_RETURN(const int64_t axis, context.Axis(context.node().GetInt("axis", fallback),
                                                          builder.RankOf(inputs.front())));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  const DataType type = builder.TypeOf(inputs.front());
  TENON_ASSIGN_OR_RETURN(
      const Operand y,
      builder.Call("concat", {{"inputs", std::move(inputs)}, {"", axis}}, {}, {type, shape}));
  return context.SetOutput(0, y);
}

Status EmitSplit(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const int64_t axis,
                         context.Axis(context.node().GetInt("axis", 0), builder.RankOf(x)));
  Numbers sizes;
  std::vector<Descriptor> results;
  for (size_t i = 0; i < context.node().outputs.size(); ++i) {
    if (!context.HasOutput(i)) return NotImplemented("an output of Split is left out");
    TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(i));
    sizes.push_back(shape[static_cast<size_t>(axis)]);
    results.push_back({builder.TypeOf(x), shape});
  }
  constexpr std::string_view kOutputs = "outputs";
  TENON_ASSIGN_OR_RETURN(const Operands made,
                         builder.CallForSeveral("split", {{"input", x}, {"", std::move(sizes)}},
                                                {{"axis", axis}}, results, {&kOutputs, 1}));
  for (size_t i = 0; i < made.size(); ++i) TENON_RETURN_IF_ERROR(context.SetOutput(i, made[i]));
  return OkStatus();
}

// The elements that Slice takes of one axis, from the front.
struct Range {
  int64_t start = 0, step = 1, count = 0;
};

// As in ONNX, negative numbers count from the end, and the part outside is cut off.
Range RangeOf(int64_t start, int64_t end, int64_t step, int64_t size) {
  if (start < 0) start += size;
  if (end < 0) end += size;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, size);
    end = std::clamp<int64_t>(end, 0, size);
    return {start, step, std::max<int64_t>(0, (end - start + step - 1) / step)};
  }
  start = std::clamp<int64_t>(start, -1, size - 1);
  end = std::clamp<int64_t>(end, -1, size - 1);
  return {start, step, std::max<int64_t>(0, (start - end - step - 1) / -step)};
}

struct Slicing {
  Numbers starts, ends, axes, steps;
};

// Attributes before opset 10, constant inputs since.
Result<Slicing> ReadSlicing(NodeContext& context, size_t rank) {
  Slicing slicing;
  TENON_ASSIGN_OR_RETURN(slicing.starts, context.IntegersOr(1, "starts"));
  TENON_ASSIGN_OR_RETURN(slicing.ends, context.IntegersOr(2, "ends"));
  TENON_ASSIGN_OR_RETURN(slicing.axes, context.IntegersOr(3, "axes"));
  TENON_ASSIGN_OR_RETURN(slicing.steps, context.IntegersOr(4, ""));
  if (slicing.axes.empty()) {
    slicing.axes.resize(slicing.starts.size());
    std::iota(slicing.axes.begin(), slicing.axes.end(), 0);
  }
  if (slicing.steps.empty()) slicing.steps.assign(slicing.starts.size(), 1);
  for (int64_t& axis : slicing.axes) {
    TENON_ASSIGN_OR_RETURN(axis, context.Axis(axis, rank));
  }
  const size_t count = slicing.starts.size();
  if (slicing.ends.size() != count || slicing.axes.size() != count ||
      slicing.steps.size() != count) {
    return InvalidArgument("starts, ends, axes and steps of different sizes");
  }
  return slicing;
}

// Axes with negative steps are reversed first.
Status EmitSlice(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(Operand x, context.Input(0));
  const Shape shape = builder.ShapeOf(x);
  TENON_ASSIGN_OR_RETURN(const Slicing slicing, ReadSlicing(context, shape.rank()));
  Numbers starts(shape.rank(), 0), sizes = NumbersOf(shape), steps(shape.rank(), 1), reversed;
  Shape result = shape;
  for (size_t i = 0; i < slicing.axes.size(); ++i) {
    const auto axis = static_cast<size_t>(slicing.axes[i]);
    if (slicing.steps[i] == 0) return InvalidArgument("a step of 0");
    const Range range = RangeOf(slicing.starts[i], slicing.ends[i], slicing.steps[i], shape[axis]);
    const bool goes_back = range.step < 0;
    if (goes_back) reversed.push_back(slicing.axes[i]);
    starts[axis] = goes_back ? shape[axis] - 1 - range.start : range.start;
    steps[axis] = std::abs(range.step);
    sizes[axis] = range.count == 0 ? 0 : (range.count - 1) * steps[axis] + 1;
    result[axis] = range.count;
  }
  if (!reversed.empty()) {
    TENON_ASSIGN_OR_RETURN(x, builder.Unary("reverse", x, {{"axes", reversed}}));
  }
  const bool has_steps =
      std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step != 1; });
  Parameters options;
  if (has_steps) options.push_back({"strides", steps});
  TENON_ASSIGN_OR_RETURN(const Operand y,
                         builder.Call("slice", {{"input", x}, {"", starts}, {"", sizes}},
                                      std::move(options), {builder.TypeOf(x), result}));
  return context.SetOutput(0, y);
}

Status EmitPad(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  const Node& node = context.node();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  const size_t rank = builder.RankOf(x);
  TENON_ASSIGN_OR_RETURN(const Numbers pads, context.IntegersOr(1, "pads"));
  Numbers axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (context.HasInput(3)) {
    TENON_ASSIGN_OR_RETURN(axes, context.Integers(3));
  }
  if (pads.size() != 2 * axes.size()) return InvalidArgument("pads of {} axes", axes.size());
  Numbers begin(rank, 0), end(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const int64_t axis, context.Axis(axes[i], rank));
    begin[static_cast<size_t>(axis)] = pads[i];
    end[static_cast<size_t>(axis)] = pads[axes.size() + i];
    if (pads[i] < 0 || pads[axes.size() + i] < 0) return NotImplemented("negative pads");
  }
  const std::string_view mode = node.GetString("mode", "constant");
  Parameters options;
  if (mode == "constant") {
    double value = node.GetFloat("value", 0);
    if (context.HasInput(2)) {
      TENON_ASSIGN_OR_RETURN(value, context.Number(2));
    }
    options = {{"mode", mode}, {"value", value}};
  } else if (mode == "edge") {
    options = {{"mode", mode}};
  } else if (mode == "reflect") {
    options = {{"mode", std::string_view("reflection")}};
    for (size_t i = 0; i < rank; ++i) {
      const int64_t size = builder.ShapeOf(x)[i];
      if (begin[i] >= size || end[i] >= size) return NotImplemented("pads as long as the axis");
    }
  } else {
    return NotImplemented("WebNN does not pad by mode '{}'", mode);
  }
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  TENON_ASSIGN_OR_RETURN(const Operand y,
                         builder.Call("pad", {{"input", x}, {"", begin}, {"", end}},
                                      std::move(options), {builder.TypeOf(x), shape}));
  return context.SetOutput(0, y);
}

Status EmitExpand(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  TENON_ASSIGN_OR_RETURN(const Operand y,
                         builder.Call("expand", {{"input", x}, {"", NumbersOf(shape)}}, {},
                                      {builder.TypeOf(x), shape}));
  return context.SetOutput(0, y);
}

Status EmitTile(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Numbers repeats, context.Integers(1));
  if (repeats.size() != builder.RankOf(x)) return NotImplemented("Tile-1, along one axis");
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  TENON_ASSIGN_OR_RETURN(const Operand y, builder.Call("tile", {{"input", x}, {"", repeats}}, {},
                                                       {builder.TypeOf(x), shape}));
  return context.SetOutput(0, y);
}

Status EmitTrilu(NodeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  double diagonal = 0;
  if (context.HasInput(1)) {
    TENON_ASSIGN_OR_RETURN(diagonal, context.Number(1));
  }
  const bool is_upper = context.node().GetInt("upper", 1) != 0;
  TENON_ASSIGN_OR_RETURN(
      const Operand y,
      context.builder().Unary("triangular", x,
                              {{"upper", is_upper}, {"diagonal", static_cast<int64_t>(diagonal)}}));
  return context.SetOutput(0, y);
}

// Channels become blocks of an image: [n, c, h, w] as [n, c', h b, w b].
Status EmitDepthToSpace(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  const Shape in = b.ShapeOf(x);
  const int64_t block = context.node().GetInt("blocksize", 1);
  const bool is_dcr = context.node().GetString("mode", "DCR") == "DCR";
  const int64_t depth = shape[1];
  const Shape split = is_dcr ? Shape({in[0], block, block, depth, in[2], in[3]})
                             : Shape({in[0], depth, block, block, in[2], in[3]});
  const Numbers permutation = is_dcr ? Numbers{0, 3, 4, 1, 5, 2} : Numbers{0, 1, 4, 2, 5, 3};
  TENON_ASSIGN_OR_RETURN(const Operand divided, b.Reshape(x, split));
  TENON_ASSIGN_OR_RETURN(const Operand moved, b.Transpose(divided, permutation));
  TENON_ASSIGN_OR_RETURN(const Operand y, b.Reshape(moved, shape));
  return context.SetOutput(0, y);
}

Status EmitSpaceToDepth(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  const Shape in = b.ShapeOf(x);
  const int64_t block = context.node().GetInt("blocksize", 1);
  const bool is_dcr = context.node().GetString("mode", "DCR") == "DCR";
  const Shape split = Shape({in[0], in[1], shape[2], block, shape[3], block});
  const Numbers permutation = is_dcr ? Numbers{0, 3, 5, 1, 2, 4} : Numbers{0, 1, 3, 5, 2, 4};
  TENON_ASSIGN_OR_RETURN(const Operand divided, b.Reshape(x, split));
  TENON_ASSIGN_OR_RETURN(const Operand moved, b.Transpose(divided, permutation));
  TENON_ASSIGN_OR_RETURN(const Operand y, b.Reshape(moved, shape));
  return context.SetOutput(0, y);
}

constexpr std::string_view kConstantShape = "the shape follows from constants and shapes";

constexpr Row kRows[] = {
    {"Concat", EmitConcat, "concat"},
    {"DepthToSpace", EmitDepthToSpace, "transpose"},
    {"Expand", EmitExpand, "expand", kConstantShape},
    {"Flatten", EmitReshape, "reshape", "", "", true},
    {"Pad", EmitPad, "pad", "constant, not negative pads; modes constant, edge and reflect"},
    {"Reshape", EmitReshape, "reshape", kConstantShape, "", true},
    {"Slice", EmitSlice, "slice", "constant bounds", "", true},
    {"SpaceToDepth", EmitSpaceToDepth, "transpose"},
    {"Split", EmitSplit, "split", "constant sizes"},
    {"Squeeze", EmitReshape, "reshape", "constant axes", "", true},
    {"Tile", EmitTile, "tile", "constant repeats, since opset 6"},
    {"Transpose", EmitTranspose, "transpose", "", "", true},
    {"Trilu", EmitTrilu, "triangular", "constant diagonal"},
    {"Unsqueeze", EmitReshape, "reshape", "constant axes", "", true},
};

}  // namespace

TENON_WEBNN_FAMILY(Movement, kRows);

}  // namespace tenon::webnn
