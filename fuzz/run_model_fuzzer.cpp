// Loads any bytes as a model, optimizes it, and runs it on small inputs. The outcome must be a
// result or a status, within bounded time and memory.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ir/onnx_reader.h"
#include "ops/cpu_provider.h"
#include "ops/framework/registry.h"
#include "runtime/environment.h"
#include "runtime/session.h"

namespace {

using namespace tenon;

constexpr int64_t kMostInputElements = 4096;
constexpr int64_t kFreeDimension = 2;

Environment& SharedEnvironment() {
  static EnvironmentOptions options = [] {
    EnvironmentOptions quiet;
    quiet.severity = Severity::kFatal;
    quiet.threads.threads = 1;
    return quiet;
  }();
  static auto* const environment = new Environment(options);
  return *environment;
}

// A tensor of the declared type with small numbers, or nothing if this fuzzer does not support the
// type.
Value MakeInput(const ValueType& type, uint32_t& state) {
  if (!type.is_tensor() || type.element_type == DataType::kString || !type.shape) return {};
  Shape shape;
  for (const Dim& dim : *type.shape) shape.Append(dim.number().value_or(kFreeDimension));
  const Result<int64_t> elements = shape.CheckedNumElements();
  if (!elements || *elements > kMostInputElements) return {};
  Result<Tensor> tensor = Tensor::Allocate(type.element_type, shape);
  if (!tensor) return {};
  for (int64_t i = 0; i < *elements; ++i) {
    state = state * 1664525u + 1013904223u;
    const int number = static_cast<int>(state >> 28) - 4;
    switch (type.element_type) {
      case DataType::kFloat:
        tensor->data<float>()[i] = static_cast<float>(number) / 2;
        break;
      case DataType::kDouble:
        tensor->data<double>()[i] = number / 2.0;
        break;
      case DataType::kInt64:
        tensor->data<int64_t>()[i] = number;
        break;
      case DataType::kInt32:
        tensor->data<int32_t>()[i] = number;
        break;
      case DataType::kInt8:
        tensor->data<int8_t>()[i] = static_cast<int8_t>(16 * number);
        break;
      case DataType::kUint8:
        tensor->data<uint8_t>()[i] = static_cast<uint8_t>(16 * number + 64);
        break;
      case DataType::kBool:
        tensor->data<bool>()[i] = number > 0;
        break;
      default:
        break;
    }
  }
  const bool is_filled =
      type.element_type == DataType::kFloat || type.element_type == DataType::kDouble ||
      type.element_type == DataType::kInt64 || type.element_type == DataType::kInt32 ||
      type.element_type == DataType::kInt8 || type.element_type == DataType::kUint8 ||
      type.element_type == DataType::kBool;
  if (!is_filled) std::memset(tensor->raw(), 0, tensor->bytes());
  return *std::move(tensor);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Result<Model> model = ReadModel(std::as_bytes(std::span(data, size)), nullptr);
  if (!model) return 0;
  SessionOptions options;
  options.config["session.memory_limit"] = "67108864";
  options.config["tenon.constant_folding_bytes"] = "4194304";
  options.optimization_level = size % 4 == 0 ? OptimizationLevel::kNone : OptimizationLevel::kAll;
  SessionParts parts;
  parts.providers.push_back(MakeCpuProvider());
  parts.shape_functions = &OpShapeFunctions();
  Result<std::unique_ptr<Session>> session =
      Session::Create(SharedEnvironment(), *std::move(model), options, std::move(parts));
  if (!session) return 0;

  uint32_t state = static_cast<uint32_t>(size);
  std::vector<std::string_view> names, output_names;
  std::vector<Value> feeds;
  for (const SessionValue& input : (*session)->inputs()) {
    names.push_back(input.name);
    feeds.push_back(MakeInput(input.type, state));
    if (!feeds.back().has_value()) return 0;
  }
  for (const SessionValue& output : (*session)->outputs()) output_names.push_back(output.name);
  RunOptions run;
  run.timeout = std::chrono::seconds(1);
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::vector<Value> fetches(output_names.size());
    (void)(*session)->Run(run, names, feeds, output_names, fetches).ok();
  }
  return 0;
}
