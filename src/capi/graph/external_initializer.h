// OrtExternalInitializerInfo: the position of an initializer's elements in a file.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <string>

#include "ir/model.h"

struct OrtExternalInitializerInfo {
  std::string path;  // relative to the model's folder
  int64_t offset = 0;
  size_t bytes = 0;
};

namespace tenon::capi {

// The position of a tensor of the model in an external file; null if it is not in one.
std::unique_ptr<OrtExternalInitializerInfo> NewExternalInitializerInfo(const Model& model,
                                                                       const Tensor& tensor);

}  // namespace tenon::capi
