#include "dlpack.h"

#include <algorithm>
#include <memory>

#include "element_types.h"
#include "gil.h"
#include "memory.h"

namespace tenon::python {
namespace {

// The structs of DLPack, with its names.
struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
// Kinds of devices.
constexpr int32_t kCpu = 1;
constexpr int32_t kCuda = 2;

enum Code : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E4M3FNUZ = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2FNUZ = 13,
  kFloat8E8M0 = 14,
};

struct TypeRow {
  ONNXTensorElementDataType type;
  Code code;
  uint8_t bits;
};
constexpr TypeRow kTypes[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kFloat, 32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, kFloat, 64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, kFloat, 16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, kBfloat, 16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, kInt, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, kInt, 16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, kInt, 32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, kInt, 64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, kUInt, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, kUInt, 16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, kUInt, 32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, kUInt, 64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, kBool, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64, kComplex, 64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128, kComplex, 128},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, kFloat8E4M3FN, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ, kFloat8E4M3FNUZ, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2, kFloat8E5M2, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ, kFloat8E5M2FNUZ, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0, kFloat8E8M0, 8},
};

// What a lent tensor keeps alive.
struct Lent {
  DLManagedTensor tensor{};
  std::vector<int64_t> shape, strides;
  nb::object owner;
};

void Release(DLManagedTensor* tensor) {
  const WithGil lock;
  delete static_cast<Lent*>(tensor->manager_ctx);
}

void ReleaseCapsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kName)) return;  // a consumer has taken it
  auto* const tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
  if (tensor->deleter != nullptr) tensor->deleter(tensor);
}

DLManagedTensor& TensorIn(nb::handle capsule) {
  void* const pointer = PyCapsule_GetPointer(capsule.ptr(), kName);
  if (pointer == nullptr) throw nb::python_error();
  return *static_cast<DLManagedTensor*>(pointer);
}

bool IsRowMajor(const DLTensor& tensor) {
  const bool is_empty = std::count(tensor.shape, tensor.shape + tensor.ndim, 0) > 0;
  if (tensor.strides == nullptr || is_empty) return true;
  int64_t stride = 1;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

ONNXTensorElementDataType TypeOf(const DLDataType& dtype, bool is_bool) {
  if (is_bool && dtype.bits == 8) return ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
  for (const TypeRow& row : kTypes) {
    if (row.code == dtype.code && row.bits == dtype.bits && dtype.lanes == 1) return row.type;
  }
  throw nb::type_error("expected a type of elements that ONNX has");
}

// Error: TypeError for memory that only its provider can read.
DLDevice DeviceOf(const Value& value) {
  const OrtMemoryInfo* const memory = MemoryOf(value);
  if (IsOnHost(memory)) return {kCpu, 0};
  if (DeviceName(memory) != "cuda") throw nb::type_error("a tensor on a device lends no memory");
  return {kCuda, Get<int>(Api().MemoryInfoGetId, memory)};
}

const OrtMemoryInfo* MemoryFor(const DLDevice& device) {
  if (device.device_type == kCpu) return CpuMemory();
  return FindMemory(nb::str("cuda"), device.device_id, -1);
}

// Memory that a value can be made over.
struct Span {
  void* begin;
  size_t bytes;
  ONNXTensorElementDataType type;
};

Span SpanOf(const DLTensor& tensor, bool is_bool) {
  if (tensor.device.device_type != kCpu && tensor.device.device_type != kCuda) {
    throw nb::value_error("expected memory of the CPU or of a CUDA device");
  }
  if (!IsRowMajor(tensor)) throw nb::value_error("expected row-major memory");
  const ONNXTensorElementDataType type = TypeOf(tensor.dtype, is_bool);
  size_t bytes = static_cast<size_t>(Describe(type).size_bytes);
  for (int32_t i = 0; i < tensor.ndim; ++i) bytes *= static_cast<size_t>(tensor.shape[i]);
  static char nothing[16];
  void* const begin = static_cast<char*>(tensor.data) + tensor.byte_offset;
  return {tensor.data == nullptr ? nothing : begin, bytes, type};
}

// Gives the memory of a capsule's tensor back, and itself with it. A value calls it on any thread.
struct Returner : OrtAllocator {
  explicit Returner(DLManagedTensor& lent) : OrtAllocator{}, managed(lent) {
    version = ORT_API_VERSION;
    OrtAllocator::Info = [](const OrtAllocator* self) {
      return MemoryFor(static_cast<const Returner*>(self)->managed.dl_tensor.device);
    };
    OrtAllocator::Free = [](OrtAllocator* self, void*) {
      const WithGil lock;
      const std::unique_ptr<Returner> ends(static_cast<Returner*>(self));
      DLManagedTensor& tensor = ends->managed;
      if (tensor.deleter != nullptr) tensor.deleter(&tensor);
    };
  }

  DLManagedTensor& managed;
};

}  // namespace

