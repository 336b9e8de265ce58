// Tenon's additions to the C ABI of ONNX Runtime. The rules of onnxruntime_c_api.h hold.
#pragma once

#include "onnxruntime_c_api.h"

// The newest table that this header declares.
#define TENON_API_VERSION 1

// Element types that ONNXTensorElementDataType lacks, as numbers of it.
#define TENON_TENSOR_ELEMENT_DATA_TYPE_FLOAT6E2M3 27
#define TENON_TENSOR_ELEMENT_DATA_TYPE_FLOAT6E3M2 28

// Names for OrtApi::GetExperimentalFunction, with the types of the functions. `json` receives one
// JSON object as null-terminated UTF-8, to be freed with `allocator`.
//
// The state of a session's fallback (session config "tenon.ep_fail_fallback"):
//   state         "off", "armed", "used" or "failed" (the second session could not be made)
//   from, to      names of providers, most preferred first; `to` is empty until a fallback
//   provider, node, op_type, code, message   the failure that caused it
//   rebuild_ms    how long making the second session took
//   replays       runs that were repeated on it
//   not_replayed  [{run_id, reason}]; reasons: alias, binding, no_model, not_rebuilt,
//                 same_providers, stateful, sync_stream, terminate
#define TENON_SESSION_GET_FALLBACK_REPORT "OrtApi_TenonSessionGetFallbackReport_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonSessionGetFallbackReport)(const OrtSession* session,
                                                                OrtAllocator* allocator,
                                                                char** json);

// For a binding that creates a session again after a provider failed: the release of this session
// tells its providers the reason.
#define TENON_SESSION_SET_REPLACED "OrtApi_TenonSessionSetReplaced_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonSessionSetReplaced)(OrtSession* session);

// The elements of the keys and of the values of the map at `index` of a sequence, `count` each.
// They belong to the sequence and must not be changed. Maps whose keys are at the same address have
// the same keys. Strings are at addresses of no other use. Thread-safe.
#define TENON_SEQUENCE_GET_MAP "OrtApi_TenonSequenceGetMap_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonSequenceGetMap)(const OrtValue* sequence, size_t index,
                                                      const void** keys, const void** values,
                                                      size_t* count);

// Sets, or gets, `count` strings of a tensor from `first` on, by their addresses and sizes in
// bytes; they may have zeros in them. What is got belongs to the tensor and is valid until a string
// of it is set. StringTensorGet also takes a sparse tensor, and gets the strings that it stores.
#define TENON_STRING_TENSOR_SET "OrtApi_TenonStringTensorSet_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonStringTensorSet)(OrtValue* value, size_t first,
                                                       const char* const* texts,
                                                       const size_t* sizes, size_t count);
#define TENON_STRING_TENSOR_GET "OrtApi_TenonStringTensorGet_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonStringTensorGet)(const OrtValue* value, size_t first,
                                                       const char** texts, size_t* sizes,
                                                       size_t count);

// The last run with these options, whose run config "tenon.run_report" is "1":
//   run_id, duration_us
//   attempts      1, or 2 if it was repeated after a provider failed
//   fallback      whether the second attempt was on another session
//   reason        why the run was not repeated, or ""
//   nodes         how many the last attempt executed; those of subgraphs count each time
//   providers     [{name, nodes, time_us}]; the time is that of nodes without their subgraphs
//   memory        [{location, device_id, peak_bytes, static_bytes, dynamic_bytes}]: what was
//                 planned ahead, what was taken besides, and the most of both at once
#define TENON_RUN_GET_REPORT "OrtApi_TenonRunGetReport_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonRunGetReport)(const OrtRunOptions* options,
                                                    OrtAllocator* allocator, char** json);

// How far a session's creation or a run has come. Stages of a creation are "read" (bytes of the
// model's file), "optimize" (`total` is 0: its end is not known; called before each pass) and
// "prepare" (nodes whose kernels are made), that of a run is "run" (nodes of the main graph).
// Called often, on the thread that creates or runs. Returns 0 to end the work: with
// ORT_MODEL_LOAD_CANCELED, or with ORT_FAIL.
typedef int(ORT_API_CALL* TenonProgressFunction)(void* user, const char* stage, uint64_t done,
                                                 uint64_t total);
// The function for sessions with these options, or runs with these; null for none. `user` and the
// function must outlive their creation, or run.
#define TENON_SESSION_OPTIONS_SET_PROGRESS "OrtApi_TenonSessionOptionsSetProgress_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonSessionOptionsSetProgress)(OrtSessionOptions* options,
                                                                 TenonProgressFunction function,
                                                                 void* user);
#define TENON_RUN_OPTIONS_SET_PROGRESS "OrtApi_TenonRunOptionsSetProgress_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonRunOptionsSetProgress)(OrtRunOptions* options,
                                                             TenonProgressFunction function,
                                                             void* user);

