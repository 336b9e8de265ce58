// LSTMGrad-1 and GRUGrad-1 of com.microsoft, and RNNGrad-1 beside them: the gradients of a
// recurrent layer from what its forward kept. The steps are walked backwards for the gradients dz
// of the gates' sums; those of the weights and of X are one product each of the dz of all steps.
#include "kernels/elementwise/recurrent_gradient.h"

#include <algorithm>
#include <array>

#include "base/arithmetic.h"
#include "kernels/reduce.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/linear/float_gemm.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/scalar_recurrent.h"

namespace tenon {
namespace {

using kernels::CellActivation;

// The inputs after X, W and R; kNone for those that the operator lacks.
struct Roles {
  size_t gates_per_cell;
  uint8_t bias, lens, h0, c0, y, cells, gates, dy, dh, dc, peepholes;
};
constexpr uint8_t kNone = 255;

constexpr Roles kLstm = {4, kNone, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
constexpr Roles kGru = {3, 3, 4, 5, kNone, 6, kNone, 7, 8, 9, kNone, kNone};
constexpr Roles kRnn = {1, kNone, 3, 4, kNone, 5, kNone, kNone, 6, 7, kNone, kNone};

enum Output : size_t { kDx, kDw, kDr, kDb, kDh0, kDc0, kDp };

Status InferGradient(const Roles& roles, const RecurrentAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const size_t directions, DirectionCount(attrs.direction));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(kInputX, 3));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape r, context.InputOfRank(kInputR, 3));
  const Dim &sequence = x[attrs.batch_first ? 1 : 0], &batch = x[attrs.batch_first ? 0 : 1];
  const Dim d(static_cast<int64_t>(directions)), hidden = r[2];
  const Dim columns = Dim(static_cast<int64_t>(roles.gates_per_cell)) * hidden;
  const SymbolicShape w = {d, columns, x[2]}, recurrences = {d, columns, hidden};
  const SymbolicShape bias = {d, Dim(2) * columns}, peepholes = {d, Dim(3) * hidden};
  const SymbolicShape state =
      attrs.batch_first ? SymbolicShape({batch, d, hidden}) : SymbolicShape({d, batch, hidden});
  const auto every_step = [&](const Dim& size) {
    return attrs.batch_first ? SymbolicShape({batch, sequence, d, size})
                             : SymbolicShape({sequence, d, batch, size});
  };
  const std::pair<size_t, SymbolicShape> expected[] = {
      {kInputW, w},
      {kInputR, recurrences},
      {roles.bias, bias},
      {roles.lens, {batch}},
      {roles.h0, state},
      {roles.c0, state},
      {roles.y, every_step(hidden)},
      {roles.cells, every_step(hidden)},
      {roles.gates, every_step(columns)},
      {roles.dy, every_step(hidden)},
      {roles.dh, state},
      {roles.dc, state},
      {roles.peepholes, peepholes},
  };
  for (const auto& [input, shape] : expected) {
    TENON_RETURN_IF_ERROR(CheckInputShape(context, input, shape));
  }
  const SymbolicShape gradients[] = {x, w, recurrences, bias, state, state, peepholes};
  for (size_t i = 0; i < std::min(std::size(gradients), context.output_count()); ++i) {
    TENON_RETURN_IF_ERROR(context.SetOutput(i, gradients[i]));
  }
  return OkStatus();
}

template <const Roles& kRoles>
Status InferRecurrentGradient(const RecurrentAttrs& attrs, ShapeContext& context) {
  return InferGradient(kRoles, attrs, context);
}

// A matrix that is read; element (i, j) is data[i * row_stride + j * column_stride].
template <class T>
struct Matrix {
  const T* data;
  size_t row_stride, column_stride = 1;
};
template <class T>
Matrix<T> TransposeOf(const T* data, size_t ld) {
  return {data, 1, ld};
}

