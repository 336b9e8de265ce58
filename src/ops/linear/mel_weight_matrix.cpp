// MelWeightMatrix: triangular filters on the mel scale.
#include <algorithm>
#include <cmath>

#include "ops/framework/element_conversion.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t { kBins, kDftLength, kSampleRate, kLowerEdge, kUpperEdge };

// MelWeightMatrix-17: [dft_length / 2 + 1, num_mel_bins].
struct MelAttrs {
  DataType output_datatype = DataType::kFloat;
  static constexpr auto Fields() {
    return std::tuple(Field("output_datatype", &MelAttrs::output_datatype));
  }
};

Result<int64_t> ScalarOf(const ShapeContext& context, size_t i, int64_t least) {
  TENON_ASSIGN_OR_RETURN(const Shape values, context.InputAsInts(i));
  if (values.rank() != 1 || values[0] < least) {
    return InvalidArgument("input {}: expected one integer of at least {}, got {}", i, least,
                           values.empty() ? 0 : values[0]);
  }
  return values[0];
}

Status InferMel(const MelAttrs& attrs, ShapeContext& context) {
  if (!kNumbers.Contains(attrs.output_datatype)) {
    return InvalidArgument("attribute 'output_datatype': expected a type of numbers, got {}",
                           DataTypeName(attrs.output_datatype));
  }
  TENON_ASSIGN_OR_RETURN(const int64_t bins, ScalarOf(context, kBins, 0));
  TENON_ASSIGN_OR_RETURN(const int64_t length, ScalarOf(context, kDftLength, 0));
  return context.SetOutput(0, {Dim(length / 2 + 1), Dim(bins)}, attrs.output_datatype);
}

double NumberAt(const Tensor& tensor) {
  double value = 0;
  LoadElements(tensor, 0, 1, &value);
  return value;
}

// The weights of one filter: it rises from `low` to `center` and falls to `high`.
void FillFilter(int64_t low, int64_t center, int64_t high, double* column) {
  if (low == center) {
    column[center] = 1;
  } else {
    for (int64_t j = low; j <= center; ++j) {
      column[j] = static_cast<double>(j - low) / static_cast<double>(center - low);
    }
  }
  for (int64_t j = center; j < high; ++j) {
    column[j] = static_cast<double>(high - j) / static_cast<double>(high - center);
  }
}

Status RunMel(const MelAttrs&, KernelContext& context) {
  for (const size_t i : {kSampleRate, kLowerEdge, kUpperEdge}) {
    if (context.Input(i).size() != 1) {
      return InvalidArgument("input {}: expected a scalar, got {}", i, context.Input(i).shape());
    }
  }
  const double sample_rate = NumberAt(context.Input(kSampleRate));
  if (sample_rate <= 0)
    return InvalidArgument("expected a sample_rate above 0, got {}", sample_rate);
  Tensor& y = context.Output(0);
  const int64_t rows = y.shape()[0], bins = y.shape()[1];
  if (y.size() == 0) return OkStatus();
  const double length = NumberAt(context.Input(kDftLength));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(NumberAt(context.Input(kLowerEdge)));
  const double high = mel(NumberAt(context.Input(kUpperEdge)));
  const double step = (high - low) / static_cast<double>(bins + 2);
  // The spectrogram's bin at a point of the scale.
  const auto edge = [&](int64_t i) {
    const double hertz =
        700 * std::expm1((static_cast<double>(i) * step + low) / 2595 * std::log(10.0));
    return std::floor((length + 1) * hertz / sample_rate);
  };
  auto* column = static_cast<double*>(context.Scratch(static_cast<size_t>(rows) * sizeof(double)));
  if (column == nullptr) return RuntimeException("out of memory");
  for (int64_t i = 0; i < bins; ++i) {
    const double edges[] = {edge(i), edge(i + 1), edge(i + 2)};
    // The upper edge itself belongs to no row, so it may be just after the last.
    const auto last = static_cast<double>(rows - 1);
    if (!(edges[0] >= 0 && edges[0] <= edges[1] && edges[1] <= last && edges[2] >= edges[1] &&
          edges[2] <= last + 1)) {
      return InvalidArgument(
          "expected edges between 0 and half of the sample_rate {}, in order, "
          "got {} to {}",
          sample_rate, NumberAt(context.Input(kLowerEdge)), NumberAt(context.Input(kUpperEdge)));
    }
    std::fill_n(column, rows, 0.0);
    FillFilter(static_cast<int64_t>(edges[0]), static_cast<int64_t>(edges[1]),
               static_cast<int64_t>(edges[2]), column);
    for (int64_t j = 0; j < rows; ++j) {
      StoreElements(column + j, static_cast<size_t>(j * bins + i), 1, {}, y);
    }
  }
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferMel, RunMel>("MelWeightMatrix", {.since = 17, .types = kIndices}),
};

}  // namespace

TENON_OP_FAMILY(MelWeightMatrix, kRows);

}  // namespace tenon
