// A small execution provider to read and copy; docs/plugin-ep.md explains it.
//
// Its device is the CPU under another name. Values live in memory of the device's own kind, so the
// session copies them there and back as it would for a GPU, and chains of Mul, Add and Relu of
// float tensors run as one node.
//
// Every function that the runtime calls is noexcept; Guarded turns exceptions of the standard
// library into a status. The library uses only include/, so it loads in any runtime with this ABI.

#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "chain.h"
#include "tenon_c_api.h"

#define RETURN_IF_ERROR(expression)                        \
  do {                                                     \
    if (OrtStatus* status_ = (expression)) return status_; \
  } while (false)

namespace sample {
namespace {

// The oldest ABI that has all slots that are filled here. Older runtimes refuse the library; newer
// ones do not read slots that were added later.
constexpr uint32_t kAbiVersion = 23;
constexpr const char* kProviderName = "SampleProvider";
constexpr uint32_t kVendorId = 0xBE57;  // a real vendor has a number of the PCI registry

// The runtime's functions, the same for all factories of the library. Set before any is used.
const OrtApi* ort = nullptr;
const OrtEpApi* ep = nullptr;

OrtStatus* Fail(const std::string& text) { return ort->CreateStatus(ORT_EP_FAIL, text.c_str()); }

// For calls whose failure only means that a question has no answer. The caller owns the status.
bool Succeeds(OrtStatus* status) {
  if (status) ort->ReleaseStatus(status);
  return !status;
}

// No exception may leave the library.
template <class Body>
OrtStatus* Guarded(Body&& body) noexcept try {
  return body();
} catch (const std::exception& e) {
  return ort->CreateStatus(ORT_EP_FAIL, e.what());
} catch (...) {
  return ort->CreateStatus(ORT_EP_FAIL, "unknown exception");
}

// ---- memory ---------------------------------------------------------------------------------

// Device memory. A real device would call its driver here. The session requests few, large blocks
// and keeps them from run to run.
struct Allocator : OrtAllocator {
  explicit Allocator(const OrtMemoryInfo* memory_info) : OrtAllocator{}, info(memory_info) {
    version = kAbiVersion;
    Alloc = [](OrtAllocator* self, size_t size) noexcept -> void* {
      auto* me = static_cast<Allocator*>(self);
      void* p = std::malloc(size);
      if (p) {
        ++me->allocations;
        ++me->blocks;
      }
      return p;  // null means that the allocation failed
    };
    Free = [](OrtAllocator* self, void* p) noexcept {
      if (p) --static_cast<Allocator*>(self)->blocks;
      std::free(p);
    };
    Info = [](const OrtAllocator* self) noexcept {
      return static_cast<const Allocator*>(self)->info;
    };
    GetStats = [](const OrtAllocator* self, OrtKeyValuePairs** out) noexcept -> OrtStatus* {
      return Guarded([&]() -> OrtStatus* {
        auto* me = static_cast<const Allocator*>(self);
        ort->CreateKeyValuePairs(out);
        ort->AddKeyValuePair(*out, "NumAllocs", std::to_string(me->allocations).c_str());
        ort->AddKeyValuePair(*out, "NumBlocks", std::to_string(me->blocks).c_str());
        return nullptr;
      });
    };
  }
  const OrtMemoryInfo* info;  // the factory's
  std::atomic<size_t> allocations{0};
  std::atomic<size_t> blocks{0};  // alive now
};

// Copies between the host and the device, and within the device.
struct DataTransfer : OrtDataTransferImpl {
  DataTransfer() : OrtDataTransferImpl{} {
    ort_version_supported = kAbiVersion;
    Release = [](OrtDataTransferImpl* self) noexcept { delete static_cast<DataTransfer*>(self); };
    CanCopy = [](const OrtDataTransferImpl*, const OrtMemoryDevice* from,
                 const OrtMemoryDevice* to) noexcept {
      return (IsOurs(from) || IsHost(from)) && (IsOurs(to) || IsHost(to));
    };
    // `streams` is null or full of nulls, because the factory says that it has no streams: the
    // copies must be complete on return.
    CopyTensors = [](OrtDataTransferImpl*, const OrtValue** from, OrtValue** to, OrtSyncStream**,
                     size_t count) noexcept -> OrtStatus* {
      for (size_t i = 0; i < count; ++i) {
        size_t size = 0;
        const void* source = nullptr;
        void* target = nullptr;
        RETURN_IF_ERROR(ort->GetTensorSizeInBytes(from[i], &size));
        RETURN_IF_ERROR(ort->GetTensorData(from[i], &source));
        RETURN_IF_ERROR(ort->GetTensorMutableData(to[i], &target));
        std::copy_n(static_cast<const std::byte*>(source), size, static_cast<std::byte*>(target));
      }
      return nullptr;
    };
  }
  static bool IsOurs(const OrtMemoryDevice* device) {
    return ep->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_GPU &&
           ep->MemoryDevice_GetVendorId(device) == kVendorId;
  }
  static bool IsHost(const OrtMemoryDevice* device) {
    return ep->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_CPU;
  }
};

// ---- reading the graph ----------------------------------------------------------------------

// The dimensions of a float tensor whose shape is fully known, otherwise nothing: the sample leaves
// all other values to other providers.
std::optional<std::vector<int64_t>> FloatShape(const OrtValueInfo* value) {
  const OrtTypeInfo* type = nullptr;
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  // An optional input that is absent is a null value.
  const bool is_tensor = value && Succeeds(ort->GetValueInfoTypeInfo(value, &type)) && type &&
                         Succeeds(ort->CastTypeInfoToTensorInfo(type, &tensor)) && tensor &&
                         Succeeds(ort->GetTensorElementType(tensor, &element)) &&
                         Succeeds(ort->GetDimensionsCount(tensor, &rank));
  if (!is_tensor || element != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) return std::nullopt;
  std::vector<int64_t> dims(rank);
  if (!Succeeds(ort->GetDimensions(tensor, dims.data(), rank))) return std::nullopt;
  for (const int64_t dim : dims) {
    if (dim < 0) return std::nullopt;  // symbolic
  }
  return dims;
}

size_t ElementCount(const std::vector<int64_t>& dims) {
  size_t count = 1;
  for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
  return count;
}

OrtStatus* InputsOf(const OrtNode* node, std::vector<const OrtValueInfo*>& inputs) {
  size_t count = 0;
  RETURN_IF_ERROR(ort->Node_GetNumInputs(node, &count));
  inputs.resize(count);
  return ort->Node_GetInputs(node, inputs.data(), count);
}

// All operators of the sample have one output.
OrtStatus* OutputOf(const OrtNode* node, const OrtValueInfo** output) {
  return ort->Node_GetOutputs(node, output, 1);
}

OrtStatus* NodesOf(const OrtGraph* graph, std::vector<const OrtNode*>& nodes) {
  size_t count = 0;
  RETURN_IF_ERROR(ort->Graph_GetNumNodes(graph, &count));
  nodes.resize(count);
  return ort->Graph_GetNodes(graph, nodes.data(), count);  // in topological order
}

OrtStatus* NameOf(const OrtValueInfo* value, std::string& name) {
  const char* text = nullptr;
  RETURN_IF_ERROR(ort->GetValueInfoName(value, &text));
  name = text;
  return nullptr;
}

OrtStatus* OperationOf(const OrtNode* node, std::optional<Operation>& operation) {
  const char* domain = nullptr;
  const char* type = nullptr;
  RETURN_IF_ERROR(ort->Node_GetDomain(node, &domain));
  RETURN_IF_ERROR(ort->Node_GetOperatorType(node, &type));
  operation.reset();
  if (*domain != '\0') return nullptr;  // "" is ONNX's own domain
  const std::string_view name = type;
  if (name == "Mul") operation = Operation::kMul;
  if (name == "Add") operation = Operation::kAdd;
  if (name == "Relu") operation = Operation::kRelu;
  return nullptr;
}

// Whether the device can run the node: each operand has the shape of the result or one element.
OrtStatus* IsSupported(const OrtNode* node, bool& supported) {
  supported = false;
  std::optional<Operation> operation;
  RETURN_IF_ERROR(OperationOf(node, operation));
  if (!operation) return nullptr;
  const OrtValueInfo* output = nullptr;
  RETURN_IF_ERROR(OutputOf(node, &output));
  const auto result = FloatShape(output);
  if (!result) return nullptr;
  std::vector<const OrtValueInfo*> inputs;
  RETURN_IF_ERROR(InputsOf(node, inputs));
  for (const OrtValueInfo* input : inputs) {
    const auto dims = FloatShape(input);
    if (!dims || (*dims != *result && ElementCount(*dims) != 1)) return nullptr;
  }
  supported = true;
  return nullptr;
}

// The node that continues a chain: the only consumer of the node's output, null if the chain ends.
OrtStatus* NextOf(const OrtNode* node, const OrtNode** next) {
  *next = nullptr;
  const OrtValueInfo* output = nullptr;
  bool is_graph_output = false;
  size_t consumers = 0;
  RETURN_IF_ERROR(OutputOf(node, &output));
  RETURN_IF_ERROR(ort->ValueInfo_IsGraphOutput(output, &is_graph_output));
  RETURN_IF_ERROR(ort->ValueInfo_GetValueNumConsumers(output, &consumers));
  if (is_graph_output || consumers != 1) return nullptr;
  const OrtNode* consumer = nullptr;
  int64_t input_index = -1;
  RETURN_IF_ERROR(ort->ValueInfo_GetValueConsumers(output, &consumer, &input_index, 1));
  bool supported = false;
  RETURN_IF_ERROR(IsSupported(consumer, supported));
  if (!supported) return nullptr;
  const OrtValueInfo* result = nullptr;
  RETURN_IF_ERROR(OutputOf(consumer, &result));
  if (FloatShape(output) == FloatShape(result)) *next = consumer;
  return nullptr;
}

// ---- the compiled node ----------------------------------------------------------------------

// A chain that Compile has translated. The runtime calls Compute for it, perhaps on several threads
// at once. It keeps no data between runs, so it is its own state.
struct CompiledChain : OrtNodeComputeInfo {
  CompiledChain() : OrtNodeComputeInfo{} {
    ort_version_supported = kAbiVersion;
    CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) -> OrtStatus* {
      *state = self;
      return nullptr;
    };
    Compute = [](OrtNodeComputeInfo*, void* state, OrtKernelContext* context) -> OrtStatus* {
      return Guarded([&] { return static_cast<CompiledChain*>(state)->Run(context); });
    };
    ReleaseState = [](OrtNodeComputeInfo*, void*) {};
  }

