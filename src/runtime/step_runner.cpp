#include "runtime/step_runner.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/exception_barrier.h"
#include "base/logging.h"
#include "base/progress.h"
#include "ir/node_error.h"
#include "runtime/frame_pool.h"
#include "runtime/in_place.h"
#include "runtime/kernel.h"
#include "runtime/node_dump.h"
#include "runtime/nvtx.h"
#include "runtime/run_meter.h"
#include "runtime/step_trace.h"

namespace tenon {
namespace {

// Names the memory limit if that is why there was no memory; else "".
std::string DescribeLimit(const Plan& plan, const Status& status) {
  if (!status.message().starts_with("out of memory")) return "";
  const AllocatorStats stats = plan.locations.front().allocator->Stats();
  if (stats.bytes_limit == 0) return "";
  return Format("; session.memory_limit is {} bytes, of which {} are in use", stats.bytes_limit,
                stats.bytes_in_use);
}

// Whether equal inputs give equal outputs: a deterministic kernel without subgraphs.
bool OutputsFollowInputs(const Step& step) {
  return !step.traits.is_stateful && step.subgraphs.empty();
}

// Whether the memory plan keeps the memory of `input` free for `output`, which its step allocates.
bool IsSheltered(const MemoryPlan* memory, Slot output, Slot input) {
  return memory != nullptr && std::find(memory->overwritten.begin(), memory->overwritten.end(),
                                        std::pair(output, input)) != memory->overwritten.end();
}

// Puts output `i` into the memory of an input, if the step may do so in this run (see in_place.h).
bool TakeOverInput(const Plan& plan, const Region& region, Frame& frame, const Step& step, size_t i,
                   DataType type, const Shape& shape) {
  const Slot output = plan.OutputsOf(step)[i];
  for (const InPlace& way : plan.InPlaceOf(step)) {
    const Slot slot = plan.InputsOf(step)[way.input];
    const Value& value = frame.value(slot);
    if (way.output != i || !value.is_tensor()) continue;
    const Tensor& input = value.tensor();
    const bool is_free = !region.IsFetched(slot) && !value.is_shared();
    if (!is_free && (input.owner() != nullptr || !IsSheltered(frame.memory(), output, slot))) {
      continue;
    }
    if (!FitsInto(input, type, shape)) continue;
    frame.value(output) =
        Tensor::View(type, shape, const_cast<void*>(input.raw()), input.owner(), input.memory());
    return true;
  }
  return false;
}

// Runs the i-th subgraph of a step with the values that it captures.
class Runner final : public SubgraphRunner {
 public:
  Runner(const RunScope& scope, Frame& frame) : scope_(scope), frame_(frame) {
    scope_.place = &place_;
    place_.outer = scope.place;
  }

  // The following runs are of this subgraph; all use one frame.
  void Begin(const Step& step, size_t subgraph) {
    StepBody& body = *step.subgraphs[subgraph];
    place_.node = step.node;
    place_.index = subgraph;
    if (body_ != &body) body_frame_.emplace(body.frames());
    body_ = &body;
    captures_ = &step.captures[subgraph];
  }

  Status Run(std::span<Value> inputs, RunValues& outputs) override {
    Status status = RunBody(inputs, outputs);
    has_failed_ = !status.ok();
    return status;
  }

  // Whether the last run failed. Then its error already names the node in the subgraph.
  bool has_failed() const { return has_failed_; }

 private:
  Status RunBody(std::span<Value> inputs, RunValues& outputs) {
    TENON_RETURN_IF_ERROR(scope_.CheckStop(*place_.node));  // the subgraph may have no steps
    feeds_.assign(std::make_move_iterator(inputs.begin()), std::make_move_iterator(inputs.end()));
    for (const Slot slot : *captures_) feeds_.push_back(frame_.value(slot));
    outputs.resize(body_->plan().outputs.size());
    return body_->RunBody(scope_, **body_frame_, feeds_, outputs);
  }

