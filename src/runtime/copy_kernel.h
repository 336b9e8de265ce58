// The kernel of the steps that move values between memories.
#pragma once

#include "runtime/data_transfer.h"
#include "runtime/kernel.h"

namespace tenon {

// Output 0 is a copy of input 0, in the memory that the plan chose. `transfers` outlives the
// kernel.
class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(const DataTransfers& transfers) : transfers_(transfers) {}
  Status InferShapes(ShapeContext& context) const override;
  Status Run(KernelContext& context) const override;

 private:
  const DataTransfers& transfers_;
};

// The node of such a step: MemcpyToHost, MemcpyFromHost or Memcpy.
std::unique_ptr<Node> MakeCopyNode(ValueId value, const std::string& value_name,
                                   const MemoryInfo& from, const MemoryInfo& into);

}  // namespace tenon