  // Translates the nodes of `graph`. `fused_node` has the inputs in the order of the context.
  OrtStatus* Translate(const OrtGraph* graph, const OrtNode* fused_node) {
    std::unordered_map<std::string, size_t> registers;
    std::vector<const OrtValueInfo*> inputs;
    std::string name;
    RETURN_IF_ERROR(InputsOf(fused_node, inputs));
    for (const OrtValueInfo* input : inputs) {
      RETURN_IF_ERROR(NameOf(input, name));
      registers.emplace(name, registers.size());
    }
    input_count = inputs.size();
    std::vector<const OrtNode*> nodes;
    RETURN_IF_ERROR(NodesOf(graph, nodes));
    for (const OrtNode* node : nodes) {
      std::optional<Operation> operation;
      RETURN_IF_ERROR(OperationOf(node, operation));
      RETURN_IF_ERROR(InputsOf(node, inputs));
      Step step{operation.value(), 0, 0};
      RETURN_IF_ERROR(NameOf(inputs.front(), name));
      step.a = registers.at(name);
      RETURN_IF_ERROR(NameOf(inputs.back(), name));
      step.b = registers.at(name);
      const OrtValueInfo* output = nullptr;
      RETURN_IF_ERROR(OutputOf(node, &output));
      RETURN_IF_ERROR(NameOf(output, name));
      registers.emplace(name, input_count + steps.size());
      steps.push_back(step);
      shape = FloatShape(output).value();
    }
    return nullptr;
  }