  RunScope scope_;
  SubgraphPlace place_;
  bool has_failed_ = false;
  Frame& frame_;
  StepBody* body_ = nullptr;
  const std::vector<Slot>* captures_ = nullptr;
  std::optional<FrameLease> body_frame_;
  RunValues feeds_;
};

class StepContext final : public KernelContext {
 public:
  StepContext(const Plan& plan, const Region& region, const RunScope& scope, Frame& frame,
              const Step& step, Stream* stream)
      : plan_(plan), region_(region), scope_(scope), frame_(frame), step_(step) {
    node_ = step.node;
    inputs_ = frame.InputsOf(step);
    outputs_ = frame.OutputsOf(step);
    threads_ = scope.threads;
    stream_ = stream;
    logger_ = scope.logger;
    host_memory_ = &plan.locations.front().allocator;
  }

  Result<Tensor*> AllocateOutput(size_t i, DataType type, const Shape& shape) override {
    TENON_DCHECK(step_.traits.allocates_outputs);  // else the memory plan has a place for it
    const Slot slot = plan_.OutputsOf(step_)[i];
    if (TakeOverInput(plan_, region_, frame_, step_, i, type, shape)) {
      return &outputs_[i]->tensor();
    }
    const auto& memory = plan_.LocationOf(slot).allocator;
    TENON_ASSIGN_OR_RETURN(
        Tensor tensor,
        frame_.AllocateOutput(slot, type, shape, scope_.streams->MemoryFor(memory, stream_)));
    *outputs_[i] = std::move(tensor);
    return &outputs_[i]->tensor();
  }

  const Tensor* GivenOutput(size_t i) const override {
    return frame_.OfferedOutput(plan_.OutputsOf(step_)[i]);
  }

  Value* InputToConsume(size_t i) override {
    const Slot slot = plan_.InputsOf(step_)[i];
    if (!plan_.IsLastRead(step_, i) || region_.IsFetched(slot)) return nullptr;
    Value& value = frame_.value(slot);
    return value.is_shared() ? nullptr : &value;
  }

  void* Scratch(size_t bytes) override { return frame_.Scratch(bytes); }

  SubgraphRunner& Subgraph(size_t i) override {
    if (!runner_) runner_.emplace(scope_, frame_);
    runner_->Begin(step_, i);
    return *runner_;
  }

  bool subgraph_failed() const { return runner_ && runner_->has_failed(); }

 private:
  const Plan& plan_;
  const Region& region_;
  const RunScope& scope_;
  Frame& frame_;
  const Step& step_;
  std::optional<Runner> runner_;
};

}  // namespace

std::string SubgraphPlace::ToString() const {
  const std::string text = Format("{} of {}", SubgraphName(*node, index), node->Describe());
  return outer == nullptr ? text : Format("{} in {}", text, outer->ToString());
}

Status RunScope::CheckStop(const Node& next) const {
  if (stop == nullptr || (!stop->is_terminated() && !stop->is_late())) return OkStatus();
  return Stopped("before", next);
}

Status RunScope::Stopped(std::string_view where, const Node& node) const {
  if (stop->is_terminated() || !stop->is_late()) {
    return Fail("Exiting due to terminate flag being set to true.");
  }
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(stop->timeout());
  return Fail("the run passed its deadline of {} ms {} {}", timeout.count(), where,
              DescribeOperator(node));
}

// Makes the step's stream, or the host if it has none, wait for the inputs. Returns the stream or
// null.
Result<Stream*> StepRunner::WaitForInputs(const Step& step) {
  Stream* stream = nullptr;
  if (step.stream >= 0) {
    TENON_ASSIGN_OR_RETURN(stream, scope_.streams->Of(step.stream));
  }
  for (const int32_t producer : step.waits) {
    TENON_ASSIGN_OR_RETURN(Stream * other, scope_.streams->Of(producer));
    TENON_RETURN_IF_ERROR(WaitFor(*other, stream));
  }
  return stream;
}

Status StepRunner::CheckContiguous(const Step& step) const {
  const std::byte* expected = nullptr;
  const std::span<const Value* const> inputs = frame_.InputsOf(step);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || !inputs[i]->is_tensor()) continue;
    const Tensor& tensor = inputs[i]->tensor();
    const auto* const at = static_cast<const std::byte*>(tensor.raw());
    if (expected != nullptr && at != expected) {
      return Fail("{}: expected input {} right behind the input before it, got it {} bytes away",
                  step.node->Describe(), i, at - expected);
    }
    expected = at + tensor.bytes();
  }
  return OkStatus();
}

