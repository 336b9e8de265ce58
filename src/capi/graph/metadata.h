// OrtModelMetadata: what a model says about itself.
#pragma once

#include <onnxruntime_c_api.h>

#include <string>

#include "ir/model.h"

// A copy, so that it may outlive the session.
struct OrtModelMetadata {
  std::string producer_name;
  std::string graph_name;
  std::string domain;
  std::string description;
  std::string graph_description;
  int64_t version = 0;
  tenon::Metadata custom;
};

namespace tenon::capi {

// For a client to release.
OrtModelMetadata* NewModelMetadata(const Model& model);

}  // namespace tenon::capi
