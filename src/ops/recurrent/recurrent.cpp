#include "ops/recurrent/recurrent.h"

#include <algorithm>

#include "base/arithmetic.h"
#include "kernels/gemm/gemm.h"
#include "ops/framework/expected_shape.h"
#include "runtime/kernel_info.h"

namespace tenon {
namespace {

using kernels::CellActivation;

// --- Attributes ---

// The function that a cell may have by this name, in capitals or not.
std::optional<UnaryOp> FindFunction(std::string_view name) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  for (size_t i = 0; i < kUnaryOpCount; ++i) {
    const auto op = static_cast<UnaryOp>(i);
    const bool has_name =
        std::equal(name.begin(), name.end(), InfoOf(op).name.begin(), InfoOf(op).name.end(),
                   [&](char a, char b) { return small(a) == small(b); });
    if (has_name && InfoOf(op).Has(kCell)) return op;
  }
  return std::nullopt;
}

}  // namespace

// --- Shapes ---

Result<size_t> DirectionCount(const std::string& direction) {
  // "foward" is GRU-1's default in its schema's spelling.
  if (direction == "forward" || direction == "foward" || direction == "reverse") return 1;
  if (direction == "bidirectional") return 2;
  return InvalidArgument("expected direction forward, reverse or bidirectional, got '{}'",
                         direction);
}

Result<std::vector<CellActivation>> CellActivationsOf(const RecurrentAttrs& attrs,
                                                      size_t directions,
                                                      std::span<const UnaryOp> defaults) {
  const size_t count = directions * defaults.size();
  // RNN's default has a second direction's activation, which one direction does not need.
  const size_t both = 2 * defaults.size();
  std::vector<CellActivation> activations;
  if (attrs.activations.empty()) {
    for (size_t i = 0; i < count; ++i) {
      activations.push_back({.op = defaults[i % defaults.size()]});
    }
  } else if (attrs.activations.size() != count && attrs.activations.size() != both) {
    return InvalidArgument("expected {} activations, got {}", count, attrs.activations.size());
  }
  // The lists of parameters have entries only for the activations that have such a parameter.
  size_t next_alpha = 0, next_beta = 0;
  for (const std::string& name : attrs.activations) {
    if (activations.size() == count) break;
    const std::optional<UnaryOp> op = FindFunction(name);
    if (!op) return InvalidArgument("unknown activation '{}'", name);
    const auto& [alpha, beta] = InfoOf(*op).parameters;
    CellActivation activation = {*op, alpha.fallback, beta.fallback};
    if (!alpha.name.empty() && next_alpha < attrs.activation_alpha.size()) {
      activation.alpha = attrs.activation_alpha[next_alpha++];
    }
    if (!beta.name.empty() && next_beta < attrs.activation_beta.size()) {
      activation.beta = attrs.activation_beta[next_beta++];
    }
    activations.push_back(activation);
  }
  if (attrs.clip && *attrs.clip > 0) {
    for (CellActivation& activation : activations) activation.clip = *attrs.clip;
  }
  return activations;
}

Status InferRecurrent(const RecurrentAttrs& attrs, size_t gates, ShapeContext& context,
                      const Dim& fed_back) {
  TENON_ASSIGN_OR_RETURN(const size_t directions, DirectionCount(attrs.direction));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(kInputX, 3));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape r, context.InputOfRank(kInputR, 3));
  const Dim& sequence = x[attrs.batch_first ? 1 : 0];
  const Dim& batch = x[attrs.batch_first ? 0 : 1];
  const Dim& hidden = r[2];
  const Dim d(static_cast<int64_t>(directions)), g(static_cast<int64_t>(gates));
  if (attrs.hidden_size != 0 && hidden.is_number() && !(hidden == Dim(attrs.hidden_size))) {
    return InvalidArgument("input 2: expected hidden_size = {} columns, got {}", attrs.hidden_size,
                           r);
  }
  const SymbolicShape state =
      attrs.batch_first ? SymbolicShape({batch, d, hidden}) : SymbolicShape({d, batch, hidden});
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kInputW, {d, g * hidden, x[2] + fed_back}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kInputR, {d, g * hidden, hidden}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kInputB, {d, Dim(2) * g * hidden}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kInputSequenceLens, {batch}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kInputInitialH, state));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kInputInitialC, state));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kInputP, {d, Dim(3) * hidden}));
  const auto every_step = [&](const Dim& columns) {
    return attrs.batch_first ? SymbolicShape({batch, sequence, d, columns})
                             : SymbolicShape({sequence, d, batch, columns});
  };
  TENON_RETURN_IF_ERROR(context.SetOutput(0, every_step(hidden)));
  const size_t first_kept = FirstKeptOutput(gates);
  for (size_t i = 1; i < context.output_count(); ++i) {
    const bool is_cell_state = gates == 4 && i == first_kept;
    TENON_RETURN_IF_ERROR(context.SetOutput(
        i, i < first_kept ? state : every_step(is_cell_state ? hidden : g * hidden)));
  }
  return OkStatus();
}

