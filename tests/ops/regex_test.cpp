#include "ops/text/regex.h"

#include <ctime>

#include "ops/op_cases.h"

namespace tenon {
namespace {

Regex Compiled(const std::string& pattern) {
  auto regex = Regex::Compile(pattern);
  EXPECT_TRUE(regex) << regex.error().message();
  return regex ? *std::move(regex) : Regex();
}

// The constructs of RE2's documentation.
TEST(RegexTest, MatchesWholeTexts) {
  struct Case {
    std::string pattern;
    std::vector<std::string> matching, others;
  };
  const Case cases[] = {
      {"", {""}, {"a"}},
      {"a|b|", {"a", "b", ""}, {"ab", "|"}},
      {"(a|bc)*d?", {"", "abcad", "d"}, {"b", "dd"}},
      {"a{2,3}", {"aa", "aaa"}, {"a", "aaaa"}},
      {"a{0}b", {"b"}, {"ab"}},
      {"a{,2}", {"a{,2}"}, {"aa"}},
      {"(?:a{2}){2,}", {"aaaa", "aaaaaa"}, {"aa", "aaaaa"}},
      {".", {"x", "\xC3\xA9", "\xF0\x9F\x99\x82"}, {"\n", "", "xy", "\xFF", "\xC3"}},
      {"(?s).", {"\n", "x"}, {"", "\x80"}},
      {"[^a-c]", {"d", "\n", "\xC3\xA9"}, {"a", "c", "\xFF"}},
      {"[]^-]+", {"]^-"}, {"["}},
      {R"(\d\s\w\D\S\W)", {"1 _xx "}, {"1 _1x "}},
      {R"([[:alpha:]\d_]+)", {"aZ09_"}, {"\xC3\xA9"}},
      {R"(\p{Greek}\pN\P{L})",
       {"\xCE\xB1"
        "1-"},
       {"a1-",
        "\xCE\xB1"
        "1a"}},
      {"(?i)k[a-c]\xC3\x89",
       {"KB\xC3\xA9",
        "\xE2\x84\xAA"
        "c\xC3\x89"},
       {"Kd\xC3\xA9"}},
      {"a(?i:b)c", {"aBc", "abc"}, {"ABc", "abC"}},
      {R"(\Aa\b.*\Bb\z)", {"a xb", "a-bb"}, {"axb", "a b"}},
      {R"((?m)^a$\n^b$)", {"a\nb"}, {"ab"}},
      {R"(\Qa.b*\E+)", {"a.b*", "a.b**"}, {"axb*", "a.b"}},
      {R"(\x41\x{1F642}\101\n\.)",
       {"A\xF0\x9F\x99\x82"
        "A\n."},
       {}},
  };
  for (const Case& c : cases) {
    const Regex regex = Compiled(c.pattern);
    RegexMatcher matcher(regex);
    for (const std::string& text : c.matching) EXPECT_TRUE(matcher.FullMatch(text)) << c.pattern;
    for (const std::string& text : c.others) {
      EXPECT_FALSE(matcher.FullMatch(text)) << c.pattern << " and '" << text << "'";
    }
  }
}

TEST(RegexTest, FindsTheFirstAndLongest) {
  struct Case {
    std::string pattern, text;
    size_t from;
    std::optional<RegexMatch> match;
  };
  const Case cases[] = {
      {"a|ab|abc", "xabcd", 0, RegexMatch{1, 4}},
      {"b+?", "abbb", 0, RegexMatch{1, 4}},
      {"b", "abab", 2, RegexMatch{3, 4}},
      {"", "ab", 1, RegexMatch{1, 1}},
      {"c", "ab", 0, std::nullopt},
      {"^b", "ab", 1, std::nullopt},
      {R"(\bb)", "ab b", 1, RegexMatch{3, 4}},
      {"ab|bcd", "abcd", 0, RegexMatch{0, 2}},
      {"(ab|b)*c|b", "ababd", 0, RegexMatch{1, 2}},
  };
  for (const Case& c : cases) {
    const Regex regex = Compiled(c.pattern);
    const auto match = RegexMatcher(regex).FindLongest(c.text, c.from);
    ASSERT_EQ(match.has_value(), c.match.has_value()) << c.pattern;
    if (!match) continue;
    EXPECT_EQ(match->begin, c.match->begin) << c.pattern;
    EXPECT_EQ(match->end, c.match->end) << c.pattern;
  }
}

TEST(RegexTest, NamesThePlaceOfAnError) {
  struct Case {
    std::string pattern, error;
  };
  const Case cases[] = {
      {"ab(c", "pattern 'ab(c': missing ')' for '(' at byte 2"},
      {"ab)", "pattern 'ab)': ')' without '(' at byte 2"},
      {"a[b", "missing ']' for '[' at byte 1"},
      {"a[c-b]", "the range 'c-b' is empty at byte 2"},
      {"[[:foo:]]", "no class '[:foo:]' at byte 1"},
      {R"(a\p{Foo})", "no category or script of Unicode 'Foo' at byte 1"},
      {R"(a\y)", "no such escape at byte 1"},
      {R"(\1)", "no such escape at byte 0"},
      {R"(a\C)", "at byte 1"},
      {"a**", "a repetition of a repetition, which needs a group at byte 2"},
      {"a|*", "nothing to repeat at byte 2"},
      {"a{2,1}", "at byte 1"},
      {"a{1001}", "at byte 1"},
      {"(a{100}){11}", "expected at most 1000 repetitions in each other at byte 8"},
      {"(?=a)", "no such group: expected '(?:', '(?P<name>' or flags of 'imsU' at byte 0"},
      {"a\xFF", "expected UTF-8 at byte 1"},
  };
  for (const Case& c : cases) {
    const auto regex = Regex::Compile(c.pattern);
    ASSERT_FALSE(regex) << c.pattern;
    EXPECT_NE(regex.error().message().find(c.error), std::string::npos) << regex.error().message();
  }
}

// With backtracking, each would take longer than the age of the universe, or more memory than there
// is.
TEST(RegexTest, HostilePatternsEndSoon) {
  const std::clock_t begin = std::clock();  // of this process: the machine may be busy
  const std::string text(2000, 'a');
  for (const char* pattern :
       {"(a*)*b", "(a+)+b", "(a|a)*b", "(a|aa)+b", "(.*)*x(.*)*y", "((a?){500}){2}b",
        "(?:a?){1000}b", "(((((a*)*)*)*)*)*b", "(a{0,30}){0,30}b", "(^|a|$|\\b|\\B)*b"}) {
    const Regex regex = Compiled(pattern);
    EXPECT_FALSE(RegexMatcher(regex).FullMatch(text)) << pattern;
    EXPECT_FALSE(RegexMatcher(regex).FindLongest(text.substr(0, 500))) << pattern;
  }
  const auto repeated = [](const std::string& what, size_t times) {
    std::string all;
    for (size_t i = 0; i < times; ++i) all += what;
    return all;
  };
  EXPECT_FALSE(Regex::Compile(repeated("(", 1 << 20)));
  EXPECT_FALSE(Regex::Compile(repeated("(?:", 1 << 20)));
  EXPECT_FALSE(Regex::Compile("(?:" + repeated("a", 1000) + "){1000}"));
  EXPECT_FALSE(Regex::Compile(repeated("a{1000}", 1000)));
  EXPECT_FALSE(Regex::Compile(repeated("a", 1 << 20)));
  EXPECT_TRUE(Regex::Compile(repeated("(", 900) + "a" + repeated(")*", 900)));
  EXPECT_TRUE(Regex::Compile(repeated("\\pL", 1 << 16)));
  EXPECT_TRUE(Regex::Compile(repeated("a|", 1 << 16)));
  EXPECT_TRUE(Regex::Compile(repeated("(?i)", 1) + repeated("k1", 1 << 16)));
  EXPECT_TRUE(Regex::Compile(repeated("[", 1) + repeated("[:", 1 << 19) + "x]"));
  EXPECT_FALSE(Regex::Compile(repeated("[", 1) + repeated("[:", 1 << 19)));
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 60);
}

TEST(RegexFullMatchTest, KeepsTheShape) {
  const std::string texts[] = {"www.google.com", "www.facebook.com", "account@gmail.com", ""};
  OpCall call{"RegexFullMatch", 0, {Tensor::Of<std::string>({2, 1, 2}, texts)}};
  call.attributes.push_back(Attr("pattern", std::string(R"(www\.[\w.-]+\.\bcom\b)")));
  const Tensor y = RunTensorOp(std::move(call));
  EXPECT_EQ(y.shape(), Shape({2, 1, 2}));
  EXPECT_EQ(ElementsOf<bool>(y), (std::vector<bool>{true, true, false, false}));
}

TEST(RegexFullMatchTest, RefusesABadPattern) {
  const Tensor nothing = Tensor::Of<std::string>({0}, std::span<const std::string>());
  OpCall call{"RegexFullMatch", 0, {nothing}};
  call.attributes.push_back(Attr("pattern", std::string("(")));
  EXPECT_NE(ErrorOf(std::move(call)).find("missing ')' for '(' at byte 0"), std::string::npos);
  EXPECT_NE(ErrorOf({"RegexFullMatch", 0, {nothing}}), "no error");
}

}  // namespace
}  // namespace tenon
