// The choice of devices that session options leave to a policy or to a function of the client.
#pragma once

#include <vector>

#include "base/status.h"
#include "capi/env.h"
#include "capi/session_options.h"
#include "ir/model.h"

namespace tenon::capi {

// The providers of plugins that the policy, or the client's function, chooses among the
// environment's devices for `model`; none if the options name providers. The CPU's, which always
// comes after them, is not among them. Error: kFail if the function fails, or chooses nothing or
// what it was not offered.
Result<std::vector<ProviderChoice>> SelectDevices(const OrtSessionOptions& options,
                                                  const Model& model,
                                                  const SharedEnvironment& environment);

// Writes the options of a device as entries of a session's config; where there is one already, only
// if `replace`.
void AddDeviceOptions(const OrtEpDevice& device, bool replace, StringMap& config);

// Adds the domains of operators that the device's plugin brings, those that are there not again.
Status AddCustomOpDomains(const OrtEpDevice& device, OrtSessionOptions& options);

}  // namespace tenon::capi
