// A named setting of a node.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/type.h"
#include "tensor/value.h"

namespace tenon {

class Graph;

// Numbers of AttributeProto.AttributeType.
enum class AttributeType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kTypeProto = 13,
  kTypeProtos = 14,
};

std::string_view AttributeTypeName(AttributeType type);

// Owns its value, including subgraphs; copied with Clone().
struct Attribute {
  using Held =
      std::variant<std::monostate, float, int64_t, std::string, Tensor, std::unique_ptr<Graph>,
                   std::vector<float>, std::vector<int64_t>, std::vector<std::string>,
                   std::vector<Tensor>, std::vector<std::unique_ptr<Graph>>,
                   std::shared_ptr<SparseTensor>, std::vector<std::shared_ptr<SparseTensor>>,
                   ValueType, std::vector<ValueType>>;

  Attribute();
  Attribute(std::string name, Held held);
  Attribute(Attribute&&) noexcept;
  Attribute& operator=(Attribute&&) noexcept;
  ~Attribute();

  // The alternatives of Held are in the order of AttributeType.
  AttributeType type() const;
  template <class T>
  const T* get() const {
    return std::get_if<T>(&held);
  }

  std::string name;
  // Inside a function body: the name of the function's attribute that provides the value; `held` is
  // then empty and `referenced_type` is its type.
  std::string reference;
  AttributeType referenced_type = AttributeType::kUndefined;
  std::string doc_string;
  Held held;
};

}  // namespace tenon
