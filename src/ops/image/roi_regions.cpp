#include "ops/image/roi_regions.h"

#include <cstdint>

namespace tenon {
namespace {

constexpr int64_t kMostPooled = INT32_MAX;

// For regions given as [regions, numbers].
Result<SymbolicShape> PooledShape(const ShapeContext& context, size_t maps, int64_t numbers,
                                  int64_t height, int64_t width) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(maps, 4));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape rois, context.InputOfRank(maps + 1, 2));
  if (rois[1].is_number() && rois[1].value() != numbers) {
    return InvalidArgument("input {}: expected regions of {} numbers, got {}", maps + 1, numbers,
                           rois);
  }
  if (height < 1 || width < 1 || height > kMostPooled || width > kMostPooled) {
    return InvalidArgument("expected an output of at least 1 x 1, got {} x {}", height, width);
  }
  return SymbolicShape{rois[0], x[1], Dim(height), Dim(width)};
}

}  // namespace

Result<SymbolicShape> PooledShape(const RoiAlignAttrs& attrs, const ShapeContext& context,
                                  size_t maps) {
  if (attrs.mode != "avg" && attrs.mode != "max") {
    return InvalidArgument("attribute 'mode': expected avg or max, got '{}'", attrs.mode);
  }
  const std::string& coordinates = attrs.coordinate_transformation_mode;
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel") {
    return InvalidArgument(
        "attribute 'coordinate_transformation_mode': expected half_pixel or output_half_pixel, got "
        "'{}'",
        coordinates);
  }
  if (attrs.sampling_ratio < 0 || attrs.sampling_ratio > kMostPooled) {
    return InvalidArgument("attribute 'sampling_ratio': expected at least 0, got {}",
                           attrs.sampling_ratio);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape rois, context.InputOfRank(maps + 1, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape images, context.InputOfRank(maps + 2, 1));
  if (rois[0].is_number() && images[0].is_number() && rois[0].value() != images[0].value()) {
    return InvalidArgument("input {}: expected {} images, one per region, got {}", maps + 2,
                           rois[0], images[0]);
  }
  return PooledShape(context, maps, 4, attrs.output_height, attrs.output_width);
}

Result<SymbolicShape> PooledShape(const MaxRoiPoolAttrs& attrs, const ShapeContext& context,
                                  size_t maps) {
  if (attrs.pooled_shape.size() != 2) {
    return InvalidArgument("attribute 'pooled_shape': expected 2 numbers, got {}",
                           attrs.pooled_shape.size());
  }
  return PooledShape(context, maps, 5, attrs.pooled_shape[0], attrs.pooled_shape[1]);
}

Status CheckImages(const Tensor& images, int64_t count, size_t input) {
  for (int64_t i = 0; i < images.size(); ++i) {
    const int64_t image = images.data<int64_t>()[i];
    if (image >= 0 && image < count) continue;
    return InvalidArgument("input {}: expected images in [0, {}), got {} at {}", input, count,
                           image, i);
  }
  return OkStatus();
}

}  // namespace tenon