Status StepRunner::RunKernel(const Step& step, Stream* stream) {
  if (step.traits.contiguous_inputs) {
    Status status = CheckContiguous(step);
    is_complete_error_ = !status.ok();
    if (is_complete_error_) return status;
  }
  StepContext context(plan_, region_, scope_, frame_, step, stream);
  const StopScope stopping(scope_.stop);
  Status status =
      CatchExceptions([&] { return step.kernel->Run(context); }, StatusCode::kRuntimeException);
  if (status.ok() && step.drains) status = WaitFor(*stream, nullptr);
  is_complete_error_ = !status.ok() && context.subgraph_failed();
  if (!is_complete_error_ && scope_.WasCut()) return scope_.Stopped("in", *step.node);
  return status;
}

Status StepRunner::Failed(const Step& step, Status status) {
  if (scope_.WasCut()) return status;  // no node failed
  if (FailedNode* const failed = scope_.failed) {
    if (failed->provider < 0) {
      failed->provider = step.node->provider;
      failed->node = step.node->name;
      failed->op_type = step.node->op_type;
    }
    if (scope_.place == nullptr) failed->step = static_cast<uint32_t>(&step - plan_.steps.data());
  }
  if (is_complete_error_) return status;
  const Node& node = *step.node;
  const std::string path = scope_.place == nullptr ? "" : scope_.place->ToString();
  const std::string text = DescribeRunFailure(*plan_.graph, node, frame_.InputsOf(step), path,
                                              status.message() + DescribeLimit(plan_, status));
  Status failure(
      status.code(),
      Format("Non-zero status code returned while running {} node. Name:'{}' Status Message: {}",
             node.op_type, NameOrNumber(node), text));
  if (scope_.failure_logger != nullptr) {
    TENON_LOG(*scope_.failure_logger, kError, "{}", failure.message());
  }
  return failure;
}

Status StepRunner::RunStep(const Step& step) {
  if (is_watched_) return RunWatched(step);
  Result<Stream*> stream = nullptr;
  if (step.stream >= 0 || !step.waits.empty()) stream = WaitForInputs(step);
  Status status = stream ? RunKernel(step, *stream) : std::move(stream.error());
  if (!status.ok()) return Failed(step, std::move(status));
  return OkStatus();
}

Status StepRunner::RunWatched(const Step& step) {
  const std::string& provider = plan_.providers[static_cast<size_t>(step.node->provider)]->name();
  RunMeter::NodeScope counting(scope_.meter, provider);
  std::optional<StepTrace> trace;
  if (scope_.profiler != nullptr) trace.emplace(scope_, plan_, step);
  Result<Stream*> stream = WaitForInputs(step);
  if (trace) trace->StartKernel(frame_);
  NvtxRanges* const ranges = scope_.place == nullptr ? scope_.nvtx : nullptr;
  if (ranges) ranges->BeginNode(*step.node, static_cast<int64_t>(step.node->id));
  Status status = stream ? RunKernel(step, *stream) : std::move(stream.error());
  if (ranges) ranges->EndNode();
  if (!status.ok()) {
    counting.Drop();
    return Failed(step, std::move(status));
  }
  if (trace) trace->EndKernel(frame_);
  NotePlacements(step);
  return OkStatus();
}

void StepRunner::NotePlacements(const Step& step) const {
  if (scope_.meter == nullptr || scope_.place != nullptr) return;
  std::vector<Placement>* const placements = scope_.meter->placements();
  if (placements == nullptr) return;
  const std::span<const Value* const> inputs = frame_.InputsOf(step);
  for (const Slot slot : plan_.OutputsOf(step)) {
    if (slot == kNoSlot || !frame_.value(slot).is_tensor()) continue;
    const Tensor& tensor = frame_.value(slot).tensor();
    const bool is_in_place = std::any_of(inputs.begin(), inputs.end(), [&](const Value* input) {
      return input != nullptr && input->is_tensor() && input->tensor().raw() == tensor.raw();
    });
    if (is_in_place || tensor.bytes() == 0) continue;
    Placement placement = {static_cast<uint32_t>(&step - plan_.steps.data()), slot, tensor.raw(),
                           tensor.bytes(), std::nullopt};
    if (const MemoryPlan* const memory = frame_.memory()) {
      const MemoryPlan::Binding& binding = memory->bindings[static_cast<size_t>(slot)];
      if (binding.place == MemoryPlan::Place::kSlab) placement.planned_offset = binding.offset;
    }
    placements->push_back(placement);
  }
}

