// OrtKernelInfo: a kernel's information about its node.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <memory>
#include <string>
#include <vector>

#include "base/logging.h"
#include "base/string_map.h"
#include "runtime/kernel_info.h"

namespace tenon::capi {

// Copied from the node, so that a copy of the info may outlive the graph. The session owns the
// logger and the config.
struct NodeDescription {
  NodeDescription(const KernelInfo& info, int since, const Logger& session_logger,
                  const StringMap& session_config);

  struct Edge {
    std::string name;  // "" if it is absent
    ValueType type;
  };

  std::string name, op_type, domain;
  int since_version;
  std::vector<Attribute> attributes;
  std::vector<Edge> inputs, outputs;
  std::vector<Value> constants;  // by input; kNone if it is not a constant
  const Logger& logger;
  const StringMap& config;
};

}  // namespace tenon::capi

struct OrtKernelInfo {
  std::shared_ptr<const tenon::capi::NodeDescription> node;
  const OrtEp* ep = nullptr;  // null if the kernel is not a plugin's
  // The runtime's information about the node, while a plugin makes its kernel; otherwise null.
  tenon::KernelInfo* making = nullptr;
};
