#include "compiled_graph.h"

#include <algorithm>

#include "host_values.h"
#include "support.h"

namespace opencl {
namespace {

// Plans of as many shapes are kept.
constexpr size_t kMaxPlans = 16;

}  // namespace

CompiledGraph::CompiledGraph(Device& device, DeviceTrace& trace, Graph graph)
    : OrtNodeComputeInfo{}, device_(device), trace_(trace), graph_(std::move(graph)) {
  ort_version_supported = kAbiVersion;
  CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) -> OrtStatus* {
    *state = self;  // it is its own state
    return nullptr;
  };
  Compute = [](OrtNodeComputeInfo*, void* state, OrtKernelContext* context) -> OrtStatus* {
    return Guarded([&] { return static_cast<CompiledGraph*>(state)->Run(context); });
  };
  ReleaseState = [](OrtNodeComputeInfo*, void* state) {
    static_cast<CompiledGraph*>(state)->ReleasePlans();
  };
}

Result<std::unique_ptr<CompiledGraph>> CompiledGraph::Create(
    Device& device, DeviceTrace& trace, Graph graph, const std::vector<std::string>& inputs,
    const std::vector<std::string>& outputs) {
  std::unique_ptr<CompiledGraph> compiled(new CompiledGraph(device, trace, std::move(graph)));
  const std::vector<bool> wanted = ValuesToRead(compiled->graph_, device.target());
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
  PLUGIN_ASSIGN_OR_RETURN(compiled->queue_, device.CreateQueue());
  return compiled;
}

CompiledGraph::~CompiledGraph() {
  ReleasePlans();
  for (const cl_mem weight : weights_) {
    if (weight) Cl().clReleaseMemObject(weight);
  }
  if (queue_) Cl().clReleaseCommandQueue(queue_);
}

void CompiledGraph::ReleasePlans() {
  const std::lock_guard lock(mutex_);
  executables_.clear();
}

Status CompiledGraph::UploadWeights() {
  weights_.resize(graph_.values.size());
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    auto& constant = graph_.values[i].constant;
    if (!constant || constant->bytes.empty()) continue;
    cl_int error = CL_SUCCESS;
    weights_[i] = Cl().clCreateBuffer(device_.context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                      constant->bytes.size(), constant->bytes.data(), &error);
    PLUGIN_RETURN_IF_ERROR(Check(error, "clCreateBuffer"));
    // Plans look at small ones.
    if (ElementCount(constant->shape) > kMaxKnownElements)
      std::vector<std::byte>().swap(constant->bytes);
  }
  return Status();
}

OrtStatus* CompiledGraph::Run(OrtKernelContext* context) {
  void* stream = nullptr;
  RETURN_IF_ORT_ERROR(ort->KernelContext_GetGPUComputeStream(context, &stream));
  const auto queue = stream ? static_cast<cl_command_queue>(stream) : queue_;
  Feeds feeds;
  RETURN_IF_ORT_ERROR(ReadFeeds(context, queue, feeds));
  const std::lock_guard lock(mutex_);
  auto executable = FindExecutable(feeds);
  if (!executable.ok()) return ToOrt(executable.status());
  std::vector<Location> outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Shape& shape = (*executable)->outputs()[i].shape;
    OrtValue* value = nullptr;
    void* data = nullptr;
    RETURN_IF_ORT_ERROR(
        ort->KernelContext_GetOutput(context, i, shape.data(), shape.size(), &value));
    RETURN_IF_ORT_ERROR(ort->GetTensorMutableData(value, &data));
    Location& location = outputs.emplace_back();
    if (ElementCount(shape) == 0) continue;
    auto found = device_.memory().Find(data);
    if (!found.ok()) return ToOrt(found.status());
    location = *found;
  }
  RETURN_IF_ORT_ERROR(ToOrt((*executable)->Run(queue, feeds.locations, outputs, trace_)));
  return stream ? nullptr : ToOrt(Check(Cl().clFinish(queue), "clFinish"));
}

OrtStatus* CompiledGraph::ReadFeeds(OrtKernelContext* context, cl_command_queue queue,
                                    Feeds& feeds) {
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
    Location& location = feeds.locations.emplace_back();
    if (ElementCount(description.shape) > 0) {
      auto found = device_.memory().Find(data);
      if (!found.ok()) return ToOrt(found.status());
      location = *found;
    }
    feeds.key.push_back(static_cast<int64_t>(rank));
    feeds.key.insert(feeds.key.end(), dims, dims + rank);
    if (is_read_[i]) {
      RETURN_IF_ORT_ERROR(ToOrt(ReadContents(queue, location, description)));
      feeds.key.insert(feeds.key.end(), description.known->begin(), description.known->end());
    }
  }
  return nullptr;
}

Status CompiledGraph::ReadContents(cl_command_queue queue, const Location& location,
                                   InputDescription& description) {
  HostTensor tensor{description.type, description.shape, {}};
  const int64_t count = ElementCount(description.shape);
  if (count > kMaxKnownElements || IsFloat(description.type)) {
    return Failure("expected at most {} integers for a shape, got {} elements", kMaxKnownElements,
                   count);
  }
  tensor.bytes.resize(static_cast<size_t>(count) * SizeOf(tensor.type));
  if (count > 0) {
    PLUGIN_RETURN_IF_ERROR(Check(
        Cl().clEnqueueReadBuffer(queue, location.buffer, CL_TRUE, location.offset_bytes,
                                 tensor.bytes.size(), tensor.bytes.data(), 0, nullptr, nullptr),
        "clEnqueueReadBuffer"));
  }
  description.known = tensor.Integers();
  return Status();
}

Result<Executable*> CompiledGraph::FindExecutable(const Feeds& feeds) {
  const auto it = std::find_if(executables_.begin(), executables_.end(),
                               [&](const Entry& entry) { return entry.key == feeds.key; });
  if (it != executables_.end()) {
    executables_.splice(executables_.begin(), executables_, it);
    return executables_.front().executable.get();
  }
  Planner planner(graph_, inputs_, outputs_, device_.target());
  PLUGIN_ASSIGN_OR_RETURN(Plan plan, planner.Make(feeds.descriptions));
  PLUGIN_ASSIGN_OR_RETURN(auto executable, Executable::Create(device_, std::move(plan), weights_));
  executables_.push_front({feeds.key, std::move(executable)});
  if (executables_.size() > kMaxPlans) executables_.pop_back();
  return executables_.front().executable.get();
}

}  // namespace opencl
