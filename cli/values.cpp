#include "values.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "file.h"
#include "npy.h"
#include "text.h"
#include "wav.h"

namespace tenon::cli {
namespace {

std::optional<double> ParseNumber(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

// The shape of an input whose values do not come from a file.
std::vector<int64_t> GeneratedShape(const ValueSpec& input, const DimSizes& dims) {
  std::vector<int64_t> shape;
  if (!input.shape) return shape;
  for (const DimSpec& dim : *input.shape) {
    const auto given = dims.find(dim.name);
    shape.push_back(dim.size >= 0 ? dim.size : given != dims.end() ? given->second : 1);
  }
  return shape;
}

void FillRandom(Array& array, std::mt19937_64& generator) {
  const size_t count = ElementCount(array.shape);
  for (size_t i = 0; i < count; ++i) {
    // Uses the upper bits directly, because the standard's distributions differ between libraries.
    const uint64_t bits = generator();
    const double value = IsFloatingPoint(array.type)
                             ? static_cast<double>(bits >> 40) / static_cast<double>(1 << 24)
                             : static_cast<double>(bits >> 63);
    WriteNumber(array.type, array.bytes.data(), i, value);
  }
}

// "V1" and "V2" in .npy files fit any type of that size that .npy has no name for.
bool IsSameType(ONNXTensorElementDataType wanted, ONNXTensorElementDataType got) {
  if (wanted == got) return true;
  const char* const a = ElementTypeOf(wanted).descr;
  const char* const b = ElementTypeOf(got).descr;
  return a != nullptr && b != nullptr && a[0] == 'V' && std::strcmp(a, b) == 0;
}

class FeedMaker {
 public:
  FeedMaker(const Model& model, const FeedSettings& settings)
      : model_(model), settings_(settings), generator_(settings.seed) {}

  // Parses one --input; `spec` is NAME=SOURCE or SOURCE.
  void Take(const std::string& spec) {
    for (const ValueSpec& input : model_.inputs) {
      if (spec.starts_with(input.name + "=")) {
        return Give(input, spec.substr(input.name.size() + 1));
      }
    }
    if (IsGenerated(spec)) {
      rest_ = spec;
    } else if (const size_t split = spec.find('='); split != spec.npos) {
      FailUnknownInput(spec.substr(0, split));
    } else {
      TakeUnnamedFile(spec);
    }
  }

  std::vector<Array> Finish(const std::string& otherwise) {
    if (rest_.empty()) rest_ = otherwise;
    std::vector<Array> arrays;
    for (const ValueSpec& input : model_.inputs) {
      const auto found = sources_.find(input.name);
      if (found == sources_.end() && rest_.empty()) {
        FailUsage("input '{}' ({}) has no value: give --input '{}=FILE', or --input random",
                  input.name, input.Text(), input.name);
      }
      arrays.push_back(MakeArrayFor(input, found == sources_.end() ? rest_ : found->second));
    }
    return arrays;
  }

 private:
  static bool IsGenerated(const std::string& source) {
    return source == "random" || source == "zeros";
  }

  void Give(const ValueSpec& input, const std::string& source) {
    if (!sources_.emplace(input.name, source).second) {
      FailUsage("--input: '{}' is given twice", input.name);
    }
  }

  [[noreturn]] void FailUnknownInput(const std::string& name) {
    std::vector<std::string> names;
    for (const ValueSpec& input : model_.inputs) names.push_back(input.name);
    FailUsage("--input: '{}' has no input '{}'{}; its inputs are: {}", model_.path, name,
              DidYouMean(name, names), Join(names, ", "));
  }

  void TakeUnnamedFile(const std::string& path) {
    const std::vector<std::byte> bytes = ReadFile(path);
    if (!IsNpz(bytes)) {
      if (model_.inputs.size() != 1) {
        FailUsage("--input: which of the {} inputs of '{}' is '{}'? Give NAME=FILE",
                  model_.inputs.size(), model_.path, path);
      }
      return Give(model_.inputs[0], path);
    }
    for (const auto& [name, array] : ReadNpz(bytes, Format("'{}'", path))) {
      const auto has_name = [&](const ValueSpec& input) { return input.name == name; };
      const auto input = std::find_if(model_.inputs.begin(), model_.inputs.end(), has_name);
      if (input == model_.inputs.end()) FailUnknownInput(name);
      Give(*input, path);
    }
  }

  Array MakeArrayFor(const ValueSpec& input, const std::string& source) {
    if (input.kind != ONNX_TYPE_TENSOR) {
      Fail("input '{}' is a {}; only tensors can be given", input.name, input.Text());
    }
    const std::optional<double> number = ParseNumber(source);
    const bool is_number = number && !std::filesystem::exists(source);
    if (IsGenerated(source) || is_number) {
      return Generate(input, source, is_number ? *number : 0);
    }
    Array array = ReadSource(input, source);
    CheckArray(input, array, source);
    return array;
  }

  Array Generate(const ValueSpec& input, const std::string& source, double number) {
    const std::vector<int64_t> shape = GeneratedShape(input, model_.dims);
    if (input.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING && source == "zeros") {
      return {input.type, shape, {}, std::vector<std::string>(ElementCount(shape))};
    }
    if (!IsNumber(input.type)) {
      Fail("input '{}': elements of type {} cannot be made from '{}'; give a file", input.name,
           ElementTypeOf(input.type).name, source);
    }
    Array array = MakeArray(input.type, shape);
    if (source == "random") {
      FillRandom(array, generator_);
    } else if (number != 0) {
      for (size_t i = 0; i < ElementCount(shape); ++i) {
        WriteNumber(input.type, array.bytes.data(), i, number);
      }
    }
    return array;
  }

  Array ReadSource(const ValueSpec& input, const std::string& path) {
    const std::vector<std::byte> bytes = ReadFile(path);
    const std::string name = Format("'{}'", path);
    if (IsNpy(bytes)) return ReadNpy(bytes, name);
    if (IsImage(bytes)) return ReadImage(bytes, path, input, model_.dims, settings_.image);
    if (IsWav(bytes)) return ReadWav(bytes, path, input, model_.dims);
    if (!IsNpz(bytes)) Fail("{}: expected a .npy, .npz, PNG, JPEG or WAV file", name);
    std::map<std::string, Array> arrays = ReadNpz(bytes, name);
    const auto found = arrays.size() == 1 ? arrays.begin() : arrays.find(input.name);
    if (found != arrays.end()) return std::move(found->second);
    std::vector<std::string> names;
    for (const auto& entry : arrays) names.push_back(entry.first);
    Fail("{}: no entry is named '{}'; there are: {}", name, input.name, Join(names, ", "));
  }

  const Model& model_;
  const FeedSettings& settings_;
  std::mt19937_64 generator_;
  std::map<std::string, std::string> sources_;
  std::string rest_;  // source of the inputs that have none
};

}  // namespace

void CheckArray(const ValueSpec& input, Array& array, const std::string& source) {
  bool fits = IsSameType(input.type, array.type);
  if (fits && input.shape) {
    fits = input.shape->size() == array.shape.size();
    for (size_t axis = 0; fits && axis < array.shape.size(); ++axis) {
      const int64_t size = (*input.shape)[axis].size;
      fits = size < 0 || size == array.shape[axis];
    }
  }
  if (!fits) {
    Fail("input '{}': expected {}, got {} {} in '{}'", input.name, input.Text(),
         ElementTypeOf(array.type).name, ShapeText(array.shape), source);
  }
  array.type = input.type;
}

std::vector<Array> MakeFeeds(const Model& model, const FeedSettings& settings,
                             const std::string& otherwise) {
  FeedMaker maker(model, settings);
  for (const std::string& spec : settings.inputs) maker.Take(spec);
  return maker.Finish(otherwise);
}

std::vector<Ort::Value> ToValues(std::vector<Array>& arrays) {
  const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator);
  std::vector<Ort::Value> values;
  for (Array& array : arrays) {
    array.bytes.reserve(1);  // an address for tensors without elements too
    const std::vector<int64_t>& shape = array.shape;
    if (array.type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
      values.push_back(Ort::Value::CreateTensor(memory, array.bytes.data(), array.bytes.size(),
                                                shape.data(), shape.size(), array.type));
      continue;
    }
    values.push_back(Ort::Value::CreateTensor(Ort::AllocatorWithDefaultOptions(), shape.data(),
                                              shape.size(), array.type));
    std::vector<const char*> texts;
    for (const std::string& text : array.strings) texts.push_back(text.c_str());
    values.back().FillStringTensor(texts.data(), texts.size());
  }
  return values;
}

Array ToArray(const Ort::Value& tensor) {
  const Ort::TensorTypeAndShapeInfo info = tensor.GetTensorTypeAndShapeInfo();
  Array array{info.GetElementType(), info.GetShape(), {}, {}};
  const size_t count = ElementCount(array.shape);
  if (array.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    for (size_t i = 0; i < count; ++i) array.strings.push_back(tensor.GetStringTensorElement(i));
  } else if (const size_t item = ElementTypeOf(array.type).bytes; item > 0 && count > 0) {
    const auto* const data = static_cast<const std::byte*>(tensor.GetTensorRawData());
    array.bytes.assign(data, data + count * item);
  }
  return array;
}

nlohmann::ordered_json DescribeFeeds(const Model& model, const std::vector<Array>& feeds) {
  auto inputs = nlohmann::ordered_json::array();
  for (size_t i = 0; i < feeds.size(); ++i) {
    inputs.push_back({{"name", model.inputs[i].name},
                      {"type", ElementTypeOf(feeds[i].type).name},
                      {"shape", feeds[i].shape}});
  }
  return inputs;
}

}  // namespace tenon::cli
