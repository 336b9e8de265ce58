#include "ops/framework/attributes.h"

#include "ir/graph.h"

namespace tenon::internal {
namespace {

// The attribute's value if present; otherwise null, after checking that it is optional.
template <class Held>
Result<const Held*> Find(const Node& node, std::string_view name, const OpAttribute** formal) {
  *formal = node.schema ? node.schema->FindAttribute(name) : nullptr;
  const Attribute* attribute = node.FindAttribute(name);
  if (attribute == nullptr) {
    if (*formal && (*formal)->required) {
      return InvalidArgument("attribute '{}' is required and missing", name);
    }
    return nullptr;
  }
  const Held* held = attribute->get<Held>();
  if (held == nullptr) {
    const auto expected = static_cast<AttributeType>(Attribute::Held(Held()).index());
    return InvalidArgument("attribute '{}': expected type {}, got {}", name,
                           AttributeTypeName(expected), AttributeTypeName(attribute->type()));
  }
  return held;
}

}  // namespace

Status BindField(const Node& node, std::string_view name, int64_t* into) {
  const OpAttribute* formal;
  TENON_ASSIGN_OR_RETURN(const int64_t* held, Find<int64_t>(node, name, &formal));
  if (held) {
    *into = *held;
  } else if (formal && formal->has_default) {
    *into = formal->default_int;
  }
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, bool* into) {
  int64_t number = *into;
  TENON_RETURN_IF_ERROR(BindField(node, name, &number));
  *into = number != 0;
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, DataType* into) {
  auto number = static_cast<int64_t>(*into);
  TENON_RETURN_IF_ERROR(BindField(node, name, &number));
  if (number != 0 && !IsDataType(number)) {
    return InvalidArgument("attribute '{}': expected the number of an element type, got {}", name,
                           number);
  }
  *into = static_cast<DataType>(number);
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, float* into) {
  const OpAttribute* formal;
  TENON_ASSIGN_OR_RETURN(const float* held, Find<float>(node, name, &formal));
  if (held) {
    *into = *held;
  } else if (formal && formal->has_default) {
    *into = formal->default_float;
  }
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, std::string* into) {
  const OpAttribute* formal;
  TENON_ASSIGN_OR_RETURN(const std::string* held, Find<std::string>(node, name, &formal));
  if (held) {
    *into = *held;
  } else if (formal && formal->has_default) {
    *into = std::string(formal->default_string);
  }
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, Tensor* into) {
  const OpAttribute* formal;
  TENON_ASSIGN_OR_RETURN(const Tensor* held, Find<Tensor>(node, name, &formal));
  if (held) *into = *held;
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, const Graph** into) {
  const OpAttribute* formal;
  TENON_ASSIGN_OR_RETURN(const std::unique_ptr<Graph>* held,
                         Find<std::unique_ptr<Graph>>(node, name, &formal));
  if (held) *into = held->get();
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, ValueType* into) {
  const OpAttribute* formal;
  TENON_ASSIGN_OR_RETURN(const auto* held, Find<ValueType>(node, name, &formal));
  if (held) *into = *held;
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, std::span<const int64_t>* into) {
  const OpAttribute* formal;
  TENON_ASSIGN_OR_RETURN(const auto* held, Find<std::vector<int64_t>>(node, name, &formal));
  if (held) {
    *into = *held;
  } else if (formal && formal->has_default) {
    *into = formal->default_ints;
  }
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, std::span<const float>* into) {
  const OpAttribute* formal;
  TENON_ASSIGN_OR_RETURN(const auto* held, Find<std::vector<float>>(node, name, &formal));
  if (held) {
    *into = *held;
  } else if (formal && formal->has_default) {
    *into = formal->default_floats;
  }
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, std::span<const std::string>* into) {
  const OpAttribute* formal;
  TENON_ASSIGN_OR_RETURN(const auto* held, Find<std::vector<std::string>>(node, name, &formal));
  if (held) *into = *held;
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, std::vector<int64_t>* into) {
  std::span<const int64_t> list = *into;
  TENON_RETURN_IF_ERROR(BindField(node, name, &list));
  if (list.data() != into->data()) into->assign(list.begin(), list.end());
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, std::vector<float>* into) {
  std::span<const float> list = *into;
  TENON_RETURN_IF_ERROR(BindField(node, name, &list));
  if (list.data() != into->data()) into->assign(list.begin(), list.end());
  return OkStatus();
}

Status BindField(const Node& node, std::string_view name, std::vector<std::string>* into) {
  const OpAttribute* formal;
  TENON_ASSIGN_OR_RETURN(const auto* held, Find<std::vector<std::string>>(node, name, &formal));
  if (held) {
    *into = *held;
  } else if (formal && formal->has_default) {
    into->assign(formal->default_strings.begin(), formal->default_strings.end());
  }
  return OkStatus();
}

}  // namespace tenon::internal
