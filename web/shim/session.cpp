#include "session.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "json.h"

namespace tenon::web {
namespace {

using GetCount = decltype(OrtApi::SessionGetInputCount);
using GetName = decltype(OrtApi::SessionGetInputName);
using GetTypeInfo = decltype(OrtApi::SessionGetInputTypeInfo);

OrtStatus* DescribeTensor(const OrtTensorTypeAndShapeInfo* info, std::string& json) {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  TENON_WEB_RETURN_IF_ERROR(Api().GetTensorElementType(info, &type));
  TENON_WEB_RETURN_IF_ERROR(Api().GetDimensionsCount(info, &rank));
  std::vector<int64_t> dims(rank);
  std::vector<const char*> symbols(rank);
  TENON_WEB_RETURN_IF_ERROR(Api().GetDimensions(info, dims.data(), rank));
  TENON_WEB_RETURN_IF_ERROR(Api().GetSymbolicDimensions(info, symbols.data(), rank));
  json += ",\"type\":" + std::to_string(static_cast<int>(type)) + ",\"shape\":[";
  for (size_t i = 0; i < rank; ++i) {
    if (i > 0) json += ',';
    json += dims[i] >= 0 ? std::to_string(dims[i]) : Quoted(symbols[i]);
  }
  json += ']';
  return nullptr;
}

// Appends [{name, isTensor, type, shape}]. Only tensors have the last two: the type is its number,
// and a dimension is its size or its name.
OrtStatus* ReadSide(const Session& session, GetCount get_count, GetName get_name,
                    GetTypeInfo get_type_info, Side& side, std::string& json) {
  size_t count = 0;
  TENON_WEB_RETURN_IF_ERROR(get_count(session.handle.get(), &count));
  side.slots.resize(count);
  side.values.resize(count);
  json += '[';
  for (size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    OrtTypeInfo* type_info = nullptr;
    const OrtTensorTypeAndShapeInfo* tensor = nullptr;
    TENON_WEB_RETURN_IF_ERROR(get_name(session.handle.get(), i, session.allocator, &name));
    side.names.push_back(TakeText(name));
    TENON_WEB_RETURN_IF_ERROR(get_type_info(session.handle.get(), i, &type_info));
    const Owned<OrtTypeInfo> owned(type_info);
    TENON_WEB_RETURN_IF_ERROR(Api().CastTypeInfoToTensorInfo(type_info, &tensor));
    if (i > 0) json += ',';
    json += "{\"name\":" + Quoted(side.names.back());
    json += tensor == nullptr ? ",\"isTensor\":false" : ",\"isTensor\":true";
    if (tensor != nullptr) TENON_WEB_RETURN_IF_ERROR(DescribeTensor(tensor, json));
    json += '}';
  }
  json += ']';
  return nullptr;
}

// For a session with WebNN: appends its partitions as further members, and makes slots for them.
OrtStatus* OpenPartitions(Session& session, std::string& json) {
  TenonBarrierRun* run = nullptr;
  TENON_WEB_RETURN_IF_ERROR(
      Function<TenonCreateBarrierRun>(TENON_CREATE_BARRIER_RUN)(session.handle.get(), &run));
  if (run == nullptr) return nullptr;
  session.barrier_run.reset(run);
  const char* description = nullptr;
  size_t count = 0;
  TENON_WEB_RETURN_IF_ERROR(
      Function<TenonBarrierRunDescribe>(TENON_BARRIER_RUN_DESCRIBE)(run, &description));
  json += ',';
  json += std::string_view(description + 1, std::strlen(description) - 2);
  TENON_WEB_RETURN_IF_ERROR(
      Function<TenonBarrierRunPartitions>(TENON_BARRIER_RUN_PARTITIONS)(run, &count));
  Partitions& partitions = session.partitions;
  partitions.slots.resize(2 * count);
  for (size_t i = 0; i < count; ++i) {
    size_t inputs = 0, outputs = 0;
    TENON_WEB_RETURN_IF_ERROR(
        Function<TenonBarrierRunCounts>(TENON_BARRIER_RUN_COUNTS)(run, i, &inputs, &outputs));
    std::vector<Slot>* const slots = &partitions.slots[2 * i];
    slots[0].resize(inputs);
    slots[1].resize(outputs);
    partitions.barriers.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(inputs),
                                   static_cast<uint32_t>(outputs), slots[0].data(),
                                   slots[1].data()});
  }
  partitions.inputs.resize(session.inputs.names.size());
  partitions.outputs.resize(session.outputs.names.size());
  partitions.dims.resize((partitions.inputs.size() + partitions.outputs.size()) * kMostDims);
  return nullptr;
}

