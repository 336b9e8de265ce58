// Dropout in inference: the input, and a mask that keeps everything.
#include <algorithm>
#include <cstring>

#include "ops/families.h"

namespace tenon {
namespace {

Status InferDropout(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (context.HasOutput(1)) {
    TENON_RETURN_IF_ERROR(context.SetOutput(1, x, DataType::kBool));
  }
  return context.SetOutput(0, std::move(x));
}

// Up to opset 7 the mask has the type of the data.
Status InferOldDropout(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_RETURN_IF_ERROR(context.SetOutput(1, x));
  return context.SetOutput(0, std::move(x));
}

Status CopyInput(KernelContext& context) {
  if (context.HasInput(2) && *context.Input(2).data<bool>()) {
    return NotImplemented("training_mode = true");
  }
  const Tensor& x = context.Input(0);
  if (x.bytes() > 0 && x.raw() != context.Output(0).raw()) {
    std::memcpy(context.Output(0).raw(), x.raw(), x.bytes());
  }
  return OkStatus();
}

Status RunDropout(const NoAttrs&, KernelContext& context) {
  TENON_RETURN_IF_ERROR(CopyInput(context));
  if (context.HasOutput(1)) {
    std::fill_n(context.Output(1).data<bool>(), context.Output(1).size(), true);
  }
  return OkStatus();
}

Status RunOldDropout(const NoAttrs&, KernelContext& context) {
  if (context.HasOutput(1)) return NotImplemented("the mask of Dropout before opset 10");
  return CopyInput(context);
}

constexpr OpRow kRows[] = {
    Op<InferOldDropout, RunOldDropout>(
        "Dropout", {.since = 1, .types = kFloats, .traits = {.in_place_input = 0}}),
    Op<InferDropout, RunDropout>("Dropout",
                                 {.since = 10, .types = kFloats, .traits = {.in_place_input = 0}}),
};

}  // namespace

const std::span<const OpRow> kDropoutFamily = kRows;

}  // namespace tenon
