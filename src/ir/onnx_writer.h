// Writes models, as ONNX or in ONNX Runtime's format.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "ir/external_data.h"
#include "ir/model.h"
#include "ir/model_format.h"

namespace tenon {

class ShapeFunctionTable;

struct WriteOptions {
  ModelFormat format = ModelFormat::kUnspecified;
  // If set, what ONNX Runtime lacks is replaced in a file in the ORT format (ReplaceForOrt); they
  // infer the types of the new values.
  const ShapeFunctionTable* shape_functions = nullptr;
  // An external file for the elements of large initializers; "" for none.
  std::string external_data_file;
  // Initializers of at least this many bytes go there.
  size_t external_data_threshold = 1024;
  // If set, it decides instead: it returns the position of an initializer's elements, which the
  // caller then writes, or nothing for initializers that go into the model.
  std::function<Result<std::optional<ExternalLocation>>(const std::string& name,
                                                        const Tensor& tensor)>
      place_initializer = {};
};

// A serialized ModelProto, or a file in the ORT format if that is asked for, for which
// ir/ort_writer.h says what holds; it has no external data. A ModelProto's external data, if any,
// is written into `folder` ("" or ending in
// '/'). Any model from ReadModel can be written, also after edits: nodes are written in topological
// order, values with equal names get other names, an Identity makes an output whose value cannot be
// the output itself, and the domains of nodes are imported. Errors: kInvalidGraph for cycles and
// for nodes of a version that the model does not import; kInvalidArgument for a model of 2 GiB or
// more, which no protobuf reader accepts, for an external_data_file that has a folder in its name,
// and for external data of a file in the ORT format.
Result<std::string> WriteModel(const Model& model, const WriteOptions& options = {},
                               const std::string& folder = "");

// A serialized TensorProto of a tensor that the CPU can read. Error: kInvalidArgument for 2 GiB or
// more.
Result<std::string> WriteTensorMessage(const std::string& name, const Tensor& tensor);

// Writes the model, and its external data before it, each replaced as a whole: a model may be
// written over the files that it was read from. Errors: those of WriteModel and of the file system.
Status WriteModelFile(const Model& model, const std::string& path,
                      const WriteOptions& options = {});

}  // namespace tenon