// One run of a kernel.
template <class T>
class WalkBack {
 public:
  WalkBack(const Roles& roles, const RecurrentAttrs& attrs,
           std::span<const CellActivation> activations, const FloatGemm& gemm,
           KernelContext& context)
      : roles_(roles), attrs_(attrs), activations_(activations), gemm_(gemm), context_(context) {
    const Shape& x = context.Input(kInputX).shape();
    const auto size = [&](size_t axis) { return static_cast<size_t>(x[axis]); };
    sizes_ = {static_cast<size_t>(context.Input(kInputR).shape()[0]),
              size(attrs.batch_first ? 1 : 0), size(attrs.batch_first ? 0 : 1), size(2),
              static_cast<size_t>(context.Input(kInputR).shape()[2])};
    gates_ = roles.gates_per_cell;
    hidden_ = sizes_.hidden;
    columns_ = gates_ * hidden_;
    rows_ = sizes_.sequence * sizes_.batch;
  }

  Status Run() {
    TENON_ASSIGN_OR_RETURN(lens_, LensOf());
    TENON_RETURN_IF_ERROR(DivideScratch());
    context_.threads().ParallelFor(sizes_.directions, 1, [&](size_t d, size_t) { Walk(d); });
    for (size_t d = 0; d < sizes_.directions; ++d) {
      MultiplyAll(d);
      StoreState(kDh0, d, Direction(d).dh);
      StoreState(kDc0, d, Direction(d).dc);
    }
    return OkStatus();
  }

 private:
  bool is_lstm() const { return gates_ == 4; }
  bool is_gru() const { return gates_ == 3; }

  struct Memory {
    T* dz;        // [rows, gates, hidden] in the order of X
    T* previous;  // [rows, hidden]: the states before the steps, unless they are read in Y
    // GRU: [rows, hidden]. If linear_before_reset, first the candidate's recurrences, then the
    // gradient of its sum; dz has that times the reset gate. Otherwise the reset states.
    T* candidate;
    T *dh, *dc;  // [batch, hidden]
    T* product;  // likewise: GRU's gradient of the reset states
    T* work;     // [batch, 5, hidden]
    T* packed;   // R, and without linear_before_reset the candidate's rows in a place of their own
    std::byte* tasks;
  };

  Result<const int32_t*> LensOf() const {
    if (!context_.HasInput(roles_.lens)) return nullptr;
    const auto* lens = context_.Input(roles_.lens).data<int32_t>();
    const auto limit = static_cast<int64_t>(sizes_.sequence);
    for (size_t b = 0; b < sizes_.batch; ++b) {
      if (lens[b] >= 0 && lens[b] <= limit) continue;
      return InvalidArgument("input {}: expected lengths in [0, {}], got {}", roles_.lens, limit,
                             lens[b]);
    }
    return lens;
  }

  // --- memory ---

  size_t PackedSize(size_t k) const {
    return std::is_same_v<T, float> ? gemm_.PackedFloats(hidden_, k) : 0;
  }

  bool has_reset_states() const { return is_gru() && !attrs_.linear_before_reset; }
  bool has_linear_reset() const { return is_gru() && attrs_.linear_before_reset; }
  // The gates whose sums have the recurrences of the state before the step alone.
  size_t PlainGates() const { return has_reset_states() ? 2 : gates_; }
  // Those whose dz is the same for inputs and recurrences.
  size_t SharedGates() const { return has_linear_reset() ? 2 : gates_; }

  size_t TaskBytes() const {
    if (!std::is_same_v<T, float>) return 0;
    const size_t in = sizes_.input, h = hidden_, batch = sizes_.batch;
    const size_t plain = PlainGates() * h, shared = SharedGates() * h;
    const size_t later = rows_ - std::min(rows_, batch);
    const auto bytes = [&](size_t m, size_t n, size_t k, bool is_packed) {
      return gemm_.TaskBytes(context_, {m, n, k}, is_packed);
    };
    return std::max(
        {bytes(batch, h, plain, true), bytes(batch, h, h, true), bytes(batch, h, h, false),
         bytes(later, h, h, false), bytes(rows_, h, h, false), bytes(plain, h, batch, false),
         bytes(plain, h, later, false), bytes(plain, h, rows_, false), bytes(h, h, rows_, false),
         bytes(shared, in, rows_, false), bytes(h, in, rows_, false),
         bytes(rows_, in, shared, false), bytes(rows_, in, h, false)});
  }

