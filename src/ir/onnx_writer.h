// Writes ONNX models.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "ir/external_data.h"
#include "ir/model.h"

namespace tenon {

struct WriteOptions {
  // A file beside the model that takes the elements of large initializers; "" for none.
  std::string external_data_file;
  // Initializers of at least this many bytes go there.
  size_t external_data_threshold = 1024;
  // If set, decides instead: where an initializer's elements are, which then somebody else writes,
  // or nothing for those that go into the model.
  std::function<Result<std::optional<ExternalLocation>>(const std::string& name,
                                                        const Tensor& tensor)>
      place_initializer = {};
};

// A serialized ModelProto. Its external data, if any, is written into `folder` ("" or ending in
// '/'). Any model that ReadModel gave can be written, and so can edited ones: nodes come in
// topological order, values whose names clash get others, an Identity makes each output that its
// value cannot be, and domains that nodes use are imported. Errors: kInvalidGraph for cycles and
// for nodes of a version that the model does not import; kInvalidArgument for a model of 2 GiB or
// more, which no protobuf reader takes, and for an external_data_file that is no plain file name.
Result<std::string> WriteModel(const Model& model, const WriteOptions& options = {},
                               const std::string& folder = "");

// A serialized TensorProto of a tensor that the CPU can read. Error: kInvalidArgument for 2 GiB or
// more.
Result<std::string> WriteTensorMessage(const std::string& name, const Tensor& tensor);

// Writes the model, and its external data before it, each replaced as a whole: a model may be
// written over the files that it was read from. Errors: those of WriteModel, and what the system
// says.
Status WriteModelFile(const Model& model, const std::string& path,
                      const WriteOptions& options = {});

}  // namespace tenon
