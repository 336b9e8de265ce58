#include <gtest/gtest.h>

#include <cmath>

#include "kernels/unary_cases.h"
#include "ops/conv_reference.h"
#include "ops/reference.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

std::vector<Attribute> WindowAttributes(const Ints& strides, const Ints& dilations,
                                        const Ints& pads, int64_t group) {
  std::vector<Attribute> attributes;
  if (!strides.empty()) attributes.push_back(Attr("strides", strides));
  if (!dilations.empty()) attributes.push_back(Attr("dilations", dilations));
  if (!pads.empty()) attributes.push_back(Attr("pads", pads));
  attributes.push_back(Attr("group", group));
  return attributes;
}

// `values` at the end of three, `fill` before them.
std::array<int64_t, 3> LastOfThree(const Ints& values, size_t count, int64_t fill) {
  std::array<int64_t, 3> three = {fill, fill, fill};
  for (size_t i = 0; i < count && i < values.size(); ++i) three[3 - count + i] = values[i];
  return three;
}

struct ConvCase {
  Shape x, w;
  Ints strides, dilations, pads;
  int64_t group;
  Shape y;
};

const ConvCase kConvCases[] = {
    {{1, 1, 5}, {1, 1, 3}, {}, {}, {}, 1, {1, 1, 3}},
    {{2, 3, 17}, {4, 3, 5}, {2}, {2}, {3, 1}, 1, {2, 4, 7}},
    {{1, 3, 7, 9}, {5, 3, 3, 3}, {}, {}, {1, 1, 1, 1}, 1, {1, 5, 7, 9}},
    {{2, 4, 8, 6}, {6, 2, 3, 2}, {2, 1}, {1, 2}, {0, 1, 2, 1}, 2, {2, 6, 4, 6}},
    {{1, 6, 5, 5}, {6, 1, 3, 3}, {}, {}, {1, 1, 1, 1}, 6, {1, 6, 5, 5}},
    {{1, 16, 9, 9}, {33, 16, 1, 1}, {}, {}, {}, 1, {1, 33, 9, 9}},
    {{1, 2, 4, 5, 6},
     {3, 2, 2, 3, 2},
     {1, 2, 1},
     {2, 1, 1},
     {1, 0, 1, 0, 1, 0},
     1,
     {1, 3, 3, 2, 6}},
    {{1, 2, 1, 1}, {3, 2, 3, 3}, {}, {}, {1, 1, 1, 1}, 1, {1, 3, 1, 1}},
    // A sequence as a picture of width 1; in the last cases all of it is read from the padding.
    {{1, 3, 9, 1}, {4, 3, 3, 1}, {}, {}, {1, 0, 1, 0}, 1, {1, 4, 9, 1}},
    {{1, 2, 6, 1, 1}, {3, 2, 3, 1, 1}, {2, 1, 1}, {}, {}, 1, {1, 3, 2, 1, 1}},
    {{1, 2, 5, 1}, {2, 2, 3, 1}, {1, 2}, {}, {0, 1, 0, 0}, 1, {1, 2, 3, 1}},
    {{1, 2, 50, 1}, {2, 2, 3, 1}, {1, 2}, {}, {0, 1, 0, 0}, 1, {1, 2, 48, 1}},
    {{1, 2, 1, 3, 50}, {2, 2, 1, 2, 3}, {2, 1, 1}, {}, {1, 0, 0, 0, 0, 0}, 1, {1, 2, 1, 2, 48}},
    {{0, 2, 4, 4}, {3, 2, 3, 3}, {}, {}, {}, 1, {0, 3, 2, 2}},
    {{1, 0, 4, 4}, {3, 0, 3, 3}, {}, {}, {}, 1, {1, 3, 2, 2}},
};

ReferenceConv ReferenceOf(const ConvCase& c) {
  const size_t rank = c.x.rank() - 2;
  return {LastOfThree(c.strides, rank, 1), LastOfThree(c.dilations, rank, 1),
          LastOfThree(c.pads, rank, 0), c.group};
}

