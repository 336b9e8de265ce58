#include "webnn/c_api.h"

#include <tenon_webnn_c_api.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/status.h"
#include "capi/options/run_options.h"
#include "capi/session/session_handle.h"
#include "capi/value/element_type.h"
#include "webnn/barrier_run.h"
#include "webnn/provider.h"

using tenon::Value;

struct TenonBarrierRun {
  // Destroyed in reverse order.
  std::shared_ptr<OrtSession> session;
  std::unique_ptr<tenon::webnn::BarrierPlan> plan;
  std::unique_ptr<tenon::webnn::BarrierRun> run;
  std::string description;
  // Of the run that begins.
  std::vector<Value> feeds, fetches;
  std::unique_ptr<bool[]> is_fetched;
};

namespace tenon::webnn {
namespace {

using capi::AtBoundary;
using capi::CheckIndex;
using capi::Unwrap;

bool HasProvider(const OrtSession& session) {
  const auto& providers = session.session->providers();
  return std::any_of(providers.begin(), providers.end(),
                     [](const auto& provider) { return provider->name() == kProviderName; });
}

OrtStatus* Create(OrtSession* session, TenonBarrierRun** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(capi::CheckReady(session));
    TENON_RETURN_IF_NULL(out);
    *out = nullptr;
    if (!HasProvider(*session)) return OkStatus();
    auto made = std::make_unique<TenonBarrierRun>();
    made->session = capi::Hold(session);
    TENON_ASSIGN_OR_RETURN(made->plan, BarrierPlan::Create(session->session->current()));
    made->run = std::make_unique<BarrierRun>(*made->plan);
    made->description = made->plan->ToText();
    made->feeds.resize(session->inputs().size());
    made->fetches.resize(session->outputs().size());
    made->is_fetched = std::make_unique<bool[]>(made->fetches.size());
    *out = made.release();
    return OkStatus();
  });
}

void Release(TenonBarrierRun* run) noexcept { delete run; }

OrtStatus* Describe(const TenonBarrierRun* run, const char** json) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(run);
    TENON_RETURN_IF_NULL(json);
    *json = run->description.c_str();
    return OkStatus();
  });
}

OrtStatus* Partitions(const TenonBarrierRun* run, size_t* count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(run);
    TENON_RETURN_IF_NULL(count);
    *count = run->plan->partition_count();
    return OkStatus();
  });
}

OrtStatus* Counts(const TenonBarrierRun* run, size_t partition, size_t* inputs,
                  size_t* outputs) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(run);
    TENON_RETURN_IF_NULL(inputs);
    TENON_RETURN_IF_NULL(outputs);
    TENON_RETURN_IF_ERROR(CheckIndex(partition, run->plan->partition_count(), "partitions"));
    *inputs = run->plan->stages()[partition].inputs.size();
    *outputs = run->plan->stages()[partition].outputs.size();
    return OkStatus();
  });
}

OrtStatus* Program(TenonBarrierRun* run, size_t partition, const char** json) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(run);
    TENON_RETURN_IF_NULL(json);
    TENON_RETURN_IF_ERROR(CheckIndex(partition, run->plan->partition_count(), "partitions"));
    Partition& of = run->plan->partition(partition);
    const bool is_there = run->run->is_at_barrier() && run->run->position() == partition;
    if (!of.is_static() && !is_there) {
      return InvalidArgument("the run does not stand at partition {}, whose shapes it determines",
                             partition);
    }
    Partition::Binding& binding = of.is_static() ? of.static_binding() : run->run->binding();
    TENON_ASSIGN_OR_RETURN(const std::string* const text, of.Program(binding));
    *json = text->c_str();
    return OkStatus();
  });
}

OrtStatus* ReleaseConstants(TenonBarrierRun* run) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(run);
    for (size_t i = 0; i < run->plan->partition_count(); ++i) {
      run->plan->partition(i).ReleaseConstants();
    }
    return OkStatus();
  });
}

// A value over the memory of a view, or without memory.
Result<Value> ValueOver(const TenonTensorView& view) {
  TENON_ASSIGN_OR_RETURN(const DataType type, capi::FromElementType(view.type));
  if (type == DataType::kUndefined) return Value();
  if (type == DataType::kString) return InvalidArgument("strings are given as an OrtValue");
  const Shape shape(std::span<const int64_t>(view.dims, view.rank));
  TENON_ASSIGN_OR_RETURN(const int64_t elements, shape.CheckedNumElements());
  TENON_ASSIGN_OR_RETURN(const size_t bytes, DataTypeBytes(type, elements));
  if (view.data != nullptr && view.byte_size != bytes) {
    return InvalidArgument("expected {} bytes for {} {}, got {}", bytes, DataTypeName(type), shape,
                           view.byte_size);
  }
  return Value(Tensor::View(type, shape, view.data));
}

