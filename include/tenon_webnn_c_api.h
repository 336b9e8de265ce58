// Runs of sessions whose model is partly run by WebNN. Their caller builds and dispatches the
// graphs of WebNN: a run returns to it at each partition. For builds with the provider "WebNN",
// which are those for WebAssembly. The functions are asked for by name from
// OrtApi::GetExperimentalFunction and have the types below. The rules of onnxruntime_c_api.h hold.
//
// The provider is appended with SessionOptionsAppendExecutionProvider under the name "WebNN" and
// with the options
//   limits               the JSON text of MLContext.opSupportLimits()
//   excluded_partitions  names of first nodes, one a line: these partitions stay on the CPU
#pragma once

#include "onnxruntime_c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// The runs of a session, one at a time. One thread at a time may use it.
typedef struct TenonBarrierRun TenonBarrierRun;

// A tensor in the CPU's memory, row-major. A type of 0 stands for none.
typedef struct TenonTensorView {
  ONNXTensorElementDataType type;
  size_t rank;
  const int64_t* dims;
  void* data;  // null: the tensor has no memory here
  size_t byte_size;
} TenonTensorView;

// What a run is given for an input of the session, or where an output is to go.
typedef struct TenonRunSlot {
  int is_used;            // whether the run has this feed, or fetches this output
  const OrtValue* value;  // where it is not null, `tensor` is not looked at
  // Of a feed: without memory where partitions alone read the elements. Of an output: type 0, or
  // memory to write into, of the output's type and shape.
  TenonTensorView tensor;
} TenonRunSlot;

// The object keeps the session, which may be released before it. `*out` is null for a session
// without the provider. ORT_INVALID_ARGUMENT for parallel execution mode and for a graph with
// YieldOps.
#define TENON_CREATE_BARRIER_RUN "OrtApi_TenonCreateBarrierRun_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonCreateBarrierRun)(OrtSession* session, TenonBarrierRun** out);
// Ends a run that is under way. Null is ignored.
#define TENON_RELEASE_BARRIER_RUN "OrtApi_TenonReleaseBarrierRun_SinceV30"
typedef void(ORT_API_CALL* TenonReleaseBarrierRun)(TenonBarrierRun* run);

// What the partitions are called, read and make, as JSON (docs/web.md); lives as long as `run`.
#define TENON_BARRIER_RUN_DESCRIBE "OrtApi_TenonBarrierRunDescribe_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunDescribe)(const TenonBarrierRun* run,
                                                          const char** json);
// How many partitions there are.
#define TENON_BARRIER_RUN_PARTITIONS "OrtApi_TenonBarrierRunPartitions_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunPartitions)(const TenonBarrierRun* run,
                                                            size_t* count);
// How many inputs and outputs a partition has.
#define TENON_BARRIER_RUN_COUNTS "OrtApi_TenonBarrierRunCounts_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunCounts)(const TenonBarrierRun* run,
                                                        size_t partition, size_t* inputs,
                                                        size_t* outputs);
// The builder program of a partition, as JSON (docs/web.md), whose addresses point to constants. Of
// a static partition at any time, of another one while the run stands at it. Lives until constants
// are released, of another one until the end of the run.
#define TENON_BARRIER_RUN_PROGRAM "OrtApi_TenonBarrierRunProgram_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunProgram)(TenonBarrierRun* run, size_t partition,
                                                         const char** json);
// Lets go of the constants and programs of static partitions: no more of them can be asked for.
#define TENON_BARRIER_RUN_RELEASE_CONSTANTS "OrtApi_TenonBarrierRunReleaseConstants_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunReleaseConstants)(TenonBarrierRun* run);

// Begins a run: one slot per input, and one per output, of the session. What the slots point to
// stays until the end of the run, and so do `options`, which may be null. Outputs that partitions
// make are not fetched here. ORT_FAIL for missing feeds; ORT_INVALID_ARGUMENT for a feed of another
// type or shape, and for one without memory that nodes on the CPU read.
#define TENON_BARRIER_RUN_BEGIN "OrtApi_TenonBarrierRunBegin_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunBegin)(TenonBarrierRun* run,
                                                       const OrtRunOptions* options,
                                                       const TenonRunSlot* inputs,
                                                       const TenonRunSlot* outputs);
// Runs to the next partition, of which `*partition` becomes the number, or to the end: SIZE_MAX.
// After a failure the run has ended.
#define TENON_BARRIER_RUN_NEXT "OrtApi_TenonBarrierRunNext_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunNext)(TenonBarrierRun* run, size_t* partition);
// At a partition: its i-th input, with memory where nodes on the CPU made it, and its i-th output,
// with memory that is to be written before the next call of Next where nodes on the CPU read it.
#define TENON_BARRIER_RUN_INPUT "OrtApi_TenonBarrierRunInput_SinceV30"
#define TENON_BARRIER_RUN_OUTPUT "OrtApi_TenonBarrierRunOutput_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunTensor)(const TenonBarrierRun* run, size_t i,
                                                        TenonTensorView* tensor);
// At the end of a run: the i-th output of the session, if it was fetched. Of one that is no tensor,
// or a tensor of strings, `tensor` becomes nothing. `*value` is a new value that shares its memory;
// `value` may be null.
#define TENON_BARRIER_RUN_FETCH "OrtApi_TenonBarrierRunFetch_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunFetch)(const TenonBarrierRun* run, size_t i,
                                                       TenonTensorView* tensor, OrtValue** value);
// Lets go of everything of the run, wherever it stands.
#define TENON_BARRIER_RUN_END "OrtApi_TenonBarrierRunEnd_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunEnd)(TenonBarrierRun* run);

#ifdef __cplusplus
}
#endif
