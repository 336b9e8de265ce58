// ai.onnx.ml: LabelEncoder, CategoryMapper, OneHotEncoder.
#include <algorithm>
#include <cstring>
#include <variant>

#include "ops/framework/element.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/ml/ml_keys.h"

namespace tenon {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

template <class T>
Tensor VectorOf(const std::vector<T>& values) {
  return Tensor::Of<T>({static_cast<int64_t>(values.size())}, std::span<const T>(values));
}

using AnyKeys = std::variant<KeyIndex<int64_t>, KeyIndex<std::string>, KeyIndex<float>,
                             KeyIndex<double>, KeyIndex<int32_t>, KeyIndex<int16_t>>;

// Error: kInvalidArgument for a type that no encoder supports as a key.
Result<AnyKeys> IndexKeys(const Tensor& keys) {
  switch (keys.type()) {
    case DataType::kInt64:
      return AnyKeys(KeyIndex<int64_t>(keys.values<int64_t>()));
    case DataType::kString:
      return AnyKeys(KeyIndex<std::string>(keys.values<std::string>()));
    case DataType::kFloat:
      return AnyKeys(KeyIndex<float>(keys.values<float>()));
    case DataType::kDouble:
      return AnyKeys(KeyIndex<double>(keys.values<double>()));
    case DataType::kInt32:
      return AnyKeys(KeyIndex<int32_t>(keys.values<int32_t>()));
    case DataType::kInt16:
      return AnyKeys(KeyIndex<int16_t>(keys.values<int16_t>()));
    default:
      return InvalidArgument("expected numbers or strings as keys, got {}",
                             DataTypeName(keys.type()));
  }
}

// A mapping from keys to values, with a value for all others.
struct Mapping {
  Tensor keys, values, fallback;  // the last one element
};

// Looks elements up in a mapping.
class MappingTable {
 public:
  // Error: kInvalidArgument for keys without values, and a default of another type.
  Status Set(Mapping mapping) {
    mapping_ = std::move(mapping);
    if (mapping_.keys.size() != mapping_.values.size()) {
      return InvalidArgument("expected a value for each of {} keys, got {}", mapping_.keys.size(),
                             mapping_.values.size());
    }
    if (mapping_.fallback.size() != 1 || mapping_.fallback.type() != mapping_.values.type()) {
      return InvalidArgument("expected one default of the values' type {}, got {} {}",
                             DataTypeName(mapping_.values.type()),
                             DataTypeName(mapping_.fallback.type()), mapping_.fallback.shape());
    }
    TENON_ASSIGN_OR_RETURN(keys_, IndexKeys(mapping_.keys));
    return OkStatus();
  }

  Status Map(const Tensor& x, Tensor& y, ThreadPool& threads) const {
    if (x.type() != mapping_.keys.type()) {
      return InvalidArgument("input 0: expected {} as the keys, got {}",
                             DataTypeName(mapping_.keys.type()), DataTypeName(x.type()));
    }
    std::visit([&]<class K>(const KeyIndex<K>& keys) { MapBy(keys, x, y, threads); }, keys_);
    return OkStatus();
  }

 private:
  template <class K>
  void MapBy(const KeyIndex<K>& keys, const Tensor& x, Tensor& y, ThreadPool& threads) const {
    constexpr size_t kGrain = 4096;
    VisitElement(y.type(), [&](auto element) {
      using V = decltype(element);
      threads.ParallelFor(static_cast<size_t>(x.size()), kGrain, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          const std::optional<size_t> found = keys.Find(x.data<K>()[i]);
          y.data<V>()[i] =
              found ? mapping_.values.template data<V>()[*found] : *mapping_.fallback.data<V>();
        }
      });
    });
  }

  Mapping mapping_;
  AnyKeys keys_;
};

template <class Attrs>
Status InferMapping(const Attrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const DataType type, attrs.ValueType(context.ElementType(0)));
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  return context.SetOutput(0, std::move(shape), type);
}

// For every operator that maps elements by a table, which `Attrs` identifies.
template <class Attrs>
class MappingKernel final : public StatefulKernel<&InferMapping<Attrs>> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(this->Bind(info));
    TENON_ASSIGN_OR_RETURN(Mapping mapping, this->attrs_.MappingFor(info.ElementType(0)));
    return table_.Set(std::move(mapping));
  }

  Status Run(KernelContext& context) const override {
    return table_.Map(context.Input(0), context.Output(0), context.threads());
  }

 private:
  MappingTable table_;
};

// LabelEncoder-1 and CategoryMapper-1 map strings to integers, and integers to strings.
DataType OtherText(DataType input) {
  return input == DataType::kInt64 ? DataType::kString : DataType::kInt64;
}

