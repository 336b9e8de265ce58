#include <gtest/gtest.h>

#include <cmath>

#include "ops/conv_reference.h"
#include "ops/reference.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

struct PoolCase {
  Shape x;
  Ints kernel, strides, dilations, pads;
  int64_t ceil_mode;
  Shape y;
};

const PoolCase kCases[] = {
    {{1, 1, 5}, {3}, {}, {}, {}, 0, {1, 1, 3}},
    {{2, 3, 17}, {4}, {3}, {2}, {2, 1}, 0, {2, 3, 5}},
    {{1, 3, 8, 9}, {3, 3}, {2, 2}, {}, {1, 1, 1, 1}, 0, {1, 3, 4, 5}},
    {{1, 2, 7, 6}, {2, 3}, {2, 2}, {}, {}, 1, {1, 2, 4, 3}},
    // The last window of the columns would begin in the pads, so there is none.
    {{1, 2, 4, 4}, {3, 2}, {2, 3}, {}, {0, 0, 0, 2}, 1, {1, 2, 2, 2}},
    {{1, 2, 5, 4, 6}, {2, 3, 2}, {1, 1, 2}, {2, 1, 1}, {0, 1, 0, 1, 1, 0}, 0, {1, 2, 4, 4, 3}},
    {{0, 2, 4}, {2}, {}, {}, {}, 0, {0, 2, 3}},
};

std::vector<Attribute> PoolAttributes(const PoolCase& c) {
  std::vector<Attribute> attributes;
  attributes.push_back(Attr("kernel_shape", c.kernel));
  if (!c.strides.empty()) attributes.push_back(Attr("strides", c.strides));
  if (!c.dilations.empty()) attributes.push_back(Attr("dilations", c.dilations));
  if (!c.pads.empty()) attributes.push_back(Attr("pads", c.pads));
  attributes.push_back(Attr("ceil_mode", c.ceil_mode));
  return attributes;
}

// What one window saw.
struct Window {
  std::vector<double> elements;
  std::vector<int64_t> indices;  // in x as a whole
  int64_t with_pads = 0;         // elements, those in the pads included
};

std::vector<Window> WindowsOf(const PoolCase& c, const Tensor& x) {
  const auto in = FiveSizes(c.x), out = FiveSizes(c.y);
  const size_t rank = c.kernel.size(), shift = 3 - rank;
  std::array<int64_t, 3> kernel = {1, 1, 1}, stride = {1, 1, 1}, dilation = {1, 1, 1}, pad = {},
                         end = {};
  for (size_t i = 0; i < rank; ++i) {
    kernel[shift + i] = c.kernel[i];
    if (!c.strides.empty()) stride[shift + i] = c.strides[i];
    if (!c.dilations.empty()) dilation[shift + i] = c.dilations[i];
    if (!c.pads.empty()) pad[shift + i] = c.pads[i], end[shift + i] = c.pads[rank + i];
  }
  std::vector<Window> windows(static_cast<size_t>(c.y.NumElements()));
  for (int64_t o = 0; o < c.y.NumElements(); ++o) {
    std::array<int64_t, 5> at;
    int64_t rest = o;
    for (size_t i = 5; i-- > 0; rest /= out[i]) at[i] = rest % out[i];
    Window& window = windows[static_cast<size_t>(o)];
    for (int64_t tap = 0; tap < kernel[0] * kernel[1] * kernel[2]; ++tap) {
      const std::array<int64_t, 3> taps = {tap / (kernel[1] * kernel[2]),
                                           tap / kernel[2] % kernel[1], tap % kernel[2]};
      std::array<int64_t, 5> from = {at[0], at[1]};
      bool inside = true, padded = true;
      for (size_t i = 0; i < 3; ++i) {
        from[i + 2] = at[i + 2] * stride[i] + taps[i] * dilation[i] - pad[i];
        inside = inside && from[i + 2] >= 0 && from[i + 2] < in[i + 2];
        padded = padded && from[i + 2] < in[i + 2] + end[i];
      }
      window.with_pads += padded;
      if (!inside) continue;
      window.indices.push_back(FlatIndex(in, from));
      window.elements.push_back(static_cast<double>(x.data<float>()[window.indices.back()]));
    }
  }
  return windows;
}