  OrtStatus* Run(OrtKernelContext* context) const {
    const size_t count = ElementCount(shape);
    std::vector<Operand> operands(input_count);
    for (size_t i = 0; i < input_count; ++i) {
      const OrtValue* value = nullptr;
      const void* data = nullptr;
      size_t size = 0;
      RETURN_IF_ERROR(ort->KernelContext_GetInput(context, i, &value));
      RETURN_IF_ERROR(ort->GetTensorData(value, &data));
      RETURN_IF_ERROR(ort->GetTensorSizeInBytes(value, &size));
      operands[i] = {static_cast<const float*>(data), size == sizeof(float)};
      if (!operands[i].is_scalar && size != count * sizeof(float)) {
        return Fail("input " + std::to_string(i) + ": expected " + std::to_string(count) +
                    " elements, got " + std::to_string(size / sizeof(float)));
      }
    }
    OrtValue* output = nullptr;
    void* result = nullptr;
    // The runtime allocates the output, with the allocator of the device.
    RETURN_IF_ERROR(ort->KernelContext_GetOutput(context, 0, shape.data(), shape.size(), &output));
    RETURN_IF_ERROR(ort->GetTensorMutableData(output, &result));
    RunChain(steps, operands, count, static_cast<float*>(result));
    return nullptr;
  }

