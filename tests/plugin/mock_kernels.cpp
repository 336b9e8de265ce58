// The mock's kernels.
#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "plugin/mock_parts.h"

namespace tenon::test {
namespace {

struct Computing {
  Computing() {
    const int now = ++control.computing;
    int most = control.most_computing;
    while (now > most && !control.most_computing.compare_exchange_weak(most, now)) {
    }
    std::this_thread::yield();
  }
  ~Computing() { --control.computing; }
};

OrtStatus* ShapeOf(const OrtValue* value, std::vector<int64_t>& shape, size_t& size) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  CHECK_OK(api->GetTensorTypeAndShape(value, &info));
  size_t rank = 0;
  CHECK_OK(api->GetDimensionsCount(info, &rank));
  shape.resize(rank);
  CHECK_OK(api->GetDimensions(info, shape.data(), rank));
  CHECK_OK(api->GetTensorShapeElementCount(info, &size));
  api->ReleaseTensorTypeAndShapeInfo(info);
  return nullptr;
}

// y[i] = x[i] * factors[i], the first input being x; without factors, x itself is.
OrtStatus* Multiply(OrtKernelContext* context, const float* factors) {
  const Computing computing;
  OrtSyncStream* stream = nullptr;
  CHECK_OK(api->KernelContext_GetSyncStream(context, &stream));
  control.compute_stream = stream == nullptr ? nullptr : api->SyncStream_GetHandle(stream);
  const OrtValue* input = nullptr;
  CHECK_OK(api->KernelContext_GetInput(context, 0, &input));
  std::vector<int64_t> shape;
  size_t size = 0;
  CHECK_OK(ShapeOf(input, shape, size));
  if (control.on_compute) control.on_compute(context);
  if (!control.output_shape.empty()) shape = control.output_shape;
  OrtValue* output = nullptr;
  CHECK_OK(api->KernelContext_GetOutput(context, 0, shape.data(), shape.size(), &output));
  const void* from = nullptr;
  void* into = nullptr;
  CHECK_OK(api->GetTensorData(input, &from));
  CHECK_OK(api->GetTensorMutableData(output, &into));
  const auto* const x = static_cast<const float*>(from);
  const MockWork work = {x, factors == nullptr ? x : factors, static_cast<float*>(into), size};
  if (control.capture.IsComplete()) {
    if (!recorder->Take(work)) work.Do();
    return nullptr;
  }
  work.Do();
  const std::lock_guard lock(control.mutex);
  if (control.places.emplace(from, into).second) ++control.recordings;
  return nullptr;
}

struct MulKernel : OrtKernelImpl, Counted {
  MulKernel() : OrtKernelImpl{} {
    ort_version_supported = control.api_version;
    OrtKernelImpl::Compute = [](OrtKernelImpl* self, OrtKernelContext* context) noexcept {
      if (OrtStatus* const failed = Enter("Compute")) return failed;
      return Multiply(context, static_cast<MulKernel*>(self)->factors);
    };
    Release = [](OrtKernelImpl* self) noexcept { delete static_cast<MulKernel*>(self); };
    MAY_LACK(OrtKernelImpl, Compute);
    MAY_LACK_RELEASE(OrtKernelImpl);
    if (control.packing == MockPacking::kNone) return;
    PrePackWeight = [](OrtKernelImpl* self, const OrtValue* tensor, int index,
                       OrtAllocator* allocator, OrtSharedPrePackedWeightCache* cache,
                       bool* is_packed) noexcept -> OrtStatus* {
      ENTER("PrePackWeight");
      *is_packed = false;
      if (index != 1) return nullptr;
      return static_cast<MulKernel*>(self)->Pack(tensor, allocator, cache, is_packed);
    };
    if (control.packing == MockPacking::kBadShared) return;
    SetSharedPrePackedWeight = [](OrtKernelImpl* self, const void* const* data, const size_t* sizes,
                                  size_t count, int index) noexcept -> OrtStatus* {
      ENTER("SetSharedPrePackedWeight");
      if (count != 2 || sizes[1] != 1 || index != 1) {
        return api->CreateStatus(ORT_EP_FAIL, "got other buffers than those that were stored");
      }
      static_cast<MulKernel*>(self)->factors = static_cast<const float*>(data[0]);
      const std::lock_guard lock(control.mutex);
      control.shared_data.push_back(data[0]);
      return nullptr;
    };
  }

