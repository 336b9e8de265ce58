#include "runtime/tensor_text.h"

#include <cmath>
#include <complex>
#include <cstring>

#include "base/json_writer.h"

namespace tenon {
namespace {

template <class T>
T Load(const Tensor& tensor, size_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(tensor.raw()) + i * sizeof(T), sizeof(T));
  return value;
}

// Element `i` of a type with `bits` bits per element; the first element is in the lowest bits.
unsigned LoadBits(const Tensor& tensor, size_t i, size_t bits) {
  const auto* const bytes = static_cast<const uint8_t*>(tensor.raw());
  const size_t position = i * bits;
  unsigned both = bytes[position / 8];
  if (position % 8 + bits > 8) both |= unsigned{bytes[position / 8 + 1]} << 8;
  return (both >> position % 8) & ((1u << bits) - 1);
}

int SignExtended(unsigned value, size_t bits) {
  const unsigned sign = 1u << (bits - 1);
  return static_cast<int>(value ^ sign) - static_cast<int>(sign);
}

// Calls `use` with element `i` as a number of the nearest C++ type. Returns false if it is no
// number.
template <class Use>
bool UseNumber(const Tensor& tensor, size_t i, Use&& use) {
  switch (tensor.type()) {
    case DataType::kFloat:
      return use(Load<float>(tensor, i)), true;
    case DataType::kDouble:
      return use(Load<double>(tensor, i)), true;
    case DataType::kFloat16:
      return use(static_cast<float>(Load<Float16>(tensor, i))), true;
    case DataType::kBfloat16:
      return use(static_cast<float>(Load<Bfloat16>(tensor, i))), true;
    case DataType::kInt8:
      return use(int64_t{Load<int8_t>(tensor, i)}), true;
    case DataType::kInt16:
      return use(int64_t{Load<int16_t>(tensor, i)}), true;
    case DataType::kInt32:
      return use(int64_t{Load<int32_t>(tensor, i)}), true;
    case DataType::kInt64:
      return use(Load<int64_t>(tensor, i)), true;
    case DataType::kUint8:
      return use(int64_t{Load<uint8_t>(tensor, i)}), true;
    case DataType::kUint16:
      return use(int64_t{Load<uint16_t>(tensor, i)}), true;
    case DataType::kUint32:
      return use(int64_t{Load<uint32_t>(tensor, i)}), true;
    case DataType::kUint64:
      return use(Load<uint64_t>(tensor, i)), true;
    case DataType::kInt4:
    case DataType::kInt2: {
      const size_t bits = DataTypeBits(tensor.type());
      return use(int64_t{SignExtended(LoadBits(tensor, i, bits), bits)}), true;
    }
    case DataType::kUint4:
    case DataType::kUint2:
      return use(int64_t{LoadBits(tensor, i, DataTypeBits(tensor.type()))}), true;
    default:
      return false;
  }
}

void AppendElement(const Tensor& tensor, size_t i, std::string& text) {
  if (UseNumber(tensor, i, [&](auto number) { text += Format("{}", number); })) return;
  switch (tensor.type()) {
    case DataType::kBool:
      text += Load<uint8_t>(tensor, i) != 0 ? "true" : "false";
      return;
    case DataType::kString: {
      JsonWriter json;
      json.Text(tensor.values<std::string>()[i]);
      text += json.text();
      return;
    }
    case DataType::kComplex64: {
      const auto value = Load<std::complex<float>>(tensor, i);
      text += Format("{}{:+}j", value.real(), value.imag());
      return;
    }
    case DataType::kComplex128: {
      const auto value = Load<std::complex<double>>(tensor, i);
      text += Format("{}{:+}j", value.real(), value.imag());
      return;
    }
    default:
      text += Format("{:#x}", LoadBits(tensor, i, DataTypeBits(tensor.type())));
  }
}

class TextWriter {
 public:
  TextWriter(const Tensor& tensor, const TensorTextOptions& options)
      : tensor_(tensor),
        options_(options),
        is_abbreviated_(options.threshold > 0 &&
                        static_cast<size_t>(tensor.size()) > options.threshold) {}

  std::string Write() {
    Append(0, 0, static_cast<size_t>(tensor_.size()));
    return std::move(text_);
  }

 private:
  // Appends the `count` elements from `first` on, which `axis` and the axes after it hold.
  void Append(size_t axis, size_t first, size_t count) {
    if (axis == tensor_.rank()) return AppendElement(tensor_, first, text_);
    const auto size = static_cast<size_t>(tensor_.shape()[axis]);
    const size_t edge = options_.edge_items;
    const bool is_cut = is_abbreviated_ && size > edge && size - edge > edge;
    text_ += '[';
    for (size_t i = 0; i < size; ++i) {
      if (i > 0) Separate(axis);
      if (is_cut && i == edge) {
        text_ += "...";
        i = size - edge;
        if (i == size) break;
        Separate(axis);
      }
      Append(axis + 1, first + i * (count / size), count / size);
    }
    text_ += ']';
  }

  void Separate(size_t axis) {
    const bool is_last = axis + 1 == tensor_.rank();
    text_ += is_last ? ", " : ",\n" + options_.indent + std::string(axis + 1, ' ');
  }

  const Tensor& tensor_;
  const TensorTextOptions& options_;
  const bool is_abbreviated_;
  std::string text_;
};

}  // namespace

std::optional<double> NumberAt(const Tensor& tensor, size_t i) {
  std::optional<double> result;
  UseNumber(tensor, i, [&](auto number) { result = static_cast<double>(number); });
  return result;
}

std::string TensorText(const Tensor& tensor, const TensorTextOptions& options) {
  return TextWriter(tensor, options).Write();
}

std::string TensorStatistics(const Tensor& tensor) {
  size_t least = 0, most = 0, counted = 0, nans = 0, infinities = 0;
  double min = 0, max = 0, sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(tensor.size()); ++i) {
    double value = 0;
    const auto keep = [&](auto number) { value = static_cast<double>(number); };
    if (!UseNumber(tensor, i, keep)) return "";
    if (std::isnan(value)) {
      ++nans;
      continue;
    }
    infinities += std::isinf(value);
    sum += value;
    if (counted == 0 || value < min) min = value, least = i;
    if (counted == 0 || value > max) max = value, most = i;
    ++counted;
  }
  std::string text;
  if (counted > 0) {
    text = "Min: ";
    AppendElement(tensor, least, text);
    text += ", Max: ";
    AppendElement(tensor, most, text);
    text += Format(", Mean: {}, ", sum / static_cast<double>(counted));
  }
  return text + Format("NaN: {}, Inf: {}", nans, infinities);
}

}  // namespace tenon
