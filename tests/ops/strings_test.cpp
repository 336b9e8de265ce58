#include "ops/op_cases.h"
#include "ops/text/unicode.h"

namespace tenon {
namespace {

using Strings = std::vector<std::string>;

Tensor Words(const Strings& words) {
  return Tensor::Of<std::string>({static_cast<int64_t>(words.size())},
                                 std::span<const std::string>(words));
}

TEST(StringConcatTest, Broadcasts) {
  const Tensor left = Tensor::Of<std::string>({2, 1}, {"a", "b"});
  const Tensor right = Tensor::Of<std::string>({3}, {"x", "", "\xC3\xA9"});
  const Tensor y = RunTensorOp({"StringConcat", 0, {left, right}});
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  EXPECT_EQ(ElementsOf<std::string>(y), (Strings{"ax", "a", "a\xC3\xA9", "bx", "b", "b\xC3\xA9"}));
  EXPECT_EQ(RunTensorOp({"StringConcat", 0, {Words({}), Words({"z"})}}).size(), 0);
  EXPECT_NE(ErrorOf({"StringConcat", 0, {Words({"a", "b"}), Words({"a", "b", "c"})}}), "no error");
}

// Expected parts are those of Python's str.split.
TEST(StringSplitTest, SplitsAsPythonDoes) {
  struct Case {
    std::string text;
    std::optional<std::string> delimiter;
    std::optional<int64_t> most;
    Strings parts;
  };
  const Case cases[] = {
      {"a,b,,c", ",", {}, {"a", "b", "", "c"}},
      {"a,b,,c", ",", 2, {"a", "b", ",c"}},
      {"", ",", {}, {""}},
      {"a--b-c", "--", {}, {"a", "b-c"}},
      {"  a \t b\xC2\xA0"
       "c ",
       {},
       {},
       {"a", "b", "c"}},
      {"  a  b  c ", {}, 1, {"a", "b  c "}},
      {"  a  b", {}, 0, {"a  b"}},
      {" \n ", {}, {}, {}},
      {"a b", "", {}, {"a", "b"}},
  };
  for (const Case& c : cases) {
    OpCall call{"StringSplit", 0, {Words({c.text})}};
    if (c.delimiter) call.attributes.push_back(Attr("delimiter", *c.delimiter));
    if (c.most) call.attributes.push_back(Attr("maxsplit", *c.most));
    call.output_count = 2;
    const auto outputs = RunOp(std::move(call));
    ASSERT_TRUE(outputs) << outputs.error().message();
    EXPECT_EQ(ElementsOf<std::string>((*outputs)[0].tensor()), c.parts) << c.text;
    EXPECT_EQ(*(*outputs)[1].tensor().data<int64_t>(), static_cast<int64_t>(c.parts.size()));
  }
}

TEST(StringSplitTest, PadsWithEmptyStrings) {
  OpCall call{"StringSplit", 0, {Words({"a b c", "", "d"})}};
  call.output_count = 2;
  const auto outputs = RunOp(std::move(call));
  ASSERT_TRUE(outputs) << outputs.error().message();
  EXPECT_EQ((*outputs)[0].tensor().shape(), Shape({3, 3}));
  EXPECT_EQ(ElementsOf<std::string>((*outputs)[0].tensor()),
            (Strings{"a", "b", "c", "", "", "", "d", "", ""}));
  EXPECT_EQ(ElementsOf<int64_t>((*outputs)[1].tensor()), (std::vector<int64_t>{3, 0, 1}));
}

TEST(StringNormalizerTest, DropsWordsAndChangesCase) {
  struct Case {
    std::string action;
    int64_t is_case_sensitive;
    Strings stopwords, output;
  };
  const Strings input = {"Monday", "\xC3\x89t\xC3\xA9", "monday"};
  const Case cases[] = {
      {"NONE", 1, {}, input},
      {"NONE", 1, {"monday"}, {"Monday", "\xC3\x89t\xC3\xA9"}},
      {"LOWER", 1, {"monday"}, {"monday", "\xC3\xA9t\xC3\xA9"}},
      {"UPPER", 0, {"MONDAY"}, {"\xC3\x89T\xC3\x89"}},
      {"NONE", 0, {"MonDay", "\xC3\xA9t\xC3\x89"}, {""}},
  };
  for (const Case& c : cases) {
    const Tensor y = RunTensorOp({"StringNormalizer",
                                  0,
                                  {Words(input).Reshaped({1, 3})},
                                  MakeAttributes(Attr("case_change_action", c.action),
                                                 Attr("is_case_sensitive", c.is_case_sensitive),
                                                 Attr("stopwords", c.stopwords))});
    EXPECT_EQ(y.shape(), Shape({1, static_cast<int64_t>(c.output.size())}));
    EXPECT_EQ(ElementsOf<std::string>(y), c.output);
  }
  EXPECT_EQ(ErrorOf({"StringNormalizer", 0, {Iota<std::string>({2, 2})}}),
            "input 0: expected shape [C] or [1, C], got [2, 2]");
}

TEST(UnicodeTest, MapsCases) {
  EXPECT_EQ(ToUpper("stra\xC3\x9F"
                    "e \xCF\x89 \xD0\xB6"),
            "STRASSE \xCE\xA9 \xD0\x96");
  EXPECT_EQ(ToLower("\xCE\xA9 \xD0\x96 \xC4\xB0 I"), "\xCF\x89 \xD0\xB6 i\xCC\x87 i");
  EXPECT_EQ(ToLower("\xF0\x90\x90\x80"), "\xF0\x90\x90\xA8");  // Deseret
  EXPECT_EQ(ToUpper("\xFF"
                    "a\xC3"),
            "\xFF"
            "A\xC3");  // no UTF-8: kept
}

struct TfIdfCase {
  std::string mode;
  int64_t shortest, longest, most_skips;
  std::vector<float> expected;
};

// The pool: 10, 20, 30 alone; (10 20) and (20 10).
TEST(TfIdfVectorizerTest, CountsNGrams) {
  const TfIdfCase cases[] = {
      {"TF", 1, 1, 0, {1, 2, 2, 0, 0}},       {"TF", 1, 1, 5, {1, 2, 2, 0, 0}},
      {"TF", 2, 2, 0, {0, 0, 0, 1, 1}},       {"TF", 2, 2, 2, {0, 0, 0, 2, 2}},
      {"TF", 1, 2, 0, {1, 2, 2, 1, 1}},       {"IDF", 1, 2, 2, {6, 4, 5, 7, 8}},
      {"TFIDF", 1, 2, 2, {6, 8, 10, 14, 16}},
  };
  for (const TfIdfCase& c : cases) {
    const bool weighted = c.mode != "TF";
    std::vector<Attribute> attributes =
        MakeAttributes(Attr("mode", c.mode), Attr("min_gram_length", c.shortest),
                       Attr("max_gram_length", c.longest), Attr("max_skip_count", c.most_skips),
                       Attr("ngram_counts", std::vector<int64_t>{0, 3}),
                       Attr("ngram_indexes", std::vector<int64_t>{1, 2, 0, 3, 4}),
                       Attr("pool_int64s", std::vector<int64_t>{10, 20, 30, 10, 20, 20, 10}));
    if (weighted) attributes.push_back(Attr("weights", std::vector<float>{4, 5, 6, 7, 8}));
    const Tensor x = Ints({10, 20, 30, 20, 10, 5});
    const Tensor y = RunTensorOp({"TfIdfVectorizer", 0, {x}, std::move(attributes)});
    EXPECT_EQ(ElementsOf<float>(y), c.expected) << c.mode << c.shortest << c.longest;
  }
}

}  // namespace
}  // namespace tenon
