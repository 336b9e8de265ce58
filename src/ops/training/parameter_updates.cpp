// What changes its inputs' memory: InPlaceAccumulatorV2, InplaceClipGradNorm, AdamWOptimizer and
// SGDOptimizerV2 of com.microsoft. Buffers of gradients, parameters and moments belong to the
// caller, who feeds them in each run; outputs that contain them share their memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "kernels/adamw.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/framework/stateful_kernel.h"

namespace tenon {
namespace {

// Elements of a task. Sums are of tasks, so that they do not depend on the number of threads.
constexpr size_t kGrain = 16384;

// That a kernel may write the input: a constant may lie in a file that is mapped read-only.
Status CheckIsFed(const KernelInfo& info, size_t i) {
  const Graph& graph = info.graph();
  const ValueInfo& value = graph.value(info.node().inputs[i]);
  const Node* const producer =
      value.producer == NodeId::kNone ? nullptr : graph.FindNode(value.producer);
  const bool is_clipped = producer != nullptr && producer->op_type == "InplaceClipGradNorm";
  if (is_clipped || (producer == nullptr && !value.initializer.has_value())) return OkStatus();
  return InvalidGraph(
      "input {}: it is changed in place, so it must be an input of the graph without "
      "a default; '{}' is {}",
      i, value.name, producer == nullptr ? "a constant" : producer->Describe());
}

// A kernel that writes the memory of these inputs.
template <auto Infer, auto RunFunction, size_t... kChanged>
class UpdateKernel final : public StatefulKernel<Infer> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(this->Bind(info));
    for (const size_t i : {kChanged...}) TENON_RETURN_IF_ERROR(CheckIsFed(info, i));
    return OkStatus();
  }
  Status Run(KernelContext& context) const override { return RunFunction(this->attrs_, context); }
};

constexpr KernelTraits kUpdateTraits = {.allocates_outputs = true, .is_stateful = true};

// The elements of a tensor that the caller lets us change.
float* Changed(const Value& value) {
  Tensor shared = value.tensor();
  return shared.data<float>();
}

bool FlagOr(const KernelContext& context, size_t i, bool absent) {
  return context.HasInput(i) ? *context.Input(i).data<bool>() : absent;
}

Status SetFlag(KernelContext& context, const Shape& shape, bool flag) {
  TENON_ASSIGN_OR_RETURN(Tensor* const output, context.AllocateOutput(0, DataType::kBool, shape));
  std::fill_n(output->data<bool>(), output->size(), flag);
  return OkStatus();
}

// Elements of float tensors that a sequence has, and that the sequences in `inputs` agree on.
Status CheckSequences(const KernelContext& context, std::initializer_list<size_t> inputs) {
  const auto& first = context.InputValue(*inputs.begin()).sequence().elements;
  for (const size_t i : inputs) {
    const auto& elements = context.InputValue(i).sequence().elements;
    if (elements.size() != first.size()) {
      return InvalidArgument("input {}: expected {} tensors, as many as input {} has, got {}", i,
                             first.size(), *inputs.begin(), elements.size());
    }
    for (size_t k = 0; k < elements.size(); ++k) {
      const Tensor& tensor = elements[k].tensor();
      if (tensor.type() != DataType::kFloat || tensor.shape() != first[k].tensor().shape()) {
        return InvalidArgument("input {}, tensor {}: expected tensor(float) {}, got tensor({}) {}",
                               i, k, first[k].tensor().shape(), DataTypeName(tensor.type()),
                               tensor.shape());
      }
    }
  }
  return OkStatus();
}

// InPlaceAccumulatorV2-1.
enum AccumulatorInput : size_t { kBuffer, kAddend, kOverwrite };

Status InferAccumulator(const NoAttrs&, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(context.SetOutput(0, SymbolicShape{1}, DataType::kBool));
  if (context.output_count() < 2) return OkStatus();
  TENON_ASSIGN_OR_RETURN(SymbolicShape buffer, context.Input(kBuffer));
  return context.SetOutput(1, std::move(buffer), context.ElementType(kBuffer));
}

Status RunAccumulator(const NoAttrs&, KernelContext& context) {
  const Tensor& addend = context.Input(kAddend);
  if (addend.shape() != context.Input(kBuffer).shape()) {
    return InvalidArgument("input 1: expected shape {}, that of the buffer, got {}",
                           context.Input(kBuffer).shape(), addend.shape());
  }
  float* const buffer = Changed(context.InputValue(kBuffer));
  const float* const x = addend.data<float>();
  const bool overwrites = FlagOr(context, kOverwrite, false);
  const auto add =
      kernels::FindBinary(kernels::BinaryOp::kAdd, kernels::ElementType::kFloat).vector_vector;
  context.threads().ParallelFor(
      static_cast<size_t>(addend.size()), kGrain, [&](size_t begin, size_t end) {
        if (overwrites) {
          std::memcpy(buffer + begin, x + begin, (end - begin) * sizeof(float));
        } else {
          add(buffer + begin, x + begin, buffer + begin, end - begin);
        }
      });
  if (context.HasOutput(1)) context.SetOutput(1, context.InputValue(kBuffer));
  return SetFlag(context, {1}, true);
}

