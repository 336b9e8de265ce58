#include "kernels/fft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tenon::kernels {
namespace {

template <class T>
Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// a times -i.
template <class T>
Complex<T> TurnBack(Complex<T> a) {
  return {a.im, -a.re};
}
template <class T>
Complex<T> Conjugate(Complex<T> a) {
  return {a.re, -a.im};
}

// exp(-2 pi i j / n).
template <class T>
Complex<T> Root(size_t j, size_t n) {
  const double angle = -2 * M_PI * static_cast<double>(j) / static_cast<double>(n);
  return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
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

// One pass of Stockham's algorithm over arrays seen as [radix, m, stride]:
// y[p, k, q] = w^(p k) sum(x[j, p, q] exp(-2 pi i j k / radix)), where w is the root of the length
// radix * m and roots[stride] is w.
template <class T, size_t kRadix>
void Pass(const Complex<T>* x, Complex<T>* y, size_t m, size_t stride, const Complex<T>* roots) {
  for (size_t p = 0; p < m; ++p) {
    const Complex<T>* from = x + stride * p;
    Complex<T>* into = y + stride * kRadix * p;
    const Complex<T> w1 = roots[stride * p];
    for (size_t q = 0; q < stride; ++q) {
      if constexpr (kRadix == 2) {
        const Complex<T> a = from[q], b = from[q + stride * m];
        into[q] = a + b;
        into[q + stride] = (a - b) * w1;
      } else {
        const Complex<T> a = from[q], b = from[q + stride * m];
        const Complex<T> c = from[q + 2 * stride * m], d = from[q + 3 * stride * m];
        const Complex<T> w2 = roots[2 * stride * p], w3 = roots[3 * stride * p];
        const Complex<T> even = a + c, odd = b + d, other = a - c, turned = TurnBack(b - d);
        into[q] = even + odd;
        into[q + stride] = (other + turned) * w1;
        into[q + 2 * stride] = (even - odd) * w2;
        into[q + 3 * stride] = (other - turned) * w3;
      }
    }
  }
}

// The same for any radix; n is the whole length.
template <class T>
void PassOf(size_t radix, const Complex<T>* x, Complex<T>* y, size_t m, size_t stride, size_t n,
            const Complex<T>* roots) {
  for (size_t p = 0; p < m; ++p) {
    for (size_t q = 0; q < stride; ++q) {
      const Complex<T>* from = x + stride * p + q;
      Complex<T>* into = y + stride * radix * p + q;
      for (size_t k = 0; k < radix; ++k) {
        Complex<T> sum = from[0];
        for (size_t j = 1; j < radix; ++j) {
          sum = sum + from[j * stride * m] * roots[j * k % radix * (n / radix)];
        }
        into[k * stride] = sum * roots[stride * p * k];
      }
    }
  }
}

template <class T>
size_t RoundUp64(size_t count) {
  return (count * sizeof(Complex<T>) + 63) / 64 * 64;
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
  for (size_t j = 0; j < length; ++j) roots_[j] = Root<T>(j, length);
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
    filter_[j] = Conjugate(chirp_[j]);
    if (j > 0) filter_[padded_ - j] = filter_[j];
  }
  Transform(filter_, work);
}

template <class T>
size_t Fft<T>::WorkBytes() const {
  return padded_ ? 2 * RoundUp64<T>(padded_) : RoundUp64<T>(n_);
}

// For the length that is the product of the factors. The result ends up in x.
template <class T>
void Fft<T>::Transform(Complex<T>* x, Complex<T>* work) const {
  const size_t length = padded_ ? padded_ : n_;
  Complex<T>* from = x;
  Complex<T>* into = work;
  size_t stride = 1, rest = length;
  for (size_t i = 0; i < factor_count_; ++i) {
    const size_t radix = factors_[i];
    const size_t m = rest / radix;
    if (radix == 4) {
      Pass<T, 4>(from, into, m, stride, roots_);
    } else if (radix == 2) {
      Pass<T, 2>(from, into, m, stride, roots_);
    } else {
      PassOf(radix, from, into, m, stride, length, roots_);
    }
    std::swap(from, into);
    stride *= radix;
    rest = m;
  }
  if (from != x) std::copy_n(from, length, x);
}

// x[k] = chirp[k] * sum(x[j] chirp[j] conj(chirp[k - j])).
template <class T>
void Fft<T>::Convolve(Complex<T>* x, Complex<T>* work) const {
  Complex<T>* const line = work;
  Complex<T>* const other = work + RoundUp64<T>(padded_) / sizeof(Complex<T>);
  for (size_t j = 0; j < n_; ++j) line[j] = x[j] * chirp_[j];
  std::fill(line + n_, line + padded_, Complex<T>{0, 0});
  Transform(line, other);
  // The inverse transform is the conjugate of the conjugate's transform.
  for (size_t j = 0; j < padded_; ++j) line[j] = Conjugate(line[j] * filter_[j]);
  Transform(line, other);
  const T scale = T{1} / static_cast<T>(padded_);
  for (size_t k = 0; k < n_; ++k) {
    const Complex<T> value = Conjugate(line[k]) * chirp_[k];
    x[k] = {value.re * scale, value.im * scale};
  }
}

template <class T>
void Fft<T>::Run(Complex<T>* x, bool inverse, void* work) const {
  auto* const memory = static_cast<Complex<T>*>(work);
  if (inverse) {
    for (size_t j = 0; j < n_; ++j) x[j] = Conjugate(x[j]);
  }
  if (padded_) {
    Convolve(x, memory);
  } else {
    Transform(x, memory);
  }
  if (!inverse) return;
  const T scale = T{1} / static_cast<T>(n_);
  for (size_t j = 0; j < n_; ++j) x[j] = {x[j].re * scale, -x[j].im * scale};
}

template class Fft<float>;
template class Fft<double>;

}  // namespace tenon::kernels
