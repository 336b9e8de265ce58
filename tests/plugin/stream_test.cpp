// Streams of plugins and copies between devices (plugin-ep sections 8 and 9).
#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class PluginStreamTest : public MockTest {
 protected:
  void SetUp() override { ASSERT_EQ(Register(), ""); }

  // A tensor of `size` floats in the mock's memory.
  static Ort::Value OnDevice(int64_t size) {
    OrtAllocator* shared = nullptr;
    const OrtMemoryInfo* const memory =
        Api().EpDevice_MemoryInfo(MockDevices()[0], OrtDeviceMemoryType_DEFAULT);
    EXPECT_EQ(Outcome(Api().GetSharedAllocator(Env(), memory, &shared)), "");
    OrtValue* value = nullptr;
    EXPECT_EQ(Outcome(Api().CreateTensorAsOrtValue(shared, &size, 1,
                                                   ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value)),
              "");
    return Ort::Value(value);
  }
};

// PE-97, PE-98: three tensors, one call.
TEST_F(PluginStreamTest, CopiesABatchInOneCall) {
  std::vector<float> data[3] = {{1, 2}, {3, 4, 5}, {6}}, back[3] = {{0, 0}, {0, 0, 0}, {0}};
  std::vector<Ort::Value> host, device, returned;
  for (int i = 0; i < 3; ++i) {
    const auto size = static_cast<int64_t>(data[i].size());
    host.push_back(TensorOver(data[i], {size}));
    returned.push_back(TensorOver(back[i], {size}));
    device.push_back(OnDevice(size));
  }
  const auto pointers = [](const std::vector<Ort::Value>& values) {
    std::vector<OrtValue*> list;
    for (const Ort::Value& value : values) {
      list.push_back(const_cast<OrtValue*>(static_cast<const OrtValue*>(value)));
    }
    return list;
  };
  const auto from = pointers(host), over = pointers(device), into = pointers(returned);
  OrtSyncStream* stream = nullptr;
  ASSERT_EQ(Outcome(Api().CreateSyncStreamForEpDevice(MockDevices()[0], nullptr, &stream)), "");
  EXPECT_NE(Api().SyncStream_GetHandle(stream), nullptr) << "PE-103";
  const OrtEpApi& ep_api = *Api().GetEpApi();
  EXPECT_NE(ep_api.SyncStream_GetImpl(stream), nullptr);
  EXPECT_EQ(ep_api.SyncStream_GetSyncId(stream), 0u) << "nothing has waited for it";
  EXPECT_EQ(ep_api.GetSyncIdForLastWaitOnSyncStream(stream, stream), 0u) << "it never waited";
  ASSERT_EQ(Outcome(Api().CopyTensors(Env(), from.data(), over.data(), stream, 3)), "");
  EXPECT_EQ(Mock().copy_calls, 1);
  ASSERT_EQ(Outcome(Api().CopyTensors(Env(), over.data(), into.data(), nullptr, 3)), "");
  EXPECT_EQ(Mock().copy_calls, 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(back[i], data[i]);
  Api().ReleaseSyncStream(stream);
}

// PE-98
TEST_F(PluginStreamTest, RefusesCopiesThatMakeNoSense) {
  std::vector<float> data = {1, 2};
  const Ort::Value host = TensorOver(data, {2});
  const Ort::Value device = OnDevice(3);
  const OrtValue* const from[] = {host};
  OrtValue* const into[] = {const_cast<OrtValue*>(static_cast<const OrtValue*>(device))};
  EXPECT_THAT(Outcome(Api().CopyTensors(Env(), from, into, nullptr, 1)), StartsWith("2: "));
  EXPECT_THAT(Outcome(Api().CopyTensors(Env(), from, into, nullptr, 0)), StartsWith("2: "));
  EXPECT_THAT(Outcome(Api().CopyTensors(Env(), nullptr, into, nullptr, 1)), StartsWith("2: "));
}

// PE-102
TEST_F(PluginStreamTest, SaysWhyThereIsNoStream) {
  OrtSyncStream* stream = nullptr;
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  ASSERT_EQ(Outcome(Api().GetEpDevices(Env(), &devices, &count)), "");
  EXPECT_THAT(Outcome(Api().CreateSyncStreamForEpDevice(devices[0], nullptr, &stream)),
              AllOf(StartsWith("9: "), HasSubstr("CPUExecutionProvider")));
  Mock().has_streams = false;
  EXPECT_THAT(Outcome(Api().CreateSyncStreamForEpDevice(MockDevices()[0], nullptr, &stream)),
              AllOf(StartsWith("9: "), HasSubstr(kMock)));
}

// PE-105
TEST_F(PluginStreamTest, EndsWithEachRun) {
  Ort::Session session = Open(SquareModel(), OptionsForMock());
  for (int i = 1; i <= 3; ++i) {
    EXPECT_THAT(Run(session, {2}), ElementsAre(4));
    EXPECT_EQ(Mock().Count("OnSessionRunEnd"), i);
  }
  EXPECT_EQ(Mock().Count("CreateSyncStreamForDevice"), 1) << "kept from run to run";
  EXPECT_GT(Mock().Count("Activate"), 0) << "the CPU waits for the device";
}

// PE-106
TEST_F(PluginStreamTest, ARunMayUseTheCallersStream) {
  Ort::Session session = Open(SquareModel(), OptionsForMock());
  OrtSyncStream* stream = nullptr;
  ASSERT_EQ(Outcome(Api().CreateSyncStreamForEpDevice(MockDevices()[0], nullptr, &stream)), "");
  Mock().calls.clear();
  Ort::RunOptions options;
  Api().RunOptionsSetSyncStream(options, stream);
  std::vector<float> x = {5};
  const Ort::Value feed = TensorOver(x, {1});
  const char* const input = "x";
  const char* const output = "y";
  for (int i = 1; i <= 2; ++i) {
    const auto outputs = session.Run(options, &input, &feed, 1, &output, 1);
    EXPECT_THAT(ElementsOf<float>(outputs[0]), ElementsAre(25));
    EXPECT_EQ(Mock().Count("OnSessionRunEnd"), i);
  }
  EXPECT_EQ(Mock().Count("CreateSyncStreamForDevice"), 0);
  Api().RunOptionsSetSyncStream(options, nullptr);
  session.Run(options, &input, &feed, 1, &output, 1);
  EXPECT_EQ(Mock().Count("CreateSyncStreamForDevice"), 1) << "the session's own again";
  Api().RunOptionsSetSyncStream(options, stream);
  Ort::Session other = Open(SquareModel());
  EXPECT_THAT(ErrorOf([&] { other.Run(options, &input, &feed, 1, &output, 1); }),
              AllOf(StartsWith("2: "), HasSubstr("Mock")));
  Api().ReleaseSyncStream(stream);
}

// FB-29: a provider that fails is replaced (python-fallback, section 3), but a run with a stream,
// whose work the caller may have begun, is not repeated.
TEST_F(PluginStreamTest, ARunWithAStreamIsNotRepeated) {
  Ort::SessionOptions options = OptionsForMock();
  options.AddConfigEntry("tenon.ep_fail_fallback", "1");
  Ort::Session session = Open(SquareModel(), options);
  OrtSyncStream* stream = nullptr;
  ASSERT_EQ(Outcome(Api().CreateSyncStreamForEpDevice(MockDevices()[0], nullptr, &stream)), "");
  Ort::RunOptions run_options;
  Api().RunOptionsSetSyncStream(run_options, stream);
  std::vector<float> x = {5};
  const Ort::Value feed = TensorOver(x, {1});
  const char* const input = "x";
  const char* const output = "y";
  Mock().fails = {"Compute"};
  EXPECT_THAT(ErrorOf([&] { session.Run(run_options, &input, &feed, 1, &output, 1); }),
              AllOf(StartsWith("11: "), HasSubstr("Compute was told to fail")));
  EXPECT_THAT(Run(session, {5}), ElementsAre(25)) << "the CPU has taken over";
  Api().ReleaseSyncStream(stream);
}

// The same without a stream: the failure has no effect.
TEST_F(PluginStreamTest, APluginThatFailsIsReplaced) {
  Ort::SessionOptions options = OptionsForMock();
  options.AddConfigEntry("tenon.ep_fail_fallback", "1");
  Ort::Session session = Open(SquareModel(), options);
  Mock().fails = {"Compute"};
  EXPECT_THAT(Run(session, {5}), ElementsAre(25));
  EXPECT_EQ(Mock().Count("OnSessionEnd"), 1);
  EXPECT_EQ(Mock().end_reason, 2u) << "REPLACED_BY_FALLBACK";
}

// PE-112: slots that the mock's factory lacks.
TEST_F(PluginStreamTest, SaysThatNothingIsDrawn) {
  const OrtGraphicsInteropConfig graphics = {ORT_API_VERSION, {}, nullptr, nullptr};
  EXPECT_NE(
      Outcome(Api().GetInteropApi()->InitGraphicsInteropForEpDevice(MockDevices()[0], &graphics)),
      "");
  EXPECT_THAT(Outcome(Api().GetInteropApi()->DeinitGraphicsInteropForEpDevice(MockDevices()[0])),
              StartsWith("9: "));
}

std::string CopyOne(const Ort::Value& from, Ort::Value& into) {
  const OrtValue* const source[] = {from};
  OrtValue* const target[] = {into};
  return Outcome(Api().CopyTensors(Env(), source, target, nullptr, 1));
}

// PE-96: transfers are asked with all of a device, in the order of their registration; between
// memories of the CPU no transfer is asked.
TEST_F(PluginStreamTest, TheFirstTransferThatCanCopies) {
  ASSERT_EQ(Register(MOCK_PLUGIN, "again"), "");
  std::vector<float> data = {1, 2}, back = {0, 0};
  const Ort::Value host = TensorOver(data, {2});
  Ort::Value returned = TensorOver(back, {2});
  Ort::Value device = OnDevice(2);
  Mock().logs_can_copy = true;
  EXPECT_EQ(CopyOne(host, device), "");
  // 0xBE57 is the mock's vendor.
  EXPECT_THAT(Mock().can_copies, ElementsAre("0/0/0/0>1/0/48727/0")) << "the first one said yes";
  Mock().can_copies.clear();
  EXPECT_EQ(CopyOne(device, returned), "");
  EXPECT_THAT(Mock().can_copies, ElementsAre("1/0/48727/0>0/0/0/0"));
  EXPECT_EQ(back, data);
  Mock().can_copies.clear();
  back = {0, 0};
  EXPECT_EQ(CopyOne(host, returned), "");
  EXPECT_TRUE(Mock().can_copies.empty());
  EXPECT_EQ(back, data);
  EXPECT_EQ(Mock().copy_calls, 2);
  // Memory of another vendor: all transfers are asked, and none can copy it.
  OrtMemoryInfo* foreign = nullptr;
  ASSERT_EQ(Outcome(Api().CreateMemoryInfo_V2("Foreign", OrtMemoryInfoDeviceType_NPU, 7, 3,
                                              OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator,
                                              &foreign)),
            "");
  Ort::Value elsewhere =
      Ort::Value::CreateTensor<float>(foreign, back.data(), 2, std::vector<int64_t>{2}.data(), 1);
  EXPECT_THAT(CopyOne(host, elsewhere),
              AllOf(StartsWith("9: "), HasSubstr("Cpu"), HasSubstr("Foreign")));
  EXPECT_THAT(Mock().can_copies, ElementsAre("0/0/0/0>3/0/7/3", "0/0/0/0>3/0/7/3"));
  Api().ReleaseMemoryInfo(foreign);
  // With no plugin at all the CPU still copies.
  device = Ort::Value(nullptr);
  ASSERT_EQ(Unregister("again"), "");
  ASSERT_EQ(Unregister(), "");
  back = {0, 0};
  EXPECT_EQ(CopyOne(host, returned), "");
  EXPECT_EQ(back, data);
}

// PE-99: the plugin's arguments are destroyed after the call, and strings are never passed to it.
TEST_F(PluginStreamTest, StringsStayOnTheCpu) {
  Ort::AllocatorWithDefaultOptions cpu;
  const int64_t size = 2;
  const auto strings = [&] {
    return Ort::Value::CreateTensor(cpu, &size, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  };
  Ort::Value from = strings(), into = strings();
  const char* const texts[] = {"a", "a text that is too long for a short string"};
  from.FillStringTensor(texts, 2);
  EXPECT_EQ(CopyOne(from, into), "");
  EXPECT_EQ(into.GetStringTensorElement(1), texts[1]);
  OrtAllocator* shared = nullptr;
  const OrtMemoryInfo* const memory =
      Api().EpDevice_MemoryInfo(MockDevices()[0], OrtDeviceMemoryType_DEFAULT);
  ASSERT_EQ(Outcome(Api().GetSharedAllocator(Env(), memory, &shared)), "");
  OrtValue* on_device = nullptr;
  const std::string made = Outcome(Api().CreateTensorAsOrtValue(
      shared, &size, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &on_device));
  Ort::Value there = made.empty() ? Ort::Value(on_device) : OnDevice(size);
  EXPECT_THAT(CopyOne(from, there), StartsWith("2: "));
  EXPECT_THAT(CopyOne(there, into), StartsWith("2: "));
  EXPECT_EQ(Mock().copy_calls, 0);
  // The plugin's wrappers are not the caller's values.
  std::vector<float> data = {1, 2};
  const Ort::Value host = TensorOver(data, {2});
  Ort::Value device = OnDevice(2);
  ASSERT_EQ(CopyOne(host, device), "");
  ASSERT_EQ(Mock().copied_values.size(), 2u);
  EXPECT_NE(Mock().copied_values[0], static_cast<const OrtValue*>(host));
  EXPECT_NE(Mock().copied_values[1], static_cast<const OrtValue*>(device));
}

// PE-100
TEST_F(PluginStreamTest, TransfersGoBeforeTheirLibrary) {
  EXPECT_EQ(Mock().Count("CreateDataTransfer"), 1) << "the environment's";
  {
    Ort::Session session = Open(SquareModel(), OptionsForMock());
    EXPECT_EQ(Mock().Count("CreateDataTransfer"), 2) << "the session's";
    EXPECT_LT(FirstCall("CreateEp"), FirstCall("Compile"));
    ASSERT_EQ(Unregister(), "");
    EXPECT_EQ(Mock().Count("ReleaseTransfer"), 1);
    EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 0);
    EXPECT_THAT(Run(session, {3}), ElementsAre(9)) << "by the session's own transfer";
  }
  EXPECT_EQ(Mock().Count("ReleaseTransfer"), 2);
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 1);
  EXPECT_EQ(Mock().calls.back(), "ReleaseEpFactory") << "the library goes last";
}

