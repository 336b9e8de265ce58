// Reads models: ModelProto, the wire format of ONNX, up to IR version 14, and ONNX Runtime's
// format.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/mapped_file.h"
#include "base/status.h"
#include "ir/model.h"
#include "ir/model_format.h"

namespace tenon {

struct ReadOptions {
  ModelFormat format = ModelFormat::kUnspecified;
  // The folder of external data. If it is empty, the folder of the file is used, and a model given
  // as bytes may have no external data.
  std::string external_data_folder;
  // How files are read. Copies outlast what happens to the files.
  FileAccess access = FileAccess::kMap;
  // External-data files by name, which are read from memory instead; copied while reading.
  std::map<std::string, std::span<const std::byte>> external_files = {};
  // Whether they outlive the model, so that its tensors are views into them.
  bool do_external_files_stay = false;
  // Initializers of the main graph that these tensors replace, wherever the file says that their
  // data is. Element type and shape must be the same.
  std::map<std::string, Tensor, std::less<>> initializers = {};
  // Domains of operators that the caller has. A model that does not import one of them gets version
  // 1000, as with onnxruntime.
  std::vector<std::string> other_domains = {};
  // Whether there may be more of them.
  bool takes_any_domain = false;
};

// Maps the file, or copies it, and reads it. Initializers are views into it if they are aligned,
// and keep it alive. External data must lie in the model's folder (base/confined_path.h). The
// graphs are valid afterwards: every name is resolved, every value defined once, and there are no
// cycles. CheckModel (ir/checker.h) checks the nodes against their schemas. Dropped: names and doc
// strings of tensors in attributes. errors  kNoSuchFile       nothing has that name
//         kInvalidProtobuf  with the byte offset
//         kInvalidGraph     naming the node or value
//         kFail             no opset import, no IR version, or one above 14; a file in the ORT
//                           format that is damaged or newer (ir/ort_reader.h)
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
