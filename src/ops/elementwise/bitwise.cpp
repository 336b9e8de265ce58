// Operators on bits: BitShift, BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitCast.
#include <array>
#include <cstring>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"
#include "ops/framework/run_broadcast.h"

namespace tenon {
namespace {

// Calls visit(T()) for the integer types.
template <class Visit>
decltype(auto) VisitInteger(DataType type, Visit&& visit) {
  switch (type) {
    case DataType::kInt8:
      return visit(int8_t());
    case DataType::kInt16:
      return visit(int16_t());
    case DataType::kInt32:
      return visit(int32_t());
    case DataType::kInt64:
      return visit(int64_t());
    case DataType::kUint8:
      return visit(uint8_t());
    case DataType::kUint16:
      return visit(uint16_t());
    case DataType::kUint32:
      return visit(uint32_t());
    default:
      return visit(uint64_t());
  }
}

// y = F()(a, b), broadcast. An operand that repeats one element along a row is read once.
template <class T, class F>
Status Combine(KernelContext& context) {
  constexpr kernels::BinaryFunctions kRows = {
      [](const void* a, const void* b, void* y, size_t n) {
        const T *from_a = static_cast<const T*>(a), *from_b = static_cast<const T*>(b);
        for (size_t i = 0; i < n; ++i)
          static_cast<T*>(y)[i] = static_cast<T>(F()(from_a[i], from_b[i]));
      },
      [](const void* a, const void* b, void* y, size_t n) {
        const T value = *static_cast<const T*>(a), *from_b = static_cast<const T*>(b);
        for (size_t i = 0; i < n; ++i)
          static_cast<T*>(y)[i] = static_cast<T>(F()(value, from_b[i]));
      },
      [](const void* a, const void* b, void* y, size_t n) {
        const T *from_a = static_cast<const T*>(a), value = *static_cast<const T*>(b);
        for (size_t i = 0; i < n; ++i)
          static_cast<T*>(y)[i] = static_cast<T>(F()(from_a[i], value));
      },
  };
  return RunBroadcast(context, kRows, CopyGrain(sizeof(T)), context.Input(0), context.Input(1),
                      context.Output(0));
}

template <class Attrs>
Status InferBroadcast(const Attrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, BroadcastShapes(a, b));
  return context.SetOutput(0, std::move(y));
}

// BitShift-28; BitShift-11 lacks the signed types.
struct BitShiftAttrs {
  std::string direction;
  static constexpr auto Fields() {
    return std::tuple(Field("direction", &BitShiftAttrs::direction));
  }
};

// Whether `amount` shifts out every bit: it is negative or at least the number of bits.
template <class T>
bool ShiftsAll(T amount) {
  return static_cast<std::make_unsigned_t<T>>(amount) >= 8 * sizeof(T);
}

struct ShiftRight {
  template <class T>
  T operator()(T x, T amount) const {
    if (ShiftsAll(amount)) return x < 0 ? static_cast<T>(-1) : T(0);
    return static_cast<T>(x >> amount);
  }
};

Status InferBitShift(const BitShiftAttrs& attrs, ShapeContext& context) {
  if (attrs.direction != "LEFT" && attrs.direction != "RIGHT") {
    return InvalidArgument("attribute 'direction': expected LEFT or RIGHT, got '{}'",
                           attrs.direction);
  }
  return InferBroadcast(attrs, context);
}

// BitwiseAnd-18, BitwiseOr-18, BitwiseXor-18: the sign does not matter.
template <class Function>
Status RunBitwise(const NoAttrs&, KernelContext& context) {
  return VisitElement(context.Input(0).type(), [&]<class T>(T) -> Status {
    if constexpr (std::is_integral_v<T>) {
      return Combine<T, Function>(context);
    } else {
      return NotImplemented("elements that are no integers");
    }
  });
}

// For shifts to the left the sign does not matter either.
struct ShiftLeft {
  template <class T>
  T operator()(T x, T amount) const {
    return ShiftsAll(amount) ? T(0) : static_cast<T>(x << amount);
  }
};

Status RunBitShift(const BitShiftAttrs& attrs, KernelContext& context) {
  if (attrs.direction == "LEFT") return RunBitwise<ShiftLeft>({}, context);
  return VisitInteger(context.Input(0).type(),
                      [&]<class T>(T) { return Combine<T, ShiftRight>(context); });
}

// BitwiseNot-18.
Status InferNot(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x));
}

Status RunNot(const NoAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const uint8_t* from = static_cast<const uint8_t*>(x.raw());
  auto* to = static_cast<uint8_t*>(context.Output(0).raw());
  context.threads().ParallelFor(x.bytes(), CopyGrain(1), [from, to](size_t begin, size_t end) {
    size_t i = begin;
    // Words are copied first, since `to` may be `from`.
    for (std::array<uint64_t, 4> words; i + sizeof(words) <= end; i += sizeof(words)) {
      std::memcpy(&words, from + i, sizeof(words));
      for (uint64_t& word : words) word = ~word;
      std::memcpy(to + i, &words, sizeof(words));
    }
    for (; i < end; ++i) to[i] = static_cast<uint8_t>(~from[i]);
  });
  return OkStatus();
}

// BitCast-26: the same bytes as another type of the same width.
struct BitCastAttrs {
  DataType to = DataType::kUndefined;
  static constexpr auto Fields() { return std::tuple(Field("to", &BitCastAttrs::to)); }
};

Status InferBitCast(const BitCastAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  const DataType from = context.ElementType(0);
  if (attrs.to == DataType::kString || DataTypeBits(attrs.to) != DataTypeBits(from)) {
    return InvalidArgument("attribute 'to': expected a type of {} bits as {}, got {}",
                           DataTypeBits(from), DataTypeName(from), DataTypeName(attrs.to));
  }
  return context.SetOutput(0, std::move(x), attrs.to);
}

Status RunBitCast(const BitCastAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  if (x.bytes() > 0 && y.raw() != x.raw()) std::memcpy(y.raw(), x.raw(), x.bytes());
  return OkStatus();
}

constexpr KernelTraits kEither = {.in_place_input = 0, .in_place_also = 1};

template <class Function>
constexpr OpRow Bitwise(std::string_view name) {
  return Op<InferBroadcast<NoAttrs>, RunBitwise<Function>>(
      name, {.since = 18, .types = kInts, .traits = kEither});
}

constexpr OpRow kRows[] = {
    Op<InferBitShift, RunBitShift>("BitShift", {.since = 11, .types = kInts, .traits = kEither}),
    Bitwise<std::bit_and<>>("BitwiseAnd"),
    Bitwise<std::bit_or<>>("BitwiseOr"),
    Bitwise<std::bit_xor<>>("BitwiseXor"),
    Op<InferNot, RunNot>("BitwiseNot",
                         {.since = 18, .types = kInts, .traits = {.in_place_input = 0}}),
    Op<InferBitCast, RunBitCast>("BitCast", {.since = 26, .traits = {.in_place_input = 0}}),
};

}  // namespace

TENON_OP_FAMILY(Bitwise, kRows);

}  // namespace tenon
