#include <cmath>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

struct Case {
  Shape x, w;
  std::vector<int64_t> dilations, pads, strides;
  int64_t group = 1, offset_group = 1;
  bool bias = false, mask = false;
};

// A map between its elements, 0 outside.
template <class T>
double Sample(const T* map, const Shape& dims, const std::vector<double>& at, size_t axis = 0,
              int64_t offset = 0) {
  if (axis == dims.rank()) return static_cast<double>(map[offset]);
  double sum = 0;
  for (const double i : {std::floor(at[axis]), std::floor(at[axis]) + 1}) {
    if (i < 0 || i >= static_cast<double>(dims[axis])) continue;
    sum += (1 - std::abs(at[axis] - i)) *
           Sample(map, dims, at, axis + 1, offset * dims[axis] + static_cast<int64_t>(i));
  }
  return sum;
}

template <class T>
void ExpectDeformed(const Case& c) {
  const size_t rank = c.x.rank() - 2;
  Shape out = {c.x[0], c.w[0]}, dims, kernel;
  for (size_t i = 0; i < rank; ++i) {
    dims.Append(c.x[i + 2]);
    kernel.Append(c.w[i + 2]);
    out.Append((c.x[i + 2] + c.pads[i] + c.pads[i + rank] - c.dilations[i] * (c.w[i + 2] - 1) - 1) /
                   c.strides[i] +
               1);
  }
  Shape offset_shape = out, mask_shape = out;
  mask_shape[1] = c.offset_group * kernel.NumElements();
  offset_shape[1] = mask_shape[1] * static_cast<int64_t>(rank);
  const Tensor x = Scattered<T>(c.x), w = Scattered<T>(c.w, 2),
               offset = Scattered<T>(offset_shape, 3);
  const Tensor bias = Scattered<T>({c.w[0]}, 4), mask = Scattered<T>(mask_shape, 5);
  const Tensor y =
      RunTensorOp({"DeformConv",
                   19,
                   {x, w, offset, c.bias ? Value(bias) : Value(), c.mask ? Value(mask) : Value()},
                   MakeAttributes(Attr("dilations", c.dilations), Attr("pads", c.pads),
                                  Attr("strides", c.strides), Attr("group", c.group),
                                  Attr("offset_group", c.offset_group))});
  ExpectElements<T>(y, out, 2e-5, [&](int64_t i) {
    const auto at = CoordinatesOf(i, out);
    const int64_t place =
        PositionOf({at.begin() + 2, at.end()}, Shape(std::span(out.data() + 2, rank)));
    const int64_t places = out.Product(2, out.rank()), kernels = kernel.NumElements();
    double sum = c.bias ? static_cast<double>(bias.data<T>()[at[1]]) : 0;
    for (int64_t channel = 0; channel < c.w[1]; ++channel) {
      const int64_t from = at[1] / (c.w[0] / c.group) * c.w[1] + channel;
      const int64_t set = at[0] * c.offset_group + from / (c.x[1] / c.offset_group);
      for (int64_t k = 0; k < kernels; ++k) {
        const auto element = CoordinatesOf(k, kernel);
        std::vector<double> position;
        for (size_t axis = 0; axis < rank; ++axis) {
          const auto shift =
              ((set * kernels + k) * static_cast<int64_t>(rank) + static_cast<int64_t>(axis)) *
                  places +
              place;
          position.push_back(static_cast<double>(at[axis + 2] * c.strides[axis] - c.pads[axis] +
                                                 element[axis] * c.dilations[axis]) +
                             static_cast<double>(offset.data<T>()[shift]));
        }
        double value =
            Sample(x.data<T>() + (at[0] * c.x[1] + from) * dims.NumElements(), dims, position);
        if (c.mask)
          value *= static_cast<double>(mask.data<T>()[(set * kernels + k) * places + place]);
        sum += value * static_cast<double>(w.data<T>()[(at[1] * c.w[1] + channel) * kernels + k]);
      }
    }
    return sum;
  });
}

TEST(DeformConvTest, SamplesWhereTheOffsetsSay) {
  const Case cases[] = {
      {{1, 1, 3, 3}, {1, 1, 2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
      {{2, 4, 7, 9}, {6, 4, 3, 2}, {2, 1}, {1, 2, 0, 1}, {1, 2}, 1, 2, true, true},
      {{1, 4, 20, 21}, {4, 2, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2, 4, true, false},
      {{1, 6, 5, 5}, {3, 2, 1, 3}, {1, 1}, {0, 1, 0, 1}, {1, 1}, 3, 2, false, true},
      {{1, 2, 9}, {3, 2, 4}, {1}, {1, 2}, {2}, 1, 1, true, true},
      {{1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}, {1, 1, 2}, {0, 1, 0, 1, 1, 0}, {1, 2, 1}, 1, 1},
  };
  for (const Case& c : cases) {
    ExpectDeformed<float>(c);
    ExpectDeformed<double>(c);
  }
}

TEST(DeformConvTest, RefusesWhatDoesNotFit) {
  const auto error = [](const Shape& offset, int64_t group, int64_t offset_group) {
    return ErrorOf({"DeformConv",
                    22,
                    {Scattered({1, 2, 4, 4}), Scattered({2, 2, 3, 3}), Scattered(offset)},
                    MakeAttributes(Attr("group", group), Attr("offset_group", offset_group))});
  };
  EXPECT_EQ(error({1, 18, 2, 2}, 1, 1), "no error");
  EXPECT_NE(error({1, 18, 3, 2}, 1, 1), "no error");
  EXPECT_NE(error({1, 17, 2, 2}, 1, 1), "no error");
  EXPECT_NE(error({1, 18, 2, 2}, 2, 1), "no error");
  EXPECT_NE(error({1, 18, 2, 2}, 0, 1), "no error");
  EXPECT_NE(error({1, 54, 2, 2}, 1, 3), "no error");
  EXPECT_NE(error({1, 18, 2, 2}, 1, INT64_MIN), "no error");
}

}  // namespace
}  // namespace tenon
