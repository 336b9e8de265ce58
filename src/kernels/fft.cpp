#include "kernels/fft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tenon::kernels {
namespace {

// exp(-2 pi i j / n).
template <class T>
Complex<T> Root(size_t j, size_t n) {
  const double angle = -2 * M_PI * static_cast<double>(j) / static_cast<double>(n);
  return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
}

// All roots of the length n; a quarter of a turn and a reflection are exact.
template <class T>
void FillRoots(size_t n, Complex<T>* roots) {
  for (size_t j = 0; j < n; ++j) {
    if (n % 4 == 0 && j >= n / 4) {
      const Complex<T> before = roots[j - n / 4];
      roots[j] = {before.im, -before.re};
    } else if (2 * j > n) {
      roots[j] = {roots[n - j].re, -roots[n - j].im};
    } else {
      roots[j] = Root<T>(j, n);
    }
  }
}

// The factors that passes have, 4 first; none if a larger one remains.
size_t Factorize(size_t n, std::array<size_t, 64>* factors) {
  size_t count = 0;
  for (size_t radix : {4, 2, 3, 5, 7, 11, 13}) {
    for (; n % radix == 0; n /= radix) (*factors)[count++] = radix;
  }
  return n == 1 ? count : 0;
}

bool HasSmallFactors(size_t n) {
  std::array<size_t, 64> factors;
  return n == 1 || Factorize(n, &factors) > 0;
}

size_t PaddedLength(size_t n) { return HasSmallFactors(n) ? 0 : std::bit_ceil(2 * n - 1); }

template <class T>
size_t RoundUp64(size_t count) {
  return (count * sizeof(Complex<T>) + 63) / 64 * 64;
}

// y = x times the number, for each line; the imaginary part times `sign`, 1 or -1. y may be x.
template <class T>
void TimesNumber(const T* x, size_t lines, Complex<T> number, T sign, T* y) {
  for (size_t line = 0; line < lines; ++line) {
    const T re = x[line], im = x[lines + line];
    y[line] = re * number.re - im * number.im;
    y[lines + line] = (re * number.im + im * number.re) * sign;
  }
}

}  // namespace

template <class T>
size_t Fft<T>::TableBytes(size_t n) {
  if (n > SIZE_MAX / 1024) return SIZE_MAX;
  const size_t padded = PaddedLength(n);
  if (padded == 0) return RoundUp64<T>(n);
  // The sizes of its roots, its filter, the chirp, and the memory for computing the filter.
  return 3 * RoundUp64<T>(padded) + RoundUp64<T>(n);
}

template <class T>
Fft<T>::Fft(size_t n, void* tables) : n_(n), padded_(PaddedLength(n)) {
  auto* memory = static_cast<std::byte*>(tables);
  const auto take = [&](size_t count) {
    auto* const taken = reinterpret_cast<Complex<T>*>(memory);
    memory += RoundUp64<T>(count);
    return taken;
  };
  const size_t length = padded_ ? padded_ : n;
  factor_count_ = Factorize(length, &factors_);
  roots_ = take(length);
  FillRoots(length, roots_);
  if (padded_ == 0) {
    chirp_ = filter_ = nullptr;
    return;
  }
  filter_ = take(padded_);
  chirp_ = take(n);
  Complex<T>* const work = take(padded_);
  // j^2 modulo 2 n, so that the angle stays small.
  size_t square = 0;
  for (size_t j = 0; j < n; ++j) {
    chirp_[j] = Root<T>(square, 2 * n);
    square = (square + 2 * j + 1) % (2 * n);
  }
  std::fill_n(filter_, padded_, Complex<T>{0, 0});
  for (size_t j = 0; j < n; ++j) {
    filter_[j] = {chirp_[j].re, -chirp_[j].im};
    if (j > 0) filter_[padded_ - j] = filter_[j];
  }
  Transform(&filter_[0].re, 1, &work[0].re);
}

template <class T>
size_t Fft<T>::WorkBytes(size_t n, size_t lines) {
  const size_t padded = PaddedLength(n);
  return padded ? 2 * RoundUp64<T>(padded * lines) : RoundUp64<T>(n * lines);
}

// For the length that is the product of the factors.
template <class T>
void Fft<T>::Transform(T* x, size_t lines, T* work) const {
  const FftPasses<T> passes = {
      padded_ ? padded_ : n_, {factors_.data(), factor_count_}, &roots_[0].re};
  RunFftPasses(passes, lines, x, work);
}

// x[k] = chirp[k] * sum(x[j] chirp[j] conj(chirp[k - j])).
template <class T>
void Fft<T>::Convolve(T* x, size_t lines, T* work) const {
  T* const padded = work;
  T* const other = work + RoundUp64<T>(padded_ * lines) / sizeof(T);
  for (size_t j = 0; j < n_; ++j) {
    TimesNumber(x + 2 * lines * j, lines, chirp_[j], T{1}, padded + 2 * lines * j);
  }
  std::fill(padded + 2 * lines * n_, padded + 2 * lines * padded_, T{0});
  Transform(padded, lines, other);
  // The inverse transform is the conjugate of the conjugate's transform.
  for (size_t j = 0; j < padded_; ++j) {
    TimesNumber(padded + 2 * lines * j, lines, filter_[j], T{-1}, padded + 2 * lines * j);
  }
  Transform(padded, lines, other);
  const T scale = T{1} / static_cast<T>(padded_);
  for (size_t k = 0; k < n_; ++k) {
    // (a b*)* = a* b
    const Complex<T> factor = {chirp_[k].re * scale, -chirp_[k].im * scale};
    TimesNumber(padded + 2 * lines * k, lines, factor, T{-1}, x + 2 * lines * k);
  }
}

template <class T>
void Fft<T>::Run(T* x, size_t lines, bool inverse, void* work) const {
  const auto scale_parts = [&](T re, T im) {
    for (size_t j = 0; j < n_; ++j) {
      for (size_t line = 0; line < lines; ++line) {
        x[2 * lines * j + line] *= re;
        x[2 * lines * j + lines + line] *= im;
      }
    }
  };
  if (inverse) scale_parts(1, -1);
  if (padded_) {
    Convolve(x, lines, static_cast<T*>(work));
  } else {
    Transform(x, lines, static_cast<T*>(work));
  }
  if (inverse) scale_parts(T{1} / static_cast<T>(n_), T{-1} / static_cast<T>(n_));
}

template <class T>
size_t RealFft<T>::TableBytes(size_t n) {
  const size_t half = Fft<T>::TableBytes(n / 2);
  return half == SIZE_MAX ? half : half + RoundUp64<T>(n / 4 + 1);
}

template <class T>
RealFft<T>::RealFft(size_t n, void* tables) : half_(n / 2, tables), n_(n) {
  turns_ =
      reinterpret_cast<Complex<T>*>(static_cast<std::byte*>(tables) + Fft<T>::TableBytes(n / 2));
  for (size_t k = 0; k <= n / 4; ++k) turns_[k] = Root<T>(k, n);
}

template <class T>
void RealFft<T>::Run(T* x, size_t lines, void* work) const {
  half_.Run(x, lines, false, work);
  UntangleReal(n_ / 2, &turns_[0].re, lines, x);
}

template class Fft<float>;
template class Fft<double>;
template class RealFft<float>;
template class RealFft<double>;

}  // namespace tenon::kernels
