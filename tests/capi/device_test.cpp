// Devices, allocators that sessions share, options of providers, and providers that are not built
// in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const OrtApi& Api() { return Ort::GetApi(); }

// A machine may have more hardware, for which no provider is registered here.
TEST(DeviceTest, TheCpuIsTheOnlyDeviceOfAProvider) {
  const std::vector<Ort::ConstEpDevice> devices = Env().GetEpDevices();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_STREQ(devices[0].EpName(), "CPUExecutionProvider");
  EXPECT_STREQ(devices[0].EpVendor(), "Tenon");
  EXPECT_EQ(devices[0].Device().Type(), OrtHardwareDeviceType_CPU);
  EXPECT_NE(devices[0].Device().Vendor(), nullptr);
  const OrtMemoryInfo* const memory =
      Api().EpDevice_MemoryInfo(devices[0], OrtDeviceMemoryType_DEFAULT);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(Api().EpDevice_MemoryInfo(devices[0], OrtDeviceMemoryType_HOST_ACCESSIBLE), nullptr);
  size_t count = 0;
  EXPECT_EQ(Outcome(Api().GetNumHardwareDevices(Env(), &count)), "");
  std::vector<const OrtHardwareDevice*> hardware(count + 1);
  EXPECT_EQ(Outcome(Api().GetHardwareDevices(Env(), hardware.data(), count)), "");
  EXPECT_THAT(hardware,
              testing::Contains(static_cast<const OrtHardwareDevice*>(devices[0].Device())));
  EXPECT_NE(Outcome(Api().GetHardwareDevices(Env(), hardware.data(), count + 1)), "");
  EXPECT_STREQ(Api().EpDevice_EpName(nullptr), "");
  EXPECT_EQ(Api().EpDevice_Device(nullptr), nullptr);
}

TEST(DeviceTest, SessionsRunOnIt) {
  const Ort::ConstEpDevice cpu = Env().GetEpDevices()[0];
  Ort::SessionOptions options;
  const OrtEpDevice* const devices[] = {cpu};
  EXPECT_EQ(Outcome(Api().SessionOptionsAppendExecutionProvider_V2(options, Env(), devices, 1,
                                                                   nullptr, nullptr, 0)),
            "");
  const OrtEpDevice* const none[] = {nullptr};
  EXPECT_NE(Outcome(Api().SessionOptionsAppendExecutionProvider_V2(options, Env(), none, 1, nullptr,
                                                                   nullptr, 0)),
            "");
  options.AddConfigEntry("session.record_ep_graph_assignment_info", "1");
  const Ort::Session session = Open(AddReluModel(), options);
  EXPECT_EQ(session.GetEpDeviceForInputs().size(), 2u);
  EXPECT_EQ(session.GetEpDeviceForOutputs()[0], cpu);
  const OrtEpAssignedSubgraph* const* subgraphs = nullptr;
  size_t count = 0;
  ASSERT_EQ(Outcome(Api().Session_GetEpGraphAssignmentInfo(session, &subgraphs, &count)), "");
  ASSERT_EQ(count, 2u);  // one for each node
  const char* name = nullptr;
  EXPECT_EQ(Outcome(Api().EpAssignedSubgraph_GetEpName(subgraphs[0], &name)), "");
  EXPECT_STREQ(name, "CPUExecutionProvider");
  const OrtEpAssignedNode* const* nodes = nullptr;
  ASSERT_EQ(Outcome(Api().EpAssignedSubgraph_GetNodes(subgraphs[0], &nodes, &count)), "");
  ASSERT_GE(count, 1u);
  EXPECT_EQ(Outcome(Api().EpAssignedNode_GetOperatorType(nodes[0], &name)), "");
  EXPECT_STRNE(name, "");
  EXPECT_EQ(Outcome(Api().EpAssignedNode_GetDomain(nodes[0], &name)), "");
  EXPECT_EQ(Outcome(Api().EpAssignedNode_GetName(nodes[0], &name)), "");
  EXPECT_NE(name, nullptr);
  EXPECT_THAT(
      Outcome(Api().Session_GetEpGraphAssignmentInfo(Open(AddReluModel()), &subgraphs, &count)),
      HasSubstr("session.record_ep_graph_assignment_info"));
}