  OrtStatus* Pack(const OrtValue* tensor, OrtAllocator* allocator,
                  OrtSharedPrePackedWeightCache* cache, bool* is_packed) {
    std::vector<int64_t> shape;
    size_t size = 0;
    CHECK_OK(ShapeOf(tensor, shape, size));
    const void* data = nullptr;
    CHECK_OK(api->GetTensorData(tensor, &data));
    const auto* const weights = static_cast<const float*>(data);
    control.has_cache = cache != nullptr;
    *is_packed = control.packing != MockPacking::kSharedUnpacked;
    if (control.packing == MockPacking::kPrivate || cache == nullptr) {
      own.assign(weights, weights + size);
      factors = own.data();
      return nullptr;
    }
    if (control.packing == MockPacking::kSharedUnpacked) {
      own.assign(weights, weights + size);
      factors = own.data();
    }
    const auto store = [&](float sign) -> OrtStatus* {
      void* buffers[] = {allocator->Alloc(allocator, size * sizeof(float)),
                         allocator->Alloc(allocator, 1)};
      size_t sizes[] = {size * sizeof(float), 1};
      auto* const floats = static_cast<float*>(buffers[0]);
      for (size_t i = 0; i < size; ++i) floats[i] = sign * weights[i];
      *static_cast<char*>(buffers[1]) = 'x';
      // If they are not stored, they stay the kernel's.
      OrtStatus* const failed =
          ep_api->SharedPrePackedWeightCache_StoreWeightData(cache, buffers, sizes, 0);
      if (failed == nullptr) return api->CreateStatus(ORT_EP_FAIL, "stored no buffers at all");
      api->ReleaseStatus(failed);
      return ep_api->SharedPrePackedWeightCache_StoreWeightData(cache, buffers, sizes, 2);
    };
    if (control.packing == MockPacking::kSharedTwice) CHECK_OK(store(-1));
    return store(1);
  }

  std::vector<float> own;
  const float* factors = nullptr;
};

struct LoopHelper : OrtLoopKernelHelper, Counted {
  LoopHelper() : OrtLoopKernelHelper{} {
    ort_version_supported = control.api_version;
    Release = [](OrtLoopKernelHelper* self) noexcept {
      control.Log("ReleaseLoopHelper");
      delete static_cast<LoopHelper*>(self);
    };
    ConcatOutput = [](OrtLoopKernelHelper*, void*, const OrtValue* const* parts, size_t count,
                      void* output, size_t) noexcept -> OrtStatus* {
      auto* into = static_cast<std::byte*>(output);
      for (size_t i = 0; i < count; ++i) {
        const void* data = nullptr;
        size_t bytes = 0;
        CHECK_OK(api->GetTensorData(parts[i], &data));
        CHECK_OK(api->GetTensorSizeInBytes(parts[i], &bytes));
        std::memcpy(into, data, bytes);
        into += bytes;
      }
      return nullptr;
    };
  }
};

struct ScanHelper : OrtScanKernelHelper, Counted {
  ScanHelper() : OrtScanKernelHelper{} {
    ort_version_supported = control.api_version;
    Release = [](OrtScanKernelHelper* self) noexcept {
      control.Log("ReleaseScanHelper");
      delete static_cast<ScanHelper*>(self);
    };
    Transpose = [](OrtScanKernelHelper*, const size_t*, size_t, const OrtValue*, OrtSyncStream*,
                   OrtValue*) noexcept -> OrtStatus* {
      return api->CreateStatus(ORT_NOT_IMPLEMENTED, "the mock permutes nothing");
    };
  }
};

OrtStatus* ORT_API_CALL CreateMul(void*, const OrtKernelInfo* info, OrtKernelImpl** out) noexcept {
  ENTER("CreateKernel");
  const OrtEp* ep = nullptr;
  CHECK_OK(ep_api->KernelInfo_GetEp(info, &ep));
  *out = Lacks("a kernel") ? nullptr : new MulKernel();
  return nullptr;
}

OrtStatus* ORT_API_CALL CreateIf(void*, const OrtKernelInfo* info, OrtKernelImpl** out) noexcept {
  ENTER("CreateIf");
  // The plugin must release a kernel that the host does not request.
  OrtKernelImpl* unused = nullptr;
  CHECK_OK(ep_api->CreateIfKernel(info, &unused));
  ep_api->ReleaseKernelImpl(unused);
  return ep_api->CreateIfKernel(info, out);
}

OrtStatus* ORT_API_CALL CreateLoop(void*, const OrtKernelInfo* info, OrtKernelImpl** out) noexcept {
  ENTER("CreateLoop");
  auto* const helper = new LoopHelper();
  OrtStatus* const status = ep_api->CreateLoopKernel(info, helper, out);
  if (status != nullptr) delete helper;
  return status;
}

OrtStatus* ORT_API_CALL CreateScan(void*, const OrtKernelInfo* info, OrtKernelImpl** out) noexcept {
  ENTER("CreateScan");
  auto* const helper = new ScanHelper();
  OrtStatus* const status = ep_api->CreateScanKernel(info, helper, out);
  if (status != nullptr) delete helper;
  return status;
}

struct CustomOp : OrtCustomOp {
  explicit CustomOp(const char* op_name) : OrtCustomOp{}, name(op_name) {
    version = ORT_API_VERSION;
    GetName = [](const OrtCustomOp* self) { return static_cast<const CustomOp*>(self)->name; };
    GetExecutionProviderType = [](const OrtCustomOp*) { return kName; };
    GetInputType = [](const OrtCustomOp*, size_t) { return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; };
    GetInputTypeCount = [](const OrtCustomOp*) -> size_t { return 1; };
    GetOutputType = GetInputType;
    GetOutputTypeCount = GetInputTypeCount;
    CreateKernel = [](const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*) -> void* {
      control.Log("CreateCustomKernel");
      return new Counted();
    };
    GetInputMemoryType = [](const OrtCustomOp*, size_t) { return control.operator_memory; };
    KernelCompute = [](void*, OrtKernelContext* context) {
      const OrtValue* input = nullptr;
      const OrtMemoryInfo* memory = nullptr;
      const char* memory_name = "";
      api->ReleaseStatus(api->KernelContext_GetInput(context, 0, &input));
      api->ReleaseStatus(api->GetTensorMemoryInfo(input, &memory));
      api->ReleaseStatus(api->MemoryInfoGetName(memory, &memory_name));
      control.operator_input = memory_name;
      const std::vector<float> threes(64, 3);
      api->ReleaseStatus(Multiply(context, threes.data()));
    };
    KernelDestroy = [](void* kernel) { delete static_cast<Counted*>(kernel); };
  }
  const char* name;
};

}  // namespace

