// Reads ONNX models: the wire format of ModelProto up to IR version 13.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "ir/model.h"

namespace tenon {

struct ReadOptions {
  // Folder for external data of models given as bytes; "" forbids external data for them.
  std::string external_data_folder;
  // Also used when the model came from a file: replaces the file's own folder if not empty.
};

// Maps the file and reads it. Initializers are views into the mapping where alignment allows, and
// keep it alive. External data must lie in the model's folder (base/confined_path.h). Errors:
// kNoSuchFile, kInvalidProtobuf with the byte offset, kInvalidGraph naming the node or value,
// kInvalidArgument for external data outside its place. The model is checked as onnx.checker does.
Result<Model> ReadModel(const std::string& path, const ReadOptions& options = {});

// The same from memory. `owner` keeps `bytes` alive as long as tensors point into them; if null,
// the initializers are copied.
Result<Model> ReadModel(std::span<const std::byte> bytes, std::shared_ptr<void> owner,
                        const ReadOptions& options = {});

// One TensorProto, e.g. a test's expected output.
Result<Tensor> ReadTensor(std::span<const std::byte> bytes);

// A FunctionProto, e.g. the body in a schema.
Result<Function> ReadFunction(std::span<const std::byte> bytes);

}  // namespace tenon