TEST(DeviceTest, ClientsMayChooseDevices) {
  struct Seen {
    size_t devices = 0;
    std::string graph;
    bool selects = true;
  } seen;
  const auto choose = [](const OrtEpDevice** devices, size_t count,
                         const OrtKeyValuePairs* metadata, const OrtKeyValuePairs*,
                         const OrtEpDevice** selected, size_t, size_t* num_selected,
                         void* state) -> OrtStatus* {
    auto& what = *static_cast<Seen*>(state);
    what.devices = count;
    what.graph = Ort::GetApi().GetKeyValue(metadata, "graph_name");
    selected[0] = devices[0];
    *num_selected = what.selects ? 1 : 0;
    return nullptr;
  };
  Ort::SessionOptions options;
  ASSERT_EQ(Outcome(Api().SessionOptionsSetEpSelectionPolicyDelegate(options, choose, &seen)), "");
  Open(AddReluModel(), options);
  EXPECT_EQ(seen.devices, 1u);
  EXPECT_EQ(seen.graph, "small");
  seen.selects = false;
  EXPECT_THAT(ErrorOf([&] { Open(AddReluModel(), options); }), HasSubstr("selected none"));
  EXPECT_EQ(Outcome(Api().SessionOptionsSetEpSelectionPolicy(
                options, OrtExecutionProviderDevicePolicy_PREFER_NPU)),
            "");
  Open(AddReluModel(), options);
  EXPECT_NE(Outcome(Api().SessionOptionsSetEpSelectionPolicy(
                options, static_cast<OrtExecutionProviderDevicePolicy>(99))),
            "");
}

TEST(DeviceTest, TensorsAreCopied) {
  std::vector<float> from = {1, 2, 3}, into(3), other(2);
  const Ort::Value source = TensorOver(from, {3}), target = TensorOver(into, {3}),
                   shorter = TensorOver(other, {2});
  const OrtValue* const sources[] = {source};
  OrtValue* const targets[] = {target};
  EXPECT_EQ(Outcome(Api().CopyTensors(Env(), sources, targets, nullptr, 1)), "");
  EXPECT_EQ(into, from);
  OrtValue* const wrong[] = {shorter};
  EXPECT_THAT(Outcome(Api().CopyTensors(Env(), sources, wrong, nullptr, 1)), HasSubstr("[2]"));
  // A tensor of one byte.
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const int64_t one = 1;
  uint8_t byte = 7, copied = 0;
  const Ort::Value small = Ort::Value::CreateTensor<uint8_t>(cpu, &byte, 1, &one, 1);
  const Ort::Value small_copy = Ort::Value::CreateTensor<uint8_t>(cpu, &copied, 1, &one, 1);
  const OrtValue* const small_sources[] = {small};
  OrtValue* const small_targets[] = {small_copy};
  EXPECT_EQ(Outcome(Api().CopyTensors(Env(), small_sources, small_targets, nullptr, 1)), "");
  EXPECT_EQ(copied, byte);
  OrtSyncStream* stream = nullptr;
  EXPECT_THAT(Outcome(Api().CreateSyncStreamForEpDevice(Env().GetEpDevices()[0], nullptr, &stream)),
              HasSubstr("no streams"));
}

// A client's allocator that counts, with blocks aligned to 16 bytes at most.
struct CountingAllocator : OrtAllocator {
  CountingAllocator() : OrtAllocator{} {
    version = ORT_API_VERSION;
    Alloc = [](OrtAllocator* self, size_t size) -> void* {
      ++static_cast<CountingAllocator*>(self)->live;
      ++static_cast<CountingAllocator*>(self)->total;
      return static_cast<char*>(std::malloc(size + 16)) + 16;
    };
    Free = [](OrtAllocator* self, void* block) {
      if (block == nullptr) return;
      --static_cast<CountingAllocator*>(self)->live;
      std::free(static_cast<char*>(block) - 16);
    };
    Info = [](const OrtAllocator* self) -> const OrtMemoryInfo* {
      return static_cast<const CountingAllocator*>(self)->memory;
    };
  }
  const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  std::atomic<int> live = 0, total = 0;
};

