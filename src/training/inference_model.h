// Makes models for inference of what was trained.
#pragma once

#include <span>
#include <string>

#include "ir/model.h"
#include "training/checkpoint.h"

namespace tenon {

// Writes the part of an evaluation model that makes the values named `outputs`, with the parameters
// as initializers; inputs that nothing reads any more, such as labels, are left out. If the
// checkpoint has external data, so has the model, in <path>.data. Errors: kInvalidArgument without
// outputs, for a name that no value has, and for a nominal checkpoint; those of writing files.
Status WriteInferenceModel(Model model, std::span<const std::string> outputs,
                           const Checkpoint& checkpoint, const std::string& path);

}  // namespace tenon
