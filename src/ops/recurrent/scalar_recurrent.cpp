#include "ops/recurrent/scalar_recurrent.h"

#include <algorithm>

#include "ops/recurrent/bahdanau_attention.h"

namespace tenon {
namespace {

using kernels::CellActivation;

double Activate(const CellActivation& activation, double x) {
  const auto clip = static_cast<double>(activation.clip);
  x = std::min(std::max(x, -clip), clip);
  kernels::ApplyInDouble(activation.op, &x, &x, 1, activation.alpha, activation.beta);
  return x;
}

template <class T>
T Dot(const T* a, const T* b, size_t n) {
  T sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

size_t GateCount(RecurrentKind kind) {
  return kind == RecurrentKind::kGru ? 3 : kind == RecurrentKind::kRnn ? 1 : 4;
}

template <class T>
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
    TENON_ASSIGN_OR_RETURN(lens_, SequenceLens(context_, sizes_));
    if (attends()) TENON_RETURN_IF_ERROR(attention_.Prepare(context_));
    // h, c, r * h, then the gates, then the attention's state.
    const size_t elements = (3 + gates_) * sizes_.hidden + attention_.elements();
    return context_.ForEachTask(sizes_.directions * sizes_.batch, elements * sizeof(T),
                                [&](size_t task, std::byte* scratch) {
                                  RunRow(task / sizes_.batch, task % sizes_.batch,
                                         reinterpret_cast<T*>(scratch));
                                });
  }

 private:
  struct Row {
    size_t direction, batch;
    T *h, *c, *reset, *gates, *attention;
  };

  bool attends() const { return kind_ == RecurrentKind::kAttnLstm; }

  static T Activated(const CellActivation& activation, T x) {
    return static_cast<T>(Activate(activation, x));
  }

  const T* OptionalInput(size_t i, size_t offset) const {
    return context_.HasInput(i) ? context_.Input(i).data<T>() + offset : nullptr;
  }

  // The position of a row's state in initial and final states.
  size_t StateOffset(size_t d, size_t b) const {
    const size_t row = attrs_.batch_first ? b * sizes_.directions + d : d * sizes_.batch + b;
    return row * sizes_.hidden;
  }

  void LoadState(size_t input, size_t d, size_t b, T* into) const {
    const T* from = OptionalInput(input, StateOffset(d, b));
    // The final states of an empty sequence are 0, as in onnxruntime.
    if (from != nullptr && !(lens_ && lens_[b] == 0)) {
      std::copy_n(from, sizes_.hidden, into);
    } else {
      std::fill_n(into, sizes_.hidden, 0.0);
    }
  }

  void StoreState(size_t output, size_t offset, const T* from) const {
    if (!context_.HasOutput(output)) return;
    std::copy_n(from, sizes_.hidden, context_.Output(output).data<T>() + offset);
  }

  void RunRow(size_t d, size_t b, T* memory) const {
    const size_t hidden = sizes_.hidden;
    const Row row = {d,
                     b,
                     memory,
                     memory + hidden,
                     memory + 2 * hidden,
                     memory + 3 * hidden,
                     memory + (3 + gates_) * hidden};
    LoadState(kInputInitialH, d, b, row.h);
    LoadState(kInputInitialC, d, b, row.c);
    if (attends()) attention_.Begin(d, b, row.attention);
    const bool is_reversed = attrs_.direction == "reverse" || d == 1;
    for (size_t i = 0; i < sizes_.sequence; ++i) {
      const size_t time = is_reversed ? sizes_.sequence - 1 - i : i;
      const bool is_active = lens_ == nullptr || static_cast<int64_t>(time) < lens_[b];
      if (is_active) Step(row, InputRow(time, b));
      StoreStep(0, time, row, row.h, sizes_.hidden, is_active);
      Keep(time, row, is_active);
    }
    StoreState(1, StateOffset(d, b), row.h);
    if (kind_ != RecurrentKind::kGru) StoreState(2, StateOffset(d, b), row.c);
  }

  const T* InputRow(size_t time, size_t b) const {
    const size_t row = attrs_.batch_first ? b * sizes_.sequence + time : time * sizes_.batch + b;
    return context_.Input(kInputX).data<T>() + row * sizes_.input;
  }

  // Into an output of all steps, whose last axis has `columns` elements.
  void StoreStep(size_t output, size_t time, const Row& row, const T* from, size_t columns,
                 bool is_active) const {
    if (!context_.HasOutput(output)) return;
    const size_t d = row.direction, b = row.batch;
    const size_t place = attrs_.batch_first ? (b * sizes_.sequence + time) * sizes_.directions + d
                                            : (time * sizes_.directions + d) * sizes_.batch + b;
    T* to = context_.Output(output).data<T>() + place * columns;
    if (is_active) {
      std::copy_n(from, columns, to);
    } else {
      std::fill_n(to, columns, 0.0);
    }
  }

  // What training keeps of a step.
  void Keep(size_t time, const Row& row, bool is_active) const {
    size_t output = FirstKeptOutput(gates_);
    if (gates_ == 4) StoreStep(output++, time, row, row.c, sizes_.hidden, is_active);
    StoreStep(output, time, row, row.gates, gates_ * sizes_.hidden, is_active);
  }

  // Row `i` of R' times `state`, with its bias.
  T Recurrence(const Row& row, size_t i, const T* state) const {
    const size_t rows = gates_ * sizes_.hidden;
    const T* r = context_.Input(kInputR).data<T>();
    const T* bias = OptionalInput(kInputB, row.direction * 2 * rows + rows);
    return Dot(r + (row.direction * rows + i) * sizes_.hidden, state, sizes_.hidden) +
           (bias ? bias[i] : 0);
  }