Result<const int32_t*> SequenceLens(const KernelContext& context, const RecurrentSizes& sizes) {
  if (!context.HasInput(kInputSequenceLens)) return nullptr;
  const auto* lens = context.Input(kInputSequenceLens).data<int32_t>();
  const auto limit = static_cast<int64_t>(sizes.sequence);
  for (size_t b = 0; b < sizes.batch; ++b) {
    if (lens[b] < 0 || lens[b] > limit) {
      return InvalidArgument("input 4: expected lengths in [0, {}], got {}", limit, lens[b]);
    }
  }
  return lens;
}

// --- Weights ---

Status RecurrentWeights::Prepare(const KernelInfo& info, size_t i, size_t first, size_t last,
                                 size_t parts) {
  gemm_ = FloatGemm(info);
  input_ = i, first_ = first, last_ = last, parts_ = parts;
  const Tensor* w = info.StoredConstant(i);
  if (w == nullptr || w->rank() != 3 || w->size() == 0) return OkStatus();
  const auto directions = static_cast<size_t>(w->shape()[0]);
  const auto rows = static_cast<size_t>(w->shape()[1]);
  const auto k = static_cast<size_t>(w->shape()[2]);
  const size_t part = rows / parts;
  const size_t n = part * (last - first);
  packed_stride_ = gemm_.PackedFloats(n, k);
  const std::optional<size_t> floats = CheckedMul(packed_stride_, directions);
  if (!floats) return RuntimeException("out of memory for packing input {} {}", i, w->shape());
  lazy_.Keep(*w,
             Format("recurrent, parts {} to {} of {}{}", first, last, parts,
                    gemm_.rounds() ? ", bfloat16" : ""),
             info.weights());
  packed_floats_ = *floats;
  return lazy_.Reserve(*floats);
}

// Into memory that is reserved, so it cannot fail.
const float* RecurrentWeights::Packed() const {
  return *lazy_.Get(packed_floats_, [&](const Tensor& w, float* packed) {
    const auto directions = static_cast<size_t>(w.shape()[0]);
    const auto rows = static_cast<size_t>(w.shape()[1]);
    const auto k = static_cast<size_t>(w.shape()[2]);
    const size_t part = rows / parts_;
    for (size_t d = 0; d < directions; ++d) {
      const float* from = w.data<float>() + (d * rows + first_ * part) * k;
      gemm_.Pack(kernels::Transposed(from, k), part * (last_ - first_), k,
                 packed + d * packed_stride_);
    }
  });
}

kernels::GemmArgs RecurrentWeights::Product(const KernelContext& context, size_t direction,
                                            size_t m) const {
  const Tensor& w = context.Input(input_);
  const auto rows = static_cast<size_t>(w.shape()[1]);
  const auto k = static_cast<size_t>(w.shape()[2]);
  const size_t part = rows / parts_;
  kernels::GemmArgs args;
  args.sizes = {m, part * (last_ - first_), k};
  if (lazy_.is_kept()) {
    args.packed_b = Packed() + direction * packed_stride_;
  } else {
    args.b = kernels::Transposed(w.data<float>() + (direction * rows + first_ * part) * k, k);
  }
  return args;
}

size_t RecurrentWeights::TaskBytes(const KernelContext& context, size_t m) const {
  const kernels::GemmArgs product = Product(context, 0, m);
  return gemm_.TaskBytes(context, product.sizes, product.packed_b != nullptr);
}

size_t RecurrentWeights::PackedFloatsBefore(const KernelContext& context) const {
  const Shape& w = context.Input(input_).shape();
  return gemm_.PackedFloats(static_cast<size_t>(w[1]) / parts_ * first_, static_cast<size_t>(w[2]));
}

