#include "type_info.h"

#include <nanobind/stl/string.h>

#include "element_types.h"

namespace tenon::python {
namespace {

std::vector<Dimension> ReadShape(const OrtTensorTypeAndShapeInfo* info) {
  const auto rank = Get<size_t>(Api().GetDimensionsCount, info);
  std::vector<int64_t> sizes(rank);
  std::vector<const char*> names(rank);
  Check(Api().GetDimensions(info, sizes.data(), rank));
  Check(Api().GetSymbolicDimensions(info, names.data(), rank));
  std::vector<Dimension> shape(rank);
  for (size_t i = 0; i < rank; ++i) {
    if (sizes[i] >= 0) {
      shape[i] = sizes[i];
    } else if (names[i] != nullptr && *names[i] != '\0') {
      shape[i] = std::string(names[i]);
    }
  }
  return shape;
}

void ReadTensor(const OrtTypeInfo& info, TypeDescription& type) {
  const auto* tensor = Get<const OrtTensorTypeAndShapeInfo*>(Api().CastTypeInfoToTensorInfo, &info);
  if (tensor == nullptr) return;
  type.element_type = Get<ONNXTensorElementDataType>(Api().GetTensorElementType, tensor);
  type.shape = ReadShape(tensor);
}

void ReadSequence(const OrtTypeInfo& info, TypeDescription& type) {
  const auto* sequence =
      Get<const OrtSequenceTypeInfo*>(Api().CastTypeInfoToSequenceTypeInfo, &info);
  const auto item = Make<TypeInfoHandle>(Api().GetSequenceElementType, sequence);
  type.item = std::make_shared<TypeDescription>(Describe(*item));
}

void ReadMap(const OrtTypeInfo& info, TypeDescription& type) {
  const auto* map = Get<const OrtMapTypeInfo*>(Api().CastTypeInfoToMapTypeInfo, &info);
  const auto item = Make<TypeInfoHandle>(Api().GetMapValueType, map);
  type.element_type = Get<ONNXTensorElementDataType>(Api().GetMapKeyType, map);
  type.item = std::make_shared<TypeDescription>(Describe(*item));
}

void ReadOptional(const OrtTypeInfo& info, TypeDescription& type) {
  const auto* optional =
      Get<const OrtOptionalTypeInfo*>(Api().CastTypeInfoToOptionalTypeInfo, &info);
  const auto item = Make<TypeInfoHandle>(Api().GetOptionalContainedTypeInfo, optional);
  type.item = std::make_shared<TypeDescription>(Describe(*item));
}

nb::list ShapeAsList(const NodeArg& arg) {
  nb::list list;
  for (const Dimension& dim : arg.type.shape) {
    if (const auto* size = std::get_if<int64_t>(&dim)) {
      list.append(*size);
    } else if (const auto* name = std::get_if<std::string>(&dim)) {
      list.append(*name);
    } else {
      list.append(nb::none());
    }
  }
  return list;
}

}  // namespace

std::string TypeDescription::ToString() const {
  const std::string element = Describe(element_type).name;
  const std::string inner = item == nullptr ? "" : item->ToString();
  switch (kind) {
    case ONNX_TYPE_TENSOR:
      return "tensor(" + element + ")";
    case ONNX_TYPE_SPARSETENSOR:
      return "sparse_tensor(" + element + ")";
    case ONNX_TYPE_SEQUENCE:
      return "seq(" + inner + ")";
    case ONNX_TYPE_OPTIONAL:
      return "optional(" + inner + ")";
    case ONNX_TYPE_MAP:
      return "map(" + element + "," + inner + ")";
    default:
      return "unknown";
  }
}

TypeDescription Describe(const OrtTypeInfo& info) {
  TypeDescription type;
  type.kind = Get<ONNXType>(Api().GetOnnxTypeFromTypeInfo, &info);
  switch (type.kind) {
    case ONNX_TYPE_TENSOR:
    case ONNX_TYPE_SPARSETENSOR:
      ReadTensor(info, type);
      break;
    case ONNX_TYPE_SEQUENCE:
      ReadSequence(info, type);
      break;
    case ONNX_TYPE_MAP:
      ReadMap(info, type);
      break;
    case ONNX_TYPE_OPTIONAL:
      ReadOptional(info, type);
      break;
    default:
      break;
  }
  return type;
}

void BindNodeArg(nb::module_& module) {
  nb::class_<NodeArg>(module, "NodeArg")
      .def_ro("name", &NodeArg::name)
      .def_prop_ro("type", [](const NodeArg& arg) { return arg.type.ToString(); })
      .def_prop_ro("shape", &ShapeAsList)
      .def("__repr__", [](const NodeArg& arg) {
        return nb::str("NodeArg(name={!r}, type={!r}, shape={})")
            .format(arg.name, arg.type.ToString(), ShapeAsList(arg));
      });
}

}  // namespace tenon::python
