// Field numbers of the messages of onnx-ml.proto (IR version 14), for the reader and the writer.
#pragma once

#include <cstdint>

namespace tenon {

// ModelProto up to this version is read; later ones may contain fields that this reader does not
// know.
inline constexpr int64_t kNewestIrVersion = 14;
// From this version on, an initializer that is not also an input cannot be overridden, and need
// not be listed among the inputs.
inline constexpr int64_t kInitializersNeedNoInput = 4;

enum class ModelField : uint32_t {
  kIrVersion = 1,
  kProducerName = 2,
  kProducerVersion = 3,
  kDomain = 4,
  kModelVersion = 5,
  kDocString = 6,
  kGraph = 7,
  kOpsetImport = 8,
  kMetadata = 14,
  kTrainingInfo = 20,
  kFunctions = 25,
  kConfiguration = 26,
};

enum class OpsetField : uint32_t { kDomain = 1, kVersion = 2 };

enum class EntryField : uint32_t { kKey = 1, kValue = 2 };

enum class TrainingField : uint32_t {
  kInitialization = 1,
  kAlgorithm = 2,
  kInitializationBinding = 3,
  kUpdateBinding = 4,
};

enum class FunctionField : uint32_t {
  kName = 1,
  kInput = 4,
  kOutput = 5,
  kAttribute = 6,
  kNode = 7,
  kDocString = 8,
  kOpsetImport = 9,
  kDomain = 10,
  kAttributeProto = 11,
  kValueInfo = 12,
  kOverload = 13,
  kMetadata = 14,
};

enum class GraphField : uint32_t {
  kNode = 1,
  kName = 2,
  kInitializer = 5,
  kDocString = 10,
  kInput = 11,
  kOutput = 12,
  kValueInfo = 13,
  kQuantizationAnnotation = 14,
  kSparseInitializer = 15,
  kMetadata = 16,
};

enum class AnnotationField : uint32_t { kTensorName = 1, kQuantParameterTensorNames = 2 };

enum class NodeField : uint32_t {
  kInput = 1,
  kOutput = 2,
  kName = 3,
  kOpType = 4,
  kAttribute = 5,
  kDocString = 6,
  kDomain = 7,
  kOverload = 8,
  kMetadata = 9,
  kDeviceConfigurations = 10,
};

enum class AttributeField : uint32_t {
  kName = 1,
  kFloat = 2,
  kInt = 3,
  kString = 4,
  kTensor = 5,
  kGraph = 6,
  kFloats = 7,
  kInts = 8,
  kStrings = 9,
  kTensors = 10,
  kGraphs = 11,
  kDocString = 13,
  kTypeProto = 14,
  kTypeProtos = 15,
  kType = 20,
  kReference = 21,
  kSparseTensor = 22,
  kSparseTensors = 23,
};

enum class ValueInfoField : uint32_t { kName = 1, kType = 2, kDocString = 3, kMetadata = 4 };

enum class TypeField : uint32_t {
  kTensor = 1,
  kSequence = 4,
  kMap = 5,
  kDenotation = 6,
  kOpaque = 7,
  kSparseTensor = 8,
  kOptional = 9,
};

enum class TensorTypeField : uint32_t { kElementType = 1, kShape = 2 };
enum class HolderTypeField : uint32_t { kElementType = 1 };  // of a sequence or an optional
enum class MapTypeField : uint32_t { kKeyType = 1, kValueType = 2 };
enum class ShapeField : uint32_t { kDim = 1 };
enum class DimField : uint32_t { kValue = 1, kParam = 2, kDenotation = 3 };

enum class TensorField : uint32_t {
  kDims = 1,
  kDataType = 2,
  kSegment = 3,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kDocString = 12,
  kExternalData = 13,
  kDataLocation = 14,
  kMetadata = 16,
};

// TensorProto.DataLocation
inline constexpr int64_t kExternalLocation = 1;

enum class SparseTensorField : uint32_t { kValues = 1, kIndices = 2, kDims = 3 };

}  // namespace tenon
