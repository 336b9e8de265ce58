#include "base/huge_pages.h"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <cstddef>
#include <cstring>
#include <vector>

namespace tenon {
namespace {

#if defined(__linux__)

constexpr int kCollapse = 25;  // MADV_COLLAPSE, since Linux 6.1
constexpr size_t kBytes = kHugePageBytes;
constexpr size_t kQuarter = kBytes / 4;

class HugePagesTest : public testing::Test {
 protected:
  void SetUp() override {
    memory_ = static_cast<std::byte*>(ReserveHugePages(kBytes, HugePages::kPreferred));
    if (memory_ == nullptr) GTEST_SKIP() << "no memory in huge pages";
    std::memset(memory_, 1, kBytes);
  }
  void TearDown() override {
    if (memory_ != nullptr) ReturnHugePages(memory_, kBytes);
  }

  // Makes a huge page of the small ones, as the system does in time; false if it cannot.
  bool Collapse() { return madvise(memory_, kBytes, kCollapse) == 0; }

  // The share of the memory that is there.
  double Resident() {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> is_there(kBytes / page);
    EXPECT_EQ(mincore(memory_, kBytes, is_there.data()), 0);
    size_t there = 0;
    for (const unsigned char each : is_there) there += each & 1;
    return static_cast<double>(there) / static_cast<double>(is_there.size());
  }

  std::byte* memory_ = nullptr;
};

TEST_F(HugePagesTest, ReleasedMemoryMayComeBack) {
  ReleaseWholePages(memory_ + kQuarter, 2 * kQuarter);
  EXPECT_EQ(Resident(), 0.5);
  if (!Collapse()) GTEST_SKIP() << "the system joins no pages";
  EXPECT_EQ(Resident(), 1);
}

// MEM-2: memory that was given back is not taken again.
TEST_F(HugePagesTest, ReleasedMemoryStaysAwayIfPagesStaySmall) {
  ReleaseWholePages(memory_ + kQuarter, 2 * kQuarter);
  LeavePagesSmall(memory_, kBytes);
  EXPECT_EQ(Resident(), 0.5);
  EXPECT_FALSE(Collapse());
  EXPECT_EQ(Resident(), 0.5);
  for (size_t i = 0; i < kQuarter; ++i) ASSERT_EQ(memory_[i], std::byte{1});
  for (size_t i = 3 * kQuarter; i < kBytes; ++i) ASSERT_EQ(memory_[i], std::byte{1});
}

#endif

}  // namespace
}  // namespace tenon
