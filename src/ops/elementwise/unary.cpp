// Element-wise operators with one input.
#include <cmath>

#include "kernels/elementwise/elementwise.h"
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

using kernels::UnaryOp;

// The parameters of all of them; an operator without an attribute leaves its member alone.
struct UnaryAttrs {
  float alpha = 0;
  float beta = 0;
  float gamma = 0;
  static constexpr auto Fields() {
    return std::tuple(Field("alpha", &UnaryAttrs::alpha), Field("beta", &UnaryAttrs::beta),
                      Field("gamma", &UnaryAttrs::gamma));
  }
};

Status InferSame(const UnaryAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x));
}

// The second parameter of the kernel: gamma for Selu, beta for the rest.
float SecondParameter(UnaryOp op, const UnaryAttrs& attrs) {
  return op == UnaryOp::kSelu ? attrs.gamma : attrs.beta;
}

// In double precision, which no model is fast in, an operator is what the C library has.
double InDouble(UnaryOp op, double x, double a, double b) {
  switch (op) {
    case UnaryOp::kAbs:
      return std::abs(x);
    case UnaryOp::kNeg:
      return -x;
    case UnaryOp::kSign:
      return std::isnan(x) ? x : (x > 0) - (x < 0);
    case UnaryOp::kFloor:
      return std::floor(x);
    case UnaryOp::kCeil:
      return std::ceil(x);
    case UnaryOp::kRound:
      return std::nearbyint(x);
    case UnaryOp::kSqrt:
      return std::sqrt(x);
    case UnaryOp::kReciprocal:
      return 1 / x;
    case UnaryOp::kExp:
      return std::exp(x);
    case UnaryOp::kLog:
      return std::log(x);
    case UnaryOp::kErf:
      return std::erf(x);
    case UnaryOp::kSin:
      return std::sin(x);
    case UnaryOp::kCos:
      return std::cos(x);
    case UnaryOp::kTan:
      return std::tan(x);
    case UnaryOp::kAsin:
      return std::asin(x);
    case UnaryOp::kAcos:
      return std::acos(x);
    case UnaryOp::kAtan:
      return std::atan(x);
    case UnaryOp::kSinh:
      return std::sinh(x);
    case UnaryOp::kCosh:
      return std::cosh(x);
    case UnaryOp::kTanh:
      return std::tanh(x);
    case UnaryOp::kAsinh:
      return std::asinh(x);
    case UnaryOp::kAcosh:
      return std::acosh(x);
    case UnaryOp::kAtanh:
      return std::atanh(x);
    case UnaryOp::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case UnaryOp::kHardSigmoid:
      return std::fmax(0.0, std::fmin(1.0, a * x + b));
    case UnaryOp::kHardSwish:
      return x * std::fmax(0.0, std::fmin(1.0, x / 6 + 0.5));
    case UnaryOp::kRelu:
      return x < 0 ? 0 : x;
    case UnaryOp::kLeakyRelu:
      return x < 0 ? a * x : x;
    case UnaryOp::kThresholdedRelu:
      return x > a ? x : 0;
    case UnaryOp::kElu:
      return x < 0 ? a * std::expm1(x) : x;
    case UnaryOp::kSelu:
      return x < 0 ? b * a * std::expm1(x) : b * x;
    case UnaryOp::kCelu:
      return x < 0 ? a * std::expm1(x / a) : x;
    case UnaryOp::kSoftplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case UnaryOp::kSoftsign:
      return x / (1 + std::abs(x));
    case UnaryOp::kGelu:
      return x * 0.5 * (1 + std::erf(x * M_SQRT1_2));
    case UnaryOp::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
    case UnaryOp::kSwish:
      return x / (1 + std::exp(-a * x));
    case UnaryOp::kMish:
      return x * std::tanh(std::log1p(std::exp(x)));
    default:
      return std::nan("");
  }
}

template <UnaryOp op>
Status RunUnary(const UnaryAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  const auto n = static_cast<size_t>(x.size());
  const float a = attrs.alpha;
  const float b = SecondParameter(op, attrs);
  const size_t grain = kernels::ElementwiseGrain(op);
  if (x.type() == DataType::kFloat) {
    const kernels::UnaryFunction function = kernels::FindUnary(op);
    context.threads().ParallelFor(n, grain, [&](size_t begin, size_t end) {
      function(x.data<float>() + begin, y.data<float>() + begin, end - begin, a, b);
    });
  } else {
    context.threads().ParallelFor(n, grain, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        y.data<double>()[i] = InDouble(op, x.data<double>()[i], a, b);
      }
    });
  }
  return OkStatus();
}

