#include "runtime/copy_kernel.h"

namespace tenon {

Status CopyKernel::InferShapes(ShapeContext& context) const {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  return context.SetOutput(0, std::move(shape), context.InputType(0).element_type);
}

Status CopyKernel::Run(KernelContext& context) const {
  return transfers_.CopyTensor(context.Input(0), context.Output(0), context.stream());
}

std::unique_ptr<Node> MakeCopyNode(ValueId value, const std::string& value_name,
                                   const MemoryInfo& from, const MemoryInfo& into) {
  auto node = std::make_unique<Node>();
  node->op_type = into.device_type == DeviceType::kCpu   ? "MemcpyToHost"
                  : from.device_type == DeviceType::kCpu ? "MemcpyFromHost"
                                                         : "Memcpy";
  node->name = Format("{}_{}", node->op_type, value_name);
  node->inputs = {value};
  node->outputs = {value};
  return node;
}

}  // namespace tenon
