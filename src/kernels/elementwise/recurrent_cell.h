// The element-wise part of a step of LSTM-22, GRU-22 and RNN-22, for one row of the batch, after
// the matrix products. Arrays have `hidden` floats, or that many for each gate. `kept`, if not
// null, receives the gates after their activations, and may be where the gates are. Functions may
// be called from several threads at once.
#pragma once

#include <cstddef>
#include <limits>

#include "base/unary_functions.h"

namespace tenon::kernels {

// A cell's activation: a function with the trait kCell. Its argument is first clamped to [-clip,
// clip].
struct CellActivation {
  UnaryOp op = UnaryOp::kTanh;
  float alpha = 0;
  float beta = 0;
  float clip = std::numeric_limits<float>::infinity();
};

struct LstmActivations {
  CellActivation f, g, h;
  bool input_forget = false;  // the forget gate is 1 minus the input gate
};

// gates: [4, hidden] in the order i, o, f, c. peepholes: [3, hidden] in the order i, o, f; or null.
// c is the cell state before and after; h receives the output.
void LstmCell(const LstmActivations& activations, size_t hidden, const float* gates,
              const float* peepholes, float* c, float* h, float* kept = nullptr);

struct GruActivations {
  CellActivation f, g;
};

// linear_before_reset != 0: inputs and recurrences are [3, hidden] in the order z, r, h; h is the
// state before and after.
void GruCellLinear(const GruActivations& activations, size_t hidden, const float* inputs,
                   const float* recurrences, float* h, float* kept = nullptr);

// linear_before_reset == 0, in two halves. First z_r, [2, hidden], becomes the gates, and reset = r
// * h. Then the state follows from z and `candidate`, to which the product with `reset` was added.
void GruCellGates(const GruActivations& activations, size_t hidden, float* z_r, const float* h,
                  float* reset, float* kept = nullptr);
void GruCellOutput(const GruActivations& activations, size_t hidden, const float* z,
                   const float* candidate, float* h, float* kept_candidate = nullptr);

// h = f(gate).
void RnnCell(const CellActivation& f, size_t hidden, const float* gate, float* h);

}  // namespace tenon::kernels
