// What training changes: parameters, the state of the optimizer, and the user's properties; and the
// files that keep them, in the format of ONNX Runtime's on-device training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tenon {

// A tensor of the model. Training changes the elements in place.
struct Parameter {
  Tensor value;  // none in a nominal checkpoint
  bool is_trained = true;
};

// The name of the only group that there is.
inline constexpr std::string_view kOptimizerGroup = "group0";

// The state of an optimizer.
struct OptimizerState {
  int64_t step = 0;  // so many are done
  float initial_learning_rate = 0.001f;
  float learning_rate = 0.001f;
  // By parameter: what the optimizer keeps of it, such as moments, by the names that the format has
  // for them.
  std::map<std::string, std::map<std::string, Tensor>, std::less<>> moments;
};

using Property = std::variant<int64_t, float, std::string>;

// Not thread-safe.
struct Checkpoint {
  std::map<std::string, Parameter, std::less<>> parameters;
  // The parameters have names only, until their values are set.
  bool is_nominal = false;
  // The elements of tensors are in a file of their own.
  bool has_external_data = false;
  OptimizerState optimizer;
  std::map<std::string, Property, std::less<>> properties;
};

// Reads the file, and <path>.data if its tensors are there. Every tensor has memory of its own.
// Errors: of opening the files; kFail for bytes that are no checkpoint, for another version than 1
// and 2, and for a tensor, by its name, whose elements do not fit its shape.
Result<Checkpoint> ReadCheckpoint(const std::string& path);
// The same from memory; kFail if the tensors are in another file.
Result<Checkpoint> ReadCheckpoint(std::span<const std::byte> bytes);

// Replaces the file, and <path>.data if the checkpoint has external data, each in one step. Error:
// kFail with the system's reason; kInvalidArgument for 2 GiB or more without external data.
Status WriteCheckpoint(const Checkpoint& checkpoint, const std::string& path,
                       bool with_optimizer_state);

}  // namespace tenon
