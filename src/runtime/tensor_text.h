// The elements of tensors as readable text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tensor/tensor.h"

namespace tenon {

struct TensorTextOptions {
  // Tensors with more elements are shown without the middle of their axes; 0: all are shown whole.
  size_t threshold = 0;
  // How many elements remain at each end of such an axis.
  size_t edge_items = 3;
  // Printed before each line but the first.
  std::string indent;
};

// Nested lists as NumPy prints them, a line for each row: "[[1, 2],
//  [3, 4]]"; a scalar is its element alone. Numbers read back as the same number, and strings are
// in JSON's form. Floats of 8 bits and less are bit patterns, "0x38". The elements must be on the
// host and may be unaligned.
std::string TensorText(const Tensor& tensor, const TensorTextOptions& options);

// Element `i`, if the type's elements are numbers that are not shown as bits.
std::optional<double> NumberAt(const Tensor& tensor, size_t i);

// "Min: -1, Max: 2.5, Mean: 0.75, NaN: 0, Inf: 0", the first three without the elements that are
// NaN; "" for types that are not numbers and for those whose elements are shown as bits.
std::string TensorStatistics(const Tensor& tensor);

}  // namespace tenon
