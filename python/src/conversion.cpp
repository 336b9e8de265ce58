// Conversions between Python objects and values.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "dlpack.h"
#include "element_types.h"
#include "memory.h"

namespace tenon::python {
namespace {

using Shape = std::vector<int64_t>;

// NumPy's object `name`, kept in `known`. Not a static variable with a C++ guard: importing NumPy
// may pass the interpreter's lock to a thread that then waits for the guard.
nb::handle NumPy(const char* name, PyObject*& known) {
  if (known == nullptr) {
    const nb::object found = nb::module_::import_("numpy").attr(name);
    if (known == nullptr) known = nb::object(found).release().ptr();
  }
  return known;
}

// The conversions that are written in Python. Most programs never load them.
nb::object Arrays(const char* name) { return nb::module_::import_("tenon._arrays").attr(name); }

bool IsArray(nb::handle object) {
  static PyObject* known = nullptr;
  const nb::handle array_class = NumPy("ndarray", known);
  return Py_TYPE(object.ptr()) == reinterpret_cast<PyTypeObject*>(array_class.ptr()) ||
         PyObject_IsInstance(object.ptr(), array_class.ptr()) == 1;
}

// How many strings are set or got at once.
constexpr size_t kTexts = 256;

// A tensor of strings, which are set in their order.
class StringTensor {
 public:
  explicit StringTensor(const Shape& shape)
      : value_(Make<ValueHandle>(Api().CreateTensorAsOrtValue, DefaultAllocator(), shape.data(),
                                 shape.size(), ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING)) {}

  // The text must stay as it is until Flush.
  void Add(const char* text, size_t size) {
    if (count_ == kTexts) Flush();
    texts_[count_] = text;
    sizes_[count_++] = size;
  }

  // Bytes are taken unchanged, other objects as str() writes them. Bytes that are not UTF-8 may be
  // in a str, where ForEachText put them.
  void Add(PyObject* object) {
    if (PyBytes_CheckExact(object)) return AddBytes(object);
    if (PyUnicode_CheckExact(object) && AddUtf8(object)) return;
    Flush();  // str() may run code that changes the others
    nb::object kept = nb::borrow(object);
    if (!PyBytes_Check(object)) {
      kept = nb::str(nb::handle(object));
      if (!AddUtf8(kept.ptr())) {
        kept = nb::steal(PyUnicode_AsEncodedString(kept.ptr(), "utf-8", "surrogateescape"));
        if (!kept) throw nb::python_error();
      }
    }
    if (PyBytes_Check(kept.ptr())) AddBytes(kept.ptr());
    Flush();
  }

  void Flush() {
    static const auto set = Experimental<TenonStringTensorSet>(TENON_STRING_TENSOR_SET);
    Check(set(value_.get(), first_, texts_, sizes_, count_));
    first_ += std::exchange(count_, 0);
  }

  Value Take() {
    Flush();
    return Value(std::move(value_));
  }

 private:
  void AddBytes(PyObject* bytes) {
    const char* const text = PyBytes_AsString(bytes);
    if (text == nullptr) throw nb::python_error();
    Add(text, static_cast<size_t>(PyBytes_Size(bytes)));
  }

  // False if the str has surrogates.
  bool AddUtf8(PyObject* text) {
    Py_ssize_t size = 0;
    const char* const bytes = PyUnicode_AsUTF8AndSize(text, &size);
    if (bytes == nullptr) {
      PyErr_Clear();
      return false;
    }
    Add(bytes, static_cast<size_t>(size));
    return true;
  }

