// A provider for tests: an invented GPU whose memory is the host's, so that it can be observed, and
// whose slots can all be set to fail.
#include <malloc.h>
#include <onnxruntime_c_api.h>
#include <onnxruntime_ep_c_api.h>
#include <tenon_c_api.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugin/guarded_page.h"
#include "plugin/mock_parts.h"

namespace tenon::test {

MockControl control;
const OrtApi* api = nullptr;
const OrtEpApi* ep_api = nullptr;
MockRecorder* recorder = nullptr;

OrtStatus* Enter(const char* slot) {
  control.Log(slot);
  const auto has = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), slot) != list.end();
  };
  const std::string text =
      std::string(slot) + " was told to fail" + std::string(control.padding, '.');
  if (has(control.throws)) throw std::runtime_error(text);
  return has(control.fails) ? api->CreateStatus(ORT_EP_FAIL, text.c_str()) : nullptr;
}

bool Lacks(const char* what) { return control.lacks.count(what) > 0; }

void Orphan(void* object) {
  // Never destroyed, so that they are not leaks.
  static auto* const orphans = new std::vector<void*>();
  orphans->push_back(object);
  --control.live_objects;
}

namespace {

constexpr uint32_t kVendor = 0xBE57;

// --- memory ---

struct Allocator : OrtAllocator, Counted {
  explicit Allocator(const OrtMemoryInfo* of) : OrtAllocator{}, memory(of) {
    version = control.api_version;
    Alloc = [](OrtAllocator*, size_t size) -> void* {
      void* const block = std::malloc(std::max<size_t>(size, 1));
      if (block == nullptr) return nullptr;
      ++control.allocations;
      ++control.live_blocks;
      return block;
    };
    Reserve = Alloc;
    if (control.allocates_on_streams) {
      AllocOnStream = [](OrtAllocator* self, size_t size, OrtSyncStream* stream) -> void* {
        if (stream != nullptr) ++control.allocations_on_streams;
        return self->Alloc(self, size);
      };
    }
    if (control.shrinks) {
      OrtAllocator::Shrink = [](OrtAllocator*) noexcept -> OrtStatus* {
        ENTER("Shrink");
        return nullptr;
      };
    }
    Free = [](OrtAllocator*, void* block) {
      if (block == nullptr) return;
      --control.live_blocks;
      // A reader that still uses the memory must not find its former contents.
      std::memset(block, 0xFF, malloc_usable_size(block));
      std::free(block);
    };
    Info = [](const OrtAllocator* self) -> const OrtMemoryInfo* {
      return Lacks("the info of an allocator") ? nullptr
                                               : static_cast<const Allocator*>(self)->memory;
    };
    MAY_LACK(OrtAllocator, Alloc);
    MAY_LACK(OrtAllocator, Free);
    MAY_LACK(OrtAllocator, Info);
    if (Lacks("OrtEpFactory::ReleaseAllocator")) Orphan(this);
  }
  const OrtMemoryInfo* memory;
};

// "type/memory/vendor/id", the first two as numbers.
std::string Describe(const OrtMemoryDevice* device) {
  const auto text = [](auto number) { return std::to_string(static_cast<unsigned>(number)); };
  return text(ep_api->MemoryDevice_GetDeviceType(device)) + "/" +
         text(ep_api->MemoryDevice_GetMemoryType(device)) + "/" +
         text(ep_api->MemoryDevice_GetVendorId(device)) + "/" +
         text(ep_api->MemoryDevice_GetDeviceId(device));
}

struct Transfer : OrtDataTransferImpl, Counted {
  Transfer() : OrtDataTransferImpl{} {
    ort_version_supported = control.api_version;
    Release = [](OrtDataTransferImpl* self) noexcept {
      control.Log("ReleaseTransfer");
      delete static_cast<Transfer*>(self);
    };
    CanCopy = [](const OrtDataTransferImpl*, const OrtMemoryDevice* from,
                 const OrtMemoryDevice* into) noexcept {
      if (control.logs_can_copy) {
        const std::lock_guard lock(control.mutex);
        control.can_copies.push_back(Describe(from) + ">" + Describe(into));
      }
      const auto is_ours = [](const OrtMemoryDevice* device) {
        return ep_api->MemoryDevice_GetVendorId(device) == kVendor;
      };
      const auto is_cpu = [](const OrtMemoryDevice* device) {
        return ep_api->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_CPU;
      };
      return (is_ours(from) && (is_ours(into) || is_cpu(into))) || (is_cpu(from) && is_ours(into));
    };
    CopyTensors = [](OrtDataTransferImpl*, const OrtValue** from, OrtValue** into, OrtSyncStream**,
                     size_t count) noexcept -> OrtStatus* {
      ENTER("CopyTensors");
      ++control.copy_calls;
      {
        const std::lock_guard lock(control.mutex);
        control.copied_values.clear();
        for (size_t i = 0; i < count; ++i) {
          control.copied_values.insert(control.copied_values.end(), {from[i], into[i]});
        }
      }
      for (size_t i = 0; i < count; ++i) {
        const void* source = nullptr;
        void* target = nullptr;
        size_t bytes = 0;
        CHECK_OK(api->GetTensorData(from[i], &source));
        CHECK_OK(api->GetTensorMutableData(into[i], &target));
        CHECK_OK(api->GetTensorSizeInBytes(from[i], &bytes));
        std::memcpy(target, source, bytes);
        ++control.copies;
      }
      return nullptr;
    };
    MAY_LACK(OrtDataTransferImpl, CanCopy);
    MAY_LACK(OrtDataTransferImpl, CopyTensors);
    MAY_LACK_RELEASE(OrtDataTransferImpl);
  }
};

struct Mark : OrtSyncNotificationImpl, Counted {
  Mark() : OrtSyncNotificationImpl{} {
    ort_version_supported = control.api_version;
    Release = [](OrtSyncNotificationImpl* self) noexcept { delete static_cast<Mark*>(self); };
    Activate = [](OrtSyncNotificationImpl*) noexcept -> OrtStatus* {
      ENTER("Activate");
      return nullptr;
    };
    WaitOnDevice = [](OrtSyncNotificationImpl*, OrtSyncStream*) noexcept -> OrtStatus* {
      ENTER("WaitOnDevice");
      return nullptr;
    };
    WaitOnHost = [](OrtSyncNotificationImpl*) noexcept -> OrtStatus* {
      ENTER("WaitOnHost");
      return nullptr;
    };
    MAY_LACK(OrtSyncNotificationImpl, Activate);
    MAY_LACK(OrtSyncNotificationImpl, WaitOnDevice);
    MAY_LACK(OrtSyncNotificationImpl, WaitOnHost);
    MAY_LACK_RELEASE(OrtSyncNotificationImpl);
  }
};

struct Stream : OrtSyncStreamImpl, Counted {
  Stream() : OrtSyncStreamImpl{} {
    ort_version_supported = control.api_version;
    Release = [](OrtSyncStreamImpl* self) noexcept { delete static_cast<Stream*>(self); };
    GetHandle = [](OrtSyncStreamImpl* self) noexcept -> void* { return self; };
    CreateNotification = [](OrtSyncStreamImpl*,
                            OrtSyncNotificationImpl** out) noexcept -> OrtStatus* {
      ENTER("CreateNotification");
      *out = Lacks("a notification") ? nullptr : new Mark();
      return nullptr;
    };
    Flush = [](OrtSyncStreamImpl*) noexcept -> OrtStatus* {
      ENTER("Flush");
      return nullptr;
    };
    OnSessionRunEnd = [](OrtSyncStreamImpl*) noexcept -> OrtStatus* {
      ENTER("OnSessionRunEnd");
      return nullptr;
    };
    MAY_LACK(OrtSyncStreamImpl, GetHandle);
    MAY_LACK(OrtSyncStreamImpl, CreateNotification);
    MAY_LACK(OrtSyncStreamImpl, Flush);
    MAY_LACK(OrtSyncStreamImpl, OnSessionRunEnd);
    MAY_LACK_RELEASE(OrtSyncStreamImpl);
  }
};

// --- resources of other APIs: memory of the host, and a number that counts up ---

struct ImportedMemory : OrtExternalMemoryHandle, Counted {};
struct ImportedSemaphore : OrtExternalSemaphoreHandle, Counted {};

struct Importer : OrtExternalResourceImporterImpl, Counted {
  explicit Importer(const OrtEpDevice* of) : OrtExternalResourceImporterImpl{}, device(of) {
    ort_version_supported = control.api_version;
    CanImportMemory = [](const OrtExternalResourceImporterImpl*,
                         OrtExternalMemoryHandleType type) noexcept {
      return type == ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_OPAQUE_FD;
    };
    ImportMemory = [](OrtExternalResourceImporterImpl* self,
                      const OrtExternalMemoryDescriptor* descriptor,
                      OrtExternalMemoryHandle** out) noexcept -> OrtStatus* {
      ENTER("ImportMemory");
      auto* const made = new ImportedMemory();
      made->version = control.api_version;
      made->ep_device = static_cast<Importer*>(self)->device;
      made->descriptor = *descriptor;
      made->Release = [](OrtExternalMemoryHandle* handle) noexcept {
        control.Log("ReleaseMemoryHandle");
        delete static_cast<ImportedMemory*>(handle);
      };
      if (Lacks("OrtExternalMemoryHandle::Release")) {
        made->Release = nullptr;
        Orphan(made);
      }
      *out = made;
      if (Lacks("a memory handle")) {
        delete made;
        *out = nullptr;
      }
      return nullptr;
    };
    CreateTensorFromMemory =
        [](OrtExternalResourceImporterImpl*, const OrtExternalMemoryHandle* memory,
           const OrtExternalTensorDescriptor* tensor, OrtValue** out) noexcept -> OrtStatus* {
      ENTER("CreateTensorFromMemory");
      auto* const begin = static_cast<char*>(memory->descriptor.native_handle) +
                          memory->descriptor.offset_bytes + tensor->offset_bytes;
      return api->CreateTensorWithDataAsOrtValue(
          api->EpDevice_MemoryInfo(memory->ep_device, OrtDeviceMemoryType_DEFAULT), begin,
          memory->descriptor.size_bytes - tensor->offset_bytes, tensor->shape, tensor->rank,
          tensor->element_type, out);
    };
    CanImportSemaphore = [](const OrtExternalResourceImporterImpl*,
                            OrtExternalSemaphoreType type) noexcept {
      return type == ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD;
    };
    ImportSemaphore = [](OrtExternalResourceImporterImpl* self,
                         const OrtExternalSemaphoreDescriptor* descriptor,
                         OrtExternalSemaphoreHandle** out) noexcept -> OrtStatus* {
      ENTER("ImportSemaphore");
      auto* const made = new ImportedSemaphore();
      made->version = control.api_version;
      made->ep_device = static_cast<Importer*>(self)->device;
      made->descriptor = *descriptor;
      made->Release = [](OrtExternalSemaphoreHandle* handle) noexcept {
        control.Log("ReleaseSemaphoreHandle");
        delete static_cast<ImportedSemaphore*>(handle);
      };
      *out = made;
      return nullptr;
    };
    WaitSemaphore = [](OrtExternalResourceImporterImpl*, OrtExternalSemaphoreHandle* semaphore,
                       OrtSyncStream*, uint64_t value) noexcept -> OrtStatus* {
      ENTER("WaitSemaphore");
      const auto reached = *static_cast<uint64_t*>(semaphore->descriptor.native_handle);
      return reached >= value ? nullptr : api->CreateStatus(ORT_EP_FAIL, "waits forever");
    };
    SignalSemaphore = [](OrtExternalResourceImporterImpl*, OrtExternalSemaphoreHandle* semaphore,
                         OrtSyncStream*, uint64_t value) noexcept -> OrtStatus* {
      ENTER("SignalSemaphore");
      *static_cast<uint64_t*>(semaphore->descriptor.native_handle) = value;
      return nullptr;
    };
    Release = [](OrtExternalResourceImporterImpl* self) noexcept {
      control.Log("ReleaseImporter");
      delete static_cast<Importer*>(self);
    };
    MAY_LACK(OrtExternalResourceImporterImpl, CanImportMemory);
    MAY_LACK(OrtExternalResourceImporterImpl, ImportMemory);
    MAY_LACK(OrtExternalResourceImporterImpl, CreateTensorFromMemory);
    MAY_LACK(OrtExternalResourceImporterImpl, CanImportSemaphore);
    MAY_LACK(OrtExternalResourceImporterImpl, ImportSemaphore);
    MAY_LACK(OrtExternalResourceImporterImpl, WaitSemaphore);
    MAY_LACK(OrtExternalResourceImporterImpl, SignalSemaphore);
    MAY_LACK_RELEASE(OrtExternalResourceImporterImpl);
  }
  const OrtEpDevice* const device;
};

// --- work: a fused node, by default y = x * x of floats ---

struct FusedWork : OrtNodeComputeInfo {
  FusedWork() : OrtNodeComputeInfo{} {
    ort_version_supported = control.api_version;
    CreateState = [](OrtNodeComputeInfo*, OrtNodeComputeContext* context,
                     void** state) -> OrtStatus* {
      ENTER("CreateState");
      const std::string name = ep_api->NodeComputeContext_NodeName(context);
      if (name.rfind(kName, 0) != 0) return api->CreateStatus(ORT_FAIL, name.c_str());
      control.node_names.push_back(name);
      *state = new Counted();
      return nullptr;
    };
    Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) -> OrtStatus* {
      ENTER("Compute");
      return static_cast<FusedWork*>(self)->work(context);
    };
    ReleaseState = [](OrtNodeComputeInfo*, void* state) {
      control.Log("ReleaseState");
      delete static_cast<Counted*>(state);
    };
    MAY_LACK(OrtNodeComputeInfo, CreateState);
    MAY_LACK(OrtNodeComputeInfo, Compute);
    MAY_LACK(OrtNodeComputeInfo, ReleaseState);
  }
  std::function<OrtStatus*(OrtKernelContext*)> work = Square;
};

