// Conv of one and two spatial axes.

#include "operators.h"
#include "product.h"
#include "window.h"

namespace codegen {
namespace {

// What all forms share: x is [n, channels, ...], w is [filters, channels / groups, ...].
struct Convolution {
  TensorRef x;
  TensorRef w;
  Window window;
  int64_t images;
  int64_t channels;  // of a group
  int64_t filters;   // of a group
  int64_t groups;
};

// Depth of the product: channels x kernel rows x kernel columns of a group.
int64_t Depth(const Convolution& c) { return c.channels * c.window.kernel[0] * c.window.kernel[1]; }

bool IsPointwise(const Window& w) {
  for (int axis = 0; axis < 2; ++axis) {
    if (w.kernel[axis] != 1 || w.strides[axis] != 1 || w.pads[axis] != 0 ||
        w.input[axis] != w.output[axis]) {
      return false;
    }
  }
  return true;
}

// The input as the matrix of all patches, which is never written: depth x pixels.
Product::Access PatchAccess(KernelWriter& writer, const Convolution& c) {
  const std::string size = writer.Int(c.channels * c.window.input[0] * c.window.input[1]);
  const std::string prepare = fmt::format("const int image = batch * {};", size);
  if (IsPointwise(c.window)) {
    return {prepare, fmt::format("X(image + depth * {} + col)",
                                 writer.Int(c.window.input[0] * c.window.input[1]))};
  }
  const WindowNames w(writer, c.window);
  const std::string row =
      fmt::format("col / {} * {} - {} + depth / {} % {} * {}", w.output[1], w.strides[0], w.pads[0],
                  w.kernel[1], w.kernel[0], w.dilations[0]);
  const std::string column = fmt::format("col % {} * {} - {} + depth % {} * {}", w.output[1],
                                         w.strides[1], w.pads[1], w.kernel[1], w.dilations[1]);
  const std::string channel = fmt::format("depth / ({} * {})", w.kernel[0], w.kernel[1]);
  return {prepare,
          fmt::format("PATCH({}, {}, {}, {}, {})", channel, row, column, w.input[0], w.input[1])};
}

// Zero outside of the image.
constexpr const char* kPatch = R"(
#define PATCH(c, y, x, height, width) \
  ((y) >= 0 && (y) < height && (x) >= 0 && (x) < width \
       ? X(image + ((c) * height + (y)) * width + (x)) : 0.0f)
)";

KernelBody WriteAsProduct(KernelWriter& writer, const Convolution& c, size_t group_size) {
  const Elements x = writer.Input(*c.x);
  Product product;
  product.batch = c.images * c.groups;
  product.m = c.filters;
  product.n = c.window.output[0] * c.window.output[1];
  product.k = Depth(c);
  product.a = [&c](KernelWriter& w) -> Product::Access {
    const Elements weights = w.Input(*c.w);
    const std::string depth = w.Int(Depth(c));
    return {fmt::format("const int group = batch % {} * {};", w.Int(c.groups),
                        w.Int(c.filters * Depth(c))),
            weights.Read(fmt::format("group + row * {} + depth", depth))};
  };
  product.b = [&c](KernelWriter& w) { return PatchAccess(w, c); };
  KernelBody body = WriteProduct(writer, product, group_size);
  body.name = "convolution";
  body.code = x.Macro("X") + kPatch + body.code;
  return body;
}

// One item for each element: for groups too small to make a matrix product worth it.
KernelBody WriteDirect(KernelWriter& writer, const Convolution& c, size_t group_size) {
  const Elements x = writer.Input(*c.x);
  const Elements weights = writer.Input(*c.w);
  const WindowNames w(writer, c.window);
  const int64_t count = c.images * c.groups * c.filters * c.window.output[0] * c.window.output[1];
  std::string code = fmt::format(
      "#define COUNT {}\n#define CHANNELS {}\n#define FILTERS {}\n#define GROUPS {}\n"
      "#define OH {}\n#define OW {}\n#define H {}\n#define W {}\n#define KH {}\n#define KW {}\n"
      "#define SH {}\n#define SW {}\n#define DH {}\n#define DW {}\n#define PH {}\n#define PW {}\n"
      "{}{}",
      writer.Int(count), writer.Int(c.channels), writer.Int(c.filters), writer.Int(c.groups),
      w.output[0], w.output[1], w.input[0], w.input[1], w.kernel[0], w.kernel[1], w.strides[0],
      w.strides[1], w.dilations[0], w.dilations[1], w.pads[0], w.pads[1], x.Macro("X"),
      weights.Macro("WEIGHTS"));
  code += R"(
  const int item = get_global_id(0);
  if (item >= COUNT) return;
  const int left = item % OW * SW - PW;
  const int top = item / OW % OH * SH - PH;
  const int filter = item / (OW * OH) % (FILTERS * GROUPS);
  const int image = item / (OW * OH * FILTERS * GROUPS);
  const int planes = (image * GROUPS + filter / FILTERS) * CHANNELS;
  const int kernels = filter * CHANNELS;
  float sum = 0.0f;
  for (int c = 0; c < CHANNELS; ++c)
    for (int ky = 0; ky < KH; ++ky) {
      const int row = top + ky * DH;
      if (row < 0 || row >= H) continue;
      for (int kx = 0; kx < KW; ++kx) {
        const int column = left + kx * DW;
        if (column >= 0 && column < W)
          sum = fma(X(((planes + c) * H + row) * W + column),
                    WEIGHTS(((kernels + c) * KH + ky) * KW + kx), sum);
      }
    }
  STORE(item, sum);
)";
  const auto items = (static_cast<size_t>(count) + group_size - 1) / group_size * group_size;
  return {.name = "convolution_direct",
          .code = std::move(code),
          .global = {items, 1, 1},
          .local = {group_size, 1, 1}};
}

