#include "summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "text.h"
#include "values.h"

namespace tenon::cli {
namespace {

constexpr size_t kShown = 8;  // elements of a container

std::string TensorText(const Ort::Value& value) {
  const Array array = ToArray(value);
  std::vector<std::string> texts;
  const size_t count = ElementCount(array.shape);
  const bool is_shown = IsNumber(array.type) || !array.strings.empty();
  for (size_t i = 0; is_shown && i < std::min(count, kShown); ++i) {
    texts.push_back(ElementText(array, i));
  }
  if (is_shown && count > kShown) texts.push_back("...");
  return Format("{} {} {}", ElementTypeOf(array.type).name, ShapeText(array.shape),
                Join(texts, " "));
}

// A map is two tensors of one length, keys and values.
std::string MapText(const Ort::Value& value) {
  const Ort::AllocatorWithDefaultOptions allocator;
  const Array keys = ToArray(value.GetValue(0, allocator));
  const Array values = ToArray(value.GetValue(1, allocator));
  const size_t count = std::min(ElementCount(keys.shape), ElementCount(values.shape));
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(count, kShown); ++i) {
    texts.push_back(Format("{}: {}", ElementText(keys, i), ElementText(values, i)));
  }
  if (count > kShown) texts.push_back("...");
  return Format("{{{}}}", Join(texts, ", "));
}

}  // namespace

std::optional<Statistics> StatisticsOf(const Array& array) {
  if (!IsNumber(array.type)) return std::nullopt;
  Statistics statistics;
  statistics.min = std::numeric_limits<double>::infinity();
  statistics.max = -statistics.min;
  double sum = 0;
  const size_t count = ElementCount(array.shape);
  for (size_t i = 0; i < count; ++i) {
    const double number = ReadNumber(array.type, array.bytes.data(), i);
    if (std::isnan(number)) {
      ++statistics.nans;
      continue;
    }
    statistics.min = std::min(statistics.min, number);
    statistics.max = std::max(statistics.max, number);
    sum += number;
  }
  if (statistics.nans == count) return std::nullopt;
  statistics.mean = sum / static_cast<double>(count - statistics.nans);
  return statistics;
}

std::string ElementText(const Array& array, size_t i) {
  if (array.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return Format("\"{}\"", array.strings[i]);
  if (!IsNumber(array.type)) return "?";
  const double number = ReadNumber(array.type, array.bytes.data(), i);
  // As float, 0.1f is 0.1 and not 0.10000000149011612.
  return array.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
             ? Format("{}", static_cast<float>(number))
             : Format("{}", number);
}

std::vector<size_t> Largest(const Array& array, size_t row, size_t k) {
  const size_t length = RowLength(array);
  std::vector<size_t> indices(length);
  std::iota(indices.begin(), indices.end(), size_t{0});
  const auto number = [&](size_t i) {
    const double read = ReadNumber(array.type, array.bytes.data(), row * length + i);
    return std::isnan(read) ? -std::numeric_limits<double>::infinity() : read;
  };
  k = std::min(k, length);
  std::partial_sort(indices.begin(), indices.begin() + static_cast<ptrdiff_t>(k), indices.end(),
                    [&](size_t a, size_t b) {
                      const double x = number(a), y = number(b);
                      return x != y ? x > y : a < b;
                    });
  indices.resize(k);
  return indices;
}

size_t RowLength(const Array& array) {
  return array.shape.empty() ? 1 : static_cast<size_t>(array.shape.back());
}

size_t RowCount(const Array& array) {
  const size_t length = RowLength(array);
  return length == 0 ? 0 : ElementCount(array.shape) / length;
}

std::string ValueText(const Ort::Value& value) {
  if (!value.HasValue()) return "nothing";
  switch (value.GetTypeInfo().GetONNXType()) {
    case ONNX_TYPE_TENSOR:
      return TensorText(value);
    case ONNX_TYPE_MAP:
      return MapText(value);
    case ONNX_TYPE_SEQUENCE:
      break;
    default:
      return "a value that cannot be shown";
  }
  const size_t count = value.GetCount();
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(count, kShown); ++i) {
    texts.push_back(
        ValueText(value.GetValue(static_cast<int>(i), Ort::AllocatorWithDefaultOptions())));
  }
  if (count > kShown) texts.push_back("...");
  return Format("sequence of {}: {}", count, Join(texts, ", "));
}

}  // namespace tenon::cli