Mapping StringMapping(DataType input, const std::vector<std::string>& strings,
                      const std::vector<int64_t>& integers, const std::string& default_string,
                      int64_t default_integer) {
  if (input == DataType::kInt64) {
    return {VectorOf(integers), VectorOf(strings), Tensor::Of<std::string>({}, {default_string})};
  }
  return {VectorOf(strings), VectorOf(integers), Tensor::Of<int64_t>({}, {default_integer})};
}

struct LabelEncoder1Attrs {
  std::vector<std::string> classes;
  int64_t default_int64 = -1;
  std::string default_string = "_Unused";
  static constexpr auto Fields() {
    return std::tuple(Field("classes_strings", &LabelEncoder1Attrs::classes),
                      Field("default_int64", &LabelEncoder1Attrs::default_int64),
                      Field("default_string", &LabelEncoder1Attrs::default_string));
  }
  Result<DataType> ValueType(DataType input) const { return OtherText(input); }
  Result<Mapping> MappingFor(DataType input) const {
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < classes.size(); ++i) numbers.push_back(static_cast<int64_t>(i));
    return StringMapping(input, classes, numbers, default_string, default_int64);
  }
};

struct CategoryMapperAttrs {
  std::vector<std::string> strings;
  std::vector<int64_t> integers;
  int64_t default_int64 = -1;
  std::string default_string = "_Unused";
  static constexpr auto Fields() {
    return std::tuple(Field("cats_strings", &CategoryMapperAttrs::strings),
                      Field("cats_int64s", &CategoryMapperAttrs::integers),
                      Field("default_int64", &CategoryMapperAttrs::default_int64),
                      Field("default_string", &CategoryMapperAttrs::default_string));
  }
  Result<DataType> ValueType(DataType input) const { return OtherText(input); }
  Result<Mapping> MappingFor(DataType input) const {
    return StringMapping(input, strings, integers, default_string, default_int64);
  }
};

// LabelEncoder-4; LabelEncoder-2 lacks the forms as tensors.
struct LabelEncoderAttrs {
  std::optional<Tensor> keys_tensor, values_tensor, default_tensor;
  std::vector<std::string> keys_strings, values_strings;
  std::vector<int64_t> keys_int64s, values_int64s;
  std::vector<float> keys_floats, values_floats;
  int64_t default_int64 = -1;
  float default_float = -0.0f;
  std::string default_string = "_Unused";
  static constexpr auto Fields() {
    using A = LabelEncoderAttrs;
    return std::tuple(
        Field("keys_tensor", &A::keys_tensor), Field("values_tensor", &A::values_tensor),
        Field("default_tensor", &A::default_tensor), Field("keys_strings", &A::keys_strings),
        Field("values_strings", &A::values_strings), Field("keys_int64s", &A::keys_int64s),
        Field("values_int64s", &A::values_int64s), Field("keys_floats", &A::keys_floats),
        Field("values_floats", &A::values_floats), Field("default_int64", &A::default_int64),
        Field("default_float", &A::default_float), Field("default_string", &A::default_string));
  }

  Result<DataType> ValueType(DataType) const {
    TENON_RETURN_IF_ERROR(Keys().OnlyType("keys"));
    return Values().OnlyType("values");
  }

  Result<Mapping> MappingFor(DataType) const {
    Mapping mapping;
    TENON_ASSIGN_OR_RETURN(mapping.keys, Keys().Only("keys"));
    TENON_ASSIGN_OR_RETURN(mapping.values, Values().Only("values"));
    TENON_ASSIGN_OR_RETURN(mapping.fallback, Fallback(mapping.values.type()));
    return mapping;
  }

 private:
  // The attributes that may hold the keys, or the values.
  struct Forms {
    const std::optional<Tensor>& tensor;
    const std::vector<std::string>& strings;
    const std::vector<int64_t>& integers;
    const std::vector<float>& floats;

    Result<DataType> OnlyType(std::string_view name) const {
      const int given = (tensor ? 1 : 0) + !strings.empty() + !integers.empty() + !floats.empty();
      if (given != 1) {
        return InvalidArgument("expected one of the attributes '{}_*', got {}", name, given);
      }
      if (tensor) return tensor->type();
      if (!strings.empty()) return DataType::kString;
      return integers.empty() ? DataType::kFloat : DataType::kInt64;
    }

    Result<Tensor> Only(std::string_view name) const {
      TENON_RETURN_IF_ERROR(OnlyType(name));
      if (tensor) return *tensor;
      if (!strings.empty()) return VectorOf(strings);
      return integers.empty() ? VectorOf(floats) : VectorOf(integers);
    }
  };
  Forms Keys() const { return {keys_tensor, keys_strings, keys_int64s, keys_floats}; }
  Forms Values() const { return {values_tensor, values_strings, values_int64s, values_floats}; }