TEST(MaxPoolTest, FindsTheLargestAndWhereItIs) {
  for (const PoolCase& c : kCases) {
    SCOPED_TRACE(c.x.ToString());
    const Tensor x = Scattered(c.x);
    const auto windows = WindowsOf(c, x);
    for (const int64_t storage_order : {0, 1}) {
      auto attributes = PoolAttributes(c);
      attributes.push_back(Attr("storage_order", storage_order));
      const auto outputs = RunOp({"MaxPool", 12, {x}, std::move(attributes), 2});
      ASSERT_TRUE(outputs) << outputs.error().message();
      const auto largest = [&](int64_t i) {
        const auto& elements = windows[static_cast<size_t>(i)].elements;
        return std::max_element(elements.begin(), elements.end()) - elements.begin();
      };
      ExpectElements((*outputs)[0].tensor(), c.y, 0, [&](int64_t i) {
        return windows[static_cast<size_t>(i)].elements[static_cast<size_t>(largest(i))];
      });
      ExpectElements<int64_t>((*outputs)[1].tensor(), c.y, 0, [&](int64_t i) {
        const int64_t index =
            windows[static_cast<size_t>(i)].indices[static_cast<size_t>(largest(i))];
        if (storage_order == 0) return static_cast<double>(index);
        const auto in = FiveSizes(c.x);
        const int64_t plane = in[2] * in[3] * in[4], p = index % plane;
        const int64_t d = p / (in[3] * in[4]), h = p / in[4] % in[3], w = p % in[4];
        return static_cast<double>(index - p + d + in[2] * (h + in[3] * w));
      });
    }
  }
}

TEST(AveragePoolTest, CountsPadsWhereAskedTo) {
  for (const PoolCase& c : kCases) {
    SCOPED_TRACE(c.x.ToString());
    const Tensor x = Scattered(c.x);
    const auto windows = WindowsOf(c, x);
    for (const int64_t include : {0, 1}) {
      auto attributes = PoolAttributes(c);
      attributes.push_back(Attr("count_include_pad", include));
      const Tensor y = RunTensorOp({"AveragePool", 19, {x}, std::move(attributes)});
      ExpectElements(y, c.y, 1e-6, [&](int64_t i) {
        const Window& window = windows[static_cast<size_t>(i)];
        double sum = 0;
        for (const double e : window.elements) sum += e;
        return sum / static_cast<double>(include ? window.with_pads
                                                 : static_cast<int64_t>(window.elements.size()));
      });
    }
  }
}

TEST(LpPoolTest, SumsPowers) {
  for (const PoolCase& c : kCases) {
    const Tensor x = Scattered(c.x);
    const auto windows = WindowsOf(c, x);
    for (const int64_t p : {1, 2, 3}) {
      auto attributes = PoolAttributes(c);
      attributes.push_back(Attr("p", p));
      const Tensor y = RunTensorOp({"LpPool", 18, {x}, std::move(attributes)});
      ExpectElements(y, c.y, 1e-5, [&](int64_t i) {
        double sum = 0;
        for (const double e : windows[static_cast<size_t>(i)].elements) {
          sum += std::pow(std::abs(e), static_cast<double>(p));
        }
        return std::pow(sum, 1 / static_cast<double>(p));
      });
    }
  }
}

TEST(GlobalPoolTest, ReducesPlanes) {
  for (const Shape& shape : {Shape({2, 3, 7}), Shape({1, 5, 6, 4}), Shape({1, 2, 3, 4, 5})}) {
    const Tensor x = Scattered(shape);
    const int64_t n = shape.Product(2, shape.rank());
    Shape y = shape;
    for (size_t i = 2; i < y.rank(); ++i) y[i] = 1;
    const auto fold = [&](int64_t i, double first, auto f) {
      for (int64_t k = 0; k < n; ++k)
        first = f(first, static_cast<double>(x.data<float>()[i * n + k]));
      return first;
    };
    ExpectElements(RunTensorOp({"GlobalAveragePool", 1, {x}}), y, 1e-6, [&](int64_t i) {
      return fold(i, 0, [](double a, double b) { return a + b; }) / static_cast<double>(n);
    });
    ExpectElements(RunTensorOp({"GlobalMaxPool", 1, {x}}), y, 0, [&](int64_t i) {
      return fold(i, -10, [](double a, double b) { return std::max(a, b); });
    });
    ExpectElements(RunTensorOp({"GlobalLpPool", 2, {x}, MakeAttributes(Attr("p", int64_t{2}))}), y,
                   1e-5, [&](int64_t i) {
                     return std::sqrt(fold(i, 0, [](double a, double b) { return a + b * b; }));
                   });
  }
}

