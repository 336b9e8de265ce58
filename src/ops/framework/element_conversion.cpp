#include "ops/framework/element_conversion.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/parse_double.h"
#include "kernels/elementwise/convert.h"
#include "ops/framework/element.h"

namespace tenon {
namespace {

// Elements go through a small buffer of the widest type of their kind, double, int64_t or uint64_t,
// so that there is a loop per type and kind and not one per pair of types.
constexpr size_t kBlock = 256;

// A double narrowed to float with the last bit set if that is inexact, so that rounding the result
// to fewer bits rounds the double itself.
float NarrowToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  // One less is the next float towards zero. Without branches, so that loops are vectorised.
  const uint32_t towards_zero = bits - (std::abs(back) > std::abs(value) ? 1 : 0);
  const bool is_exact = (back == value) | (value != value);
  return std::bit_cast<float>(is_exact ? bits : towards_zero | 1);
}

template <class T>
T TruncateTo(double value) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    constexpr double kHalf = 9223372036854775808.0;
    if (value >= kHalf && value < 2 * kHalf) {
      return static_cast<uint64_t>(static_cast<int64_t>(value - kHalf)) + (uint64_t{1} << 63);
    }
  }
  using Wide = std::conditional_t<(sizeof(T) < 4 || std::is_same_v<T, int32_t>), int32_t, int64_t>;
  constexpr auto kLeast = static_cast<double>(std::numeric_limits<Wide>::min());
  const bool fits = sizeof(Wide) == 4 ? value > kLeast - 1 && value < -kLeast
                                      : value >= kLeast && value < -kLeast;
  return static_cast<T>(fits ? static_cast<Wide>(value) : std::numeric_limits<Wide>::min());
}

template <class T, class Wide>
T ConvertTo(Wide value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T> && std::is_same_v<Wide, double>) {
    return TruncateTo<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

bool IsPackedInteger(DataType type) {
  return type == DataType::kInt4 || type == DataType::kUint4 || type == DataType::kInt2 ||
         type == DataType::kUint2;
}

bool IsFloat(DataType type) { return kFloats.Contains(type) || IsNarrowFloat(type); }

template <class Wide>
void Load(const Tensor& source, size_t first, size_t n, Wide* block) {
  const DataType type = source.type();
  const auto* bytes = static_cast<const uint8_t*>(source.raw());
  const size_t bits = DataTypeBits(type);
  if (IsNarrowFloat(type)) {
    for (size_t i = 0; i < n; ++i) {
      block[i] = static_cast<Wide>(DecodeNarrowFloat(type, UnpackBits(bytes, first + i, bits)));
    }
  } else if (IsPackedInteger(type)) {
    const bool is_signed = type == DataType::kInt4 || type == DataType::kInt2;
    const int sign = is_signed ? 1 << (bits - 1) : 0;
    for (size_t i = 0; i < n; ++i) {
      // Flipping the sign bit and subtracting it extends the sign.
      block[i] = static_cast<Wide>((UnpackBits(bytes, first + i, bits) ^ sign) - sign);
    }
  } else if (type == DataType::kBool) {
    for (size_t i = 0; i < n; ++i) block[i] = static_cast<Wide>(bytes[first + i] != 0);
  } else {
    VisitNumber(type, [&](auto number) {
      using T = decltype(number);
      const T* from = source.data<T>() + first;
      for (size_t i = 0; i < n; ++i) block[i] = static_cast<Wide>(Widen(from[i]));
    });
  }
}

// The kernels' name of a type; nothing if they have none.
std::optional<kernels::CastType> CastTypeOf(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return kernels::CastType::kFloat;
    case DataType::kDouble:
      return kernels::CastType::kDouble;
    case DataType::kInt8:
      return kernels::CastType::kInt8;
    case DataType::kInt16:
      return kernels::CastType::kInt16;
    case DataType::kInt32:
      return kernels::CastType::kInt32;
    case DataType::kInt64:
      return kernels::CastType::kInt64;
    case DataType::kUint8:
      return kernels::CastType::kUint8;
    case DataType::kUint16:
      return kernels::CastType::kUint16;
    case DataType::kUint32:
      return kernels::CastType::kUint32;
    case DataType::kUint64:
      return kernels::CastType::kUint64;
    case DataType::kBool:
      return kernels::CastType::kBool;
    case DataType::kFloat16:
      return kernels::CastType::kFloat16;
    case DataType::kBfloat16:
      return kernels::CastType::kBfloat16;
    default:
      return std::nullopt;
  }
}

template <class Wide>
void Store(const Wide* block, size_t first, size_t n, const ConversionOptions& options,
           Tensor& target) {
  const DataType type = target.type();
  auto* bytes = static_cast<uint8_t*>(target.raw());
  const size_t bits = DataTypeBits(type);
  if (IsNarrowFloat(type)) {
    for (size_t i = 0; i < n; ++i) {
      const auto value = static_cast<double>(block[i]);
      PackBits(bytes, first + i, bits,
               EncodeNarrowFloat(type, value, options.saturate, options.rounding));
    }
  } else if (IsPackedInteger(type)) {
    for (size_t i = 0; i < n; ++i) {
      PackBits(bytes, first + i, bits, static_cast<uint8_t>(ConvertTo<int8_t>(block[i])));
    }
  } else if (bits == 16 && kFloats.Contains(type)) {
    const kernels::CastFunction narrow =
        kernels::FindCast(kernels::CastType::kFloat, *CastTypeOf(type));
    for (size_t begin = 0; begin < n; begin += kBlock) {
      const size_t count = std::min(kBlock, n - begin);
      float floats[kBlock];
      for (size_t i = 0; i < count; ++i) {
        floats[i] = NarrowToOdd(static_cast<double>(block[begin + i]));
      }
      narrow(floats, bytes + 2 * (first + begin), count);
    }
  } else {
    VisitNumber(type, [&](auto number) {
      using T = decltype(number);
      if constexpr (!std::is_same_v<T, Float16> && !std::is_same_v<T, Bfloat16>) {
        T* to = target.data<T>() + first;
        for (size_t i = 0; i < n; ++i) to[i] = ConvertTo<T>(block[i]);
      }
    });
  }
}