std::vector<float> RunAddRelu(Ort::Session& session) {
  std::vector<float> x = {-5, 1, 2}, y = {1, 1, 1};
  const Ort::Value inputs[] = {TensorOver(x, {1, 3}), TensorOver(y, {3})};
  const char* const input_names[] = {"x", "y"};
  const char* const output_names[] = {"z"};
  return ElementsOf<float>(
      session.Run(Ort::RunOptions(), input_names, inputs, 2, output_names, 1)[0]);
}

TEST(SharedAllocatorTest, SessionsUseTheClientsOnRequest) {
  CountingAllocator allocator;
  ASSERT_EQ(Outcome(Api().RegisterAllocator(Env(), &allocator)), "");
  EXPECT_EQ(Outcome(Api().RegisterAllocator(Env(), &allocator)), "") << "in place of itself";
  {
    Ort::Session plain = Open(AddReluModel());
    EXPECT_THAT(RunAddRelu(plain), ElementsAre(0, 2, 3));
    EXPECT_EQ(allocator.total.load(), 0);
    Ort::SessionOptions options;
    options.AddConfigEntry("session.use_env_allocators", "1");
    Ort::Session session = Open(AddReluModel(), options);
    EXPECT_THAT(RunAddRelu(session), ElementsAre(0, 2, 3));
    EXPECT_THAT(RunAddRelu(session), ElementsAre(0, 2, 3));
    EXPECT_GT(allocator.total.load(), 0);
  }
  EXPECT_EQ(allocator.live.load(), 0);
  OrtAllocator* found = nullptr;
  EXPECT_EQ(Outcome(Api().GetSharedAllocator(Env(), allocator.memory, &found)), "");
  EXPECT_EQ(found, &allocator);
  EXPECT_EQ(Outcome(Api().UnregisterAllocator(Env(), allocator.memory)), "");
  EXPECT_NE(Outcome(Api().UnregisterAllocator(Env(), allocator.memory)), "");
}

TEST(SharedAllocatorTest, ArenasAreMadeToOrder) {
  OrtArenaCfg* config = nullptr;
  const char* const keys[] = {"max_mem", "initial_chunk_size_bytes"};
  const size_t values[] = {1 << 20, 4096};
  ASSERT_EQ(Outcome(Api().CreateArenaCfgV2(keys, values, 2, &config)), "");
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  EXPECT_EQ(Outcome(Api().CreateAndRegisterAllocator(Env(), cpu, config)), "");
  Api().ReleaseArenaCfg(config);
  OrtAllocator* arena = nullptr;
  ASSERT_EQ(Outcome(Api().GetSharedAllocator(Env(), cpu, &arena)), "");
  EXPECT_EQ(arena->Alloc(arena, 2 << 20), nullptr);
  void* const block = arena->Alloc(arena, 1000);
  EXPECT_NE(block, nullptr);
  arena->Free(arena, block);
  EXPECT_EQ(Outcome(Api().UnregisterAllocator(Env(), cpu)), "");
  const Ort::ConstEpDevice device = Env().GetEpDevices()[0];
  EXPECT_EQ(Outcome(Api().CreateSharedAllocator(Env(), device, OrtDeviceMemoryType_DEFAULT,
                                                OrtArenaAllocator, nullptr, &arena)),
            "");
  EXPECT_NE(arena, nullptr);
  EXPECT_EQ(Outcome(Api().ReleaseSharedAllocator(Env(), device, OrtDeviceMemoryType_DEFAULT)), "");
  const char* const unknown[] = {"max_men"};
  EXPECT_THAT(Outcome(Api().CreateArenaCfgV2(unknown, values, 1, &config)), HasSubstr("max_men"));
  EXPECT_NE(Outcome(Api().CreateArenaCfg(0, -2, -1, -1, &config)), "");
}

