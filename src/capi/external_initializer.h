// OrtExternalInitializerInfo: a place in a file for an initializer's elements.
#pragma once

#include <onnxruntime_c_api.h>

#include <string>

struct OrtExternalInitializerInfo {
  std::string path;  // relative to the model's folder
  int64_t offset = 0;
  size_t bytes = 0;
};