// `text` without white space and a plus sign in front.
std::string_view TrimFront(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n\v\f\r");
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <class Wide>
bool ParseAs(std::string_view text, Wide* value) {
  return std::from_chars(text.data(), text.data() + text.size(), *value).ec == std::errc();
}

// The number at the start of a string, in the widest type of the target's kind.
bool Parse(std::string_view text, double* value) { return ParseDouble(TrimFront(text), value); }
bool Parse(std::string_view text, int64_t* value) {
  if (ParseAs(TrimFront(text), value)) return true;
  uint64_t large = 0;
  if (!ParseAs(TrimFront(text), &large)) return false;
  *value = static_cast<int64_t>(large);
  return true;
}

template <class Wide>
Status ParseElements(const Tensor& source, const ConversionOptions& options, Tensor& target) {
  for (int64_t i = 0; i < source.size(); ++i) {
    Wide value = 0;
    const std::string& text = source.data<std::string>()[i];
    if (!Parse(text, &value)) {
      return InvalidArgument("element {}: '{}' is not a number of type {}", i, text,
                             DataTypeName(target.type()));
    }
    Store(&value, static_cast<size_t>(i), 1, options, target);
  }
  return OkStatus();
}

std::string ToText(int64_t value) { return Format("{}", value); }
std::string ToText(uint64_t value) { return Format("{}", value); }
std::string ToText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  return Format("{:.8g}", value);
}

// The vector code for the pair of types, unless double rounding could be visible.
kernels::CastFunction FindFastConversion(DataType from, DataType to) {
  const auto source = CastTypeOf(from);
  const auto target = CastTypeOf(to);
  const bool rounds_twice = DataTypeBits(from) == 64 && IsFloat(to) && DataTypeBits(to) == 16;
  if (!source || !target || rounds_twice) return nullptr;
  return kernels::FindCast(*source, *target);
}

template <class Wide>
void ConvertBlocks(const Tensor& source, size_t begin, size_t end, const ConversionOptions& options,
                   Tensor& target) {
  Wide block[kBlock];
  for (size_t first = begin; first < end; first += kBlock) {
    const size_t n = std::min(kBlock, end - first);
    Load(source, first, n, block);
    if (target.type() == DataType::kString) {
      for (size_t i = 0; i < n; ++i) target.data<std::string>()[first + i] = ToText(block[i]);
    } else {
      Store(block, first, n, options, target);
    }
  }
}

}  // namespace

void LoadElements(const Tensor& source, size_t first, size_t n, double* values) {
  Load(source, first, n, values);
}

void StoreElements(const double* values, size_t first, size_t n, const ConversionOptions& options,
                   Tensor& target) {
  Store(values, first, n, options, target);
}

Status ConvertElements(const Tensor& source, Tensor& target, const ConversionOptions& options,
                       ThreadPool& threads) {
  const auto n = static_cast<size_t>(source.size());
  if (source.type() == target.type()) {
    if (source.raw() == target.raw()) return OkStatus();
    if (source.type() == DataType::kString) {
      std::copy_n(source.data<std::string>(), n, target.data<std::string>());
    } else if (n > 0) {
      std::memcpy(target.raw(), source.raw(), source.bytes());
    }
    return OkStatus();
  }
  if (source.type() == DataType::kString) {
    return IsFloat(target.type()) ? ParseElements<double>(source, options, target)
                                  : ParseElements<int64_t>(source, options, target);
  }
  const kernels::CastFunction convert = FindFastConversion(source.type(), target.type());
  if (convert != nullptr && source.raw() != target.raw()) {
    const size_t source_bytes = DataTypeBits(source.type()) / 8;
    const size_t target_bytes = DataTypeBits(target.type()) / 8;
    threads.ParallelFor(n, kernels::kCastGrain, [&](size_t begin, size_t end) {
      convert(static_cast<const char*>(source.raw()) + begin * source_bytes,
              static_cast<char*>(target.raw()) + begin * target_bytes, end - begin);
    });
    return OkStatus();
  }
  // The bits after the last packed element are zero.
  if (DataTypeBits(target.type()) % 8 != 0 && target.bytes() > 0) {
    static_cast<uint8_t*>(target.raw())[target.bytes() - 1] = 0;
  }
  // A multiple of 8, so that no two tasks write to one byte of packed elements.
  constexpr size_t kGrain = 32 * kBlock;
  threads.ParallelFor(n, kGrain, [&](size_t begin, size_t end) {
    if (IsFloat(source.type())) {
      ConvertBlocks<double>(source, begin, end, options, target);
    } else if (source.type() == DataType::kUint64) {
      ConvertBlocks<uint64_t>(source, begin, end, options, target);
    } else {
      ConvertBlocks<int64_t>(source, begin, end, options, target);
    }
  });
  return OkStatus();
}

}  // namespace tenon
