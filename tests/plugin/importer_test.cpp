// Memory and semaphores of other APIs (plugin-ep section 10).
#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const OrtInteropApi& Interop() { return *Api().GetInteropApi(); }

class ImporterTest : public MockTest {
 protected:
  void SetUp() override { ASSERT_EQ(Register(), ""); }

  static OrtExternalResourceImporter* Make() {
    OrtExternalResourceImporter* importer = nullptr;
    EXPECT_EQ(
        Outcome(Interop().CreateExternalResourceImporterForDevice(MockDevices()[0], &importer)),
        "");
    return importer;
  }
  static OrtExternalMemoryDescriptor Over(std::vector<float>& data) {
    return {ORT_API_VERSION, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_OPAQUE_FD, data.data(),
            data.size() * sizeof(float), 0};
  }
};

// PE-111: for null, "not implemented" and built-in devices there is no importer; other failures are
// failures.
TEST_F(ImporterTest, NoImporterIsNoError) {
  EXPECT_EQ(Make(), nullptr) << "the mock says that it is not implemented";
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  ASSERT_EQ(Outcome(Api().GetEpDevices(Env(), &devices, &count)), "");
  OrtExternalResourceImporter* importer = nullptr;
  EXPECT_EQ(Outcome(Interop().CreateExternalResourceImporterForDevice(devices[0], &importer)), "");
  EXPECT_EQ(importer, nullptr);
  Mock().imports = true;
  Mock().fails = {"CreateExternalResourceImporterForDevice"};
  EXPECT_THAT(
      Outcome(Interop().CreateExternalResourceImporterForDevice(MockDevices()[0], &importer)),
      AllOf(StartsWith("11: "), HasSubstr("was told to fail")));
  ASSERT_EQ(Unregister(), "");
  Mock().fails.clear();
  Mock().api_version = 23;  // the slot is of version 24
  ASSERT_EQ(Register(), "");
  Mock().calls.clear();
  EXPECT_EQ(Make(), nullptr);
  EXPECT_EQ(Mock().Count("CreateExternalResourceImporterForDevice"), 0);
}

// PE-111: memory goes in, and comes out as a tensor.
TEST_F(ImporterTest, MemoryBecomesATensor) {
  Mock().imports = true;
  OrtExternalResourceImporter* const importer = Make();
  ASSERT_NE(importer, nullptr);
  bool can = true;
  EXPECT_EQ(Outcome(Interop().CanImportMemory(importer, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP,
                                              &can)),
            "");
  EXPECT_FALSE(can);
  EXPECT_EQ(Outcome(Interop().CanImportMemory(
                importer, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_OPAQUE_FD, &can)),
            "");
  EXPECT_TRUE(can);
  std::vector<float> data = {1, 2, 3, 4};
  OrtExternalMemoryDescriptor descriptor = Over(data);
  OrtExternalMemoryHandle* memory = nullptr;
  descriptor.version = ORT_API_VERSION + 1;
  EXPECT_THAT(Outcome(Interop().ImportMemory(importer, &descriptor, &memory)),
              AllOf(StartsWith("2: "), HasSubstr("version")));
  EXPECT_EQ(Mock().Count("ImportMemory"), 0) << "of an unknown version";
  descriptor.version = ORT_API_VERSION;
  Mock().fails = {"ImportMemory"};
  EXPECT_THAT(Outcome(Interop().ImportMemory(importer, &descriptor, &memory)), StartsWith("11: "));
  EXPECT_EQ(memory, nullptr);
  Mock().fails.clear();
  ASSERT_EQ(Outcome(Interop().ImportMemory(importer, &descriptor, &memory)), "");
  const int64_t shape[] = {3};
  OrtExternalTensorDescriptor tensor = {ORT_API_VERSION + 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                        shape, 1, sizeof(float)};
  OrtValue* value = nullptr;
  EXPECT_THAT(Outcome(Interop().CreateTensorFromMemory(importer, memory, &tensor, &value)),
              AllOf(StartsWith("2: "), HasSubstr("version")));
  tensor.version = ORT_API_VERSION;
  ASSERT_EQ(Outcome(Interop().CreateTensorFromMemory(importer, memory, &tensor, &value)), "");
  const OrtMemoryInfo* where = nullptr;
  ASSERT_EQ(Outcome(Api().GetTensorMemoryInfo(value, &where)), "");
  EXPECT_EQ(where, Api().EpDevice_MemoryInfo(MockDevices()[0], OrtDeviceMemoryType_DEFAULT));
  void* elements = nullptr;
  ASSERT_EQ(Outcome(Api().GetTensorMutableData(value, &elements)), "");
  EXPECT_EQ(elements, data.data() + 1);
  Api().ReleaseValue(value);
  // Imported memory outlives its importer and its library's registration.
  Interop().ReleaseExternalResourceImporter(importer);
  EXPECT_EQ(Mock().Count("ReleaseImporter"), 1);
  ASSERT_EQ(Unregister(), "");
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 0);
  EXPECT_EQ(Mock().Count("ReleaseMemoryHandle"), 0);
  Interop().ReleaseExternalMemoryHandle(memory);
  EXPECT_EQ(Mock().Count("ReleaseMemoryHandle"), 1) << "through its own Release";
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 1);
}