// --- the provider ---

struct Profiler : OrtEpProfilerImpl, Counted {
  Profiler() : OrtEpProfilerImpl{} {
    ort_version_supported = control.api_version;
    Release = [](OrtEpProfilerImpl* self) noexcept {
      control.Log("ReleaseProfiler");
      delete static_cast<Profiler*>(self);
    };
    StartProfiling = [](OrtEpProfilerImpl*, int64_t) noexcept -> OrtStatus* {
      ENTER("StartProfiling");
      return nullptr;
    };
    StartEvent = [](OrtEpProfilerImpl*, uint64_t) noexcept -> OrtStatus* {
      ENTER("StartEvent");
      return nullptr;
    };
    StopEvent = [](OrtEpProfilerImpl* self, uint64_t,
                   const OrtProfilingEvent* event) noexcept -> OrtStatus* {
      ENTER("StopEvent");
      const char* name = nullptr;
      CHECK_OK(ep_api->ProfilingEvent_GetName(event, &name));
      auto* const me = static_cast<Profiler*>(self);
      const std::lock_guard lock(me->mutex);
      // Its own nodes have its name in theirs.
      if (std::strstr(name, kName) != nullptr) me->parent = name;
      return nullptr;
    };
    // A kernel that belongs to the node that ran last, and the call that launched it.
    EndProfiling = [](OrtEpProfilerImpl* self,
                      OrtProfilingEventsContainer* container) noexcept -> OrtStatus* {
      ENTER("EndProfiling");
      const std::string& parent = static_cast<Profiler*>(self)->parent;
      const char* const keys[] = {"queue", "provider", "parent"};
      const char* const values[] = {"7", kName, parent.c_str()};
      for (const auto& [category, name] :
           {std::pair(OrtProfilingEventCategory_KERNEL, "mock_kernel"),
            std::pair(OrtProfilingEventCategory_API, "mock_launch")}) {
        OrtProfilingEvent* event = nullptr;
        CHECK_OK(ep_api->CreateProfilingEvent(category, -1, -1, name, 10, 20, keys, values,
                                              parent.empty() ? 2 : 3, &event));
        OrtStatus* const status = ep_api->ProfilingEventsContainer_AddEvents(container, &event, 1);
        ep_api->ReleaseProfilingEvent(event);
        if (status != nullptr) return status;
      }
      return nullptr;
    };
    MAY_LACK(OrtEpProfilerImpl, StartProfiling);
    MAY_LACK(OrtEpProfilerImpl, StartEvent);
    MAY_LACK(OrtEpProfilerImpl, StopEvent);
    MAY_LACK(OrtEpProfilerImpl, EndProfiling);
    MAY_LACK_RELEASE(OrtEpProfilerImpl);
  }
  std::mutex mutex;
  std::string parent;  // the event of the node that ran last
};

