// MoE of com.microsoft: each token goes through the feed-forward networks of the experts that its
// router prefers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/arithmetic.h"
#include "kernels/elementwise.h"
#include "kernels/gemm.h"
#include "ops/families.h"

namespace tenon {
namespace {

enum Input : size_t { kX, kRouter, kFc1, kFc1Bias, kFc2, kFc2Bias, kFc3, kFc3Bias };

struct ExpertsAttrs {
  std::string activation = "relu";
  float alpha = 1, beta = 0;
  std::optional<float> limit;
  int64_t chosen = 1;  // experts of a token
  bool normalizes = false;
  int64_t fusion =
      0;  // of fc1 and fc3 for SwiGLU; 0: none, 1: interleaved, 2: one behind the other
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

bool MayEqual(const Dim& a, const Dim& b) { return !a.is_number() || !b.is_number() || a == b; }

Status CheckAttrs(const ExpertsAttrs& attrs, const ShapeContext& context) {
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
  if (attrs.is_sparse_mixer) return NotImplemented("use_sparse_mixer = 1");
  const bool needs_fc3 = attrs.activation == "swiglu" && attrs.fusion == 0;
  if (needs_fc3 && !context.HasInput(kFc3)) {
    return InvalidArgument("swiglu without swiglu_fusion needs the input fc3_experts_weights");
  }
  return OkStatus();
}

// The shape of weights or, without their last axis, of a bias.
Status CheckWeights(const ShapeContext& context, size_t i, const SymbolicShape& wanted) {
  if (!context.HasInput(i)) return OkStatus();
  const Result<SymbolicShape> shape = context.InputOfRank(i, wanted.rank());
  if (!shape) return IsUnknownShape(shape.error()) ? OkStatus() : shape.error();
  for (size_t axis = 0; axis < wanted.rank(); ++axis) {
    if (MayEqual((*shape)[axis], wanted[axis])) continue;
    return InvalidArgument("input {}: expected {}, got {}", i, wanted, *shape);
  }
  return OkStatus();
}

Status InferExperts(const ExpertsAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckAttrs(attrs, context));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(kX));
  if (x.rank() != 2 && x.rank() != 3) {
    return InvalidArgument("input 0: expected rank 2 or 3, got {}", x);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape router, context.InputOfRank(kRouter, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape fc1, context.InputOfRank(kFc1, 3));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape fc2, context.InputOfRank(kFc2, 3));
  const Dim tokens = x.Product(0, x.rank() - 1), hidden = x[x.rank() - 1];
  if (!MayEqual(router[0], tokens)) {
    return InvalidArgument("input 1: expected a row for each of {} tokens, got {}", tokens, router);
  }
  const Dim& experts = router[1];
  if (attrs.chosen < 1 || (experts.is_number() && attrs.chosen > experts.value())) {
    return InvalidArgument("expected k in [1, {}], got {}", experts, attrs.chosen);
  }
  const Dim inner = fc2[2], wide = inner * Dim(attrs.parts());
  TENON_RETURN_IF_ERROR(CheckWeights(context, kFc1, {experts, wide, hidden}));
  TENON_RETURN_IF_ERROR(CheckWeights(context, kFc1Bias, {experts, wide}));
  TENON_RETURN_IF_ERROR(CheckWeights(context, kFc2, {experts, hidden, inner}));
  TENON_RETURN_IF_ERROR(CheckWeights(context, kFc2Bias, {experts, hidden}));
  TENON_RETURN_IF_ERROR(CheckWeights(context, kFc3, {experts, inner, hidden}));
  TENON_RETURN_IF_ERROR(CheckWeights(context, kFc3Bias, {experts, inner}));
  return context.SetOutput(0, x);
}

// A token that goes to an expert, and the weight of what comes out.
struct Choice {
  size_t expert, token;
  float weight;
};

class ExpertsRun {
 public:
  ExpertsRun(const ExpertsAttrs& attrs, KernelContext& context) : attrs_(attrs), context_(context) {
    const Shape& router = context.Input(kRouter).shape();
    tokens_ = static_cast<size_t>(router[0]);
    experts_ = static_cast<size_t>(router[1]);
    hidden_ = static_cast<size_t>(context.Input(kX).shape().back());
    inner_ = static_cast<size_t>(context.Input(kFc2).shape()[2]);
    wide_ = inner_ * static_cast<size_t>(attrs.parts());
  }

