// MoE and QMoE of com.microsoft: each token is processed by the feed-forward networks of the
// experts that its router selects.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/arithmetic.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/gemm/gemm.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"
#include "ops/linear/expert_weights.h"

namespace tenon {
namespace {

enum Input : size_t { kX, kRouter };

// The positions of the inputs of the three layers; absent ones are beyond the inputs.
struct ExpertInputs {
  LayerInputs fc1, fc2, fc3;
  size_t router_weights = LayerInputs::kNone;
};
constexpr ExpertInputs kFloatInputs = {.fc1 = {.weights = 2, .bias = 3},
                                       .fc2 = {.weights = 4, .bias = 5},
                                       .fc3 = {.weights = 6, .bias = 7}};
constexpr ExpertInputs kQuantizedInputs = {
    .fc1 = {.weights = 2, .bias = 4, .scales = 3, .zero_points = 11, .global_scale = 15},
    .fc2 = {.weights = 5, .bias = 7, .scales = 6, .zero_points = 12, .global_scale = 16},
    .fc3 = {.weights = 8, .bias = 10, .scales = 9, .zero_points = 13},
    .router_weights = 14};

struct ExpertsAttrs {
  std::string activation = "relu";
  float alpha = 1, beta = 0;
  std::optional<float> limit;
  int64_t chosen = 1;  // experts of a token
  bool normalizes = false;
  int64_t fusion = 0;  // of fc1 and fc3 for SwiGLU; 0: none, 1: interleaved, 2: one after the other
  bool is_sparse_mixer = false;
  static constexpr auto Fields() {
    using A = ExpertsAttrs;
    return std::tuple(
        Field("activation_type", &A::activation), Field("activation_alpha", &A::alpha),
        Field("activation_beta", &A::beta), Field("swiglu_limit", &A::limit),
        Field("k", &A::chosen), Field("normalize_routing_weights", &A::normalizes),
        Field("swiglu_fusion", &A::fusion), Field("use_sparse_mixer", &A::is_sparse_mixer));
  }
  int64_t parts() const { return fusion != 0 && activation == "swiglu" ? 2 : 1; }
};

Status CheckAttrs(const ExpertsAttrs& attrs, const ExpertInputs& in, const ShapeContext& context) {
  const bool is_known = attrs.activation == "relu" || attrs.activation == "gelu" ||
                        attrs.activation == "silu" || attrs.activation == "swiglu" ||
                        attrs.activation == "identity";
  if (!is_known) {
    return InvalidArgument(
        "expected activation_type relu, gelu, silu, swiglu or identity, got '{}'",
        attrs.activation);
  }
  if (attrs.fusion < 0 || attrs.fusion > 2) {
    return InvalidArgument("expected swiglu_fusion in [0, 2], got {}", attrs.fusion);
  }
  if (attrs.limit && !(*attrs.limit >= 0)) {
    return InvalidArgument("expected swiglu_limit >= 0, got {}", *attrs.limit);
  }
  if (attrs.is_sparse_mixer && attrs.chosen != 2) {
    return InvalidArgument("expected k = 2 with use_sparse_mixer = 1, got {}", attrs.chosen);
  }
  const bool needs_fc3 = attrs.activation == "swiglu" && attrs.fusion == 0;
  if (needs_fc3 && !context.HasInput(in.fc3.weights)) {
    return InvalidArgument("swiglu without swiglu_fusion needs the input fc3_experts_weights");
  }
  return OkStatus();
}

// Shared by the layers.
struct ExpertDims {
  Dim experts, hidden;
};

Result<ExpertDims> InferRouting(const ExpertsAttrs& attrs, const ExpertInputs& in,
                                ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckAttrs(attrs, in, context));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(kX));
  if (x.rank() != 2 && x.rank() != 3) {
    return InvalidArgument("input 0: expected rank 2 or 3, got {}", x);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape router, context.InputOfRank(kRouter, 2));
  const Dim tokens = x.Product(0, x.rank() - 1), hidden = x[x.rank() - 1];
  if (!MayEqual(router[0], tokens)) {
    return InvalidArgument("input 1: expected a row for each of {} tokens, got {}", tokens, router);
  }
  TENON_RETURN_IF_ERROR(CheckInputShape(context, in.router_weights, router));
  const Dim& experts = router[1];
  if (attrs.chosen < 1 || (experts.is_number() && attrs.chosen > experts.value())) {
    return InvalidArgument("expected k in [1, {}], got {}", experts, attrs.chosen);
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(0, x));
  return ExpertDims{experts, hidden};
}

