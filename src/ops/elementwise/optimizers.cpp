// ai.onnx.preview.training: Adagrad, Adam and Momentum, which update any number of tensors at once.
// The inputs are the learning rate R, the update count T, then n tensors X, their n gradients G,
// and n tensors of each kind of state; the outputs are the n new X and the new states.
#include <cmath>
#include <type_traits>

#include "ops/framework/element.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

constexpr TypeSet kTypes = {DataType::kFloat, DataType::kDouble};

// Adagrad-1.
struct Adagrad {
  float decay_factor = 0, epsilon = 0, norm_coefficient = 0;
  static constexpr auto Fields() {
    return std::tuple(Field("decay_factor", &Adagrad::decay_factor),
                      Field("epsilon", &Adagrad::epsilon),
                      Field("norm_coefficient", &Adagrad::norm_coefficient));
  }
  static constexpr size_t kStates = 1;  // H

  Status Check() const { return OkStatus(); }

  template <class T>
  struct Step {
    T rate, norm, epsilon;
    Step(const Adagrad& attrs, double r, int64_t t)
        : rate(static_cast<T>(r / (1 + static_cast<double>(t) * attrs.decay_factor))),
          norm(attrs.norm_coefficient),
          epsilon(attrs.epsilon) {}
    T Update(T x, T g, const T* state, T* new_state) const {
      const T gradient = norm * x + g;
      new_state[0] = state[0] + gradient * gradient;
      return x - rate * gradient / (std::sqrt(new_state[0]) + epsilon);
    }
  };
};

// Adam-1.
struct Adam {
  float alpha = 0, beta = 0, epsilon = 0, norm_coefficient = 0, norm_coefficient_post = 0;
  static constexpr auto Fields() {
    return std::tuple(Field("alpha", &Adam::alpha), Field("beta", &Adam::beta),
                      Field("epsilon", &Adam::epsilon),
                      Field("norm_coefficient", &Adam::norm_coefficient),
                      Field("norm_coefficient_post", &Adam::norm_coefficient_post));
  }
  static constexpr size_t kStates = 2;  // V, H

  Status Check() const { return OkStatus(); }

  template <class T>
  struct Step {
    T rate, alpha, beta, epsilon, norm, shrink;
    Step(const Adam& attrs, double r, int64_t t)
        : rate(static_cast<T>(Rate(attrs, r, t))),
          alpha(attrs.alpha),
          beta(attrs.beta),
          epsilon(attrs.epsilon),
          norm(attrs.norm_coefficient),
          shrink(1 - static_cast<T>(attrs.norm_coefficient_post)) {}
    static double Rate(const Adam& attrs, double r, int64_t t) {
      if (t <= 0) return r;
      const auto count = static_cast<double>(t);
      return r * std::sqrt(1 - std::pow(static_cast<double>(attrs.beta), count)) /
             (1 - std::pow(static_cast<double>(attrs.alpha), count));
    }
    T Update(T x, T g, const T* state, T* new_state) const {
      const T gradient = norm * x + g;
      new_state[0] = alpha * state[0] + (1 - alpha) * gradient;
      new_state[1] = beta * state[1] + (1 - beta) * gradient * gradient;
      const T updated = x - rate * new_state[0] / (std::sqrt(new_state[1]) + epsilon);
      return shrink * updated;
    }
  };
};

// Momentum-1.
struct Momentum {
  float alpha = 0, beta = 0, norm_coefficient = 0;
  std::string mode;
  static constexpr auto Fields() {
    return std::tuple(Field("alpha", &Momentum::alpha), Field("beta", &Momentum::beta),
                      Field("norm_coefficient", &Momentum::norm_coefficient),
                      Field("mode", &Momentum::mode));
  }
  static constexpr size_t kStates = 1;  // V

  Status Check() const {
    if (mode == "standard" || mode == "nesterov") return OkStatus();
    return InvalidArgument("attribute 'mode': expected standard or nesterov, got '{}'", mode);
  }

  template <class T>
  struct Step {
    T rate, alpha, beta, norm;
    bool is_nesterov;
    Step(const Momentum& attrs, double r, int64_t t)
        : rate(static_cast<T>(r)),
          alpha(attrs.alpha),
          beta(t > 0 ? attrs.beta : 1),
          norm(attrs.norm_coefficient),
          is_nesterov(attrs.mode == "nesterov") {}
    T Update(T x, T g, const T* state, T* new_state) const {
      const T gradient = norm * x + g;
      new_state[0] = alpha * state[0] + beta * gradient;
      return x - rate * (is_nesterov ? gradient + alpha * new_state[0] : new_state[0]);
    }
  };
};

// How many tensors a node updates.
template <class Optimizer>
Result<size_t> CountOf(size_t inputs, size_t outputs) {
  constexpr size_t kGroups = 2 + Optimizer::kStates;  // X, G, states
  if (inputs <= 2 || (inputs - 2) % kGroups != 0) {
    return InvalidArgument("expected 2 inputs and a multiple of {} more, got {}", kGroups, inputs);
  }
  const size_t count = (inputs - 2) / kGroups;
  if (outputs != count * (1 + Optimizer::kStates)) {
    return InvalidArgument("expected {} outputs for {} tensors, got {}",
                           count * (1 + Optimizer::kStates), count, outputs);
  }
  return count;
}