struct Provider : OrtEp, Counted {
  Provider(OrtKernelRegistry* registered, const OrtSessionOptions* options,
           const OrtMemoryDevice* values, const OrtLogger* session_logger)
      : OrtEp{}, kernels(registered), contexts(options), memory(values), logger(session_logger) {
    ort_version_supported = control.api_version;
    GetDefaultMemoryDevice = [](const OrtEp* self,
                                const OrtMemoryDevice** out) noexcept -> OrtStatus* {
      ENTER("GetDefaultMemoryDevice");
      *out = static_cast<const Provider*>(self)->memory;
      return nullptr;
    };
    if (control.provider_makes_streams) {
      CreateSyncStreamForDevice = [](OrtEp*, const OrtMemoryDevice*,
                                     OrtSyncStreamImpl** out) noexcept -> OrtStatus* {
        ENTER("OrtEp::CreateSyncStreamForDevice");
        *out = new Stream();
        return nullptr;
      };
    }
    GetName = [](const OrtEp*) noexcept {
      ++control.name_calls;
      return Lacks("name of the provider") ? nullptr : control.name.c_str();
    };
    OrtEp::GetCapability = &Provider::Claim;
    OrtEp::Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** nodes, size_t count,
                        OrtNodeComputeInfo** infos,
                        OrtNode** context_nodes) noexcept -> OrtStatus* {
      ENTER("Compile");
      for (size_t i = 0; i < count; ++i) {
        size_t inner = 0;
        CHECK_OK(api->Graph_GetNumNodes(graphs[i], &inner));
        const char* name = nullptr;
        CHECK_OK(api->Node_GetName(nodes[i], &name));
        if (inner == 0 || name == nullptr) return api->CreateStatus(ORT_FAIL, "an empty group");
        if (control.on_fused) control.on_fused(nodes[i]);
        const ContextSettings& contexts = static_cast<Provider*>(self)->contexts;
        const OrtNode* first = nullptr;
        if (inner == 1) CHECK_OK(api->Graph_GetNodes(graphs[i], &first, 1));
        if (first != nullptr && IsContextNode(first)) {
          CHECK_OK(ReadContextNode(contexts, graphs[i], first));
        }
        if (contexts.is_on) {
          CHECK_OK(MakeContextNode(contexts, graphs[i], nodes[i], &context_nodes[i]));
        }
        if (control.returns_null_infos) continue;
        auto* const work = new FusedWork();
        infos[i] = work;
        if (control.layout.is_on) CHECK_OK(WorkOf(graphs[i], work->work));
      }
      return nullptr;
    };
    if (!control.has_compile) OrtEp::Compile = nullptr;
    ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
      control.Log("ReleaseNodeComputeInfos");
      for (size_t i = 0; i < count; ++i) {
        if (infos[i] == nullptr) control.Log("a null among the infos");
        delete static_cast<FusedWork*>(infos[i]);
      }
    };
    OnRunStart = [](OrtEp* self, const OrtRunOptions* run) noexcept -> OrtStatus* {
      ENTER("OnRunStart");
      if (!control.capture.IsComplete()) return nullptr;
      const char* const id = api->GetRunConfigEntry(run, "gpu_graph_id");
      recorder = &static_cast<Provider*>(self)->recorded;
      recorder->Start(id == nullptr ? 0 : std::atoi(id), control.capture.warm_ups);
      return nullptr;
    };
    OnRunEnd = [](OrtEp*, const OrtRunOptions*, bool) noexcept -> OrtStatus* {
      ENTER("OnRunEnd");
      if (control.capture.IsComplete() && recorder->End()) ++control.recordings;
      return nullptr;
    };
    AddCapture();
    if (control.layout.is_on) AddLayout();
    GetKernelRegistry = [](OrtEp* self, const OrtKernelRegistry** out) noexcept -> OrtStatus* {
      *out = static_cast<Provider*>(self)->kernels;
      return nullptr;
    };
    IsConcurrentRunSupported = [](OrtEp*, bool* is_supported) noexcept -> OrtStatus* {
      *is_supported = control.runs_overlap;
      return nullptr;
    };
    Sync = [](OrtEp*) noexcept -> OrtStatus* {
      ENTER("Sync");
      return nullptr;
    };
    if (control.provider_allocates) {
      CreateAllocator = [](OrtEp*, const OrtMemoryInfo* memory,
                           OrtAllocator** out) noexcept -> OrtStatus* {
        ENTER("OrtEp::CreateAllocator");
        *out = new Allocator(memory);
        return nullptr;
      };
    }
    CreateProfiler = [](OrtEp*, OrtEpProfilerImpl** out) noexcept -> OrtStatus* {
      ENTER("CreateProfiler");
      *out = new Profiler();
      return nullptr;
    };
    OnSessionInitializationEnd = [](OrtEp*) noexcept -> OrtStatus* {
      ENTER("OnSessionInitializationEnd");
      return nullptr;
    };
    GetCompiledModelCompatibilityInfo = [](OrtEp*, const OrtGraph* graph) noexcept {
      control.Log("GetCompiledModelCompatibilityInfo");
      size_t count = 0;
      api->ReleaseStatus(api->Graph_GetNumNodes(graph, &count));
      return count == 0 ? "" : control.compatibility.c_str();
    };
    if (control.budget != MockControl::kNoSlot) {
      GetAvailableResource = [](const OrtEp*, OrtResourceCount* available) noexcept -> OrtStatus* {
        ENTER("GetAvailableResource");
        if (control.budget >= 0) {
          *available = OrtResourceCount::FromTotalBytes(static_cast<uint64_t>(control.budget));
        }
        return nullptr;
      };
    }
    if (control.weightless >= 0) {
      GetWeightlessSupport = [](const OrtEp*,
                                OrtWeightlessSupport* support) noexcept -> OrtStatus* {
        ENTER("GetWeightlessSupport");
        *support = static_cast<OrtWeightlessSupport>(control.weightless);
        return nullptr;
      };
    }
    SetDynamicOptions = [](OrtEp*, const char* const* keys, const char* const* values,
                           size_t count) noexcept -> OrtStatus* {
      ENTER("SetDynamicOptions");
      control.last_option = values[0];
      for (size_t i = 0; i < count; ++i) {
        control.dynamic_options.push_back(std::string(keys[i]) + "=" + values[i]);
      }
      return nullptr;
    };
    DropSlots();
  }

  void DropSlots() {
    MAY_LACK(OrtEp, GetName);
    MAY_LACK(OrtEp, GetCapability);
    MAY_LACK(OrtEp, Compile);
    MAY_LACK(OrtEp, ReleaseNodeComputeInfos);
    MAY_LACK(OrtEp, SetDynamicOptions);
    MAY_LACK(OrtEp, OnRunStart);
    MAY_LACK(OrtEp, OnRunEnd);
    MAY_LACK(OrtEp, GetKernelRegistry);
    MAY_LACK(OrtEp, IsConcurrentRunSupported);
    MAY_LACK(OrtEp, Sync);
    MAY_LACK(OrtEp, CreateProfiler);
    MAY_LACK(OrtEp, GetDefaultMemoryDevice);
    MAY_LACK(OrtEp, OnSessionInitializationEnd);
    MAY_LACK(OrtEp, GetCompiledModelCompatibilityInfo);
  }

  void AddLayout() {
    GetPreferredDataLayout = [](OrtEp*, OrtEpDataLayout* layout) noexcept -> OrtStatus* {
      ENTER("GetPreferredDataLayout");
      std::memcpy(layout, &control.layout.preferred, sizeof(*layout));
      return nullptr;
    };
    ShouldConvertDataLayoutForOp = [](OrtEp*, const char* domain, const char* op_type,
                                      OrtEpDataLayout target, int* answer) noexcept -> OrtStatus* {
      ENTER("ShouldConvertDataLayoutForOp");
      if (target != OrtEpDataLayout_NHWC) return api->CreateStatus(ORT_EP_FAIL, "another layout");
      control.layout.asked.push_back(std::string(domain) + ":" + op_type);
      const auto found = control.layout.conversions.find(op_type);
      *answer = found == control.layout.conversions.end() ? -1 : found->second;
      return nullptr;
    };
  }

  void AddCapture() {
    IsGraphCaptureEnabled = [](const OrtEp*) noexcept { return control.capture.is_enabled; };
    GetGraphCaptureNodeAssignmentPolicy = [](const OrtEp*) noexcept {
      return static_cast<OrtGraphCaptureNodeAssignmentPolicy>(control.capture.policy);
    };
    if (control.capture.has_captured) {
      IsGraphCaptured = [](const OrtEp* self, int id) noexcept {
        return control.capture.always_has || static_cast<const Provider*>(self)->recorded.Has(id);
      };
    }
    if (control.capture.has_replay) {
      ReplayGraph = [](OrtEp* self, int id) noexcept -> OrtStatus* {
        ENTER("ReplayGraph");
        static_cast<Provider*>(self)->recorded.Replay(id);
        return nullptr;
      };
    }
    if (control.capture.has_release) {
      ReleaseCapturedGraph = [](OrtEp* self, int id) noexcept -> OrtStatus* {
        ENTER("ReleaseCapturedGraph");
        static_cast<Provider*>(self)->recorded.Release(id);
        return nullptr;
      };
    }
  }

  static OrtStatus* LookAtInitializers(const OrtGraph* graph) {
    size_t count = 0;
    CHECK_OK(api->Graph_GetNumInitializers(graph, &count));
    std::vector<const OrtValueInfo*> initializers(count);
    CHECK_OK(api->Graph_GetInitializers(graph, initializers.data(), count));
    control.initializers.clear();
    for (const OrtValueInfo* const initializer : initializers) {
      const char* name = nullptr;
      OrtExternalInitializerInfo* info = nullptr;
      CHECK_OK(api->GetValueInfoName(initializer, &name));
      CHECK_OK(api->ValueInfo_GetExternalInitializerInfo(initializer, &info));
      std::string text = std::string(name) + ":";
      if (info != nullptr) {
        text += std::string(" ") + api->ExternalInitializerInfo_GetFilePath(info) + " " +
                std::to_string(api->ExternalInitializerInfo_GetFileOffset(info)) + " " +
                std::to_string(api->ExternalInitializerInfo_GetByteSize(info));
      }
      api->ReleaseExternalInitializerInfo(info);
      control.initializers.push_back(text);
    }
    return nullptr;
  }

  static OrtStatus* ORT_API_CALL Claim(OrtEp*, const OrtGraph* graph,
                                       OrtEpGraphSupportInfo* support) noexcept {
    ENTER("GetCapability");
    if (control.on_graph) control.on_graph(graph);
    if (control.layout.is_on) return ClaimByLayout(graph, support);
    CHECK_OK(LookAtInitializers(graph));
    size_t count = 0;
    CHECK_OK(api->Graph_GetNumNodes(graph, &count));
    std::vector<const OrtNode*> nodes(count), wanted;
    CHECK_OK(api->Graph_GetNodes(graph, nodes.data(), count));
    for (const OrtNode* const node : nodes) {
      const char* op_type = nullptr;
      CHECK_OK(api->Node_GetOperatorType(node, &op_type));
      const std::string op = op_type;
      if (op == "Triple") CHECK_OK(ep_api->EpGraphSupportInfo_AddSingleNode(support, node));
      if (op == "Ghost") {
        CHECK_OK(ep_api->EpGraphSupportInfo_AddNodesToFuse(support, &node, 1, nullptr));
      }
      const bool is_control = op == "If" || op == "Loop" || op == "Scan";
      if (op == "Mul" || (control.claims == MockClaims::kKernels && is_control) ||
          IsContextNode(node)) {
        wanted.push_back(node);
      }
      if (is_control) continue;
      // If there is nothing to write, no room is needed.
      CHECK_OK(api->Node_GetImplicitInputs(node, nullptr, 0));
      CHECK_OK(api->Node_GetSubgraphs(node, nullptr, 0, nullptr));
    }
    if (control.claims == MockClaims::kUnfusable) wanted = {nodes.front(), nodes.back()};
    if (wanted.empty() || control.claims == MockClaims::kNothing) return nullptr;
    if (control.claims != MockClaims::kKernels) {
      if (control.claims == MockClaims::kUnfusable) {
        return ep_api->EpGraphSupportInfo_AddNodesToFuse(support, wanted.data(), wanted.size(),
                                                         nullptr);
      }
      for (const OrtNode* const node : wanted) {
        CHECK_OK(ep_api->EpGraphSupportInfo_AddNodesToFuse(support, &node, 1, nullptr));
      }
      return nullptr;
    }
    for (const OrtNode* const node : wanted) {
      const OrtKernelDef* kernel = nullptr;
      CHECK_OK(ep_api->EpGraphSupportInfo_LookUpKernel(support, node, &kernel));
      if (kernel != nullptr) CHECK_OK(ep_api->EpGraphSupportInfo_AddSingleNode(support, node));
    }
    return nullptr;
  }

  // Logs a message in the session's log.
  ~Provider() {
    api->ReleaseStatus(api->Logger_LogMessage(
        logger, ORT_LOGGING_LEVEL_WARNING, "MockProvider goes", ORT_FILE, __LINE__, "~Provider"));
  }

  OrtKernelRegistry* const kernels;
  const ContextSettings contexts;
  const OrtMemoryDevice* const memory;
  const OrtLogger* const logger;
  MockRecorder recorded;
};

