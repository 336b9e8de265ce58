// What fused convolutions and matrix products have in common: an activation at the end.
#pragma once

#include <string>
#include <vector>

#include "ir/rewrite.h"

namespace tenon {

// Any activation that an epilogue can be, applied to `inner`, in one pattern for each domain; its
// node is bound to "activation".
std::vector<Pattern> ActivationsOf(const Pattern& inner);

// Whether the parameters of that activation are known.
bool HasKnownParameters(const Match& match);

// Sets the attributes `activation` and `activation_params` to what the match has.
void AddActivation(const Match& match, std::vector<Attribute>& attributes);

// Whether a fused node has no activation yet, so that more can be added to its result.
bool HasNoActivation(const Node& node);

// Replaces or adds an attribute.
void SetAttribute(std::vector<Attribute>& attributes, std::string name, Attribute::Held held);

// Whether `name`, the output of the node bound to `node` and the root's output have provably one
// shape, so that adding it broadcasts nothing.
bool AddsItsOwnShape(const Match& match, std::string_view name, std::string_view node);

}  // namespace tenon
