#include "ops/double_recurrent.h"

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

using kernels::CellActivation;
using kernels::CellFunction;

double Clamped(const CellActivation& activation, double x) {
  const auto clip = static_cast<double>(activation.clip);
  return std::min(std::max(x, -clip), clip);
}

double Activate(const CellActivation& activation, double x) {
  const double a = activation.alpha, b = activation.beta;
  x = Clamped(activation, x);
  switch (activation.function) {
    case CellFunction::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case CellFunction::kTanh:
      return std::tanh(x);
    case CellFunction::kRelu:
      return x < 0 ? 0 : x;
    case CellFunction::kAffine:
      return a * x + b;
    case CellFunction::kLeakyRelu:
      return x < 0 ? a * x : x;
    case CellFunction::kThresholdedRelu:
      return x > a ? x : 0;
    case CellFunction::kScaledTanh:
      return a * std::tanh(b * x);
    case CellFunction::kHardSigmoid:
      return std::min(std::max(a * x + b, 0.0), 1.0);
    case CellFunction::kElu:
      return x < 0 ? a * std::expm1(x) : x;
    case CellFunction::kSoftsign:
      return x / (1 + std::abs(x));
    default:  // kSoftplus
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
}

double Dot(const double* a, const double* b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

size_t GateCount(RecurrentKind kind) {
  return kind == RecurrentKind::kLstm ? 4 : kind == RecurrentKind::kGru ? 3 : 1;
}

class Walk {
 public:
  Walk(RecurrentKind kind, const RecurrentAttrs& attrs, std::span<const CellActivation> activations,
       KernelContext& context)
      : kind_(kind), attrs_(attrs), activations_(activations), context_(context) {
    const Shape& x = context.Input(kInputX).shape();
    const auto size = [&](size_t axis) { return static_cast<size_t>(x[axis]); };
    sizes_ = {static_cast<size_t>(context.Input(kInputW).shape()[0]),
              size(attrs.batch_first ? 1 : 0), size(attrs.batch_first ? 0 : 1), size(2),
              static_cast<size_t>(context.Input(kInputR).shape()[2])};
    gates_ = GateCount(kind);
  }

  Status Run() {
    TENON_RETURN_IF_ERROR(CheckSequenceLens());
    // h, c, r * h, then the gates.
    const size_t bytes = (3 + gates_) * sizes_.hidden * sizeof(double);
    return context_.ForEachTask(
        sizes_.directions * sizes_.batch, bytes, [&](size_t task, std::byte* scratch) {
          RunRow(task / sizes_.batch, task % sizes_.batch, reinterpret_cast<double*>(scratch));
        });
  }

 private:
  struct Row {
    size_t direction;
    double *h, *c, *reset, *gates;
  };

  Status CheckSequenceLens() {
    if (!context_.HasInput(kInputSequenceLens)) return OkStatus();
    lens_ = context_.Input(kInputSequenceLens).data<int32_t>();
    const auto limit = static_cast<int64_t>(sizes_.sequence);
    for (size_t b = 0; b < sizes_.batch; ++b) {
      if (lens_[b] < 0 || lens_[b] > limit) {
        return InvalidArgument("input 4: expected lengths in [0, {}], got {}", limit, lens_[b]);
      }
    }
    return OkStatus();
  }

  const double* OptionalInput(size_t i, size_t offset) const {
    return context_.HasInput(i) ? context_.Input(i).data<double>() + offset : nullptr;
  }

  // Where the state of a row begins in initial and final states.
  size_t StateOffset(size_t d, size_t b) const {
    const size_t row = attrs_.batch_first ? b * sizes_.directions + d : d * sizes_.batch + b;
    return row * sizes_.hidden;
  }

  void LoadState(size_t input, size_t offset, double* into) const {
    const double* from = OptionalInput(input, offset);
    if (from != nullptr) {
      std::copy_n(from, sizes_.hidden, into);
    } else {
      std::fill_n(into, sizes_.hidden, 0.0);
    }
  }

  void StoreState(size_t output, size_t offset, const double* from) const {
    if (!context_.HasOutput(output)) return;
    std::copy_n(from, sizes_.hidden, context_.Output(output).data<double>() + offset);
  }

  void RunRow(size_t d, size_t b, double* memory) const {
    const size_t hidden = sizes_.hidden;
    const Row row = {d, memory, memory + hidden, memory + 2 * hidden, memory + 3 * hidden};
    LoadState(kInputInitialH, StateOffset(d, b), row.h);
    LoadState(kInputInitialC, StateOffset(d, b), row.c);
    const bool is_reversed = attrs_.direction == "reverse" || d == 1;
    for (size_t i = 0; i < sizes_.sequence; ++i) {
      const size_t time = is_reversed ? sizes_.sequence - 1 - i : i;
      const bool is_active = lens_ == nullptr || static_cast<int64_t>(time) < lens_[b];
      if (is_active) Step(row, InputRow(time, b));
      StoreOutput(time, b, row, is_active);
    }
    StoreState(1, StateOffset(d, b), row.h);
    StoreState(2, StateOffset(d, b), row.c);
  }

  const double* InputRow(size_t time, size_t b) const {
    const size_t row = attrs_.batch_first ? b * sizes_.sequence + time : time * sizes_.batch + b;
    return context_.Input(kInputX).data<double>() + row * sizes_.input;
  }

  void StoreOutput(size_t time, size_t b, const Row& row, bool is_active) const {
    if (!context_.HasOutput(0)) return;
    const size_t d = row.direction;
    const size_t place = attrs_.batch_first ? (b * sizes_.sequence + time) * sizes_.directions + d
                                            : (time * sizes_.directions + d) * sizes_.batch + b;
    double* y = context_.Output(0).data<double>() + place * sizes_.hidden;
    if (is_active) {
      std::copy_n(row.h, sizes_.hidden, y);
    } else {
      std::fill_n(y, sizes_.hidden, 0.0);
    }
  }

  // Row `i` of R' times `state`, with its bias.
  double Recurrence(const Row& row, size_t i, const double* state) const {
    const size_t rows = gates_ * sizes_.hidden;
    const double* r = context_.Input(kInputR).data<double>();
    const double* bias = OptionalInput(kInputB, row.direction * 2 * rows + rows);
    return Dot(r + (row.direction * rows + i) * sizes_.hidden, state, sizes_.hidden) +
           (bias ? bias[i] : 0);
  }

  // gates = W x + its bias.
  void MultiplyInput(const Row& row, const double* x) const {
    const size_t rows = gates_ * sizes_.hidden;
    const double* w = context_.Input(kInputW).data<double>();
    const double* bias = OptionalInput(kInputB, row.direction * 2 * rows);
    for (size_t i = 0; i < rows; ++i) {
      row.gates[i] = Dot(w + (row.direction * rows + i) * sizes_.input, x, sizes_.input) +
                     (bias ? bias[i] : 0);
    }
  }

  void Step(const Row& row, const double* x) const {
    MultiplyInput(row, x);
    if (kind_ == RecurrentKind::kLstm) {
      StepLstm(row);
    } else if (kind_ == RecurrentKind::kGru) {
      StepGru(row);
    } else {
      StepRnn(row);
    }
  }

  void StepRnn(const Row& row) const {
    for (size_t i = 0; i < sizes_.hidden; ++i) row.gates[i] += Recurrence(row, i, row.h);
    for (size_t i = 0; i < sizes_.hidden; ++i) {
      row.h[i] = Activate(activations_[row.direction], row.gates[i]);
    }
  }

  void StepGru(const Row& row) const {
    const size_t hidden = sizes_.hidden;
    const CellActivation& f = activations_[2 * row.direction];
    const CellActivation& g = activations_[2 * row.direction + 1];
    double* z = row.gates;
    double* r = row.gates + hidden;
    double* candidate = row.gates + 2 * hidden;
    for (size_t i = 0; i < hidden; ++i) {
      z[i] = Activate(f, z[i] + Recurrence(row, i, row.h));
      r[i] = Activate(f, r[i] + Recurrence(row, hidden + i, row.h));
      row.reset[i] = r[i] * row.h[i];
    }
    for (size_t i = 0; i < hidden; ++i) {
      const double recurrence = attrs_.linear_before_reset
                                    ? r[i] * Recurrence(row, 2 * hidden + i, row.h)
                                    : Recurrence(row, 2 * hidden + i, row.reset);
      candidate[i] = Activate(g, candidate[i] + recurrence);
    }
    for (size_t i = 0; i < hidden; ++i) row.h[i] = (1 - z[i]) * candidate[i] + z[i] * row.h[i];
  }

  void StepLstm(const Row& row) const {
    const size_t hidden = sizes_.hidden;
    const CellActivation* fgh = activations_.data() + 3 * row.direction;
    // `clip` does not bound the argument of the output's activation.
    CellActivation of_state = fgh[2];
    of_state.clip = CellActivation().clip;
    const double* p = OptionalInput(kInputP, row.direction * 3 * hidden);
    for (size_t i = 0; i < gates_ * hidden; ++i) row.gates[i] += Recurrence(row, i, row.h);
    for (size_t i = 0; i < hidden; ++i) {
      const double *input = row.gates, *output = input + hidden, *forget = output + hidden,
                   *cell = forget + hidden;
      const double old = row.c[i];
      const double in = Activate(fgh[0], input[i] + (p ? p[i] * old : 0));
      const double kept = attrs_.input_forget
                              ? 1 - in
                              : Activate(fgh[0], forget[i] + (p ? p[2 * hidden + i] * old : 0));
      row.c[i] = kept * old + in * Activate(fgh[1], cell[i]);
      const double out = Activate(fgh[0], output[i] + (p ? p[hidden + i] * row.c[i] : 0));
      row.h[i] = out * Activate(of_state, row.c[i]);
    }
  }

  const RecurrentKind kind_;
  const RecurrentAttrs& attrs_;
  const std::span<const CellActivation> activations_;
  KernelContext& context_;
  RecurrentSizes sizes_;
  size_t gates_;
  const int32_t* lens_ = nullptr;
};

}  // namespace

std::span<const CellFunction> DefaultActivations(RecurrentKind kind) {
  using enum CellFunction;
  static constexpr CellFunction kLstmDefaults[] = {kSigmoid, kTanh, kTanh};
  static constexpr CellFunction kGruDefaults[] = {kSigmoid, kTanh};
  static constexpr CellFunction kRnnDefaults[] = {kTanh};
  if (kind == RecurrentKind::kLstm) return kLstmDefaults;
  if (kind == RecurrentKind::kGru) return kGruDefaults;
  return kRnnDefaults;
}

Status RunDoubleRecurrent(RecurrentKind kind, const RecurrentAttrs& attrs,
                          std::span<const CellActivation> activations, KernelContext& context) {
  return Walk(kind, attrs, activations, context).Run();
}

}  // namespace tenon