// PE-111: semaphores order the work of a stream.
TEST_F(ImporterTest, SemaphoresOrderStreams) {
  Mock().imports = true;
  OrtExternalResourceImporter* const importer = Make();
  bool can = false;
  EXPECT_EQ(Outcome(Interop().CanImportSemaphore(
                importer, ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD, &can)),
            "");
  EXPECT_TRUE(can);
  uint64_t reached = 0;
  OrtExternalSemaphoreDescriptor descriptor = {
      ORT_API_VERSION + 1, ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD, &reached};
  OrtExternalSemaphoreHandle* semaphore = nullptr;
  EXPECT_THAT(Outcome(Interop().ImportSemaphore(importer, &descriptor, &semaphore)),
              StartsWith("2: "));
  descriptor.version = ORT_API_VERSION;
  ASSERT_EQ(Outcome(Interop().ImportSemaphore(importer, &descriptor, &semaphore)), "");
  OrtSyncStream* stream = nullptr;
  ASSERT_EQ(Outcome(Api().CreateSyncStreamForEpDevice(MockDevices()[0], nullptr, &stream)), "");
  EXPECT_THAT(Outcome(Interop().WaitSemaphore(importer, semaphore, stream, 5)),
              AllOf(StartsWith("11: "), HasSubstr("waits forever")));
  EXPECT_EQ(Outcome(Interop().SignalSemaphore(importer, semaphore, stream, 5)), "");
  EXPECT_EQ(reached, 5u);
  EXPECT_EQ(Outcome(Interop().WaitSemaphore(importer, semaphore, stream, 5)), "");
  EXPECT_THAT(Outcome(Interop().WaitSemaphore(importer, semaphore, nullptr, 5)), StartsWith("2: "));
  EXPECT_THAT(Outcome(Interop().WaitSemaphore(nullptr, semaphore, stream, 5)), StartsWith("2: "));
  Api().ReleaseSyncStream(stream);
  Interop().ReleaseExternalSemaphoreHandle(semaphore);
  EXPECT_EQ(Mock().Count("ReleaseSemaphoreHandle"), 1);
  Interop().ReleaseExternalSemaphoreHandle(nullptr);
  Interop().ReleaseExternalMemoryHandle(nullptr);
  Interop().ReleaseExternalResourceImporter(nullptr);
  Interop().ReleaseExternalResourceImporter(importer);
}

// PE-111: slots that are missing, and handles that are missing.
TEST_F(ImporterTest, WhatAnImporterLacksIsNamed) {
  Mock().imports = true;
  const auto lacks = [](const char* slot) {
    Mock().lacks = {std::string("OrtExternalResourceImporterImpl::") + slot};
    return AllOf(HasSubstr(kMock), HasSubstr(std::string("lacks ") + slot));
  };
  OrtExternalResourceImporter* importer = nullptr;
  const auto is_without_release = lacks("Release");
  EXPECT_THAT(
      Outcome(Interop().CreateExternalResourceImporterForDevice(MockDevices()[0], &importer)),
      is_without_release);
  std::vector<float> data = {1, 2};
  const OrtExternalMemoryDescriptor descriptor = Over(data);
  OrtExternalMemoryHandle* memory = nullptr;
  bool can = true;
  for (const char* const slot : {"CanImportMemory", "CanImportSemaphore"}) {
    const auto unused = lacks(slot);
    importer = Make();
    const bool is_memory = slot == std::string("CanImportMemory");
    EXPECT_EQ(
        Outcome(is_memory
                    ? Interop().CanImportMemory(
                          importer, ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_OPAQUE_FD, &can)
                    : Interop().CanImportSemaphore(
                          importer, ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD, &can)),
        "");
    EXPECT_FALSE(can) << slot;
    Interop().ReleaseExternalResourceImporter(importer);
  }
  const auto has_no_import = lacks("ImportMemory");
  importer = Make();
  EXPECT_THAT(Outcome(Interop().ImportMemory(importer, &descriptor, &memory)), has_no_import);
  Interop().ReleaseExternalResourceImporter(importer);
  const auto has_no_tensors = lacks("CreateTensorFromMemory");
  importer = Make();
  ASSERT_EQ(Outcome(Interop().ImportMemory(importer, &descriptor, &memory)), "");
  const int64_t shape[] = {2};
  const OrtExternalTensorDescriptor tensor = {ORT_API_VERSION, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                              shape, 1, 0};
  OrtValue* value = nullptr;
  EXPECT_THAT(Outcome(Interop().CreateTensorFromMemory(importer, memory, &tensor, &value)),
              has_no_tensors);
  Interop().ReleaseExternalMemoryHandle(memory);
  for (const char* const what : {"a memory handle", "OrtExternalMemoryHandle::Release"}) {
    Mock().lacks = {what};
    EXPECT_THAT(Outcome(Interop().ImportMemory(importer, &descriptor, &memory)),
                AllOf(StartsWith("1: "), HasSubstr(kMock), HasSubstr("ImportMemory")));
    EXPECT_EQ(memory, nullptr);
  }
  Interop().ReleaseExternalResourceImporter(importer);
}

}  // namespace
}  // namespace tenon::test
