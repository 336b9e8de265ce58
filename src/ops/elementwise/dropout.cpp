// Dropout: the input, of which training sets some elements to 0 and scales the rest.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <random>

#include "ops/framework/element.h"
#include "ops/framework/stateful_kernel.h"

namespace tenon {
namespace {

Status InferDropout(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (context.HasOutput(1)) {
    TENON_RETURN_IF_ERROR(context.SetOutput(1, x, DataType::kBool));
  }
  return context.SetOutput(0, std::move(x));
}

// Up to opset 7 the mask has the type of the data.
Status InferOldDropout(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_RETURN_IF_ERROR(context.SetOutput(1, x));
  return context.SetOutput(0, std::move(x));
}

void CopyInput(KernelContext& context) {
  const Tensor& x = context.Input(0);
  if (x.bytes() > 0 && x.raw() != context.Output(0).raw()) {
    std::memcpy(context.Output(0).raw(), x.raw(), x.bytes());
  }
}

Status RunInference(const NoAttrs&, KernelContext& context) {
  CopyInput(context);
  if (context.HasOutput(1)) {
    std::fill_n(context.Output(1).data<bool>(), context.Output(1).size(), true);
  }
  return OkStatus();
}

// Dropout-1 to Dropout-9 can only be told by is_test that they are not in training, and exporters
// leave it out of models for inference. So these versions never drop anything here.
Status RunOldDropout(const NoAttrs&, KernelContext& context) {
  CopyInput(context);
  if (!context.HasOutput(1)) return OkStatus();
  Tensor& mask = context.Output(1);
  VisitNumber(mask.type(), [&](auto number) {
    using T = decltype(number);
    std::fill_n(mask.data<T>(), mask.size(), static_cast<T>(1.0f));
  });
  return OkStatus();
}

// Dropout-12.
struct DropoutAttrs {
  std::optional<int64_t> seed;
  static constexpr auto Fields() { return std::tuple(Field("seed", &DropoutAttrs::seed)); }
};

Status InferTrainingDropout(const DropoutAttrs&, ShapeContext& context) {
  return InferDropout({}, context);
}

// Numbers in [0, 1) as NumPy's RandomState draws them, as the standard's reference does.
class UniformNumbers {
 public:
  explicit UniformNumbers(uint32_t seed) : engine_(seed) {}
  double Next() {
    const double high = engine_() >> 5;
    const double low = engine_() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

 private:
  std::mt19937 engine_;
};

Result<double> RatioOf(KernelContext& context) {
  if (!context.HasInput(1)) return 0.5;
  const Tensor& ratio = context.Input(1);
  if (ratio.size() != 1)
    return InvalidArgument("input 1: expected one ratio, got {}", ratio.shape());
  const double value = VisitNumber(ratio.type(), [&](auto number) {
    return static_cast<double>(Widen(ratio.data<decltype(number)>()[0]));
  });
  if (!(value >= 0 && value < 1)) {
    return InvalidArgument("input 1: expected a ratio in [0, 1), got {}", value);
  }
  return value;
}

class DropoutKernel final : public StatefulKernel<InferTrainingDropout> {
 public:
  Status Prepare(KernelInfo& info) {
    may_train_ = info.HasInput(2);
    return Bind(info);
  }

  KernelTraits traits() const override {
    KernelTraits traits = StatefulKernel::traits();
    traits.is_stateful = may_train_ && !attrs_.seed;
    return traits;
  }

  Status Run(KernelContext& context) const override {
    const bool trains =
        context.HasInput(2) && context.Input(2).size() == 1 && *context.Input(2).data<bool>();
    if (!trains) return RunInference({}, context);
    TENON_ASSIGN_OR_RETURN(const double ratio, RatioOf(context));
    if (ratio == 0) return RunInference({}, context);
    // Without a seed, every run draws other numbers.
    UniformNumbers numbers(static_cast<uint32_t>(attrs_.seed ? *attrs_.seed : runs_.fetch_add(1)));
    const Tensor& x = context.Input(0);
    Tensor& y = context.Output(0);
    bool* mask = context.HasOutput(1) ? context.Output(1).data<bool>() : nullptr;
    VisitNumber(x.type(), [&](auto number) {
      using T = decltype(number);
      using Wide = typename ArithmeticOf<T>::Type;
      const auto scale = static_cast<Wide>(1 / (1 - ratio));
      for (int64_t i = 0; i < x.size(); ++i) {
        const bool is_kept = numbers.Next() >= ratio;
        const Wide value = Widen(x.data<T>()[i]);
        y.data<T>()[i] = static_cast<T>(is_kept ? static_cast<Wide>(value * scale) : Wide{0});
        if (mask != nullptr) mask[i] = is_kept;
      }
    });
    return OkStatus();
  }

 private:
  bool may_train_ = false;
  mutable std::atomic<int64_t> runs_ = 0;
};

constexpr KernelTraits kInPlace = {.in_place_input = 0};

constexpr OpRow kRows[] = {
    Op<InferOldDropout, RunOldDropout>("Dropout",
                                       {.since = 1, .types = kFloats, .traits = kInPlace}),
    Op<InferDropout, RunInference>("Dropout", {.since = 10, .types = kFloats, .traits = kInPlace}),
    OpClass<DropoutKernel>("Dropout", {.since = 12, .types = kFloats, .traits = kInPlace}),
};

}  // namespace

TENON_OP_FAMILY(Dropout, kRows);

}  // namespace tenon
