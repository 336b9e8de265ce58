// A node of a graph: an operator with its attributes, and the values it reads and makes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attribute.h"

namespace tenon {

class Graph;
struct OpSchema;

// Handles, stable while the graph lives; a removed node's id is not used again.
enum class ValueId : int32_t { kNone = -1 };
enum class NodeId : int32_t { kNone = -1 };
inline size_t Index(ValueId id) { return static_cast<size_t>(id); }
inline size_t Index(NodeId id) { return static_cast<size_t>(id); }

using Metadata = std::map<std::string, std::string>;

// The provider of a node that no provider of the session has claimed.
inline constexpr int32_t kNoProvider = -1;

// The part of a node in a graph whose parts are not settled, and of one that was added since.
inline constexpr int32_t kNoPart = -1;

// An operator instance.
struct Node {
  NodeId id = NodeId::kNone;
  std::string name;  // may be empty
  std::string op_type;
  std::string domain;  // "" for ai.onnx
  std::string overload;
  std::string doc_string;
  std::vector<ValueId> inputs;   // kNone for an absent optional input
  std::vector<ValueId> outputs;  // kNone for an absent optional output
  std::vector<Attribute> attributes;
  Metadata metadata;
  // Serialized NodeDeviceConfigurationProto messages, kept for the writer.
  std::vector<std::string> device_configurations;
  // The version of the domain that the model (or the function it came from) imports.
  int32_t opset = 0;
  // The schema that this version means; null if the operator is not in the schema table.
  const OpSchema* schema = nullptr;
  // Index of the session's provider that runs it.
  int32_t provider = kNoProvider;
  // In a graph that runs in parts: twice the number of YieldOps before the node; one more for a
  // YieldOp, which is between two parts. See Graph::SettleParts.
  int32_t part = kNoPart;

  const Attribute* FindAttribute(std::string_view attribute_name) const;
  // The attribute's value, or `fallback` if it is absent or of another type.
  int64_t GetInt(std::string_view attribute_name, int64_t fallback) const;
  float GetFloat(std::string_view attribute_name, float fallback) const;
  std::string_view GetString(std::string_view attribute_name, std::string_view fallback) const;
  std::vector<int64_t> GetInts(std::string_view attribute_name) const;
  void SetAttribute(std::string attribute_name, Attribute::Held held);
  void RemoveAttribute(std::string_view attribute_name);

  // The graphs in the attributes, in order.
  std::vector<Graph*> Subgraphs() const;
  bool has_input(size_t i) const { return i < inputs.size() && inputs[i] != ValueId::kNone; }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i] != ValueId::kNone; }
  // "Conv node 'layer1/conv'" or "Conv node #12": how messages name it.
  std::string Describe() const;
};

}  // namespace tenon
