#include "sparse.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <string>
#include <vector>

#include "element_types.h"
#include "value.h"

namespace tenon::python {
namespace {

using Shape = std::vector<int64_t>;

Shape ShapeOf(const OrtTensorTypeAndShapeInfo* info) {
  Shape shape(Get<size_t>(Api().GetDimensionsCount, info));
  Check(Api().GetDimensions(info, shape.data(), shape.size()));
  return shape;
}

// Bytes, name of the element type, shape.
nb::tuple Part(const void* data, ONNXTensorElementDataType type, const Shape& shape) {
  size_t bytes = static_cast<size_t>(Describe(type).size_bytes);
  for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
  return nb::make_tuple(nb::bytes(static_cast<const char*>(data), bytes), Describe(type).name,
                        shape);
}

// A copy, because the tensor is read and written only in its format.
nb::tuple Values(const Value& value) {
  const auto info = Make<TensorInfoHandle>(Api().GetSparseTensorValuesTypeAndShape, value.get());
  const auto type = Get<ONNXTensorElementDataType>(Api().GetTensorElementType, info.get());
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    const Shape shape = ShapeOf(info.get());
    const auto count = Get<size_t>(Api().GetTensorShapeElementCount, info.get());
    return nb::make_tuple(TextsOf(value.get(), count), "string", shape);
  }
  return Part(Get<const void*>(Api().GetSparseTensorValues, value.get()), type,
              ShapeOf(info.get()));
}

nb::tuple Indices(const Value& value, int format) {
  const auto kind = static_cast<OrtSparseIndicesFormat>(format);
  const auto info =
      Make<TensorInfoHandle>(Api().GetSparseTensorIndicesTypeShape, value.get(), kind);
  size_t count = 0;
  const void* data = nullptr;
  Check(Api().GetSparseTensorIndices(value.get(), kind, &count, &data));
  return Part(data, Get<ONNXTensorElementDataType>(Api().GetTensorElementType, info.get()),
              ShapeOf(info.get()));
}

Shape DenseShape(const Value& value) {
  return ShapeOf(Make<TensorInfoHandle>(Api().GetTensorTypeAndShape, value.get()).get());
}

// A contiguous array of numbers, or of objects that are strings.
struct Array {
  explicit Array(nb::handle object) {
    if (!buffer.Borrow(object)) throw nb::type_error("expected a contiguous array");
    shape.assign(buffer.view().shape, buffer.view().shape + buffer.view().ndim);
    if (std::strcmp(buffer.view().format, "O") != 0) return;
    auto* const objects = static_cast<PyObject**>(buffer.view().buf);
    for (size_t i = 0; i < size(); ++i) {
      texts.push_back(nb::cast<std::string>(nb::str(nb::handle(objects[i]))));
    }
    for (const std::string& text : texts) pointers.push_back(text.c_str());
  }
  // As the C interface takes values: numbers, or pointers to texts.
  const void* values() const {
    return pointers.empty() ? buffer.view().buf : static_cast<const void*>(pointers.data());
  }
  template <class T>
  const T* data() const {
    return static_cast<const T*>(buffer.view().buf);
  }
  size_t size() const { return static_cast<size_t>(buffer.view().len / buffer.view().itemsize); }
  Buffer buffer;
  Shape shape;
  std::vector<std::string> texts;
  std::vector<const char*> pointers;
};

ValueHandle Empty(const Shape& dense, const Array& values) {
  const auto type = std::strcmp(values.buffer.view().format, "O") == 0
                        ? ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING
                        : ElementTypeByFormat(values.buffer.view().format);
  return Make<ValueHandle>(Api().CreateSparseTensorAsOrtValue, DefaultAllocator(), dense.data(),
                           dense.size(), type);
}

Value MakeCoo(const Shape& dense, nb::handle values, nb::handle indices) {
  const Array stored(values), places(indices);
  ValueHandle handle = Empty(dense, stored);
  Check(Api().FillSparseTensorCoo(handle.get(), CpuMemory(), stored.shape.data(),
                                  stored.shape.size(), stored.values(), places.data<int64_t>(),
                                  places.size()));
  return Value(std::move(handle));
}

Value MakeCsr(const Shape& dense, nb::handle values, nb::handle inner, nb::handle outer) {
  const Array stored(values), columns(inner), rows(outer);
  ValueHandle handle = Empty(dense, stored);
  Check(Api().FillSparseTensorCsr(handle.get(), CpuMemory(), stored.shape.data(),
                                  stored.shape.size(), stored.values(), columns.data<int64_t>(),
                                  columns.size(), rows.data<int64_t>(), rows.size()));
  return Value(std::move(handle));
}

Value MakeBlocks(const Shape& dense, nb::handle values, nb::handle indices) {
  const Array stored(values), places(indices);
  ValueHandle handle = Empty(dense, stored);
  Check(Api().FillSparseTensorBlockSparse(handle.get(), CpuMemory(), stored.shape.data(),
                                          stored.shape.size(), stored.values(), places.shape.data(),
                                          places.shape.size(), places.data<int32_t>()));
  return Value(std::move(handle));
}

}  // namespace

void BindSparse(nb::module_& module) {
  module.def("_sparse_coo", &MakeCoo);
  module.def("_sparse_csr", &MakeCsr);
  module.def("_sparse_blocks", &MakeBlocks);
  module.def("_sparse_values", &Values);
  module.def("_sparse_indices", &Indices);
  module.def("_sparse_dense_shape", &DenseShape);
  module.def("_sparse_format", [](const Value& value) {
    return Get<OrtSparseFormat>(Api().GetSparseTensorFormat, value.get());
  });
}

}  // namespace tenon::python
