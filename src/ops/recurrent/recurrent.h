// Shared by LSTM, GRU and RNN: attributes, shapes, the product of all inputs at once, and the loop
// over time in one direction or both.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/elementwise/recurrent_cell.h"
#include "ops/framework/lazy_weights.h"
#include "ops/framework/op_row.h"
#include "ops/linear/float_gemm.h"
#include "runtime/kernel_info.h"

namespace tenon {

struct RecurrentAttrs {
  std::vector<std::string> activations;
  std::vector<float> activation_alpha, activation_beta;
  std::optional<float> clip;
  std::string direction = "forward";
  int64_t hidden_size = 0;
  bool batch_first = false;  // `layout`, since version 14
  bool input_forget = false;
  bool linear_before_reset = false;
  static constexpr auto Fields() {
    using A = RecurrentAttrs;
    return std::tuple(Field("activations", &A::activations),
                      Field("activation_alpha", &A::activation_alpha),
                      Field("activation_beta", &A::activation_beta), Field("clip", &A::clip),
                      Field("direction", &A::direction), Field("hidden_size", &A::hidden_size),
                      Field("layout", &A::batch_first), Field("input_forget", &A::input_forget),
                      Field("linear_before_reset", &A::linear_before_reset));
  }
};

// The inputs by position; only LSTMs have those from kInputInitialC on, and AttnLSTM those from
// kInputQueryWeight on.
enum RecurrentInput : size_t {
  kInputX,
  kInputW,
  kInputR,
  kInputB,
  kInputSequenceLens,
  kInputInitialH,
  kInputInitialC,
  kInputP,
  kInputQueryWeight,
  kInputMemoryWeight,
  kInputScoreWeight,
  kInputMemory,
  kInputMemoryLens,
  kInputAttentionWeight,
};

// The first output that only training has: of LSTMTraining all cell states and then the gates, of
// GRUTraining the gates.
constexpr size_t FirstKeptOutput(size_t gates) { return gates == 4 ? 3 : 2; }

// Shapes of Y, Y_h, for an LSTM Y_c, and what training keeps, for a cell with `gates` gates whose
// input is X and `fed_back` more columns. Errors: kInvalidArgument if the inputs' shapes do not fit
// together.
Status InferRecurrent(const RecurrentAttrs& attrs, size_t gates, ShapeContext& context,
                      const Dim& fed_back = Dim(0));

// The activations of every direction, `defaults.size()` for each, in the attribute's order; the
// defaults if it is absent. Errors: an unknown name, or a wrong number of them.
Result<std::vector<kernels::CellActivation>> CellActivationsOf(const RecurrentAttrs& attrs,
                                                               size_t directions,
                                                               std::span<const UnaryOp> defaults);

struct RecurrentSizes {
  size_t directions, sequence, batch, input, hidden;
};

// The lengths of the batch's sequences; null if that input is absent. Error: kInvalidArgument if
// one is negative or longer than the input.
Result<const int32_t*> SequenceLens(const KernelContext& context, const RecurrentSizes& sizes);

// Some rows of the weights of each direction, W [directions, rows, columns]: y = x W'.
class RecurrentWeights {
 public:
  // Prepares the rows [first, last) of constant input `i`, counted in rows / parts; they are packed
  // in the first run. E.g. first 2, last 3, parts 3: the last third of the rows. Error: out of
  // memory.
  Status Prepare(const KernelInfo& info, size_t i, size_t first, size_t last, size_t parts);

  // The product with a matrix of m rows, without its A, C and epilogue.
  kernels::GemmArgs Product(const KernelContext& context, size_t direction, size_t m) const;
  // What computes it.
  const FloatGemm& gemm() const { return gemm_; }
  // Bytes of memory for it.
  size_t TaskBytes(const KernelContext& context, size_t m) const;

  // Floats of the rows before these if they are packed.
  size_t PackedFloatsBefore(const KernelContext& context) const;

 private:
  const float* Packed() const;

  FloatGemm gemm_;
  size_t input_ = 0, first_ = 0, last_ = 0, parts_ = 1;
  size_t packed_floats_ = 0;
  LazyWeights lazy_;
  size_t packed_stride_ = 0;  // in floats
};

// One step of one direction, for all rows of the batch.
struct RecurrentStep {
  KernelContext& context;
  const RecurrentSizes& sizes;
  size_t direction;
  const float* bias;  // [2, gates, hidden], or null
  float* gates;       // [batch, gates, hidden]: x W' + bias; may be written
  size_t gates_stride;
  float* h;  // [batch, hidden]: the state before and after
  float* c;  // likewise
  float* work;
  std::byte* task_memory;
  const float* packed;           // R, if it is no constant and has been packed for the run
  const int32_t* sequence_lens;  // null: all rows are active
  size_t time;
  // For training, or null: the gates of the batch's first row, after their activations. May be
  // `gates` itself.
  float* kept;
  size_t kept_stride;  // from one row to the next

  float* Kept(size_t row) const { return kept ? kept + row * kept_stride : nullptr; }

  // Rows after their end keep their state.
  bool IsActive(size_t row) const {
    return sequence_lens == nullptr || static_cast<int64_t>(time) < sequence_lens[row];
  }
  // Calls body(row) for every active row.
  void ForEachActiveRow(FunctionRef<void(size_t row)> body) const;
  // y = a W' + beta y; a is [batch, hidden], and y_stride is in elements.
  void Multiply(const RecurrentWeights& weights, const float* a, float* y, size_t y_stride,
                float beta) const;
};

// The work of an operator between two steps. Immutable once made.
class RecurrentCell {
 public:
  virtual ~RecurrentCell() = default;
  // Floats of `work` that a direction's steps need.
  virtual size_t WorkFloats(const RecurrentSizes& sizes) const = 0;
  // Bytes of `task_memory` for the same.
  virtual size_t TaskBytes(const KernelContext& context, const RecurrentSizes& sizes) const = 0;
  // How many of the gates have the recurrence's bias added to the inputs' bias; it belongs to the
  // first ones.
  virtual size_t GatesWithJointBias() const = 0;
  virtual void Step(const RecurrentStep& step) const = 0;
};

// The loop over time. Immutable once prepared.
class RecurrentLayer {
 public:
  // Packs W.
  Status Prepare(KernelInfo& info, const RecurrentAttrs& attrs, size_t gates);
  size_t directions() const { return directions_; }
  Status Run(KernelContext& context, const RecurrentCell& cell) const;

 private:
  class RunState;

  size_t gates_ = 0;
  size_t directions_ = 1;
  bool starts_reversed_ = false;
  bool batch_first_ = false;
  bool has_constant_recurrences_ = false;
  size_t split_ = 0;  // R's gates from here on are multiplied apart
  RecurrentWeights input_weights_;
  FloatGemm gemm_;
};

// Number of directions that the attribute names. Error: another text.
Result<size_t> DirectionCount(const std::string& direction);

}  // namespace tenon