// The elements of `x`, which every type holds, as T.
template <class T>
Tensor As(const Tensor& x) {
  Tensor y = Tensor::Allocate(DataTypeOf<T>(), x.shape()).value();
  for (int64_t i = 0; i < x.size(); ++i) y.data<T>()[i] = static_cast<T>(x.data<float>()[i]);
  return y;
}

template <class T>
void ExpectSameAsFloat(const std::string& op, const PoolCase& c, std::vector<Attribute> attributes,
                       std::vector<Attribute> same, size_t outputs) {
  Tensor x = Scattered(c.x);
  for (int64_t i = 0; i < x.size(); ++i) {
    x.data<float>()[i] = std::floor(20 * std::abs(x.data<float>()[i]));
  }
  const auto expected = RunOp({op, 19, {x}, std::move(attributes), outputs}).value();
  const auto got = RunOp({op, 19, {As<T>(x)}, std::move(same), outputs});
  ASSERT_TRUE(got) << got.error().message();
  const Tensor& y = expected[0].tensor();
  ExpectElements<T>((*got)[0].tensor(), c.y, 1e-5,
                    [&](int64_t i) { return static_cast<double>(y.data<float>()[i]); });
  if (outputs == 1) return;
  ExpectElements<int64_t>((*got)[1].tensor(), c.y, 0, [&](int64_t i) {
    return static_cast<double>(expected[1].tensor().data<int64_t>()[i]);
  });
}

TEST(PoolTest, ServesTheOtherTypes) {
  for (const PoolCase& c : kCases) {
    SCOPED_TRACE(c.x.ToString());
    for (const int64_t flag : {0, 1}) {
      const auto with = [&](const char* name, int64_t value) {
        auto attributes = PoolAttributes(c);
        attributes.push_back(Attr(name, value));
        return attributes;
      };
      const auto max = [&] { return with("storage_order", flag); };
      ExpectSameAsFloat<double>("MaxPool", c, max(), max(), 2);
      ExpectSameAsFloat<int8_t>("MaxPool", c, max(), max(), 2);
      ExpectSameAsFloat<uint8_t>("MaxPool", c, max(), max(), 1);
      const auto average = [&] { return with("count_include_pad", flag); };
      ExpectSameAsFloat<double>("AveragePool", c, average(), average(), 1);
      ExpectSameAsFloat<double>("LpPool", c, with("p", 1 + flag), with("p", 1 + flag), 1);
    }
  }
}

TEST(PoolTest, SaysWhatIsWrong) {
  const Tensor x = Scattered({1, 2, 4, 4});
  const auto failure = [&](std::string op, std::vector<Attribute> attributes) {
    const auto failed = RunOp({std::move(op), 18, {x}, std::move(attributes)});
    return failed ? std::string("none") : failed.error().message();
  };
  EXPECT_EQ(failure("MaxPool", MakeAttributes(Attr("kernel_shape", Ints{2}))),
            "expected 2 kernel sizes for input 0 [1, 2, 4, 4], got 1");
  EXPECT_EQ(failure("MaxPool", MakeAttributes(Attr("kernel_shape", Ints{2, 0}))),
            "expected kernel sizes in [1, 2147483647], got 0");
  EXPECT_EQ(failure("AveragePool", MakeAttributes(Attr("kernel_shape", Ints{2, 5}))),
            "spatial axis 1: the kernel spans 5 elements, more than the padded input's 4");
  EXPECT_EQ(
      failure("LpPool", MakeAttributes(Attr("kernel_shape", Ints{2, 2}), Attr("p", int64_t{0}))),
      "expected p > 0, got 0");
}

}  // namespace
}  // namespace tenon
