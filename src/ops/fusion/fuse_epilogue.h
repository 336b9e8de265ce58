// What fused convolutions and matrix products share: an activation at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/rewrite.h"
#include "kernels/elementwise/activation.h"

namespace tenon {

// Patterns for any activation that an epilogue can have, applied to `inner`: one pattern for each
// domain. The activation's node is bound to "activation".
std::vector<Pattern> ActivationsOf(const Pattern& inner);

// That activation; nothing if its parameters are unknown.
std::optional<kernels::ActivationSpec> KnownActivation(const Match& match);
bool HasKnownParameters(const Match& match);

// Sets the attributes `activation` and `activation_params` to those of the match.
void AddActivation(const Match& match, std::vector<Attribute>& attributes);

// Whether a fused node has no activation yet, so that more can be added to its result.
bool HasNoActivation(const Node& node);

// Replaces or adds an attribute.
void SetAttribute(std::vector<Attribute>& attributes, std::string name, Attribute::Held held);

// Whether `name`, the output of the node bound to `node` and the root's output provably have the
// same shape, so that adding `name` broadcasts nothing.
bool AddsItsOwnShape(const Match& match, std::string_view name, std::string_view node);

}  // namespace tenon
