// Functions beyond the tables, which clients ask for by name.
#include "capi/boundary/experimental.h"

#include <string_view>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/ep_extension.h"
#include "capi/options/built_in_providers.h"
#include "capi/options/run_options.h"
#include "capi/options/session_options.h"
#include "capi/session/reports.h"
#include "capi/session/session_handle.h"
#include "capi/training/partial_execution.h"
#include "capi/training/training_queries.h"
#include "capi/value/allocator.h"
#include "capi/value/string_tensor.h"
#include "capi/value/tensor_arguments.h"
#include "tenon_c_api.h"

namespace tenon::capi {
namespace {

OrtStatus* SessionSetReplaced(OrtSession* session) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckReady(session));
    session->session->current().set_end_reason(SessionEndReason::kReplacedByFallback);
    return OkStatus();
  });
}

OrtStatus* SequenceGetMap(const OrtValue* sequence, size_t index, const void** keys,
                          const void** values, size_t* count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(sequence);
    TENON_RETURN_IF_NULL(keys);
    TENON_RETURN_IF_NULL(values);
    TENON_RETURN_IF_NULL(count);
    const Value& object = *Unwrap(sequence);
    if (object.kind() != Value::Kind::kSequence) {
      return InvalidArgument("expected a sequence, got a {}", ValueKindName(object.kind()));
    }
    const std::vector<Value>& elements = object.sequence().elements;
    TENON_RETURN_IF_ERROR(CheckIndex(index, elements.size(), "elements"));
    if (elements[index].kind() != Value::Kind::kMap) {
      return InvalidArgument("element {}: expected a map, got a {}", index,
                             ValueKindName(elements[index].kind()));
    }
    const Map& map = elements[index].map();
    *keys = map.keys.raw();
    *values = map.values.raw();
    *count = static_cast<size_t>(map.keys.size());
    return OkStatus();
  });
}

OrtStatus* SessionOptionsSetProgress(OrtSessionOptions* options, TenonProgressFunction function,
                                     void* user) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    options->session.progress = {function, user};
    return OkStatus();
  });
}

OrtStatus* RunOptionsSetProgress(OrtRunOptions* options, TenonProgressFunction function,
                                 void* user) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    options->run.progress = {function, user};
    return OkStatus();
  });
}

}  // namespace

OrtStatus* OrtApi_ExperimentalApiTest(int64_t* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    *out = 12345;
    return OkStatus();
  });
}

OrtExperimentalFnPtr GetExperimentalFunction(const char* name) noexcept {
  if (name == nullptr) return nullptr;
  const std::string_view wanted = name;
  if (wanted == TENON_SET_EP_EXTENSION) return Untyped(&SetEpExtension);
  if (wanted == TENON_SEQUENCE_GET_MAP) return Untyped(&SequenceGetMap);
  if (wanted == TENON_STRING_TENSOR_SET) return Untyped(&StringTensorSet);
  if (wanted == TENON_STRING_TENSOR_GET) return Untyped(&StringTensorGet);
  if (wanted == TENON_SESSION_SET_REPLACED) return Untyped(&SessionSetReplaced);
  if (wanted == TENON_SESSION_OPTIONS_SET_PROGRESS) return Untyped(&SessionOptionsSetProgress);
  if (wanted == TENON_RUN_OPTIONS_SET_PROGRESS) return Untyped(&RunOptionsSetProgress);
#define ORT_EXPERIMENTAL_API(since, type, name, ...) \
  if (wanted == #name "_SinceV" #since) return Untyped(&name);
#include <onnxruntime_experimental_c_api.inc>
#undef ORT_EXPERIMENTAL_API
  for (const auto find :
       {FindReportFunction, FindPartialExecutionFunction, FindTrainingQuery, FindBuiltInFunction}) {
    if (const OrtExperimentalFnPtr found = find(wanted)) return found;
  }
  return nullptr;
}

}  // namespace tenon::capi
