// Kernels that a plugin registers for operators.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/logging.h"
#include "base/string_map.h"
#include "capi/packed_weights.h"
#include "ir/graph.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"

// Which nodes a kernel is for, and how it treats its inputs and outputs.
struct OrtKernelDef {
  std::string op_type;
  std::string domain;  // "" for ai.onnx
  std::string provider;
  int first_version = 0, last_version = 0;
  // By the name of a type parameter, or of an input or output with a fixed type.
  std::map<std::string, tenon::TypeSet, std::less<>> types;
  std::map<size_t, OrtMemType> input_memory, output_memory;
  struct Alias {
    int input, output;
  };
  std::vector<Alias> aliases;          // the output is the input's memory
  std::vector<Alias> mutable_aliases;  // the output may overwrite the input

  // Whether the kernel is for the node, whose types are known as far as they are inferred.
  bool IsFor(const tenon::Graph& graph, const tenon::Node& node) const;
};

struct OrtKernelDefBuilder {
  OrtKernelDef def;
};

namespace tenon::plugin {

// Whose kernels are made: a provider of a session, which outlives them.
struct KernelOwner {
  OrtEp* ep;
  const Logger& logger;  // the session's
  const StringMap& config;
  // Where packed weights are shared; null: nowhere.
  std::shared_ptr<capi::PackedWeights> packed_weights;
};

}  // namespace tenon::plugin

struct OrtKernelRegistry {
 public:
  // Errors: kInvalidArgument for a null; kFail if a kernel for some of the same nodes is there.
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
