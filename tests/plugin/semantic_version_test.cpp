#include "plugin/semantic_version.h"

#include <gtest/gtest.h>

namespace tenon::plugin {
namespace {

TEST(SemanticVersionTest, TellsVersionsFromOtherTexts) {
  for (const char* const text : {"0.0.0", "1.2.3", "10.20.30", "1.0.0-alpha.1", "1.0.0-0A.is.legal",
                                 "1.0.0+001", "1.0.0-rc-1+build.5", "1.2.3----x"}) {
    EXPECT_TRUE(IsSemanticVersion(text)) << text;
  }
  for (const char* const text :
       {"", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "1.2.3-a..b",
        "1.2.3-a.", "a.b.c", "1.2.-3", "v1.2.3", "1.2.3 "}) {
    EXPECT_FALSE(IsSemanticVersion(text)) << text;
  }
}

}  // namespace
}  // namespace tenon::plugin