// --- the factory ---

OrtStatus* SetExtension(OrtEpFactory* factory);

struct Factory : OrtEpFactory {
  Factory() : OrtEpFactory{} {
    ort_version_supported = control.api_version;
    GetName = [](const OrtEpFactory*) noexcept {
      return Lacks("name of the factory") ? nullptr : kName;
    };
    GetVendor = [](const OrtEpFactory*) noexcept { return Lacks("a vendor") ? nullptr : "Mock"; };
    GetVendorId = [](const OrtEpFactory*) noexcept { return kVendor; };
    GetVersion = [](const OrtEpFactory*) noexcept {
      return Lacks("a version") ? nullptr : control.version.c_str();
    };
    GetSupportedDevices = &Factory::Pair;
    CreateEp = [](OrtEpFactory* self, const OrtHardwareDevice* const* hardware,
                  const OrtKeyValuePairs* const* metadata, size_t count,
                  const OrtSessionOptions* options, const OrtLogger* logger,
                  OrtEp** ep) noexcept -> OrtStatus* {
      ENTER("CreateEp");
      if (control.on_create) control.on_create(options);
      if (control.extension == MockControl::Extension::kSetTooLate) CHECK_OK(SetExtension(self));
      const bool is_complete = count > 0 && logger != nullptr && hardware[0] != nullptr &&
                               api->GetKeyValue(metadata[0], "version") != nullptr;
      if (!is_complete) return api->CreateStatus(ORT_FAIL, "CreateEp lacks an argument");
      char color[32] = "";
      size_t size = sizeof(color);
      OrtStatus* const status =
          api->GetSessionConfigEntry(options, "ep.mockprovider.color", color, &size);
      if (status == nullptr) control.last_option = color;
      api->ReleaseStatus(status);
      for (size_t i = 0; i < count; ++i) {
        control.ep_arguments.push_back(api->HardwareDevice_Vendor(hardware[i]) + std::string(" ") +
                                       api->GetKeyValue(metadata[i], "library_path"));
      }
      if (control.makes_null_providers) return nullptr;
      auto* const factory = static_cast<Factory*>(self);
      *ep = new Provider(factory->kernels, options, factory->DefaultMemory(), logger);
      return nullptr;
    };
    ReleaseEp = [](OrtEpFactory*, OrtEp* ep) {
      control.Log("ReleaseEp");
      delete static_cast<Provider*>(ep);
    };
    CreateAllocator = [](OrtEpFactory* self, const OrtMemoryInfo* memory,
                         const OrtKeyValuePairs* options,
                         OrtAllocator** out) noexcept -> OrtStatus* {
      ENTER("CreateAllocator");
      std::string told = options == nullptr ? "null" : "";
      const char *const *keys = nullptr, *const *values = nullptr;
      size_t count = 0;
      if (options != nullptr) api->GetKeyValuePairs(options, &keys, &values, &count);
      for (size_t i = 0; i < count; ++i) told += keys[i] + std::string("=") + values[i] + ";";
      {
        const std::lock_guard lock(control.mutex);
        control.arena_options = std::move(told);
      }
      const auto* const factory = static_cast<Factory*>(self);
      *out = new Allocator(control.wrong_memory.empty() ? memory : factory->wrong);
      return nullptr;
    };
    if (!control.factory_allocates) OrtEpFactory::CreateAllocator = nullptr;
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* allocator) {
      control.Log("ReleaseAllocator");
      delete static_cast<Allocator*>(allocator);
    };
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** out) noexcept -> OrtStatus* {
      ENTER("CreateDataTransfer");
      *out = new Transfer();
      return nullptr;
    };
    CreateExternalResourceImporterForDevice =
        [](OrtEpFactory*, const OrtEpDevice* device,
           OrtExternalResourceImporterImpl** out) noexcept -> OrtStatus* {
      ENTER("CreateExternalResourceImporterForDevice");
      if (!control.imports) return api->CreateStatus(ORT_NOT_IMPLEMENTED, "imports nothing");
      *out = new Importer(device);
      return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory*) noexcept { return control.has_streams; };
    GetHardwareDeviceIncompatibilityDetails =
        [](OrtEpFactory*, const OrtHardwareDevice* hardware,
           OrtDeviceEpIncompatibilityDetails* details) noexcept -> OrtStatus* {
      ENTER("GetHardwareDeviceIncompatibilityDetails");
      if (api->HardwareDevice_Type(hardware) != OrtHardwareDeviceType_CPU) return nullptr;
      return ep_api->DeviceEpIncompatibilityDetails_SetDetails(details, 5, 42, "no driver");
    };
    ValidateCompiledModelCompatibilityInfo =
        [](OrtEpFactory*, const OrtHardwareDevice* const*, size_t, const char* info,
           OrtCompiledModelCompatibility* fits) noexcept -> OrtStatus* {
      ENTER("ValidateCompiledModelCompatibilityInfo");
      control.validated = info;
      *fits = static_cast<OrtCompiledModelCompatibility>(control.validation);
      return nullptr;
    };
    GetNumCustomOpDomains = [](OrtEpFactory*, size_t* count) noexcept -> OrtStatus* {
      ENTER("GetNumCustomOpDomains");
      *count = control.op_domains;
      return nullptr;
    };
    GetCustomOpDomains = [](OrtEpFactory* self, OrtCustomOpDomain** domains,
                            size_t count) noexcept -> OrtStatus* {
      ENTER("GetCustomOpDomains");
      std::fill_n(domains, count, static_cast<Factory*>(self)->custom_ops);
      return nullptr;
    };
    CreateSyncStreamForDevice = [](OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*,
                                   OrtSyncStreamImpl** out) noexcept -> OrtStatus* {
      ENTER("CreateSyncStreamForDevice");
      *out = Lacks("a stream") ? nullptr : new Stream();
      return nullptr;
    };
    if (!control.factory_makes_streams) OrtEpFactory::CreateSyncStreamForDevice = nullptr;
  }

  const OrtMemoryDevice* DefaultMemory() const {
    switch (control.default_memory) {
      case MockMemory::kNone:
        return nullptr;
      case MockMemory::kFirst:
        return ep_api->MemoryInfo_GetMemoryDevice(device);
      case MockMemory::kSecond:
        return ep_api->MemoryInfo_GetMemoryDevice(second);
      case MockMemory::kHost:
        return ep_api->MemoryInfo_GetMemoryDevice(host);
      case MockMemory::kConstants:
        return ep_api->MemoryInfo_GetMemoryDevice(own_constants);
      case MockMemory::kForeign:
        return ep_api->MemoryInfo_GetMemoryDevice(wrong);
    }
    return nullptr;
  }

  void DropSlots() {
    MAY_LACK(OrtEpFactory, GetName);
    MAY_LACK(OrtEpFactory, GetVendor);
    MAY_LACK(OrtEpFactory, GetSupportedDevices);
    MAY_LACK(OrtEpFactory, CreateEp);
    MAY_LACK(OrtEpFactory, ReleaseEp);
    MAY_LACK(OrtEpFactory, GetVendorId);
    MAY_LACK(OrtEpFactory, GetVersion);
    MAY_LACK(OrtEpFactory, ValidateCompiledModelCompatibilityInfo);
    MAY_LACK(OrtEpFactory, CreateAllocator);
    MAY_LACK(OrtEpFactory, ReleaseAllocator);
    MAY_LACK(OrtEpFactory, CreateDataTransfer);
    MAY_LACK(OrtEpFactory, IsStreamAware);
    MAY_LACK(OrtEpFactory, CreateSyncStreamForDevice);
    MAY_LACK(OrtEpFactory, GetHardwareDeviceIncompatibilityDetails);
    MAY_LACK(OrtEpFactory, CreateExternalResourceImporterForDevice);
    MAY_LACK(OrtEpFactory, GetNumCustomOpDomains);
    MAY_LACK(OrtEpFactory, GetCustomOpDomains);
  }

  OrtStatus* Prepare() {
    DropSlots();
    CHECK_OK(api->CreateMemoryInfo_V2("Mock", OrtMemoryInfoDeviceType_GPU, kVendor, 0,
                                      OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &device));
    CHECK_OK(api->CreateMemoryInfo_V2("MockShared", OrtMemoryInfoDeviceType_GPU, kVendor, 0,
                                      OrtDeviceMemoryType_HOST_ACCESSIBLE, 0, OrtDeviceAllocator,
                                      &host));
    CHECK_OK(api->CreateMemoryInfo_V2("Wrong", OrtMemoryInfoDeviceType_NPU, kVendor, 3,
                                      OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &wrong));
    CHECK_OK(api->CreateMemoryInfo_V2("MockConstants", OrtMemoryInfoDeviceType_GPU, kVendor, 0,
                                      OrtDeviceMemoryType_DEFAULT, 0, OrtReadOnlyAllocator,
                                      &constants));
    CHECK_OK(api->CreateMemoryInfo_V2("MockSecond", OrtMemoryInfoDeviceType_GPU, kVendor, 1,
                                      OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &second));
    CHECK_OK(api->CreateMemoryInfo_V2("MockOwnConstants", OrtMemoryInfoDeviceType_GPU, kVendor, 2,
                                      OrtDeviceMemoryType_DEFAULT, 0, OrtReadOnlyAllocator,
                                      &own_constants));
    CHECK_OK(RegisterKernels(&kernels));
    CHECK_OK(MakeCustomOps(&custom_ops));
    return nullptr;
  }

  ~Factory() {
    if (kernels != nullptr) ep_api->ReleaseKernelRegistry(kernels);
    if (custom_ops != nullptr) api->ReleaseCustomOpDomain(custom_ops);
    for (OrtMemoryInfo* const info : {device, host, wrong, constants, second, own_constants}) {
      if (info != nullptr) api->ReleaseMemoryInfo(info);
    }
    if (hardware != nullptr) ep_api->ReleaseHardwareDevice(hardware);
  }

  static OrtStatus* ORT_API_CALL Pair(OrtEpFactory* base, const OrtHardwareDevice* const* devices,
                                      size_t count, OrtEpDevice** out, size_t,
                                      size_t* made) noexcept {
    ENTER("GetSupportedDevices");
    if (control.extension == MockControl::Extension::kSet) CHECK_OK(SetExtension(base));
    auto* const self = static_cast<Factory*>(base);
    if (count == 0) return nullptr;
    const OrtHardwareDevice* paired = devices[count - 1];
    if (control.is_virtual) {
      OrtKeyValuePairs* metadata = nullptr;
      api->CreateKeyValuePairs(&metadata);
      api->AddKeyValuePair(metadata, "is_virtual", "1");
      OrtStatus* const status = ep_api->CreateHardwareDevice(OrtHardwareDeviceType_NPU, kVendor, 1,
                                                             "Mock", metadata, &self->hardware);
      api->ReleaseKeyValuePairs(metadata);
      if (status != nullptr) return status;
      paired = self->hardware;
    }
    OrtKeyValuePairs* options = nullptr;
    api->CreateKeyValuePairs(&options);
    api->AddKeyValuePair(options, "color", "grey");
    const size_t writable = std::min<size_t>(control.devices, 8);
    OrtStatus* status = nullptr;
    for (size_t i = 0; i < writable && status == nullptr; ++i) {
      status = ep_api->CreateEpDevice(self, paired, nullptr, options, &out[i]);
      if (status == nullptr && control.has_device_memory) {
        const bool is_second = control.has_two_memories && i > 0;
        status = ep_api->EpDevice_AddAllocatorInfo(out[i], is_second ? self->second : self->device);
      }
      if (status == nullptr && control.has_read_only_memory) {
        status = ep_api->EpDevice_AddAllocatorInfo(
            out[i], control.has_own_constants ? self->own_constants : self->constants);
      }
      if (status == nullptr && control.has_host_memory) {
        status = ep_api->EpDevice_AddAllocatorInfo(out[i], self->host);
      }
    }
    api->ReleaseKeyValuePairs(options);
    *made = control.devices;
    return status;
  }

  OrtMemoryInfo *device = nullptr, *host = nullptr, *wrong = nullptr, *constants = nullptr;
  OrtMemoryInfo *second = nullptr, *own_constants = nullptr;
  OrtHardwareDevice* hardware = nullptr;
  OrtKernelRegistry* kernels = nullptr;
  OrtCustomOpDomain* custom_ops = nullptr;
  std::string registered_name;
};

