#include "capi/env/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "base/text.h"

namespace tenon::capi {
namespace {

using testing::ElementsAre;

void AddDevice(const TemporaryFolder& folder, const std::string& id, const std::string& pci_class,
               const std::string& vendor, const std::string& device) {
  folder.Write(id + "/class", pci_class);
  folder.Write(id + "/vendor", vendor);
  folder.Write(id + "/device", device);
}

// PE-25, PE-26: the accelerators among what a machine has.
TEST(HardwareTest, FindsGpusAndNpus) {
  const TemporaryFolder folder;
  AddDevice(folder, "0000:00:02.0", "0x030000\n", "0x8086\n", "0x46a6\n");  // in the processor
  AddDevice(folder, "0000:01:00.0", "0x030200\n", "0x10de\n", "0x2335\n");  // a card
  AddDevice(folder, "0000:00:0b.0", "0x120000\n", "0x8086\n", "0x7d1d\n");  // an NPU
  AddDevice(folder, "0000:00:1f.3", "0x040300\n", "0x8086\n", "0x51c8\n");  // sound
  AddDevice(folder, "0000:02:00.0", "0x030000\n", "0x10de\n", "nonsense\n");
  folder.Write("0000:03:00.0/class", "0x030000\n");
  const auto found = FindPciAccelerators(folder.path());
  std::vector<std::string> texts;
  for (const auto& device : found) {
    const StringMap& metadata = device->metadata.entries();
    const auto discrete = metadata.find("Discrete");
    texts.push_back(Format("{} {} {:x} {}", static_cast<int>(device->type), device->vendor,
                           device->device_id, discrete == metadata.end() ? "-" : discrete->second));
  }
  EXPECT_THAT(texts, ElementsAre("2 Intel 7d1d -", "1 Intel 46a6 0", "1 NVIDIA 2335 1"));
}

TEST(HardwareTest, AMachineWithoutAListHasItsCpu) {
  EXPECT_TRUE(FindPciAccelerators("/no/such/folder").empty());
  ASSERT_FALSE(Hardware().empty());
  EXPECT_EQ(Hardware().back(), &CpuHardware());
}

}  // namespace
}  // namespace tenon::capi
