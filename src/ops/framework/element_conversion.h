// Conversion between any two element types of numbers, as Cast defines it.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "base/thread_pool.h"
#include "ops/framework/narrow_types.h"
#include "tensor/tensor.h"

namespace tenon {

// The types of a conversion's source and target: all types but complex numbers.
inline constexpr TypeSet kConvertibleTypes =
    kNumbers | TypeSet{DataType::kBool,           DataType::kString,     DataType::kFloat8e4m3fn,
                       DataType::kFloat8e4m3fnuz, DataType::kFloat8e5m2, DataType::kFloat8e5m2fnuz,
                       DataType::kUint4,          DataType::kInt4,       DataType::kFloat4e2m1,
                       DataType::kFloat8e8m0,     DataType::kUint2,      DataType::kInt2,
                       DataType::kFloat6e2m3,     DataType::kFloat6e3m2};

struct ConversionOptions {
  bool saturate = true;  // to float8 types
  ScaleRounding rounding = ScaleRounding::kUp;
};

// Sets the elements of `target` from those of `source`, which has as many. Both are of
// kConvertibleTypes; they may share memory if their elements have one size. Rounds to nearest even;
// floats become integers by truncation, and integers narrower ones by dropping bits, as in C. The
// result for NaN and floats out of range is unspecified. Strings hold
// decimal numbers, "NaN", "INF" or "-INF".
// Error: kInvalidArgument naming the string that holds no number.
Status ConvertElements(const Tensor& source, Tensor& target, const ConversionOptions& options,
                       ThreadPool& threads);

// Elements [first, first + n) of `source`, of kConvertibleTypes but no strings, as doubles.
void LoadElements(const Tensor& source, size_t first, size_t n, double* values);

// Sets elements [first, first + n) of `target`, of kConvertibleTypes but no strings. Neighbouring
// elements of packed types share a byte: ranges that two threads store begin at multiples of 8.
void StoreElements(const double* values, size_t first, size_t n, const ConversionOptions& options,
                   Tensor& target);

}  // namespace tenon