[[gnu::cold]] Status InferExperts(const ExpertsAttrs& attrs, ShapeContext& context) {
  const ExpertInputs& in = kFloatInputs;
  TENON_ASSIGN_OR_RETURN(const ExpertDims dims, InferRouting(attrs, in, context));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape fc2, context.InputOfRank(in.fc2.weights, 3));
  const auto& [experts, hidden] = dims;
  const Dim inner = fc2[2], wide = inner * Dim(attrs.parts());
  TENON_RETURN_IF_ERROR(CheckInputShape(context, in.fc1.weights, {experts, wide, hidden}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, in.fc1.bias, {experts, wide}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, in.fc2.weights, {experts, hidden, inner}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, in.fc2.bias, {experts, hidden}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, in.fc3.weights, {experts, inner, hidden}));
  return CheckInputShape(context, in.fc3.bias, {experts, inner});
}

// QMoE-1.
struct QuantizedExpertsAttrs : ExpertsAttrs, ExpertQuantization {
  static constexpr auto Fields() {
    return std::tuple_cat(ExpertsAttrs::Fields(), ExpertQuantization::Fields());
  }
};

[[gnu::cold]] Status InferQuantizedExperts(const QuantizedExpertsAttrs& attrs,
                                           ShapeContext& context) {
  const ExpertInputs& in = kQuantizedInputs;
  TENON_RETURN_IF_ERROR(attrs.Check());
  TENON_ASSIGN_OR_RETURN(const ExpertDims dims, InferRouting(attrs, in, context));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape fc2, context.InputOfRank(in.fc2.weights, 3));
  const auto& [experts, hidden] = dims;
  const Dim inner = fc2[2] * Dim(attrs.PerElement(attrs.fc2_bits));
  const Dim wide = inner * Dim(attrs.parts());
  TENON_RETURN_IF_ERROR(attrs.CheckLayer(context, in.fc1, attrs.fc1_bits, {experts, wide, hidden}));
  TENON_RETURN_IF_ERROR(
      attrs.CheckLayer(context, in.fc2, attrs.fc2_bits, {experts, hidden, inner}));
  TENON_RETURN_IF_ERROR(
      attrs.CheckLayer(context, in.fc3, attrs.fc3_bits, {experts, inner, hidden}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, in.fc1.bias, {experts, wide}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, in.fc2.bias, {experts, hidden}));
  return CheckInputShape(context, in.fc3.bias, {experts, inner});
}

// A token that an expert processes, and the weight of the result.
struct Choice {
  size_t expert, token;
  float weight;
};

class ExpertsRun {
 public:
  // `quantization` is null for weights of floats.
  ExpertsRun(const ExpertsAttrs& attrs, const ExpertInputs& in,
             const ExpertQuantization* quantization, KernelContext& context)
      : attrs_(attrs), in_(in), quantization_(quantization), context_(context) {
    const Shape& router = context.Input(kRouter).shape();
    tokens_ = static_cast<size_t>(router[0]);
    experts_ = static_cast<size_t>(router[1]);
    hidden_ = static_cast<size_t>(context.Input(kX).shape().back());
    inner_ = static_cast<size_t>(context.Input(in.fc2.weights).shape()[2]);
    if (quantization_) {
      inner_ *= static_cast<size_t>(quantization_->PerElement(quantization_->fc2_bits));
    }
    wide_ = inner_ * static_cast<size_t>(attrs.parts());
  }

  Status Run() {
    Tensor& y = context_.Output(0);
    std::fill_n(y.data<float>(), y.size(), 0.0f);
    if (y.size() == 0) return OkStatus();
    const auto chosen = static_cast<size_t>(attrs_.chosen);
    const size_t rows = tokens_;  // the most tokens of one expert
    const size_t choice_bytes = RoundUp<size_t>(tokens_ * chosen * sizeof(Choice), 64);
    const size_t floats = RoundUp<size_t>(rows * (2 * hidden_ + 2 * wide_), 16);
    // The products are known only after the experts are selected.
    for (size_t count = 1; count <= rows; ++count) {
      task_bytes_ = std::max({task_bytes_, kernels::GemmScratchSize({count, wide_, hidden_}, false),
                              kernels::GemmScratchSize({count, inner_, hidden_}, false),
                              kernels::GemmScratchSize({count, hidden_, inner_}, false)});
    }
    if (quantization_) task_bytes_ = QuantizedTaskBytes();
    const size_t most_tasks = std::numeric_limits<size_t>::max();
    auto* memory = static_cast<std::byte*>(
        context_.Scratch(choice_bytes + floats * sizeof(float) +
                         context_.TaskScratchBytes(most_tasks, task_bytes_)));
    if (memory == nullptr) return RuntimeException("out of memory for {} tokens", tokens_);
    auto* choices = reinterpret_cast<Choice*>(memory);
    buffers_ = reinterpret_cast<float*>(memory + choice_bytes);
    task_memory_ = memory + choice_bytes + floats * sizeof(float);
    Choose(choices);
    const Choice* end = choices + tokens_ * chosen;
    for (const Choice* begin = choices; begin < end;) {
      const Choice* next = begin;
      while (next < end && next->expert == begin->expert) ++next;
      RunExpert({begin, next});
      begin = next;
    }
    return OkStatus();
  }

