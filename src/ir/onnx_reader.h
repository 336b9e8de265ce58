// Reads ONNX models: the wire format of ModelProto up to IR version 13.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "ir/model.h"

namespace tenon {

struct ReadOptions {
  // Folder of external data. If empty, a file's is its own folder, and a model given as bytes may
  // have no external data.
  std::string external_data_folder;
  // Files of external data by name that are read from here instead; copied while reading.
  std::map<std::string, std::span<const std::byte>> external_files = {};
  // Initializers of the main graph whose tensors are these instead of those in the file, wherever
  // it says that they are. Element type and shape must be the same.
  std::map<std::string, Tensor, std::less<>> initializers = {};
};

// Maps the file and reads it. Initializers are views into the mapping where alignment allows, and
// keep it alive. External data must lie in the model's folder (base/confined_path.h). The graphs
// are sound afterwards: every name is resolved, every value defined once, and there are no cycles.
// Whether the nodes conform to their schemas is asked of CheckModel (ir/checker.h). Dropped: names
// and doc strings of tensors in attributes.
// errors  kNoSuchFile       nothing has that name
//         kInvalidProtobuf  with the byte offset
//         kInvalidGraph     naming the node or value
//         kFail             no opset import, no IR version, or one above 13
//         kInvalidArgument  external data outside its place
//         kNotImplemented   opaque types, tensors in segments
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
