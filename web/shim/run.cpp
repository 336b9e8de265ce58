// Runs of a session: the slots of its inputs become values, those of its outputs come from values.
#include <algorithm>
#include <cstring>

#include "session.h"

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

// A value over the memory of a slot; one of strings has a copy.
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

// Describes a value that a run made.
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

OrtStatus* Run(Session& session, const OrtRunOptions* options) {
  Side& inputs = session.inputs;
  Side& outputs = session.outputs;
  std::vector<const char*> feed_names, fetch_names;
  std::vector<const OrtValue*> feeds;
  std::vector<OrtValue*> fetches;
  std::vector<size_t> fetched;
  for (size_t i = 0; i < inputs.slots.size(); ++i) {
    if (!inputs.slots[i].is_used) continue;
    TENON_WEB_RETURN_IF_ERROR(ValueOver(session, inputs.slots[i], inputs.values[i]));
    feed_names.push_back(inputs.names[i].c_str());
    feeds.push_back(inputs.values[i].get());
  }
  for (size_t i = 0; i < outputs.slots.size(); ++i) {
    if (!outputs.slots[i].is_used) continue;
    if (outputs.slots[i].data != nullptr) {
      TENON_WEB_RETURN_IF_ERROR(ValueOver(session, outputs.slots[i], outputs.values[i]));
    }
    fetch_names.push_back(outputs.names[i].c_str());
    fetches.push_back(outputs.values[i].get());
    fetched.push_back(i);
  }
  OrtStatus* const outcome =
      Api().Run(session.handle.get(), options, feed_names.data(), feeds.data(), feeds.size(),
                fetch_names.data(), fetch_names.size(), fetches.data());
  for (size_t i = 0; i < fetched.size(); ++i) {
    Owned<OrtValue>& value = outputs.values[fetched[i]];
    if (value == nullptr) value.reset(fetches[i]);
  }
  TENON_WEB_RETURN_IF_ERROR(outcome);
  for (const size_t i : fetched) {
    TENON_WEB_RETURN_IF_ERROR(
        ShowValue(outputs.values[i].get(), outputs.names[i], session.packed[i], outputs.slots[i]));
  }
  return nullptr;
}

}  // namespace
}  // namespace tenon::web

using namespace tenon::web;

// Runs the session with the feeds and for the outputs whose slots say that they are used; `options`
// may be null. What the slots of outputs then point to is there until tenon_session_finish_run,
// which also follows a failure.
TENON_WEB_EXPORT(tenon_session_run)
int tenon_session_run(Session* session, const OrtRunOptions* options) {
  return Outcome(Run(*session, options));
}

// Lets go of the values of the last run, and clears the slots.
TENON_WEB_EXPORT(tenon_session_finish_run) void tenon_session_finish_run(Session* session) {
  for (Side* const side : {&session->inputs, &session->outputs}) {
    for (auto& value : side->values) value.reset();
    std::fill(side->slots.begin(), side->slots.end(), Slot());
  }
  for (auto& strings : session->packed) strings = {};
}
