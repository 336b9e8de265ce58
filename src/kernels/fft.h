// The discrete Fourier transform of any length: mixed radix if the length has only small factors,
// otherwise by a convolution (Bluestein's algorithm).
#pragma once

#include <array>
#include <cstddef>

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
  // Fills `tables`, aligned to 64, which must outlive this.
  Fft(size_t n, void* tables);

  // Bytes of work memory for one Run, a multiple of 64.
  size_t WorkBytes() const;
  // x[k] = sum(x[j] * exp(-2 pi i j k / n)), or with + and divided by n if `inverse`. `work` is
  // aligned to 64.
  void Run(Complex<T>* x, bool inverse, void* work) const;

 private:
  void Transform(Complex<T>* x, Complex<T>* work) const;
  void Convolve(Complex<T>* x, Complex<T>* work) const;

  size_t n_;
  size_t padded_;  // of the convolution, a power of two; 0: none
  size_t factor_count_ = 0;
  std::array<size_t, 64> factors_{};
  Complex<T>* roots_;   // exp(-2 pi i j / m), m the length whose factors these are
  Complex<T>* chirp_;   // exp(-pi i j^2 / n)
  Complex<T>* filter_;  // the transform of the chirp's conjugate
};

extern template class Fft<float>;
extern template class Fft<double>;

}  // namespace tenon::kernels
