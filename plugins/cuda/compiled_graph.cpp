#include "compiled_graph.h"

#include <algorithm>
#include <cstring>

#include "device_call.h"
#include "host_values.h"
#include "kernels.h"
#include "run_recorder.h"
#include "support.h"

namespace cuda {
namespace {

// Plans of as many shapes are kept.
constexpr size_t kMaxPlans = 16;
constexpr size_t kAlignment = 256;

size_t Aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

// [n, channels, ...] with the channels moved to the end.
std::vector<std::byte> ChannelsLast(const HostTensor& tensor) {
  const size_t size = SizeOf(tensor.type);
  const auto channels = static_cast<size_t>(tensor.shape[1]);
  const auto inner =
      static_cast<size_t>(ElementCount({tensor.shape.begin() + 2, tensor.shape.end()}));
  std::vector<std::byte> bytes(tensor.bytes.size());
  size_t target = 0;
  for (size_t n = 0; n < static_cast<size_t>(tensor.shape[0]); ++n) {
    for (size_t i = 0; i < inner; ++i) {
      for (size_t c = 0; c < channels; ++c) {
        std::memcpy(&bytes[target], &tensor.bytes[((n * channels + c) * inner + i) * size], size);
        target += size;
      }
    }
  }
  return bytes;
}

}  // namespace

CompiledGraph::CompiledGraph(Context& context, const Target& target, DeviceTrace& trace,
                             Graph graph)
    : OrtNodeComputeInfo{},
      context_(context),
      target_(target),
      trace_(trace),
      graph_(std::move(graph)) {
  ort_version_supported = kAbiVersion;
  CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) -> OrtStatus* {
    *state = self;  // it is its own state
    return nullptr;
  };
  Compute = [](OrtNodeComputeInfo*, void* state, OrtKernelContext* kernel_context) -> OrtStatus* {
    return Guarded([&] { return static_cast<CompiledGraph*>(state)->Run(kernel_context); });
  };
  ReleaseState = [](OrtNodeComputeInfo*, void* state) {
    static_cast<CompiledGraph*>(state)->ReleasePlans();
  };
}

Result<std::unique_ptr<CompiledGraph>> CompiledGraph::Create(
    Context& context, const Target& target, DeviceTrace& trace, Graph graph,
    const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  std::unique_ptr<CompiledGraph> compiled(
      new CompiledGraph(context, target, trace, std::move(graph)));
  const std::vector<bool> wanted = ValuesToRead(compiled->graph_, target);
  for (const std::string& name : inputs) {
    const int value = compiled->graph_.Find(name);
    compiled->inputs_.push_back(value);
    compiled->is_read_.push_back(value >= 0 && wanted[static_cast<size_t>(value)]);
  }
  for (const std::string& name : outputs) {
    const int value = compiled->graph_.Find(name);
    if (value < 0) return Failure("output '{}' has no producer", name);
    compiled->outputs_.push_back(value);
  }
  PLUGIN_RETURN_IF_ERROR(compiled->UploadWeights());
  PLUGIN_ASSIGN_OR_RETURN(compiled->stream_, context.device.CreateStream());
  return compiled;
}

CompiledGraph::~CompiledGraph() {
  ReleasePlans();
  context_.device.Free(memory_);
  context_.device.DestroyStream(stream_);
}

void CompiledGraph::ReleasePlans() {
  const std::lock_guard lock(mutex_);
  executables_.clear();
}

Status CompiledGraph::UploadWeights() {
  weights_.resize(graph_.values.size());
  size_t total = 0;
  for (const ValueInfo& value : graph_.values) {
    if (value.constant) total += Aligned(value.constant->bytes.size());
  }
  if (total == 0) return Status();
  PLUGIN_ASSIGN_OR_RETURN(void* const memory, context_.device.Allocate(total));
  memory_ = static_cast<std::byte*>(memory);
  size_t offset = 0;
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    ValueInfo& value = graph_.values[i];
    if (!value.constant || value.constant->bytes.empty()) continue;
    weights_[i] = memory_ + offset;
    offset += Aligned(value.constant->bytes.size());
    PLUGIN_RETURN_IF_ERROR(Upload(value, weights_[i]));
    // Plans look at small ones.
    if (ElementCount(value.constant->shape) > kMaxKnownElements) {
      std::vector<std::byte>().swap(value.constant->bytes);
    }
  }
  return CU_CHECK(cuStreamSynchronize, context_.device.transfer_stream());
}

