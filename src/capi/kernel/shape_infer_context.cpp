#include "capi/kernel/shape_infer_context.h"

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"

namespace tenon::capi {

OrtStatus* ShapeInferContext_GetInputCount(const OrtShapeInferContext* context,
                                           size_t* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(out);
    *out = context->context.input_count();
    return OkStatus();
  });
}

OrtStatus* ShapeInferContext_GetInputTypeShape(const OrtShapeInferContext* context, size_t index,
                                               OrtTensorTypeAndShapeInfo** info) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_ERROR(CheckIndex(index, context->context.input_count(), "inputs"));
    // The ABI has the context const, but its contents for the call are not.
    auto& given = const_cast<OrtShapeInferContext*>(context)->given;
    const bool is_there = context->context.HasInput(index);
    given.push_back(is_there ? context->context.InputType(index) : ValueType());
    *info = Wrap<OrtTensorTypeAndShapeInfo>(&given.back());
    return OkStatus();
  });
}

OrtStatus* ShapeInferContext_GetAttribute(const OrtShapeInferContext* context,
                                          const char* attr_name, const OrtOpAttr** attr) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(attr_name);
    TENON_RETURN_IF_NULL(attr);
    const Attribute* const found = context->context.node().FindAttribute(attr_name);
    if (found == nullptr) return Fail("there is no attribute '{}'", attr_name);
    *attr = Wrap<OrtOpAttr>(found);
    return OkStatus();
  });
}

OrtStatus* ShapeInferContext_SetOutputTypeShape(const OrtShapeInferContext* context, size_t index,
                                                const OrtTensorTypeAndShapeInfo* info) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(info);
    ShapeContext& node = context->context;
    TENON_RETURN_IF_ERROR(CheckIndex(index, node.output_count(), "outputs"));
    ValueType type = *Unwrap(info);
    const DataType declared = context->op.OutputType(index, node.output_count(),
                                                     [](size_t) { return DataType::kUndefined; });
    if (declared != DataType::kUndefined) {
      // Ort::ShapeInferContext::SetOutputShape says float unless told otherwise.
      type.element_type = declared;
    } else if (type.element_type == DataType::kUndefined) {
      type.element_type = context->op.OutputType(index, node.output_count(), [&](size_t i) {
        return i < node.input_count() && node.HasInput(i) ? node.InputType(i).element_type
                                                          : DataType::kUndefined;
      });
    }
    return node.SetOutputType(index, std::move(type));
  });
}

}  // namespace tenon::capi
