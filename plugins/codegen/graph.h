// A graph of the runtime, read into a form of our own: the runtime's is valid during a call only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api.h"

namespace codegen {

// Element types that the provider handles; bool takes a byte.
enum class DataType { kNone, kFloat, kFloat16, kBFloat16, kInt64, kInt32, kBool, kInt8, kUInt8 };

DataType FromOnnx(ONNXTensorElementDataType type);
// Whether it is a floating-point type.
bool IsFloat(DataType type);
// In memory.
size_t SizeOf(DataType type);
// What kernels compute with: "float" for all floating-point types, "long", "int", "uchar", "char".
const char* NameOf(DataType type);
// What kernels find in memory: "half" and "ushort" for the short floating-point types.
const char* StoredNameOf(DataType type);

using Shape = std::vector<int64_t>;
int64_t ElementCount(const Shape& shape);

// The data of a tensor on the host.
struct HostTensor {
  DataType type = DataType::kNone;
  Shape shape;
  std::vector<std::byte> bytes;

  // The elements as integers, if they are some.
  std::optional<std::vector<int64_t>> Integers() const;
  // The element, if it is a single one of a floating-point type.
  std::optional<float> Float() const;
};

using AttributeValue =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, HostTensor>;

struct ValueInfo {
  std::string name;
  DataType type = DataType::kNone;
  std::optional<Shape> shape;  // if the rank is known; -1 for sizes that are not
  bool is_constant = false;
  std::optional<HostTensor> constant;  // if the graph was read with its constants
  // How the constant lies on the device: row-major, with the channels innermost, or as the matrix
  // transposed.
  enum class Layout { kRowMajor, kChannelsLast, kTransposed };
  Layout layout = Layout::kRowMajor;
  int consumers = 0;  // uses by nodes of the graph
};

struct Node {
  std::string name;
  std::string domain;
  std::string type;
  int since = 0;            // first opset with this form of the operator
  std::vector<int> inputs;  // values; -1 for those that are absent
  std::vector<int> outputs;
  std::map<std::string, AttributeValue, std::less<>> attributes;
  bool has_unread_attributes = false;  // graphs, sparse tensors: the node cannot be handled
  bool has_subgraphs = false;

  bool Has(std::string_view attribute) const { return attributes.contains(attribute); }
  int64_t Int(std::string_view attribute, int64_t absent) const;
  float Float(std::string_view attribute, float absent) const;
  std::string String(std::string_view attribute, std::string absent) const;
  std::vector<int64_t> Ints(std::string_view attribute, std::vector<int64_t> absent) const;
};

struct Graph {
  std::vector<ValueInfo> values;
  std::vector<Node> nodes;  // in topological order
  std::vector<int> outputs;

  const ValueInfo& value(int id) const { return values[static_cast<size_t>(id)]; }
  int Find(std::string_view name) const;  // -1 if there is none
};

// Reads a graph. Constants are copied only if `with_constants`.
Result<Graph> ReadGraph(const OrtGraph* graph, bool with_constants);
// Names of the values that flow into or out of a node.
Result<std::vector<std::string>> InputNames(const OrtNode* node);
Result<std::vector<std::string>> OutputNames(const OrtNode* node);

}  // namespace codegen