void RecurrentStep::Multiply(const RecurrentWeights& weights, const float* a, float* y,
                             size_t y_stride, float beta) const {
  kernels::GemmArgs args = weights.Product(context, direction, sizes.batch);
  if (packed) args.packed_b = packed + weights.PackedFloatsBefore(context);
  args.a = kernels::RowMajor(a, sizes.hidden);
  args.beta = beta;
  args.c = y;
  args.ldc = y_stride;
  // Every other step begins with the weights that the one before read last and the cache still has.
  weights.gemm().Run(context, args, task_memory, time % 2 == 1);
}

void RecurrentStep::ForEachActiveRow(FunctionRef<void(size_t row)> body) const {
  constexpr size_t kRowsOfFloats = 4096;  // some 5 microseconds of a cell's functions
  const size_t grain = std::max<size_t>(1, kRowsOfFloats / std::max<size_t>(1, sizes.hidden));
  context.threads().ParallelFor(sizes.batch, grain, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      if (IsActive(row)) body(row);
    }
  });
}

// --- The walk ---

Status RecurrentLayer::Prepare(KernelInfo& info, const RecurrentAttrs& attrs, size_t gates) {
  TENON_ASSIGN_OR_RETURN(directions_, DirectionCount(attrs.direction));
  gates_ = gates;
  starts_reversed_ = attrs.direction == "reverse";
  batch_first_ = attrs.batch_first;
  has_constant_recurrences_ = info.StoredConstant(kInputR) != nullptr;
  split_ = gates == 3 && !attrs.linear_before_reset ? 2 : gates;
  gemm_ = FloatGemm(info);
  TENON_RETURN_IF_ERROR(input_weights_.Prepare(info, kInputW, 0, 1, 1));
  if (info.StoredConstant(kInputW)) info.ReleaseConstant(kInputW);
  return OkStatus();
}

// The data of one Run: the sizes and the memory.
class RecurrentLayer::RunState {
 public:
  RunState(const RecurrentLayer& layer, KernelContext& context, const RecurrentCell& cell)
      : layer_(layer), context_(context), cell_(cell) {
    const Shape& x = context.Input(kInputX).shape();
    const auto size = [&](size_t axis) { return static_cast<size_t>(x[axis]); };
    sizes_ = {layer.directions_, size(layer.batch_first_ ? 1 : 0), size(layer.batch_first_ ? 0 : 1),
              size(2), static_cast<size_t>(context.Input(kInputR).shape()[2])};
    columns_ = layer.gates_ * sizes_.hidden;
  }

  Status Run() {
    if (sizes_.batch == 0 || sizes_.hidden == 0) return OkStatus();
    TENON_ASSIGN_OR_RETURN(lens_, SequenceLens(context_, sizes_));
    TENON_RETURN_IF_ERROR(DivideScratch());
    for (size_t d = 0; d < sizes_.directions; ++d) {
      LoadStates(d);
      MultiplyInputs(d);
    }
    context_.threads().ParallelFor(sizes_.directions, 1, [&](size_t d, size_t) { Walk(d); });
    for (size_t d = 0; d < sizes_.directions; ++d) {
      StoreState(d, Direction(d).h, 1);
      if (is_lstm()) StoreState(d, Direction(d).c, 2);
    }
    return OkStatus();
  }

 private:
  bool is_lstm() const { return layer_.gates_ == 4; }

  struct Memory {
    float* bias;   // [columns]
    float* gates;  // [sequence, batch, columns], or [batch, sequence, columns] if batch_first
    float* h;      // [batch, hidden]
    float* c;
    float* work;
    float* packed;
    std::byte* tasks;
  };

  // One block of memory, divided among the directions. The products of all inputs are done before
  // the steps and use the same memory for their tasks.
  Status DivideScratch() {
    const size_t state = sizes_.batch * sizes_.hidden;
    const std::optional<size_t> gates = CheckedMul(sizes_.sequence * sizes_.batch, columns_);
    input_bytes_ = layer_.input_weights_.TaskBytes(context_, sizes_.sequence * sizes_.batch);
    const size_t step_bytes = cell_.TaskBytes(context_, sizes_);
    if (!gates) return OutOfMemory();
    const size_t floats[] = {
        columns_, computes_kept_gates() ? 0 : *gates, state,
        state,    cell_.WorkFloats(sizes_),           packs() ? PackedFloats(0, layer_.gates_) : 0};
    std::optional<size_t> bytes = RoundUp<size_t>(step_bytes, 64);
    for (size_t i = 0; i < std::size(floats) && bytes; ++i) {
      const std::optional<size_t> part = CheckedMul(floats[i], sizeof(float));
      const std::optional<size_t> whole = part ? CheckedRoundUp<size_t>(*part, 64) : std::nullopt;
      offsets_[i] = *bytes;
      bytes = whole ? CheckedAdd(*bytes, *whole) : std::nullopt;
    }
    if (!bytes) return OutOfMemory();
    direction_bytes_ = *bytes;
    const std::optional<size_t> all = CheckedMul(direction_bytes_, sizes_.directions);
    const std::optional<size_t> total =
        all ? CheckedAdd(*all, RoundUp<size_t>(input_bytes_, 64)) : std::nullopt;
    memory_ = total ? static_cast<std::byte*>(context_.Scratch(*total)) : nullptr;
    return memory_ ? OkStatus() : OutOfMemory();
  }

