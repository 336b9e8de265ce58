// The C ABI of ONNX Runtime as C++17 classes, header-only: each class owns, or refers to, one
// object of onnxruntime_c_api.h and has its functions as methods; what they do is said there.
//
//   Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "app");
//   Ort::Session session(env, ORT_TSTR("model.onnx"), Ort::SessionOptions());
//   std::vector<Ort::Value> outputs = session.Run(Ort::RunOptions(), input_names, inputs, 1,
//                                                 output_names, 1);
//
// - A failure throws Ort::Exception. With ORT_NO_EXCEPTIONS it is printed and the program aborts.
// - X is the owner of an OrtX, can be moved and not copied, and may be empty: X(nullptr). UnownedX
//   and ConstX refer to an object that another owns, and are copied like pointers.
// - With ORT_API_MANUAL_INIT, which plugin libraries define, Ort::InitApi(api) comes before all
// else.
#pragma once

// Also what this file does not use, but clients get with onnxruntime's header of this name.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "cpu_provider_factory.h"
#include "onnxruntime_c_api.h"
#include "onnxruntime_float16.h"

#ifdef ORT_NO_EXCEPTIONS
#define ORT_CXX_API_THROW(text, code)                      \
  do {                                                     \
    std::fputs(Ort::Exception(text, code).what(), stderr); \
    std::fputc('\n', stderr);                              \
    std::abort();                                          \
  } while (false)
#else
#define ORT_CXX_API_THROW(text, code) throw Ort::Exception(text, code)
#endif

namespace Ort {

// The failure of a call.
struct Exception : std::exception {
  Exception(std::string text, OrtErrorCode code) : message_(std::move(text)), code_(code) {}
  OrtErrorCode GetOrtErrorCode() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
  OrtErrorCode code_;
};

namespace detail {
inline const OrtApi*& ApiPointer() noexcept {
#ifdef ORT_API_MANUAL_INIT
  static const OrtApi* api = nullptr;
#else
  static const OrtApi* api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
#endif
  return api;
}
}  // namespace detail

// The table that everything here calls; InitApi sets it.
inline const OrtApi& GetApi() noexcept { return *detail::ApiPointer(); }
inline void InitApi(const OrtApi* api) noexcept { detail::ApiPointer() = api; }
inline void InitApi() noexcept { InitApi(OrtGetApiBase()->GetApi(ORT_API_VERSION)); }
inline const OrtModelEditorApi& GetModelEditorApi();
inline const OrtCompileApi& GetCompileApi();
inline const OrtInteropApi& GetInteropApi();
inline const OrtEpApi& GetEpApi();

inline std::string GetVersionString() { return OrtGetApiBase()->GetVersionString(); }
inline std::string GetBuildInfoString() { return GetApi().GetBuildInfoString(); }
inline std::vector<std::string> GetAvailableProviders();

// Element types without a C++ type of their own.
struct Float16_t : onnxruntime_float16::Float16Impl<Float16_t> {
  Float16_t() = default;
  explicit Float16_t(float value) noexcept { val = ToUint16Impl(value); }
  static constexpr Float16_t FromBits(uint16_t bits) noexcept { return Float16_t(bits, 0); }
  float ToFloat() const noexcept { return ToFloatImpl(); }
  explicit operator float() const noexcept { return ToFloat(); }

 private:
  constexpr Float16_t(uint16_t bits, int) noexcept { val = bits; }
};
struct BFloat16_t : onnxruntime_float16::BFloat16Impl<BFloat16_t> {
  BFloat16_t() = default;
  explicit BFloat16_t(float value) noexcept { val = ToUint16Impl(value); }
  static constexpr BFloat16_t FromBits(uint16_t bits) noexcept { return BFloat16_t(bits, 0); }
  float ToFloat() const noexcept { return ToFloatImpl(); }
  explicit operator float() const noexcept { return ToFloat(); }