TEST(ConvTest, MatchesPlainLoops) {
  for (const ConvCase& c : kConvCases) {
    SCOPED_TRACE(Format("{} * {}", c.x, c.w));
    const Tensor x = Scattered(c.x), w = Scattered(c.w, 2), bias = Scattered({c.w[0]}, 3);
    for (const Tensor& b : {bias, Tensor()}) {
      std::vector<Value> inputs = {x, w};
      if (b.defined()) inputs.push_back(b);
      const auto expected = ConvReference(ReferenceOf(c), x, w, b, c.y);
      const Tensor y =
          RunTensorOp({.op_type = "Conv",
                       .opset = 11,
                       .inputs = inputs,
                       .attributes = WindowAttributes(c.strides, c.dilations, c.pads, c.group),
                       .first_constant = 1});
      ExpectElements(y, c.y, 1e-5, [&](int64_t i) { return expected[static_cast<size_t>(i)]; });
    }
  }
}

TEST(ConvTest, PadsByItself) {
  // in 6, kernel 3, stride 2: three steps reach 7, so one pad.
  struct AutoPadCase {
    std::string auto_pad;
    int64_t begin, out;
  };
  const Tensor x = Scattered({1, 2, 6}), w = Scattered({2, 2, 3}, 2);
  for (const AutoPadCase& c :
       {AutoPadCase{"SAME_UPPER", 0, 3}, {"SAME_LOWER", 1, 3}, {"VALID", 0, 2}}) {
    const Shape y_shape = {1, 2, c.out};
    ReferenceConv conv;
    conv.strides[2] = 2;
    conv.pads[2] = c.begin;
    const auto expected = ConvReference(conv, x, w, Tensor(), y_shape);
    const Tensor y =
        RunTensorOp({"Conv",
                     1,
                     {x, w},
                     MakeAttributes(Attr("auto_pad", c.auto_pad), Attr("strides", Ints{2}))});
    ExpectElements(y, y_shape, 1e-5, [&](int64_t i) { return expected[static_cast<size_t>(i)]; });
  }
}

TEST(FusedConvTest, AddsTheResidualBeforeTheActivation) {
  const ConvCase c = kConvCases[2];
  const Tensor x = Scattered(c.x), w = Scattered(c.w, 2), bias = Scattered({c.w[0]}, 3);
  const Tensor z = Scattered(c.y, 4);
  const auto sums = ConvReference(ReferenceOf(c), x, w, bias, c.y);
  for (const UnaryCase& a : kUnaryCases) {
    const UnaryInfo& info = InfoOf(a.op);
    if (!info.Has(kFused)) continue;
    SCOPED_TRACE(info.name);
    std::vector<float> parameters = {a.a, a.b};
    parameters.resize(info.parameter_count());
    auto attributes = WindowAttributes(c.strides, c.dilations, c.pads, c.group);
    attributes.push_back(Attr("activation", std::string(info.name)));
    attributes.push_back(Attr("activation_params", parameters));
    const Tensor y = RunTensorOp({.op_type = "FusedConv",
                                  .opset = 1,
                                  .inputs = {x, w, bias, z},
                                  .attributes = std::move(attributes),
                                  .domain = "com.microsoft"});
    ExpectElements(y, c.y, 1e-5, [&](int64_t i) {
      const double sum = sums[static_cast<size_t>(i)] + static_cast<double>(z.data<float>()[i]);
      return static_cast<double>(a.reference(sum, a.a, a.b));
    });
  }
}

struct TransposeCase {
  Shape x, w;
  Ints strides, dilations, pads, output_padding, output_shape;
  std::string auto_pad;
  int64_t group;
  Shape y;
  Ints begin;  // the pads at the beginning that follow
};

