#include "memory.h"

namespace tenon::python {
namespace {

OrtMemoryInfoDeviceType KindOf(const OrtMemoryInfo* memory) {
  OrtMemoryInfoDeviceType kind{};
  Api().MemoryInfoGetDeviceType(memory, &kind);
  return kind;
}

// PCI numbers of vendors whose devices have a name of their own.
constexpr uint32_t kNvidia = 0x10DE, kMicrosoft = 0x1414;

}  // namespace

const OrtMemoryInfo* FindMemory(nb::handle device, int number, int vendor) {
  std::string name;
  if (nb::try_cast(device, name) && (name == "cpu" || name == "CPU")) return CpuMemory();
  // Kind, number and vendor.
  const nb::object place =
      nb::module_::import_("tenon._devices").attr("place_of")(device, number, vendor);
  const auto kind = nb::cast<int>(place[0]), id = nb::cast<int>(place[1]);
  const auto of_vendor = nb::cast<int64_t>(place[2]);
  if (kind == OrtMemoryInfoDeviceType_CPU) return CpuMemory();
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  Check(Api().GetEpDevices(Environment().get(), &devices, &count));
  for (size_t i = 0; i < count; ++i) {
    const OrtMemoryInfo* const memory =
        Api().EpDevice_MemoryInfo(devices[i], OrtDeviceMemoryType_DEFAULT);
    if (memory == nullptr || KindOf(memory) != kind) continue;
    if (Get<int>(Api().MemoryInfoGetId, memory) != id) continue;
    if (of_vendor < 0 || of_vendor == int64_t{Api().MemoryInfoGetVendorId(memory)}) return memory;
  }
  const nb::object text = nb::str("no provider of this process has memory on the device {} {}")
                              .format(nb::handle(device), id);
  Raise(PyExc_RuntimeError, nb::cast<std::string>(text));
}

OrtAllocator* AllocatorIn(const OrtMemoryInfo* memory) {
  if (memory == CpuMemory()) return DefaultAllocator();
  OrtAllocator* const found =
      Get<OrtAllocator*>(Api().GetSharedAllocator, Environment().get(), memory);
  if (found != nullptr) return found;
  const auto* name = Get<const char*>(Api().MemoryInfoGetName, memory);
  Raise(PyExc_RuntimeError, std::string("No shared allocator found for the memory '") + name + "'");
}

const OrtMemoryInfo* MemoryOf(const Value& value) {
  if (Get<ONNXType>(Api().GetValueType, value.get()) != ONNX_TYPE_TENSOR) return CpuMemory();
  return Get<const OrtMemoryInfo*>(Api().GetTensorMemoryInfo, value.get());
}

bool IsOnHost(const OrtMemoryInfo* memory) {
  return KindOf(memory) == OrtMemoryInfoDeviceType_CPU ||
         Api().MemoryInfoGetDeviceMemType(memory) == OrtDeviceMemoryType_HOST_ACCESSIBLE;
}

std::string DeviceName(const OrtMemoryInfo* memory) {
  const uint32_t vendor = Api().MemoryInfoGetVendorId(memory);
  switch (KindOf(memory)) {
    case OrtMemoryInfoDeviceType_CPU:
      return "cpu";
    case OrtMemoryInfoDeviceType_GPU:
      return vendor == kNvidia ? "cuda" : vendor == kMicrosoft ? "dml" : "gpu";
    case OrtMemoryInfoDeviceType_FPGA:
      return "fpga";
    default:
      return "npu";
  }
}

void CopyTensor(const Value& from, Value& to) {
  const OrtValue* const sources[] = {from.get()};
  OrtValue* const targets[] = {to.get()};
  Check(Api().CopyTensors(Environment().get(), sources, targets, nullptr, 1));
}

Value CopyTo(const Value& value, OrtAllocator* allocator) {
  const TensorView view = ViewTensor(value.get());
  Value copy(
      Make<ValueHandle>(Api().CreateTensorAsOrtValue, allocator, view.shape, view.rank, view.type));
  CopyTensor(value, copy);
  return copy;
}

}  // namespace tenon::python