// What the slots of a provider's options do, by name.
template <class Options>
struct OptionSlots {
  const char* provider;
  OrtStatus* (*create)(Options**);
  OrtStatus* (*update)(Options*, const char* const*, const char* const*, size_t);
  OrtStatus* (*as_string)(const Options*, OrtAllocator*, char**);
  void (*release)(Options*);
  OrtStatus* (*append)(OrtSessionOptions*, const Options*);
};

template <class Options>
void CheckOptions(const OptionSlots<Options>& slots, const char* key) {
  SCOPED_TRACE(slots.provider);
  Options* options = nullptr;
  ASSERT_EQ(Outcome(slots.create(&options)), "");
  const char* const keys[] = {key};
  const char* const values[] = {"7"};
  EXPECT_EQ(Outcome(slots.update(options, keys, values, 1)), "");
  Ort::AllocatorWithDefaultOptions allocator;
  char* text = nullptr;
  ASSERT_EQ(Outcome(slots.as_string(options, allocator, &text)), "");
  EXPECT_THAT(text, HasSubstr(std::string(key) + "=7"));
  allocator.Free(text);
  const char* const unknown[] = {"no_such_key"};
  EXPECT_THAT(Outcome(slots.update(options, unknown, values, 1)), HasSubstr("no_such_key"));
  EXPECT_NE(Outcome(slots.update(options, nullptr, values, 1)), "");
  EXPECT_NE(Outcome(slots.update(nullptr, keys, values, 1)), "");
  const Ort::SessionOptions session_options;
  EXPECT_THAT(Outcome(slots.append(const_cast<OrtSessionOptions*>(
                                       static_cast<const OrtSessionOptions*>(session_options)),
                                   options)),
              AllOf(HasSubstr(slots.provider), HasSubstr("RegisterExecutionProviderLibrary")));
  slots.release(options);
  slots.release(nullptr);
}

TEST(ProviderOptionsTest, AreKeptUpdatedAndGivenBack) {
  const OrtApi& api = Api();
  CheckOptions<OrtCUDAProviderOptionsV2>(
      {"CUDA", api.CreateCUDAProviderOptions, api.UpdateCUDAProviderOptions,
       api.GetCUDAProviderOptionsAsString, api.ReleaseCUDAProviderOptions,
       api.SessionOptionsAppendExecutionProvider_CUDA_V2},
      "gpu_mem_limit");
  CheckOptions<OrtTensorRTProviderOptionsV2>(
      {"TensorRT", api.CreateTensorRTProviderOptions, api.UpdateTensorRTProviderOptions,
       api.GetTensorRTProviderOptionsAsString, api.ReleaseTensorRTProviderOptions,
       api.SessionOptionsAppendExecutionProvider_TensorRT_V2},
      "trt_max_workspace_size");
  CheckOptions<OrtCANNProviderOptions>(
      {"CANN", api.CreateCANNProviderOptions, api.UpdateCANNProviderOptions,
       api.GetCANNProviderOptionsAsString, api.ReleaseCANNProviderOptions,
       api.SessionOptionsAppendExecutionProvider_CANN},
      "device_id");
  CheckOptions<OrtDnnlProviderOptions>(
      {"Dnnl", api.CreateDnnlProviderOptions, api.UpdateDnnlProviderOptions,
       api.GetDnnlProviderOptionsAsString, api.ReleaseDnnlProviderOptions,
       api.SessionOptionsAppendExecutionProvider_Dnnl},
      "use_arena");
  CheckOptions<OrtROCMProviderOptions>(
      {"ROCM", api.CreateROCMProviderOptions, api.UpdateROCMProviderOptions,
       api.GetROCMProviderOptionsAsString, api.ReleaseROCMProviderOptions,
       api.SessionOptionsAppendExecutionProvider_ROCM},
      "gpu_mem_limit");
}

