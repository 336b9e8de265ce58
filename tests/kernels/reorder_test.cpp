#include "kernels/conv/reorder.h"

#include "conv_reference.h"

namespace tenon::kernels {
namespace {

TEST(ReorderTest, GoesToBlocksAndBack) {
  for (const size_t channels : {1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 64}) {
    for (const size_t pixels : {0, 1, 3, 4, 5, 15, 16, 17, 49, 100}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, " << pixels << " pixels");
      const std::vector<float> values = RandomFloats(2 * channels * pixels, 1);
      ForEveryTarget([&] {
        GuardedBuffer planar(values);
        GuardedBuffer blocked(BlockedSize(2, channels, pixels));
        const ReorderArgs there = {2, channels, pixels, planar.data(), blocked.data()};
        for (size_t t = 0; t < ReorderTaskCount(there); ++t) RunReorderToBlockedTask(there, t);
        EXPECT_EQ(blocked.values(), ToBlocked(values, 2, channels, pixels, 0));

        GuardedBuffer again(values.size());
        const ReorderArgs back = {2, channels, pixels, blocked.data(), again.data()};
        for (size_t t = 0; t < ReorderTaskCount(back); ++t) RunReorderToPlanarTask(back, t);
        EXPECT_EQ(again.values(), values);
      });
    }
  }
}

}  // namespace
}  // namespace tenon::kernels
