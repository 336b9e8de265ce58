// Element-wise operators with one input.
#include <algorithm>
#include <limits>
#include <span>

#include "base/arithmetic.h"
#include "ops/framework/element_type.h"
#include "ops/framework/run_broadcast.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/framework/unary_node.h"

namespace tenon {
namespace {

using kernels::BinaryOp;

Status InferSame(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x));
}

// Gelu-20 chooses between the exact form and its approximation; the parameters of all others are
// those of base/unary_functions.inc.
struct UnaryAttrs {
  std::string approximate = "none";
  static constexpr auto Fields() {
    return std::tuple(Field("approximate", &UnaryAttrs::approximate));
  }
};

Status InferUnary(const UnaryAttrs& attrs, ShapeContext& context) {
  if (attrs.approximate != "none" && attrs.approximate != "tanh") {
    return InvalidArgument("attribute 'approximate': expected 'none' or 'tanh', got '{}'",
                           attrs.approximate);
  }
  return InferSame({}, context);
}

// A function of base/unary_functions.inc, on floats or doubles.
class Unary final : public StatefulKernel<InferUnary> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_ASSIGN_OR_RETURN(spec_, UnarySpecOf(info.node(), *UnaryOpOf(info.node())));
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Tensor& x = context.Input(0);
    Tensor& y = context.Output(0);
    const auto n = static_cast<size_t>(x.size());
    const kernels::UnaryFunction function = kernels::FindUnary(spec_.op);
    context.threads().ParallelFor(
        n, kernels::ElementwiseGrain(spec_.op), [&](size_t begin, size_t end) {
          if (x.type() == DataType::kFloat) {
            function(x.data<float>() + begin, y.data<float>() + begin, end - begin, spec_.alpha,
                     spec_.beta);
          } else {
            kernels::ApplyInDouble(spec_.op, x.data<double>() + begin, y.data<double>() + begin,
                                   end - begin, spec_.alpha, spec_.beta);
          }
        });
    return OkStatus();
  }

 private:
  kernels::ActivationSpec spec_;
};

// As integers of any width, whose lowest byte is the first.
constexpr int64_t kZero = 0, kOne = 1, kMinusOne = -1, kSix = 6;

// Abs, Neg, Sign, Relu and Erf of integers. The least signed integer has no absolute value and
// stays itself.
template <UnaryOp op>
Status RunInteger(const NoAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const kernels::ElementType type, ElementTypeOf(x.type()));
  const auto clamp = [&](BinaryOp step, const int64_t& bound) -> ScalarStep {
    return {kernels::FindBinary(step, type).vector_scalar, &bound};
  };
  const bool is_signed = kSignedInts.Contains(x.type());
  const ScalarStep rectify = clamp(BinaryOp::kMax, kZero);
  const ScalarStep absolute[] = {
      {kernels::FindBinary(BinaryOp::kSub, type).scalar_vector, &kZero, true},
      {kernels::FindBinary(BinaryOp::kMax, type).vector_vector, nullptr}};
  // Erf is truncated: from 6 on it is 1 as a double.
  const ScalarStep sign[] = {clamp(BinaryOp::kDiv, kSix),
                             clamp(BinaryOp::kMax, is_signed ? kMinusOne : kZero),
                             clamp(BinaryOp::kMin, kOne)};
  std::span<const ScalarStep> steps = sign;
  if (op == UnaryOp::kSign) steps = steps.subspan(1);
  if (op == UnaryOp::kNeg) steps = std::span(absolute).first(1);
  if (op == UnaryOp::kRelu) steps = {&rectify, 1};
  if (op == UnaryOp::kAbs) steps = std::span(absolute).first(is_signed ? 2 : 0);
  RunScalarSteps(context, steps, x, context.Output(0));
  return OkStatus();
}

// IsNaN-9 and IsInf-10.
struct IsInfAttrs {
  bool detect_negative = true;
  bool detect_positive = true;
  static constexpr auto Fields() {
    return std::tuple(Field("detect_negative", &IsInfAttrs::detect_negative),
                      Field("detect_positive", &IsInfAttrs::detect_positive));
  }
};

template <class Attrs>
Status InferTest(const Attrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x), DataType::kBool);
}

