// ai.onnx.ml: CastMap and DictVectorizer, which convert maps to tensors, and FeatureVectorizer.
#include <algorithm>
#include <numeric>

#include "ops/framework/element.h"
#include "ops/framework/element_conversion.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/ml/ml_keys.h"
#include "ops/ml/ml_scores.h"

namespace tenon {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

// CastMap-1: the values in the order of their keys, or each at the position that its key names.
struct CastMapAttrs {
  std::string cast_to, map_form;
  int64_t max_map = 1;
  static constexpr auto Fields() {
    return std::tuple(Field("cast_to", &CastMapAttrs::cast_to),
                      Field("map_form", &CastMapAttrs::map_form),
                      Field("max_map", &CastMapAttrs::max_map));
  }
};

Result<DataType> CastTarget(const CastMapAttrs& attrs) {
  if (attrs.cast_to == "TO_FLOAT") return DataType::kFloat;
  if (attrs.cast_to == "TO_STRING") return DataType::kString;
  if (attrs.cast_to == "TO_INT64") return DataType::kInt64;
  return InvalidArgument("attribute 'cast_to': expected TO_FLOAT, TO_STRING or TO_INT64, got '{}'",
                         attrs.cast_to);
}

Status InferCastMap(const CastMapAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const DataType type, CastTarget(attrs));
  if (attrs.map_form != "DENSE" && attrs.map_form != "SPARSE") {
    return InvalidArgument("attribute 'map_form': expected DENSE or SPARSE, got '{}'",
                           attrs.map_form);
  }
  const bool is_sparse = attrs.map_form == "SPARSE";
  if (is_sparse && attrs.max_map < 1) {
    return InvalidArgument("attribute 'max_map': expected at least 1, got {}", attrs.max_map);
  }
  return context.SetOutput(0, {Dim(1), is_sparse ? Dim(attrs.max_map) : Dim::Unknown()}, type);
}

// The positions of a map's keys, ascending by key.
std::vector<size_t> OrderOf(std::span<const int64_t> keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  return order;
}

Status RunCastMap(const CastMapAttrs& attrs, KernelContext& context) {
  const Map& map = context.InputValue(0).map();
  if (map.keys.type() != DataType::kInt64) {
    return InvalidArgument("input 0: expected int64 keys, got {}", DataTypeName(map.keys.type()));
  }
  TENON_ASSIGN_OR_RETURN(const DataType type, CastTarget(attrs));
  const std::span<const int64_t> keys = map.keys.values<int64_t>();
  TENON_ASSIGN_OR_RETURN(Tensor converted, Tensor::Allocate(type, map.values.shape()));
  TENON_RETURN_IF_ERROR(ConvertElements(map.values, converted, {}, context.threads()));
  const bool is_sparse = attrs.map_form == "SPARSE";
  const auto size = is_sparse ? attrs.max_map : static_cast<int64_t>(keys.size());
  TENON_ASSIGN_OR_RETURN(Tensor * output, context.AllocateOutput(0, type, {1, size}));
  const std::vector<size_t> order = OrderOf(keys);
  if (is_sparse && !order.empty() && (keys[order[0]] < 0 || keys[order.back()] >= size)) {
    return InvalidArgument("input 0: expected keys in [0, {}), got {} to {}", size, keys[order[0]],
                           keys[order.back()]);
  }
  VisitElement(type, [&](auto element) {
    using T = decltype(element);
    T* y = output->data<T>();
    std::fill_n(y, size, T());
    for (size_t i = 0; i < order.size(); ++i) {
      const size_t position = is_sparse ? static_cast<size_t>(keys[order[i]]) : i;
      y[position] = converted.data<T>()[order[i]];
    }
  });
  return OkStatus();
}

// DictVectorizer-1: the value of each key of a vocabulary, 0 or "" for those that the map lacks.
struct DictVectorizerAttrs {
  std::vector<int64_t> integers;
  std::vector<std::string> strings;
  static constexpr auto Fields() {
    return std::tuple(Field("int64_vocabulary", &DictVectorizerAttrs::integers),
                      Field("string_vocabulary", &DictVectorizerAttrs::strings));
  }
  size_t size() const { return strings.empty() ? integers.size() : strings.size(); }
};

Status InferDictVectorizer(const DictVectorizerAttrs& attrs, ShapeContext& context) {
  if (attrs.integers.empty() == attrs.strings.empty()) {
    return InvalidArgument("expected either 'int64_vocabulary' or 'string_vocabulary'");
  }
  const ValueType map = context.InputType(0);
  const DataType type = map.held ? map.held->element_type : DataType::kUndefined;
  return context.SetOutput(0, {Dim(1), Dim(static_cast<int64_t>(attrs.size()))}, type);
}

