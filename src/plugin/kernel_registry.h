// Kernels that a plugin registers for operators.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <memory>
#include <string>
#include <vector>

#include "plugin/kernel_def.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"

namespace tenon::plugin {
struct KernelOwner;
}  // namespace tenon::plugin

struct OrtKernelRegistry {
 public:
  // Errors: kInvalidArgument for a null; kFail if there is already a kernel for some of the same
  // nodes.
  tenon::Status Add(const OrtKernelDef& def, OrtKernelCreateFunc create, void* state);

  // The kernel for a node, null if there is none.
  const OrtKernelDef* Find(const tenon::Graph& graph, const tenon::Node& node,
                           const std::string& provider) const;
  // Makes the kernel of a node that was found.
  tenon::Result<std::unique_ptr<tenon::Kernel>> MakeKernel(
      tenon::KernelInfo& info, const std::string& provider,
      const tenon::plugin::KernelOwner& owner) const;

 private:
  struct Entry {
    OrtKernelDef def;
    OrtKernelCreateFunc create;
    void* state;
  };
  const Entry* FindEntry(const tenon::Graph& graph, const tenon::Node& node,
                         const std::string& provider) const;

  // In the order in which they were added. Entries stay where they are.
  std::vector<std::unique_ptr<Entry>> entries_;
};
