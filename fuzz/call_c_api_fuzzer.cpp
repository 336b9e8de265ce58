// Calls slots of OrtApi in any order with arguments that the interface allows: live objects or
// null, any number, any text, and arrays as long as their length argument says. Every call must end
// in success or in a status.
#include <fuzzer/FuzzedDataProvider.h>

#include <array>
#include <climits>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "onnxruntime_cxx_api.h"

namespace {

// Lengths are at most this, and every array has as many elements.
constexpr size_t kMostElements = 16;
constexpr int kMostCalls = 64;

// The classes of objects in calls' arguments and results, besides OrtEnv and OrtStatus.
// clang-format off
#define TENON_FUZZED_CLASSES(X)                                                              \
  X(SessionOptions) X(RunOptions) X(Session) X(Value) X(MemoryInfo) X(TypeInfo) X(IoBinding) \
  X(TensorTypeAndShapeInfo) X(MapTypeInfo) X(SequenceTypeInfo) X(OptionalTypeInfo)           \
  X(Allocator) X(ModelMetadata) X(ThreadingOptions) X(ArenaCfg) X(PrepackedWeightsContainer) \
  X(KeyValuePairs) X(EpDevice) X(HardwareDevice) X(SyncStream) X(ExternalInitializerInfo)    \
  X(EpAssignedSubgraph) X(EpAssignedNode) X(DeviceEpIncompatibilityDetails)
// clang-format on

const OrtApi& Api() { return Ort::GetApi(); }

OrtEnv* Environment() {
  static auto* const env = new Ort::Env(ORT_LOGGING_LEVEL_FATAL, "fuzz");
  return *env;
}

// y = Relu(x + x) for x: float [N, 3], and t = Identity(s) for strings s.
Ort::Session* MakeSession(const Ort::SessionOptions& options) {
  const auto type = [](ONNXTensorElementDataType element, std::vector<std::string> names) {
    const Ort::TensorTypeAndShapeInfo info(element, {-1, 3}, &names);
    return Ort::TypeInfo::CreateTensorInfo(info.GetConst());
  };
  const Ort::TypeInfo floats = type(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"N", ""});
  const Ort::TypeInfo strings = type(ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, {"N", ""});
  std::vector<Ort::ValueInfo> inputs, outputs;
  inputs.emplace_back("x", floats.GetConst());
  inputs.emplace_back("s", strings.GetConst());
  outputs.emplace_back("y", floats.GetConst());
  outputs.emplace_back("t", strings.GetConst());
  Ort::Graph graph;
  graph.SetInputs(inputs);
  graph.SetOutputs(outputs);
  Ort::Node add("Add", "", "add", {"x", "x"}, {"sum"});
  Ort::Node relu("Relu", "", "relu", {"sum"}, {"y"});
  Ort::Node identity("Identity", "", "identity", {"s"}, {"t"});
  graph.AddNode(add);
  graph.AddNode(relu);
  graph.AddNode(identity);
  Ort::Model model({{"", 20}});
  model.AddGraph(graph);
  static Ort::Env env(ORT_LOGGING_LEVEL_FATAL, "fuzz");
  return new Ort::Session(env, model, options);
}

// The live objects, which calls made or lent. All of them are released at the end in reverse order,
// so that no object outlives its lender.
class Objects {
 public:
  ~Objects() {
    for (auto release = releases_.rbegin(); release != releases_.rend(); ++release) (*release)();
  }
  template <class T>
  std::vector<T*>& Of() {
    return std::get<std::vector<T*>>(all_);
  }
  template <class T>
  void Own(T* object, void (*release)(T*)) {
    Of<T>().push_back(object);
    releases_.push_back([object, release] { release(object); });
  }
  void AtEnd(std::function<void()> release) { releases_.push_back(std::move(release)); }

 private:
#define TENON_VECTOR_OF(name) std::vector<Ort##name*>,
  std::tuple<TENON_FUZZED_CLASSES(TENON_VECTOR_OF) std::vector<OrtEnv*>> all_;
#undef TENON_VECTOR_OF
  std::vector<std::function<void()>> releases_;
};

class Caller {
 public:
  Caller(FuzzedDataProvider& data, Objects& objects) : data_(data), objects_(objects) {}

  // A slot that fills in objects with other owners, or plain values.
  template <class... Args>
  void Call(OrtStatus* (*slot)(Args...) noexcept) {
    std::tuple<Argument<Args>...> arguments{Argument<Args>(*this)...};
    if (!Succeeds(slot, arguments, std::index_sequence_for<Args...>())) return;
    std::apply([&](auto&... argument) { (argument.Keep(*this), ...); }, arguments);
  }