 private:
  constexpr BFloat16_t(uint16_t bits, int) noexcept { val = bits; }
};
namespace detail {
template <int kFormat>
struct Float8 {
  uint8_t value = 0;
  constexpr Float8() noexcept = default;
  constexpr Float8(uint8_t bits) noexcept : value(bits) {}
  constexpr operator uint8_t() const noexcept { return value; }
  constexpr bool operator==(const Float8& other) const noexcept { return value == other.value; }
  constexpr bool operator!=(const Float8& other) const noexcept { return value != other.value; }
};
}  // namespace detail
using Float8E4M3FN_t = detail::Float8<ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN>;
using Float8E4M3FNUZ_t = detail::Float8<ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ>;
using Float8E5M2_t = detail::Float8<ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2>;
using Float8E5M2FNUZ_t = detail::Float8<ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ>;
static_assert(sizeof(Float16_t) == 2 && sizeof(BFloat16_t) == 2 && sizeof(Float8E5M2_t) == 1);

// TypeToTensorType<float>::type is the enumerator of the element type.
template <class T>
struct TypeToTensorType;
namespace detail {
template <ONNXTensorElementDataType kType>
struct TensorType {
  static constexpr ONNXTensorElementDataType type = kType;
};
}  // namespace detail
#define ORT_CXX_TENSOR_TYPE(T, NAME) \
  template <>                        \
  struct TypeToTensorType<T> : detail::TensorType<ONNX_TENSOR_ELEMENT_DATA_TYPE_##NAME> {}
ORT_CXX_TENSOR_TYPE(float, FLOAT);
ORT_CXX_TENSOR_TYPE(double, DOUBLE);
ORT_CXX_TENSOR_TYPE(Float16_t, FLOAT16);
ORT_CXX_TENSOR_TYPE(BFloat16_t, BFLOAT16);
ORT_CXX_TENSOR_TYPE(int8_t, INT8);
ORT_CXX_TENSOR_TYPE(int16_t, INT16);
ORT_CXX_TENSOR_TYPE(int32_t, INT32);
ORT_CXX_TENSOR_TYPE(int64_t, INT64);
ORT_CXX_TENSOR_TYPE(uint8_t, UINT8);
ORT_CXX_TENSOR_TYPE(uint16_t, UINT16);
ORT_CXX_TENSOR_TYPE(uint32_t, UINT32);
ORT_CXX_TENSOR_TYPE(uint64_t, UINT64);
ORT_CXX_TENSOR_TYPE(bool, BOOL);
ORT_CXX_TENSOR_TYPE(std::string, STRING);
ORT_CXX_TENSOR_TYPE(Float8E4M3FN_t, FLOAT8E4M3FN);
ORT_CXX_TENSOR_TYPE(Float8E4M3FNUZ_t, FLOAT8E4M3FNUZ);
ORT_CXX_TENSOR_TYPE(Float8E5M2_t, FLOAT8E5M2);
ORT_CXX_TENSOR_TYPE(Float8E5M2FNUZ_t, FLOAT8E5M2FNUZ);
#undef ORT_CXX_TENSOR_TYPE

namespace detail {

#define ORT_CXX_RELEASE(NAME) \
  inline void OrtRelease(Ort##NAME* object) noexcept { GetApi().Release##NAME(object); }
ORT_CXX_RELEASE(Allocator)
ORT_CXX_RELEASE(ArenaCfg)
ORT_CXX_RELEASE(CustomOpDomain)
ORT_CXX_RELEASE(DeviceEpIncompatibilityDetails)
ORT_CXX_RELEASE(Env)
ORT_CXX_RELEASE(ExternalInitializerInfo)
ORT_CXX_RELEASE(Graph)
ORT_CXX_RELEASE(IoBinding)
ORT_CXX_RELEASE(KernelInfo)
ORT_CXX_RELEASE(KeyValuePairs)
ORT_CXX_RELEASE(LoraAdapter)
ORT_CXX_RELEASE(MapTypeInfo)
ORT_CXX_RELEASE(MemoryInfo)
ORT_CXX_RELEASE(Model)
ORT_CXX_RELEASE(ModelMetadata)
ORT_CXX_RELEASE(Node)
ORT_CXX_RELEASE(Op)
ORT_CXX_RELEASE(OpAttr)
ORT_CXX_RELEASE(PrepackedWeightsContainer)
ORT_CXX_RELEASE(RunOptions)
ORT_CXX_RELEASE(SequenceTypeInfo)
ORT_CXX_RELEASE(Session)
ORT_CXX_RELEASE(SessionOptions)
ORT_CXX_RELEASE(Status)
ORT_CXX_RELEASE(SyncStream)
ORT_CXX_RELEASE(TensorTypeAndShapeInfo)
ORT_CXX_RELEASE(ThreadingOptions)
ORT_CXX_RELEASE(TypeInfo)
ORT_CXX_RELEASE(Value)
ORT_CXX_RELEASE(ValueInfo)
#undef ORT_CXX_RELEASE
inline void OrtRelease(OrtCUDAProviderOptionsV2* object) noexcept {
  GetApi().ReleaseCUDAProviderOptions(object);
}
inline void OrtRelease(OrtTensorRTProviderOptionsV2* object) noexcept {
  GetApi().ReleaseTensorRTProviderOptions(object);
}
inline void OrtRelease(OrtModelCompilationOptions* object) noexcept {
  GetCompileApi().ReleaseModelCompilationOptions(object);
}
#define ORT_CXX_EP_RELEASE(X) \
  inline void OrtRelease(Ort##X* object) noexcept { GetEpApi().Release##X(object); }
ORT_CXX_EP_RELEASE(EpDevice)
ORT_CXX_EP_RELEASE(KernelDef)
ORT_CXX_EP_RELEASE(KernelDefBuilder)
ORT_CXX_EP_RELEASE(KernelRegistry)
ORT_CXX_EP_RELEASE(OpSchema)
ORT_CXX_EP_RELEASE(ProfilingEvent)
#undef ORT_CXX_EP_RELEASE

// Base<T> owns a T, Base<Unowned<T>> refers to one.
template <class T>
struct Unowned {
  using Type = T;
};

template <class T>
struct Base {
  using contained_type = T;

  constexpr Base() = default;
  constexpr explicit Base(contained_type* object) noexcept : p_(object) {}
  ~Base() {
    if (p_ != nullptr) OrtRelease(p_);
  }
  Base(const Base&) = delete;
  Base& operator=(const Base&) = delete;
  Base(Base&& other) noexcept : p_(other.release()) {}
  Base& operator=(Base&& other) noexcept {
    if (this != &other) {
      if (p_ != nullptr) OrtRelease(p_);
      p_ = other.release();
    }
    return *this;
  }

  constexpr operator contained_type*() const noexcept { return p_; }
  // Releases ownership of the object; this is empty then.
  contained_type* release() { return std::exchange(p_, nullptr); }

 protected:
  contained_type* p_ = nullptr;
};

template <class T>
struct Base<Unowned<T>> {
  using contained_type = T;

  constexpr Base() = default;
  constexpr explicit Base(contained_type* object) noexcept : p_(object) {}
  constexpr operator contained_type*() const noexcept { return p_; }

 protected:
  contained_type* p_ = nullptr;
};

// Frees what a function allocated with an allocator.
struct AllocatedFree {
  OrtAllocator* allocator_;
  explicit AllocatedFree(OrtAllocator* allocator) : allocator_(allocator) {}
  void operator()(void* block) const {
    if (block != nullptr) allocator_->Free(allocator_, block);
  }
};

// Options by name, as the C functions take them.
struct NamesAndValues {
  explicit NamesAndValues(const std::unordered_map<std::string, std::string>& options);
  size_t size() const { return names.size(); }
  std::vector<const char*> names;
  std::vector<const char*> values;
};

}  // namespace detail

using AllocatedStringPtr = std::unique_ptr<char, detail::AllocatedFree>;

// The outcome of a call; empty: success.
struct Status : detail::Base<OrtStatus> {
  using Base::Base;
  Status() = default;
  explicit Status(std::nullptr_t) {}
  explicit Status(const Exception& exception);
  explicit Status(const std::exception& exception);
  Status(const char* message, OrtErrorCode code);
  std::string GetErrorMessage() const;
  OrtErrorCode GetErrorCode() const;
  bool IsOK() const noexcept { return p_ == nullptr; }
};

// Throws the failure, if it is one; releases an OrtStatus.
inline void ThrowOnError(OrtStatus* status);
inline void ThrowOnError(const Status& status);

namespace detail {
// The value that `slot` writes through its last parameter.
template <class Out, class Slot, class... Args>
Out Query(Slot slot, Args&&... args) {
  Out out{};
  ThrowOnError(slot(std::forward<Args>(args)..., &out));
  return out;
}
}  // namespace detail

// Settings of the environment's thread pools.
struct ThreadingOptions : detail::Base<OrtThreadingOptions> {
  ThreadingOptions();
  ThreadingOptions& SetGlobalIntraOpNumThreads(int count);
  ThreadingOptions& SetGlobalInterOpNumThreads(int count);
  ThreadingOptions& SetGlobalSpinControl(int allow_spinning);
  ThreadingOptions& SetGlobalDenormalAsZero();
  ThreadingOptions& SetGlobalIntraOpThreadAffinity(const char* affinity);
  ThreadingOptions& SetGlobalCustomCreateThreadFn(OrtCustomCreateThreadFn function);
  ThreadingOptions& SetGlobalCustomThreadCreationOptions(void* options);
  ThreadingOptions& SetGlobalCustomJoinThreadFn(OrtCustomJoinThreadFn function);
};

namespace detail {
template <class T>
struct KeyValuePairsImpl : Base<T> {
  using Base<T>::Base;
  const char* GetValue(const char* key) const { return GetApi().GetKeyValue(this->p_, key); }
  std::unordered_map<std::string, std::string> GetKeyValuePairs() const;
  void GetKeyValuePairs(std::vector<const char*>& keys, std::vector<const char*>& values) const;
};
}  // namespace detail
using ConstKeyValuePairs = detail::KeyValuePairsImpl<detail::Unowned<const OrtKeyValuePairs>>;

struct KeyValuePairs : detail::KeyValuePairsImpl<OrtKeyValuePairs> {
  using KeyValuePairsImpl::KeyValuePairsImpl;
  explicit KeyValuePairs(std::nullptr_t) {}
  KeyValuePairs() { GetApi().CreateKeyValuePairs(&p_); }
  explicit KeyValuePairs(const std::unordered_map<std::string, std::string>& pairs);
  void Add(const char* key, const char* value) { GetApi().AddKeyValuePair(p_, key, value); }
  void Remove(const char* key) { GetApi().RemoveKeyValuePair(p_, key); }
  ConstKeyValuePairs GetConst() const { return ConstKeyValuePairs(p_); }
};

// The entries of the process's environment, which plugins may read.
inline KeyValuePairs GetEnvConfigEntries();

namespace detail {
template <class T>
struct MemoryInfoImpl : Base<T> {
  using Base<T>::Base;
  std::string GetAllocatorName() const;
  OrtAllocatorType GetAllocatorType() const;
  int GetDeviceId() const;
  OrtMemoryInfoDeviceType GetDeviceType() const;
  OrtMemType GetMemoryType() const;
  OrtDeviceMemoryType GetDeviceMemoryType() const;
  uint32_t GetVendorId() const;
  template <class U>
  bool operator==(const MemoryInfoImpl<U>& other) const;
};
}  // namespace detail
using ConstMemoryInfo = detail::MemoryInfoImpl<detail::Unowned<const OrtMemoryInfo>>;

// A memory location.
struct MemoryInfo : detail::MemoryInfoImpl<OrtMemoryInfo> {
  using MemoryInfoImpl::MemoryInfoImpl;
  explicit MemoryInfo(std::nullptr_t) {}
  MemoryInfo(const char* name, OrtAllocatorType type, int id, OrtMemType mem_type);
  MemoryInfo(const char* name, OrtMemoryInfoDeviceType device_type, uint32_t vendor_id,
             uint32_t device_id, OrtDeviceMemoryType mem_type, size_t alignment,
             OrtAllocatorType allocator_type);
  static MemoryInfo CreateCpu(OrtAllocatorType type, OrtMemType mem_type = OrtMemTypeDefault);
  ConstMemoryInfo GetConst() const { return ConstMemoryInfo(p_); }
};

// A block of memory that is given back to its allocator.
struct MemoryAllocation {
  MemoryAllocation(OrtAllocator* allocator, void* block, size_t size)
      : allocator_(allocator), block_(block), size_(size) {}
  ~MemoryAllocation();
  MemoryAllocation(const MemoryAllocation&) = delete;
  MemoryAllocation& operator=(const MemoryAllocation&) = delete;
  MemoryAllocation(MemoryAllocation&& other) noexcept;
  MemoryAllocation& operator=(MemoryAllocation&& other) noexcept;
  void* get() { return block_; }
  size_t size() const { return size_; }

 private:
  OrtAllocator* allocator_;
  void* block_;
  size_t size_;
};

namespace detail {
template <class T>
struct AllocatorImpl : Base<T> {
  using Base<T>::Base;
  void* Alloc(size_t size);
  // Memory that the arena does not keep; as Alloc, if the allocator has no such memory.
  void* Reserve(size_t size);
  MemoryAllocation GetAllocation(size_t size);
  void Free(void* block);
  ConstMemoryInfo GetInfo() const;
  KeyValuePairs GetStats() const;
  // Gives unused memory back; nothing, if the allocator keeps none.
  void Shrink();
};
}  // namespace detail
using UnownedAllocator = detail::AllocatorImpl<detail::Unowned<OrtAllocator>>;

// The process-wide CPU allocator.
struct AllocatorWithDefaultOptions : detail::AllocatorImpl<detail::Unowned<OrtAllocator>> {
  explicit AllocatorWithDefaultOptions(std::nullptr_t) {}
  AllocatorWithDefaultOptions();
};

namespace detail {
template <class T>
struct ConstHardwareDeviceImpl : Base<T> {
  using Base<T>::Base;
  OrtHardwareDeviceType Type() const { return GetApi().HardwareDevice_Type(this->p_); }
  uint32_t VendorId() const { return GetApi().HardwareDevice_VendorId(this->p_); }
  uint32_t DeviceId() const { return GetApi().HardwareDevice_DeviceId(this->p_); }
  const char* Vendor() const { return GetApi().HardwareDevice_Vendor(this->p_); }
  ConstKeyValuePairs Metadata() const {
    return ConstKeyValuePairs(GetApi().HardwareDevice_Metadata(this->p_));
  }
};
}  // namespace detail
using ConstHardwareDevice =
    detail::ConstHardwareDeviceImpl<detail::Unowned<const OrtHardwareDevice>>;

// A queue of work of a device.
struct SyncStream : detail::Base<OrtSyncStream> {
  using Base::Base;
  explicit SyncStream(std::nullptr_t) {}
  void* GetHandle() { return GetApi().SyncStream_GetHandle(p_); }
};

namespace detail {
template <class T>
struct EpDeviceImpl : Base<T> {
  using Base<T>::Base;
  const char* EpName() const { return GetApi().EpDevice_EpName(this->p_); }
  const char* EpVendor() const { return GetApi().EpDevice_EpVendor(this->p_); }
  ConstKeyValuePairs EpMetadata() const {
    return ConstKeyValuePairs(GetApi().EpDevice_EpMetadata(this->p_));
  }
  ConstKeyValuePairs EpOptions() const {
    return ConstKeyValuePairs(GetApi().EpDevice_EpOptions(this->p_));
  }
  ConstHardwareDevice Device() const {
    return ConstHardwareDevice(GetApi().EpDevice_Device(this->p_));
  }
  ConstMemoryInfo GetMemoryInfo(OrtDeviceMemoryType type) const {
    return ConstMemoryInfo(GetApi().EpDevice_MemoryInfo(this->p_, type));
  }
  SyncStream CreateSyncStream(ConstKeyValuePairs options = {}) const;
};
}  // namespace detail
// A provider and a device that it can use.
using ConstEpDevice = detail::EpDeviceImpl<detail::Unowned<const OrtEpDevice>>;

// A pair that a plugin's factory makes, until it returns it to the library.
struct EpDevice : detail::EpDeviceImpl<OrtEpDevice> {
  using EpDeviceImpl::EpDeviceImpl;
  explicit EpDevice(std::nullptr_t) {}
  EpDevice(OrtEpFactory& factory, ConstHardwareDevice& device, ConstKeyValuePairs metadata = {},
           ConstKeyValuePairs options = {}) {
    ThrowOnError(GetEpApi().CreateEpDevice(&factory, device, metadata, options, &p_));
  }
};

// Whether a model that was compiled for these devices, all of one provider, suits them.
// `compatibility_info` is what the compiled model says.
OrtCompiledModelCompatibility GetModelCompatibilityForEpDevices(
    const std::vector<ConstEpDevice>& devices, const char* compatibility_info);

// Options of the CUDA provider, by name.
struct CUDAProviderOptions : detail::Base<OrtCUDAProviderOptionsV2> {
  CUDAProviderOptions(std::nullptr_t) {}
  CUDAProviderOptions();
  void Update(const std::unordered_map<std::string, std::string>& options);
  void UpdateWithValue(const char* key, void* value);
  void* GetOptionByName(const char* name) const;
  std::string GetCUDAProviderOptionsAsString() const;
};

// Options of the TensorRT provider, by name.
struct TensorRTProviderOptions : detail::Base<OrtTensorRTProviderOptionsV2> {
  TensorRTProviderOptions(std::nullptr_t) {}
  TensorRTProviderOptions();
  void Update(const std::unordered_map<std::string, std::string>& options);
  void UpdateWithValue(const char* key, void* value);
  void* GetOptionByName(const char* name) const;
  std::string GetTensorRTProviderOptionsAsString() const;
};

struct Value;
struct DeviceEpIncompatibilityDetails;

// Logger and shared thread pools; outlives the sessions.
struct Env : detail::Base<OrtEnv> {
  explicit Env(std::nullptr_t) {}
  Env(OrtLoggingLevel level = ORT_LOGGING_LEVEL_WARNING, const char* logid = "");
  Env(OrtLoggingLevel level, const char* logid, OrtLoggingFunction function, void* param);
  Env(const OrtThreadingOptions* threading, OrtLoggingLevel level = ORT_LOGGING_LEVEL_WARNING,
      const char* logid = "");
  Env(const OrtThreadingOptions* threading, OrtLoggingFunction function, void* param,
      OrtLoggingLevel level = ORT_LOGGING_LEVEL_WARNING, const char* logid = "");
  explicit Env(const OrtEnvCreationOptions* options);
  explicit Env(OrtEnv* env) : Base(env) {}

  Env& EnableTelemetryEvents();
  Env& DisableTelemetryEvents();
  Env& UpdateEnvWithCustomLogLevel(OrtLoggingLevel level);
  Env& SetPerSessionThreadPoolCallbacks(const OrtThreadPoolCallbacksConfig& config);
  Env& CreateAndRegisterAllocator(const OrtMemoryInfo* info, const OrtArenaCfg* arena);
  Env& CreateAndRegisterAllocatorV2(const std::string& provider, const OrtMemoryInfo* info,
                                    const std::unordered_map<std::string, std::string>& options,
                                    const OrtArenaCfg* arena);
  Env& RegisterAllocator(OrtAllocator* allocator);
  Env& UnregisterAllocator(const OrtMemoryInfo* info);
  Env& RegisterExecutionProviderLibrary(const char* name, const std::basic_string<ORTCHAR_T>& path);
  Env& UnregisterExecutionProviderLibrary(const char* name);
  std::vector<ConstEpDevice> GetEpDevices() const;
  size_t GetNumHardwareDevices() const;
  std::vector<ConstHardwareDevice> GetHardwareDevices() const;
  DeviceEpIncompatibilityDetails GetHardwareDeviceEpIncompatibilityDetails(
      const char* ep_name, ConstHardwareDevice device) const;
  UnownedAllocator GetSharedAllocator(const OrtMemoryInfo* info);
  UnownedAllocator CreateSharedAllocator(const OrtEpDevice* device, OrtDeviceMemoryType mem_type,
                                         OrtAllocatorType allocator_type,
                                         const OrtKeyValuePairs* options);
  void ReleaseSharedAllocator(const OrtEpDevice* device, OrtDeviceMemoryType mem_type);
  Status CopyTensors(const std::vector<Value>& from, const std::vector<Value>& to,
                     OrtSyncStream* stream) const;
  Status CopyTensor(const OrtValue* from, OrtValue* to, OrtSyncStream* stream) const {
    return Status(GetApi().CopyTensors(p_, &from, &to, stream, 1));
  }
};

// A domain of custom operators; outlives the sessions.
struct CustomOpDomain : detail::Base<OrtCustomOpDomain> {
  using Base::Base;
  explicit CustomOpDomain(std::nullptr_t) {}
  explicit CustomOpDomain(const char* domain);
  void Add(const OrtCustomOp* op) { ThrowOnError(GetApi().CustomOpDomain_Add(p_, op)); }
};

struct LoraAdapter : detail::Base<OrtLoraAdapter> {
  using Base::Base;
  explicit LoraAdapter(std::nullptr_t) {}
  static LoraAdapter CreateLoraAdapter(const std::basic_string<ORTCHAR_T>& path,
                                       OrtAllocator* allocator);
  static LoraAdapter CreateLoraAdapterFromArray(const void* bytes, size_t size,
                                                OrtAllocator* allocator);
};

struct RunOptions : detail::Base<OrtRunOptions> {
  using Base::Base;
  explicit RunOptions(std::nullptr_t) {}
  RunOptions();
  RunOptions& SetRunLogVerbosityLevel(int level);
  int GetRunLogVerbosityLevel() const;
  RunOptions& SetRunLogSeverityLevel(int level);
  int GetRunLogSeverityLevel() const;
  RunOptions& SetRunTag(const char* tag);
  const char* GetRunTag() const;
  RunOptions& AddConfigEntry(const char* key, const char* value);
  const char* GetConfigEntry(const char* key) const;
  RunOptions& SetTerminate();
  RunOptions& UnsetTerminate();
  RunOptions& AddActiveLoraAdapter(const LoraAdapter& adapter);
  RunOptions& SetSyncStream(OrtSyncStream* stream);
  RunOptions& EnableProfiling(const ORTCHAR_T* prefix);
  RunOptions& DisableProfiling();
};

namespace detail {
// The key of a session's config entry for a custom operator.
std::string MakeCustomOpConfigEntryKey(const char* op, const char* key);
}  // namespace detail

// Settings for the custom operators of a library, by operator.
struct CustomOpConfigs {
  static std::string MakeSessionConfigEntryKey(const char* op, const char* key);
  CustomOpConfigs& AddConfig(const char* op, const char* key, const char* value);
  const std::unordered_map<std::string, std::string>& GetFlattenedConfigs() const {
    return entries_;
  }

 private:
  std::unordered_map<std::string, std::string> entries_;
};

struct SessionOptions;
namespace detail {
template <class T>
struct ConstSessionOptionsImpl : Base<T> {
  using Base<T>::Base;
  SessionOptions Clone() const;
  std::string GetConfigEntry(const char* key) const;
  bool HasConfigEntry(const char* key) const;
  std::string GetConfigEntryOrDefault(const char* key, const std::string& otherwise) const;
  bool GetMemPatternEnabled() const;
  ExecutionMode GetExecutionMode() const;
};

template <class T>
struct SessionOptionsImpl : ConstSessionOptionsImpl<T> {
  using ConstSessionOptionsImpl<T>::ConstSessionOptionsImpl;
  using Options = std::unordered_map<std::string, std::string>;

  SessionOptionsImpl& SetIntraOpNumThreads(int count);
  SessionOptionsImpl& SetInterOpNumThreads(int count);
  SessionOptionsImpl& SetGraphOptimizationLevel(GraphOptimizationLevel level);
  SessionOptionsImpl& SetDeterministicCompute(bool value);
  SessionOptionsImpl& EnableCpuMemArena();
  SessionOptionsImpl& DisableCpuMemArena();
  SessionOptionsImpl& SetOptimizedModelFilePath(const ORTCHAR_T* path);
  SessionOptionsImpl& EnableProfiling(const ORTCHAR_T* prefix);
  SessionOptionsImpl& DisableProfiling();
  SessionOptionsImpl& EnableOrtCustomOps();
  SessionOptionsImpl& EnableMemPattern();
  SessionOptionsImpl& DisableMemPattern();
  SessionOptionsImpl& SetExecutionMode(ExecutionMode mode);
  SessionOptionsImpl& SetLoadCancellationFlag(bool value);
  SessionOptionsImpl& SetLogId(const char* logid);
  SessionOptionsImpl& SetLogSeverityLevel(int level);
  SessionOptionsImpl& SetLogVerbosityLevel(int level);
  SessionOptionsImpl& SetUserLoggingFunction(OrtLoggingFunction function, void* param);
  SessionOptionsImpl& Add(OrtCustomOpDomain* domain);
  SessionOptionsImpl& DisablePerSessionThreads();
  SessionOptionsImpl& AddConfigEntry(const char* key, const char* value);
  SessionOptionsImpl& AddInitializer(const char* name, const OrtValue* value);
  SessionOptionsImpl& AddExternalInitializers(const std::vector<std::string>& names,
                                              const std::vector<Value>& values);
  SessionOptionsImpl& AddExternalInitializersFromFilesInMemory(
      const std::vector<std::basic_string<ORTCHAR_T>>& names, const std::vector<char*>& contents,
      const std::vector<size_t>& sizes);
  SessionOptionsImpl& AddFreeDimensionOverride(const char* denotation, int64_t size);
  SessionOptionsImpl& AddFreeDimensionOverrideByName(const char* name, int64_t size);
  SessionOptionsImpl& SetCustomCreateThreadFn(OrtCustomCreateThreadFn function);
  SessionOptionsImpl& SetCustomThreadCreationOptions(void* options);
  SessionOptionsImpl& SetCustomJoinThreadFn(OrtCustomJoinThreadFn function);
  SessionOptionsImpl& RegisterCustomOpsLibrary(const ORTCHAR_T* path,
                                               const CustomOpConfigs& configs = {});
  SessionOptionsImpl& RegisterCustomOpsUsingFunction(const char* function);

  SessionOptionsImpl& AppendExecutionProvider(const std::string& name, const Options& options = {});
  SessionOptionsImpl& AppendExecutionProvider_V2(Env& env,
                                                 const std::vector<ConstEpDevice>& devices,
                                                 const KeyValuePairs& options);
  SessionOptionsImpl& AppendExecutionProvider_V2(Env& env,
                                                 const std::vector<ConstEpDevice>& devices,
                                                 const Options& options);
  SessionOptionsImpl& AppendExecutionProvider_CPU(int use_arena);
  SessionOptionsImpl& AppendExecutionProvider_CUDA(const OrtCUDAProviderOptions& options);
  SessionOptionsImpl& AppendExecutionProvider_CUDA_V2(const OrtCUDAProviderOptionsV2& options);
  SessionOptionsImpl& AppendExecutionProvider_ROCM(const OrtROCMProviderOptions& options);
  SessionOptionsImpl& AppendExecutionProvider_OpenVINO(const OrtOpenVINOProviderOptions& options);
  SessionOptionsImpl& AppendExecutionProvider_OpenVINO_V2(const Options& options = {});
  SessionOptionsImpl& AppendExecutionProvider_TensorRT(const OrtTensorRTProviderOptions& options);
  SessionOptionsImpl& AppendExecutionProvider_TensorRT_V2(
      const OrtTensorRTProviderOptionsV2& options);
  SessionOptionsImpl& AppendExecutionProvider_MIGraphX(const OrtMIGraphXProviderOptions& options);
  SessionOptionsImpl& AppendExecutionProvider_CANN(const OrtCANNProviderOptions& options);
  SessionOptionsImpl& AppendExecutionProvider_Dnnl(const OrtDnnlProviderOptions& options);
  SessionOptionsImpl& AppendExecutionProvider_VitisAI(const Options& options = {});
  SessionOptionsImpl& SetEpSelectionPolicy(OrtExecutionProviderDevicePolicy policy);
  SessionOptionsImpl& SetEpSelectionPolicy(EpSelectionDelegate delegate, void* state = nullptr);

 private:
  SessionOptionsImpl& Done(OrtStatus* status) {
    ThrowOnError(status);
    return *this;
  }
};
}  // namespace detail
using ConstSessionOptions =
    detail::ConstSessionOptionsImpl<detail::Unowned<const OrtSessionOptions>>;
using UnownedSessionOptions = detail::SessionOptionsImpl<detail::Unowned<OrtSessionOptions>>;

struct SessionOptions : detail::SessionOptionsImpl<OrtSessionOptions> {
  explicit SessionOptions(std::nullptr_t) {}
  SessionOptions();
  explicit SessionOptions(OrtSessionOptions* options) : SessionOptionsImpl(options) {}
  UnownedSessionOptions GetUnowned() const { return UnownedSessionOptions(p_); }
  ConstSessionOptions GetConst() const { return ConstSessionOptions(p_); }
};

// Description of a model, as its author wrote it.
struct ModelMetadata : detail::Base<OrtModelMetadata> {
  using Base::Base;
  explicit ModelMetadata(std::nullptr_t) {}
  AllocatedStringPtr GetProducerNameAllocated(OrtAllocator* allocator) const;
  AllocatedStringPtr GetGraphNameAllocated(OrtAllocator* allocator) const;
  AllocatedStringPtr GetDomainAllocated(OrtAllocator* allocator) const;
  AllocatedStringPtr GetDescriptionAllocated(OrtAllocator* allocator) const;
  AllocatedStringPtr GetGraphDescriptionAllocated(OrtAllocator* allocator) const;
  std::vector<AllocatedStringPtr> GetCustomMetadataMapKeysAllocated(OrtAllocator* allocator) const;
  // Null if there is no such key.
  AllocatedStringPtr LookupCustomMetadataMapAllocated(const char* key,
                                                      OrtAllocator* allocator) const;
  int64_t GetVersion() const;
};

namespace detail {
template <class T>
struct TensorTypeAndShapeInfoImpl : Base<T> {
  using Base<T>::Base;
  ONNXTensorElementDataType GetElementType() const;
  size_t GetElementCount() const;
  size_t GetDimensionsCount() const;
  // -1 stands for a dimension that is unknown or symbolic.
  std::vector<int64_t> GetShape() const;
  void GetDimensions(int64_t* values, size_t count) const;
  std::vector<const char*> GetSymbolicDimensions() const;
  void GetSymbolicDimensions(const char** values, size_t count) const;
  bool HasShape() const { return GetApi().TensorTypeAndShape_HasShape(this->p_); }
};
}  // namespace detail
using ConstTensorTypeAndShapeInfo =
    detail::TensorTypeAndShapeInfoImpl<detail::Unowned<const OrtTensorTypeAndShapeInfo>>;

struct TensorTypeAndShapeInfo : detail::TensorTypeAndShapeInfoImpl<OrtTensorTypeAndShapeInfo> {
  using TensorTypeAndShapeInfoImpl::TensorTypeAndShapeInfoImpl;
  explicit TensorTypeAndShapeInfo(std::nullptr_t) {}
  TensorTypeAndShapeInfo(ONNXTensorElementDataType type, const std::vector<int64_t>& shape,
                         const std::vector<std::string>* symbolic = nullptr);
  ConstTensorTypeAndShapeInfo GetConst() const { return ConstTensorTypeAndShapeInfo(p_); }
};

struct TypeInfo;
namespace detail {
template <class T>
struct SequenceTypeInfoImpl : Base<T> {
  using Base<T>::Base;
  TypeInfo GetSequenceElementType() const;
};
template <class T>
struct OptionalTypeInfoImpl : Base<T> {
  using Base<T>::Base;
  TypeInfo GetOptionalElementType() const;
};
template <class T>
struct MapTypeInfoImpl : Base<T> {
  using Base<T>::Base;
  ONNXTensorElementDataType GetMapKeyType() const;
  TypeInfo GetMapValueType() const;
};
}  // namespace detail
using ConstSequenceTypeInfo =
    detail::SequenceTypeInfoImpl<detail::Unowned<const OrtSequenceTypeInfo>>;
using ConstOptionalTypeInfo =
    detail::OptionalTypeInfoImpl<detail::Unowned<const OrtOptionalTypeInfo>>;
using ConstMapTypeInfo = detail::MapTypeInfoImpl<detail::Unowned<const OrtMapTypeInfo>>;
using SequenceTypeInfo = detail::SequenceTypeInfoImpl<OrtSequenceTypeInfo>;
using MapTypeInfo = detail::MapTypeInfoImpl<OrtMapTypeInfo>;

namespace detail {
template <class T>
struct TypeInfoImpl : Base<T> {
  using Base<T>::Base;
  // Parts of this type, empty if it is of another kind.
  ConstTensorTypeAndShapeInfo GetTensorTypeAndShapeInfo() const;
  ConstSequenceTypeInfo GetSequenceTypeInfo() const;
  ConstMapTypeInfo GetMapTypeInfo() const;
  ConstOptionalTypeInfo GetOptionalTypeInfo() const;
  ONNXType GetONNXType() const;
};
}  // namespace detail
using ConstTypeInfo = detail::TypeInfoImpl<detail::Unowned<const OrtTypeInfo>>;

// The type of a value.
struct TypeInfo : detail::TypeInfoImpl<OrtTypeInfo> {
  using TypeInfoImpl::TypeInfoImpl;
  explicit TypeInfo(std::nullptr_t) {}
  static TypeInfo CreateTensorInfo(ConstTensorTypeAndShapeInfo info);
  static TypeInfo CreateSparseTensorInfo(ConstTensorTypeAndShapeInfo info);
  static TypeInfo CreateSequenceTypeInfo(ConstTypeInfo element);
  static TypeInfo CreateMapTypeInfo(ONNXTensorElementDataType key, ConstTypeInfo value);
  static TypeInfo CreateOptionalTypeInfo(ConstTypeInfo contained);
  ConstTypeInfo GetConst() const { return ConstTypeInfo(p_); }
};

namespace detail {

// The values of a sparse tensor that is to be filled: their shape, and a pointer to their data, or
// for strings to null-terminated texts.
struct OrtSparseValuesParam {
  const int64_t* values_shape;
  size_t values_shape_len;
  union {
    const void* p_data;
    const char** str;
  } data;
};

// A shape, as the C functions take it.
struct Shape {
  const int64_t* shape;
  size_t shape_len;
};

template <class T>
struct ConstValueImpl : Base<T> {
  using Base<T>::Base;
  template <class R>
  void GetOpaqueData(const char* domain, const char* type_name, R& out) const;
  bool IsTensor() const;
  bool HasValue() const;
  size_t GetCount() const;
  Value GetValue(int index, OrtAllocator* allocator) const;
  TypeInfo GetTypeInfo() const;
  ConstMemoryInfo GetTensorMemoryInfo() const;
  TensorTypeAndShapeInfo GetTensorTypeAndShapeInfo() const;
  // Without a copy: the shape is the value's.
  void GetTensorElementTypeAndShapeDataReference(ONNXTensorElementDataType& element_type,
                                                 Shape& shape) const;
  size_t GetTensorSizeInBytes() const;
  const void* GetTensorRawData() const;
  template <class R>
  const R* GetTensorData() const;
  template <class R>
  const R& At(const std::vector<int64_t>& location) const;

  size_t GetStringTensorDataLength() const;
  void GetStringTensorContent(void* buffer, size_t size, size_t* offsets, size_t count) const;
  size_t GetStringTensorElementLength(size_t index) const;
  void GetStringTensorElement(size_t size, size_t index, void* buffer) const;
  std::string GetStringTensorElement(size_t index) const;

  bool IsSparseTensor() const;
  OrtSparseFormat GetSparseFormat() const;
  TensorTypeAndShapeInfo GetSparseTensorValuesTypeAndShapeInfo() const;
  TensorTypeAndShapeInfo GetSparseTensorIndicesTypeShapeInfo(OrtSparseIndicesFormat format) const;
  template <class R>
  const R* GetSparseTensorIndicesData(OrtSparseIndicesFormat format, size_t& count) const;
  template <class R>
  const R* GetSparseTensorValues() const;
};

template <class T>
struct ValueImpl : ConstValueImpl<T> {
  using ConstValueImpl<T>::ConstValueImpl;
  void* GetTensorMutableRawData();
  template <class R>
  R* GetTensorMutableData();
  template <class R>
  R& At(const std::vector<int64_t>& location);

  void FillStringTensor(const char* const* texts, size_t count);
  void FillStringTensorElement(const char* text, size_t index);
  char* GetResizedStringTensorElementBuffer(size_t index, size_t size);

  void UseCooIndices(int64_t* indices, size_t count);
  void UseCsrIndices(int64_t* inner, size_t inner_count, int64_t* outer, size_t outer_count);
  void UseBlockSparseIndices(const Shape& indices_shape, int32_t* indices);
  void FillSparseTensorCoo(const OrtMemoryInfo* info, const OrtSparseValuesParam& values,
                           const int64_t* indices, size_t count);
  void FillSparseTensorCsr(const OrtMemoryInfo* info, const OrtSparseValuesParam& values,
                           const int64_t* inner, size_t inner_count, const int64_t* outer,
                           size_t outer_count);
  void FillSparseTensorBlockSparse(const OrtMemoryInfo* info, const OrtSparseValuesParam& values,
                                   const Shape& indices_shape, const int32_t* indices);
};
}  // namespace detail
using ConstValue = detail::ConstValueImpl<detail::Unowned<const OrtValue>>;
using UnownedValue = detail::ValueImpl<detail::Unowned<OrtValue>>;

// A tensor, sequence, map, optional or sparse tensor.
struct Value : detail::ValueImpl<OrtValue> {
  using OrtSparseValuesParam = detail::OrtSparseValuesParam;
  using Shape = detail::Shape;

  constexpr Value() = default;
  constexpr Value(std::nullptr_t) {}
  explicit Value(OrtValue* value) : ValueImpl(value) {}
  ConstValue GetConst() const { return ConstValue(p_); }
  UnownedValue GetUnowned() const { return UnownedValue(p_); }

  // Tensors over memory of the caller, which outlives them. `count` is in elements, `size` in
  // bytes.
  template <class T>
  static Value CreateTensor(const OrtMemoryInfo* info, T* data, size_t count, const int64_t* shape,
                            size_t shape_len);
  static Value CreateTensor(const OrtMemoryInfo* info, void* data, size_t size,
                            const int64_t* shape, size_t shape_len, ONNXTensorElementDataType type);
  // A tensor over memory that it frees through `deleter`.
  static Value CreateTensor(OrtAllocator* deleter, void* data, size_t size, const int64_t* shape,
                            size_t shape_len, ONNXTensorElementDataType type);
  // Tensors with memory of their own.
  template <class T>
  static Value CreateTensor(OrtAllocator* allocator, const int64_t* shape, size_t shape_len);
  static Value CreateTensor(OrtAllocator* allocator, const int64_t* shape, size_t shape_len,
                            ONNXTensorElementDataType type);

  static Value CreateMap(const Value& keys, const Value& values);
  static Value CreateSequence(const std::vector<Value>& values);
  template <class T>
  static Value CreateOpaque(const char* domain, const char* type_name, const T& data);

  template <class T>
  static Value CreateSparseTensor(const OrtMemoryInfo* info, T* data, const Shape& dense_shape,
                                  const Shape& values_shape);
  static Value CreateSparseTensor(const OrtMemoryInfo* info, void* data, const Shape& dense_shape,
                                  const Shape& values_shape, ONNXTensorElementDataType type);
  template <class T>
  static Value CreateSparseTensor(OrtAllocator* allocator, const Shape& dense_shape);
  static Value CreateSparseTensor(OrtAllocator* allocator, const Shape& dense_shape,
                                  ONNXTensorElementDataType type);
};

// Lets sessions share packed weights; outlives them.
struct PrepackedWeightsContainer : detail::Base<OrtPrepackedWeightsContainer> {
  using Base::Base;
  explicit PrepackedWeightsContainer(std::nullptr_t) {}
  PrepackedWeightsContainer();
};

// Settings of an arena.
struct ArenaCfg : detail::Base<OrtArenaCfg> {
  using Base::Base;
  explicit ArenaCfg(std::nullptr_t) {}
  ArenaCfg(size_t max_mem, int extend_strategy, int initial_chunk_size_bytes,
           int max_dead_bytes_per_chunk);
  explicit ArenaCfg(const std::unordered_map<std::string, size_t>& settings);
};

namespace detail {
template <class T>
struct EpAssignedNodeImpl : Base<T> {
  using Base<T>::Base;
  std::string GetName() const {
    return Query<const char*>(GetApi().EpAssignedNode_GetName, this->p_);
  }
  std::string GetDomain() const {
    return Query<const char*>(GetApi().EpAssignedNode_GetDomain, this->p_);
  }
  std::string GetOperatorType() const {
    return Query<const char*>(GetApi().EpAssignedNode_GetOperatorType, this->p_);
  }
};
}  // namespace detail
// A node of the model, as a session assigned it.
using ConstEpAssignedNode = detail::EpAssignedNodeImpl<detail::Unowned<const OrtEpAssignedNode>>;

namespace detail {
template <class T>
struct EpAssignedSubgraphImpl : Base<T> {
  using Base<T>::Base;
  std::string GetEpName() const {
    return Query<const char*>(GetApi().EpAssignedSubgraph_GetEpName, this->p_);
  }
  std::vector<ConstEpAssignedNode> GetNodes() const {
    const OrtEpAssignedNode* const* nodes = nullptr;
    size_t count = 0;
    ThrowOnError(GetApi().EpAssignedSubgraph_GetNodes(this->p_, &nodes, &count));
    return std::vector<ConstEpAssignedNode>(nodes, nodes + count);
  }
};
}  // namespace detail
// Nodes that a provider runs together.
using ConstEpAssignedSubgraph =
    detail::EpAssignedSubgraphImpl<detail::Unowned<const OrtEpAssignedSubgraph>>;

struct IoBinding;
struct Model;
namespace detail {
template <class T>
struct ConstSessionImpl : Base<T> {
  using Base<T>::Base;
  size_t GetInputCount() const;
  size_t GetOutputCount() const;
  size_t GetOverridableInitializerCount() const;
  std::vector<std::string> GetInputNames() const;
  std::vector<std::string> GetOutputNames() const;
  std::vector<std::string> GetOverridableInitializerNames() const;
  AllocatedStringPtr GetInputNameAllocated(size_t index, OrtAllocator* allocator) const;
  AllocatedStringPtr GetOutputNameAllocated(size_t index, OrtAllocator* allocator) const;
  AllocatedStringPtr GetOverridableInitializerNameAllocated(size_t index,
                                                            OrtAllocator* allocator) const;
  TypeInfo GetInputTypeInfo(size_t index) const;
  TypeInfo GetOutputTypeInfo(size_t index) const;
  TypeInfo GetOverridableInitializerTypeInfo(size_t index) const;
  ModelMetadata GetModelMetadata() const;
  uint64_t GetProfilingStartTimeNs() const;
  int GetOpset(const std::string& domain) const;
  std::vector<ConstMemoryInfo> GetMemoryInfoForInputs() const;
  std::vector<ConstMemoryInfo> GetMemoryInfoForOutputs() const;
  std::vector<ConstEpDevice> GetEpDeviceForInputs() const;
  std::vector<ConstEpDevice> GetEpDeviceForOutputs() const;
  // What each provider runs, if the session recorded it
  // (kOrtSessionOptionsRecordEpGraphAssignmentInfo).
  std::vector<ConstEpAssignedSubgraph> GetEpGraphAssignmentInfo() const;
};

template <class T>
struct SessionImpl : ConstSessionImpl<T> {
  using ConstSessionImpl<T>::ConstSessionImpl;

  // Runs the model; may be called from several threads at once. Returns the outputs asked for, in
  // that order.
  std::vector<Value> Run(const RunOptions& run_options, const char* const* input_names,
                         const Value* inputs, size_t input_count, const char* const* output_names,
                         size_t output_count);
  // The same, into `outputs`: an empty value receives a new one, others are written in place.
  void Run(const RunOptions& run_options, const char* const* input_names, const Value* inputs,
           size_t input_count, const char* const* output_names, Value* outputs,
           size_t output_count);
  void Run(const RunOptions& run_options, const IoBinding& binding);
  void RunAsync(const RunOptions& run_options, const char* const* input_names, const Value* inputs,
                size_t input_count, const char* const* output_names, Value* outputs,
                size_t output_count, RunAsyncCallbackFn callback, void* user_data);
  // Ends profiling and returns the name of the trace's file.
  AllocatedStringPtr EndProfilingAllocated(OrtAllocator* allocator);
  void SetEpDynamicOptions(const char* const* keys, const char* const* values, size_t count);
  void ReleaseCapturedGraph(int graph_annotation_id) {
    ThrowOnError(GetApi().SessionReleaseCapturedGraph(this->p_, graph_annotation_id));
  }
  // Adds `model` to that of a session of CreateModelEditorSession, and makes the session ready.
  void FinalizeModelEditorSession(const Model& model, const SessionOptions& options,
                                  OrtPrepackedWeightsContainer* container = nullptr);
};
}  // namespace detail
using ConstSession = detail::ConstSessionImpl<detail::Unowned<const OrtSession>>;
using UnownedSession = detail::SessionImpl<detail::Unowned<OrtSession>>;

// A loaded model.
struct Session : detail::SessionImpl<OrtSession> {
  explicit Session(std::nullptr_t) {}
  explicit Session(OrtSession* session) : SessionImpl(session) {}
  Session(const Env& env, const ORTCHAR_T* path, const SessionOptions& options);
  Session(const Env& env, const ORTCHAR_T* path, const SessionOptions& options,
          OrtPrepackedWeightsContainer* container);
  Session(const Env& env, const void* model, size_t size, const SessionOptions& options);
  Session(const Env& env, const void* model, size_t size, const SessionOptions& options,
          OrtPrepackedWeightsContainer* container);
  Session(const Env& env, const Model& model, const SessionOptions& options);
  // Sessions that can run after FinalizeModelEditorSession has completed their models.
  static Session CreateModelEditorSession(const Env& env, const ORTCHAR_T* path,
                                          const SessionOptions& options);
  static Session CreateModelEditorSession(const Env& env, const void* model, size_t size,
                                          const SessionOptions& options);
  ConstSession GetConst() const { return ConstSession(p_); }
  UnownedSession GetUnowned() const { return UnownedSession(p_); }
};

// An allocator of a session's memory; released before the session.
struct Allocator : detail::AllocatorImpl<OrtAllocator> {
  explicit Allocator(std::nullptr_t) {}
  explicit Allocator(OrtAllocator* allocator) : AllocatorImpl(allocator) {}
  Allocator(const Session& session, const OrtMemoryInfo* info);
};

namespace detail {
template <class T>
struct ConstIoBindingImpl : Base<T> {
  using Base<T>::Base;
  std::vector<std::string> GetOutputNames() const;
  std::vector<std::string> GetOutputNames(OrtAllocator* allocator) const;
  std::vector<Value> GetOutputValues() const;
  std::vector<Value> GetOutputValues(OrtAllocator* allocator) const;
};

template <class T>
struct IoBindingImpl : ConstIoBindingImpl<T> {
  using ConstIoBindingImpl<T>::ConstIoBindingImpl;
  void BindInput(const char* name, const Value& value);
  void BindOutput(const char* name, const Value& value);
  void BindOutput(const char* name, const OrtMemoryInfo* info);
  void ClearBoundInputs() { GetApi().ClearBoundInputs(this->p_); }
  void ClearBoundOutputs() { GetApi().ClearBoundOutputs(this->p_); }
  void SynchronizeInputs();
  void SynchronizeOutputs();
};
}  // namespace detail
using ConstIoBinding = detail::ConstIoBindingImpl<detail::Unowned<const OrtIoBinding>>;
using UnownedIoBinding = detail::IoBindingImpl<detail::Unowned<OrtIoBinding>>;

// Inputs and outputs of a session, bound to values or memory locations.
struct IoBinding : detail::IoBindingImpl<OrtIoBinding> {
  explicit IoBinding(std::nullptr_t) {}
  explicit IoBinding(Session& session);
  ConstIoBinding GetConst() const { return ConstIoBinding(p_); }
  UnownedIoBinding GetUnowned() const { return UnownedIoBinding(p_); }
};

}  // namespace Ort

// In this order, and never on their own.
// clang-format off
#include "onnxruntime_cxx_inline.h"        // IWYU pragma: export
#include "onnxruntime_cxx_value_inline.h"  // IWYU pragma: export
#include "onnxruntime_cxx_custom_op.h"     // IWYU pragma: export
#include "onnxruntime_cxx_model_editor.h"  // IWYU pragma: export
#include "onnxruntime_cxx_plugin.h"        // IWYU pragma: export
// clang-format on
