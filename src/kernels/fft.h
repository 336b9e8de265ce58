// The discrete Fourier transform of any length: mixed radix if the length has only small factors,
// otherwise by a convolution (Bluestein's algorithm).
#pragma once

#include <array>
#include <cstddef>

#include "kernels/fft_passes.h"

namespace tenon::kernels {

template <class T>
struct Complex {
  T re, im;
};

// The plan of a length and its tables, which lie in memory that the caller provides. T is float or
// double. Immutable once made; Run may be called from several threads at once.
template <class T>
class Fft {
 public:
  // Bytes of the tables for length n > 0, a multiple of 64; SIZE_MAX if there is no such number.
  static size_t TableBytes(size_t n);
  // Bytes of work memory for one Run, a multiple of 64; n has tables.
  static size_t WorkBytes(size_t n, size_t lines);
  // Fills `tables`, aligned to 64, which must outlive this.
  Fft(size_t n, void* tables);

  // x[k] = sum(x[j] * exp(-2 pi i j k / n)), or with + and divided by n if `inverse`, of each of
  // `lines` signals, 1 or FftLanes<T>(). x is [n, 2, lines]; the 2 are real and imaginary parts.
  // `work` is aligned to 64.
  void Run(T* x, size_t lines, bool inverse, void* work) const;

 private:
  void Transform(T* x, size_t lines, T* work) const;
  void Convolve(T* x, size_t lines, T* work) const;

  size_t n_;
  size_t padded_;  // of the convolution, a power of two; 0: none
  size_t factor_count_ = 0;
  std::array<size_t, 64> factors_{};
  Complex<T>* roots_;   // exp(-2 pi i j / m), m the length whose factors these are
  Complex<T>* chirp_;   // exp(-pi i j^2 / n)
  Complex<T>* filter_;  // the transform of the chirp's conjugate
};

// The same for real signals of an even length.
template <class T>
class RealFft {
 public:
  static size_t TableBytes(size_t n);
  static size_t WorkBytes(size_t n, size_t lines) { return Fft<T>::WorkBytes(n / 2, lines); }
  RealFft(size_t n, void* tables);

  // x is [n / 2 + 1, 2, lines]: before, the elements in their order, and room for two more; then
  // the first half of the transform, with the number n / 2.
  void Run(T* x, size_t lines, void* work) const;

 private:
  Fft<T> half_;
  size_t n_;
  Complex<T>* turns_;  // exp(-2 pi i k / n)
};

extern template class Fft<float>;
extern template class Fft<double>;
extern template class RealFft<float>;
extern template class RealFft<double>;

}  // namespace tenon::kernels