TEST(ProviderOptionsTest, HoldPointers) {
  OrtCUDAProviderOptionsV2* options = nullptr;
  ASSERT_EQ(Outcome(Api().CreateCUDAProviderOptions(&options)), "");
  int stream = 0;
  void* found = nullptr;
  EXPECT_EQ(
      Outcome(Api().UpdateCUDAProviderOptionsWithValue(options, "user_compute_stream", &stream)),
      "");
  EXPECT_EQ(Outcome(Api().GetCUDAProviderOptionsByName(options, "user_compute_stream", &found)),
            "");
  EXPECT_EQ(found, &stream);
  EXPECT_NE(Outcome(Api().GetCUDAProviderOptionsByName(options, "no_such_key", &found)), "");
  Api().ReleaseCUDAProviderOptions(options);
}

template <class Options>
void CheckOptionsClass(std::string (Options::*text)() const) {
  Options options;
  options.Update({{"device_id", "3"}});
  EXPECT_THAT((options.*text)(), HasSubstr("device_id=3"));
  EXPECT_NE(ErrorOf([&] { options.Update({{"no_such_key", "3"}}); }), "");
  int stream = 0;
  options.UpdateWithValue("user_compute_stream", &stream);
  EXPECT_EQ(options.GetOptionByName("user_compute_stream"), &stream);
  EXPECT_NE(ErrorOf([&] { options.GetOptionByName("no_such_key"); }), "");
  const Options moved = std::move(options), none(nullptr);
  EXPECT_EQ(moved.GetOptionByName("user_compute_stream"), &stream);
}

TEST(ProviderOptionsTest, HaveClasses) {
  CheckOptionsClass(&Ort::CUDAProviderOptions::GetCUDAProviderOptionsAsString);
  CheckOptionsClass(&Ort::TensorRTProviderOptions::GetTensorRTProviderOptionsAsString);
  Ort::SessionOptions options;
  options.AppendExecutionProvider_CPU(0).AppendExecutionProvider_CPU(1);
}

TEST(DeviceTest, CompiledModelsOfTheCpuAreNone) {
  EXPECT_EQ(Ort::GetModelCompatibilityForEpDevices({Env().GetEpDevices()[0]}, "x"),
            OrtCompiledModelCompatibility_EP_NOT_APPLICABLE);
  EXPECT_NE(ErrorOf([] { Ort::GetModelCompatibilityForEpDevices({}, "x"); }), "");
}

TEST(AbsentTest, ProvidersByNameSayWhatTheyNeed) {
  Ort::SessionOptions options;
  const auto append = [&](const char* name) {
    return Outcome(Api().SessionOptionsAppendExecutionProvider(options, name, nullptr, nullptr, 0));
  };
  EXPECT_THAT(append("QNN"), AllOf(HasSubstr("QNN"), HasSubstr("Qualcomm")));
  EXPECT_THAT(append("CUDAExecutionProvider"), HasSubstr("NVIDIA"));
  EXPECT_THAT(append("Nonsense"), HasSubstr("'Nonsense'"));
  EXPECT_EQ(append("CPUExecutionProvider"), "");
}

TEST(AbsentTest, SlotsOfAbsentFeaturesSayWhy) {
  Ort::Session session = Open(AddReluModel());
  int device = 0;
  EXPECT_THAT(Outcome(Api().GetCurrentGpuDeviceId(&device)), HasSubstr("GPU"));
  EXPECT_THAT(Outcome(Api().SetCurrentGpuDeviceId(0)), HasSubstr("GPU"));
  EXPECT_EQ(Outcome(Api().SessionReleaseCapturedGraph(session, 3)), "") << "there is none";
  const char* const keys[] = {"ep.dynamic.workload_type"};
  const char* const values[] = {"Efficient"};
  EXPECT_EQ(Outcome(Api().SetEpDynamicOptions(session, keys, values, 1)), "");
  OrtExternalResourceImporter* importer = nullptr;
  EXPECT_EQ(Outcome(Api().GetInteropApi()->CreateExternalResourceImporterForDevice(
                Env().GetEpDevices()[0], &importer)),
            "");
  EXPECT_EQ(importer, nullptr);
}

}  // namespace
}  // namespace tenon::test