Status StepRunner::ReportProgress(uint32_t index) const {
  if (scope_.place != nullptr) return OkStatus();
  return scope_.progress->Report("run", index - region_.begin, region_.end - region_.begin,
                                 StatusCode::kFail);
}

Status StepRunner::RunPlanned() {
  const MemoryPlan& memory = *frame_.memory();
  for (const uint32_t index : memory.steps) {
    const Step& step = plan_.steps[index];
    TENON_RETURN_IF_ERROR(scope_.CheckStop(*step.node));
    if (scope_.progress != nullptr) TENON_RETURN_IF_ERROR(ReportProgress(index));
    TENON_RETURN_IF_ERROR(TraceGiven(index));
    TENON_RETURN_IF_ERROR(MoveTo(index));
    if (memory.is_bound[index]) {
      TENON_RETURN_IF_ERROR(RunStep(step));
      continue;
    }
    TENON_RETURN_IF_ERROR(RunUnboundStep(step));
    if (frame_.keeps_values()) continue;
    // The memory of dynamic values is given back after their last use.
    for (const Slot slot : plan_.ReleasesOf(step)) {
      const auto place = memory.bindings[static_cast<size_t>(slot)].place;
      if (place == MemoryPlan::Place::kDynamic) frame_.value(slot) = Value();
    }
  }
  TENON_RETURN_IF_ERROR(MoveTo(region_.end));
  if (scope_.progress != nullptr) TENON_RETURN_IF_ERROR(ReportProgress(region_.end));
  return TraceGiven(region_.end);
}

Status StepRunner::MoveTo(uint32_t index) {
  const MemoryPlan& memory = *frame_.memory();
  const auto step = static_cast<int32_t>(index);
  const auto& last_uses = memory.last_uses;
  const bool drops_feeds = !given_.empty() && !frame_.keeps_values();  // else the caller has them
  for (; drops_feeds && last_uses_ < last_uses.size() && last_uses[last_uses_].first < step;
       ++last_uses_) {
    const Slot feed = last_uses[last_uses_].second;
    frame_.DropFeed(feed);
    DropGiven(feed);
  }
  const auto& first_uses = memory.first_uses;
  for (; first_uses_ < first_uses.size() && first_uses[first_uses_].first <= step; ++first_uses_) {
    const Slot slot = first_uses[first_uses_].second;
    if (frame_.value(slot).has_value()) continue;  // in the caller's memory
    const MemoryPlan::Binding& binding = memory.bindings[static_cast<size_t>(slot)];
    Result<Tensor> tensor =
        Tensor::Allocate(binding.type, binding.shape, plan_.LocationOf(slot).allocator);
    if (!tensor) {
      const auto writer = static_cast<size_t>(first_uses[first_uses_].first);
      return Failed(plan_.steps[writer], std::move(tensor.error()));
    }
    frame_.value(slot) = std::move(*tensor);
    frame_.BindMovingWith(slot);
  }
  return OkStatus();
}

void StepRunner::DropGiven(Slot slot) {
  if (given_.empty()) return;
  const auto found = std::find(region_.feeds.begin(), region_.feeds.end(), slot);
  if (found == region_.feeds.end()) return;
  frame_.value(slot) = Value();
  Value& given = given_[static_cast<size_t>(found - region_.feeds.begin())];
  if (given.is_tensor() && given.tensor().owner().use_count() == 1) given = Value();
}

