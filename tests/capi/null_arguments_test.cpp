// Each slot of the tables is called with each of its pointers null in turn, the others valid. It
// answers with an error, unless the argument may be left out.
#include <gtest/gtest.h>
#include <onnxruntime_training_c_api.h>

#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

const OrtApi& Api() { return Ort::GetApi(); }

template <class T>
const T& TableOf();
template <>
const OrtApiBase& TableOf() {
  return *OrtGetApiBase();
}
template <>
const OrtApi& TableOf() {
  return Api();
}
template <>
const OrtModelEditorApi& TableOf() {
  return *Api().GetModelEditorApi();
}
template <>
const OrtCompileApi& TableOf() {
  return *Api().GetCompileApi();
}
template <>
const OrtInteropApi& TableOf() {
  return *Api().GetInteropApi();
}
template <>
const OrtTrainingApi& TableOf() {
  return *Api().GetTrainingApi(ORT_API_VERSION);
}
template <>
const OrtEpApi& TableOf() {
  return *Api().GetEpApi();
}

// A living object of each class that a client can make without a device or a custom operator.
class Living {
 public:
  Living() {
    OrtPrepackedWeightsContainer* container = nullptr;
    Ort::ThrowOnError(Api().CreatePrepackedWeightsContainer(&container));
    weights.reset(container);
    OrtCustomOpDomain* made = nullptr;
    Ort::ThrowOnError(Api().CreateCustomOpDomain("domain", &made));
    domain.reset(made);
    OrtDeviceEpIncompatibilityDetails* found = nullptr;
    Ort::ThrowOnError(Api().GetHardwareDeviceEpIncompatibilityDetails(
        Env(), "CPUExecutionProvider", Api().EpDevice_Device(device), &found));
    details.reset(found);
  }

  // Null of other classes.
  template <class T>
  T* Of() {
    const std::tuple all(
        static_cast<OrtEnv*>(Env()), static_cast<OrtSession*>(session),
        static_cast<OrtSessionOptions*>(session_options), static_cast<OrtRunOptions*>(run_options),
        static_cast<OrtValue*>(value), static_cast<OrtMemoryInfo*>(memory),
        static_cast<OrtTypeInfo*>(type), static_cast<OrtTensorTypeAndShapeInfo*>(shape),
        static_cast<OrtIoBinding*>(binding), static_cast<OrtAllocator*>(allocator),
        static_cast<OrtModelMetadata*>(metadata), static_cast<OrtThreadingOptions*>(threading),
        static_cast<OrtArenaCfg*>(arena), static_cast<OrtKeyValuePairs*>(pairs),
        static_cast<OrtModelCompilationOptions*>(compilation), static_cast<OrtGraph*>(graph),
        static_cast<OrtModel*>(model), static_cast<OrtOpAttr*>(attribute), weights.get(),
        domain.get(), const_cast<OrtEpDevice*>(device),
        const_cast<OrtHardwareDevice*>(Api().EpDevice_Device(device)), details.get());
    void* found = nullptr;
    const auto look = [&]<class U>(U* object) {
      if constexpr (std::is_same_v<T, U>) found = object;
    };
    std::apply([&](auto*... objects) { (look(objects), ...); }, all);
    return static_cast<T*>(found);
  }

 private:
  template <class T, void (*OrtApi::*kRelease)(T*)>
  struct Release {
    void operator()(T* object) const { (Api().*kRelease)(object); }
  };

  std::vector<float> elements = {1};
  Ort::SessionOptions session_options;
  Ort::RunOptions run_options;
  Ort::Session session = Open(AddReluModel());
  Ort::Value value = TensorOver(elements, {1});
  Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  Ort::TypeInfo type = session.GetInputTypeInfo(0);
  Ort::TensorTypeAndShapeInfo shape = value.GetTensorTypeAndShapeInfo();
  Ort::IoBinding binding = Ort::IoBinding(session);
  Ort::AllocatorWithDefaultOptions allocator;
  Ort::ModelMetadata metadata = session.GetModelMetadata();
  Ort::ThreadingOptions threading;
  Ort::ArenaCfg arena = Ort::ArenaCfg(0, -1, -1, -1);
  Ort::KeyValuePairs pairs;
  Ort::ModelCompilationOptions compilation = Ort::ModelCompilationOptions(Env(), session_options);
  Ort::Graph graph;
  Ort::Model model = Ort::Model({{"", 20}});
  Ort::OpAttr attribute = Ort::OpAttr("name", elements.data(), 1, ORT_OP_ATTR_FLOATS);
  const OrtEpDevice* const device = Env().GetEpDevices()[0];
  std::unique_ptr<OrtPrepackedWeightsContainer,
                  Release<OrtPrepackedWeightsContainer, &OrtApi::ReleasePrepackedWeightsContainer>>
      weights;
  std::unique_ptr<OrtCustomOpDomain, Release<OrtCustomOpDomain, &OrtApi::ReleaseCustomOpDomain>>
      domain;
  std::unique_ptr<
      OrtDeviceEpIncompatibilityDetails,
      Release<OrtDeviceEpIncompatibilityDetails, &OrtApi::ReleaseDeviceEpIncompatibilityDetails>>
      details;
};

Living& Objects() {
  static Living living;
  return living;
}

// Of arrays, of which the first element is valid and the others are null.
size_t length;

// Memory that calls read and write.
struct Memory {
  alignas(64) std::array<std::byte, 4096> bytes{};
};