  size_t input_count = 0;
  std::vector<Step> steps;
  std::vector<int64_t> shape;  // of every result
};

// ---- the provider ---------------------------------------------------------------------------

// One per session.
struct Provider : OrtEp {
  explicit Provider(const OrtLogger* session_logger) : OrtEp{}, logger(session_logger) {
    ort_version_supported = kAbiVersion;
    GetName = [](const OrtEp*) noexcept { return kProviderName; };
    OrtEp::GetCapability = [](OrtEp*, const OrtGraph* graph,
                              OrtEpGraphSupportInfo* info) noexcept -> OrtStatus* {
      return Guarded([&] { return ClaimChains(graph, info); });
    };
    Compile = [](OrtEp*, const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count,
                 OrtNodeComputeInfo** infos, OrtNode**) noexcept -> OrtStatus* {
      return Guarded([&]() -> OrtStatus* {
        for (size_t i = 0; i < count; ++i) {
          auto chain = std::make_unique<CompiledChain>();
          RETURN_IF_ERROR(chain->Translate(graphs[i], fused_nodes[i]));
          infos[i] = chain.release();
        }
        return nullptr;
      });
    };
    ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
      for (size_t i = 0; i < count; ++i) delete static_cast<CompiledChain*>(infos[i]);
    };
    // A device with a queue would prepare it here, and wait for it in OnRunEnd if requested.
    OnRunStart = [](OrtEp* self, const OrtRunOptions*) noexcept -> OrtStatus* {
      ++static_cast<Provider*>(self)->active_runs;
      return nullptr;
    };
    OnRunEnd = [](OrtEp* self, const OrtRunOptions*, bool) noexcept -> OrtStatus* {
      --static_cast<Provider*>(self)->active_runs;
      return nullptr;
    };
  }

  // Claims each chain as one group. Every value inside a chain has one consumer, the chain's next
  // node, so no path leaves a chain and returns to it: the groups can be fused.
  static OrtStatus* ClaimChains(const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
    std::vector<const OrtNode*> nodes;
    RETURN_IF_ERROR(NodesOf(graph, nodes));
    std::unordered_map<const OrtNode*, bool> is_taken;
    for (const OrtNode* first : nodes) {
      bool supported = false;
      RETURN_IF_ERROR(IsSupported(first, supported));
      if (!supported || is_taken[first]) continue;
      std::vector<const OrtNode*> chain;
      for (const OrtNode* node = first; node && !is_taken[node];) {
        is_taken[node] = true;
        chain.push_back(node);
        RETURN_IF_ERROR(NextOf(node, &node));
      }
      RETURN_IF_ERROR(
          ep->EpGraphSupportInfo_AddNodesToFuse(info, chain.data(), chain.size(), nullptr));
    }
    return nullptr;
  }

  // Tenon's notification, through TenonGetEpExtension below.
  OrtStatus* OnSessionEnd(const TenonSessionEndInfo& end) const {
    return Guarded([&] {
      const std::string text = "sample: session " + std::to_string(end.session_id) +
                               " ended after " + std::to_string(end.completed_runs) + " runs";
      return ort->Logger_LogMessage(logger, ORT_LOGGING_LEVEL_INFO, text.c_str(), ORT_FILE,
                                    __LINE__, "OnSessionEnd");
    });
  }

  const OrtLogger* logger;  // the session's
  std::atomic<int> active_runs{0};
};

// ---- the factory ----------------------------------------------------------------------------

