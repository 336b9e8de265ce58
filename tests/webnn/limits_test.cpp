// The text of opSupportLimits(). Requirements: web (WB-n).
#include "webnn/limits.h"

#include <gtest/gtest.h>

#include "webnn/limits_text.h"
#include "webnn/provider.h"

namespace tenon::webnn {
namespace {

// WB-48
TEST(LimitsTest, ReadsTypesAndRanksOfEachOperand) {
  const auto limits = Limits::Parse(R"({
    "preferredInputLayout": "nhwc", "maxTensorByteLength": 1e6, "unknown": {"x": {}},
    "input": {"dataTypes": ["float32", "int8"], "rankRange": {"min": 1, "max": 5}},
    "gather": {"indices": {"dataTypes": ["int32", "int128"]}}})");
  ASSERT_TRUE(limits) << limits.error().message();
  EXPECT_TRUE(limits->prefers_channels_last());
  EXPECT_EQ(limits->max_bytes(), 1e6);
  EXPECT_TRUE(limits->input().Allows(DataType::kFloat, 5));
  EXPECT_FALSE(limits->input().Allows(DataType::kFloat, 0));
  EXPECT_FALSE(limits->input().Allows(DataType::kFloat, 6));
  EXPECT_FALSE(limits->input().Allows(DataType::kFloat16, 2));
  ASSERT_NE(limits->Find("gather", "indices"), nullptr);
  EXPECT_EQ(limits->Find("gather", "indices")->types, TypeSet{DataType::kInt32});
  EXPECT_EQ(limits->Find("gather", "input"), nullptr);
  EXPECT_EQ(limits->Find("scatter", "input"), nullptr);
}

TEST(LimitsTest, RefusesOtherTexts) {
  for (const char* text : {"", "[]", "{", "null", "{\"a\":}"}) {
    EXPECT_EQ(Limits::Parse(text).error().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(MakeProvider({}).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeProvider({{"limits", "{}"}, {"limit", ""}}).error().code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(MakeProvider({{"limits", "{}"}}));
}

// WB-54
TEST(LimitsTest, IntegersThatAContextLacksAreInt32) {
  const Limits all = *Limits::Parse(LimitsText());
  EXPECT_EQ(all.TypeFor(DataType::kInt64), DataType::kInt64);
  EXPECT_EQ(all.TypeFor(DataType::kBool), DataType::kUint8);
  EXPECT_EQ(all.TypeFor(DataType::kDouble), DataType::kUndefined);
  const Limits few = *Limits::Parse(LimitsText({.without_types = "lLIbB"}));
  for (const DataType type : {DataType::kInt64, DataType::kUint64, DataType::kUint32,
                              DataType::kInt8, DataType::kUint8, DataType::kBool}) {
    EXPECT_EQ(few.TypeFor(type), DataType::kInt32);
  }
  const Limits none = *Limits::Parse(LimitsText({.without_types = "lih"}));
  EXPECT_EQ(none.TypeFor(DataType::kInt64), DataType::kUndefined);
  EXPECT_EQ(none.TypeFor(DataType::kFloat16), DataType::kUndefined);
}

}  // namespace
}  // namespace tenon::webnn