OrtStatus* MakeCustomOps(OrtCustomOpDomain** out) {
  static const CustomOp triple("Triple"), ghost("Ghost");
  CHECK_OK(api->CreateCustomOpDomain("mock.ops", out));
  CHECK_OK(api->CustomOpDomain_Add(*out, &triple));
  return api->CustomOpDomain_Add(*out, &ghost);
}

OrtStatus* Square(OrtKernelContext* context) { return Multiply(context, nullptr); }

OrtStatus* RegisterKernels(OrtKernelRegistry** out) {
  CHECK_OK(ep_api->CreateKernelRegistry(out));
  const struct {
    const char* domain;
    const char* op_type;
    int since;
    OrtKernelCreateFunc create;
  } kernels[] = {{"", "Mul", 7, CreateMul},
                 {"", "If", 1, CreateIf},
                 {"", "Loop", 1, CreateLoop},
                 {"", "Scan", 8, CreateScan},
                 {kInternalNhwc, "Conv", 1, CreateConv}};
  for (const auto& kernel : kernels) {
    OrtKernelDefBuilder* builder = nullptr;
    CHECK_OK(ep_api->CreateKernelDefBuilder(&builder));
    CHECK_OK(ep_api->KernelDefBuilder_SetOperatorType(builder, kernel.op_type));
    CHECK_OK(ep_api->KernelDefBuilder_SetDomain(builder, kernel.domain));
    CHECK_OK(ep_api->KernelDefBuilder_SetSinceVersion(builder, kernel.since, 100));
    CHECK_OK(ep_api->KernelDefBuilder_SetExecutionProvider(builder, kName));
    if (kernel.create == CreateMul) {
      const OrtDataType* type = nullptr;
      CHECK_OK(ep_api->GetTensorDataType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &type));
      CHECK_OK(ep_api->KernelDefBuilder_AddTypeConstraint(builder, "T", &type, 1));
    }
    OrtKernelDef* def = nullptr;
    CHECK_OK(ep_api->KernelDefBuilder_Build(builder, &def));
    CHECK_OK(ep_api->KernelRegistry_AddKernel(*out, def, kernel.create, nullptr));
    ep_api->ReleaseKernelDef(def);
    ep_api->ReleaseKernelDefBuilder(builder);
  }
  return nullptr;
}

}  // namespace tenon::test