OrtStatus* ORT_API_CALL OnEnd(OrtEp*, const TenonSessionEndInfo* info) noexcept {
  ENTER("OnSessionEnd");
  control.end_reason = info->reason;
  control.completed_runs = info->completed_runs;
  if (control.on_session_end) control.on_session_end();
  return nullptr;
}

TenonEpExtension extension = {};
GuardedPage guarded_page;

const TenonEpExtension* PrepareExtension() {
  const TenonEpExtension wanted = {
      std::min<uint32_t>(control.extension_size, sizeof(TenonEpExtension)),
      control.extension_version, control.extension_flags, OnEnd};
  if (control.guards_extension) {
    return static_cast<const TenonEpExtension*>(guarded_page.Show(&wanted, sizeof(wanted)));
  }
  // Not changed while other threads may read it.
  const std::lock_guard lock(control.mutex);
  if (std::memcmp(&extension, &wanted, sizeof(wanted)) != 0) extension = wanted;
  return &extension;
}

// Gives the extension by the host's function.
OrtStatus* SetExtension(OrtEpFactory* factory) {
  const auto set =
      reinterpret_cast<TenonSetEpExtension>(api->GetExperimentalFunction(TENON_SET_EP_EXTENSION));
  return set(factory, PrepareExtension());
}

}  // namespace
}  // namespace tenon::test