  Status OutOfMemory() const {
    return RuntimeException("out of memory: the gates of {} steps of {} rows", sizes_.sequence,
                            sizes_.batch);
  }

  Memory Direction(size_t d) const {
    std::byte* base = memory_ + RoundUp<size_t>(input_bytes_, 64) + d * direction_bytes_;
    const auto at = [&](size_t i) { return reinterpret_cast<float*>(base + offsets_[i]); };
    float* const gates =
        computes_kept_gates() ? context_.Output(KeptOutput()).data<float>() : at(1);
    return {at(0), gates, at(2), at(3), at(4), at(5), base};
  }

  // The output of the gates' activations, for training.
  size_t KeptOutput() const {
    return is_lstm() ? kAllCellStates + 1 : FirstKeptOutput(layer_.gates_);
  }
  // Whether the gates are computed where the activations go, which has the same order of rows.
  bool computes_kept_gates() const {
    return sizes_.directions == 1 && context_.HasOutput(KeptOutput());
  }

  // Whether R is packed in each run, which costs as much as a product or two.
  bool packs() const {
    constexpr size_t kFewestSteps = 4;
    return !layer_.has_constant_recurrences_ && sizes_.sequence >= kFewestSteps;
  }

  // Of the rows of the gates [first, last), which are packed in one or two parts.
  size_t PackedFloats(size_t first, size_t last) const {
    const size_t split = std::clamp(layer_.split_, first, last), hidden = sizes_.hidden;
    const FloatGemm& gemm = layer_.gemm_;
    return gemm.PackedFloats((split - first) * hidden, hidden) +
           gemm.PackedFloats((last - split) * hidden, hidden);
  }

  void PackRecurrences(size_t d, float* packed) const {
    const size_t hidden = sizes_.hidden;
    const float* r = context_.Input(kInputR).data<float>() + d * columns_ * hidden;
    const size_t split = layer_.split_;
    const FloatGemm& gemm = layer_.gemm_;
    gemm.Pack(kernels::Transposed(r, hidden), split * hidden, hidden, packed);
    gemm.Pack(kernels::Transposed(r + split * hidden * hidden, hidden),
              (layer_.gates_ - split) * hidden, hidden, packed + PackedFloats(0, split));
  }

  // Elements from one row of the batch to the next in initial and final states.
  size_t StateStride() const {
    return layer_.batch_first_ ? sizes_.directions * sizes_.hidden : sizes_.hidden;
  }
  size_t StateOffset(size_t d) const {
    return d * (layer_.batch_first_ ? sizes_.hidden : sizes_.batch * sizes_.hidden);
  }

  void LoadStates(size_t d) {
    const Memory memory = Direction(d);
    LoadState(d, kInputInitialH, memory.h);
    LoadState(d, kInputInitialC, memory.c);
  }

  void LoadState(size_t d, size_t input, float* into) {
    const size_t hidden = sizes_.hidden;
    if (!context_.HasInput(input)) {
      std::fill_n(into, sizes_.batch * hidden, 0.0f);
      return;
    }
    const float* from = context_.Input(input).data<float>() + StateOffset(d);
    for (size_t b = 0; b < sizes_.batch; ++b) {
      // The final states of an empty sequence are 0, as in onnxruntime.
      if (lens_ && lens_[b] == 0) {
        std::fill_n(into + b * hidden, hidden, 0.0f);
      } else {
        std::copy_n(from + b * StateStride(), hidden, into + b * hidden);
      }
    }
  }

