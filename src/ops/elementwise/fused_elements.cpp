#include "ops/elementwise/fused_elements.h"

#include <algorithm>

#include "base/arithmetic.h"
#include "kernels/elementwise/activation.h"
#include "ops/framework/stateful_kernel.h"

namespace tenon {
namespace {

using kernels::BinaryOp;

// Elements that a step computes at once: some operands and results fit the L1 cache.
constexpr size_t kTile = 1024;

Status InferFusedElements(const FusedElementsAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  for (size_t i = 1; i < context.input_count(); ++i) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape next, context.Input(i));
    TENON_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, next));
  }
  return context.SetOutput(0, std::move(shape));
}

// Of an operand: elements that a step reads one after the other, or one that it reads repeatedly.
struct Segment {
  const float* data;
  size_t length;
  bool is_one;
};

// An input, broadcast: element i of the output has element i / repeats % size.
struct BroadcastInput {
  const float* data;
  size_t size, repeats;

  Segment From(size_t i) const {
    if (size == 1) return {data, SIZE_MAX, true};
    if (repeats > 1) return {data + i / repeats % size, repeats - i % repeats, true};
    return {data + i % size, size - i % size, false};
  }
};

Result<BroadcastInput> Broadcast(const Tensor& x, const Shape& y, size_t input) {
  const Shape& shape = x.shape();
  size_t begin = 0, end = shape.rank();
  while (end > begin && shape[end - 1] == 1) --end;
  while (begin < end && shape[begin] == 1) ++begin;
  const size_t missing = y.rank() - shape.rank();
  size_t size = 1, repeats = 1;
  for (size_t i = begin; i < end; ++i) {
    if (shape[i] != y[missing + i]) {
      return InvalidArgument("input {}: expected neighbouring dimensions of the output {}, got {}",
                             input, y, shape);
    }
    size *= static_cast<size_t>(shape[i]);
  }
  for (size_t i = missing + end; i < y.rank(); ++i) repeats *= static_cast<size_t>(y[i]);
  return BroadcastInput{x.data<float>(), size, repeats};
}

// One step: a function of one or two values. Values are numbered as in FusedElementsAttrs.
struct Step {
  kernels::ActivationSpec spec;
  kernels::UnaryFunction unary = kernels::FindUnary(UnaryOp::kIdentity);
  std::optional<kernels::BinaryFunctions> binary;
  size_t grain = 1;
  size_t a = 0, b = 0;
  size_t buffer = 0;  // of the result; that of the last step is not used

  void Compute(const Segment& x, float* y, size_t n) const {
    if (!x.is_one) return unary(x.data, y, n, spec.alpha, spec.beta);
    float value;
    unary(x.data, &value, 1, spec.alpha, spec.beta);
    std::fill_n(y, n, value);
  }

  void Compute(const Segment& l, const Segment& r, float* y, size_t n) const {
    if (l.is_one && r.is_one) {
      float value;
      binary->vector_vector(l.data, r.data, &value, 1);
      std::fill_n(y, n, value);
    } else if (l.is_one) {
      binary->scalar_vector(l.data, r.data, y, n);
    } else if (r.is_one) {
      binary->vector_scalar(l.data, r.data, y, n);
    } else {
      binary->vector_vector(l.data, r.data, y, n);
    }
  }
};

Result<Step> StepOf(const FusedElementsAttrs& attrs, size_t inputs, size_t i) {
  Step step;
  const std::string& name = attrs.functions[i];
  const auto value = [&](size_t operand) -> Result<size_t> {
    const int64_t given = attrs.operands[2 * i + operand];
    const auto values = static_cast<int64_t>(inputs + i);
    if (given >= 0 && given < values) return static_cast<size_t>(given);
    return InvalidArgument("attribute 'operands': expected numbers below {} for step {}, got {}",
                           values, i, given);
  };
  TENON_ASSIGN_OR_RETURN(step.a, value(0));
  if (const std::optional<UnaryOp> op = FindUnaryOp(name)) {
    step.spec = {*op, attrs.parameters[2 * i], attrs.parameters[2 * i + 1]};
    step.unary = kernels::FindUnary(*op);
    step.grain = kernels::ElementwiseGrain(*op);
    return step;
  }
  const std::optional<BinaryOp> op = FindFusedBinary(name);
  if (!op) return InvalidArgument("attribute 'functions': '{}' is no element-wise function", name);
  TENON_ASSIGN_OR_RETURN(step.b, value(1));
  step.binary = kernels::FindBinary(*op, kernels::ElementType::kFloat);
  step.grain = kernels::ElementwiseGrain(*op);
  return step;
}