#if defined(MOCK_PLUGIN_WITHOUT_EXPORTS)
extern "C" ORT_EXPORT int NothingOfInterest() { return 1; }
#else
extern "C" {

ORT_EXPORT tenon::test::MockControl* GetMockControl() { return &tenon::test::control; }

// Lets a slot fail, as MockControl::fails; null: none fails any more. For tests in Python.
ORT_EXPORT void MockFail(const char* slot) {
  auto& fails = tenon::test::control.fails;
  if (slot == nullptr) {
    fails.clear();
  } else {
    fails.emplace_back(slot);
  }
}

// Whether the devices of libraries that are registered from now on have memory of their own, and
// memory that the host can read. For tests in Python.
ORT_EXPORT void MockMemory(bool on_device, bool on_host) {
  tenon::test::control.has_device_memory = on_device;
  tenon::test::control.has_host_memory = on_host;
}

ORT_EXPORT OrtStatus* CreateEpFactories(const char* name, const OrtApiBase* base, const OrtLogger*,
                                        OrtEpFactory** factories, size_t max_factories,
                                        size_t* num_factories) {
  using namespace tenon::test;  // NOLINT(google-build-using-namespace)
  static std::once_flag once;
  std::call_once(once, [&] {
    api = base->GetApi(29);
    ep_api = api->GetEpApi();
  });
  if (OrtStatus* const failed = Enter("CreateEpFactories")) return failed;
  *num_factories = control.factories;
  for (size_t i = 0; i < std::min(max_factories, control.factories); ++i) {
    auto factory = std::make_unique<Factory>();
    factory->registered_name = name;
    if (OrtStatus* const failed = factory->Prepare()) return failed;
    factories[i] = factory.release();
    const std::lock_guard lock(control.mutex);
    control.registered.emplace_back(name);
  }
  return nullptr;
}

ORT_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  using namespace tenon::test;  // NOLINT(google-build-using-namespace)
  {
    const std::lock_guard lock(control.mutex);
    control.released.push_back(static_cast<Factory*>(factory)->registered_name);
  }
  delete static_cast<Factory*>(factory);
  guarded_page.Hide();
  return Enter("ReleaseEpFactory");
}

ORT_EXPORT OrtStatus* TenonGetEpExtension(const OrtEpFactory*, uint32_t,
                                          const TenonEpExtension** out) {
  using namespace tenon::test;  // NOLINT(google-build-using-namespace)
  if (control.extension == MockControl::Extension::kExported) *out = PrepareExtension();
  return Enter("TenonGetEpExtension");
}

}  // extern "C"
#endif