  Status Run() {
    Tensor& y = context_.Output(0);
    std::fill_n(y.data<float>(), y.size(), 0.0f);
    if (y.size() == 0) return OkStatus();
    const auto chosen = static_cast<size_t>(attrs_.chosen);
    const size_t rows = tokens_;  // the most that one expert has
    const size_t choice_bytes = RoundUp<size_t>(tokens_ * chosen * sizeof(Choice), 64);
    const size_t floats = RoundUp<size_t>(rows * (2 * hidden_ + 2 * wide_), 16);
    // Which products there will be is known when the experts are chosen.
    for (size_t count = 1; count <= rows; ++count) {
      task_bytes_ = std::max({task_bytes_, kernels::GemmScratchSize({count, wide_, hidden_}, false),
                              kernels::GemmScratchSize({count, inner_, hidden_}, false),
                              kernels::GemmScratchSize({count, hidden_, inner_}, false)});
    }
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
      double taken = 0;
      for (size_t i = 0; i < chosen; ++i) {
        size_t best = experts_;
        for (size_t e = 0; e < experts_; ++e) {
          const bool is_taken =
              std::any_of(own, own + i, [e](const Choice& c) { return c.expert == e; });
          if (!is_taken && (best == experts_ || logits[e] > logits[best])) best = e;
        }
        const double weight = std::exp(double{logits[best]} - most) / all;
        taken += weight;
        own[i] = {best, token, static_cast<float>(weight)};
      }
      for (size_t i = 0; attrs_.normalizes && i < chosen; ++i) {
        own[i].weight = static_cast<float>(own[i].weight / taken);
      }
    }
    std::sort(choices, choices + tokens_ * chosen, [](const Choice& a, const Choice& b) {
      return a.expert != b.expert ? a.expert < b.expert : a.token < b.token;
    });
  }

  // y = x W' + bias with the weights of one expert.
  void Multiply(const float* x, size_t rows, size_t weights, size_t bias, size_t expert, float* y) {
    const Shape& s = context_.Input(weights).shape();
    const auto n = static_cast<size_t>(s[1]), k = static_cast<size_t>(s[2]);
    kernels::GemmArgs args;
    args.sizes = {rows, n, k};
    args.a = kernels::RowMajor(x, k);
    args.b = kernels::Transposed(context_.Input(weights).data<float>() + expert * n * k, k);
    args.c = y;
    args.ldc = n;
    if (context_.HasInput(bias)) {
      args.epilogue.bias_columns = context_.Input(bias).data<float>() + expert * n;
    }
    context_.ForEachTaskIn(task_memory_, kernels::GemmTaskCount(args.sizes, false), task_bytes_,
                           [&](size_t task, std::byte* piece) {
                             kernels::RunGemmTask(args, task, reinterpret_cast<float*>(piece));
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
    Multiply(x, rows, kFc1, kFc1Bias, expert, first);
    const bool has_gate = context_.HasInput(kFc3);
    if (has_gate) Multiply(x, rows, kFc3, kFc3Bias, expert, second);
    Activate(rows, first, has_gate ? second : nullptr);
    Multiply(first, rows, kFc2, kFc2Bias, expert, y);
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
    using kernels::UnaryOp;
    const size_t n = rows * inner_;
    if (attrs_.activation != "identity") {
      const UnaryOp op = attrs_.activation == "relu"   ? UnaryOp::kRelu
                         : attrs_.activation == "gelu" ? UnaryOp::kGelu
                                                       : UnaryOp::kSilu;
      kernels::FindUnary(op)(first, first, n, 1, 0);
    }
    for (size_t i = 0; second && i < n; ++i) first[i] *= second[i];
  }

  const ExpertsAttrs& attrs_;
  KernelContext& context_;
  size_t tokens_, experts_, hidden_, inner_, wide_;
  float* buffers_ = nullptr;
  std::byte* task_memory_ = nullptr;
  size_t task_bytes_ = 0;
};

Status RunExperts(const ExpertsAttrs& attrs, KernelContext& context) {
  return ExpertsRun(attrs, context).Run();
}

constexpr OpRow kRows[] = {
    Op<InferExperts, RunExperts>("MoE", {.domain = "com.microsoft", .types = kFloat32Only}),
};

}  // namespace

const std::span<const OpRow> kMixtureOfExpertsFamily = kRows;

}  // namespace tenon
