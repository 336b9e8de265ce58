#include "tensor/memory_info.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(MemoryInfoTest, EqualInfosAreInternedOnce) {
  EXPECT_EQ(&InternMemoryInfo(MemoryInfo()), &CpuMemory());
  MemoryInfo device;
  device.name = "Device";
  device.device_type = DeviceType::kNpu;
  const MemoryInfo& first = InternMemoryInfo(device);
  EXPECT_EQ(first, device);
  EXPECT_EQ(&InternMemoryInfo(device), &first);
  device.device_id = 1;
  EXPECT_NE(&InternMemoryInfo(device), &first);
  EXPECT_EQ(first.device_id, 0);
}

TEST(MemoryInfoTest, NameAndAllocatorTakeNoPartInSameDevice) {
  MemoryInfo other;
  other.name = "Other";
  other.allocator_type = 1;
  EXPECT_TRUE(CpuMemory().SameDevice(other));
  EXPECT_NE(CpuMemory(), other);
  other.device_id = 2;
  EXPECT_FALSE(CpuMemory().SameDevice(other));
}

}  // namespace
}  // namespace tenon
