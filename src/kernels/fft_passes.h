// The passes of a Fourier transform over several signals at once, one per lane of a vector.
#pragma once

#include <cstddef>
#include <span>

namespace tenon::kernels {

// What the passes of a transform need. T is float or double.
template <class T>
struct FftPasses {
  size_t length;                    // the product of the factors
  std::span<const size_t> factors;  // 4 and primes
  const T* roots;                   // [length, 2]: exp(-2 pi i j / length)
};

// The signals in one vector of the instruction set in use.
template <class T>
size_t FftLanes();

// x[k] = sum(x[j] * exp(-2 pi i j k / length)) for each of `lines` signals, 1 or FftLanes<T>(). x
// and `work` are [length, 2, lines]; the 2 are real and imaginary parts. May be called from several
// threads at once.
template <class T>
void RunFftPasses(const FftPasses<T>& passes, size_t lines, T* x, T* work);

// From the transform of a signal whose complex numbers are pairs of the elements of a real one, of
// length 2 * half, to the first half + 1 numbers of the real one's transform. x is
// [half + 1, 2, lines], and turns [half / 2 + 1, 2]: exp(-pi i k / half).
template <class T>
void UntangleReal(size_t half, const T* turns, size_t lines, T* x);

extern template size_t FftLanes<float>();
extern template size_t FftLanes<double>();
extern template void RunFftPasses(const FftPasses<float>&, size_t, float*, float*);
extern template void RunFftPasses(const FftPasses<double>&, size_t, double*, double*);
extern template void UntangleReal(size_t, const float*, size_t, float*);
extern template void UntangleReal(size_t, const double*, size_t, double*);

}  // namespace tenon::kernels