// A copy from pageable memory has left it when it returns.
Status CompiledGraph::Upload(const ValueInfo& value, void* target) {
  const HostTensor& data = *value.constant;
  CUstream const stream = context_.device.transfer_stream();
  const auto copy = [&](const std::vector<std::byte>& bytes, void* to) {
    return CU_CHECK(cuMemcpyHtoDAsync, reinterpret_cast<CUdeviceptr>(to), bytes.data(),
                    bytes.size(), stream);
  };
  if (value.layout == ValueInfo::Layout::kChannelsLast) return copy(ChannelsLast(data), target);
  if (value.layout == ValueInfo::Layout::kRowMajor) return copy(data.bytes, target);
  PLUGIN_ASSIGN_OR_RETURN(CUfunction const transpose,
                          context_.device.programs().Find(kTransposeSource, "transpose"));
  PLUGIN_ASSIGN_OR_RETURN(void* const staging, context_.device.Allocate(data.bytes.size(), stream));
  Status status = copy(data.bytes, staging);
  if (status.ok()) {
    const auto tiles = [](int64_t size) { return static_cast<unsigned>((size + 31) / 32); };
    void* const addresses[] = {staging, target};
    Number numbers[] = {static_cast<int32_t>(data.shape[0]), static_cast<int32_t>(data.shape[1])};
    status = LaunchKernel(transpose, {tiles(data.shape[1]), tiles(data.shape[0]), 1}, {32, 8, 1}, 0,
                          stream, addresses, numbers);
  }
  context_.device.Free(staging);
  return status;
}

OrtStatus* CompiledGraph::Run(OrtKernelContext* context) {
  void* given = nullptr;
  RETURN_IF_ORT_ERROR(ort->KernelContext_GetGPUComputeStream(context, &given));
  CUstream const stream = given ? static_cast<CUstream>(given) : stream_;
  RETURN_IF_ORT_ERROR(ToOrt(context_.device.MakeCurrent()));
  Feeds feeds;
  RETURN_IF_ORT_ERROR(ReadFeeds(context, stream, feeds));
  const std::lock_guard lock(mutex_);
  auto executable = FindExecutable(feeds);
  if (!executable.ok()) return ToOrt(executable.status());
  std::vector<void*> outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Shape& shape = (*executable)->outputs()[i].shape;
    OrtValue* value = nullptr;
    RETURN_IF_ORT_ERROR(
        ort->KernelContext_GetOutput(context, i, shape.data(), shape.size(), &value));
    RETURN_IF_ORT_ERROR(ort->GetTensorMutableData(value, &outputs.emplace_back(nullptr)));
  }
  std::vector<void*> copies;
  RETURN_IF_ORT_ERROR(ToOrt(Align(feeds, outputs, stream, copies)));
  const Status status = (*executable)->Run(stream, feeds.addresses, outputs, trace_);
  for (void* copy : copies) context_.device.Free(copy);
  RETURN_IF_ORT_ERROR(ToOrt(status));
  if (context_.recorder && copies.empty()) {
    context_.recorder->Add(*executable, stream, feeds.addresses, outputs);
  }
  return given ? nullptr : ToOrt(CU_CHECK(cuStreamSynchronize, stream));
}

