// DepthToSpace and SpaceToDepth: blocks of pixels as channels.
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"
#include "ops/framework/strided_copy.h"

namespace tenon {
namespace {

struct BlockAttrs {
  int64_t blocksize = 0;
  std::string mode = "DCR";
  static constexpr auto Fields() {
    return std::tuple(Field("blocksize", &BlockAttrs::blocksize), Field("mode", &BlockAttrs::mode));
  }
};

Result<Dim> Divide(const Dim& dim, int64_t divisor, std::string_view what) {
  if (dim.is_number() && dim.value() % divisor != 0) {
    return InvalidArgument("input 0: expected a multiple of {} {}, got {}", divisor, what, dim);
  }
  return FloorDiv(dim, Dim(divisor));
}

Status CheckBlock(const BlockAttrs& attrs) {
  constexpr int64_t kMost = INT32_MAX;  // its square fits
  if (attrs.blocksize < 1 || attrs.blocksize > kMost) {
    return InvalidArgument("attribute 'blocksize': expected at least 1, got {}", attrs.blocksize);
  }
  if (attrs.mode != "DCR" && attrs.mode != "CRD") {
    return InvalidArgument("attribute 'mode': expected DCR or CRD, got '{}'", attrs.mode);
  }
  return OkStatus();
}

// DepthToSpace-13.
Status InferDepthToSpace(const BlockAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckBlock(attrs));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(0, 4));
  const Dim block(attrs.blocksize);
  TENON_ASSIGN_OR_RETURN(const Dim channels,
                         Divide(x[1], attrs.blocksize * attrs.blocksize, "channels"));
  return context.SetOutput(0, {x[0], channels, x[2] * block, x[3] * block});
}

// SpaceToDepth-13.
Status InferSpaceToDepth(const BlockAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckBlock(attrs));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(0, 4));
  TENON_ASSIGN_OR_RETURN(const Dim height, Divide(x[2], attrs.blocksize, "rows"));
  TENON_ASSIGN_OR_RETURN(const Dim width, Divide(x[3], attrs.blocksize, "columns"));
  return context.SetOutput(0, {x[0], x[1] * Dim(attrs.blocksize * attrs.blocksize), height, width});
}

// The same copy either way: `deep` is [n, channels b b, h, w], `wide` is [n, channels, h b, w b].
Status CopyBlocks(const BlockAttrs& attrs, const Shape& deep, bool to_wide,
                  KernelContext& context) {
  const int64_t b = attrs.blocksize;
  const int64_t channels = deep[1] / (b * b), h = deep[2], w = deep[3];
  const bool channel_last = attrs.mode == "CRD";
  const int64_t pixels = h * w;
  const int64_t row_block = channel_last ? b * pixels : b * channels * pixels;
  const int64_t column_block = channel_last ? pixels : channels * pixels;
  const int64_t channel = channel_last ? b * b * pixels : pixels;
  struct Axis {
    int64_t size, deep, wide;
  };
  // In the order of the wide layout.
  const Axis axes[] = {
      {deep[0] * (channel_last ? channels : 1), channel_last ? channel : deep[1] * pixels,
       channel_last ? b * b * pixels : deep[1] * pixels},
      {channel_last ? 1 : channels, channel, b * b * pixels},
      {h, w, b * b * w},
      {b, row_block, b * w},
      {w, 1, b},
      {b, column_block, 1}};
  StridedCopy copy(context.Input(0).type());
  for (const Axis& axis : axes) {
    TENON_RETURN_IF_ERROR(to_wide ? copy.AddAxis(axis.size, axis.deep, axis.wide)
                                  : copy.AddAxis(axis.size, axis.wide, axis.deep));
  }
  return copy.Run(context.Input(0).raw(), context.Output(0).raw(), context.threads());
}

Status RunDepthToSpace(const BlockAttrs& attrs, KernelContext& context) {
  return CopyBlocks(attrs, context.Input(0).shape(), true, context);
}

Status RunSpaceToDepth(const BlockAttrs& attrs, KernelContext& context) {
  return CopyBlocks(attrs, context.Output(0).shape(), false, context);
}

constexpr OpRow kRows[] = {
    Op<InferDepthToSpace, RunDepthToSpace>("DepthToSpace", {.since = 1, .types = kWholeByteTypes}),
    Op<InferSpaceToDepth, RunSpaceToDepth>("SpaceToDepth", {.since = 1, .types = kWholeByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(DepthToSpace, kRows);

}  // namespace tenon