#ifdef __cplusplus
extern "C" {
#endif

// Why a session ends: see TenonSessionEndInfo.
typedef enum TenonSessionEndReason ORT_ENUM_TYPE {
  TENON_SESSION_END_RELEASED = 0,
  TENON_SESSION_END_INIT_FAILED = 1,
  TENON_SESSION_END_REPLACED_BY_FALLBACK = 2,
  TENON_SESSION_END_AGENT_CLOSED = 3,
} TenonSessionEndReason;

// The information for a provider when its session ends. New fields are only added at the end: read
// the fields that lie within struct_size.
typedef struct TenonSessionEndInfo {
  uint32_t struct_size;
  uint32_t reason;  // TenonSessionEndReason; take unknown ones for RELEASED
  uint32_t session_id;
  uint32_t profiling_active;  // 0 or 1
  uint64_t completed_runs;
} TenonSessionEndInfo;

// The provider's profiler is collected after ReleaseEp, so that its events include that too.
#define TENON_EP_EXTENSION_PROFILER_OUTLIVES_EP (UINT64_C(1) << 0)
// OrtEp::Sync is not called in place of a null OnSessionEnd.
#define TENON_EP_EXTENSION_SKIP_TEARDOWN_SYNC (UINT64_C(1) << 1)

// Optional functions of a plugin provider beyond OrtEp and OrtEpFactory. Owned by the plugin, valid
// until ReleaseEpFactory returns, and read as far as struct_size says.
typedef struct TenonEpExtension {
  uint32_t struct_size;        // sizeof(TenonEpExtension)
  uint32_t extension_version;  // 1
  uint64_t flags;              // TENON_EP_EXTENSION_*
  // The session of this provider ends. Called exactly once for each OrtEp, while all providers of
  // the session are alive and nothing of it has been released. After it there are no runs, but
  // memory, compute states and the provider itself are still released. An error is logged. May be
  // null.
  ORT_API2_STATUS(OnSessionEnd, OrtEp* ep, const TenonSessionEndInfo* info);
} TenonEpExtension;

// Function that a plugin library may export as "TenonGetEpExtension". Called once for each factory,
// between CreateEpFactories and GetSupportedDevices; null in `out` if the factory has none. ONNX
// Runtime does not look for it, so the same library loads there.
typedef OrtStatus*(ORT_API_CALL* TenonGetEpExtensionFn)(const OrtEpFactory* factory,
                                                        uint32_t host_extension_version,
                                                        const TenonEpExtension** out);

// The version of TenonEpExtension that this header declares.
#define TENON_EP_EXTENSION_VERSION 1

// The same for plugins that cannot export functions. They get it by this name from
// OrtApi::GetExperimentalFunction and call it before the factory's GetSupportedDevices returns. It
// overrides the exported function. Error: ORT_FAIL when it is too late.
#define TENON_SET_EP_EXTENSION "OrtEpApi_TenonSetEpExtension_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonSetEpExtension)(OrtEpFactory* factory,
                                                      const TenonEpExtension* extension);

// New versions add slots at the end and change none.
typedef struct TenonApi {
  // Version of the library, as in "0.1.0". Static.
  ORT_API_T(const char*, GetVersionString, void);

  // Describes a model file without creating a session. The sizes of `dim_count` named dimensions
  // may be given; a dimension without a name is called "<input>.<axis>". `json` receives one JSON
  // object as null-terminated UTF-8, to be freed with `allocator`:
  //   ir_version, producer_name, producer_version, domain, model_version, doc_string, graph_name
  //   opsets               [{domain, version}], "" for ai.onnx
  //   metadata             {key: text}
  //   inputs, outputs      [{name, type, shape}]; shape is an array of numbers and texts such as
  //                        "batch" or "2*batch + 1", or null if not even the rank is known
  //   operators            [{domain, op_type, count}], most frequent first, subgraphs included
  //   functions            [{domain, name, nodes}]
  //   nodes                how many there are, subgraphs included
  //   parameters           {tensors, elements, bytes} of the initializers
  //   activations          {peak_bytes, unknown_values, assumed_dims}: an estimate of the memory
  //                        for values between nodes, without what sharing and fusion save;
  //                        dimensions in assumed_dims were counted as 1, unknown values not at all
  //   problem              why the model cannot be run, or null
  // Fails if the file cannot be read as a model at all.
  ORT_API_T(OrtStatus*, DescribeModel, const ORTCHAR_T* model_path, const char* const* dim_names,
            const int64_t* dim_sizes, size_t dim_count, OrtAllocator* allocator, char** json);
} TenonApi;

// The table of the given version, null if this library is older than that. Static.
ORT_EXPORT const TenonApi* ORT_API_CALL TenonGetApi(uint32_t version) NO_EXCEPTION;

#ifdef __cplusplus
}
#endif