Status Read(const TenonRunSlot& slot, Value& into) {
  into = Value();
  if (slot.is_used == 0) return OkStatus();
  if (slot.value != nullptr) {
    into = *Unwrap(slot.value);
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(into, ValueOver(slot.tensor));
  return OkStatus();
}

OrtStatus* Begin(TenonBarrierRun* run, const OrtRunOptions* options, const TenonRunSlot* inputs,
                 const TenonRunSlot* outputs) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(run);
    TENON_RETURN_IF_NULL_ARRAY(inputs, run->feeds.size());
    TENON_RETURN_IF_NULL_ARRAY(outputs, run->fetches.size());
    const auto read = [&]() -> Status {
      for (size_t i = 0; i < run->feeds.size(); ++i) {
        TENON_RETURN_IF_ERROR(
            Read(inputs[i], run->feeds[i]).WithContext(run->plan->session().inputs()[i].name));
      }
      for (size_t i = 0; i < run->fetches.size(); ++i) {
        TENON_RETURN_IF_ERROR(
            Read(outputs[i], run->fetches[i]).WithContext(run->plan->session().outputs()[i].name));
        run->is_fetched[i] = outputs[i].is_used != 0;
      }
      static const RunOptions& defaults = *new RunOptions();
      return run->run->Begin(options == nullptr ? defaults : options->run, run->feeds,
                             {run->is_fetched.get(), run->fetches.size()}, run->fetches);
    };
    Status status = read();
    // The run has copies; the tensors that refer to the caller's memory are dropped.
    for (std::vector<Value>* const list : {&run->feeds, &run->fetches}) {
      for (Value& value : *list) value = Value();
    }
    return status;
  });
}

OrtStatus* Next(TenonBarrierRun* run, size_t* partition) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(run);
    TENON_RETURN_IF_NULL(partition);
    TENON_RETURN_IF_ERROR(run->run->Next());
    *partition =
        run->run->is_at_barrier() ? run->run->position() : std::numeric_limits<size_t>::max();
    return OkStatus();
  });
}

void Show(const Value& value, TenonTensorView& view) {
  view = {};
  if (!value.is_tensor() || value.tensor().type() == DataType::kString) return;
  const Tensor& tensor = value.tensor();
  view.type = capi::ToElementType(tensor.type());
  view.rank = tensor.rank();
  view.dims = tensor.shape().data();
  view.data = const_cast<void*>(tensor.raw());
  view.byte_size = tensor.bytes();
}

Status CheckAtBarrier(const TenonBarrierRun& run) {
  if (run.run->is_at_barrier()) return OkStatus();
  return InvalidArgument("the run does not stand at a partition");
}

OrtStatus* Input(const TenonBarrierRun* run, size_t i, TenonTensorView* tensor) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(run);
    TENON_RETURN_IF_NULL(tensor);
    TENON_RETURN_IF_ERROR(CheckAtBarrier(*run));
    const BarrierStage& stage = run->plan->stages()[run->run->position()];
    TENON_RETURN_IF_ERROR(CheckIndex(i, stage.inputs.size(), "inputs"));
    Show(run->run->input(i), *tensor);
    if (stage.inputs[i].source != BarrierInput::Source::kHost) tensor->data = nullptr;
    return OkStatus();
  });
}

OrtStatus* Output(const TenonBarrierRun* run, size_t i, TenonTensorView* tensor) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(run);
    TENON_RETURN_IF_NULL(tensor);
    TENON_RETURN_IF_ERROR(CheckAtBarrier(*run));
    const BarrierStage& stage = run->plan->stages()[run->run->position()];
    TENON_RETURN_IF_ERROR(CheckIndex(i, stage.outputs.size(), "outputs"));
    Show(run->run->output(i), *tensor);
    return OkStatus();
  });
}

OrtStatus* Fetch(const TenonBarrierRun* run, size_t i, TenonTensorView* tensor,
                 OrtValue** value) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(run);
    TENON_RETURN_IF_NULL(tensor);
    TENON_RETURN_IF_ERROR(CheckIndex(i, run->fetches.size(), "outputs"));
    const Value& fetched = run->run->fetch(i);
    Show(fetched, *tensor);
    if (value == nullptr) return OkStatus();
    *value = fetched.has_value() ? capi::NewHandle<OrtValue>(fetched) : nullptr;
    return OkStatus();
  });
}

OrtStatus* End(TenonBarrierRun* run) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(run);
    run->run->End();
    return OkStatus();
  });
}

template <class Pointer>
OrtExperimentalFnPtr Untyped(Pointer function) {
  return reinterpret_cast<OrtExperimentalFnPtr>(function);
}

}  // namespace

OrtExperimentalFnPtr FindFunction(std::string_view name) {
  if (name == TENON_CREATE_BARRIER_RUN) return Untyped<TenonCreateBarrierRun>(&Create);
  if (name == TENON_RELEASE_BARRIER_RUN) return Untyped<TenonReleaseBarrierRun>(&Release);
  if (name == TENON_BARRIER_RUN_DESCRIBE) return Untyped<TenonBarrierRunDescribe>(&Describe);
  if (name == TENON_BARRIER_RUN_PARTITIONS) return Untyped<TenonBarrierRunPartitions>(&Partitions);
  if (name == TENON_BARRIER_RUN_COUNTS) return Untyped<TenonBarrierRunCounts>(&Counts);
  if (name == TENON_BARRIER_RUN_PROGRAM) return Untyped<TenonBarrierRunProgram>(&Program);
  if (name == TENON_BARRIER_RUN_RELEASE_CONSTANTS) {
    return Untyped<TenonBarrierRunReleaseConstants>(&ReleaseConstants);
  }
  if (name == TENON_BARRIER_RUN_BEGIN) return Untyped<TenonBarrierRunBegin>(&Begin);
  if (name == TENON_BARRIER_RUN_NEXT) return Untyped<TenonBarrierRunNext>(&Next);
  if (name == TENON_BARRIER_RUN_INPUT) return Untyped<TenonBarrierRunTensor>(&Input);
  if (name == TENON_BARRIER_RUN_OUTPUT) return Untyped<TenonBarrierRunTensor>(&Output);
  if (name == TENON_BARRIER_RUN_FETCH) return Untyped<TenonBarrierRunFetch>(&Fetch);
  if (name == TENON_BARRIER_RUN_END) return Untyped<TenonBarrierRunEnd>(&End);
  return nullptr;
}

}  // namespace tenon::webnn
