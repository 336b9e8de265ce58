#include "kernels/elementwise/recurrent_cell.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/recurrent_cell.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"
#include "kernels/elementwise/unary_functors-inl.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_RECURRENT_CELL_CPP_
#define TENON_KERNELS_RECURRENT_CELL_CPP_
namespace tenon::kernels {

struct RecurrentCellTable {
  decltype(&LstmCell) lstm;
  decltype(&GruCellLinear) gru_linear;
  decltype(&GruCellGates) gru_gates;
  decltype(&GruCellOutput) gru_output;
  decltype(&RnnCell) rnn;
};

}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;

// One copy for all cells: beside the function, the call and the branch cost little.
HWY_NOINLINE V Apply(const CellActivation& activation, V x) {
  const Tag d;
  x = ClampKeepNan(d, x, -activation.clip, activation.clip);
  const V a = hn::Set(d, activation.alpha), b = hn::Set(d, activation.beta);
  switch (activation.op) {
#define UNARY_FUNCTION(name, ...)                        \
  case UnaryOp::k##name:                                 \
    if constexpr (InfoOf(UnaryOp::k##name).Has(kCell)) { \
      return name##Functor()(d, x, a, b);                \
    }                                                    \
    break;
#include "base/unary_functions.inc"
  }
  return x;
}

struct WholeAccess {
  V Load(const float* p) const { return hn::LoadU(Tag(), p); }
  void Store(V v, float* p) const { hn::StoreU(v, Tag(), p); }
};
struct PartialAccess {
  size_t n;
  V Load(const float* p) const { return LoadPartial(Tag(), p, n); }
  void Store(V v, float* p) const { StorePartial(v, Tag(), p, n); }
};

// The functions of a cell as it names them.
struct NamedFunction {
  const CellActivation& activation;
  HWY_INLINE V operator()(V x) const { return Apply(activation, x); }
};
// The usual ones, side by side without calls: each of them waits for its own results.
struct SigmoidFunction {
  HWY_INLINE V operator()(V x) const { return Sigmoid(Tag(), x); }
};
struct TanhFunction {
  HWY_INLINE V operator()(V x) const { return Tanh(Tag(), x); }
};

bool Is(const CellActivation& activation, UnaryOp op) {
  return activation.op == op && activation.clip == CellActivation().clip;
}

// Calls body(i, access) for every vector of [0, n).
template <class Body>
HWY_INLINE void ForEachVector(size_t n, Body body) {
  const size_t lanes = hn::Lanes(Tag());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, WholeAccess{});
  if (i < n) body(i, PartialAccess{n - i});
}

// Calls body(i, access, f, g) likewise, with f and g as functions of a vector.
template <class Body>
HWY_INLINE void ForEachVector(size_t n, const CellActivation& f, const CellActivation& g,
                              Body body) {
  const NamedFunction named_f = {f}, named_g = {g};
  if (!Is(f, UnaryOp::kSigmoid) || !Is(g, UnaryOp::kTanh)) {
    return ForEachVector(
        n, [&](size_t i, auto access) HWY_ATTR { body(i, access, named_f, named_g); });
  }
  const size_t lanes = hn::Lanes(Tag());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, WholeAccess{}, SigmoidFunction{}, TanhFunction{});
  if (i < n) body(i, PartialAccess{n - i}, named_f, named_g);
}

void Lstm(const LstmActivations& activations, size_t hidden, const float* gates,
          const float* peepholes, float* c, float* h, float* kept) {
  const bool usual_state = Is(activations.h, UnaryOp::kTanh);
  ForEachVector(hidden, activations.f, activations.g,
                [&](size_t i, auto access, auto f, auto g) HWY_ATTR {
                  const Tag d;
                  V input = access.Load(gates + i);
                  V output = access.Load(gates + hidden + i);
                  V forget = access.Load(gates + 2 * hidden + i);
                  V cell = access.Load(c + i);
                  if (peepholes) {
                    input = hn::MulAdd(access.Load(peepholes + i), cell, input);
                    forget = hn::MulAdd(access.Load(peepholes + 2 * hidden + i), cell, forget);
                  }
                  input = f(input);
                  forget = activations.input_forget ? hn::Sub(hn::Set(d, 1.0f), input) : f(forget);
                  const V candidate = g(access.Load(gates + 3 * hidden + i));
                  cell = hn::MulAdd(forget, cell, hn::Mul(input, candidate));
                  if (peepholes) {
                    output = hn::MulAdd(access.Load(peepholes + hidden + i), cell, output);
                  }
                  output = f(output);
                  if (kept) {
                    access.Store(input, kept + i);
                    access.Store(output, kept + hidden + i);
                    access.Store(forget, kept + 2 * hidden + i);
                    access.Store(candidate, kept + 3 * hidden + i);
                  }
                  access.Store(cell, c + i);
                  const V state = usual_state ? Tanh(d, cell) : Apply(activations.h, cell);
                  access.Store(hn::Mul(output, state), h + i);
                });
}

