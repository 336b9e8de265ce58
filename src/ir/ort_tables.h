// The tables of ONNX Runtime's .ort files, which are FlatBuffers with the identifier ORTM, and the
// fields of each in the order of their numbers. The identifier and the numbers are the format; the
// names are ours.
#pragma once

#include <cstdint>

namespace tenon::ort {

inline constexpr char kIdentifier[] = "ORTM";

// Files of versions 1 to 6 have the same tables, as far as we read them. Before version 5, they
// name kernels by hashes, which nobody uses any more.
inline constexpr int kNewestVersion = 6;

struct File {
  enum Field : uint16_t { kVersion, kModel, kKernelHashes, kOperators };
};

struct Model {
  enum Field : uint16_t {
    kIrVersion,
    kOpsets,
    kProducerName,
    kProducerVersion,
    kDomain,
    kModelVersion,
    kDocString,
    kGraph,
    kGraphDocString,
    kMetadata
  };
};

struct Opset {
  enum Field : uint16_t { kDomain, kVersion };
};

struct Entry {
  enum Field : uint16_t { kKey, kValue };
};

// kValues describes every value that a node of this graph uses. kEdges repeats what the nodes say.
struct Graph {
  enum Field : uint16_t {
    kInitializers,
    kValues,
    kNodes,
    kNodeCount,
    kEdges,
    kInputs,
    kOutputs,
    kSparseInitializers,
    kOptimizations
  };
};

// kArgCounts says how many of the inputs belong to each input of the schema, and kCaptures which
// values subgraphs read.
struct Node {
  enum Field : uint16_t {
    kName,
    kDocString,
    kDomain,
    kSince,
    kIndex,
    kOpType,
    kKind,
    kProvider,
    kInputs,
    kOutputs,
    kAttributes,
    kArgCounts,
    kCaptures
  };
  enum Kind : int32_t { kOperator, kFused };
};

// Lists of EdgeEnd.
struct Edges {
  enum Field : uint16_t { kNode, kInputs, kOutputs };
};

// An edge as the node at its other end sees it; outputs and inputs are numbered.
struct EdgeEnd {
  uint32_t node;
  int32_t output;
  int32_t input;
};

// kType has a number of AttributeType, which says where the value is.
struct Attribute {
  enum Field : uint16_t {
    kName,
    kDocString,
    kType,
    kFloat,
    kInt,
    kString,
    kTensor,
    kGraph,
    kFloats,
    kInts,
    kStrings,
    kTensors,
    kGraphs
  };
};

// Numbers have their bytes in kElements, strings are in kStrings. kExternalOffset is a position in
// a file whose name is not stored.
struct Tensor {
  enum Field : uint16_t { kName, kDocString, kDims, kType, kElements, kStrings, kExternalOffset };
};

struct SparseTensor {
  enum Field : uint16_t { kValues, kIndices, kDims };
};

struct Value {
  enum Field : uint16_t { kName, kDocString, kType };
};

// kForm is a table that kKind tells. There are no sparse, optional or opaque types.
struct Type {
  enum Field : uint16_t { kDenotation, kKind, kForm };
  enum Kind : uint8_t { kNone, kTensor, kSequence, kMap };
};

struct TensorType {
  enum Field : uint16_t { kElementType, kShape };
};

struct SequenceType {
  enum Field : uint16_t { kElement };
};

struct MapType {
  enum Field : uint16_t { kKeyType, kElement };
};

struct Shape {
  enum Field : uint16_t { kDims };
};

struct Dim {
  enum Field : uint16_t { kSize, kDenotation };
};

struct DimSize {
  enum Field : uint16_t { kKind, kNumber, kSymbol };
  enum Kind : int8_t { kIsUnknown, kIsNumber, kIsSymbol };
};

// By its operators, sorted by name, ONNX Runtime finds kernels without schemas.
struct Operators {
  enum Field : uint16_t { kList };
};

// Named "domain:type:since". The constraints are sorted by name.
struct Operator {
  enum Field : uint16_t { kName, kConstraints };
};

// The inputs and outputs whose type has this name.
struct Constraint {
  enum Field : uint16_t { kName, kFormals };
};

struct Formal {
  enum Field : uint16_t { kIsOutput, kIndex };
};

}  // namespace tenon::ort
