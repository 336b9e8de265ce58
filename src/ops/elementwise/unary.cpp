// Element-wise operators with one input.
#include <cmath>

#include "ops/framework/element.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/framework/unary_node.h"

namespace tenon {
namespace {

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
Status RunInteger(const NoAttrs&, KernelContext& context) {
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

// Erf of integers, which the standard allows: truncated, the result is -1, 0 or 1.
Status RunIntegerErf(const NoAttrs&, KernelContext& context) {
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

Status RunIntegerRelu(const NoAttrs&, KernelContext& context) {
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
  return Op<InferSame, RunInteger<op>>(name, {.since = since, .types = kInts, .traits = kInPlace});
}

constexpr OpRow kRows[] = {
#define UNARY_OPERATOR(name, ...) Function("", #name),
#define UNARY_ALIAS(op_type, name) Function("com.microsoft", #op_type),
#include "base/unary_functions.inc"
    OnIntegers<UnaryOp::kAbs>("Abs", 1),
    OnIntegers<UnaryOp::kNeg>("Neg", 1),
    OnIntegers<UnaryOp::kSign>("Sign", 1),
    Op<InferSame, RunIntegerRelu>("Relu", {.types = kSignedInts, .traits = kInPlace}),
    Op<InferSame, RunIntegerErf>("Erf", {.types = kInts, .traits = kInPlace}),
    Op<InferTest<NoAttrs>, RunIsNan>("IsNaN", {.since = 9, .types = kFloatAndDouble}),
    Op<InferTest<IsInfAttrs>, RunIsInf>("IsInf", {.since = 10, .types = kFloatAndDouble}),
    Op<InferSame, RunNot>("Not", {.since = 1, .types = {DataType::kBool}, .traits = kInPlace}),
};

}  // namespace

TENON_OP_FAMILY(Unary, kRows);

}  // namespace tenon