  // A slot whose last parameter receives a new object, or null, that the caller releases.
  template <class T, class... Args>
  void Make(OrtStatus* (*slot)(Args...) noexcept, void (*release)(T*)) {
    std::tuple<Argument<Args>...> arguments{Argument<Args>(*this)...};
    if (!Succeeds(slot, arguments, std::index_sequence_for<Args...>())) return;
    T* const made = std::get<sizeof...(Args) - 1>(arguments).array[0];
    if (made != nullptr) objects_.Own<T>(made, release);
  }

  void Run() {
    const OrtStatus* const status = Api().Run(
        Any<OrtSession>(), Any<OrtRunOptions>(), Argument<const char* const*>(*this).array.data(),
        Argument<const OrtValue* const*>(*this).array.data(), Length(),
        Argument<const char* const*>(*this).array.data(), 2, fetches_.data());
    Api().ReleaseStatus(const_cast<OrtStatus*>(status));
    for (OrtValue*& value : fetches_) {
      if (value != nullptr) objects_.Own<OrtValue>(value, Api().ReleaseValue);
      value = nullptr;
    }
  }

 private:
  // One living object of the class, or null.
  template <class T>
  T* Any() {
    if constexpr (std::is_same_v<T, OrtEnv>) return Environment();
    const auto& living = objects_.Of<T>();
    const size_t i = data_.ConsumeIntegralInRange<size_t>(0, living.size());
    return i == living.size() ? nullptr : living[living.size() - 1 - i];
  }

  size_t Length() { return data_.ConsumeIntegralInRange<size_t>(0, kMostElements); }

  int64_t Number() {
    static constexpr int64_t kNumbers[] = {0, 1,       2,       3,         -1,       -2,
                                           7, INT_MAX, INT_MIN, INT64_MAX, INT64_MIN};
    return data_.PickValueInArray(kNumbers);
  }

  // Lives as long as the objects.
  const char* Text() {
    static constexpr const char* kTexts[] = {"x",
                                             "y",
                                             "s",
                                             "t",
                                             "",
                                             "N",
                                             "Cpu",
                                             "CPUExecutionProvider",
                                             "session.memory_limit",
                                             "1",
                                             "session.use_env_allocators",
                                             "session.intra_op.allow_spinning",
                                             "-1",
                                             "max_mem",
                                             "memory.enable_memory_arena_shrinkage",
                                             "cpu:0",
                                             "tenon.run_timeout_ms",
                                             "0"};
    const size_t i = data_.ConsumeIntegralInRange<size_t>(0, std::size(kTexts) + 1);
    if (i < std::size(kTexts)) return kTexts[i];
    if (i == std::size(kTexts)) return nullptr;
    auto* const text = new std::string(data_.ConsumeRandomLengthString(40));
    objects_.AtEnd([text] { delete text; });
    return text->c_str();
  }

  // Numbers and enumerators.
  template <class T>
  struct Argument {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    explicit Argument(Caller& caller) {
      if constexpr (std::is_same_v<T, size_t>) {
        value = caller.Length();
      } else if constexpr (std::is_enum_v<T>) {
        value = static_cast<T>(caller.data_.template ConsumeIntegralInRange<int>(-1, 20));
      } else {
        value = static_cast<T>(caller.Number());
      }
    }
    T Pass() { return value; }
    void Keep(Caller&) {}
    T value;
  };
  // Pointers: to an object of a class, to numbers or bytes, to texts, to objects or results.
  template <class T>
  struct Argument<T*> {
    static constexpr bool kIsText = std::is_same_v<T, const char>;
    static constexpr bool kIsVoid = std::is_void_v<T>;
    static constexpr bool kHasElements =
        std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>;
    using Bare = std::remove_const_t<T>;
    using Element = std::conditional_t<kHasElements, Bare, std::byte>;

    explicit Argument(Caller& caller) {
      if constexpr (kIsText) {
        pointer = caller.Text();
      } else if constexpr (kHasElements) {
        for (Element& element : array) {
          if constexpr (std::is_pointer_v<T>) {
            if constexpr (std::is_const_v<T>) element = Argument<Element>(caller).Pass();
          } else if constexpr (std::is_const_v<T>) {
            element = Argument<Element>(caller).Pass();
          }
        }
      } else if constexpr (kIsVoid) {
        pointer = caller.bytes_.data();
      } else {
        pointer = caller.Any<Bare>();
        if constexpr (std::is_same_v<T, OrtAllocator>) caller.allocator_ = pointer;
      }
    }
    T* Pass() {
      if constexpr (kHasElements && !kIsText) return array.data();
      return pointer;
    }
    // Handles a call's results: text in the allocator's memory is freed, objects are recorded as
    // lent.
    void Keep(Caller& caller) {
      if constexpr (std::is_same_v<T, char*>) {
        if (array[0] != nullptr) {
          Api().ReleaseStatus(Api().AllocatorFree(caller.allocator_, array[0]));
        }
      } else if constexpr (std::is_pointer_v<T> && !std::is_const_v<T>) {
        using Object = std::remove_const_t<std::remove_pointer_t<T>>;
        if constexpr (std::is_class_v<Object> && !std::is_same_v<Object, OrtEnv>) {
          if (array[0] != nullptr) {
            caller.objects_.template Of<Object>().push_back(const_cast<Object*>(array[0]));
          }
        }
      }
    }
    T* pointer = nullptr;
    std::array<Element, kMostElements> array{};
  };