// Gelu-20 chooses between the exact form and its approximation.
struct GeluAttrs {
  std::string approximate = "none";
  static constexpr auto Fields() {
    return std::tuple(Field("approximate", &GeluAttrs::approximate));
  }
};

Status InferGelu(const GeluAttrs& attrs, ShapeContext& context) {
  if (attrs.approximate != "none" && attrs.approximate != "tanh") {
    return InvalidArgument("attribute 'approximate': expected 'none' or 'tanh', got '{}'",
                           attrs.approximate);
  }
  return InferSame({}, context);
}

Status RunGelu(const GeluAttrs& attrs, KernelContext& context) {
  return attrs.approximate == "tanh" ? RunUnary<UnaryOp::kGeluTanh>({}, context)
                                     : RunUnary<UnaryOp::kGelu>({}, context);
}

// Abs, Neg and Sign of integers. The least signed integer has no absolute value and stays itself.
template <class T>
void RunOnIntegers(UnaryOp op, const Tensor& x, Tensor& y) {
  using U = std::make_unsigned_t<T>;
  for (int64_t i = 0; i < x.size(); ++i) {
    const T value = x.data<T>()[i];
    const auto negated = static_cast<T>(U{0} - static_cast<U>(value));
    T result = negated;
    if (op == UnaryOp::kAbs) result = value < 0 ? negated : value;
    if (op == UnaryOp::kSign) result = static_cast<T>((value > 0) - (value < 0));
    y.data<T>()[i] = result;
  }
}

template <UnaryOp op>
Status RunInteger(const UnaryAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  switch (x.type()) {
    case DataType::kInt8:
      RunOnIntegers<int8_t>(op, x, y);
      break;
    case DataType::kInt16:
      RunOnIntegers<int16_t>(op, x, y);
      break;
    case DataType::kInt32:
      RunOnIntegers<int32_t>(op, x, y);
      break;
    case DataType::kInt64:
      RunOnIntegers<int64_t>(op, x, y);
      break;
    case DataType::kUint8:
      RunOnIntegers<uint8_t>(op, x, y);
      break;
    case DataType::kUint16:
      RunOnIntegers<uint16_t>(op, x, y);
      break;
    case DataType::kUint32:
      RunOnIntegers<uint32_t>(op, x, y);
      break;
    case DataType::kUint64:
      RunOnIntegers<uint64_t>(op, x, y);
      break;
    default:
      return NotImplemented("element type {}", DataTypeName(x.type()));
  }
  return OkStatus();
}

// Erf of integers, which the standard allows: -1, 0 and 1, as the value is truncated.
Status RunIntegerErf(const UnaryAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  VisitNumber(x.type(), [&](auto number) {
    using T = decltype(number);
    for (int64_t i = 0; i < x.size(); ++i) {
      y.data<T>()[i] = static_cast<T>(std::erf(static_cast<double>(Widen(x.data<T>()[i]))));
    }
  });
  return OkStatus();
}

Status RunIntegerRelu(const UnaryAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  const auto relu = [&]<class T>(T) {
    for (int64_t i = 0; i < x.size(); ++i) y.data<T>()[i] = std::max<T>(x.data<T>()[i], 0);
  };
  switch (x.type()) {
    case DataType::kInt8:
      relu(int8_t{});
      break;
    case DataType::kInt16:
      relu(int16_t{});
      break;
    case DataType::kInt32:
      relu(int32_t{});
      break;
    default:
      relu(int64_t{});
      break;
  }
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

template <class Test>
Status RunTest(KernelContext& context, Test test) {
  const Tensor& x = context.Input(0);
  bool* y = context.Output(0).data<bool>();
  for (int64_t i = 0; i < x.size(); ++i) {
    y[i] = x.type() == DataType::kFloat ? test(static_cast<double>(x.data<float>()[i]))
                                        : test(x.data<double>()[i]);
  }
  return OkStatus();
}

template <class Attrs>
Status InferTest(const Attrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x), DataType::kBool);
}

Status RunIsNan(const NoAttrs&, KernelContext& context) {
  return RunTest(context, [](double x) { return std::isnan(x); });
}

Status RunIsInf(const IsInfAttrs& attrs, KernelContext& context) {
  return RunTest(context, [&](double x) {
    return std::isinf(x) && (x > 0 ? attrs.detect_positive : attrs.detect_negative);
  });
}

// Not-1.
Status InferNot(const NoAttrs&, ShapeContext& context) { return InferSame({}, context); }

Status RunNot(const NoAttrs&, KernelContext& context) {
  kernels::LogicalNot(context.Input(0).data<uint8_t>(), context.Output(0).data<uint8_t>(),
                      static_cast<size_t>(context.Input(0).size()));
  return OkStatus();
}

