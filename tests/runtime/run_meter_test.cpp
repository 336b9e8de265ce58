// The memory of a run, block by block.
#include "runtime/run_meter.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(RunMeterTest, MemoryIsTakenAndGivenBack) {
  RunMeter meter;
  const MemoryInfo cpu;
  const char blocks[3] = {};
  meter.HoldPlanned(cpu, 1000);
  meter.Take(cpu, &blocks[0], 10);
  meter.Give(cpu, &blocks[0]);
  meter.Give(cpu, &blocks[2]);  // another run's
  meter.Take(cpu, &blocks[1], 200);
  meter.ReleasePlanned(cpu, 1000);
  meter.HoldPlanned(cpu, 700);
  meter.set_paused(true);
  meter.Take(cpu, &blocks[2], 5000);
  const auto locations = meter.locations();
  ASSERT_EQ(locations.size(), 1u);
  EXPECT_EQ(locations[0].name, cpu.name);
  EXPECT_EQ(locations[0].static_bytes, 1000u);
  EXPECT_EQ(locations[0].dynamic_bytes, 210u);
  EXPECT_EQ(locations[0].peak_bytes, 1200u);
}

TEST(RunMeterTest, LocationsAreApart) {
  RunMeter meter;
  const MemoryInfo cpu, second{.name = "Device", .device_id = 1};
  const char blocks[2] = {};
  meter.Take(cpu, &blocks[0], 10);
  meter.Take(second, &blocks[1], 7);
  const auto locations = meter.locations();
  ASSERT_EQ(locations.size(), 2u);
  EXPECT_EQ(locations[0].peak_bytes + locations[1].peak_bytes, 17u);
}

}  // namespace
}  // namespace tenon