  void StoreState(size_t d, const float* from, size_t output) {
    if (!context_.HasOutput(output)) return;
    float* into = context_.Output(output).data<float>() + StateOffset(d);
    for (size_t b = 0; b < sizes_.batch; ++b) {
      std::copy_n(from + b * sizes_.hidden, sizes_.hidden, into + b * StateStride());
    }
  }

  const float* BiasOf(size_t d) const {
    if (!context_.HasInput(kInputB)) return nullptr;
    return context_.Input(kInputB).data<float>() + d * 2 * columns_;
  }

  // gates = X W' + bias for all steps.
  void MultiplyInputs(size_t d) {
    const Memory memory = Direction(d);
    kernels::GemmArgs args =
        layer_.input_weights_.Product(context_, d, sizes_.sequence * sizes_.batch);
    args.a = kernels::RowMajor(context_.Input(kInputX).data<float>(), sizes_.input);
    args.c = memory.gates;
    args.ldc = columns_;
    if (const float* bias = BiasOf(d)) {
      const size_t joint = cell_.GatesWithJointBias() * sizes_.hidden;
      for (size_t i = 0; i < columns_; ++i) {
        memory.bias[i] = bias[i] + (i < joint ? bias[columns_ + i] : 0);
      }
      args.epilogue.bias_columns = memory.bias;
    }
    layer_.gemm_.Run(context_, args, memory_);
  }

  void Walk(size_t d) {
    const Memory memory = Direction(d);
    const float* const packed = packs() ? memory.packed : nullptr;
    if (packed) PackRecurrences(d, memory.packed);
    const bool is_reversed = layer_.starts_reversed_ || d == 1;
    const size_t row_stride = columns_ * (layer_.batch_first_ ? sizes_.sequence : 1);
    const size_t time_stride = columns_ * (layer_.batch_first_ ? 1 : sizes_.batch);
    for (size_t i = 0; i < sizes_.sequence; ++i) {
      const size_t time = is_reversed ? sizes_.sequence - 1 - i : i;
      const RecurrentStep step = {
          context_,   sizes_,   d,        BiasOf(d),       memory.gates + time * time_stride,
          row_stride, memory.h, memory.c, memory.work,     memory.tasks,
          packed,     lens_,    time,     KeptAt(d, time), OutputStride(columns_)};
      cell_.Step(step);
      StoreStates(step, step.h, 0);
      if (is_lstm()) StoreStates(step, step.c, kAllCellStates);
      for (size_t b = 0; b < sizes_.batch && step.kept; ++b) {
        if (!step.IsActive(b)) std::fill_n(step.Kept(b), columns_, 0.0f);
      }
    }
  }

  // Elements from one row of the batch to the next in outputs of all steps, whose last axis has so
  // many.
  size_t OutputStride(size_t columns) const {
    return layer_.batch_first_ ? sizes_.sequence * sizes_.directions * columns : columns;
  }
  // The first row of the batch there.
  float* OutputAt(size_t i, size_t d, size_t time, size_t columns) {
    const size_t step = time * sizes_.directions + d;
    return context_.Output(i).data<float>() +
           step * columns * (layer_.batch_first_ ? 1 : sizes_.batch);
  }
  float* KeptAt(size_t d, size_t time) {
    const size_t i = KeptOutput();
    return context_.HasOutput(i) ? OutputAt(i, d, time, columns_) : nullptr;
  }

  void StoreStates(const RecurrentStep& step, const float* states, size_t output) {
    if (!context_.HasOutput(output)) return;
    const size_t hidden = sizes_.hidden;
    float* to = OutputAt(output, step.direction, step.time, hidden);
    for (size_t b = 0; b < sizes_.batch; ++b, to += OutputStride(hidden)) {
      if (step.IsActive(b)) {
        std::copy_n(states + b * hidden, hidden, to);
      } else {
        std::fill_n(to, hidden, 0.0f);
      }
    }
  }

  static constexpr size_t kAllCellStates = FirstKeptOutput(4);

  const RecurrentLayer& layer_;
  KernelContext& context_;
  const RecurrentCell& cell_;
  RecurrentSizes sizes_;
  size_t columns_;  // of W' and R': gates * hidden
  const int32_t* lens_ = nullptr;
  std::byte* memory_ = nullptr;
  size_t input_bytes_ = 0, direction_bytes_ = 0;
  size_t offsets_[6] = {};  // in a direction's memory
};

Status RecurrentLayer::Run(KernelContext& context, const RecurrentCell& cell) const {
  return RunState(*this, context, cell).Run();
}

}  // namespace tenon