// Only NaN differs from itself.
Status RunIsNan(const NoAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const kernels::ElementType type, ElementTypeOf(x.type()));
  const kernels::BinaryFunction equal = kernels::FindBinary(BinaryOp::kEqual, type).vector_vector;
  const auto* from = static_cast<const uint8_t*>(x.raw());
  auto* y = static_cast<uint8_t*>(context.Output(0).raw());
  const size_t grain = kernels::ElementwiseGrain(BinaryOp::kEqual);
  context.threads().ParallelFor(static_cast<size_t>(x.size()), grain,
                                [&](size_t begin, size_t end) {
                                  const uint8_t* own = from + begin * kernels::SizeOf(type);
                                  equal(own, own, y + begin, end - begin);
                                  kernels::LogicalNot(y + begin, y + begin, end - begin);
                                });
  return OkStatus();
}

Status RunIsInf(const IsInfAttrs& attrs, KernelContext& context) {
  constexpr size_t kTile = 1024;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr double kDoubles[] = {kInfinity, -kInfinity};
  constexpr float kFloats[] = {kInfinity, -kInfinity};
  const bool is_wanted[] = {attrs.detect_positive, attrs.detect_negative};
  const Tensor& x = context.Input(0);
  const bool is_float = x.type() == DataType::kFloat;
  TENON_ASSIGN_OR_RETURN(const kernels::ElementType type, ElementTypeOf(x.type()));
  const kernels::BinaryFunction equal = kernels::FindBinary(BinaryOp::kEqual, type).vector_scalar;
  const kernels::BinaryFunction either =
      kernels::FindLogical(kernels::LogicalOp::kOr).vector_vector;
  const auto* from = static_cast<const uint8_t*>(x.raw());
  auto* y = static_cast<uint8_t*>(context.Output(0).raw());
  const auto size = static_cast<size_t>(x.size());
  context.threads().ParallelFor(CeilDiv(size, kTile), 32, [&](size_t begin, size_t end) {
    for (size_t at = begin * kTile; at < std::min(size, end * kTile); at += kTile) {
      const size_t n = std::min(kTile, size - at);
      uint8_t found[2][kTile] = {};
      for (size_t i = 0; i < 2; ++i) {
        const void* infinity = is_float ? static_cast<const void*>(&kFloats[i]) : &kDoubles[i];
        if (is_wanted[i]) equal(from + at * kernels::SizeOf(type), infinity, found[i], n);
      }
      either(found[0], found[1], y + at, n);
    }
  });
  return OkStatus();
}

// Not-1.
Status RunNot(const NoAttrs&, KernelContext& context) {
  kernels::LogicalNot(context.Input(0).data<uint8_t>(), context.Output(0).data<uint8_t>(),
                      static_cast<size_t>(context.Input(0).size()));
  return OkStatus();
}

constexpr KernelTraits kInPlace = {.in_place_input = 0};
constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};

constexpr OpRow Function(std::string_view domain, std::string_view name) {
  return OpClass<Unary>(name, {.domain = domain, .types = kFloatAndDouble, .traits = kInPlace});
}

template <UnaryOp op>
constexpr OpRow OnIntegers(std::string_view name, int32_t since) {
  constexpr KernelTraits kTraits = op == UnaryOp::kAbs ? KernelTraits() : kInPlace;
  return Op<InferSame, RunInteger<op>>(name, {.since = since, .types = kInts, .traits = kTraits});
}

constexpr OpRow kRows[] = {
#define UNARY_OPERATOR(name, ...) Function("", #name),
#define UNARY_ALIAS(op_type, name) Function("com.microsoft", #op_type),
#include "base/unary_functions.inc"
    OnIntegers<UnaryOp::kAbs>("Abs", 1),
    OnIntegers<UnaryOp::kNeg>("Neg", 1),
    OnIntegers<UnaryOp::kSign>("Sign", 1),
    Op<InferSame, RunInteger<UnaryOp::kRelu>>("Relu", {.types = kSignedInts, .traits = kInPlace}),
    OnIntegers<UnaryOp::kErf>("Erf", 1),
    Op<InferTest<NoAttrs>, RunIsNan>("IsNaN", {.since = 9, .types = kFloatAndDouble}),
    Op<InferTest<IsInfAttrs>, RunIsInf>("IsInf", {.since = 10, .types = kFloatAndDouble}),
    Op<InferSame, RunNot>("Not", {.since = 1, .types = {DataType::kBool}, .traits = kInPlace}),
};

}  // namespace

TENON_OP_FAMILY(Unary, kRows);

}  // namespace tenon
