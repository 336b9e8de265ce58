#include "tensor/allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "base/huge_pages.h"

namespace tenon {
namespace {

TEST(CpuAllocatorTest, BlocksOfAllSizesAreAlignedAndWritable) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{4097}, kHugePageBytes - 1,
                             kHugePageBytes, kHugePageBytes + 1, 3 * kHugePageBytes + 12345}) {
    SCOPED_TRACE(bytes);
    void* const block = CpuAllocator().Allocate(bytes);
    ASSERT_NE(block, nullptr);
    const size_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : Allocator::kAlignment;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
    std::memset(block, 1, bytes);  // the sanitizer build sees a block that is too small
    CpuAllocator().Free(block);
  }
}

TEST(CpuAllocatorTest, SizesThatNoMachineHasGiveNull) {
  constexpr size_t kMost = SIZE_MAX;
  for (const size_t bytes : {kMost, kMost - kHugePageBytes, kMost / 4 * 3}) {
    EXPECT_EQ(CpuAllocator().Allocate(bytes), nullptr) << bytes;
  }
}

}  // namespace
}  // namespace tenon
