// OrtMemoryInfo as CreateMemoryInfo_V2 makes it (plugin-ep, section 6).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capi/client.h"

namespace tenon::test {
namespace {

using testing::StartsWith;

struct Made {
  const char* name;
  OrtMemoryInfoDeviceType device;
  uint32_t vendor;
  int32_t id;
  OrtDeviceMemoryType memory;
  size_t alignment;
  OrtAllocatorType allocator;
};

std::string Make(const Made& made, OrtMemoryInfo** out) {
  return Outcome(Ort::GetApi().CreateMemoryInfo_V2(made.name, made.device, made.vendor, made.id,
                                                   made.memory, made.alignment, made.allocator,
                                                   out));
}

// Names of ONNX Runtime's own devices, with their PCI vendors.
TEST(MemoryInfoTest, KnowsNamesOfDevices) {
  constexpr uint32_t kAmd = 0x1002, kHuawei = 0x19E5, kIntel = 0x8086, kMicrosoft = 0x1414,
                     kNvidia = 0x10DE, kQualcomm = 0x5143;
  constexpr auto kCpu = OrtMemoryInfoDeviceType_CPU, kGpu = OrtMemoryInfoDeviceType_GPU,
                 kNpu = OrtMemoryInfoDeviceType_NPU;
  const struct {
    const char* name;
    OrtMemoryInfoDeviceType device;
    bool is_host_accessible;
    uint32_t vendor;
  } cases[] = {{"Cpu", kCpu, false, 0},
               {"Cuda", kGpu, false, kNvidia},
               {"CudaPinned", kGpu, true, kNvidia},
               {"Cann", kNpu, false, kHuawei},
               {"CannPinned", kNpu, true, kHuawei},
               {"DML", kGpu, false, kMicrosoft},
               {"Hip", kGpu, false, kAmd},
               {"HipPinned", kGpu, true, kAmd},
               {"OpenVINO_CPU", kCpu, false, 0},
               {"OpenVINO_GPU", kGpu, false, kIntel},
               {"OpenVINO_RT_NPU", kNpu, false, kIntel},
               {"QnnHtpShared", kCpu, true, kQualcomm},
               {"WebGPU_Buf", kGpu, false, 0},
               {"WebNN_Tensor", kGpu, false, 0}};
  const OrtApi& api = Ort::GetApi();
  for (const auto& expected : cases) {
    OrtMemoryInfo* info = nullptr;
    ASSERT_EQ(Outcome(api.CreateMemoryInfo(expected.name, OrtDeviceAllocator, 0, OrtMemTypeDefault,
                                           &info)),
              "")
        << expected.name;
    OrtMemoryInfoDeviceType device = kCpu;
    api.MemoryInfoGetDeviceType(info, &device);
    EXPECT_EQ(device, expected.device) << expected.name;
    EXPECT_EQ(api.MemoryInfoGetVendorId(info), expected.vendor) << expected.name;
    EXPECT_EQ(api.MemoryInfoGetDeviceMemType(info) == OrtDeviceMemoryType_HOST_ACCESSIBLE,
              expected.is_host_accessible)
        << expected.name;
    api.ReleaseMemoryInfo(info);
  }
}

// PE-79: any name and vendor, every device; 0 is the generic vendor and the device's own alignment.
TEST(MemoryInfoTest, SaysWhatItWasMadeOf) {
  const Made cases[] = {
      {"Cpu", OrtMemoryInfoDeviceType_CPU, 0, 0, OrtDeviceMemoryType_DEFAULT, 0,
       OrtDeviceAllocator},
      {"a name of my own", OrtMemoryInfoDeviceType_GPU, 0x10DE, 3, OrtDeviceMemoryType_DEFAULT, 256,
       OrtDeviceAllocator},
      {"", OrtMemoryInfoDeviceType_FPGA, 0, 1, OrtDeviceMemoryType_DEFAULT, 64, OrtArenaAllocator},
      {"npu, shared", OrtMemoryInfoDeviceType_NPU, ~0u, 7, OrtDeviceMemoryType_HOST_ACCESSIBLE, 0,
       OrtReadOnlyAllocator},
  };
  const OrtApi& api = Ort::GetApi();
  for (const Made& made : cases) {
    OrtMemoryInfo* info = nullptr;
    ASSERT_EQ(Make(made, &info), "") << made.name;
    const char* name = nullptr;
    int id = -1;
    OrtAllocatorType allocator = OrtInvalidAllocator;
    OrtMemType type = OrtMemTypeCPUInput;
    OrtMemoryInfoDeviceType device = OrtMemoryInfoDeviceType_CPU;
    ASSERT_EQ(Outcome(api.MemoryInfoGetName(info, &name)), "");
    ASSERT_EQ(Outcome(api.MemoryInfoGetId(info, &id)), "");
    ASSERT_EQ(Outcome(api.MemoryInfoGetType(info, &allocator)), "");
    ASSERT_EQ(Outcome(api.MemoryInfoGetMemType(info, &type)), "");
    api.MemoryInfoGetDeviceType(info, &device);
    EXPECT_STREQ(name, made.name);
    EXPECT_EQ(id, made.id);
    EXPECT_EQ(allocator, made.allocator);
    EXPECT_EQ(type, OrtMemTypeDefault);
    EXPECT_EQ(device, made.device);
    EXPECT_EQ(api.MemoryInfoGetVendorId(info), made.vendor);
    EXPECT_EQ(api.MemoryInfoGetDeviceMemType(info), made.memory);
    // The same again is equal; another alignment is another memory info.
    OrtMemoryInfo *same = nullptr, *other = nullptr;
    Made aligned = made;
    aligned.alignment += 64;
    ASSERT_EQ(Make(made, &same), "");
    ASSERT_EQ(Make(aligned, &other), "");
    int difference = -2;
    ASSERT_EQ(Outcome(api.CompareMemoryInfo(info, same, &difference)), "");
    EXPECT_EQ(difference, 0);
    ASSERT_EQ(Outcome(api.CompareMemoryInfo(info, other, &difference)), "");
    EXPECT_NE(difference, 0);
    for (OrtMemoryInfo* const released : {info, same, other}) api.ReleaseMemoryInfo(released);
  }
}

// PE-79: with the numbers left at 0 it is the memory that CreateCpuMemoryInfo describes.
TEST(MemoryInfoTest, TheGenericCpuIsTheCpu) {
  OrtMemoryInfo *generic = nullptr, *cpu = nullptr;
  ASSERT_EQ(Make({"Cpu", OrtMemoryInfoDeviceType_CPU, 0, 0, OrtDeviceMemoryType_DEFAULT, 0,
                  OrtDeviceAllocator},
                 &generic),
            "");
  ASSERT_EQ(Outcome(Ort::GetApi().CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu)),
            "");
  int difference = -2;
  ASSERT_EQ(Outcome(Ort::GetApi().CompareMemoryInfo(generic, cpu, &difference)), "");
  EXPECT_EQ(difference, 0);
  Ort::GetApi().ReleaseMemoryInfo(generic);
  Ort::GetApi().ReleaseMemoryInfo(cpu);
}

// PE-79
TEST(MemoryInfoTest, RefusesWhatThereIsNot) {
  const Made good = {"Gpu", OrtMemoryInfoDeviceType_GPU, 0, 0, OrtDeviceMemoryType_DEFAULT,
                     0,     OrtDeviceAllocator};
  OrtMemoryInfo* info = nullptr;
  for (const int device : {-1, 4, 1000}) {
    Made other = good;
    other.device = static_cast<OrtMemoryInfoDeviceType>(device);
    EXPECT_THAT(Make(other, &info), StartsWith("2: ")) << device;
  }
  for (const int memory : {-1, 1, 6}) {
    Made other = good;
    other.memory = static_cast<OrtDeviceMemoryType>(memory);
    EXPECT_THAT(Make(other, &info), StartsWith("2: ")) << memory;
  }
  Made nameless = good;
  nameless.name = nullptr;
  EXPECT_THAT(Make(nameless, &info), StartsWith("2: "));
  EXPECT_THAT(Make(good, nullptr), StartsWith("2: "));
}

}  // namespace
}  // namespace tenon::test