nb::tuple DlpackDevice(const Value& value) {
  const DLDevice device = DeviceOf(value);
  return nb::make_tuple(device.device_type, device.device_id);
}

nb::object ToDlpack(nb::handle owner, const Value& value) {
  const TensorView view = ViewTensor(value.get());
  const TypeRow* found = nullptr;
  for (const TypeRow& row : kTypes) {
    if (row.type == view.type) found = &row;
  }
  if (found == nullptr) throw nb::type_error("DLPack has no such type of elements");
  const DLDevice device = DeviceOf(value);
  auto lent = std::make_unique<Lent>();
  lent->shape.assign(view.shape, view.shape + view.rank);
  lent->strides.resize(view.rank);
  int64_t stride = 1;
  for (size_t i = view.rank; i-- > 0; stride *= view.shape[i]) lent->strides[i] = stride;
  lent->owner = nb::borrow(owner);
  lent->tensor.dl_tensor = {.data = Get<void*>(Api().GetTensorMutableData, value.get()),
                            .device = device,
                            .ndim = static_cast<int32_t>(view.rank),
                            .dtype = {found->code, found->bits, 1},
                            .shape = lent->shape.data(),
                            .strides = lent->strides.data(),
                            .byte_offset = 0};
  lent->tensor.manager_ctx = lent.get();
  lent->tensor.deleter = &Release;
  PyObject* const capsule = PyCapsule_New(&lent->tensor, kName, &ReleaseCapsule);
  if (capsule == nullptr) throw nb::python_error();
  lent.release();
  return nb::steal(capsule);
}

Value FromDlpack(nb::handle data, bool is_bool) {
  const nb::object capsule =
      PyCapsule_CheckExact(data.ptr()) ? nb::borrow(data) : data.attr("__dlpack__")();
  DLManagedTensor& managed = TensorIn(capsule);
  const DLTensor& tensor = managed.dl_tensor;
  const Span span = SpanOf(tensor, is_bool);
  auto handle =
      Make<ValueHandle>(Api().CreateTensorWithDataAsOrtValue, MemoryFor(tensor.device), span.begin,
                        span.bytes, tensor.shape, static_cast<size_t>(tensor.ndim), span.type);
  Value value(std::move(handle), capsule);
  // We must call the deleter now: the capsule does it, under its first name, when the value is
  // freed.
  const nb::object kept = nb::steal(PyCapsule_New(&managed, kName, &ReleaseCapsule));
  PyCapsule_SetName(capsule.ptr(), kUsedName);
  value.Keep(kept);
  return value;
}

ValueHandle TakeDlpack(nb::handle capsule) {
  DLManagedTensor& managed = TensorIn(capsule);
  const DLTensor& tensor = managed.dl_tensor;
  const Span span = SpanOf(tensor, false);
  auto returner = std::make_unique<Returner>(managed);
  auto handle =
      Make<ValueHandle>(Api().CreateTensorWithDataAndDeleterAsOrtValue, returner.get(), span.begin,
                        span.bytes, tensor.shape, static_cast<size_t>(tensor.ndim), span.type);
  returner.release();  // the value has it
  PyCapsule_SetName(capsule.ptr(), kUsedName);
  return handle;
}

bool IsDlpackOfBytes(nb::handle capsule) {
  const DLDataType& type = TensorIn(capsule).dl_tensor.dtype;
  return type.code == kUInt && type.bits == 8;
}

}  // namespace tenon::python
