// Windows with more spatial axes than the kernels support, in simple loops.
#pragma once

#include <array>

#include "kernels/conv/pool_planar.h"
#include "ops/conv/window.h"
#include "tensor/shape.h"

namespace tenon {

struct GeneralWindow {
  size_t rank = 0;
  std::array<kernels::PoolDim, kMostWindowRank> dims;

  // Of a window over `x`, [N, C, spatial...], into `y`.
  static GeneralWindow Over(const Window& window, const Shape& x, const Shape& y);

  size_t input_size() const { return Product(&kernels::PoolDim::in); }
  size_t output_size() const { return Product(&kernels::PoolDim::out); }
  size_t kernel_size() const { return Product(&kernels::PoolDim::kernel); }

  // One element of the kernel at one position.
  struct Tap {
    size_t index = 0;        // row-major in the kernel
    size_t offset = 0;       // row-major in the input, if it lies inside
    bool is_inside = true;   // of the input
    bool is_counted = true;  // inside of the input or its pads
  };
  // Calls visit(tap) for all taps of the window at `out`, row-major in the output.
  template <class Visit>
  void ForEachTap(size_t out, Visit&& visit) const {
    std::array<size_t, kMostWindowRank> origin;
    for (size_t i = rank; i-- > 0; out /= dims[i].out) {
      origin[i] = out % dims[i].out * dims[i].stride;
    }
    const size_t taps = kernel_size();
    for (size_t index = 0; index < taps; ++index) {
      Tap tap = {index};
      size_t rest = index, stride = 1;
      for (size_t i = rank; i-- > 0; rest /= dims[i].kernel) {
        const kernels::PoolDim& dim = dims[i];
        const size_t padded = origin[i] + rest % dim.kernel * dim.dilation;
        const size_t at = padded - dim.pad_begin;  // huge in the first pads
        tap.is_counted = tap.is_counted && padded < dim.pad_begin + dim.in + dim.pad_end;
        tap.is_inside = tap.is_inside && at < dim.in;
        tap.offset += at * stride;
        stride *= dim.in;
      }
      visit(tap);
    }
  }

 private:
  size_t Product(size_t kernels::PoolDim::*size) const {
    size_t product = 1;
    for (size_t i = 0; i < rank; ++i) product *= dims[i].*size;
    return product;
  }
};

inline GeneralWindow GeneralWindow::Over(const Window& window, const Shape& x, const Shape& y) {
  GeneralWindow general;
  general.rank = window.rank;
  for (size_t i = 0; i < window.rank; ++i) {
    const WindowDim dim = PaddedDim(window, i, x[i + 2]);
    general.dims[i] = {static_cast<size_t>(x[i + 2]),     static_cast<size_t>(y[i + 2]),
                       static_cast<size_t>(dim.kernel),   static_cast<size_t>(dim.stride),
                       static_cast<size_t>(dim.dilation), static_cast<size_t>(dim.pad_begin),
                       static_cast<size_t>(dim.pad_end)};
  }
  return general;
}

}  // namespace tenon