class FusedElements final : public StatefulKernel<InferFusedElements> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    inputs_ = info.node().inputs.size();
    const size_t count = attrs_.functions.size();
    if (count == 0 || attrs_.operands.size() != 2 * count ||
        attrs_.parameters.size() != 2 * count) {
      return InvalidArgument(
          "expected two 'operands' and 'parameters' for each of 'functions', got {} and {} for {}",
          attrs_.operands.size(), attrs_.parameters.size(), count);
    }
    double time = 0;
    for (size_t i = 0; i < count; ++i) {
      TENON_ASSIGN_OR_RETURN(Step step, StepOf(attrs_, inputs_, i));
      time += 1.0 / static_cast<double>(step.grain);
      steps_.push_back(step);
    }
    grain_ = RoundUp(static_cast<size_t>(1 / time) + 1, kTile);
    AssignBuffers();
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    Tensor& y = context.Output(0);
    const auto n = static_cast<size_t>(y.size());
    if (n == 0) return OkStatus();
    PooledVector<BroadcastInput> inputs;
    for (size_t i = 0; i < inputs_; ++i) {
      TENON_ASSIGN_OR_RETURN(const BroadcastInput input, Broadcast(context.Input(i), y.shape(), i));
      inputs.push_back(input);
    }
    const size_t bytes = buffers_ * kTile * sizeof(float);
    return context.ForEachTask(CeilDiv(n, grain_), bytes, [&](size_t task, std::byte* scratch) {
      const size_t end = std::min(n, (task + 1) * grain_);
      for (size_t begin = task * grain_; begin < end; begin += kTile) {
        const size_t length = std::min(kTile, end - begin);
        RunTile(inputs, {begin, length, reinterpret_cast<float*>(scratch), y.data<float>()});
      }
    });
  }

 private:
  struct Tile {
    size_t begin, length;
    float *buffers, *y;
  };

  // A step may write over its operands.
  void AssignBuffers() {
    std::vector<size_t> last_use(steps_.size());
    const auto note = [&](size_t value, size_t step) {
      if (value >= inputs_) last_use[value - inputs_] = step;
    };
    for (size_t i = 0; i < steps_.size(); ++i) {
      note(steps_[i].a, i);
      if (steps_[i].binary) note(steps_[i].b, i);
    }
    std::vector<size_t> free;
    for (size_t i = 0; i + 1 < steps_.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (last_use[j] == i) free.push_back(steps_[j].buffer);
      }
      if (free.empty()) free.push_back(buffers_++);
      steps_[i].buffer = free.back();
      free.pop_back();
    }
  }

  void RunTile(const PooledVector<BroadcastInput>& inputs, const Tile& tile) const {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      const bool is_last = i + 1 == steps_.size();
      float* const y = is_last ? tile.y + tile.begin : tile.buffers + step.buffer * kTile;
      const auto segment = [&](size_t value, size_t at) -> Segment {
        if (value < inputs_) return inputs[value].From(tile.begin + at);
        return {tile.buffers + steps_[value - inputs_].buffer * kTile + at, tile.length, false};
      };
      for (size_t at = 0; at < tile.length;) {
        const Segment a = segment(step.a, at);
        size_t n = std::min(tile.length - at, a.length);
        if (step.binary) {
          const Segment b = segment(step.b, at);
          n = std::min(n, b.length);
          step.Compute(a, b, y + at, n);
        } else {
          step.Compute(a, y + at, n);
        }
        at += n;
      }
    }
  }

  size_t inputs_ = 0, buffers_ = 0, grain_ = 0;
  std::vector<Step> steps_;
};

constexpr OpRow kRows[] = {
    OpClass<FusedElements>("FusedElements", {.domain = "com.tenon",
                                             .types = kFloat32Only,
                                             .traits = {.in_place_input = 0, .in_place_also = 1}}),
};

}  // namespace

std::optional<BinaryOp> FindFusedBinary(std::string_view name) {
  struct Named {
    std::string_view name;
    BinaryOp op;
  };
  constexpr Named kNames[] = {
      {"Add", BinaryOp::kAdd}, {"Div", BinaryOp::kDiv}, {"Max", BinaryOp::kMax},
      {"Min", BinaryOp::kMin}, {"Mul", BinaryOp::kMul}, {"PRelu", BinaryOp::kPRelu},
      {"Pow", BinaryOp::kPow}, {"Sub", BinaryOp::kSub}, {"Sum", BinaryOp::kAdd}};
  const auto* const found = std::find_if(std::begin(kNames), std::end(kNames),
                                         [&](const Named& each) { return each.name == name; });
  return found == std::end(kNames) ? std::nullopt : std::optional(found->op);
}

TENON_OP_FAMILY(FusedElements, kRows);

}  // namespace tenon
