// Fills a struct from a node's attributes. Defaults come from the operator's schema; for operators
// without a schema, from member initialisers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "ir/node.h"
#include "ir/schema.h"

namespace tenon {

template <class Struct, class T>
struct AttributeField {
  std::string_view name;
  T Struct::*member;
};

// One entry of a struct's Fields(). T is one of
//   int64_t, bool, float, std::string, DataType (an int attribute), Tensor, const Graph*,
//   ValueType,
//   std::vector of int64_t, float or std::string,
//   std::span of const int64_t, float or std::string, which is the node's own list (for strings, of
//   attributes without a default),
//   or std::optional of these for attributes without a default.
template <class Struct, class T>
constexpr AttributeField<Struct, T> Field(std::string_view name, T Struct::*member) {
  return {name, member};
}

struct NoAttrs {
  static constexpr auto Fields() { return std::tuple(); }
};

namespace internal {

// Sets `*into` from the attribute, otherwise from the schema's default, otherwise does not change
// it. Error: kInvalidArgument if the attribute has another type, or is required and missing.
Status BindField(const Node& node, std::string_view name, int64_t* into);
Status BindField(const Node& node, std::string_view name, bool* into);
Status BindField(const Node& node, std::string_view name, float* into);
Status BindField(const Node& node, std::string_view name, DataType* into);
Status BindField(const Node& node, std::string_view name, std::string* into);
Status BindField(const Node& node, std::string_view name, Tensor* into);
Status BindField(const Node& node, std::string_view name, const Graph** into);
Status BindField(const Node& node, std::string_view name, ValueType* into);
Status BindField(const Node& node, std::string_view name, std::span<const int64_t>* into);
Status BindField(const Node& node, std::string_view name, std::span<const float>* into);
Status BindField(const Node& node, std::string_view name, std::span<const std::string>* into);
Status BindField(const Node& node, std::string_view name, std::vector<int64_t>* into);
Status BindField(const Node& node, std::string_view name, std::vector<float>* into);
Status BindField(const Node& node, std::string_view name, std::vector<std::string>* into);

template <class T>
Status BindField(const Node& node, std::string_view name, std::optional<T>* into) {
  const OpAttribute* formal = node.schema ? node.schema->FindAttribute(name) : nullptr;
  if (node.FindAttribute(name) == nullptr && !(formal && formal->has_default)) return OkStatus();
  return BindField(node, name, &into->emplace());
}

}  // namespace internal

template <class Attrs>
Result<Attrs> BindAttributes(const Node& node) {
  Attrs attrs{};
  Status status;
  std::apply(
      [&](const auto&... field) {
        // Stops at the first failure.
        (void)((status = internal::BindField(node, field.name, &(attrs.*field.member)),
                status.ok()) &&
               ...);
      },
      Attrs::Fields());
  TENON_RETURN_IF_ERROR(std::move(status));
  return attrs;
}

}  // namespace tenon
