#include "ops/op_cases.h"

namespace tenon {
namespace {

Value SequenceOf(std::vector<Tensor> tensors) {
  auto sequence = std::make_shared<Sequence>();
  sequence->element_type = tensors.empty() ? DataType::kInt64 : tensors[0].type();
  for (Tensor& tensor : tensors) sequence->elements.emplace_back(std::move(tensor));
  return sequence;
}

// A sequence of vectors of one element each.
Value Numbers(std::initializer_list<int64_t> numbers) {
  std::vector<Tensor> tensors;
  for (const int64_t number : numbers) tensors.push_back(Ints({number}));
  return SequenceOf(std::move(tensors));
}

std::vector<int64_t> NumbersIn(const Value& value) {
  std::vector<int64_t> numbers;
  for (const Value& element : value.sequence().elements) {
    numbers.push_back(*element.tensor().data<int64_t>());
  }
  return numbers;
}

Tensor Position(int64_t position) { return Tensor::Of<int64_t>({}, {position}); }

Value RunValueOp(OpCall call) {
  auto outputs = RunOp(std::move(call));
  if (outputs) return std::move((*outputs)[0]);
  ADD_FAILURE() << outputs.error().message();
  return SequenceOf({});
}

TEST(SequenceTest, InsertsAndErasesWithoutTouchingTheInput) {
  struct Case {
    std::optional<int64_t> position;
    std::vector<int64_t> inserted, erased;
  };
  const Case cases[] = {
      {{}, {1, 2, 3, 9}, {1, 2}}, {0, {9, 1, 2, 3}, {2, 3}},  {2, {1, 2, 9, 3}, {1, 2}},
      {-1, {1, 2, 9, 3}, {1, 2}}, {-3, {9, 1, 2, 3}, {2, 3}},
  };
  for (const Case& c : cases) {
    const Value input = Numbers({1, 2, 3});
    OpCall insert{"SequenceInsert", 0, {input, Ints({9})}};
    OpCall erase{"SequenceErase", 0, {input}};
    if (c.position) {
      insert.inputs.emplace_back(Position(*c.position));
      erase.inputs.emplace_back(Position(*c.position));
    }
    EXPECT_EQ(NumbersIn(RunValueOp(std::move(insert))), c.inserted);
    EXPECT_EQ(NumbersIn(RunValueOp(std::move(erase))), c.erased);
    EXPECT_EQ(NumbersIn(input), (std::vector<int64_t>{1, 2, 3}));
  }
}

TEST(SequenceTest, RejectsPositionsAndElementsThatDoNotFit) {
  for (const int64_t position : {int64_t{-4}, int64_t{3}, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(
        ErrorOf({"SequenceAt", 0, {Numbers({1, 2, 3}), Position(position)}}),
        Format("expected a position in [-3, 2] of a sequence of 3 elements, got {}", position));
    EXPECT_NE(ErrorOf({"SequenceErase", 0, {Numbers({1, 2, 3}), Position(position)}}), "no error");
  }
  for (const int64_t position : {int64_t{-4}, int64_t{4}, INT64_MIN, INT64_MAX}) {
    EXPECT_NE(ErrorOf({"SequenceInsert", 0, {Numbers({1, 2, 3}), Ints({9}), Position(position)}}),
              "no error");
  }
  EXPECT_NE(ErrorOf({"SequenceErase", 0, {Numbers({})}}), "no error");
  EXPECT_EQ(ErrorOf({"SequenceInsert", 0, {Numbers({1}), Iota<float>({1})}}),
            "input 1: expected a tensor of int64 as in the sequence, got a tensor of float");
}

TEST(SequenceTest, ConstructsAndReads) {
  const Value made = RunValueOp({"SequenceConstruct", 0, {Ints({4}), Ints({5}), Ints({6})}});
  EXPECT_EQ(NumbersIn(made), (std::vector<int64_t>{4, 5, 6}));
  EXPECT_EQ(*RunTensorOp({"SequenceLength", 0, {made}}).data<int64_t>(), 3);
  EXPECT_EQ(*RunTensorOp({"SequenceAt", 0, {made, Position(-1)}}).data<int64_t>(), 6);
  const Value empty =
      RunValueOp({"SequenceEmpty",
                  0,
                  {},
                  MakeAttributes(Attr("dtype", static_cast<int64_t>(DataType::kString)))});
  EXPECT_EQ(empty.sequence().element_type, DataType::kString);
  EXPECT_TRUE(empty.sequence().elements.empty());
}

TEST(SplitToSequenceTest, CutsAlongAnyAxisAndJoinsAgain) {
  struct Case {
    std::optional<Tensor> split;
    std::vector<int64_t> sizes;
  };
  const Case cases[] = {{Position(3), {3, 1}}, {Ints({1, 0, 3}), {1, 0, 3}}, {{}, {1, 1, 1, 1}}};
  ForEachElementSize([&](auto sample) {
    using T = decltype(sample);
    for (const int64_t axis : {0, 1, -1}) {
      Shape shape({2, 3, 5});
      shape[axis < 0 ? 2 : static_cast<size_t>(axis)] = 4;
      const Tensor x = Iota<T>(shape);
      for (const Case& c : cases) {
        OpCall call{"SplitToSequence", 0, {x}, MakeAttributes(Attr("axis", axis))};
        if (c.split) call.inputs.emplace_back(*c.split);
        const Value pieces = RunValueOp(std::move(call));
        const auto& elements = pieces.sequence().elements;
        ASSERT_EQ(elements.size(), c.sizes.size());
        const size_t at = axis < 0 ? 2 : static_cast<size_t>(axis);
        int64_t begin = 0;
        for (size_t i = 0; i < elements.size(); ++i) {
          ASSERT_EQ(elements[i].tensor().shape()[at], c.sizes[i]);
          ExpectElements<T>(elements[i].tensor(), x, [&](std::vector<int64_t> coordinates) {
            coordinates[at] += begin;
            return coordinates;
          });
          begin += c.sizes[i];
        }
        const Tensor joined =
            RunTensorOp({"ConcatFromSequence", 0, {pieces}, MakeAttributes(Attr("axis", axis))});
        ASSERT_EQ(joined.shape(), x.shape());
        ExpectElements<T>(joined, x, [](std::vector<int64_t> coordinates) { return coordinates; });
      }
    }
  });
}

TEST(SplitToSequenceTest, DropsAndAddsAxes) {
  const Tensor x = Iota<float>({2, 3});
  const Value rows =
      RunValueOp({"SplitToSequence",
                  0,
                  {x},
                  MakeAttributes(Attr("axis", int64_t{1}), Attr("keepdims", int64_t{0}))});
  ASSERT_EQ(rows.sequence().elements.size(), 3u);
  EXPECT_EQ(rows.sequence().elements[1].tensor().shape(), Shape({2}));
  const Tensor stacked =
      RunTensorOp({"ConcatFromSequence",
                   0,
                   {rows},
                   MakeAttributes(Attr("axis", int64_t{-1}), Attr("new_axis", int64_t{1}))});
  ASSERT_EQ(stacked.shape(), x.shape());
  EXPECT_EQ(ElementsOf<float>(stacked), ElementsOf<float>(x));
}

TEST(SplitToSequenceTest, RejectsSizesThatDoNotFit) {
  for (const Tensor& split : {Ints({1, 1}), Ints({-1, 3}), Ints({INT64_MAX, INT64_MAX}),
                              Position(0), Position(INT64_MIN)}) {
    EXPECT_NE(ErrorOf({"SplitToSequence", 0, {Iota<float>({4}), split}}), "no error");
  }
  EXPECT_NE(ErrorOf({"ConcatFromSequence",
                     0,
                     {SequenceOf({Iota<float>({2, 2}), Iota<float>({2, 3})})},
                     MakeAttributes(Attr("axis", int64_t{0}))}),
            "no error");
  EXPECT_NE(
      ErrorOf({"ConcatFromSequence", 0, {Numbers({})}, MakeAttributes(Attr("axis", int64_t{0}))}),
      "no error");
}

TEST(OptionalTest, HoldsNothingOrSomething) {
  const Value empty = RunValueOp(
      {"Optional", 0, {}, MakeAttributes(Attr("type", ValueType::Tensor(DataType::kFloat)))});
  const Value full = RunValueOp({"Optional", 0, {Ints({7})}});
  EXPECT_FALSE(*RunTensorOp({"OptionalHasElement", 0, {empty}}).data<bool>());
  EXPECT_FALSE(*RunTensorOp({"OptionalHasElement", 0, {}}).data<bool>());
  EXPECT_TRUE(*RunTensorOp({"OptionalHasElement", 0, {full}}).data<bool>());
  EXPECT_TRUE(*RunTensorOp({"OptionalHasElement", 0, {Numbers({})}}).data<bool>());
  EXPECT_EQ(*RunTensorOp({"OptionalGetElement", 0, {full}}).data<int64_t>(), 7);
  EXPECT_EQ(ErrorOf({"OptionalGetElement", 0, {empty}}),
            "input 0: expected an element, got an empty optional");
  EXPECT_EQ(ErrorOf({"Optional", 0, {}}), "expected an input or attribute 'type', got neither");
}

}  // namespace
}  // namespace tenon