 private:
  // The experts of all tokens, sorted by expert and token.
  void Choose(Choice* choices) const {
    const auto chosen = static_cast<size_t>(attrs_.chosen);
    for (size_t token = 0; token < tokens_; ++token) {
      const float* logits = context_.Input(kRouter).data<float>() + token * experts_;
      const float most = *std::max_element(logits, logits + experts_);
      double all = 0;
      for (size_t e = 0; e < experts_; ++e) all += std::exp(double{logits[e]} - most);
      Choice* own = choices + token * chosen;
      const float* weights =
          context_.HasInput(in_.router_weights)
              ? context_.Input(in_.router_weights).data<float>() + token * experts_
              : nullptr;
      double taken = 0;
      for (size_t i = 0; i < chosen; ++i) {
        size_t best = experts_;
        for (size_t e = 0; e < experts_; ++e) {
          const bool is_taken =
              std::any_of(own, own + i, [e](const Choice& c) { return c.expert == e; });
          if (!is_taken && (best == experts_ || logits[e] > logits[best])) best = e;
        }
        double weight = std::exp(double{logits[best]} - most) / all;
        if (weights) weight = weights[best];
        if (attrs_.is_sparse_mixer) weight = MixerWeight(logits, {own, i}, best);
        taken += weight;
        own[i] = {best, token, static_cast<float>(weight)};
      }
      // QMoE takes the softmax of the selected experts only, as onnxruntime does.
      const bool normalizes =
          !attrs_.is_sparse_mixer && (attrs_.normalizes || (quantization_ && !weights));
      for (size_t i = 0; normalizes && i < chosen; ++i) {
        own[i].weight = static_cast<float>(own[i].weight / taken);
      }
    }
    std::sort(choices, choices + tokens_ * chosen, [](const Choice& a, const Choice& b) {
      return a.expert != b.expert ? a.expert < b.expert : a.token < b.token;
    });
  }

  // SparseMixer's weight of the expert `best`: its softmax among the experts with similar scores,
  // without those selected before.
  double MixerWeight(const float* logits, std::span<const Choice> taken, size_t best) const {
    constexpr double kJitter = 0.01;
    const double most = logits[best];
    double sum = 0;
    for (size_t e = 0; e < experts_; ++e) {
      const double logit = logits[e], factor = std::max(std::abs(logit), most);
      const bool is_taken = std::any_of(taken.begin(), taken.end(),
                                        [e](const Choice& choice) { return choice.expert == e; });
      if (e == best || (!is_taken && (most - logit) / factor <= 2 * kJitter)) {
        sum += std::exp(logit - most);
      }
    }
    return 1 / sum;
  }

  // Columns of a product with quantized weights that one task computes: their weights, as floats,
  // stay in the L2 cache.
  static constexpr size_t kTaskColumns = 32;

  size_t QuantizedTaskBytes() const {
    const size_t depth = std::max(hidden_, inner_);
    size_t bytes = 0;
    for (size_t count = 1; count <= tokens_; ++count) {
      for (const size_t n :
           {kTaskColumns, wide_ % kTaskColumns, inner_ % kTaskColumns, hidden_ % kTaskColumns}) {
        bytes = std::max({bytes, kernels::GemmScratchSize({count, n, hidden_}, false),
                          kernels::GemmScratchSize({count, n, inner_}, false)});
      }
    }
    return RoundUp<size_t>(kTaskColumns * depth * sizeof(float), 64) + bytes;
  }

  // y = x W' + bias with the weights of one expert, [n, k].
  void Multiply(const float* x, size_t rows, const LayerInputs& layer, std::optional<int64_t> bits,
                size_t n, size_t k, size_t expert, float* y) {
    kernels::GemmArgs args;
    args.sizes = {rows, n, k};
    args.a = kernels::RowMajor(x, k);
    args.c = y;
    args.ldc = n;
    if (context_.HasInput(layer.bias)) {
      args.epilogue.bias_columns = context_.Input(layer.bias).data<float>() + expert * n;
    }
    if (!quantization_) {
      args.b = kernels::Transposed(context_.Input(layer.weights).data<float>() + expert * n * k, k);
      context_.ForEachTaskIn(task_memory_, kernels::GemmTaskCount(args.sizes, false), task_bytes_,
                             [&](size_t task, std::byte* piece) {
                               kernels::RunGemmTask(args, task, reinterpret_cast<float*>(piece));
                             });
      return;
    }
    const ExpertWeights weights(*quantization_, context_, layer, bits, n, k);
    context_.ForEachTaskIn(
        task_memory_, CeilDiv(n, kTaskColumns), task_bytes_, [&](size_t task, std::byte* piece) {
          const size_t first = task * kTaskColumns, count = std::min(kTaskColumns, n - first);
          auto* floats = reinterpret_cast<float*>(piece);
          for (size_t j = 0; j < count; ++j) weights.FillRow(expert, first + j, floats + j * k);
          kernels::GemmArgs part = args;
          part.sizes.n = count;
          part.b = kernels::Transposed(floats, k);
          part.c += first;
          if (part.epilogue.bias_columns) part.epilogue.bias_columns += first;
          kernels::Gemm(part, floats + RoundUp<size_t>(kTaskColumns * k, 16));
        });
  }

