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

// The same without a stream: nobody notices.
TEST_F(PluginStreamTest, APluginThatFailsIsReplaced) {
  Ort::SessionOptions options = OptionsForMock();
  options.AddConfigEntry("tenon.ep_fail_fallback", "1");
  Ort::Session session = Open(SquareModel(), options);
  Mock().fails = {"Compute"};
  EXPECT_THAT(Run(session, {5}), ElementsAre(25));
  EXPECT_EQ(Mock().Count("OnSessionEnd"), 1);
  EXPECT_EQ(Mock().end_reason, 2u) << "REPLACED_BY_FALLBACK";
}

// PE-111, PE-112: what the mock's factory lacks.
TEST_F(PluginStreamTest, SaysThatNothingIsImportedAndNothingDrawn) {
  OrtExternalResourceImporter* importer = nullptr;
  EXPECT_EQ(Outcome(Api().GetInteropApi()->CreateExternalResourceImporterForDevice(MockDevices()[0],
                                                                                   &importer)),
            "");
  EXPECT_EQ(importer, nullptr);
  EXPECT_THAT(Outcome(Api().GetInteropApi()->DeinitGraphicsInteropForEpDevice(MockDevices()[0])),
              StartsWith("9: "));
}

}  // namespace
}  // namespace tenon::test
