#include "barrier.h"

#include <algorithm>
#include <limits>

#include "values.h"

namespace tenon::web {
namespace {

// For a session without WebNN.
OrtStatus* CheckPartitions(const Session& session) {
  if (session.barrier_run != nullptr) return nullptr;
  return Api().CreateStatus(ORT_INVALID_ARGUMENT, "the session has no provider WebNN");
}

// The core's view of a slot. Strings become a value; outputs of strings are new values.
OrtStatus* ReadSlot(const Session& session, const Slot& slot, bool is_output,
                    Owned<OrtValue>& strings, int64_t* dims, TenonRunSlot& out) {
  out = {};
  out.is_used = static_cast<int>(slot.is_used != 0);
  if (slot.is_used == 0 || (is_output && slot.data == nullptr)) return nullptr;
  if (slot.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    TENON_WEB_RETURN_IF_ERROR(ValueOver(session, slot, strings));
    out.value = strings.get();
    return nullptr;
  }
  const size_t rank = std::min<size_t>(slot.rank, kMostDims);
  std::copy_n(slot.dims, rank, dims);
  out.tensor = {static_cast<ONNXTensorElementDataType>(slot.type), rank, dims, slot.data,
                slot.byte_size};
  return nullptr;
}

OrtStatus* Begin(Session& session, const OrtRunOptions* options) {
  TENON_WEB_RETURN_IF_ERROR(CheckPartitions(session));
  static const auto begin = Function<TenonBarrierRunBegin>(TENON_BARRIER_RUN_BEGIN);
  Partitions& partitions = session.partitions;
  int64_t* dims = partitions.dims.data();
  const auto read = [&](Side& side, bool is_output, std::vector<TenonRunSlot>& into) -> OrtStatus* {
    for (size_t i = 0; i < into.size(); ++i, dims += kMostDims) {
      TENON_WEB_RETURN_IF_ERROR(
          ReadSlot(session, side.slots[i], is_output, side.values[i], dims, into[i]));
    }
    return nullptr;
  };
  TENON_WEB_RETURN_IF_ERROR(read(session.inputs, false, partitions.inputs));
  TENON_WEB_RETURN_IF_ERROR(read(session.outputs, true, partitions.outputs));
  return begin(session.barrier_run.get(), options, partitions.inputs.data(),
               partitions.outputs.data());
}

void Show(const TenonTensorView& tensor, Slot& slot) {
  slot.type = tensor.type;
  slot.rank = static_cast<uint32_t>(tensor.rank);
  slot.byte_size = static_cast<uint32_t>(tensor.byte_size);
  slot.data = tensor.data;
  std::copy_n(tensor.dims, std::min(tensor.rank, kMostDims), slot.dims);
}

OrtStatus* ShowBarrier(Session& session, size_t partition) {
  static const auto input = Function<TenonBarrierRunTensor>(TENON_BARRIER_RUN_INPUT);
  static const auto output = Function<TenonBarrierRunTensor>(TENON_BARRIER_RUN_OUTPUT);
  const Barrier& barrier = session.partitions.barriers[partition];
  TenonTensorView tensor;
  for (uint32_t i = 0; i < barrier.input_count; ++i) {
    TENON_WEB_RETURN_IF_ERROR(input(session.barrier_run.get(), i, &tensor));
    Show(tensor, barrier.inputs[i]);
  }
  for (uint32_t i = 0; i < barrier.output_count; ++i) {
    TENON_WEB_RETURN_IF_ERROR(output(session.barrier_run.get(), i, &tensor));
    Show(tensor, barrier.outputs[i]);
  }
  session.partitions.current = &barrier;
  return nullptr;
}

// Outputs of strings, and values that are not tensors, are handled as in other runs.
OrtStatus* ShowFetches(Session& session) {
  static const auto fetch = Function<TenonBarrierRunFetch>(TENON_BARRIER_RUN_FETCH);
  Side& outputs = session.outputs;
  for (size_t i = 0; i < outputs.slots.size(); ++i) {
    Slot& slot = outputs.slots[i];
    if (slot.is_used == 0) continue;
    TenonTensorView tensor;
    TENON_WEB_RETURN_IF_ERROR(fetch(session.barrier_run.get(), i, &tensor, nullptr));
    if (tensor.type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) {
      Show(tensor, slot);
      continue;
    }
    OrtValue* value = nullptr;
    TENON_WEB_RETURN_IF_ERROR(fetch(session.barrier_run.get(), i, &tensor, &value));
    outputs.values[i].reset(value);
    if (value == nullptr) continue;
    TENON_WEB_RETURN_IF_ERROR(ShowValue(value, outputs.names[i], session.packed[i], slot));
  }
  return nullptr;
}

OrtStatus* Next(Session& session) {
  TENON_WEB_RETURN_IF_ERROR(CheckPartitions(session));
  static const auto next = Function<TenonBarrierRunNext>(TENON_BARRIER_RUN_NEXT);
  session.partitions.current = nullptr;
  size_t partition = 0;
  TENON_WEB_RETURN_IF_ERROR(next(session.barrier_run.get(), &partition));
  if (partition != std::numeric_limits<size_t>::max()) return ShowBarrier(session, partition);
  return ShowFetches(session);
}

OrtStatus* Program(Session& session, size_t partition, const char** json) {
  TENON_WEB_RETURN_IF_ERROR(CheckPartitions(session));
  return Function<TenonBarrierRunProgram>(TENON_BARRIER_RUN_PROGRAM)(session.barrier_run.get(),
                                                                     partition, json);
}

OrtStatus* ReleaseConstants(Session& session) {
  TENON_WEB_RETURN_IF_ERROR(CheckPartitions(session));
  return Function<TenonBarrierRunReleaseConstants>(TENON_BARRIER_RUN_RELEASE_CONSTANTS)(
      session.barrier_run.get());
}

}  // namespace

void EndBarrierRun(Session& session) {
  if (session.barrier_run == nullptr) return;
  static const auto end = Function<TenonBarrierRunEnd>(TENON_BARRIER_RUN_END);
  (void)Outcome(end(session.barrier_run.get()));
  session.partitions.current = nullptr;
}

}  // namespace tenon::web

using namespace tenon::web;

// Begins a run of a session with WebNN. Slots and `options` are as for tenon_session_run, with two
// exceptions: feeds that only partitions read have no data, and outputs that partitions make are
// not used. Slots must not change until tenon_session_finish_run, which must also follow a failure.
TENON_WEB_EXPORT(tenon_session_begin_run)
int tenon_session_begin_run(Session* session, const OrtRunOptions* options) {
  return Outcome(Begin(*session, options));
}

// Runs to the next partition, or to the end.
TENON_WEB_EXPORT(tenon_session_next) int tenon_session_next(Session* session) {
  return Outcome(Next(*session));
}

// The run's position; null at its end. Valid until the next tenon_session_next.
TENON_WEB_EXPORT(tenon_session_barrier) const Barrier* tenon_session_barrier(Session* session) {
  return session->partitions.current;
}

// The builder program of a partition (docs/web.md). It is available at any time for a partition
// with known shapes, and for another one while the run stands at it. Null after a failure.
TENON_WEB_EXPORT(tenon_session_program)
const char* tenon_session_program(Session* session, size_t partition) {
  const char* json = nullptr;
  return Outcome(Program(*session, partition, &json)) == ORT_OK ? json : nullptr;
}

// Releases the constants of partitions with known shapes. Their programs are not available
// afterwards.
TENON_WEB_EXPORT(tenon_session_release_constants)
int tenon_session_release_constants(Session* session) {
  return Outcome(ReleaseConstants(*session));
}