OrtStatus* Open(const void* model, size_t size, const OrtSessionOptions* options,
                Session& session) {
  OrtSession* handle = nullptr;
  TENON_WEB_RETURN_IF_ERROR(Api().CreateSessionFromArray(Env(), model, size, options, &handle));
  session.handle.reset(handle);
  TENON_WEB_RETURN_IF_ERROR(Api().GetAllocatorWithDefaultOptions(&session.allocator));
  TENON_WEB_RETURN_IF_ERROR(
      Api().CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &session.cpu_memory));
  std::string& json = session.description;
  json = "{\"inputs\":";
  TENON_WEB_RETURN_IF_ERROR(ReadSide(session, Api().SessionGetInputCount, Api().SessionGetInputName,
                                     Api().SessionGetInputTypeInfo, session.inputs, json));
  json += ",\"outputs\":";
  TENON_WEB_RETURN_IF_ERROR(ReadSide(session, Api().SessionGetOutputCount,
                                     Api().SessionGetOutputName, Api().SessionGetOutputTypeInfo,
                                     session.outputs, json));
  session.packed.resize(session.outputs.names.size());
  TENON_WEB_RETURN_IF_ERROR(OpenPartitions(session, json));
  json += '}';
  return nullptr;
}

}  // namespace
}  // namespace tenon::web

using namespace tenon::web;

// The session has its own copy of the model's constants, unless the options say that the bytes
// outlive it. `*out` is null after a failure.
TENON_WEB_EXPORT(tenon_session_create)
int tenon_session_create(const void* model, size_t size, const OrtSessionOptions* options,
                         Session** out) {
  auto session = std::make_unique<Session>();
  const int code = Outcome(Open(model, size, options, *session));
  *out = code == ORT_OK ? session.release() : nullptr;
  return code;
}

// Takes a block of tenon_allocate, which is freed after everything else of the session.
TENON_WEB_EXPORT(tenon_session_keep) void tenon_session_keep(Session* session, void* memory) {
  session->kept.emplace_back(memory);
}

TENON_WEB_EXPORT(tenon_session_release) void tenon_session_release(Session* session) {
  delete session;
}

// {inputs, outputs}, and with WebNN {partitions, hostFeeds} too, as JSON, valid as long as the
// session.
TENON_WEB_EXPORT(tenon_session_describe) const char* tenon_session_describe(Session* session) {
  return session->description.c_str();
}

// The slots of the inputs and of the outputs, in the order of the description. Their address does
// not change.
TENON_WEB_EXPORT(tenon_session_inputs) Slot* tenon_session_inputs(Session* session) {
  return session->inputs.slots.data();
}
TENON_WEB_EXPORT(tenon_session_outputs) Slot* tenon_session_outputs(Session* session) {
  return session->outputs.slots.data();
}

// Ends the session's trace and writes it to the standard output.
TENON_WEB_EXPORT(tenon_session_end_profiling) int tenon_session_end_profiling(Session* session) {
  char* path = nullptr;
  const int code =
      Outcome(Api().SessionEndProfiling(session->handle.get(), session->allocator, &path));
  if (code == ORT_OK) (void)TakeText(path);
  return code;
}