  void RunExpert(std::span<const Choice> choices) {
    const size_t rows = choices.size(), expert = choices.front().expert;
    float* x = buffers_;
    float* y = x + tokens_ * hidden_;
    float* first = y + tokens_ * hidden_;
    float* second = first + tokens_ * wide_;
    for (size_t i = 0; i < rows; ++i) {
      std::copy_n(context_.Input(kX).data<float>() + choices[i].token * hidden_, hidden_,
                  x + i * hidden_);
    }
    const ExpertQuantization widths = quantization_ ? *quantization_ : ExpertQuantization();
    Multiply(x, rows, in_.fc1, widths.fc1_bits, wide_, hidden_, expert, first);
    const bool has_gate = context_.HasInput(in_.fc3.weights);
    if (has_gate) {
      Multiply(x, rows, in_.fc3, widths.fc3_bits, inner_, hidden_, expert, second);
    }
    Activate(rows, first, has_gate ? second : nullptr);
    Multiply(first, rows, in_.fc2, widths.fc2_bits, hidden_, inner_, expert, y);
    for (size_t i = 0; i < rows; ++i) {
      float* into = context_.Output(0).data<float>() + choices[i].token * hidden_;
      for (size_t p = 0; p < hidden_; ++p) into[p] += choices[i].weight * y[i * hidden_ + p];
    }
  }

  float SwiGlu(float gate, float linear) const {
    if (attrs_.limit) {
      gate = std::min(gate, *attrs_.limit);
      linear = std::clamp(linear, -*attrs_.limit, *attrs_.limit);
    }
    return gate / (1 + std::exp(-attrs_.alpha * gate)) * (linear + attrs_.beta);
  }

  // `first`, [rows, wide], becomes [rows, inner]; `second` is null or [rows, inner].
  void Activate(size_t rows, float* first, const float* second) const {
    if (attrs_.activation == "swiglu") {
      for (size_t i = 0; i < rows; ++i) {
        const float* from = first + i * wide_;
        float* into = first + i * inner_;
        for (size_t p = 0; p < inner_ && attrs_.fusion == 0; ++p) {
          into[p] = SwiGlu(from[p], second[i * inner_ + p]);
        }
        for (size_t p = 0; p < inner_ && attrs_.fusion == 1; ++p) {
          into[p] = SwiGlu(from[2 * p], from[2 * p + 1]);
        }
        for (size_t p = 0; p < inner_ && attrs_.fusion == 2; ++p) {
          into[p] = SwiGlu(from[p], from[inner_ + p]);
        }
      }
      return;
    }
    const size_t n = rows * inner_;
    if (attrs_.activation != "identity") {
      const UnaryOp op = attrs_.activation == "relu"   ? UnaryOp::kRelu
                         : attrs_.activation == "gelu" ? UnaryOp::kGeluTanh
                                                       : UnaryOp::kSwish;
      kernels::Activation({op})(first, n);
    }
    for (size_t i = 0; second && i < n; ++i) first[i] *= second[i];
  }

  const ExpertsAttrs& attrs_;
  const ExpertInputs& in_;
  const ExpertQuantization* const quantization_;
  KernelContext& context_;
  size_t tokens_, experts_, hidden_, inner_, wide_;
  float* buffers_ = nullptr;
  std::byte* task_memory_ = nullptr;
  size_t task_bytes_ = 0;
};

Status RunExperts(const ExpertsAttrs& attrs, KernelContext& context) {
  return ExpertsRun(attrs, kFloatInputs, nullptr, context).Run();
}

Status RunQuantizedExperts(const QuantizedExpertsAttrs& attrs, KernelContext& context) {
  return ExpertsRun(attrs, kQuantizedInputs, &attrs, context).Run();
}

constexpr OpRow kRows[] = {
    Op<InferExperts, RunExperts>("MoE", {.domain = "com.microsoft", .types = kFloat32Only}),
    Op<InferQuantizedExperts, RunQuantizedExperts>(
        "QMoE", {.domain = "com.microsoft", .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(MixtureOfExperts, kRows);

}  // namespace tenon