  Status DivideScratch() {
    const size_t state = sizes_.batch * hidden_;
    task_bytes_ = RoundUp<size_t>(TaskBytes(), 64);
    const size_t elements[] = {rows_ * columns_,
                               reads_states_in_y() ? 0 : rows_ * hidden_,
                               is_gru() ? rows_ * hidden_ : 0,
                               state,
                               state,
                               state,
                               5 * state,
                               PackedSize(PlainGates() * hidden_) + PackedSize(hidden_)};
    size_t bytes = task_bytes_;
    for (size_t i = 0; i < std::size(elements); ++i) {
      offsets_[i] = bytes;
      bytes += RoundUp<size_t>(elements[i] * sizeof(T), 64);
    }
    direction_bytes_ = bytes;
    memory_ = static_cast<std::byte*>(context_.Scratch(bytes * sizes_.directions));
    if (memory_ != nullptr) return OkStatus();
    return RuntimeException("out of memory: the gradients of {} steps of {} rows", sizes_.sequence,
                            sizes_.batch);
  }

  Memory Direction(size_t d) const {
    std::byte* base = memory_ + d * direction_bytes_;
    const auto at = [&](size_t i) { return reinterpret_cast<T*>(base + offsets_[i]); };
    return {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), base};
  }

  // --- where things are ---

  // The rows of X and dz, of tensors of all steps, and of states.
  size_t Row(size_t time, size_t b) const {
    return attrs_.batch_first ? b * sizes_.sequence + time : time * sizes_.batch + b;
  }
  size_t Place(size_t d, size_t time, size_t b) const {
    return attrs_.batch_first ? (b * sizes_.sequence + time) * sizes_.directions + d
                              : (time * sizes_.directions + d) * sizes_.batch + b;
  }
  size_t StateRow(size_t d, size_t b) const {
    return attrs_.batch_first ? b * sizes_.directions + d : d * sizes_.batch + b;
  }
  const T* RowOf(size_t input, size_t row, size_t columns) const {
    return context_.HasInput(input) ? context_.Input(input).data<T>() + row * columns : nullptr;
  }
  bool IsReversed(size_t d) const { return attrs_.direction == "reverse" || d == 1; }
  size_t Length(size_t b) const { return lens_ ? static_cast<size_t>(lens_[b]) : sizes_.sequence; }

  // The state before a step: a row of the output of all steps or of the initial state; null for 0.
  const T* Before(size_t all, size_t initial, size_t d, size_t time, size_t b) const {
    const bool is_reversed = IsReversed(d);
    if (time == (is_reversed ? Length(b) - 1 : 0)) {
      return RowOf(initial, StateRow(d, b), hidden_);
    }
    return RowOf(all, Place(d, is_reversed ? time + 1 : time - 1, b), hidden_);
  }

  // Whether Y has the states before all steps but the first in the order of the rows.
  bool reads_states_in_y() const {
    return sizes_.directions == 1 && !attrs_.batch_first && lens_ == nullptr &&
           sizes_.sequence > 0 && context_.HasInput(roles_.y) && context_.HasInput(roles_.h0);
  }
  const T* StateBefore(size_t d, size_t time, size_t b) const {
    return reads_states_in_y() ? Before(roles_.y, roles_.h0, d, time, b)
                               : Direction(d).previous + Row(time, b) * hidden_;
  }

  // Rows that lie one after another, and the states before their steps.
  struct Rows {
    size_t first, count;
    const T* states;
  };
  // All rows.
  std::array<Rows, 2> StatesBefore(size_t d) const {
    if (!reads_states_in_y()) return {{{0, rows_, Direction(d).previous}, {rows_, 0, nullptr}}};
    const size_t batch = sizes_.batch, later = rows_ - batch;
    const T* const y = RowOf(roles_.y, 0, hidden_);
    const T* const initial = RowOf(roles_.h0, 0, hidden_);
    if (IsReversed(d)) return {{{later, batch, initial}, {0, later, y + batch * hidden_}}};
    return {{{0, batch, initial}, {batch, later, y}}};
  }

  // --- products ---

  // c = a b + beta c, where c is [m, n] with rows ldc elements apart.
  void Multiply(size_t m, size_t n, size_t k, const Matrix<T>& a, const Matrix<T>& b, T beta, T* c,
                size_t ldc, std::byte* tasks, const T* packed = nullptr) {
    if constexpr (std::is_same_v<T, float>) {
      kernels::GemmArgs args;
      args.sizes = {m, n, k};
      args.a = {a.data, a.row_stride, a.column_stride};
      args.b = {b.data, b.row_stride, b.column_stride};
      args.packed_b = packed;
      args.beta = beta;
      args.c = c;
      args.ldc = ldc;
      gemm_.Run(context_, args, tasks);
    } else {
      context_.threads().ParallelFor(m, 1, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          T* row = c + i * ldc;
          for (size_t j = 0; j < n; ++j) row[j] = beta == 0 ? 0 : row[j];
          for (size_t p = 0; p < k; ++p) {
            const T factor = a.data[i * a.row_stride + p * a.column_stride];
            const T* from = b.data + p * b.row_stride;
            for (size_t j = 0; j < n; ++j) row[j] += factor * from[j * b.column_stride];
          }
        }
      });
    }
  }

  // Rows of R from a gate on.
  const T* Recurrences(size_t d, size_t gate) const {
    return context_.Input(kInputR).data<T>() + (d * gates_ + gate) * hidden_ * hidden_;
  }

  void Pack(size_t d, size_t gate, size_t gates, T* packed) const {
    if constexpr (std::is_same_v<T, float>) {
      gemm_.Pack(kernels::RowMajor(Recurrences(d, gate), hidden_), hidden_, gates * hidden_,
                 packed);
    }
  }

  // to += dz R for the rows of the gates from `gate` on, in one step.
  void MultiplyStep(size_t d, size_t time, size_t gate, size_t gates, const T* packed, T beta,
                    T* to) {
    const Memory memory = Direction(d);
    const size_t stride = attrs_.batch_first ? sizes_.sequence * columns_ : columns_;
    const Matrix<T> dz = {memory.dz + Row(time, 0) * columns_ + gate * hidden_, stride};
    Multiply(sizes_.batch, hidden_, gates * hidden_, dz, {Recurrences(d, gate), hidden_}, beta, to,
             hidden_, memory.tasks, std::is_same_v<T, float> ? packed : nullptr);
  }

  // --- the walk ---

  void Walk(size_t d) {
    const Memory memory = Direction(d);
    LoadState(roles_.dh, d, memory.dh);
    LoadState(roles_.dc, d, memory.dc);
    if (!reads_states_in_y()) CopyStatesBefore(d, memory.previous);
    T* const packed_candidate = memory.packed + PackedSize(PlainGates() * hidden_);
    Pack(d, 0, PlainGates(), memory.packed);
    if (has_reset_states()) Pack(d, 2, 1, packed_candidate);
    if (has_linear_reset()) MultiplyCandidate(d);
    for (size_t i = 0; i < sizes_.sequence; ++i) {
      const size_t time = IsReversed(d) ? i : sizes_.sequence - 1 - i;
      ForEachRow([&](size_t b) { StepRow(d, time, b); });
      if (has_reset_states()) {
        MultiplyStep(d, time, 2, 1, packed_candidate, 0, memory.product);
        ForEachRow([&](size_t b) { StepReset(d, time, b); });
      }
      MultiplyStep(d, time, 0, PlainGates(), memory.packed, 1, memory.dh);
    }
  }

  void ForEachRow(FunctionRef<void(size_t b)> body) {
    constexpr size_t kElements = 4096;
    const size_t grain = std::max<size_t>(1, kElements / std::max<size_t>(1, hidden_));
    context_.threads().ParallelFor(sizes_.batch, grain, [&](size_t begin, size_t end) {
      for (size_t b = begin; b < end; ++b) body(b);
    });
  }

  void LoadState(size_t input, size_t d, T* to) const {
    for (size_t b = 0; b < sizes_.batch; ++b) {
      CopyOrZero(RowOf(input, StateRow(d, b), hidden_), to + b * hidden_);
    }
  }

  // The initial states of empty sequences have no effect.
  void StoreState(size_t output, size_t d, const T* from) {
    if (!context_.HasOutput(output)) return;
    T* const to = context_.Output(output).template data<T>();
    for (size_t b = 0; b < sizes_.batch; ++b) {
      const bool is_used = lens_ == nullptr || lens_[b] > 0;
      CopyOrZero(is_used ? from + b * hidden_ : nullptr, to + StateRow(d, b) * hidden_);
    }
  }

  void CopyOrZero(const T* from, T* to) const {
    if (from) {
      std::copy_n(from, hidden_, to);
    } else {
      std::fill_n(to, hidden_, T(0));
    }
  }

  void CopyStatesBefore(size_t d, T* to) {
    ForEachRow([&](size_t b) {
      for (size_t time = 0; time < sizes_.sequence; ++time) {
        const bool is_active = time < Length(b);
        const T* from = is_active ? Before(roles_.y, roles_.h0, d, time, b) : nullptr;
        CopyOrZero(from, to + Row(time, b) * hidden_);
      }
    });
  }

  // What the reset gates are multiplied by.
  void MultiplyCandidate(size_t d) {
    const Memory memory = Direction(d);
    const T* bias = RowOf(roles_.bias, d, 2 * columns_);
    for (size_t row = 0; row < rows_; ++row) {
      CopyOrZero(bias ? bias + columns_ + 2 * hidden_ : nullptr, memory.candidate + row * hidden_);
    }
    for (const Rows& rows : StatesBefore(d)) {
      if (rows.count == 0) continue;
      Multiply(rows.count, hidden_, hidden_, {rows.states, hidden_},
               TransposeOf(Recurrences(d, 2), hidden_), 1, memory.candidate + rows.first * hidden_,
               hidden_, memory.tasks);
    }
  }

  // From dh, the gradient of the state after the step, to dz and dh without the recurrences.
  void StepRow(size_t d, size_t time, size_t b) const {
    const Memory memory = Direction(d);
    const size_t row = Row(time, b), place = Place(d, time, b);
    T* const dz = memory.dz + row * columns_;
    if (time >= Length(b)) {
      std::fill_n(dz, columns_, T(0));
      if (is_gru()) std::fill_n(memory.candidate + row * hidden_, hidden_, T(0));
      return;
    }
    T* const dh = memory.dh + b * hidden_;
    if (const T* dy = RowOf(roles_.dy, place, hidden_)) {
      for (size_t i = 0; i < hidden_; ++i) dh[i] += dy[i];
    }
    T* const work = memory.work + b * 5 * hidden_;
    if (is_lstm()) {
      kernels::LstmCellGradient<T>(
          {activations_.data() + 3 * d, attrs_.input_forget, RowOf(roles_.gates, place, columns_),
           RowOf(roles_.cells, place, hidden_), Before(roles_.cells, roles_.c0, d, time, b),
           RowOf(roles_.peepholes, d, 3 * hidden_)},
          hidden_, dh, memory.dc + b * hidden_, dz, work);
    } else if (is_gru()) {
      const auto step = attrs_.linear_before_reset ? &kernels::GruCellLinearGradient<T>
                                                   : &kernels::GruCellOutputGradient<T>;
      step(GruArgs(d, time, b), hidden_, memory.candidate + row * hidden_, dh, dz, work);
    } else {
      kernels::RnnCellGradient(activations_[d], hidden_, RowOf(roles_.y, place, hidden_), dh, dz);
    }
  }

  kernels::GruCellGradientArgs<T> GruArgs(size_t d, size_t time, size_t b) const {
    return {activations_.data() + 2 * d, RowOf(roles_.gates, Place(d, time, b), columns_),
            StateBefore(d, time, b)};
  }

  // The reset gate's part, from the gradient of the reset states.
  void StepReset(size_t d, size_t time, size_t b) const {
    if (time >= Length(b)) return;
    const Memory memory = Direction(d);
    kernels::GruCellResetGradient(GruArgs(d, time, b), hidden_,
                                  static_cast<const T*>(memory.product + b * hidden_),
                                  memory.dh + b * hidden_, memory.dz + Row(time, b) * columns_);
  }

  // --- all steps ---

  void MultiplyAll(size_t d) {
    const Memory memory = Direction(d);
    const size_t in = sizes_.input, n = hidden_;
    const size_t shared = SharedGates() * n, plain = PlainGates() * n;
    const Matrix<T> dz = {memory.dz, columns_}, dz_transposed = TransposeOf(memory.dz, columns_);
    const Matrix<T> x = {context_.Input(kInputX).data<T>(), in};
    const T* const w = context_.Input(kInputW).data<T>() + d * columns_ * in;
    if (context_.HasOutput(kDw)) {
      T* const dw = Gradient(kDw) + d * columns_ * in;
      Multiply(shared, in, rows_, dz_transposed, x, 0, dw, in, memory.tasks);
      if (has_linear_reset()) {
        Multiply(n, in, rows_, TransposeOf(memory.candidate, n), x, 0, dw + shared * in, in,
                 memory.tasks);
      }
    }
    if (context_.HasOutput(kDr)) {
      T* const dr = Gradient(kDr) + d * columns_ * n;
      T beta = 0;
      for (const Rows& rows : StatesBefore(d)) {
        if (rows.count == 0 && beta != 0) continue;
        Multiply(plain, n, rows.count, TransposeOf(memory.dz + rows.first * columns_, columns_),
                 {rows.states, n}, beta, dr, n, memory.tasks);
        beta = 1;
      }
      if (has_reset_states()) {
        Multiply(n, n, rows_, TransposeOf(memory.dz + plain, columns_), {memory.candidate, n}, 0,
                 dr + plain * n, n, memory.tasks);
      }
    }
    if (context_.HasOutput(kDx)) {
      T* const dx = Gradient(kDx);
      Multiply(rows_, in, shared, dz, {w, in}, d > 0, dx, in, memory.tasks);
      if (has_linear_reset()) {
        Multiply(rows_, in, n, {memory.candidate, n}, {w + shared * in, in}, 1, dx, in,
                 memory.tasks);
      }
    }
    if (context_.HasOutput(kDb)) StoreBias(memory, Gradient(kDb) + d * 2 * columns_);
    if (is_lstm() && context_.HasOutput(kDp)) StorePeepholes(d, Gradient(kDp) + d * 3 * n);
  }

  T* Gradient(size_t i) { return context_.Output(i).template data<T>(); }

  // sums[i] = sum of row(time, b)[i] for all rows that are active, `columns` at a time.
  template <class Term>
  void SumRows(size_t columns, T* sums, const Term& term) {
    constexpr size_t kColumns = 64;
    context_.threads().ParallelFor(
        (columns + kColumns - 1) / kColumns, 1, [&](size_t begin, size_t end) {
          for (size_t part = begin; part < end; ++part) {
            const size_t first = part * kColumns, count = std::min(kColumns, columns - first);
            std::array<double, kColumns> all = {};
            for (size_t b = 0; b < sizes_.batch; ++b) {
              for (size_t time = 0; time < Length(b); ++time)
                term(time, b, first, count, all.data());
            }
            for (size_t i = 0; i < count; ++i) sums[first + i] = static_cast<T>(all[i]);
          }
        });
  }

  // Of all steps. Those after a sequence's end are zeros.
  void SumColumns(const T* rows, size_t columns, T* sums) {
    const size_t sizes[] = {rows_, columns};
    const bool reduced[] = {true, false};
    const kernels::ReducePlan plan = *kernels::MakeReducePlan(sizes, reduced);
    context_.threads().ParallelFor(plan.units, plan.grain, [&](size_t begin, size_t end) {
      constexpr auto kType =
          std::is_same_v<T, float> ? kernels::ElementType::kFloat : kernels::ElementType::kDouble;
      kernels::RunReduce(plan, kernels::ReduceOp::kSum, kType, rows, sums, begin, end);
    });
  }

  // Both halves, of inputs and of recurrences.
  void StoreBias(const Memory& memory, T* to) {
    SumColumns(memory.dz, columns_, to + columns_);
    std::copy_n(to + columns_, columns_, to);
    if (has_linear_reset()) SumColumns(memory.candidate, hidden_, to + 2 * hidden_);
  }

  // The gates i and f see the cell state before the step, o that after it.
  void StorePeepholes(size_t d, T* to) {
    const T* const dz = Direction(d).dz;
    for (size_t gate = 0; gate < 3; ++gate) {
      SumRows(hidden_, to + gate * hidden_,
              [&](size_t time, size_t b, size_t first, size_t count, double* all) {
                const T* cell = gate == 1 ? RowOf(roles_.cells, Place(d, time, b), hidden_)
                                          : Before(roles_.cells, roles_.c0, d, time, b);
                if (cell == nullptr) return;
                const T* row = dz + Row(time, b) * columns_ + gate * hidden_;
                for (size_t i = first; i < first + count; ++i) {
                  all[i - first] += static_cast<double>(row[i] * cell[i]);
                }
              });
    }
  }

  const Roles& roles_;
  const RecurrentAttrs& attrs_;
  const std::span<const CellActivation> activations_;
  const FloatGemm& gemm_;
  KernelContext& context_;
  RecurrentSizes sizes_;
  size_t gates_, hidden_, columns_, rows_;  // rows: of all steps
  const int32_t* lens_ = nullptr;
  std::byte* memory_ = nullptr;
  size_t task_bytes_ = 0, direction_bytes_ = 0;
  size_t offsets_[8] = {};  // in a direction's memory
};

