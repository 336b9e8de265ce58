// Partial execution: runs a training graph in stages, which its YieldOps divide. ONNX Runtime has
// this only in Python and C++. OrtApi::GetExperimentalFunction returns the functions by name; they
// have the types below. The rules of onnxruntime_c_api.h hold.
#pragma once

#include <stdbool.h>

#include "onnxruntime_c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// One execution of all stages: the values that earlier stages leave to later ones. It keeps the
// session of its first stage, and may be released after it. Only one thread at a time may use it; a
// second one gets ORT_FAIL.
// It shares what its stages are given: feeds, values of a cache, and tensors that are written in
// place. These may be released after the stage, but not memory of the client that they only refer
// to (CreateTensorWithDataAsOrtValue): later stages read it, so it must stay, unchanged, until the
// last stage has run or the state is released. Memory with a deleter
// (CreateTensorWithDataAndDeleterAsOrtValue) is kept as long as it is needed.
typedef struct TenonPartialState TenonPartialState;
// Values that need not be computed again, by their names in the graph. Not thread-safe. Memory of
// the client that a value refers to must stay until the value is removed, and the states that were
// run with the cache do not need it any more.
typedef struct TenonValueCache TenonValueCache;
// Runs the stages of a session's graph. Thread-safe: several states may be at any stages at once.
typedef struct TenonTrainingAgent TenonTrainingAgent;

#define TENON_CREATE_PARTIAL_STATE "OrtApi_TenonCreatePartialState_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonCreatePartialState)(TenonPartialState** out);
// Frees every value that the state still holds. Null is ignored, here and in the other releases.
#define TENON_RELEASE_PARTIAL_STATE "OrtApi_TenonReleasePartialState_SinceV29"
typedef void(ORT_API_CALL* TenonReleasePartialState)(TenonPartialState* state);

#define TENON_CREATE_VALUE_CACHE "OrtApi_TenonCreateValueCache_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonCreateValueCache)(TenonValueCache** out);
#define TENON_RELEASE_VALUE_CACHE "OrtApi_TenonReleaseValueCache_SinceV29"
typedef void(ORT_API_CALL* TenonReleaseValueCache)(TenonValueCache* cache);
// Shares the value, which may be released afterwards; replaces one of the same name.
#define TENON_VALUE_CACHE_INSERT "OrtApi_TenonValueCacheInsert_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonValueCacheInsert)(TenonValueCache* cache, const char* name,
                                                        const OrtValue* value);
// ORT_INVALID_ARGUMENT, naming the value, if it is not there.
#define TENON_VALUE_CACHE_REMOVE "OrtApi_TenonValueCacheRemove_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonValueCacheRemove)(TenonValueCache* cache, const char* name);
// 1 if the value is there, else 0.
#define TENON_VALUE_CACHE_COUNT "OrtApi_TenonValueCacheCount_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonValueCacheCount)(const TenonValueCache* cache,
                                                       const char* name, size_t* out);
// The names in alphabetical order: an array of `count` texts. The array and each text are to be
// freed with `allocator`.
#define TENON_VALUE_CACHE_KEYS "OrtApi_TenonValueCacheKeys_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonValueCacheKeys)(const TenonValueCache* cache,
                                                      OrtAllocator* allocator, char*** names,
                                                      size_t* count);
#define TENON_VALUE_CACHE_CLEAR "OrtApi_TenonValueCacheClear_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonValueCacheClear)(TenonValueCache* cache);

// Stage i ends before the i-th YieldOp in the order of execution. It returns that node's inputs,
// and the next stage takes that node's outputs. A graph with one YieldOp has two stages: forward
// and backward.
typedef struct TenonTrainingAgentInfo {
  // Inputs of the graph, in the order in which the first stage is fed.
  const char* const* feed_names;
  size_t feed_count;
  // Outputs of the graph, in the order in which the last stage gives them.
  const char* const* fetch_names;
  size_t fetch_count;
  // The memory locations of the fetches: stage by stage, one entry for each fetch; a null entry is
  // the CPU's memory. stage_fetch_counts[i] of them belong to stage i.
  const OrtMemoryInfo* const* fetch_memory;
  const size_t* stage_fetch_counts;
  size_t stage_count;
} TenonTrainingAgentInfo;

// The agent keeps the session, which may be released before it. If the agent holds the last
// reference, its release ends the session with TENON_SESSION_END_AGENT_CLOSED. Errors:
// ORT_INVALID_ARGUMENT if the graph lacks a YieldOp, an input or an output, which the text names,
// or if the counts of fetches do not match the stages.
#define TENON_CREATE_TRAINING_AGENT "OrtApi_TenonCreateTrainingAgent_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonCreateTrainingAgent)(OrtSession* session,
                                                           const TenonTrainingAgentInfo* info,
                                                           TenonTrainingAgent** out);
