// Convolution in simple loops over three spatial dimensions, by the standard's formula.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace tenon {

struct ReferenceConv {
  std::array<int64_t, 3> strides = {1, 1, 1};
  std::array<int64_t, 3> dilations = {1, 1, 1};
  std::array<int64_t, 3> pads = {0, 0, 0};  // at the beginning
  int64_t group = 1;
};

// Sizes of a [a, b, spatial...] tensor, with leading spatial sizes 1.
inline std::array<int64_t, 5> FiveSizes(const Shape& shape) {
  std::array<int64_t, 5> sizes = {shape[0], shape[1], 1, 1, 1};
  for (size_t i = 2; i < shape.rank(); ++i) sizes[3 + i - shape.rank() + 2] = shape[i];
  return sizes;
}

inline int64_t FlatIndex(const std::array<int64_t, 5>& sizes, std::array<int64_t, 5> at) {
  int64_t flat = 0;
  for (size_t i = 0; i < 5; ++i) flat = flat * sizes[i] + at[i];
  return flat;
}

// Calls visit(output, input, weight, channel) with flat indices for every product of the sum.
template <class Visit>
void ForEachProduct(const ReferenceConv& conv, const Shape& x_shape, const Shape& w_shape,
                    const Shape& y_shape, Visit visit) {
  const auto x = FiveSizes(x_shape), w = FiveSizes(w_shape), y = FiveSizes(y_shape);
  std::array<int64_t, 5> o, t;
  const int64_t per_group = y[1] / conv.group;
  for (o[0] = 0; o[0] < y[0]; ++o[0])
    for (o[1] = 0; o[1] < y[1]; ++o[1])
      for (o[2] = 0; o[2] < y[2]; ++o[2])
        for (o[3] = 0; o[3] < y[3]; ++o[3])
          for (o[4] = 0; o[4] < y[4]; ++o[4])
            for (t[1] = 0; t[1] < w[1]; ++t[1])
              for (t[2] = 0; t[2] < w[2]; ++t[2])
                for (t[3] = 0; t[3] < w[3]; ++t[3])
                  for (t[4] = 0; t[4] < w[4]; ++t[4]) {
                    std::array<int64_t, 5> in = {o[0], o[1] / per_group * w[1] + t[1]};
                    bool inside = true;
                    for (size_t i = 0; i < 3; ++i) {
                      in[i + 2] =
                          o[i + 2] * conv.strides[i] + t[i + 2] * conv.dilations[i] - conv.pads[i];
                      inside = inside && in[i + 2] >= 0 && in[i + 2] < x[i + 2];
                    }
                    t[0] = o[1];
                    if (inside) {
                      visit(FlatIndex(y, o), FlatIndex(x, in), FlatIndex(w, t), o[1]);
                    }
                  }
}

// y of shape `y_shape`; `bias` may be undefined.
inline std::vector<double> ConvReference(const ReferenceConv& conv, const Tensor& x,
                                         const Tensor& w, const Tensor& bias,
                                         const Shape& y_shape) {
  std::vector<double> y(static_cast<size_t>(y_shape.NumElements()), 0);
  const int64_t plane = y_shape.Product(2, y_shape.rank());
  for (size_t i = 0; bias.defined() && i < y.size(); ++i) {
    y[i] = static_cast<double>(bias.data<float>()[static_cast<int64_t>(i) / plane % y_shape[1]]);
  }
  ForEachProduct(
      conv, x.shape(), w.shape(), y_shape, [&](int64_t out, int64_t in, int64_t weight, int64_t) {
        y[static_cast<size_t>(out)] +=
            static_cast<double>(x.data<float>()[in]) * static_cast<double>(w.data<float>()[weight]);
      });
  return y;
}

}  // namespace tenon