// One per registration of the library.
struct Factory : OrtEpFactory {
  Factory() : OrtEpFactory{} {
    ort_version_supported = kAbiVersion;
    GetName = [](const OrtEpFactory*) noexcept { return kProviderName; };
    GetVendor = [](const OrtEpFactory*) noexcept { return "Sample"; };
    GetVendorId = [](const OrtEpFactory*) noexcept { return kVendorId; };
    GetVersion = [](const OrtEpFactory*) noexcept { return "1.0.0"; };
    GetSupportedDevices = [](OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                             size_t count, OrtEpDevice** found, size_t capacity,
                             size_t* found_count) noexcept -> OrtStatus* {
      *found_count = 0;
      for (size_t i = 0; i < count && *found_count < capacity; ++i) {
        if (ort->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
        OrtEpDevice** device = &found[*found_count];
        RETURN_IF_ERROR(ep->CreateEpDevice(self, devices[i], nullptr, nullptr, device));
        ++*found_count;  // the runtime owns the device from here on, also after an error
        RETURN_IF_ERROR(
            ep->EpDevice_AddAllocatorInfo(*device, static_cast<Factory*>(self)->memory_info));
      }
      return nullptr;
    };
    CreateEp = [](OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*,
                  size_t, const OrtSessionOptions*, const OrtLogger* logger,
                  OrtEp** out) noexcept -> OrtStatus* {
      return Guarded([&]() -> OrtStatus* {
        *out = new Provider(logger);
        return nullptr;
      });
    };
    ReleaseEp = [](OrtEpFactory*, OrtEp* provider) { delete static_cast<Provider*>(provider); };
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo* info, const OrtKeyValuePairs*,
                         OrtAllocator** out) noexcept -> OrtStatus* {
      return Guarded([&]() -> OrtStatus* {
        *out = new Allocator(info);
        return nullptr;
      });
    };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* allocator) {
      delete static_cast<Allocator*>(allocator);
    };
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** out) noexcept -> OrtStatus* {
      return Guarded([&]() -> OrtStatus* {
        *out = new DataTransfer;
        return nullptr;
      });
    };
    IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
  }
  ~Factory() { ort->ReleaseMemoryInfo(memory_info); }

  // Describes the device's memory to the session. Its kind is GPU, because the runtime would use
  // host memory without copying.
  OrtStatus* Initialize() {
    return ort->CreateMemoryInfo_V2("SampleMemory", OrtMemoryInfoDeviceType_GPU, kVendorId, 0,
                                    OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator,
                                    &memory_info);
  }

  OrtMemoryInfo* memory_info = nullptr;
};

}  // namespace
}  // namespace sample

// ---- what the library exports ---------------------------------------------------------------

extern "C" {

ORT_EXPORT OrtStatus* CreateEpFactories(const char*, const OrtApiBase* api_base, const OrtLogger*,
                                        OrtEpFactory** factories, size_t max_factories,
                                        size_t* num_factories) noexcept {
  using namespace sample;
  ort = api_base->GetApi(kAbiVersion);
  if (!ort) {
    // The first table has everything that is needed to report this.
    return api_base->GetApi(1)->CreateStatus(ORT_EP_FAIL, "the runtime is older than the provider");
  }
  ep = ort->GetEpApi();
  if (max_factories < 1) return Fail("expected room for a factory");
  return Guarded([&]() -> OrtStatus* {
    auto factory = std::make_unique<Factory>();
    RETURN_IF_ERROR(factory->Initialize());
    factories[0] = factory.release();
    *num_factories = 1;
    return nullptr;
  });
}

ORT_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) noexcept {
  delete static_cast<sample::Factory*>(factory);
  return nullptr;
}

// Optional: Tenon looks for it, other runtimes do not.
ORT_EXPORT OrtStatus* TenonGetEpExtension(const OrtEpFactory*, uint32_t,
                                          const TenonEpExtension** out) noexcept {
  static constexpr TenonEpExtension kExtension = {
      sizeof(TenonEpExtension), 1, 0,
      [](OrtEp* provider, const TenonSessionEndInfo* end) noexcept -> OrtStatus* {
        return static_cast<sample::Provider*>(provider)->OnSessionEnd(*end);
      }};
  *out = &kExtension;
  return nullptr;
}
}
