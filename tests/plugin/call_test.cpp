#include "plugin/call.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace tenon::plugin {
namespace {

// PE-1: memory after the slots of a plugin's version is not even read.
TEST(SupportedTest, DoesNotReadPastAnOldTable) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* const pages = static_cast<std::byte*>(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(pages + page, page, PROT_NONE), 0);
  const struct {
    uint32_t version;
    size_t bytes;
  } cases[] = {{22, offsetof(OrtEp, GetCapability)},
               {23, offsetof(OrtEp, GetKernelRegistry)},
               {24, offsetof(OrtEp, Sync)},
               {25, offsetof(OrtEp, IsGraphCaptureEnabled)},
               {26, offsetof(OrtEp, OnSessionInitializationEnd)},
               {28, offsetof(OrtEp, GetWeightlessSupport)},
               {29, sizeof(OrtEp)},
               {30, sizeof(OrtEp)}};
  for (const auto& c : cases) {
    // The table ends at the end of the readable pages.
    auto* const table = reinterpret_cast<OrtEp*>(pages + page - c.bytes);
    std::memset(static_cast<void*>(table), 1, c.bytes);
    std::memcpy(static_cast<void*>(table), &c.version, sizeof(c.version));
    const OrtEp supported = Supported(*table);
    EXPECT_EQ(supported.GetCapability != nullptr, c.version >= 23) << c.version;
    EXPECT_EQ(supported.GetKernelRegistry != nullptr, c.version >= 24) << c.version;
    EXPECT_EQ(supported.GetWeightlessSupport != nullptr, c.version >= 29) << c.version;
  }
  munmap(pages, 2 * page);
}

}  // namespace
}  // namespace tenon::plugin