  ValueHandle value_;
  size_t first_ = 0, count_ = 0;
  const char* texts_[kTexts];
  size_t sizes_[kTexts];
};

Value TensorOfObjects(PyObject* const* objects, size_t count, const Shape& shape) {
  StringTensor tensor(shape);
  for (size_t i = 0; i < count; ++i) tensor.Add(objects[i] != nullptr ? objects[i] : Py_None);
  return tensor.Take();
}

// Of an element of NumPy's types of one size, without the zeros at its end.
template <class T>
size_t LengthOf(const T* element, size_t size) {
  while (size > 0 && element[size - 1] == 0) --size;
  return size;
}

// Elements of `S`.
Value TensorOfBytes(const Py_buffer& view, size_t count, const Shape& shape) {
  StringTensor tensor(shape);
  const auto size = static_cast<size_t>(view.itemsize);
  const char* element = static_cast<const char*>(view.buf);
  for (size_t i = 0; i < count; ++i, element += size) tensor.Add(element, LengthOf(element, size));
  return tensor.Take();
}

char* WriteUtf8(uint32_t code, char* out) {
  if (code < 0x80) {
    *out = static_cast<char>(code);
    return out + 1;
  }
  const size_t size = size_t{2} + size_t{code >= 0x800} + size_t{code >= 0x10000};
  for (size_t i = size - 1; i > 0; --i, code >>= 6) out[i] = static_cast<char>(0x80 | (code & 63));
  *out = static_cast<char>((0xF00U >> size) | code);
  return out + size;
}

// The end of what is written; null if a code is none of a character.
char* WriteUtf8(const uint32_t* codes, size_t length, char* out) {
  uint32_t bits = 0;
  for (size_t i = 0; i < length; ++i) bits |= codes[i];
  if (bits < 0x80) {
    for (size_t i = 0; i < length; ++i) out[i] = static_cast<char>(codes[i]);
    return out + length;
  }
  for (size_t i = 0; i < length; ++i) {
    if ((codes[i] >= 0xD800 && codes[i] < 0xE000) || codes[i] > 0x10FFFF) return nullptr;
    out = WriteUtf8(codes[i], out);
  }
  return out;
}

// Elements of `U`.
Value TensorOfCodes(const Py_buffer& view, size_t count, const Shape& shape) {
  StringTensor tensor(shape);
  const size_t size = static_cast<size_t>(view.itemsize) / sizeof(uint32_t);
  const size_t room = std::max<size_t>(4 * size, 1 << 14);
  const auto texts = std::make_unique_for_overwrite<char[]>(room);
  char* out = texts.get();
  const auto* codes = static_cast<const uint32_t*>(view.buf);
  for (size_t i = 0; i < count; ++i, codes += size) {
    const size_t length = LengthOf(codes, size);
    if (static_cast<size_t>(texts.get() + room - out) < 4 * length) {
      tensor.Flush();
      out = texts.get();
    }
    if (char* const end = WriteUtf8(codes, length, out)) {
      tensor.Add(out, static_cast<size_t>(end - out));
      out = end;
      continue;
    }
    int order = std::endian::native == std::endian::little ? -1 : 1;
    const nb::object text = nb::steal(PyUnicode_DecodeUTF32(
        reinterpret_cast<const char*>(codes), static_cast<Py_ssize_t>(length * sizeof(uint32_t)),
        "surrogatepass", &order));
    if (!text) throw nb::python_error();
    tensor.Add(text.ptr());
    tensor.Flush();
  }
  return tensor.Take();
}

// The last letter of a format that is a size and a letter, as "12w"; 0 of others, those in another
// byte order among them.
char SizedFormat(const char* format) {
  const char* letter = format;
  while (*letter >= '0' && *letter <= '9') ++letter;
  return letter != format && *letter != 0 && letter[1] == 0 ? *letter : '\0';
}

// A tensor over the memory of `buffer`.
Value NumericTensor(Buffer buffer, ONNXTensorElementDataType type, const Shape& shape) {
  static char nothing[16];  // an empty buffer may have no address
  const Py_buffer& view = buffer.view();
  void* const data = view.buf != nullptr ? view.buf : nothing;
  auto value = Make<ValueHandle>(Api().CreateTensorWithDataAsOrtValue, CpuMemory(), data,
                                 static_cast<size_t>(view.len), shape.data(), shape.size(), type);
  return Value(std::move(value), std::move(buffer));
}

Shape ShapeOf(const Py_buffer& view) {
  return view.shape == nullptr ? Shape() : Shape(view.shape, view.shape + view.ndim);
}

bool IsAligned(const Py_buffer& view) {
  const auto address = reinterpret_cast<uintptr_t>(view.buf);
  const auto item = static_cast<uintptr_t>(view.itemsize);
  const uintptr_t alignment = item > alignof(double) ? alignof(double) : item;
  return alignment == 0 || address % alignment == 0;
}

// Uses an array without a copy. Returns false if it has to be converted first.
bool FromArray(nb::handle array, Value& out) {
  Buffer buffer;
  if (!buffer.Borrow(array)) return false;
  const Py_buffer& view = buffer.view();
  const Shape shape = ShapeOf(view);
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  const char sized = SizedFormat(view.format);
  if (sized == 's') {
    out = TensorOfBytes(view, count, shape);
    return true;
  }
  if (sized == 'w' && reinterpret_cast<uintptr_t>(view.buf) % alignof(uint32_t) == 0) {
    out = TensorOfCodes(view, count, shape);
    return true;
  }
  if (!IsAligned(view)) return false;
  if (std::strcmp(view.format, "O") == 0) {
    out = TensorOfObjects(static_cast<PyObject**>(view.buf), count, shape);
    return true;
  }
  const ONNXTensorElementDataType type = ElementTypeByFormat(view.format);
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) return false;
  out = NumericTensor(std::move(buffer), type, shape);
  return true;
}

// Uses the memory of another library's tensor, which may have types that NumPy lacks. Returns false
// if it has to be converted first: it is not row-major, or the library does not lend it.
bool FromLender(nb::handle object, Value& out) {
  if (!nb::hasattr(object, "__dlpack__")) return false;
  try {
    out = FromDlpack(object, false);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

Value ToTensor(nb::handle object, ONNXTensorElementDataType expected) {
  if (object.is_none())
    throw nb::type_error("expected a tensor, got None");  // NumPy would convert it to NaN
  Value value;
  if (IsArray(object) ? FromArray(object, value) : FromLender(object, value)) return value;
  const nb::tuple prepared =
      nb::cast<nb::tuple>(Arrays("prepare")(object, nb::str(Describe(expected).name)));
  const auto name = nb::cast<std::string>(prepared[1]);
  if (name == "string") {
    if (FromArray(prepared[0], value)) return value;
    throw nb::type_error("expected strings");
  }
  Shape shape;
  for (const nb::handle size : nb::cast<nb::tuple>(prepared[2])) {
    shape.push_back(nb::cast<int64_t>(size));
  }
  Buffer buffer;
  if (!buffer.Borrow(prepared[0])) throw nb::type_error("expected an array of numbers");
  return NumericTensor(std::move(buffer), ElementTypeByName(name), shape);
}

// A sequence of values, or a map of keys and values. The parts may be released afterwards.
Value Combine(const std::vector<Value>& parts, ONNXType kind) {
  std::vector<const OrtValue*> pointers;
  for (const Value& part : parts) pointers.push_back(part.get());
  return Value(Make<ValueHandle>(Api().CreateValue, pointers.data(), pointers.size(), kind));
}

Value ToSequence(nb::handle object, const TypeDescription& item) {
  std::vector<Value> parts;
  for (const nb::handle element : object) parts.push_back(ToValue(element, item));
  return Combine(parts, ONNX_TYPE_SEQUENCE);
}

Value ToMap(nb::handle object, const TypeDescription& type) {
  const nb::dict map = nb::cast<nb::dict>(object);
  const bool has_texts = type.element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
  for (const nb::handle key : map.keys()) {
    // NumPy would read a number in a text.
    if ((PyUnicode_Check(key.ptr()) || PyBytes_Check(key.ptr())) == has_texts) continue;
    const nb::object text =
        nb::str("Unexpected key type  {}, it cannot be linked to C type {}: {!r}")
            .format(key.type(), has_texts ? "std::string" : "int64_t", key);
    throw nb::type_error(nb::cast<std::string>(text).c_str());
  }
  std::vector<Value> parts;
  parts.push_back(ToTensor(map.keys(), type.element_type));
  parts.push_back(ToTensor(map.values(), type.item->element_type));
  return Combine(parts, ONNX_TYPE_MAP);
}

nb::tuple ShapeTuple(const TensorView& view) {
  nb::list shape;
  for (size_t i = 0; i < view.rank; ++i) shape.append(view.shape[i]);
  return nb::tuple(shape);
}

// Calls take(index, text) with a new reference to each of `count` strings.
template <class Take>
void ForEachText(const OrtValue* value, size_t count, Take take) {
  static const auto get = Experimental<TenonStringTensorGet>(TENON_STRING_TENSOR_GET);
  const char* texts[kTexts];
  size_t sizes[kTexts];
  for (size_t first = 0; first < count; first += kTexts) {
    const size_t part = std::min(kTexts, count - first);
    Check(get(value, first, texts, sizes, part));
    for (size_t i = 0; i < part; ++i) {
      PyObject* const text =
          PyUnicode_DecodeUTF8(texts[i], static_cast<Py_ssize_t>(sizes[i]), "surrogateescape");
      if (text == nullptr) throw nb::python_error();
      take(first + i, text);
    }
  }
}

// An array of str objects.
nb::object StringsToPython(const OrtValue* value, const TensorView& view) {
  static PyObject* known = nullptr;
  nb::object array = NumPy("empty", known)(ShapeTuple(view), "O");
  Buffer buffer;
  if (!buffer.Borrow(array)) throw nb::type_error("expected an array of objects");
  auto* const objects = static_cast<PyObject**>(buffer.view().buf);
  ForEachText(value, view.element_count,
              [&](size_t i, PyObject* text) { Py_XDECREF(std::exchange(objects[i], text)); });
  return array;
}

Value Element(const OrtValue* value, size_t index) {
  return Value(
      Make<ValueHandle>(Api().GetValue, value, static_cast<int>(index), DefaultAllocator()));
}

// `count` elements of a tensor as Python's own numbers. The commonest types need no array, which
// takes longer to make than a short list. Null if the type is none of them.
nb::object NumbersOf(ONNXTensorElementDataType type, const void* data, size_t count) {
  const auto list_of = [&]<class T>(const T* elements, auto convert) -> nb::object {
    nb::list list;
    for (size_t i = 0; i < count; ++i) {
      const nb::object element = nb::steal(convert(elements[i]));
      if (!element) throw nb::python_error();
      list.append(element);
    }
    return list;
  };
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
      return list_of(static_cast<const float*>(data),
                     [](double x) { return PyFloat_FromDouble(x); });
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
      return list_of(static_cast<const double*>(data), PyFloat_FromDouble);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
      return list_of(static_cast<const int64_t*>(data), PyLong_FromLongLong);
    default:
      return {};
  }
}

// The elements of a tensor of rank 1 as Python's own numbers and strings.
nb::list ElementsOf(Value value) {
  const TensorView view = ViewTensor(value.get());
  const auto* const data = Get<const void*>(Api().GetTensorData, value.get());
  if (nb::object numbers = NumbersOf(view.type, data, view.element_count)) {
    return nb::borrow<nb::list>(numbers);
  }
  return nb::cast<nb::list>(ToPython(std::move(value)).attr("tolist")());
}

// The keys and values have the same length.
nb::dict DictOf(nb::handle keys, nb::handle values) {
  nb::dict map;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.ptr()); ++i) {
    if (PyDict_SetItem(map.ptr(), PyList_GET_ITEM(keys.ptr(), i),
                       PyList_GET_ITEM(values.ptr(), i)) != 0) {
      throw nb::python_error();
    }
  }
  return map;
}