// A valid argument of each type.
template <class T>
struct Valid {
  static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
  static T Make(Memory&) { return static_cast<T>(1); }
};
template <>
struct Valid<size_t> {
  static size_t Make(Memory&) { return length; }
};
template <>
struct Valid<const char*> {
  static const char* Make(Memory&) { return "CPU"; }  // as the name of a provider, too
};
template <class T>
struct Valid<T*> {
  static T* Make(Memory& memory) {
    using Bare = std::remove_const_t<T>;
    if constexpr (std::is_class_v<T>) {
      return Objects().Of<Bare>();
    } else if constexpr (std::is_pointer_v<Bare> && std::is_const_v<T>) {
      const Bare element = Valid<Bare>::Make(memory);
      std::memcpy(memory.bytes.data(), &element, sizeof(element));
    }
    return reinterpret_cast<T*>(memory.bytes.data());
  }
};
template <class R, class... Args>
struct Valid<R (*)(Args...)> {
  static auto Make(Memory&) {
    return +[](Args...) { return R(); };
  }
};
template <class R, class... Args>
struct Valid<R (*)(Args...) noexcept> {
  static auto Make(Memory&) {
    return +[](Args...) noexcept { return R(); };
  }
};

// Arguments that may be null: the state of callbacks, what has a default, memory of no elements.
const std::set<std::pair<std::string_view, size_t>> kOptional = {
    {"AllocatorFree", 1},
    {"CopyTensors", 3},
    {"CreateAndRegisterAllocator", 2},
    {"CreateEnvWithCustomLogger", 1},
    {"CreateEnvWithCustomLoggerAndGlobalThreadPools", 1},
    {"CreateHardwareDevice", 3},
    {"CreateHardwareDevice", 4},
    {"CreateSparseTensorWithValuesAsOrtValue", 1},
    {"CreateTensorWithDataAndDeleterAsOrtValue", 1},
    {"CreateTensorWithDataAsOrtValue", 1},
    {"DeviceEpIncompatibilityDetails_SetDetails", 3},
    {"DisableTelemetryEvents", 0},
    {"EnableTelemetryEvents", 0},
    {"ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc", 2},
    {"ModelCompilationOptions_SetOutputModelWriteFunc", 2},
    {"ReleaseAvailableProviders", 0},
    {"RunAsync", 1},
    {"RunAsync", 9},
    {"SessionOptionsAppendExecutionProvider", 2},
    {"SessionOptionsAppendExecutionProvider", 3},
    {"SessionOptionsSetCustomThreadCreationOptions", 1},
    {"SessionOptionsSetEpSelectionPolicyDelegate", 1},
    {"SessionOptionsSetEpSelectionPolicyDelegate", 2},
    {"SetGlobalCustomThreadCreationOptions", 1},
    {"SetLanguageProjection", 0},
    {"SetUserLoggingFunction", 2},
};
// Slots that have no answer for an error. As in ONNX Runtime, their arguments must be there.
const std::set<std::string_view> kWithoutAnswer = {
    "ClearBoundInputs",
    "ClearBoundOutputs",
    "CreateKeyValuePairs",
    "GetErrorCode",
    "GetErrorMessage",
    "GetKeyValuePairs",
    "MemoryInfoGetDeviceMemType",
    "MemoryInfoGetDeviceType",
    "MemoryInfoGetVendorId",
};

template <class T>
T Argument(bool is_null, Memory& memory) {
  if constexpr (std::is_pointer_v<T>) {
    if (is_null) return nullptr;
  }
  return Valid<T>::Make(memory);
}

template <class R, class... Args, size_t... I>
void Call(const char* name, R (*slot)(Args...), std::index_sequence<I...>) {
  constexpr std::array<bool, sizeof...(Args)> kIsPointer = {std::is_pointer_v<Args>...};
  for (size_t null = 0; null < sizeof...(Args); ++null) {
    if (!kIsPointer[null] || kOptional.contains({name, null})) continue;
    std::array<Memory, sizeof...(Args)> memory;
    const auto call = [&] { return slot(Argument<Args>(I == null, memory[I])...); };
    if constexpr (std::is_same_v<R, OrtStatus*>) {
      EXPECT_NE(Outcome(call()), "") << "argument " << null;
    } else {
      (void)call();  // which ends without a crash
    }
  }
}

struct Slot {
  const char* name;
  void (*call)(const char* name);
};

template <class Table, auto kSlot>
void CallSlot(const char* name) {
  const auto call = []<class R, class... Args>(const char* name, R (*slot)(Args...)) {
    Call(name, slot, std::index_sequence_for<Args...>());
  };
  call(name, TableOf<Table>().*kSlot);
}

constexpr Slot kSlots[] = {
#define ABI_SLOT(Struct, Name, slot, ...) {#Name, CallSlot<Struct, &Struct::Name>},
#define ABI_MEMBER(Struct, Name, offset, ...)
#define ABI_SIZE(Struct, bytes)
#include TENON_ABI_SLOTS
#undef ABI_SLOT
#undef ABI_MEMBER
#undef ABI_SIZE
};

class NullArgumentTest : public testing::TestWithParam<Slot> {};

TEST_P(NullArgumentTest, IsRefused) {
  for (const size_t elements : {1, 64}) {
    length = elements;
    GetParam().call(GetParam().name);
  }
}

std::vector<Slot> SlotsThatAnswer() {
  std::vector<Slot> slots;
  for (const Slot& slot : kSlots) {
    if (!kWithoutAnswer.contains(slot.name)) slots.push_back(slot);
  }
  return slots;
}

INSTANTIATE_TEST_SUITE_P(Slots, NullArgumentTest, testing::ValuesIn(SlotsThatAnswer()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tenon::test
