#include "kernels/elementwise/recurrent_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/elementwise/elementwise.h"

namespace tenon::kernels {
namespace {

// The slopes of a function where its values are y and its argument is within the bounds.
template <class T>
void SlopesWithin(const CellActivation& f, const T* y, size_t n, T* slopes) {
  const T a = f.alpha, b = f.beta;
  const auto fill = [&](auto slope) {
    for (size_t i = 0; i < n; ++i) slopes[i] = slope(y[i]);
  };
  switch (f.op) {
    case UnaryOp::kSigmoid:
      return fill([](T v) { return v * (1 - v); });
    case UnaryOp::kTanh:
      return fill([](T v) { return 1 - v * v; });
    case UnaryOp::kAffine:
      return fill([&](T) { return a; });
    case UnaryOp::kLeakyRelu:
      return fill([&](T v) { return v > 0 ? T(1) : a; });
    case UnaryOp::kElu:
      return fill([&](T v) { return v > 0 ? T(1) : v + a; });
    case UnaryOp::kHardSigmoid:
      return fill([&](T v) { return v > 0 && v < 1 ? a : T(0); });
    case UnaryOp::kScaledTanh:
      return fill([&](T v) { return b * (a - v * v / a); });
    case UnaryOp::kSoftplus:
      return fill([](T v) { return 1 - std::exp(-v); });
    case UnaryOp::kSoftsign:
      return fill([](T v) { return (1 - std::abs(v)) * (1 - std::abs(v)); });
    default:
      return fill([](T v) { return v > 0 ? T(1) : T(0); });  // Relu, ThresholdedRelu
  }
}

// The least and the largest value, to the bit as the forward computes them.
std::array<float, 2> Range(const CellActivation& f, const float* /*of type*/) {
  const float bounds[] = {-f.clip, f.clip};
  float y[2];
  RnnCell(f, 2, bounds, y);
  return {std::min(y[0], y[1]), std::max(y[0], y[1])};
}
std::array<double, 2> Range(const CellActivation& f, const double* /*of type*/) {
  const double bounds[] = {-static_cast<double>(f.clip), static_cast<double>(f.clip)};
  double y[2];
  ApplyInDouble(f.op, bounds, y, 2, f.alpha, f.beta);
  return {std::min(y[0], y[1]), std::max(y[0], y[1])};
}

// The slopes of a function where its values are y: 0 where its argument was beyond the bounds. The
// function is monotonic.
template <class T>
void Slopes(const CellActivation& f, const T* y, size_t n, T* slopes) {
  SlopesWithin(f, y, n, slopes);
  if (f.clip == CellActivation().clip) return;
  const auto [least, largest] = Range(f, y);
  for (size_t i = 0; i < n; ++i) {
    if (y[i] <= least || y[i] >= largest) slopes[i] = 0;
  }
}

void Activate(const CellActivation& f, const float* x, size_t n, float* y) {
  FindUnary(f.op)(x, y, n, f.alpha, f.beta);
}
void Activate(const CellActivation& f, const double* x, size_t n, double* y) {
  ApplyInDouble(f.op, x, y, n, f.alpha, f.beta);
}

// What the two forms of GRU have in common: dz of z, dh, and the gradient of the candidate's sum in
// the place of its slopes. Returns the slopes of z and r, then that.
template <class T>
void GruCandidateGradient(const GruCellGradientArgs<T>& args, size_t n, T* dh, T* dz, T* work) {
  Slopes(args.activations[0], args.gates, 2 * n, work);
  Slopes(args.activations[1], args.gates + 2 * n, n, work + 2 * n);
  for (size_t i = 0; i < n; ++i) {
    const T z = args.gates[i];
    dz[i] = dh[i] * (args.before[i] - args.gates[2 * n + i]) * work[i];
    work[2 * n + i] *= dh[i] * (1 - z);
    dh[i] *= z;
  }
}

}  // namespace

bool HasSlopes(const CellActivation& f) {
  const bool must_rise =
      f.op == UnaryOp::kLeakyRelu || f.op == UnaryOp::kElu || f.op == UnaryOp::kThresholdedRelu;
  if (must_rise && !(f.alpha >= 0)) return false;
  return f.op != UnaryOp::kScaledTanh || f.alpha != 0;
}

template <class T>
void LstmCellGradient(const LstmCellGradientArgs<T>& args, size_t n, T* dh, T* dc, T* dz, T* work) {
  const T *gates = args.gates, *p = args.peepholes;
  T *shown = work + 4 * n, *slopes = work;  // h(c)
  Activate(args.activations[2], args.cell, n, shown);
  Slopes(args.activations[2], shown, n, slopes);
  for (size_t i = 0; i < n; ++i) {
    dc[i] += dh[i] * gates[n + i] * slopes[i];
    shown[i] *= dh[i];
  }
  Slopes(args.activations[0], gates, 3 * n, slopes);
  Slopes(args.activations[1], gates + 3 * n, n, slopes + 3 * n);
  for (size_t i = 0; i < n; ++i) dz[n + i] = shown[i] * slopes[n + i];
  for (size_t i = 0; p && i < n; ++i) dc[i] += dz[n + i] * p[n + i];
  const T used_up = args.input_forget ? 1 : 0;  // the input gate makes forget gates smaller
  for (size_t i = 0; i < n; ++i) {
    const T old = args.before ? args.before[i] : 0;
    dz[i] = dc[i] * (gates[3 * n + i] - used_up * old) * slopes[i];
    dz[2 * n + i] = dc[i] * old * slopes[2 * n + i] * (1 - used_up);
    dz[3 * n + i] = dc[i] * gates[i] * slopes[3 * n + i];
    dc[i] *= gates[2 * n + i];
  }
  for (size_t i = 0; p && i < n; ++i) dc[i] += dz[i] * p[i] + dz[2 * n + i] * p[2 * n + i];
  std::fill_n(dh, n, T(0));
}

template <class T>
void GruCellLinearGradient(const GruCellGradientArgs<T>& args, size_t n, T* candidate, T* dh, T* dz,
                           T* work) {
  GruCandidateGradient(args, n, dh, dz, work);
  const T *r = args.gates + n, *d_candidate = work + 2 * n;
  for (size_t i = 0; i < n; ++i) {
    dz[n + i] = d_candidate[i] * candidate[i] * work[n + i];
    dz[2 * n + i] = d_candidate[i] * r[i];
    candidate[i] = d_candidate[i];
  }
}

template <class T>
void GruCellOutputGradient(const GruCellGradientArgs<T>& args, size_t n, T* reset, T* dh, T* dz,
                           T* work) {
  GruCandidateGradient(args, n, dh, dz, work);
  std::copy_n(work + 2 * n, n, dz + 2 * n);
  for (size_t i = 0; i < n; ++i) reset[i] = args.gates[n + i] * args.before[i];
}

template <class T>
void GruCellResetGradient(const GruCellGradientArgs<T>& args, size_t n, const T* d_reset, T* dh,
                          T* dz) {
  const T* r = args.gates + n;
  Slopes(args.activations[0], r, n, dz + n);
  for (size_t i = 0; i < n; ++i) {
    dz[n + i] *= d_reset[i] * args.before[i];
    dh[i] += d_reset[i] * r[i];
  }
}

template <class T>
void RnnCellGradient(const CellActivation& f, size_t n, const T* h, T* dh, T* dz) {
  Slopes(f, h, n, dz);
  for (size_t i = 0; i < n; ++i) dz[i] *= dh[i];
  std::fill_n(dh, n, T(0));
}

#define TENON_RECURRENT_GRADIENT(T)                                                            \
  template void LstmCellGradient(const LstmCellGradientArgs<T>&, size_t, T*, T*, T*, T*);      \
  template void GruCellLinearGradient(const GruCellGradientArgs<T>&, size_t, T*, T*, T*, T*);  \
  template void GruCellOutputGradient(const GruCellGradientArgs<T>&, size_t, T*, T*, T*, T*);  \
  template void GruCellResetGradient(const GruCellGradientArgs<T>&, size_t, const T*, T*, T*); \
  template void RnnCellGradient(const CellActivation&, size_t, const T*, T*, T*);
TENON_RECURRENT_GRADIENT(float)
TENON_RECURRENT_GRADIENT(double)
#undef TENON_RECURRENT_GRADIENT

}  // namespace tenon::kernels