const TransposeCase kTransposeCases[] = {
    {{1, 2, 4}, {2, 3, 3}, {}, {}, {}, {}, {}, "NOTSET", 1, {1, 3, 6}, {0}},
    {{2, 4, 3, 5},
     {4, 3, 3, 2},
     {2, 3},
     {2, 1},
     {1, 0, 0, 1},
     {1, 2},
     {},
     "NOTSET",
     2,
     {2, 6, 9, 15},
     {1, 0}},
    {{1, 2, 3, 3}, {2, 2, 3, 3}, {3, 2}, {}, {}, {}, {10, 8}, "NOTSET", 1, {1, 2, 10, 8}, {0, 0}},
    {{1, 1, 3, 3}, {1, 2, 3, 3}, {2, 2}, {}, {}, {}, {}, "SAME_UPPER", 1, {1, 2, 6, 6}, {0, 0}},
    {{1, 1, 3, 3}, {1, 2, 3, 3}, {2, 2}, {}, {}, {}, {}, "SAME_LOWER", 1, {1, 2, 6, 6}, {1, 1}},
    {{1, 2, 2, 3, 2},
     {2, 2, 2, 2, 2},
     {2, 1, 2},
     {},
     {},
     {},
     {},
     "NOTSET",
     1,
     {1, 2, 4, 4, 4},
     {0, 0, 0}},
    {{1, 2, 0}, {2, 3, 3}, {}, {}, {}, {}, {}, "NOTSET", 1, {1, 3, 2}, {0}},
};

TEST(ConvTransposeTest, MatchesPlainLoops) {
  for (const TransposeCase& c : kTransposeCases) {
    SCOPED_TRACE(Format("{} * {} {}", c.x, c.w, c.auto_pad));
    const size_t rank = c.x.rank() - 2;
    const Tensor x = Scattered(c.x), w = Scattered(c.w, 2), bias = Scattered({c.y[1]}, 3);
    std::vector<double> expected(static_cast<size_t>(c.y.NumElements()));
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] = static_cast<double>(
          bias.data<float>()[static_cast<int64_t>(i) / c.y.Product(2, c.y.rank()) % c.y[1]]);
    }
    // A transposed convolution scatters what a convolution of y gathers.
    const ReferenceConv conv = {LastOfThree(c.strides, rank, 1), LastOfThree(c.dilations, rank, 1),
                                LastOfThree(c.begin, rank, 0), c.group};
    ForEachProduct(conv, c.y, c.w, c.x, [&](int64_t in, int64_t out, int64_t weight, int64_t) {
      expected[static_cast<size_t>(out)] +=
          static_cast<double>(x.data<float>()[in]) * static_cast<double>(w.data<float>()[weight]);
    });
    auto attributes = WindowAttributes(c.strides, c.dilations, c.pads, c.group);
    attributes.push_back(Attr("auto_pad", c.auto_pad));
    if (!c.output_padding.empty()) attributes.push_back(Attr("output_padding", c.output_padding));
    if (!c.output_shape.empty()) attributes.push_back(Attr("output_shape", c.output_shape));
    const Tensor y = RunTensorOp({"ConvTranspose", 11, {x, w, bias}, std::move(attributes)});
    ExpectElements(y, c.y, 1e-5, [&](int64_t i) { return expected[static_cast<size_t>(i)]; });
  }
}

struct ErrorCase {
  std::string op_type;
  std::vector<Shape> inputs;
  std::vector<Attribute> attributes;
  std::string message;
};

// As some converters write it.
TEST(ConvTest, AnEmptyAutoPadIsNotSet) {
  const Tensor x = Scattered({1, 1, 4, 4}), w = Scattered({1, 1, 3, 3}, 2);
  const auto run = [&](const char* auto_pad) {
    return RunTensorOp(
        {"Conv",
         11,
         {x, w},
         MakeAttributes(Attr("auto_pad", std::string(auto_pad)), Attr("pads", Ints{1, 1, 1, 1}))});
  };
  const Tensor expected = run("NOTSET");
  ExpectElements(run(""), {1, 1, 4, 4}, 0, [&](int64_t i) { return expected.data<float>()[i]; });
}

