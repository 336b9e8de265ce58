#include "webnn/images.h"

namespace tenon::webnn {

Shape Widened(const Shape& shape, bool is_line, bool has_channels_last) {
  if (!is_line) return shape;
  if (has_channels_last) return Shape({shape[0], 1, shape[1], shape[2]});
  return Shape({shape[0], shape[1], 1, shape[2]});
}

Result<Image> ImageInput(NodeContext& context, size_t i) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(i));
  const size_t rank = builder.RankOf(x);
  if (rank == 4) return Image{x, false};
  if (rank != 3) {
    return NotImplemented("WebNN has two spatial axes, not {}", static_cast<int64_t>(rank) - 2);
  }
  TENON_ASSIGN_OR_RETURN(
      const Operand widened,
      builder.Reshape(x, Widened(builder.ShapeOf(x), true, context.has_channels_last())));
  return Image{widened, true};
}

Status SetImageOutput(NodeContext& context, Operand operand, bool is_line) {
  if (is_line) {
    TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
    TENON_ASSIGN_OR_RETURN(operand, context.builder().Reshape(operand, shape));
  }
  return context.SetOutput(0, operand);
}

Numbers SpatialSizes(const NodeContext& context, const Shape& shape) {
  const size_t first = context.has_channels_last() ? 1 : 2;
  return Numbers(shape.begin() + first, shape.begin() + first + shape.rank() - 2);
}

Result<WindowOptions> WindowOf(const NodeContext& context, std::span<const int64_t> kernel,
                               std::span<const int64_t> sizes) {
  TENON_ASSIGN_OR_RETURN(const WindowAttrs attrs, BindAttributes<WindowAttrs>(context.node()));
  TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs, kernel));
  WindowOptions options;
  if (window.rank == 1) options = {{0, 0}, {1}, {1}, {1}};
  for (size_t i = 0; i < window.rank; ++i) {
    const WindowDim dim = PaddedDim(window, i, sizes[i]);
    options.padding.insert(options.padding.end(), {dim.pad_begin, dim.pad_end});
    options.strides.push_back(dim.stride);
    options.dilations.push_back(dim.dilation);
    options.kernel.push_back(dim.kernel);
  }
  return options;
}

}  // namespace tenon::webnn