nb::object MapToPython(const OrtValue* value) {
  return DictOf(ElementsOf(Element(value, 0)), ElementsOf(Element(value, 1)));
}

// The maps of one sequence often share their keys, which are then converted once.
nb::list MapsToPython(const OrtValue* sequence, size_t count) {
  static const auto get_map = Experimental<TenonSequenceGetMap>(TENON_SEQUENCE_GET_MAP);
  const auto type = ViewTensor(Element(Element(sequence, 0).get(), 1).get()).type;
  const void* known_keys = nullptr;
  nb::list maps, keys;
  for (size_t i = 0; i < count; ++i) {
    const void *map_keys = nullptr, *map_values = nullptr;
    size_t size = 0;
    Check(get_map(sequence, i, &map_keys, &map_values, &size));
    if (i == 0 || map_keys != known_keys) {
      keys = ElementsOf(Element(Element(sequence, i).get(), 0));
      known_keys = map_keys;
    }
    nb::object values = NumbersOf(type, map_values, size);
    if (!values) values = ElementsOf(Element(Element(sequence, i).get(), 1));
    maps.append(DictOf(keys, values));
  }
  return maps;
}

nb::object SequenceToPython(const OrtValue* value) {
  const auto count = Get<size_t>(Api().GetValueCount, value);
  const auto is_map = [](const Value& element) {
    return Get<ONNXType>(Api().GetValueType, element.get()) == ONNX_TYPE_MAP;
  };
  if (count > 0 && is_map(Element(value, 0))) return MapsToPython(value, count);
  nb::list list;
  for (size_t i = 0; i < count; ++i) list.append(ToPython(Element(value, i)));
  return list;
}

}  // namespace

