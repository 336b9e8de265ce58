// Providers that prefer images with their channels last (NHWC).
#pragma once

#include <vector>

#include "runtime/provider.h"

namespace tenon {

// Finds what `provider` claims of `graph`. If it prefers channels last, the nodes that it claims
// and that have such a form get it (ir/channels_last.h), and the provider is asked again. Nodes
// that it then leaves get the standard's form back, and it is asked a last time. The returned
// status is a failure to ask for the preference; a failure to claim is in `claims`.
Status ClaimInPreferredLayout(ExecutionProvider& provider, Graph& graph,
                              Result<std::vector<Claim>>& claims);

}  // namespace tenon
