// What the library says about a model file without opening it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "model.h"

namespace tenon::cli {

// The object of TenonApi::DescribeModel, with the sizes that `dims` (NAME=SIZE) give. Throws Error.
nlohmann::ordered_json DescribeModel(const std::string& path, const std::vector<std::string>& dims);

// The inputs in such an object. The kind of what is no tensor is ONNX_TYPE_UNKNOWN.
std::vector<ValueSpec> InputsOf(const nlohmann::ordered_json& description);

}  // namespace tenon::cli