// PE-107: the kernel gets its run's stream, and none if there is none.
TEST_F(PluginStreamTest, KernelsSeeTheirStream) {
  for (const MockClaims claims : {MockClaims::kFused, MockClaims::kKernels}) {
    Mock().claims = claims;
    Ort::Session session = Open(SquareModel(), OptionsForMock());
    Mock().compute_stream = nullptr;
    Run(session, {3});
    EXPECT_NE(Mock().compute_stream, nullptr);
    OrtSyncStream* stream = nullptr;
    ASSERT_EQ(Outcome(Api().CreateSyncStreamForEpDevice(MockDevices()[0], nullptr, &stream)), "");
    Ort::RunOptions options;
    Api().RunOptionsSetSyncStream(options, stream);
    std::vector<float> x = {5};
    const Ort::Value feed = TensorOver(x, {1});
    const char* const input = "x";
    const char* const output = "y";
    session.Run(options, &input, &feed, 1, &output, 1);
    EXPECT_EQ(Mock().compute_stream, Api().SyncStream_GetHandle(stream)) << "the caller's";
    Api().ReleaseSyncStream(stream);
  }
  Mock().has_streams = false;
  Ort::Session session = Open(SquareModel(), OptionsForMock());
  Run(session, {3});
  EXPECT_EQ(Mock().compute_stream, nullptr);
}

}  // namespace
}  // namespace tenon::test
