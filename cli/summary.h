// Summaries of a run's outputs: sizes, statistics, the largest elements.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <optional>
#include <string>
#include <vector>

#include "array.h"

namespace tenon::cli {

struct Statistics {  // of the elements that are numbers
  double min = 0;
  double max = 0;
  double mean = 0;
  size_t nans = 0;
};

// Nothing for arrays that are empty, all NaN or not numbers.
std::optional<Statistics> StatisticsOf(const Array& array);

// The element in digits that read back as the same number, or the quoted string.
std::string ElementText(const Array& array, size_t i);

// Indices along the last axis of the `k` largest elements of row `row`, largest first; NaN is the
// smallest, and of equal elements the first comes first.
std::vector<size_t> Largest(const Array& array, size_t row, size_t k);

// The length of the last axis, 1 for scalars, and the number of rows before it.
size_t RowLength(const Array& array);
size_t RowCount(const Array& array);

// A description of a sequence, map or optional, such as "sequence of 2: {0: 0.25, 1: 0.75}, ...".
std::string ValueText(const Ort::Value& value);

}  // namespace tenon::cli