#define TENON_RELEASE_TRAINING_AGENT "OrtApi_TenonReleaseTrainingAgent_SinceV29"
typedef void(ORT_API_CALL* TenonReleaseTrainingAgent)(TenonTrainingAgent* agent);

// The rank of the process on its machine, 0 at first: for the name of the file that the session's
// entry tenon.memory_profile asks for. Not to be called while stages run.
#define TENON_TRAINING_AGENT_SET_LOCAL_RANK "OrtApi_TenonTrainingAgentSetLocalRank_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonTrainingAgentSetLocalRank)(TenonTrainingAgent* agent,
                                                                 int32_t rank);

// The number of inputs and outputs of a stage.
#define TENON_TRAINING_AGENT_STAGE_COUNTS "OrtApi_TenonTrainingAgentStageCounts_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonTrainingAgentStageCounts)(const TenonTrainingAgent* agent,
                                                                size_t stage, size_t* feeds,
                                                                size_t* fetches);

// Runs the next stage of `state`. `options` and `cache` may be null. A null entry of `fetches` gets
// a new value; a tensor there is written in place. After an error of a node the state can only be
// released.
#define TENON_RUN_STAGE "OrtApi_TenonRunStage_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonRunStage)(const TenonTrainingAgent* agent, size_t stage,
                                                const OrtRunOptions* options,
                                                const OrtValue* const* feeds, size_t feed_count,
                                                OrtValue** fetches, size_t fetch_count,
                                                TenonPartialState* state,
                                                const TenonValueCache* cache);
// The first stage.
#define TENON_RUN_FORWARD "OrtApi_TenonRunForward_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonRunForward)(const TenonTrainingAgent* agent,
                                                  const OrtRunOptions* options,
                                                  const OrtValue* const* feeds, size_t feed_count,
                                                  OrtValue** fetches, size_t fetch_count,
                                                  TenonPartialState* state,
                                                  const TenonValueCache* cache);
// The last stage.
#define TENON_RUN_BACKWARD "OrtApi_TenonRunBackward_SinceV29"
typedef OrtStatus*(ORT_API_CALL* TenonRunBackward)(const TenonTrainingAgent* agent,
                                                   const OrtRunOptions* options,
                                                   const OrtValue* const* feeds, size_t feed_count,
                                                   OrtValue** fetches, size_t fetch_count,
                                                   TenonPartialState* state);

// On-device training (onnxruntime_training_c_api.h): what its table does not tell.
struct OrtCheckpointState;
struct OrtTrainingSession;

// Makes a checkpoint of `count` parameters, whose tensors are copied, for a model that no tool of
// ONNX Runtime has made; `is_trained` says which of them training changes. Released with
// ReleaseCheckpointState.
#define TENON_CREATE_CHECKPOINT "OrtApi_TenonCreateCheckpoint_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonCreateCheckpoint)(const char* const* names,
                                                        const OrtValue* const* values,
                                                        const bool* is_trained, size_t count,
                                                        struct OrtCheckpointState** out);

// Makes a nominal checkpoint: its parameters have names, and get their values from
// OrtTrainingApi::CopyBufferToParameters with those of all parameters, after a session was made
// with it. SaveCheckpoint writes it. Released with ReleaseCheckpointState.
#define TENON_CREATE_NOMINAL_CHECKPOINT "OrtApi_TenonCreateNominalCheckpoint_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonCreateNominalCheckpoint)(const char* const* names,
                                                               const bool* is_trained, size_t count,
                                                               struct OrtCheckpointState** out);

// The names of a checkpoint's parameters, and of its properties, in alphabetical order: an array of
// `count` texts. The array and each text are to be freed with `allocator`.
#define TENON_CHECKPOINT_PARAMETER_NAMES "OrtApi_TenonCheckpointParameterNames_SinceV30"
#define TENON_CHECKPOINT_PROPERTY_NAMES "OrtApi_TenonCheckpointPropertyNames_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonCheckpointNames)(const struct OrtCheckpointState* state,
                                                       OrtAllocator* allocator, char*** names,
                                                       size_t* count);
// Whether training changes the parameter.
#define TENON_PARAMETER_IS_TRAINED "OrtApi_TenonParameterIsTrained_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonParameterIsTrained)(const struct OrtCheckpointState* state,
                                                          const char* name, bool* out);
// A copy of a parameter's gradient, to be freed with ReleaseValue; null if it has none.
#define TENON_TRAINING_SESSION_GRADIENT "OrtApi_TenonTrainingSessionGradient_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonTrainingSessionGradient)(
    const struct OrtTrainingSession* session, const char* parameter, OrtValue** out);

#ifdef __cplusplus
}
#endif