TEST(ConvTest, SaysWhatIsWrong) {
  const Shape x = {1, 4, 5, 5}, w = {2, 4, 3, 3};
  std::vector<ErrorCase> cases;
  const auto add = [&](std::string op, std::vector<Shape> inputs, std::vector<Attribute> attributes,
                       std::string message) {
    cases.push_back({std::move(op), std::move(inputs), std::move(attributes), std::move(message)});
  };
  add("Conv", {x, {2, 3, 3, 3}}, {},
      "input 0: expected 3 channels for the weights [2, 3, 3, 3] and group = 1, got [1, 4, 5, 5]");
  add("Conv", {x, {2, 4, 3}}, {},
      "input 1: expected rank 4 to match input 0 [1, 4, 5, 5], got [2, 4, 3]");
  add("Conv", {x, w, {3}}, {}, "input 2: expected one bias per output channel, [2], got [3]");
  add("Conv", {x, {2, 4, 7, 1}}, {},
      "spatial axis 0: the kernel spans 7 elements, more than the padded input's 5");
  add("Conv", {x, w}, MakeAttributes(Attr("kernel_shape", Ints{3, 2})),
      "input 1: expected kernel_shape [3, 2] as kernel, got [2, 4, 3, 3]");
  add("Conv", {x, w}, MakeAttributes(Attr("strides", Ints{0, 1})),
      "expected strides in [1, 2147483647], got 0");
  add("Conv", {x, w}, MakeAttributes(Attr("dilations", Ints{1})), "expected 2 dilations, got 1");
  add("Conv", {x, w}, MakeAttributes(Attr("pads", Ints{0, 0, 0, -1})),
      "expected pads in [0, 2147483647], got -1");
  add("Conv", {x, w}, MakeAttributes(Attr("group", int64_t{0})), "expected group >= 1, got 0");
  add("Conv", {x, {2, 2, 3, 3}}, MakeAttributes(Attr("group", int64_t{4})),
      "input 1: expected a multiple of group = 4 channels, got 2");
  add("Conv", {x, w}, MakeAttributes(Attr("auto_pad", std::string("SAME"))),
      "expected auto_pad to be NOTSET, SAME_UPPER, SAME_LOWER or VALID, got 'SAME'");
  add("ConvTranspose", {x, w}, {},
      "input 0: expected 2 channels for the weights [2, 4, 3, 3], got [1, 4, 5, 5]");
  add("ConvTranspose", {x, {4, 2, 3, 3}}, MakeAttributes(Attr("output_padding", Ints{1})),
      "expected 2 output_padding, got 1");
  add("ConvTranspose", {x, {4, 2, 3, 3}}, MakeAttributes(Attr("pads", Ints{4, 0, 4, 0})),
      "spatial axis 0: the pads 4 and 4 leave nothing of 7 elements");
  add("ConvTranspose", {x, {4, 2, 3, 3}},
      MakeAttributes(Attr("output_padding", Ints{0, 2}), Attr("strides", Ints{2, 2})),
      "spatial axis 1: expected output_padding below 2, the larger of stride and dilation, got 2");
  add("ConvTranspose", {x, {4, 2, 3, 3}}, MakeAttributes(Attr("output_shape", Ints{7, 0})),
      "expected output_shape >= 1, got 0");
  add("ConvTranspose", {x, {4, 2, 3, 3}}, MakeAttributes(Attr("output_shape", Ints{7, 8})),
      "spatial axis 1: expected output_shape of at most 7, got 8");
  add("ConvTranspose", {x, {4, 2, 3, 3}},
      MakeAttributes(Attr("output_shape", Ints{17, 18}), Attr("strides", Ints{3, 3}),
                     Attr("output_padding", Ints{0, 1})),
      "spatial axis 1: expected output_shape of at most 17, got 18");
  for (ErrorCase& c : cases) {
    std::vector<Value> inputs;
    for (const Shape& shape : c.inputs) inputs.push_back(Scattered(shape));
    const auto failed = RunOp({c.op_type, 11, std::move(inputs), std::move(c.attributes)});
    ASSERT_FALSE(failed) << c.message;
    EXPECT_EQ(failed.error().message(), c.message);
  }
}

}  // namespace
}  // namespace tenon
