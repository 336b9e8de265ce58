// The element-wise part of a step of the gradients of LSTM-22, GRU-22 and RNN-22, for one row of
// the batch. Arrays have `hidden` elements of T, float or double, or that many for each gate. dh is
// the gradient of the state after the step, dz that of the gates' sums. Functions may be called
// from several threads at once.
#pragma once

#include <cstddef>

#include "kernels/elementwise/recurrent_cell.h"

namespace tenon::kernels {

// Whether a function's slope can be told from its value, as is done here.
bool HasSlopes(const CellActivation& f);

template <class T>
struct LstmCellGradientArgs {
  const CellActivation* activations;  // f, g and h
  bool input_forget;
  const T* gates;      // [4, hidden], as the forward kept them
  const T* cell;       // the cell's state after the step
  const T* before;     // that before it; null if it is 0
  const T* peepholes;  // [3, hidden] or null
};

// Sets dz, [4, hidden]. dh becomes 0, and dc the gradient of the cell's state before the step.
// work: [5, hidden].
template <class T>
void LstmCellGradient(const LstmCellGradientArgs<T>& args, size_t hidden, T* dh, T* dc, T* dz,
                      T* work);

template <class T>
struct GruCellGradientArgs {
  const CellActivation* activations;  // f and g
  const T* gates;                     // [3, hidden], as the forward kept them
  const T* before;                    // the state before the step
};

// linear_before_reset != 0: sets dz, [3, hidden], as the recurrences see it. `candidate` has what
// was reset, and gets dz of the candidate, as the inputs see it. dh keeps what goes to the state
// before the step directly. work: [3, hidden].
template <class T>
void GruCellLinearGradient(const GruCellGradientArgs<T>& args, size_t hidden, T* candidate, T* dh,
                           T* dz, T* work);

// linear_before_reset == 0, in two halves: the first does not set dz of r, and `reset` gets the
// reset state. Its gradient d_reset follows from dz, and makes the rest.
template <class T>
void GruCellOutputGradient(const GruCellGradientArgs<T>& args, size_t hidden, T* reset, T* dh,
                           T* dz, T* work);
template <class T>
void GruCellResetGradient(const GruCellGradientArgs<T>& args, size_t hidden, const T* d_reset,
                          T* dh, T* dz);

// Of h = f(sum). dh becomes 0.
template <class T>
void RnnCellGradient(const CellActivation& f, size_t hidden, const T* h, T* dh, T* dz);

}  // namespace tenon::kernels
