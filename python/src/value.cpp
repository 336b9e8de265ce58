#include "value.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>

#include "devices.h"
#include "dlpack.h"
#include "element_types.h"
#include "memory.h"

namespace tenon::python {
namespace {

static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));

bool IsPacked(const ElementType& type) { return type.bits != 0 && type.bits < 8; }

// Shape and strides of a lent buffer.
struct Layout {
  std::vector<Py_ssize_t> shape;
  std::vector<Py_ssize_t> strides;
};

Layout RowMajor(const Value& value, const TensorView& tensor, const ElementType& type) {
  Layout layout;
  if (IsPacked(type)) {
    layout.shape = {static_cast<Py_ssize_t>(Get<size_t>(Api().GetTensorSizeInBytes, value.get()))};
  } else {
    layout.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  }
  layout.strides.resize(layout.shape.size());
  Py_ssize_t stride = type.size_bytes;
  for (size_t i = layout.shape.size(); i-- > 0; stride *= layout.shape[i]) {
    layout.strides[i] = stride;
  }
  return layout;
}

void Lend(PyObject* object, const Value& value, Py_buffer* view) {
  const TensorView tensor = ViewTensor(value.get());
  const ElementType& type = Describe(tensor.type);
  if (type.format == nullptr) throw nb::type_error("a tensor of strings lends no memory");
  if (!IsOnHost(MemoryOf(value))) throw nb::type_error("a tensor on a device lends no memory");
  auto layout = std::make_unique<Layout>(RowMajor(value, tensor, type));
  void* const data = Get<void*>(Api().GetTensorMutableData, value.get());
  static char nothing[16];
  view->buf = data != nullptr ? data : nothing;
  view->itemsize = type.size_bytes;
  view->len = layout->shape.empty() ? type.size_bytes : layout->strides[0] * layout->shape[0];
  view->format = const_cast<char*>(type.format);
  view->readonly = 0;
  view->ndim = static_cast<int>(layout->shape.size());
  view->shape = layout->shape.data();
  view->strides = layout->strides.data();
  view->suboffsets = nullptr;
  view->internal = layout.release();
  view->obj = object;
  Py_INCREF(object);
}

int GetBuffer(PyObject* object, Py_buffer* view, int) noexcept {
  view->obj = nullptr;
  try {
    Lend(object, *nb::inst_ptr<Value>(object), view);
    return 0;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  }
  return -1;
}

void ReleaseBuffer(PyObject*, Py_buffer* view) noexcept {
  delete static_cast<Layout*>(view->internal);
}

PyType_Slot value_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&GetBuffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(&ReleaseBuffer)},
    {0, nullptr},
};

TypeDescription TypeOf(const Value& value) {
  return Describe(*Make<TypeInfoHandle>(Api().GetTypeInfo, value.get()));
}

ONNXType KindOf(const Value& value) { return Get<ONNXType>(Api().GetValueType, value.get()); }

// `type` is the number of an ONNX type, or anything that NumPy takes as a dtype.
ONNXTensorElementDataType ReadElementType(nb::handle type) {
  int number = 0;
  if (nb::try_cast(type, number)) return static_cast<ONNXTensorElementDataType>(number);
  const nb::object name = nb::module_::import_("tenon._arrays").attr("element_type")(type);
  return ElementTypeByName(nb::cast<std::string>(name));
}

// Numbers stay in the array's memory if that is on the device.
Value FromNumPy(nb::handle array, nb::handle device, int number, int vendor) {
  const OrtMemoryInfo* const memory = FindMemory(device, number, vendor);
  Value value = ToValue(array, {.kind = ONNX_TYPE_TENSOR});
  return memory == CpuMemory() ? std::move(value) : CopyTo(value, AllocatorIn(memory));
}

// The memory of `array` read as elements of another type of the same size.
Value FromNumPyAs(nb::handle array, int onnx_type) {
  const auto type = static_cast<ONNXTensorElementDataType>(onnx_type);
  Buffer buffer;
  if (!buffer.Borrow(array)) throw nb::type_error("expected a contiguous array of numbers");
  const Py_buffer& view = buffer.view();
  const std::vector<int64_t> shape(view.shape, view.shape + view.ndim);
  auto value = Make<ValueHandle>(Api().CreateTensorWithDataAsOrtValue, CpuMemory(), view.buf,
                                 static_cast<size_t>(view.len), shape.data(), shape.size(), type);
  return Value(std::move(value), std::move(buffer));
}

// `memory`, if it is not None, names the memory in place of the device.
Value FromShape(const std::vector<int64_t>& shape, nb::handle type, nb::handle device, int number,
                int vendor, nb::handle memory) {
  const OrtMemoryInfo* const info =
      memory.is_none() ? FindMemory(device, number, vendor) : nb::cast<MemoryPlace&>(memory).info;
  const ONNXTensorElementDataType element_type = ReadElementType(type);
  if (element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING && info != CpuMemory()) {
    Raise(PyExc_RuntimeError,
          "values outside the CPU's memory are those of non-string numpy arrays");
  }
  return Value(Make<ValueHandle>(Api().CreateTensorAsOrtValue, AllocatorIn(info), shape.data(),
                                 shape.size(), element_type));
}