nb::list TextsOf(const OrtValue* value, size_t count) {
  auto list = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(count)));
  if (!list.is_valid()) throw nb::python_error();
  ForEachText(value, count, [&](size_t i, PyObject* text) {
    PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(i), text);
  });
  return list;
}

bool Buffer::Borrow(nb::handle object) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) == 0) {
    return true;
  }
  PyErr_Clear();
  view_ = {};
  return false;
}

TensorView ViewTensor(const OrtValue* value) {
  TensorView view{};
  Check(
      Api().GetTensorElementTypeAndShapeDataReference(value, &view.type, &view.shape, &view.rank));
  view.element_count = 1;
  for (size_t i = 0; i < view.rank; ++i) {
    view.element_count *= static_cast<size_t>(view.shape[i]);
  }
  return view;
}

Value ToValue(nb::handle object, const TypeDescription& expected) {
  if (expected.kind == ONNX_TYPE_OPTIONAL) {
    return object.is_none() ? Combine({}, ONNX_TYPE_OPTIONAL) : ToValue(object, *expected.item);
  }
  if (expected.kind == ONNX_TYPE_SEQUENCE) return ToSequence(object, *expected.item);
  if (expected.kind == ONNX_TYPE_MAP) return ToMap(object, expected);
  return ToTensor(object, expected.element_type);
}