// Input of output `i`: the tensor or state that it replaces.
size_t ReplacedInput(size_t i, size_t count) { return 2 + (i < count ? i : i + count); }

template <class Optimizer>
Status InferOptimizer(const Optimizer& optimizer, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(optimizer.Check());
  TENON_ASSIGN_OR_RETURN(const size_t count,
                         CountOf<Optimizer>(context.input_count(), context.output_count()));
  TENON_RETURN_IF_ERROR(CheckInputsAreThere(context, 0));
  for (size_t i = 0; i < context.output_count(); ++i) {
    const size_t input = ReplacedInput(i, count);
    TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(input));
    TENON_RETURN_IF_ERROR(context.SetOutput(i, std::move(shape), context.ElementType(input)));
  }
  return OkStatus();
}

Status CheckScalars(KernelContext& context) {
  const Tensor& rate = context.Input(0);
  const Tensor& updates = context.Input(1);
  if (rate.size() != 1 || !kTypes.Contains(rate.type())) {
    return InvalidArgument("input 0: expected one learning rate, got {} {}",
                           DataTypeName(rate.type()), rate.shape());
  }
  if (updates.size() != 1 || updates.type() != DataType::kInt64) {
    return InvalidArgument("input 1: expected one int64, got {} {}", DataTypeName(updates.type()),
                           updates.shape());
  }
  return OkStatus();
}

template <class T, class Optimizer>
void UpdateTensor(const typename Optimizer::template Step<T>& step, size_t tensor, size_t count,
                  KernelContext& context) {
  constexpr size_t kStates = Optimizer::kStates;
  const T* x = context.Input(2 + tensor).data<T>();
  const T* g = context.Input(2 + count + tensor).data<T>();
  T* y = context.Output(tensor).data<T>();
  const T* states[kStates];
  T* new_states[kStates];
  for (size_t k = 0; k < kStates; ++k) {
    states[k] = context.Input(2 + (2 + k) * count + tensor).data<T>();
    new_states[k] = context.Output((1 + k) * count + tensor).data<T>();
  }
  context.threads().ParallelFor(static_cast<size_t>(context.Output(tensor).size()),
                                CopyGrain(sizeof(T)), [&](size_t begin, size_t end) {
                                  for (size_t i = begin; i < end; ++i) {
                                    T state[kStates], next[kStates];
                                    for (size_t k = 0; k < kStates; ++k) state[k] = states[k][i];
                                    y[i] = step.Update(x[i], g[i], state, next);
                                    for (size_t k = 0; k < kStates; ++k) new_states[k][i] = next[k];
                                  }
                                });
}

template <class Optimizer>
Status RunOptimizer(const Optimizer& optimizer, KernelContext& context) {
  TENON_RETURN_IF_ERROR(CheckScalars(context));
  TENON_ASSIGN_OR_RETURN(const size_t count,
                         CountOf<Optimizer>(context.input_count(), context.output_count()));
  const Tensor& rate = context.Input(0);
  const double r = rate.type() == DataType::kFloat ? static_cast<double>(*rate.data<float>())
                                                   : *rate.data<double>();
  const int64_t t = *context.Input(1).data<int64_t>();
  for (size_t tensor = 0; tensor < count; ++tensor) {
    const Tensor& x = context.Input(2 + tensor);
    for (size_t input = 2 + count + tensor; input < context.input_count(); input += count) {
      const Tensor& other = context.Input(input);
      if (other.type() != x.type() || !(other.shape() == x.shape())) {
        return InvalidArgument("input {}: expected {} {} as of input {}, got {} {}", input,
                               DataTypeName(x.type()), x.shape(), 2 + tensor,
                               DataTypeName(other.type()), other.shape());
      }
    }
    for (size_t i = tensor; i < context.output_count(); i += count) {
      if (!context.HasOutput(i)) return InvalidArgument("output {} is required and missing", i);
    }
    if (x.type() == DataType::kFloat) {
      UpdateTensor<float, Optimizer>({optimizer, r, t}, tensor, count, context);
    } else {
      UpdateTensor<double, Optimizer>({optimizer, r, t}, tensor, count, context);
    }
  }
  return OkStatus();
}

constexpr std::string_view kTraining = "ai.onnx.preview.training";

template <class Optimizer>
constexpr OpRow Row(std::string_view name) {
  return Op<&InferOptimizer<Optimizer>, &RunOptimizer<Optimizer>>(
      name, {.domain = kTraining, .since = 1, .types = kTypes});
}

constexpr OpRow kRows[] = {
    Row<Adagrad>("Adagrad"),
    Row<Adam>("Adam"),
    Row<Momentum>("Momentum"),
};

}  // namespace

TENON_OP_FAMILY(Optimizers, kRows);

}  // namespace tenon
