#include "kernels/fft.h"

#include <cmath>
#include <complex>
#include <memory>
#include <string>
#include <vector>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

class AlignedBytes {
 public:
  explicit AlignedBytes(size_t bytes) : memory_(bytes + 64), bytes_(bytes) {}
  void* begin() {
    void* begin = memory_.data();
    size_t room = memory_.size();
    return std::align(64, bytes_, begin, room);
  }

 private:
  std::vector<std::byte> memory_;
  size_t bytes_;
};

template <class T>
std::vector<T> RandomNumbers(size_t count) {
  const std::vector<float> numbers = Random(count).Floats(count, -1, 1);
  return {numbers.begin(), numbers.end()};
}

// The number k of the transform of one of the lines of x, [n, 2, lines].
template <class T>
std::complex<double> Transformed(const std::vector<T>& x, size_t n, size_t lines, size_t line,
                                 size_t k) {
  std::complex<double> sum;
  for (size_t j = 0; j < n; ++j) {
    const std::complex<double> number(x[2 * j * lines + line], x[(2 * j + 1) * lines + line]);
    const double turns = static_cast<double>(j * k % n) / static_cast<double>(n);
    sum += number * std::polar(1.0, -2 * M_PI * turns);
  }
  return sum;
}

template <class T>
void CheckTransforms() {
  const double tolerance = sizeof(T) == 8 ? 1e-13 : 1e-6;
  for (const size_t lines : {size_t{1}, FftLanes<T>()}) {
    for (const size_t n : {1, 2, 3, 4, 5, 8, 11, 12, 26, 30, 64, 77, 97, 120}) {
      SCOPED_TRACE("length " + std::to_string(n) + ", lines " + std::to_string(lines));
      AlignedBytes tables(Fft<T>::TableBytes(n));
      AlignedBytes work(Fft<T>::WorkBytes(n, lines));
      const Fft<T> fft(n, tables.begin());
      const std::vector<T> x = RandomNumbers<T>(2 * n * lines);
      std::vector<T> y = x;
      fft.Run(y.data(), lines, false, work.begin());
      const double bound = tolerance * static_cast<double>(n + 8);
      for (size_t k = 0; k < n; ++k) {
        for (size_t line = 0; line < lines; ++line) {
          const std::complex<double> expected = Transformed(x, n, lines, line, k);
          ASSERT_NEAR(y[2 * k * lines + line], expected.real(), bound) << k << " of " << line;
          ASSERT_NEAR(y[(2 * k + 1) * lines + line], expected.imag(), bound) << k << " of " << line;
        }
      }
      fft.Run(y.data(), lines, true, work.begin());
      for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], x[i], bound) << i;
    }
  }
}

template <class T>
void CheckRealTransforms() {
  const double tolerance = sizeof(T) == 8 ? 1e-13 : 1e-6;
  for (const size_t lines : {size_t{1}, FftLanes<T>()}) {
    for (const size_t n : {2, 4, 6, 10, 16, 26, 400, 194}) {
      SCOPED_TRACE("length " + std::to_string(n) + ", lines " + std::to_string(lines));
      AlignedBytes tables(RealFft<T>::TableBytes(n));
      AlignedBytes work(RealFft<T>::WorkBytes(n, lines));
      const RealFft<T> fft(n, tables.begin());
      const std::vector<T> x = RandomNumbers<T>(n * lines);
      std::vector<T> y = x;
      y.resize((n + 2) * lines);
      fft.Run(y.data(), lines, work.begin());
      std::vector<T> with_imaginary(2 * n * lines);
      for (size_t j = 0; j < n; ++j) {
        std::copy_n(&x[j * lines], lines, &with_imaginary[2 * j * lines]);
      }
      for (size_t k = 0; k <= n / 2; ++k) {
        for (size_t line = 0; line < lines; ++line) {
          const std::complex<double> expected = Transformed(with_imaginary, n, lines, line, k);
          const double bound = tolerance * static_cast<double>(n + 8);
          ASSERT_NEAR(y[2 * k * lines + line], expected.real(), bound) << k << " of " << line;
          ASSERT_NEAR(y[(2 * k + 1) * lines + line], expected.imag(), bound) << k << " of " << line;
        }
      }
    }
  }
}

class FftTest : public TargetTest {};

TEST_F(FftTest, TransformsAllLinesOnEveryTarget) {
  OnEveryTarget([] {
    CheckTransforms<float>();
    CheckTransforms<double>();
  });
}

TEST_F(FftTest, TransformsRealSignalsOnEveryTarget) {
  OnEveryTarget([] {
    CheckRealTransforms<float>();
    CheckRealTransforms<double>();
  });
}

}  // namespace
}  // namespace tenon::kernels
