#include "description.h"

#include <tenon_c_api.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "array.h"
#include "progress.h"
#include "text.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

// Of an input, in which dimensions that are not known get names, as Model gives them.
ValueSpec SpecOf(const Json& input) {
  constexpr std::string_view kTensor = "tensor(";
  ValueSpec spec;
  spec.name = input["name"].get<std::string>();
  const auto type = input["type"].get<std::string>();
  if (!type.starts_with(kTensor)) {
    spec.kind = ONNX_TYPE_UNKNOWN;
    return spec;
  }
  spec.type =
      FindNamedElementType(type.substr(kTensor.size(), type.size() - kTensor.size() - 1)).id;
  if (input["shape"].is_null()) return spec;
  spec.shape.emplace();
  for (const Json& dim : input["shape"]) {
    DimSpec& added = spec.shape->emplace_back();
    if (dim.is_string()) {
      added.name = dim.get<std::string>();
    } else {
      added.size = dim.get<int64_t>();
    }
  }
  return spec;
}

}  // namespace

Json DescribeModel(const std::string& path, const std::vector<std::string>& dims) {
  std::vector<const char*> names;
  std::vector<int64_t> sizes;
  const DimSizes parsed = ParseDims(dims);
  for (const auto& [name, size] : parsed) {
    names.push_back(name.c_str());
    sizes.push_back(size);
  }
  Ort::AllocatorWithDefaultOptions allocator;
  char* text = nullptr;
  const Progress progress("reading " + path);
  const Ort::Status status(TenonGetApi(TENON_API_VERSION)
                               ->DescribeModel(path.c_str(), names.data(), sizes.data(),
                                               names.size(), allocator, &text));
  if (!status.IsOK()) {
    const bool is_usage = status.GetErrorCode() == ORT_INVALID_ARGUMENT && !parsed.empty();
    throw Error(is_usage ? kExitUsage : kExitFailure, WithPath(path, status.GetErrorMessage()));
  }
  Json json = Json::parse(text);
  allocator.Free(text);
  return json;
}

std::vector<ValueSpec> InputsOf(const Json& description) {
  std::vector<ValueSpec> specs;
  for (const Json& input : description["inputs"]) specs.push_back(SpecOf(input));
  return specs;
}

}  // namespace tenon::cli
