// Numbers in text are read alike on every platform.
#include "base/parse_double.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

namespace tenon {
namespace {

std::optional<double> Parsed(std::string_view text) {
  double value = 0;
  return ParseDouble(text, &value) ? std::optional(value) : std::nullopt;
}

TEST(ParseDoubleTest, ReadsTheNumberInFront) {
  const std::pair<std::string_view, double> cases[] = {
      {"1", 1},
      {"-2.5e1", -25},
      {"0.1", 0.1},
      {".5", 0.5},
      {"1.5 apples", 1.5},
      {"1e", 1},
      {"0x10", 0},
      {"-0X1p3", 0},
      {"5e-324", 5e-324},
      {"2e-320", 2e-320},
      {"-0", 0},
      {"0e999", 0},
      {"1e308", 1e308},
      {"9007199254740993", 9007199254740992.0},
      {"12,5", 12},
      {"123456789012345678901234567890", 123456789012345678901234567890.0},
  };
  for (const auto& [text, value] : cases) EXPECT_EQ(Parsed(text), value) << text;
  EXPECT_EQ(Parsed(std::string_view("123456", 3)), 123);
  EXPECT_TRUE(std::signbit(*Parsed("-0")));
}

TEST(ParseDoubleTest, ReadsWhatIsNoNumberOrNone) {
  EXPECT_EQ(Parsed("inf"), INFINITY);
  EXPECT_EQ(Parsed("-Infinity"), -INFINITY);
  EXPECT_TRUE(std::isnan(Parsed("nan").value_or(0)));
}

TEST(ParseDoubleTest, RefusesOtherTextAndWhatDoesNotFit) {
  for (const std::string_view text :
       {"", " 1", "+1", "-", "x", "--1", "e5", "- 1", "1e999", "-1e999", "1e-999"}) {
    EXPECT_EQ(Parsed(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tenon
