// Providers that want images with their channels last.
#pragma once

#include <vector>

#include "runtime/provider.h"

namespace tenon {

// What `provider` claims of `graph`. Where it prefers images with their channels last, the nodes
// that it claims and that have such a form get it (ir/channels_last.h), and it is asked again.
// Those that it then leaves get the standard's form back, and it is asked for the last time. The
// status is a failure to say what it prefers, a failure to claim is in `claims`.
Status ClaimInPreferredLayout(ExecutionProvider& provider, Graph& graph,
                              Result<std::vector<Claim>>& claims);

}  // namespace tenon