Result<Convolution> ReadConvolution(Planner& planner, const Node& node) {
  Convolution c;
  PLUGIN_ASSIGN_OR_RETURN(c.x, planner.Contiguous(planner.Input(node, 0)));
  PLUGIN_ASSIGN_OR_RETURN(c.w, planner.Contiguous(planner.Input(node, 1)));
  const Shape& x = c.x->shape;
  const Shape& w = c.w->shape;
  c.groups = node.Int("group", 1);
  if (x.size() < 3 || x.size() > 4 || w.size() != x.size()) {
    return Failure("expected one or two spatial axes, got {} and {}", x, w);
  }
  if (c.groups < 1 || x[1] != w[1] * c.groups || w[0] % c.groups != 0) {
    return Failure("expected {} groups of {} channels, got {} and {}", c.groups, w[1], x, w);
  }
  c.images = x[0];
  c.channels = w[1];
  c.filters = w[0] / c.groups;
  PLUGIN_ASSIGN_OR_RETURN(c.window,
                          ReadWindow(node, x, {w.begin() + 2, w.end()}, /*ceil_mode=*/false));
  return c;
}

Status LowerConv(Planner& planner, const Node& node) {
  PLUGIN_ASSIGN_OR_RETURN(const Convolution c, ReadConvolution(planner, node));
  constexpr int64_t kSmall = 8;  // rows of a product that would leave most of its tile empty
  const bool is_direct = c.filters < kSmall;
  Shape shape = WindowResult(c.window, c.x->shape, c.filters * c.groups);
  TensorRef y = planner.FromRoot(c.x->type, shape,
                                 [c, is_direct, small = planner.group_size(),
                                  large = planner.max_group_size()](KernelWriter& writer) {
                                   return is_direct ? WriteDirect(writer, c, small)
                                                    : WriteAsProduct(writer, c, large);
                                 });
  if (planner.HasInput(node, 2)) {
    Shape bias_shape(shape.size() - 1, 1);
    bias_shape[0] = shape[1];
    PLUGIN_ASSIGN_OR_RETURN(const TensorRef bias,
                            planner.Reshape(planner.Input(node, 2), std::move(bias_shape)));
    y = planner.Expression(y->type, std::move(shape), "$0 + $1", {y, bias});
  }
  return planner.SetOutput(node, 0, y);
}

bool HasOneOrTwoSpatialAxes(const Graph& graph, const Node& node) {
  const auto& shape = graph.value(node.inputs[1]).shape;
  return shape && (shape->size() == 3 || shape->size() == 4);
}

}  // namespace

std::span<const Operator> ConvolutionOperators() {
  static constexpr Operator kRows[] = {
      {.type = "Conv", .lower = LowerConv, .types = kFloats, .accepts = HasOneOrTwoSpatialAxes},
  };
  return kRows;
}

}  // namespace codegen
