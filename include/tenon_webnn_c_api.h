// Runs of sessions whose model partly runs on WebNN. The caller builds and dispatches the WebNN
// graphs: a run returns to it at each partition. Only builds for WebAssembly have the provider
// "WebNN". OrtApi::GetExperimentalFunction returns the functions by name; they have the types
// below. The rules of onnxruntime_c_api.h hold.
//
// The provider is appended with SessionOptionsAppendExecutionProvider under the name "WebNN" and
// with the options
//   limits               the JSON text of MLContext.opSupportLimits()
//   excluded_partitions  names of first nodes, one per line; these partitions stay on the CPU
#pragma once

#include "onnxruntime_c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// The runs of a session, one at a time. Only one thread at a time may use it.
typedef struct TenonBarrierRun TenonBarrierRun;

// A row-major tensor in the CPU's memory. A type of 0 means that there is none.
typedef struct TenonTensorView {
  ONNXTensorElementDataType type;
  size_t rank;
  const int64_t* dims;
  void* data;  // null: the tensor has no memory here
  size_t byte_size;
} TenonTensorView;

// A feed for an input of the session, or the memory for an output.
typedef struct TenonRunSlot {
  int is_used;            // whether the run has this feed, or fetches this output
  const OrtValue* value;  // if it is not null, `tensor` is ignored
  // A feed has no memory if only partitions read its elements. An output has type 0, or memory to
  // write into, of the output's type and shape.
  TenonTensorView tensor;
} TenonRunSlot;

// The object keeps the session, which may be released before it. `*out` is null for a session
// without the provider. ORT_INVALID_ARGUMENT for parallel execution mode and for a graph with
// YieldOps.
#define TENON_CREATE_BARRIER_RUN "OrtApi_TenonCreateBarrierRun_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonCreateBarrierRun)(OrtSession* session, TenonBarrierRun** out);
// Ends a run that has not ended. Null is ignored.
#define TENON_RELEASE_BARRIER_RUN "OrtApi_TenonReleaseBarrierRun_SinceV30"
typedef void(ORT_API_CALL* TenonReleaseBarrierRun)(TenonBarrierRun* run);

// The names, inputs and outputs of the partitions, as JSON (docs/web.md); lives as long as `run`.
#define TENON_BARRIER_RUN_DESCRIBE "OrtApi_TenonBarrierRunDescribe_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunDescribe)(const TenonBarrierRun* run,
                                                          const char** json);
// The number of partitions.
#define TENON_BARRIER_RUN_PARTITIONS "OrtApi_TenonBarrierRunPartitions_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunPartitions)(const TenonBarrierRun* run,
                                                            size_t* count);
// The number of inputs and outputs of a partition.
#define TENON_BARRIER_RUN_COUNTS "OrtApi_TenonBarrierRunCounts_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunCounts)(const TenonBarrierRun* run,
                                                        size_t partition, size_t* inputs,
                                                        size_t* outputs);
// The builder program of a partition, as JSON (docs/web.md), with addresses of constants. It is
// available at any time for a static partition, and while the run stands at it for another one. It
// lives until constants are released, or until the end of the run if the partition is not static.
#define TENON_BARRIER_RUN_PROGRAM "OrtApi_TenonBarrierRunProgram_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunProgram)(TenonBarrierRun* run, size_t partition,
                                                         const char** json);
// Releases the constants and programs of static partitions, which are not available afterwards.
#define TENON_BARRIER_RUN_RELEASE_CONSTANTS "OrtApi_TenonBarrierRunReleaseConstants_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunReleaseConstants)(TenonBarrierRun* run);

// Begins a run with one slot per input, and one per output, of the session. The objects that the
// slots point to, and `options`, which may be null, must live until the end of the run. Outputs
// that partitions make are not fetched here. ORT_FAIL for missing feeds; ORT_INVALID_ARGUMENT for a
// feed of another type or shape, and for a feed without memory that nodes on the CPU read.
#define TENON_BARRIER_RUN_BEGIN "OrtApi_TenonBarrierRunBegin_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunBegin)(TenonBarrierRun* run,
                                                       const OrtRunOptions* options,
                                                       const TenonRunSlot* inputs,
                                                       const TenonRunSlot* outputs);
// Runs to the next partition and sets `*partition` to its number, or runs to the end and sets it to
// SIZE_MAX. After a failure the run has ended.
#define TENON_BARRIER_RUN_NEXT "OrtApi_TenonBarrierRunNext_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunNext)(TenonBarrierRun* run, size_t* partition);
// At a partition: its i-th input, with memory if nodes on the CPU made it, and its i-th output,
// with memory if nodes on the CPU read it. That memory must be written before the next call of
// Next.
#define TENON_BARRIER_RUN_INPUT "OrtApi_TenonBarrierRunInput_SinceV30"
#define TENON_BARRIER_RUN_OUTPUT "OrtApi_TenonBarrierRunOutput_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunTensor)(const TenonBarrierRun* run, size_t i,
                                                        TenonTensorView* tensor);
// At the end of a run: the i-th output of the session, if it was fetched. If it is not a tensor, or
// is a tensor of strings, `tensor` becomes empty. `*value` is a new value that shares its memory;
// `value` may be null.
#define TENON_BARRIER_RUN_FETCH "OrtApi_TenonBarrierRunFetch_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunFetch)(const TenonBarrierRun* run, size_t i,
                                                       TenonTensorView* tensor, OrtValue** value);
// Releases everything of the run, wherever it stands.
#define TENON_BARRIER_RUN_END "OrtApi_TenonBarrierRunEnd_SinceV30"
typedef OrtStatus*(ORT_API_CALL* TenonBarrierRunEnd)(TenonBarrierRun* run);

#ifdef __cplusplus
}
#endif
