#include "model.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "array.h"
#include "plugins.h"
#include "progress.h"
#include "text.h"

namespace tenon::cli {
namespace {

const char* KindName(ONNXType kind) {
  switch (kind) {
    case ONNX_TYPE_SEQUENCE:
      return "sequence";
    case ONNX_TYPE_MAP:
      return "map";
    case ONNX_TYPE_OPTIONAL:
      return "optional";
    case ONNX_TYPE_SPARSETENSOR:
      return "sparse tensor";
    default:
      return "value of unknown type";
  }
}

ValueSpec Describe(std::string name, const Ort::TypeInfo& type) {
  ValueSpec spec;
  spec.name = std::move(name);
  spec.kind = type.GetONNXType();
  if (spec.kind != ONNX_TYPE_TENSOR) return spec;
  const Ort::ConstTensorTypeAndShapeInfo tensor = type.GetTensorTypeAndShapeInfo();
  spec.type = tensor.GetElementType();
  if (!tensor.HasShape()) return spec;
  const std::vector<int64_t> sizes = tensor.GetShape();
  const std::vector<const char*> names = tensor.GetSymbolicDimensions();
  spec.shape.emplace();
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    DimSpec dim{sizes[axis], ""};
    if (dim.size < 0) dim.name = *names[axis] ? names[axis] : Format("{}.{}", spec.name, axis);
    spec.shape->push_back(std::move(dim));
  }
  return spec;
}

Ort::Env MakeEnv(const SessionSettings& settings) {
  if (settings.log == nullptr) return Ort::Env(settings.log_level, "tenon");
  const auto keep = [](void* log, OrtLoggingLevel, const char*, const char*, const char*,
                       const char* message) {
    static_cast<std::vector<std::string>*>(log)->emplace_back(message);
  };
  return Ort::Env(settings.log_level, "tenon", keep, settings.log);
}

Ort::SessionOptions OptionsOf(const SessionSettings& settings, Ort::Env& env) {
  Ort::SessionOptions options;
  if (settings.records_placement) {
    options.AddConfigEntry("session.record_ep_graph_assignment_info", "1");
  }
  for (const auto& [key, value] : settings.config) {
    options.AddConfigEntry(key.c_str(), value.c_str());
  }
  if (!settings.profile_prefix.empty()) options.EnableProfiling(settings.profile_prefix.c_str());
  UsePlugins(env, settings.plugins, settings.plugin_device, options);
  if (settings.threads > 0) options.SetIntraOpNumThreads(settings.threads);
  if (!settings.optimize) options.SetGraphOptimizationLevel(ORT_DISABLE_ALL);
  return options;
}

}  // namespace

std::string ValueSpec::Text() const {
  if (kind != ONNX_TYPE_TENSOR) return KindName(kind);
  const std::string name_of_type = ElementTypeOf(type).name;
  if (!shape) return name_of_type + " of any shape";
  std::vector<std::string> dims;
  for (const DimSpec& dim : *shape) {
    dims.push_back(dim.size < 0 ? dim.name : std::to_string(dim.size));
  }
  return Format("{} [{}]", name_of_type, Join(dims, ", "));
}

DimSizes ParseDims(const std::vector<std::string>& dims) {
  DimSizes sizes;
  for (const std::string& text : dims) {
    const size_t split = text.rfind('=');
    int64_t size = -1;
    if (split != text.npos) {
      const char* const end = text.data() + text.size();
      const auto parsed = std::from_chars(text.data() + split + 1, end, size);
      if (parsed.ec != std::errc() || parsed.ptr != end) size = -1;
    }
    if (size < 0) FailUsage("--dim: expected NAME=SIZE, got '{}'", text);
    sizes[text.substr(0, split)] = size;
  }
  return sizes;
}

Model::Model(const SessionSettings& settings)
    : path(settings.model), env(MakeEnv(settings)), dims(ParseDims(settings.dims)) {
  RegisterPlugins(env, settings.plugins);
  try {
    const Progress progress("loading " + path);
    const double start = NowMs();
    session = Ort::Session(env, path.c_str(), OptionsOf(settings, env));
    load_ms = NowMs() - start;
  } catch (const Ort::Exception& exception) {
    throw Error(kExitFailure, WithPath(path, exception.what()));
  }
  const std::vector<std::string> input_names = session.GetInputNames();
  for (size_t i = 0; i < input_names.size(); ++i) {
    inputs.push_back(Describe(input_names[i], session.GetInputTypeInfo(i)));
  }
  const std::vector<std::string> output_names = session.GetOutputNames();
  for (size_t i = 0; i < output_names.size(); ++i) {
    outputs.push_back(Describe(output_names[i], session.GetOutputTypeInfo(i)));
  }
  const std::vector<std::string> free_dims = FreeDims();
  for (const auto& [name, size] : dims) {
    if (std::find(free_dims.begin(), free_dims.end(), name) != free_dims.end()) continue;
    FailUsage("--dim: the inputs of '{}' have no free dimension '{}'{}", path, name,
              DidYouMean(name, free_dims));
  }
}

std::vector<std::string> Model::FreeDims() const {
  std::vector<std::string> names;
  for (const ValueSpec& input : inputs) {
    if (!input.shape) continue;
    for (const DimSpec& dim : *input.shape) {
      if (dim.size < 0) names.push_back(dim.name);
    }
  }
  return names;
}

std::vector<Ort::Value> RunOnce(Model& model, const std::vector<Ort::Value>& feeds,
                                const Ort::RunOptions& options) {
  std::vector<const char*> input_names;
  for (const ValueSpec& input : model.inputs) input_names.push_back(input.name.c_str());
  std::vector<const char*> output_names;
  for (const ValueSpec& output : model.outputs) output_names.push_back(output.name.c_str());
  try {
    return model.session.Run(options, input_names.data(), feeds.data(), feeds.size(),
                             output_names.data(), output_names.size());
  } catch (const Ort::Exception& exception) {
    throw Error(kExitFailure, WithPath(model.path, exception.what()));
  }
}

std::string WithPath(const std::string& path, const std::string& text) {
  return text.find(path) == text.npos ? Format("'{}': {}", path, text) : text;
}

double NowMs() {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return Milliseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tenon::cli