// InplaceClipGradNorm-1: gradients times max_norm / (norm + 1e-6) if that is less than 1, where
// norm is that of all gradients together, as in torch.nn.utils.clip_grad_norm_.
struct ClipAttrs {
  float max_norm = 1;
  std::string norm_type = "fro";
  static constexpr auto Fields() {
    return std::tuple(Field("max_norm", &ClipAttrs::max_norm),
                      Field("norm_type", &ClipAttrs::norm_type));
  }
};

Status InferClip(const ClipAttrs& attrs, ShapeContext& context) {
  if (attrs.norm_type != "fro") {
    return NotImplemented("norm_type '{}': only 'fro' is supported", attrs.norm_type);
  }
  return context.SetOutputType(0, context.InputType(0));
}

double SumOfSquares(KernelContext& context, const float* x, size_t n) {
  std::vector<double> sums((n + kGrain - 1) / kGrain);
  context.threads().ParallelFor(sums.size(), 1, [&](size_t begin, size_t end) {
    for (size_t task = begin; task < end; ++task) {
      double sum = 0;
      for (size_t i = task * kGrain; i < std::min(n, (task + 1) * kGrain); ++i) {
        sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      }
      sums[task] = sum;
    }
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

Status RunClip(const ClipAttrs& attrs, KernelContext& context) {
  TENON_RETURN_IF_ERROR(CheckSequences(context, {0}));
  const std::vector<Value>& gradients = context.InputValue(0).sequence().elements;
  double squares = 0;
  for (const Value& gradient : gradients) {
    const Tensor& tensor = gradient.tensor();
    squares += SumOfSquares(context, tensor.data<float>(), static_cast<size_t>(tensor.size()));
  }
  const auto factor =
      static_cast<float>(static_cast<double>(attrs.max_norm) / (std::sqrt(squares) + 1e-6));
  const auto multiply =
      kernels::FindBinary(kernels::BinaryOp::kMul, kernels::ElementType::kFloat).vector_scalar;
  if (factor < 1) {
    for (const Value& gradient : gradients) {
      float* const x = Changed(gradient);
      context.threads().ParallelFor(
          static_cast<size_t>(gradient.tensor().size()), kGrain,
          [&](size_t begin, size_t end) { multiply(x + begin, &factor, x + begin, end - begin); });
    }
  }
  context.SetOutput(0, context.InputValue(0));
  return OkStatus();
}

// AdamWOptimizer-1.
struct AdamWAttrs {
  float alpha = 0.9f, beta = 0.999f, epsilon = 1e-8f, weight_decay = 1e-2f;
  int64_t correct_bias = 1;
  int64_t adam_mode = 0;
  static constexpr auto Fields() {
    return std::tuple(Field("alpha", &AdamWAttrs::alpha), Field("beta", &AdamWAttrs::beta),
                      Field("epsilon", &AdamWAttrs::epsilon),
                      Field("weight_decay", &AdamWAttrs::weight_decay),
                      Field("correct_bias", &AdamWAttrs::correct_bias),
                      Field("adam_mode", &AdamWAttrs::adam_mode));
  }
};

enum AdamWInput : size_t {
  kRate,
  kStep,
  kWeights,
  kGradients,
  kFirstMoments,
  kSecondMoments,
  kUpdates
};

// Output i > 0 is input kAdamWSource[i].
constexpr size_t kAdamWSource[] = {kStep, kWeights, kFirstMoments, kSecondMoments};

Status InferAdamW(const AdamWAttrs& attrs, ShapeContext& context) {
  if (attrs.adam_mode != 0 && attrs.adam_mode != 1) {
    return InvalidArgument("adam_mode: expected 0 or 1, got {}", attrs.adam_mode);
  }
  for (size_t i = 1; i < context.output_count(); ++i) {
    TENON_RETURN_IF_ERROR(context.SetOutputType(i, context.InputType(kAdamWSource[i])));
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape step, context.Input(kStep));
  return context.SetOutput(0, std::move(step), DataType::kBool);
}

kernels::AdamWStep StepOf(const AdamWAttrs& attrs, float rate, int64_t step) {
  const auto correction = [&](float factor) {
    return attrs.correct_bias == 0 ? 1.0 : 1 - std::pow(static_cast<double>(factor), step);
  };
  const double first = correction(attrs.alpha), second = correction(attrs.beta);
  const auto decay = 1 - static_cast<double>(rate) * static_cast<double>(attrs.weight_decay);
  kernels::AdamWStep result = {.alpha = attrs.alpha, .beta = attrs.beta, .epsilon = attrs.epsilon};
  if (attrs.adam_mode == 0) {  // as torch.optim.AdamW
    result.rate = static_cast<float>(static_cast<double>(rate) / first);
    result.root = static_cast<float>(1 / std::sqrt(second));
    result.decay_before = static_cast<float>(decay);
    result.decay_after = 1;
  } else {  // as AdamW of transformers
    result.rate = static_cast<float>(static_cast<double>(rate) * std::sqrt(second) / first);
    result.root = 1;
    result.decay_before = 1;
    result.decay_after = static_cast<float>(decay);
  }
  return result;
}

Status RunAdamW(const AdamWAttrs& attrs, KernelContext& context) {
  TENON_RETURN_IF_ERROR(
      CheckSequences(context, {kWeights, kGradients, kFirstMoments, kSecondMoments}));
  const bool updates = FlagOr(context, kUpdates, true);
  const auto tensors = [&](size_t i) -> const std::vector<Value>& {
    return context.InputValue(i).sequence().elements;
  };
  if (updates) {
    const kernels::AdamWStep step =
        StepOf(attrs, *context.Input(kRate).data<float>(), *context.Input(kStep).data<int64_t>());
    for (size_t k = 0; k < tensors(kWeights).size(); ++k) {
      const float* const g = tensors(kGradients)[k].tensor().data<float>();
      float* const w = Changed(tensors(kWeights)[k]);
      float* const m = Changed(tensors(kFirstMoments)[k]);
      float* const v = Changed(tensors(kSecondMoments)[k]);
      context.threads().ParallelFor(static_cast<size_t>(tensors(kWeights)[k].tensor().size()),
                                    kGrain, [&](size_t begin, size_t end) {
                                      kernels::UpdateAdamW(step, g + begin, w + begin, m + begin,
                                                           v + begin, end - begin);
                                    });
    }
  }
  for (size_t i = 1; i < context.output_count(); ++i) {
    if (context.HasOutput(i)) context.SetOutput(i, context.InputValue(kAdamWSource[i]));
  }
  return SetFlag(context, context.Input(kStep).shape(), updates);
}

// SGDOptimizerV2-1: w = w - rate g.
enum SgdInput : size_t { kSgdRate, kSgdWeights, kSgdGradients, kSgdUpdates };

Status InferSgd(const NoAttrs&, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(context.SetOutput(0, SymbolicShape{}, DataType::kBool));
  return context.output_count() < 2 ? OkStatus()
                                    : context.SetOutputType(1, context.InputType(kSgdWeights));
}

Status RunSgd(const NoAttrs&, KernelContext& context) {
  TENON_RETURN_IF_ERROR(CheckSequences(context, {kSgdWeights, kSgdGradients}));
  const bool updates = FlagOr(context, kSgdUpdates, true);
  const float rate = *context.Input(kSgdRate).data<float>();
  const auto& weights = context.InputValue(kSgdWeights).sequence().elements;
  const auto& gradients = context.InputValue(kSgdGradients).sequence().elements;
  for (size_t k = 0; updates && k < weights.size(); ++k) {
    const float* const g = gradients[k].tensor().data<float>();
    float* const w = Changed(weights[k]);
    context.threads().ParallelFor(static_cast<size_t>(weights[k].tensor().size()), kGrain,
                                  [&](size_t begin, size_t end) {
                                    for (size_t i = begin; i < end; ++i) w[i] -= rate * g[i];
                                  });
  }
  if (context.HasOutput(1)) context.SetOutput(1, context.InputValue(kSgdWeights));
  return SetFlag(context, {}, updates);
}

constexpr OpOptions kOptions = {.domain = "com.microsoft", .traits = kUpdateTraits};

constexpr OpRow kRows[] = {
    OpClass<UpdateKernel<InferAdamW, RunAdamW, kWeights, kFirstMoments, kSecondMoments>>(
        "AdamWOptimizer", kOptions),
    OpClass<UpdateKernel<InferAccumulator, RunAccumulator, kBuffer>>(
        "InPlaceAccumulatorV2",
        {.domain = "com.microsoft", .types = kFloat32Only, .traits = kUpdateTraits}),
    OpClass<UpdateKernel<InferClip, RunClip, 0>>("InplaceClipGradNorm", kOptions),
    OpClass<UpdateKernel<InferSgd, RunSgd, kSgdWeights>>("SGDOptimizerV2", kOptions),
};

}  // namespace

TENON_OP_FAMILY(ParameterUpdates, kRows);

}  // namespace tenon
