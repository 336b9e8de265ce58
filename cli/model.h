// A session for a model file, and the model's declarations.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

struct DimSpec {
  int64_t size = -1;  // -1: free
  std::string name;   // of a free dimension; "<input>.<axis>" if the model gives none
};

// An input or output.
struct ValueSpec {
  std::string name;
  ONNXType kind = ONNX_TYPE_TENSOR;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;  // of a tensor
  std::optional<std::vector<DimSpec>> shape;  // nothing if the rank is free
  // "float [batch, 3]"
  std::string Text() const;
};

using DimSizes = std::map<std::string, int64_t>;

struct SessionSettings {
  std::string model;
  int threads = 0;                      // 0: the library's choice
  std::vector<std::string> dims;        // NAME=SIZE
  std::vector<std::string> plugins;     // libraries with execution providers, most preferred first
  std::optional<size_t> plugin_device;  // of each provider; none: what suits most
  bool optimize = true;
  bool records_placement = false;  // records which provider takes which node
  std::string profile_prefix;      // of the file that a trace goes to; "": there is none
  std::map<std::string, std::string> config;
  OrtLoggingLevel log_level = ORT_LOGGING_LEVEL_ERROR;
  std::vector<std::string>* log = nullptr;  // gets the library's log instead of stderr
};

// Throws Error for a text that is not NAME=SIZE.
DimSizes ParseDims(const std::vector<std::string>& dims);

struct Model {
  explicit Model(const SessionSettings& settings);

  // The names of free dimensions of inputs.
  std::vector<std::string> FreeDims() const;

  std::string path;
  Ort::Env env;
  Ort::Session session{nullptr};
  double load_ms = 0;  // time to create the session
  std::vector<ValueSpec> inputs;
  std::vector<ValueSpec> outputs;
  DimSizes dims;  // as given; each is a free dimension of an input
};

// Runs the model once. `feeds` are the inputs in order, the results the outputs in order.
std::vector<Ort::Value> RunOnce(Model& model, const std::vector<Ort::Value>& feeds,
                                const Ort::RunOptions& options = Ort::RunOptions(nullptr));

// "'PATH': TEXT", or only the text if it already names the path.
std::string WithPath(const std::string& path, const std::string& text);

// Milliseconds since a fixed time.
double NowMs();

}  // namespace tenon::cli
