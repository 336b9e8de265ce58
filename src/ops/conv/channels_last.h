// Replaces operators on channels-last images (NHWC) by those on NCHW.
#pragma once

#include "ir/rewrite.h"

namespace tenon {

// The replacement of com.microsoft's operators; the internal domain needs no rules.
const RuleSet& ChannelsLastRules();

// Nodes of `graph` and its subgraphs that have no provider yet and that are com.microsoft's
// NhwcConv and NhwcFusedConv, its QLinearConv, or of domain com.ms.internal.nhwc become the
// standard's operator (or FusedConv) between transposes; those whose rank is not known stay. The
// types of new values are not inferred. Returns how many changed.
size_t LowerChannelsLast(Graph& graph);

}  // namespace tenon