class DictVectorizerKernel final : public StatefulKernel<InferDictVectorizer> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    integers_ = KeyIndex<int64_t>(attrs_.integers);
    strings_ = KeyIndex<std::string>(attrs_.strings);
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Map& map = context.InputValue(0).map();
    const DataType key = attrs_.strings.empty() ? DataType::kInt64 : DataType::kString;
    if (map.keys.type() != key) {
      return InvalidArgument("input 0: expected keys of {} as in the vocabulary, got {}",
                             DataTypeName(key), DataTypeName(map.keys.type()));
    }
    const auto size = static_cast<int64_t>(attrs_.size());
    TENON_ASSIGN_OR_RETURN(Tensor * output,
                           context.AllocateOutput(0, map.values.type(), {1, size}));
    VisitElement(map.values.type(), [&](auto element) {
      using T = decltype(element);
      T* y = output->data<T>();
      std::fill_n(y, size, T());
      for (size_t i = 0; i < static_cast<size_t>(map.keys.size()); ++i) {
        if (const auto at = PositionOf(map.keys, i)) y[*at] = map.values.data<T>()[i];
      }
    });
    return OkStatus();
  }

 private:
  std::optional<size_t> PositionOf(const Tensor& keys, size_t i) const {
    return keys.type() == DataType::kString ? strings_.Find(keys.data<std::string>()[i])
                                            : integers_.Find(keys.data<int64_t>()[i]);
  }

  KeyIndex<int64_t> integers_;
  KeyIndex<std::string> strings_;
};

// FeatureVectorizer-1: the columns of all inputs side by side, as floats. `inputdimensions` has the
// number of columns of each input: surplus ones are dropped, missing ones are 0. A vector is one
// row; more than two axes are rows of all but the first.
struct FeatureVectorizerAttrs {
  std::vector<int64_t> dimensions;
  static constexpr auto Fields() {
    return std::tuple(Field("inputdimensions", &FeatureVectorizerAttrs::dimensions));
  }
};

Status InferFeatureVectorizer(const FeatureVectorizerAttrs& attrs, ShapeContext& context) {
  if (!attrs.dimensions.empty() && attrs.dimensions.size() != context.input_count()) {
    return InvalidArgument(
        "attribute 'inputdimensions': expected one for each of {} inputs, got {}",
        context.input_count(), attrs.dimensions.size());
  }
  Dim rows = Dim::Unknown(), columns = 0;
  for (size_t i = 0; i < context.input_count(); ++i) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, context.Input(i));
    if (shape.rank() == 0) return InvalidArgument("input {}: expected rank 1 or more, got 0", i);
    const size_t first = shape.rank() == 1 ? 0 : 1;  // axis of the columns
    const Dim count = first == 0 ? Dim(1) : shape[0];
    if (rows.is_number() && count.is_number() && !(rows == count)) {
      return InvalidArgument("input {}: expected {} rows as of the inputs before, got shape {}", i,
                             rows, shape);
    }
    if (!rows.is_number()) rows = count;
    if (!attrs.dimensions.empty() && (attrs.dimensions[i] < 0 || attrs.dimensions[i] > INT32_MAX)) {
      return InvalidArgument("attribute 'inputdimensions': entry {} is {}", i, attrs.dimensions[i]);
    }
    columns = columns + (attrs.dimensions.empty() ? shape.Product(first, shape.rank())
                                                  : Dim(attrs.dimensions[i]));
  }
  return context.SetOutput(0, {rows, columns}, DataType::kFloat);
}

Status RunFeatureVectorizer(const FeatureVectorizerAttrs& attrs, KernelContext& context) {
  Tensor& y = context.Output(0);
  const auto rows = static_cast<size_t>(y.shape()[0]);
  const auto width = static_cast<size_t>(y.shape()[1]);
  size_t first = 0;
  for (size_t i = 0; i < context.input_count(); ++i) {
    const Tensor& x = context.Input(i);
    const auto columns = static_cast<size_t>(x.shape().Product(x.rank() == 1 ? 0 : 1, x.rank()));
    const size_t taken =
        attrs.dimensions.empty() ? columns : static_cast<size_t>(attrs.dimensions[i]);
    const size_t present = std::min(columns, taken);
    VisitNumber(x.type(), [&](auto number) {
      using T = decltype(number);
      for (size_t row = 0; row < rows; ++row) {
        const T* from = x.data<T>() + row * columns;
        float* into = y.data<float>() + row * width + first;
        for (size_t k = 0; k < present; ++k) into[k] = static_cast<float>(Widen(from[k]));
        std::fill_n(into + present, taken - present, 0.0f);
      }
    });
    first += taken;
  }
  return OkStatus();
}

constexpr KernelTraits kAllocates = {.allocates_outputs = true};
constexpr TypeSet kFeatureTypes = {DataType::kFloat, DataType::kDouble, DataType::kInt64,
                                   DataType::kInt32};

constexpr OpRow kRows[] = {
    Op<InferCastMap, RunCastMap>("CastMap", {.domain = kMl, .traits = kAllocates}),
    OpClass<DictVectorizerKernel>("DictVectorizer", {.domain = kMl, .traits = kAllocates}),
    Op<InferFeatureVectorizer, RunFeatureVectorizer>("FeatureVectorizer",
                                                     {.domain = kMl, .types = kFeatureTypes}),
};

}  // namespace

TENON_OP_FAMILY(MlMaps, kRows);

}  // namespace tenon