constexpr KernelTraits kInPlace = {.in_place_input = 0};
constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};
constexpr TypeSet kReluInts = kSignedInts;

template <UnaryOp op>
constexpr OpRow Unary(std::string_view name, int32_t since = 1) {
  return Op<InferSame, RunUnary<op>>(
      name, {.since = since, .types = kFloatAndDouble, .traits = kInPlace});
}

template <UnaryOp op>
constexpr OpRow OnIntegers(std::string_view name, int32_t since) {
  return Op<InferSame, RunInteger<op>>(name, {.since = since, .types = kInts, .traits = kInPlace});
}

constexpr OpRow kRows[] = {
    Unary<UnaryOp::kAbs>("Abs"),
    OnIntegers<UnaryOp::kAbs>("Abs", 1),
    Unary<UnaryOp::kNeg>("Neg"),
    OnIntegers<UnaryOp::kNeg>("Neg", 1),
    Unary<UnaryOp::kSign>("Sign"),
    OnIntegers<UnaryOp::kSign>("Sign", 1),
    Unary<UnaryOp::kRelu>("Relu"),
    Op<InferSame, RunIntegerRelu>("Relu", {.since = 1, .types = kReluInts, .traits = kInPlace}),
    Unary<UnaryOp::kFloor>("Floor"),
    Unary<UnaryOp::kCeil>("Ceil"),
    Unary<UnaryOp::kRound>("Round"),
    Unary<UnaryOp::kSqrt>("Sqrt"),
    Unary<UnaryOp::kReciprocal>("Reciprocal"),
    Unary<UnaryOp::kExp>("Exp"),
    Unary<UnaryOp::kLog>("Log"),
    Unary<UnaryOp::kErf>("Erf"),
    Op<InferSame, RunIntegerErf>("Erf", {.types = kInts, .traits = kInPlace}),
    Unary<UnaryOp::kSin>("Sin"),
    Unary<UnaryOp::kCos>("Cos"),
    Unary<UnaryOp::kTan>("Tan"),
    Unary<UnaryOp::kAsin>("Asin"),
    Unary<UnaryOp::kAcos>("Acos"),
    Unary<UnaryOp::kAtan>("Atan"),
    Unary<UnaryOp::kSinh>("Sinh"),
    Unary<UnaryOp::kCosh>("Cosh"),
    Unary<UnaryOp::kTanh>("Tanh"),
    Unary<UnaryOp::kAsinh>("Asinh"),
    Unary<UnaryOp::kAcosh>("Acosh"),
    Unary<UnaryOp::kAtanh>("Atanh"),
    Unary<UnaryOp::kSigmoid>("Sigmoid"),
    Unary<UnaryOp::kHardSigmoid>("HardSigmoid"),
    Unary<UnaryOp::kHardSwish>("HardSwish"),
    Unary<UnaryOp::kLeakyRelu>("LeakyRelu"),
    Unary<UnaryOp::kThresholdedRelu>("ThresholdedRelu"),
    Unary<UnaryOp::kElu>("Elu"),
    Unary<UnaryOp::kSelu>("Selu"),
    Unary<UnaryOp::kCelu>("Celu"),
    Unary<UnaryOp::kSoftplus>("Softplus"),
    Unary<UnaryOp::kSoftsign>("Softsign"),
    Unary<UnaryOp::kSwish>("Swish"),
    Unary<UnaryOp::kMish>("Mish"),
    Op<InferGelu, RunGelu>("Gelu", {.since = 1, .types = kFloatAndDouble, .traits = kInPlace}),
    // com.microsoft: x sigmoid(alpha x), and the two forms of Gelu under names of their own.
    Op<InferSame, RunUnary<UnaryOp::kSwish>>(
        "QuickGelu", {.domain = "com.microsoft", .types = kFloatAndDouble, .traits = kInPlace}),
    Op<InferSame, RunUnary<UnaryOp::kGelu>>(
        "Gelu", {.domain = "com.microsoft", .types = kFloatAndDouble, .traits = kInPlace}),
    Op<InferTest<NoAttrs>, RunIsNan>("IsNaN", {.since = 9, .types = kFloatAndDouble}),
    Op<InferTest<IsInfAttrs>, RunIsInf>("IsInf", {.since = 10, .types = kFloatAndDouble}),
    Op<InferNot, RunNot>("Not", {.since = 1, .types = {DataType::kBool}, .traits = kInPlace}),
};

}  // namespace

TENON_OP_FAMILY(Unary, kRows);

}  // namespace tenon