  Result<Tensor> Fallback(DataType type) const {
    if (default_tensor) return *default_tensor;
    switch (type) {
      case DataType::kString:
        return Tensor::Of<std::string>({}, {default_string});
      case DataType::kInt64:
        return Tensor::Of<int64_t>({}, {default_int64});
      case DataType::kInt32:
        return Tensor::Of<int32_t>({}, {static_cast<int32_t>(default_int64)});
      case DataType::kInt16:
        return Tensor::Of<int16_t>({}, {static_cast<int16_t>(default_int64)});
      case DataType::kFloat:
        return Tensor::Of<float>({}, {default_float});
      case DataType::kDouble:
        return Tensor::Of<double>({}, {static_cast<double>(default_float)});
      default:
        return InvalidArgument("expected numbers or strings as values, got {}", DataTypeName(type));
    }
  }
};

// OneHotEncoder-1: a new last axis with a 1 at the category; numbers are truncated to integers.
struct OneHotAttrs {
  std::vector<std::string> strings;
  std::vector<int64_t> integers;
  bool zeros = true;
  static constexpr auto Fields() {
    return std::tuple(Field("cats_strings", &OneHotAttrs::strings),
                      Field("cats_int64s", &OneHotAttrs::integers),
                      Field("zeros", &OneHotAttrs::zeros));
  }
  size_t count() const { return strings.empty() ? integers.size() : strings.size(); }
};

Status InferOneHot(const OneHotAttrs& attrs, ShapeContext& context) {
  if (attrs.strings.empty() == attrs.integers.empty()) {
    return InvalidArgument("expected either 'cats_strings' or 'cats_int64s'");
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  shape.Append(Dim(static_cast<int64_t>(attrs.count())));
  return context.SetOutput(0, std::move(shape), DataType::kFloat);
}

class OneHotKernel final : public StatefulKernel<InferOneHot> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    strings_ = KeyIndex<std::string>(attrs_.strings);
    integers_ = KeyIndex<int64_t>(attrs_.integers);
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Tensor& x = context.Input(0);
    const bool is_text = x.type() == DataType::kString;
    if (is_text != !attrs_.strings.empty()) {
      return InvalidArgument("input 0: expected {} as the categories, got {}",
                             attrs_.strings.empty() ? "numbers" : "strings",
                             DataTypeName(x.type()));
    }
    if (is_text) {
      return Encode(context, [&](size_t i) {
        return strings_.Find(x.data<std::string>()[i]).value_or(kNowhere);
      });
    }
    return VisitNumber(x.type(), [&](auto number) {
      using T = decltype(number);
      return Encode(context, [&](size_t i) { return FindNumber(Widen(x.data<T>()[i])); });
    });
  }

 private:
  // Used instead of an optional, which the compiler would keep in memory in loops.
  static constexpr size_t kNowhere = SIZE_MAX;

  template <class N>
  size_t FindNumber(N number) const {
    if constexpr (std::is_floating_point_v<N>) {
      constexpr N kLimit = 0x1p63f;
      if (!(number >= -kLimit && number < kLimit)) return kNowhere;
    }
    return integers_.Find(static_cast<int64_t>(number)).value_or(kNowhere);
  }

  template <class Find>
  Status Encode(KernelContext& context, const Find& find) const {
    Tensor& y = context.Output(0);
    const size_t count = attrs_.count();
    const auto elements = static_cast<size_t>(context.Input(0).size());
    if (y.bytes() > 0) std::memset(y.raw(), 0, y.bytes());
    for (size_t i = 0; i < elements; ++i) {
      const size_t found = find(i);
      if (found != kNowhere) {
        y.data<float>()[i * count + found] = 1;
      } else if (!attrs_.zeros) {
        return InvalidArgument("input 0: element {} is none of the categories", i);
      }
    }
    return OkStatus();
  }

  KeyIndex<std::string> strings_;
  KeyIndex<int64_t> integers_;
};

constexpr TypeSet kTexts = {DataType::kInt64, DataType::kString};
constexpr TypeSet kLabels =
    kTexts | TypeSet{DataType::kFloat, DataType::kDouble, DataType::kInt32, DataType::kInt16};

constexpr OpRow kRows[] = {
    OpClass<MappingKernel<LabelEncoder1Attrs>>("LabelEncoder",
                                               {.domain = kMl, .since = 1, .types = kTexts}),
    OpClass<MappingKernel<LabelEncoderAttrs>>("LabelEncoder",
                                              {.domain = kMl, .since = 2, .types = kLabels}),
    OpClass<MappingKernel<CategoryMapperAttrs>>("CategoryMapper", {.domain = kMl, .types = kTexts}),
    OpClass<OneHotKernel>("OneHotEncoder", {.domain = kMl, .types = kLabels}),
};

}  // namespace

TENON_OP_FAMILY(MlEncoders, kRows);

}  // namespace tenon
