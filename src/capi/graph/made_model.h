// Builds models from the graphs that clients make with OrtModelEditorApi.
#pragma once

#include "base/status.h"
#include "ir/model.h"

namespace tenon::capi {

struct MadeGraph;

// A model of that graph. Without `opsets`, which stands for those that are not known, nodes have no
// version. Error: kInvalidGraph for a name that nothing defines or two things do.
Result<Model> ModelOf(const MadeGraph& graph, const OpsetImports& opsets);

// Adds the graph's nodes and initializers to those of `model`, connected by their names. Its inputs
// and outputs, if it has any, become those of `model`. After an error `model` is unusable.
Status AddTo(Model& model, const MadeGraph& graph, const OpsetImports& opsets);

}  // namespace tenon::capi
