// OrtShapeInferContext: one call of a custom operator's shape function.
#pragma once

#include <onnxruntime_c_api.h>

#include <deque>

#include "capi/kernel/custom_op.h"
#include "ir/shape_context.h"

struct OrtShapeInferContext {
  OrtShapeInferContext(tenon::ShapeContext& node_context, const tenon::capi::CustomOp& custom_op)
      : context(node_context), op(custom_op) {}

  tenon::ShapeContext& context;
  const tenon::capi::CustomOp& op;
  std::deque<tenon::ValueType> given;  // what the client got of the inputs
};
