// The choice of devices that session options leave to a policy or to a function of the client.
#pragma once

#include "base/status.h"
#include "capi/session_options.h"
#include "ir/model.h"

namespace tenon::capi {

// Asks the client's function, if there is one, which devices run `model`. Policies all come to the
// CPU. Error: what the function says, or a choice that it was not offered.
Status SelectDevices(const OrtSessionOptions& options, const Model& model);

}  // namespace tenon::capi
