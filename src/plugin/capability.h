// The nodes of a graph that a plugin claims.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <functional>
#include <vector>

#include "capi/graph/graph_view.h"
#include "runtime/provider.h"

// Passed to GetCapability; valid during the call.
struct OrtEpGraphSupportInfo {
  const tenon::capi::GraphView& view;
  // The provider's registered kernel for a node, or null.
  std::function<const OrtKernelDef*(const tenon::Node& node)> find_kernel;
  std::vector<tenon::Claim> claims;
};
