#include "values.h"

#include <algorithm>
#include <cstring>

namespace tenon::web {
namespace {

OrtStatus* FillStrings(const Slot& slot, OrtValue* value, size_t count) {
  const auto* const sizes = static_cast<const uint32_t*>(slot.data);
  const char* text = reinterpret_cast<const char*>(sizes + count);
  for (size_t i = 0; i < count; ++i) {
    char* buffer = nullptr;
    TENON_WEB_RETURN_IF_ERROR(
        Api().GetResizedStringTensorElementBuffer(value, i, sizes[i], &buffer));
    std::memcpy(buffer, text, sizes[i]);
    text += sizes[i];
  }
  return nullptr;
}

OrtStatus* PackStrings(const OrtValue* value, size_t count, std::vector<char>& packed) {
  size_t size = 0;
  TENON_WEB_RETURN_IF_ERROR(Api().GetStringTensorDataLength(value, &size));
  packed.resize(count * sizeof(uint32_t) + size);
  std::vector<size_t> offsets(count + 1, size);
  char* const text = packed.data() + count * sizeof(uint32_t);
  TENON_WEB_RETURN_IF_ERROR(Api().GetStringTensorContent(value, text, size, offsets.data(), count));
  for (size_t i = 0; i < count; ++i) {
    const auto length = static_cast<uint32_t>(offsets[i + 1] - offsets[i]);
    std::memcpy(packed.data() + i * sizeof(length), &length, sizeof(length));
  }
  return nullptr;
}

}  // namespace

OrtStatus* ValueOver(const Session& session, const Slot& slot, Owned<OrtValue>& out) {
  int64_t dims[kMostDims];
  std::copy_n(slot.dims, slot.rank, dims);
  const auto type = static_cast<ONNXTensorElementDataType>(slot.type);
  OrtValue* value = nullptr;
  if (type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    TENON_WEB_RETURN_IF_ERROR(Api().CreateTensorWithDataAsOrtValue(
        session.cpu_memory, slot.data, slot.byte_size, dims, slot.rank, type, &value));
    out.reset(value);
    return nullptr;
  }
  TENON_WEB_RETURN_IF_ERROR(
      Api().CreateTensorAsOrtValue(session.allocator, dims, slot.rank, type, &value));
  out.reset(value);
  size_t count = 1;
  for (size_t i = 0; i < slot.rank; ++i) count *= static_cast<size_t>(dims[i]);
  return FillStrings(slot, value, count);
}

OrtStatus* ShowValue(OrtValue* value, const std::string& name, std::vector<char>& packed,
                     Slot& slot) {
  int is_tensor = 0;
  TENON_WEB_RETURN_IF_ERROR(Api().IsTensor(value, &is_tensor));
  if (is_tensor == 0) {
    return Api().CreateStatus(ORT_NOT_IMPLEMENTED, ("output '" + name + "' is no tensor").c_str());
  }
  OrtTensorTypeAndShapeInfo* info = nullptr;
  TENON_WEB_RETURN_IF_ERROR(Api().GetTensorTypeAndShape(value, &info));
  const Owned<OrtTensorTypeAndShapeInfo> owned(info);
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0, count = 0, size = 0;
  int64_t dims[kMostDims];
  TENON_WEB_RETURN_IF_ERROR(Api().GetTensorElementType(info, &type));
  TENON_WEB_RETURN_IF_ERROR(Api().GetDimensionsCount(info, &rank));
  if (rank > kMostDims) {
    return Api().CreateStatus(ORT_NOT_IMPLEMENTED,
                              ("output '" + name + "' has more than 32 dimensions").c_str());
  }
  TENON_WEB_RETURN_IF_ERROR(Api().GetDimensions(info, dims, rank));
  TENON_WEB_RETURN_IF_ERROR(Api().GetTensorShapeElementCount(info, &count));
  slot.type = type;
  slot.rank = static_cast<uint32_t>(rank);
  std::copy_n(dims, rank, slot.dims);
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    TENON_WEB_RETURN_IF_ERROR(PackStrings(value, count, packed));
    slot.data = packed.data();
    size = packed.size();
  } else {
    TENON_WEB_RETURN_IF_ERROR(Api().GetTensorMutableData(value, &slot.data));
    TENON_WEB_RETURN_IF_ERROR(Api().GetTensorSizeInBytes(value, &size));
  }
  slot.byte_size = static_cast<uint32_t>(size);
  return nullptr;
}

}  // namespace tenon::web