  template <class... Args, size_t... I>
  bool Succeeds(OrtStatus* (*slot)(Args...) noexcept, std::tuple<Argument<Args>...>& arguments,
                std::index_sequence<I...>) {
    OrtStatus* const status = slot(std::get<I>(arguments).Pass()...);
    if (status == nullptr) return true;
    if (*Api().GetErrorMessage(status) == '\0') __builtin_trap();  // an error says what is wrong
    Api().ReleaseStatus(status);
    return false;
  }

  FuzzedDataProvider& data_;
  Objects& objects_;
  OrtAllocator* allocator_ = nullptr;  // of the last call
  // Memory that calls read, write and use for tensors.
  std::array<std::byte, 256> bytes_{};
  std::array<OrtValue*, kMostElements> fetches_{};
};

using Action = void (*)(Caller& caller);

#define CALL(slot) [](Caller& caller) { caller.Call(Api().slot); }
#define MAKE(slot, kind) \
  [](Caller& caller) { caller.Make<Ort##kind>(Api().slot, Api().Release##kind); }

constexpr Action kActions[] = {
    [](Caller& caller) { caller.Run(); },
    MAKE(CreateSessionOptions, SessionOptions),
    MAKE(CloneSessionOptions, SessionOptions),
    CALL(SetSessionExecutionMode),
    CALL(EnableMemPattern),
    CALL(DisableMemPattern),
    CALL(EnableCpuMemArena),
    CALL(DisableCpuMemArena),
    CALL(SetSessionLogId),
    CALL(SetSessionLogVerbosityLevel),
    CALL(SetSessionLogSeverityLevel),
    CALL(SetSessionGraphOptimizationLevel),
    CALL(SetIntraOpNumThreads),
    CALL(SetInterOpNumThreads),
    CALL(AddFreeDimensionOverride),
    CALL(AddFreeDimensionOverrideByName),
    CALL(AddSessionConfigEntry),
    CALL(HasSessionConfigEntry),
    CALL(AddInitializer),
    CALL(GetMemPatternEnabled),
    CALL(GetSessionExecutionMode),
    CALL(SetDeterministicCompute),
    CALL(SessionOptionsSetLoadCancellationFlag),
    CALL(SessionOptionsSetEpSelectionPolicy),
    CALL(SessionOptionsAppendExecutionProvider_V2),
    MAKE(GetSessionOptionsConfigEntries, KeyValuePairs),
    MAKE(CreateSessionFromArray, Session),
    MAKE(CreateSessionFromArrayWithPrepackedWeightsContainer, Session),
    MAKE(CreatePrepackedWeightsContainer, PrepackedWeightsContainer),
    CALL(SessionGetInputCount),
    CALL(SessionGetOutputCount),
    CALL(SessionGetOverridableInitializerCount),
    MAKE(SessionGetInputTypeInfo, TypeInfo),
    MAKE(SessionGetOutputTypeInfo, TypeInfo),
    MAKE(SessionGetOverridableInitializerTypeInfo, TypeInfo),
    CALL(SessionGetInputName),
    CALL(SessionGetOutputName),
    CALL(SessionGetOverridableInitializerName),
    CALL(SessionGetProfilingStartTimeNs),
    CALL(SessionGetMemoryInfoForInputs),
    CALL(SessionGetMemoryInfoForOutputs),
    CALL(SessionGetEpDeviceForInputs),
    CALL(SessionGetEpDeviceForOutputs),
    CALL(SessionReleaseCapturedGraph),
    CALL(SetEpDynamicOptions),
    MAKE(SessionGetModelMetadata, ModelMetadata),
    CALL(ModelMetadataGetProducerName),
    CALL(ModelMetadataGetGraphName),
    CALL(ModelMetadataGetDomain),
    CALL(ModelMetadataGetDescription),
    CALL(ModelMetadataGetGraphDescription),
    CALL(ModelMetadataLookupCustomMetadataMap),
    CALL(ModelMetadataGetVersion),
    MAKE(CreateRunOptions, RunOptions),
    CALL(RunOptionsSetRunLogVerbosityLevel),
    CALL(RunOptionsSetRunLogSeverityLevel),
    CALL(RunOptionsSetRunTag),
    CALL(RunOptionsGetRunLogVerbosityLevel),
    CALL(RunOptionsGetRunLogSeverityLevel),
    CALL(RunOptionsGetRunTag),
    CALL(RunOptionsSetTerminate),
    CALL(RunOptionsUnsetTerminate),
    CALL(AddRunConfigEntry),
    MAKE(CreateTensorAsOrtValue, Value),
    MAKE(CreateTensorWithDataAsOrtValue, Value),
    MAKE(CreateSparseTensorAsOrtValue, Value),
    MAKE(CreateOpaqueValue, Value),
    MAKE(CreateValue, Value),
    MAKE(GetValue, Value),
    CALL(GetValueCount),
    CALL(GetValueType),
    CALL(IsTensor),
    CALL(IsSparseTensor),
    CALL(HasValue),
    CALL(GetOpaqueValue),
    CALL(FillStringTensor),
    CALL(FillStringTensorElement),
    CALL(GetStringTensorDataLength),
    CALL(GetStringTensorContent),
    CALL(GetStringTensorElementLength),
    CALL(GetStringTensorElement),
    CALL(GetTensorSizeInBytes),
    CALL(UseCooIndices),
    CALL(UseCsrIndices),
    MAKE(GetTensorTypeAndShape, TensorTypeAndShapeInfo),
    MAKE(GetTypeInfo, TypeInfo),
    MAKE(CreateTensorTypeAndShapeInfo, TensorTypeAndShapeInfo),
    CALL(SetTensorElementType),
    CALL(SetDimensions),
    CALL(GetTensorElementType),
    CALL(GetDimensionsCount),
    CALL(GetDimensions),
    CALL(GetTensorShapeElementCount),
    CALL(CastTypeInfoToTensorInfo),
    CALL(CastTypeInfoToMapTypeInfo),
    CALL(CastTypeInfoToSequenceTypeInfo),
    CALL(CastTypeInfoToOptionalTypeInfo),
    CALL(GetOnnxTypeFromTypeInfo),
    CALL(GetMapKeyType),
    MAKE(GetMapValueType, TypeInfo),
    MAKE(GetSequenceElementType, TypeInfo),
    MAKE(GetOptionalContainedTypeInfo, TypeInfo),
    MAKE(CreateMemoryInfo, MemoryInfo),
    MAKE(CreateMemoryInfo_V2, MemoryInfo),
    MAKE(CreateCpuMemoryInfo, MemoryInfo),
    CALL(CompareMemoryInfo),
    CALL(MemoryInfoGetId),
    CALL(MemoryInfoGetMemType),
    CALL(MemoryInfoGetType),
    CALL(GetAllocatorWithDefaultOptions),
    CALL(AllocatorGetInfo),
    MAKE(CreateAllocator, Allocator),
    MAKE(AllocatorGetStats, KeyValuePairs),
    CALL(GetSharedAllocator),
    CALL(CreateSharedAllocator),
    CALL(ReleaseSharedAllocator),
    MAKE(CreateArenaCfg, ArenaCfg),
    MAKE(CreateArenaCfgV2, ArenaCfg),
    MAKE(CreateIoBinding, IoBinding),
    CALL(BindInput),
    CALL(BindOutput),
    CALL(BindOutputToDevice),
    CALL(SynchronizeBoundInputs),
    CALL(SynchronizeBoundOutputs),
    CALL(RunWithBinding),
    MAKE(CreateThreadingOptions, ThreadingOptions),
    CALL(SetGlobalIntraOpNumThreads),
    CALL(SetGlobalInterOpNumThreads),
    CALL(SetGlobalSpinControl),
    CALL(SetGlobalDenormalAsZero),
    CALL(SetGlobalIntraOpThreadAffinity),
    MAKE(CreateExternalInitializerInfo, ExternalInitializerInfo),
    CALL(GetNumHardwareDevices),
    MAKE(GetHardwareDeviceEpIncompatibilityDetails, DeviceEpIncompatibilityDetails),
    MAKE(CreateSyncStreamForEpDevice, SyncStream),
    CALL(CopyTensors),
    CALL(GetModelCompatibilityForEpDevices),
    CALL(GetCompatibilityInfoFromModelBytes),
};

#undef CALL
#undef MAKE

}  // namespace

// A client may request any size; the system has no memory for a large one.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  Objects objects;
  Caller caller(data, objects);
  const Ort::SessionOptions options;
  auto* const session = MakeSession(options);
  objects.AtEnd([session] { delete session; });
  objects.Of<OrtSession>().push_back(*session);
  for (int call = 0; call < kMostCalls && data.remaining_bytes() > 0; ++call) {
    kActions[data.ConsumeIntegralInRange<size_t>(0, std::size(kActions) - 1)](caller);
  }
  return 0;
}