nb::object ArrayOf(nb::handle object, const Value& value) {
  if (!IsOnHost(Get<const OrtMemoryInfo*>(Api().GetTensorMemoryInfo, value.get()))) {
    const nb::object copy = nb::cast(CopyTo(value, DefaultAllocator()));
    return ArrayOf(copy, nb::cast<const Value&>(copy));
  }
  static PyObject* known = nullptr;
  const nb::handle as_array = NumPy("asarray", known);
  const TensorView view = ViewTensor(value.get());
  if (view.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    return StringsToPython(value.get(), view);
  }
  const ElementType& type = Describe(view.type);
  const nb::object array = as_array(object);
  if (type.is_native) return array;
  return Arrays("typed")(array, nb::str(type.name), ShapeTuple(view));
}

nb::object ToPython(Value value) {
  if (value.get() == nullptr || !Get<int>(Api().HasValue, value.get())) return nb::none();
  switch (Get<ONNXType>(Api().GetValueType, value.get())) {
    case ONNX_TYPE_TENSOR: {
      const nb::object object = nb::cast(std::move(value));
      return ArrayOf(object, nb::cast<const Value&>(object));
    }
    case ONNX_TYPE_SPARSETENSOR:
      return nb::module_::import_("tenon._sparse").attr("SparseTensor")(nb::cast(std::move(value)));
    case ONNX_TYPE_SEQUENCE:
      return SequenceToPython(value.get());
    case ONNX_TYPE_MAP:
      return MapToPython(value.get());
    default:
      PyErr_SetString(PyExc_TypeError, "expected a tensor, a sequence or a map to convert");
      throw nb::python_error();
  }
}

}  // namespace tenon::python