// A tensor over memory of the caller, which outlives it.
Value AtAddress(uintptr_t address, const std::vector<int64_t>& shape, nb::handle type,
                nb::handle device, int number, int vendor) {
  const OrtMemoryInfo* const info = FindMemory(device, number, vendor);
  const ONNXTensorElementDataType element_type = ReadElementType(type);
  if (element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    Raise(PyExc_RuntimeError, "Only binding non-string Tensors is possible by an address");
  }
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) {
      throw nb::value_error("expected the sizes of a tensor");
    }
  }
  int64_t bits = 0;
  if (__builtin_mul_overflow(elements, Describe(element_type).bits, &bits)) {
    throw nb::value_error("expected the sizes of a tensor");
  }
  return Value(Make<ValueHandle>(
      Api().CreateTensorWithDataAsOrtValue, info, reinterpret_cast<void*>(address),
      static_cast<size_t>(bits / 8 + (bits % 8 != 0)), shape.data(), shape.size(), element_type));
}

void Update(Value& value, nb::handle array) {
  const Value source = ToValue(array, {.kind = ONNX_TYPE_TENSOR});
  const TensorView to = ViewTensor(value.get()), from = ViewTensor(source.get());
  if (to.type != from.type || to.element_count != from.element_count) {
    throw nb::value_error("expected an array of the same type and size");
  }
  if (Describe(to.type).format == nullptr) {
    throw nb::type_error("a tensor of strings cannot be updated in place");
  }
  if (!IsOnHost(MemoryOf(value))) return CopyTensor(source, value);
  std::memcpy(Get<void*>(Api().GetTensorMutableData, value.get()),
              Get<void*>(Api().GetTensorMutableData, source.get()),
              Get<size_t>(Api().GetTensorSizeInBytes, source.get()));
}

nb::list ShapeOf(const Value& value) {
  const TensorView view = ViewTensor(value.get());
  nb::list shape;
  for (size_t i = 0; i < view.rank; ++i) shape.append(view.shape[i]);
  return shape;
}

nb::object AsNumPy(nb::handle object) { return ArrayOf(object, nb::cast<const Value&>(object)); }

}  // namespace

void BindValue(nb::module_& module) {
  nb::class_<Value>(module, "OrtValue", nb::type_slots(value_slots))
      .def(nb::new_([](nb::object value, nb::handle, nb::handle) {
             nb::cast<Value&>(value);  // no other objects are accepted
             return value;
           }),
           nb::arg("ortvalue"), nb::arg("numpy_obj") = nb::none(), nb::arg("session") = nb::none())
      .def_static("ortvalue_from_numpy", &FromNumPy, nb::arg("numpy_obj"),
                  nb::arg("device_type") = "cpu", nb::arg("device_id") = 0,
                  nb::arg("vendor_id") = -1)
      .def_static("from_dlpack", &FromDlpack, nb::arg("data"), nb::arg("is_bool_tensor") = false)
      .def("__dlpack__",
           [](nb::handle self, nb::kwargs) { return ToDlpack(self, nb::cast<Value&>(self)); })
      .def("__dlpack_device__", &DlpackDevice)
      .def("to_dlpack", [](nb::handle self) { return ToDlpack(self, nb::cast<Value&>(self)); })
      .def(
          "__array__",
          [](nb::handle self, nb::handle dtype, nb::handle copy) {
            return nb::module_::import_("tenon._arrays")
                .attr("as_array")(AsNumPy(self), nb::borrow(dtype), nb::borrow(copy));
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def_static(
          "ort_value_from_sparse_tensor", [](nb::handle sparse) { return sparse.attr("_value"); },
          nb::arg("sparse_tensor"))
      .def("as_sparse_tensor",
           [](nb::handle self) {
             return nb::module_::import_("tenon._sparse").attr("SparseTensor")(self);
           })
      .def_static("ortvalue_from_numpy_with_onnx_type", &FromNumPyAs, nb::arg("data"),
                  nb::arg("onnx_element_type"))
      .def_static("ortvalue_from_shape_and_type", &FromShape, nb::arg("shape"),
                  nb::arg("element_type"), nb::arg("device_type") = "cpu", nb::arg("device_id") = 0,
                  nb::arg("vendor_id") = -1, nb::arg("memory_info") = nb::none())
      .def_static("_at_address", &AtAddress)
      .def("numpy", &AsNumPy)
      .def("update_inplace", &Update, nb::arg("data"))
      .def(
          "data_ptr",
          [](const Value& value) {
            return reinterpret_cast<uintptr_t>(Get<void*>(Api().GetTensorMutableData, value.get()));
          })
      .def("device_name", [](const Value& value) { return DeviceName(MemoryOf(value)); })
      .def("shape", &ShapeOf)
      .def("data_type", [](const Value& value) { return TypeOf(value).ToString(); })
      .def("element_type",
           [](const Value& value) { return static_cast<int>(ViewTensor(value.get()).type); })
      .def("has_value",
           [](const Value& value) { return Get<int>(Api().HasValue, value.get()) != 0; })
      .def("is_tensor", [](const Value& value) { return KindOf(value) == ONNX_TYPE_TENSOR; })
      .def("is_sparse_tensor",
           [](const Value& value) { return KindOf(value) == ONNX_TYPE_SPARSETENSOR; })
      .def("is_tensor_sequence",
           [](const Value& value) { return KindOf(value) == ONNX_TYPE_SEQUENCE; })
      .def("tensor_size_in_bytes",
           [](const Value& value) { return Get<size_t>(Api().GetTensorSizeInBytes, value.get()); })
      .def_prop_ro("_ortvalue", [](nb::handle self) { return self; })
      .def("_get_c_value", [](nb::handle self) { return self; });
  module.def("is_dlpack_uint8_tensor", &IsDlpackOfBytes);
}

}  // namespace tenon::python
