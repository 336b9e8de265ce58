// OrtExternalInitializerInfo: a place in a file for an initializer's elements.
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

// Where a tensor of the model lies in a file beside it; null if it does not.
std::unique_ptr<OrtExternalInitializerInfo> NewExternalInitializerInfo(const Model& model,
                                                                       const Tensor& tensor);

}  // namespace tenon::capi
