// Small ONNX models as bytes, for tests that use only the ABI of the library.
#pragma once

#include <onnxruntime_c_api.h>

#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::test {

inline constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
inline constexpr auto kInt64 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;

// A dimension of a declared shape: a number, or a name, or "" for one that is unknown.
struct DeclaredDim {
  DeclaredDim(int64_t size) : size(size) {}                      // NOLINT
  DeclaredDim(const char* symbol) : size(-1), symbol(symbol) {}  // NOLINT
  DeclaredDim(const char* symbol, const char* denotation)
      : size(-1), symbol(symbol), denotation(denotation) {}
  int64_t size;
  std::string symbol;
  std::string denotation;
};

// An integer attribute of a node.
struct IntAttribute {
  std::string_view name;
  int64_t value;
};

// A serialized TypeProto.
std::string TensorType(ONNXTensorElementDataType type, std::initializer_list<DeclaredDim> dims);
std::string TensorTypeWithoutShape(ONNXTensorElementDataType type);
std::string SequenceType(const std::string& element_type);

// A graph of ai.onnx operators, in a model of IR version 8 with opset 17 by default.
class ModelBuilder {
 public:
  ModelBuilder& Input(std::string_view name, const std::string& type);
  ModelBuilder& Output(std::string_view name, const std::string& type);
  ModelBuilder& Node(std::string_view op_type, std::initializer_list<std::string_view> inputs,
                     std::initializer_list<std::string_view> outputs);
  // A node of another domain, which the model imports in version 1.
  ModelBuilder& CustomNode(std::string_view domain, std::string_view op_type,
                           std::initializer_list<std::string_view> inputs,
                           std::initializer_list<std::string_view> outputs,
                           std::initializer_list<IntAttribute> attributes = {});
  // The same without the import.
  ModelBuilder& UnimportedNode(std::string_view domain, std::string_view op_type,
                               std::initializer_list<std::string_view> inputs,
                               std::initializer_list<std::string_view> outputs);
  // A YieldOp whose outputs have the shapes of its first inputs.
  ModelBuilder& YieldNode(std::initializer_list<std::string_view> inputs,
                          std::initializer_list<std::string_view> outputs);
  // A node with subgraphs, by the names of its attributes, and integers.
  ModelBuilder& ControlNode(std::string_view op_type,
                            std::initializer_list<std::string_view> inputs,
                            std::initializer_list<std::string_view> outputs,
                            std::initializer_list<std::pair<std::string_view, ModelBuilder>> graphs,
                            std::initializer_list<IntAttribute> attributes = {});
  // A float tensor of rank 1 with `size` elements that lie in `file`, from `offset`.
  ModelBuilder& ExternalInitializer(std::string_view name, int64_t size, std::string_view file,
                                    int64_t offset);
  // A float tensor of rank 1, or of rank 2 with so many columns.
  ModelBuilder& Initializer(std::string_view name, const std::vector<float>& values,
                            size_t columns = 0);
  // The version of ai.onnx that the model imports.
  ModelBuilder& Opset(int version);
  ModelBuilder& Metadata(std::string_view key, std::string_view value);
  std::string Bytes() const;

 private:
  std::string graph_;
  std::string metadata_;
  int opset_ = 17;
  std::set<std::string, std::less<>> domains_;
};

// z = Relu(x + y): x is float [n, 3], y is float [3].
std::string AddReluModel();

}  // namespace tenon::test
