#include "base/cpu_info.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <vector>

#include "base/temporary_folder.h"

namespace tenon {
namespace {

class CgroupTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) { root_.Write(path, text); }
  std::optional<double> Quota(std::string_view proc_self_cgroup) const {
    return CgroupCpuQuota(proc_self_cgroup, root_.path());
  }
  TemporaryFolder root_;
};

TEST_F(CgroupTest, NoGroupsMeansNoLimit) {
  EXPECT_EQ(Quota(""), std::nullopt);
  EXPECT_EQ(Quota("0::/a/b\n"), std::nullopt);
}

TEST_F(CgroupTest, Version2TakesTheTightestAncestor) {
  Write("cpu.max", "max 100000\n");
  Write("a/cpu.max", "150000 100000\n");
  Write("a/b/cpu.max", "400000 100000\n");
  EXPECT_EQ(Quota("0::/\n"), std::nullopt);
  EXPECT_EQ(Quota("0::/a\n"), 1.5);
  EXPECT_EQ(Quota("0::/a/b\n"), 1.5);
  EXPECT_EQ(Quota("0::/a/b/path/of/the/host\n"), 1.5);
}

TEST_F(CgroupTest, Version1ReadsQuotaAndPeriod) {
  Write("cpu,cpuacct/x/cpu.cfs_quota_us", "50000\n");
  Write("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  Write("cpu,cpuacct/y/cpu.cfs_quota_us", "-1\n");
  Write("cpu,cpuacct/y/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota("7:memory:/x\n4:cpu,cpuacct:/x\n"), 0.5);
  EXPECT_EQ(Quota("4:cpu,cpuacct:/y\n"), std::nullopt);
  EXPECT_EQ(Quota("4:cpuset:/x\n"), std::nullopt);
}

TEST_F(CgroupTest, NonsenseIsNoLimit) {
  Write("a/cpu.max", "many few\n");
  Write("b/cpu.max", "1000 0\n");
  Write("c/cpu.max", "");
  for (const char* groups : {"0::/a\n", "0::/b\n", "0::/c\n", "::::\n", "0::", "\n\n"}) {
    EXPECT_EQ(Quota(groups), std::nullopt) << groups;
  }
}

TEST(CpuInfoTest, UsableCpusFollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(UsableCpuCount(), 1);
  EXPECT_LE(UsableCpuCount(), CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(UsableCpuCount(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(CpuInfoTest, CacheSizesGrowWithTheLevel) {
  const CacheSizes sizes = CpuCacheSizes();
  if (sizes.l1_data == 0) GTEST_SKIP() << "the system does not say";
  EXPECT_GE(sizes.l1_data, 4096u);
  EXPECT_TRUE(sizes.l2 == 0 || sizes.l2 >= sizes.l1_data) << sizes.l2;
}

TEST(CpuInfoTest, ResidentMemoryFollowsAllocations) {
  constexpr size_t kBytes = size_t{64} << 20;
  const size_t before = CurrentResidentBytes();
  ASSERT_GT(before, 0u);
  {
    const std::vector<char> block(kBytes, 1);
    EXPECT_GE(CurrentResidentBytes(), before + kBytes / 2);
    EXPECT_EQ(block.back(), 1);
  }
  EXPECT_GE(PeakResidentBytes(), before + kBytes / 2);
}

}  // namespace
}  // namespace tenon
