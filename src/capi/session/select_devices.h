// Selects devices if session options leave the choice to a policy or to a function of the client.
#pragma once

#include <vector>

#include "base/status.h"
#include "capi/env/env.h"
#include "capi/options/session_options.h"
#include "ir/model.h"

namespace tenon::capi {

// The plugins' providers that the policy, or the client's function, selects from the environment's
// devices for `model`; none if the options name providers. The CPU's, which is always the last, is
// not included. Error: kFail if the function fails, selects nothing, or selects something that it
// was not offered.
Result<std::vector<ProviderChoice>> SelectDevices(const OrtSessionOptions& options,
                                                  const Model& model,
                                                  const SharedEnvironment& environment);

// Writes the options of a device as entries of a session's config. Existing entries are kept unless
// `replace`.
void AddDeviceOptions(const OrtEpDevice& device, bool replace, StringMap& config);

// Adds the domains of operators of the device's plugin that are not there yet.
Status AddCustomOpDomains(const OrtEpDevice& device, OrtSessionOptions& options);

}  // namespace tenon::capi