// (1 - z) n + z h.
HWY_INLINE V Blend(V z, V n, V h) { return hn::MulAdd(z, hn::Sub(h, n), n); }

void GruLinear(const GruActivations& activations, size_t hidden, const float* inputs,
               const float* recurrences, float* h, float* kept) {
  ForEachVector(
      hidden, activations.f, activations.g, [&](size_t i, auto access, auto f, auto g) HWY_ATTR {
        const auto load = [&](const float* gate) HWY_ATTR { return access.Load(gate + i); };
        const V z = f(hn::Add(load(inputs), load(recurrences)));
        const V r = f(hn::Add(load(inputs + hidden), load(recurrences + hidden)));
        const V n = g(hn::MulAdd(r, load(recurrences + 2 * hidden), load(inputs + 2 * hidden)));
        if (kept) {
          access.Store(z, kept + i);
          access.Store(r, kept + hidden + i);
          access.Store(n, kept + 2 * hidden + i);
        }
        access.Store(Blend(z, n, load(h)), h + i);
      });
}

void GruGates(const GruActivations& activations, size_t hidden, float* z_r, const float* h,
              float* reset, float* kept) {
  ForEachVector(hidden, [&](size_t i, auto access) HWY_ATTR {
    const V z = Apply(activations.f, access.Load(z_r + i));
    const V r = Apply(activations.f, access.Load(z_r + hidden + i));
    access.Store(z, z_r + i);
    if (kept) {
      access.Store(z, kept + i);
      access.Store(r, kept + hidden + i);
    }
    access.Store(hn::Mul(r, access.Load(h + i)), reset + i);
  });
}

void GruOutput(const GruActivations& activations, size_t hidden, const float* z,
               const float* candidate, float* h, float* kept_candidate) {
  ForEachVector(hidden, [&](size_t i, auto access) HWY_ATTR {
    const V n = Apply(activations.g, access.Load(candidate + i));
    if (kept_candidate) access.Store(n, kept_candidate + i);
    access.Store(Blend(access.Load(z + i), n, access.Load(h + i)), h + i);
  });
}

void Rnn(const CellActivation& f, size_t hidden, const float* gate, float* h) {
  ForEachVector(hidden, [&](size_t i, auto access)
                            HWY_ATTR { access.Store(Apply(f, access.Load(gate + i)), h + i); });
}

}  // namespace

const RecurrentCellTable kRecurrentCellTable = {&Lstm, &GruLinear, &GruGates, &GruOutput, &Rnn};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {
namespace {

const RecurrentCellTable& Table() {
  return TENON_SELECT_TABLE(RecurrentCellTable, kRecurrentCellTable);
}

}  // namespace

void LstmCell(const LstmActivations& activations, size_t hidden, const float* gates,
              const float* peepholes, float* c, float* h, float* kept) {
  Table().lstm(activations, hidden, gates, peepholes, c, h, kept);
}

void GruCellLinear(const GruActivations& activations, size_t hidden, const float* inputs,
                   const float* recurrences, float* h, float* kept) {
  Table().gru_linear(activations, hidden, inputs, recurrences, h, kept);
}

void GruCellGates(const GruActivations& activations, size_t hidden, float* z_r, const float* h,
                  float* reset, float* kept) {
  Table().gru_gates(activations, hidden, z_r, h, reset, kept);
}

void GruCellOutput(const GruActivations& activations, size_t hidden, const float* z,
                   const float* candidate, float* h, float* kept_candidate) {
  Table().gru_output(activations, hidden, z, candidate, h, kept_candidate);
}

void RnnCell(const CellActivation& f, size_t hidden, const float* gate, float* h) {
  Table().rnn(f, hidden, gate, h);
}

}  // namespace tenon::kernels
#endif