  // gates = W x + its bias.
  void MultiplyInput(const Row& row, const T* x) const {
    const size_t rows = gates_ * sizes_.hidden;
    const T* w = context_.Input(kInputW).data<T>();
    const T* bias = OptionalInput(kInputB, row.direction * 2 * rows);
    const size_t columns = sizes_.input + attention_.fed_back();
    for (size_t i = 0; i < rows; ++i) {
      const T* own = w + (row.direction * rows + i) * columns;
      row.gates[i] = Dot(own, x, sizes_.input) +
                     Dot(own + sizes_.input, row.attention, attention_.fed_back()) +
                     (bias ? bias[i] : 0);
    }
  }

  void Step(const Row& row, const T* x) const {
    MultiplyInput(row, x);
    if (attends() || kind_ == RecurrentKind::kLstm) {
      StepLstm(row);
      if (attends()) attention_.Step(row.direction, row.batch, row.h, row.attention);
    } else if (kind_ == RecurrentKind::kGru) {
      StepGru(row);
    } else {
      StepRnn(row);
    }
  }

  void StepRnn(const Row& row) const {
    for (size_t i = 0; i < sizes_.hidden; ++i) row.gates[i] += Recurrence(row, i, row.h);
    for (size_t i = 0; i < sizes_.hidden; ++i) {
      row.h[i] = Activated(activations_[row.direction], row.gates[i]);
    }
  }

  void StepGru(const Row& row) const {
    const size_t hidden = sizes_.hidden;
    const CellActivation& f = activations_[2 * row.direction];
    const CellActivation& g = activations_[2 * row.direction + 1];
    T* z = row.gates;
    T* r = row.gates + hidden;
    T* candidate = row.gates + 2 * hidden;
    for (size_t i = 0; i < hidden; ++i) {
      z[i] = Activated(f, z[i] + Recurrence(row, i, row.h));
      r[i] = Activated(f, r[i] + Recurrence(row, hidden + i, row.h));
      row.reset[i] = r[i] * row.h[i];
    }
    for (size_t i = 0; i < hidden; ++i) {
      const T recurrence = attrs_.linear_before_reset
                               ? r[i] * Recurrence(row, 2 * hidden + i, row.h)
                               : Recurrence(row, 2 * hidden + i, row.reset);
      candidate[i] = Activated(g, candidate[i] + recurrence);
    }
    for (size_t i = 0; i < hidden; ++i) row.h[i] = (1 - z[i]) * candidate[i] + z[i] * row.h[i];
  }

  void StepLstm(const Row& row) const {
    const size_t hidden = sizes_.hidden;
    const CellActivation* fgh = activations_.data() + 3 * row.direction;
    // `clip` does not bound the argument of the output's activation.
    CellActivation of_state = fgh[2];
    of_state.clip = CellActivation().clip;
    const T* p = OptionalInput(kInputP, row.direction * 3 * hidden);
    for (size_t i = 0; i < gates_ * hidden; ++i) row.gates[i] += Recurrence(row, i, row.h);
    for (size_t i = 0; i < hidden; ++i) {
      T *input = row.gates, *output = input + hidden, *forget = output + hidden,
        *cell = forget + hidden;
      const T old = row.c[i];
      const T in = Activated(fgh[0], input[i] + (p ? p[i] * old : 0));
      const T kept = attrs_.input_forget
                         ? 1 - in
                         : Activated(fgh[0], forget[i] + (p ? p[2 * hidden + i] * old : 0));
      const T candidate = Activated(fgh[1], cell[i]);
      row.c[i] = kept * old + in * candidate;
      const T out = Activated(fgh[0], output[i] + (p ? p[hidden + i] * row.c[i] : 0));
      row.h[i] = out * Activated(of_state, row.c[i]);
      input[i] = in, output[i] = out, forget[i] = kept, cell[i] = candidate;
    }
  }

  const RecurrentKind kind_;
  const RecurrentAttrs& attrs_;
  const std::span<const CellActivation> activations_;
  KernelContext& context_;
  RecurrentSizes sizes_;
  size_t gates_;
  BahdanauAttention<T> attention_;
  const int32_t* lens_ = nullptr;
};

}  // namespace

std::span<const UnaryOp> DefaultActivations(RecurrentKind kind) {
  using enum UnaryOp;
  static constexpr UnaryOp kLstmDefaults[] = {kSigmoid, kTanh, kTanh};
  static constexpr UnaryOp kGruDefaults[] = {kSigmoid, kTanh};
  static constexpr UnaryOp kRnnDefaults[] = {kTanh};
  if (kind == RecurrentKind::kGru) return kGruDefaults;
  if (kind == RecurrentKind::kRnn) return kRnnDefaults;
  return kLstmDefaults;
}

template <class T>
Status RunScalarRecurrent(RecurrentKind kind, const RecurrentAttrs& attrs,
                          std::span<const CellActivation> activations, KernelContext& context) {
  return Walk<T>(kind, attrs, activations, context).Run();
}

template Status RunScalarRecurrent<float>(RecurrentKind, const RecurrentAttrs&,
                                          std::span<const CellActivation>, KernelContext&);
template Status RunScalarRecurrent<double>(RecurrentKind, const RecurrentAttrs&,
                                           std::span<const CellActivation>, KernelContext&);

}  // namespace tenon