// Kernels and libraries read 16 bytes at once: inputs elsewhere are copied.
Status CompiledGraph::Align(Feeds& feeds, std::span<void* const> outputs, CUstream stream,
                            std::vector<void*>& copies) {
  constexpr uintptr_t kBytes = 16;
  const auto is_aligned = [](const void* address) {
    return reinterpret_cast<uintptr_t>(address) % kBytes == 0;
  };
  for (size_t i = 0; i < feeds.addresses.size(); ++i) {
    if (is_aligned(feeds.addresses[i])) continue;
    const InputDescription& description = feeds.descriptions[i];
    const size_t size =
        static_cast<size_t>(ElementCount(description.shape)) * SizeOf(description.type);
    PLUGIN_ASSIGN_OR_RETURN(void* const copy, context_.device.Allocate(size, stream));
    copies.push_back(copy);
    PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuMemcpyDtoDAsync, reinterpret_cast<CUdeviceptr>(copy),
                                    reinterpret_cast<CUdeviceptr>(feeds.addresses[i]), size,
                                    stream));
    feeds.addresses[i] = copy;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_aligned(outputs[i])) {
      return Failure("output {}: expected memory aligned to {} bytes", i, kBytes);
    }
  }
  return Status();
}

OrtStatus* CompiledGraph::ReadFeeds(OrtKernelContext* context, CUstream stream, Feeds& feeds) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const OrtValue* value = nullptr;
    const void* data = nullptr;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    const int64_t* dims = nullptr;
    size_t rank = 0;
    RETURN_IF_ORT_ERROR(ort->KernelContext_GetInput(context, i, &value));
    RETURN_IF_ORT_ERROR(ort->GetTensorElementTypeAndShapeDataReference(value, &type, &dims, &rank));
    RETURN_IF_ORT_ERROR(ort->GetTensorData(value, &data));
    InputDescription& description = feeds.descriptions.emplace_back();
    description.type = FromOnnx(type);
    description.shape.assign(dims, dims + rank);
    feeds.addresses.push_back(const_cast<void*>(data));
    feeds.key.push_back(static_cast<int64_t>(rank));
    feeds.key.insert(feeds.key.end(), dims, dims + rank);
    if (is_read_[i]) {
      RETURN_IF_ORT_ERROR(ToOrt(ReadContents(stream, data, description)));
      feeds.key.insert(feeds.key.end(), description.known->begin(), description.known->end());
    }
  }
  return nullptr;
}

Status CompiledGraph::ReadContents(CUstream stream, const void* address,
                                   InputDescription& description) {
  HostTensor tensor{description.type, description.shape, {}};
  const int64_t count = ElementCount(description.shape);
  if (count > kMaxKnownElements || IsFloat(description.type)) {
    return Failure("expected at most {} integers for a shape, got {} elements", kMaxKnownElements,
                   count);
  }
  tensor.bytes.resize(static_cast<size_t>(count) * SizeOf(tensor.type));
  if (count > 0) {
    PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuMemcpyDtoHAsync, tensor.bytes.data(),
                                    reinterpret_cast<CUdeviceptr>(address), tensor.bytes.size(),
                                    stream));
    PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuStreamSynchronize, stream));
  }
  description.known = tensor.Integers();
  return Status();
}

Result<std::shared_ptr<Executable>> CompiledGraph::FindExecutable(const Feeds& feeds) {
  const auto it = std::find_if(executables_.begin(), executables_.end(),
                               [&](const Entry& entry) { return entry.key == feeds.key; });
  if (it != executables_.end()) {
    executables_.splice(executables_.begin(), executables_, it);
    return executables_.front().executable;
  }
  Planner planner(graph_, inputs_, outputs_, target_);
  PLUGIN_ASSIGN_OR_RETURN(Plan plan, planner.Make(feeds.descriptions));
  PLUGIN_ASSIGN_OR_RETURN(auto executable,
                          Executable::Create(context_.device, std::move(plan), weights_));
  executables_.push_front({feeds.key, std::shared_ptr<Executable>(std::move(executable))});
  if (executables_.size() > kMaxPlans) executables_.pop_back();
  return executables_.front().executable;
}

}  // namespace cuda
