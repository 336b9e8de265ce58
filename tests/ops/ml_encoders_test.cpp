#include <cmath>
#include <limits>

#include "ops/op_cases.h"

namespace tenon {
namespace {

using Strings = std::vector<std::string>;
using Integers = std::vector<int64_t>;
using Floats = std::vector<float>;

OpCall MlCall(std::string op, int32_t opset, std::vector<Value> inputs,
              std::vector<Attribute> attributes) {
  OpCall call{std::move(op), opset, std::move(inputs), std::move(attributes)};
  call.domain = "ai.onnx.ml";
  return call;
}

Tensor Words(const Strings& words) {
  return Tensor::Of<std::string>({static_cast<int64_t>(words.size())},
                                 std::span<const std::string>(words));
}

TEST(LabelEncoderTest, MapsEveryVersion) {
  const Tensor words = Words({"b", "x", "a"});
  EXPECT_EQ(
      ElementsOf<int64_t>(RunTensorOp(MlCall(
          "LabelEncoder", 1, {words}, MakeAttributes(Attr("classes_strings", Strings{"a", "b"}))))),
      (Integers{1, -1, 0}));
  EXPECT_EQ(ElementsOf<std::string>(
                RunTensorOp(MlCall("LabelEncoder", 1, {Ints({1, 2, 0})},
                                   MakeAttributes(Attr("classes_strings", Strings{"a", "b"}))))),
            (Strings{"b", "_Unused", "a"}));
  EXPECT_EQ(
      ElementsOf<float>(RunTensorOp(MlCall(
          "LabelEncoder", 2, {words},
          MakeAttributes(Attr("keys_strings", Strings{"a", "b", "a"}),
                         Attr("values_floats", Floats{1, 2, 3}), Attr("default_float", 9.0f))))),
      (Floats{2, 9, 3}));  // the last of equal keys counts, as in onnx.reference
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ElementsOf<int16_t>(RunTensorOp(MlCall(
                "LabelEncoder", 4, {Tensor::Of<double>({4}, {nan, 0.5, -0.0, 7})},
                MakeAttributes(Attr("keys_tensor", Tensor::Of<double>({3}, {-nan, 0.5, 0.0})),
                               Attr("values_tensor", Tensor::Of<int16_t>({3}, {10, 20, 30})),
                               Attr("default_tensor", Tensor::Of<int16_t>({1}, {-5})))))),
            (std::vector<int16_t>{10, 20, 30, -5}));
}

TEST(LabelEncoderTest, RejectsTablesThatDoNotFit) {
  EXPECT_EQ(ErrorOf(MlCall("LabelEncoder", 2, {Ints({1})},
                           MakeAttributes(Attr("keys_int64s", Integers{1, 2}),
                                          Attr("values_floats", Floats{1})))),
            "expected a value for each of 2 keys, got 1");
  EXPECT_EQ(ErrorOf(MlCall("LabelEncoder", 2, {Ints({1})},
                           MakeAttributes(Attr("keys_int64s", Integers{1})))),
            "expected one of the attributes 'values_*', got 0");
  EXPECT_EQ(ErrorOf(MlCall("LabelEncoder", 2, {Ints({1})},
                           MakeAttributes(Attr("keys_strings", Strings{"a"}),
                                          Attr("values_floats", Floats{1})))),
            "input 0: expected string as the keys, got int64");
}

TEST(CategoryMapperTest, MapsBothWays) {
  const auto call = [](Tensor x) {
    return MlCall("CategoryMapper", 1, {std::move(x)},
                  MakeAttributes(Attr("cats_strings", Strings{"a", "b"}),
                                 Attr("cats_int64s", Integers{5, 6})));
  };
  EXPECT_EQ(ElementsOf<int64_t>(RunTensorOp(call(Words({"b", "?", "a"})))), (Integers{6, -1, 5}));
  EXPECT_EQ(ElementsOf<std::string>(RunTensorOp(call(Ints({6, 0, 5})))),
            (Strings{"b", "_Unused", "a"}));
}

TEST(OneHotEncoderTest, MarksTheCategory) {
  const auto call = [](Tensor x, int64_t zeros) {
    return MlCall("OneHotEncoder", 1, {std::move(x)},
                  MakeAttributes(Attr("cats_int64s", Integers{3, 1}), Attr("zeros", zeros)));
  };
  const Tensor y = RunTensorOp(
      call(Tensor::Of<float>({2, 2}, {1.9f, 3, 7, std::numeric_limits<float>::infinity()}), 1));
  EXPECT_EQ(y.shape(), Shape({2, 2, 2}));
  EXPECT_EQ(ElementsOf<float>(y), (Floats{0, 1, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(ErrorOf(call(Ints({3, 2}), 0)), "input 0: element 1 is none of the categories");
}

Value MapOf(Tensor keys, Tensor values) {
  auto map = std::make_shared<Map>();
  map->keys = std::move(keys);
  map->values = std::move(values);
  return map;
}

TEST(CastMapTest, OrdersOrPlacesValues) {
  const Value map = MapOf(Ints({4, 0, 2}), Words({"4.5", "1", "2"}));
  const auto call = [&](std::string form, std::string target, int64_t size) {
    return MlCall(
        "CastMap", 1, {map},
        MakeAttributes(Attr("map_form", form), Attr("cast_to", target), Attr("max_map", size)));
  };
  EXPECT_EQ(ElementsOf<float>(RunTensorOp(call("DENSE", "TO_FLOAT", 1))), (Floats{1, 2, 4.5f}));
  const Tensor sparse = RunTensorOp(call("SPARSE", "TO_STRING", 6));
  EXPECT_EQ(sparse.shape(), Shape({1, 6}));
  EXPECT_EQ(ElementsOf<std::string>(sparse), (Strings{"1", "", "2", "", "4.5", ""}));
  EXPECT_EQ(ErrorOf(call("SPARSE", "TO_FLOAT", 4)), "input 0: expected keys in [0, 4), got 0 to 4");
}

TEST(DictVectorizerTest, FollowsTheVocabulary) {
  const Tensor y = RunTensorOp(MlCall(
      "DictVectorizer", 1, {MapOf(Words({"c", "a", "?"}), Tensor::Of<int64_t>({3}, {8, 4, 1}))},
      MakeAttributes(Attr("string_vocabulary", Strings{"a", "c", "b", "z"}))));
  EXPECT_EQ(y.shape(), Shape({1, 4}));
  EXPECT_EQ(ElementsOf<int64_t>(y), (Integers{4, 8, 0, 0}));
}

TEST(FeatureVectorizerTest, PutsColumnsSideBySide) {
  const std::vector<Value> inputs = {Iota<int32_t>({2, 2}), Iota<int32_t>({2, 1})};
  EXPECT_EQ(ElementsOf<float>(RunTensorOp(MlCall("FeatureVectorizer", 1, inputs, {}))),
            (Floats{0, 1, 0, 2, 3, 1}));
  EXPECT_EQ(ElementsOf<float>(
                RunTensorOp(MlCall("FeatureVectorizer", 1, inputs,
                                   MakeAttributes(Attr("inputdimensions", Integers{1, 2}))))),
            (Floats{0, 0, 0, 2, 1, 0}));
  // More than two axes, as in onnxruntime.
  const std::vector<Value> cube = {Iota<int32_t>({2, 1}), Iota<int32_t>({2, 2, 2})};
  EXPECT_EQ(ElementsOf<float>(RunTensorOp(MlCall("FeatureVectorizer", 1, cube, {}))),
            (Floats{0, 0, 1, 2, 3, 1, 4, 5, 6, 7}));
}

}  // namespace
}  // namespace tenon
