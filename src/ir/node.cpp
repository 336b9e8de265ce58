#include "ir/node.h"

#include <utility>

#include "base/text.h"

namespace tenon {

const Attribute* Node::FindAttribute(std::string_view attribute_name) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.name == attribute_name) return &attribute;
  }
  return nullptr;
}

int64_t Node::GetInt(std::string_view attribute_name, int64_t fallback) const {
  const Attribute* attribute = FindAttribute(attribute_name);
  const int64_t* held = attribute ? attribute->get<int64_t>() : nullptr;
  return held ? *held : fallback;
}

float Node::GetFloat(std::string_view attribute_name, float fallback) const {
  const Attribute* attribute = FindAttribute(attribute_name);
  const float* held = attribute ? attribute->get<float>() : nullptr;
  return held ? *held : fallback;
}

std::string_view Node::GetString(std::string_view attribute_name, std::string_view fallback) const {
  const Attribute* attribute = FindAttribute(attribute_name);
  const std::string* held = attribute ? attribute->get<std::string>() : nullptr;
  return held ? std::string_view(*held) : fallback;
}

std::vector<int64_t> Node::GetInts(std::string_view attribute_name) const {
  const Attribute* attribute = FindAttribute(attribute_name);
  const auto* held = attribute ? attribute->get<std::vector<int64_t>>() : nullptr;
  return held ? *held : std::vector<int64_t>();
}

void Node::RemoveAttribute(std::string_view attribute_name) {
  std::erase_if(attributes, [&](const Attribute& a) { return a.name == attribute_name; });
}

std::vector<Graph*> Node::Subgraphs() const {
  std::vector<Graph*> graphs;
  for (const Attribute& attribute : attributes) {
    if (const auto* one = attribute.get<std::unique_ptr<Graph>>()) {
      graphs.push_back(one->get());
    } else if (const auto* many = attribute.get<std::vector<std::unique_ptr<Graph>>>()) {
      for (const auto& graph : *many) graphs.push_back(graph.get());
    }
  }
  return graphs;
}

std::string Node::Describe() const {
  return name.empty() ? Format("{} node #{}", op_type, Index(id))
                      : Format("{} node '{}'", op_type, name);
}

}  // namespace tenon