template <const Roles& kRoles>
class RecurrentGradient final : public StatefulKernel<InferRecurrentGradient<kRoles>> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(this->Bind(info));
    gemm_ = FloatGemm(info);
    constexpr RecurrentKind kKind = kRoles.gates_per_cell == 4   ? RecurrentKind::kLstm
                                    : kRoles.gates_per_cell == 3 ? RecurrentKind::kGru
                                                                 : RecurrentKind::kRnn;
    TENON_ASSIGN_OR_RETURN(const size_t directions, DirectionCount(this->attrs_.direction));
    TENON_ASSIGN_OR_RETURN(activations_,
                           CellActivationsOf(this->attrs_, directions, DefaultActivations(kKind)));
    for (const CellActivation& f : activations_) {
      if (kernels::HasSlopes(f)) continue;
      return NotImplemented("no gradient through {} with alpha = {}", InfoOf(f.op).name, f.alpha);
    }
    // `clip` does not bound the argument of the output's activation.
    for (size_t i = 2; kKind == RecurrentKind::kLstm && i < activations_.size(); i += 3) {
      activations_[i].clip = CellActivation().clip;
    }
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    if (context.Input(kInputX).type() == DataType::kDouble) {
      return WalkBack<double>(kRoles, this->attrs_, activations_, gemm_, context).Run();
    }
    return WalkBack<float>(kRoles, this->attrs_, activations_, gemm_, context).Run();
  }

 private:
  std::vector<CellActivation> activations_;
  FloatGemm gemm_;
};

constexpr OpOptions kOptions = {.domain = "com.microsoft",
                                .types = {DataType::kFloat, DataType::kDouble}};

constexpr OpRow kRows[] = {
    OpClass<RecurrentGradient<kLstm>>("LSTMGrad", kOptions),
    OpClass<RecurrentGradient<kGru>>("GRUGrad", kOptions),
    OpClass<RecurrentGradient<kRnn>>("RNNGrad", kOptions),
};

}  // namespace

TENON_OP_FAMILY(RecurrentGradient, kRows);

}  // namespace tenon