Status StepRunner::TraceGiven(uint32_t index) {
  const std::vector<uint32_t>& given = region_.given;
  for (; traced_given_ < given.size() && given[traced_given_] < index; ++traced_given_) {
    const Step& step = plan_.steps[given[traced_given_]];
    const auto trace = [&] {
      if (scope_.profiler == nullptr) return OkStatus();
      StepTrace trace(scope_, plan_, step);
      trace.StartKernel(frame_);
      trace.EndCached(frame_);
      return OkStatus();
    };
    TENON_RETURN_IF_ERROR(scope_.dump == nullptr ? trace() : RunDumped(step, trace));
  }
  return OkStatus();
}

Status StepRunner::RunUnplanned() {
  for (const uint32_t index : region_.steps) {
    const Step& step = plan_.steps[index];
    TENON_RETURN_IF_ERROR(scope_.CheckStop(*step.node));
    if (scope_.progress != nullptr) TENON_RETURN_IF_ERROR(ReportProgress(index));
    TENON_RETURN_IF_ERROR(TraceGiven(index));
    TENON_RETURN_IF_ERROR(scope_.dump == nullptr ? RunUnboundStep(step) : RunDumped(step, [&] {
      return RunUnboundStep(step);
    }));
    if (frame_.keeps_values()) continue;
    for (const Slot slot : plan_.InputsOf(step)) {
      if (slot == kNoSlot || region_.IsFetched(slot)) continue;
      if (plan_.last_use[static_cast<size_t>(slot)] == static_cast<int32_t>(index)) DropGiven(slot);
    }
    for (const Slot slot : plan_.ReleasesOf(step)) {
      if (!region_.IsFetched(slot)) frame_.value(slot) = Value();
    }
  }
  if (scope_.progress != nullptr) TENON_RETURN_IF_ERROR(ReportProgress(region_.end));
  return TraceGiven(region_.end);
}

Result<bool> StepRunner::Trace(RunRecord& record) {
  for (const auto& [slot, constant] : plan_.constants) record.Of(slot).Set(constant, true);
  for (const std::vector<Slot>* there : {&region_.feeds, &region_.live_in}) {
    for (const Slot slot : *there) record.Of(slot).Set(frame_.value(slot), false);
  }
  Result<bool> is_right = TraceSteps(record);
  for (const uint32_t index : region_.steps) {
    for (const Slot slot : plan_.OutputsOf(plan_.steps[index])) {
      if (slot != kNoSlot) frame_.value(slot) = Value();
    }
  }
  return is_right;
}

Result<bool> StepRunner::TraceSteps(RunRecord& record) {
  for (const uint32_t index : region_.steps) {
    TENON_ASSIGN_OR_RETURN(const bool is_right, TraceStep(plan_.steps[index], record));
    if (!is_right) return false;
  }
  return true;
}

Result<bool> StepRunner::TraceStep(const Step& step, RunRecord& record) {
  bool shapes_fixed = true, data_fixed = true;
  for (const Slot input : plan_.InputsOf(step)) {
    if (input == kNoSlot) continue;
    shapes_fixed &= record.Of(input).shape_is_fixed;
    data_fixed &= record.Of(input).data_is_fixed;
  }
  const bool follows = step.traits.reads_shapes_only ? shapes_fixed : data_fixed;
  if (follows && OutputsFollowInputs(step)) {
    TENON_RETURN_IF_ERROR(scope_.CheckStop(*step.node));
    TENON_RETURN_IF_ERROR(RunUnboundStep(step));
    RecordValues(step, record);
    return true;
  }
  const bool is_found_in_run =
      !shapes_fixed || step.traits.allocates_outputs || !step.subgraphs.empty();
  return is_found_in_run || RecordShapes(step, record);
}

void StepRunner::RecordValues(const Step& step, RunRecord& record) const {
  for (const Slot slot : plan_.OutputsOf(step)) {
    if (slot == kNoSlot) continue;
    record.Of(slot).Set(frame_.value(slot), true);
    record.Of(slot).value = frame_.value(slot);
  }
}

bool StepRunner::RecordShapes(const Step& step, RunRecord& record) {
  ConcreteShapeContext& shapes = frame_.shapes();
  shapes.Begin(*plan_.graph, *step.node, frame_.InputsOf(step));
  const Status status = step.kernel->InferShapes(shapes);
  const std::span<const Slot> inputs = plan_.InputsOf(step);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (shapes.ReadData(i) && !record.Of(inputs[i]).data_is_fixed) return true;
  }
  const std::span<const Slot> outputs = plan_.OutputsOf(step);
  for (size_t i = 0; i < outputs.size() && status.ok(); ++i) {
    if (outputs[i] == kNoSlot) continue;
    const ConcreteShapeContext::OutputShape& output = shapes.output(i);
    const DataType type = i == 0 && step.traits.is_view ? record.Of(inputs[0]).type : output.type;
    const auto bytes = DataTypeBytes(type, output.shape.NumElements());
    if (!output.set || bytes.value_or(SIZE_MAX) > kMostPlannedBytes) return false;
    Value& value = frame_.value(outputs[i]);
    value =
        Tensor::View(type, output.shape, nullptr, nullptr, *plan_.LocationOf(outputs[i]).memory);
    record.Of(outputs[i]).Set(value, false);
  }
  return status.ok();
}

Status StepRunner::FlushStream(const Step& step) {
  TENON_ASSIGN_OR_RETURN(Stream* const stream, WaitForInputs(step));
  return stream == nullptr ? OkStatus() : stream->Flush();
}

Status StepRunner::RunDumped(const Step& step, FunctionRef<Status()> run) {
  StepDump dump(*scope_.dump, plan_, step, frame_.execution());
  if (!dump.is_wanted()) return run();
  const auto show = [&](Status (StepDump::*values)(const Frame& frame)) {
    Status status = FlushStream(step);
    if (status.ok()) status = (dump.*values)(frame_);
    return status.ok() ? OkStatus() : Failed(step, std::move(status));
  };
  TENON_RETURN_IF_ERROR(show(&StepDump::Inputs));
  TENON_RETURN_IF_ERROR(run());
  return show(&StepDump::Outputs);
}

Status StepRunner::RunUnboundStep(const Step& step) {
  std::optional<NodeInTrace> allocating;
  if (is_watched_) allocating.emplace(scope_, plan_, step);
  if (!step.traits.allocates_outputs && step.subgraphs.empty()) {
    bool is_done = false;
    Status status = AllocateOutputs(step, &is_done);
    if (!status.ok()) return Failed(step, std::move(status));
    if (is_done) return OkStatus();
  }
  return RunStep(step);
}

// Finds the outputs' shapes and gives them memory. Sets `*is_done` if there is nothing to run (a
// view).
Status StepRunner::AllocateOutputs(const Step& step, bool* is_done) {
  const std::span<const Value* const> inputs = frame_.InputsOf(step);
  const std::span<Value* const> outputs = frame_.OutputsOf(step);
  ConcreteShapeContext& shapes = frame_.shapes();
  shapes.Begin(*plan_.graph, *step.node, inputs);
  if (step.traits.is_view && !inputs[0]->is_tensor()) {
    *outputs[0] = *inputs[0];
    *is_done = true;
    return OkStatus();
  }
  TENON_RETURN_IF_ERROR(step.kernel->InferShapes(shapes));
  Stream* stream = nullptr;
  if (step.stream >= 0) {
    TENON_ASSIGN_OR_RETURN(stream, scope_.streams->Of(step.stream));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr) continue;
    const ConcreteShapeContext::OutputShape& output = shapes.output(i);
    if (!output.set) return Fail("the shape function did not set output {}", i);
    if (i == 0 && step.traits.is_view) {
      *outputs[0] = inputs[0]->tensor().Reshaped(output.shape);
      *is_done = true;
    } else if (!TakeOverInput(plan_, region_, frame_, step, i, output.type, output.shape)) {
      const Slot slot = plan_.OutputsOf(step)[i];
      const auto& memory = plan_.LocationOf(slot).allocator;
      TENON_ASSIGN_OR_RETURN(*outputs[i],
                             frame_.AllocateOutput(slot, output.type, output.shape,
                                                   scope_.streams->MemoryFor(memory, stream)));
    }
  }
  return OkStatus();
}

}  // namespace tenon
