#include "runtime/executor.h"

#include <algorithm>
#include <utility>

#include "runtime/profiler.h"
#include "runtime/run_meter.h"
#include "runtime/step_runner.h"

namespace tenon {
namespace {

// How many frames wait for the next run; more are made when more runs overlap.
constexpr size_t kMostIdleFrames = 4;
// How many different parts an executor remembers.
constexpr size_t kMostParts = 64;

// Counts what a memory plan holds, while it lives.
class PlannedMemory {
 public:
  PlannedMemory(RunMeter* meter, const Plan& plan, const MemoryPlan* memory)
      : meter_(memory == nullptr ? nullptr : meter), plan_(plan), memory_(memory) {
    if (meter_ != nullptr) ForEach(&RunMeter::HoldPlanned);
  }
  ~PlannedMemory() {
    if (meter_ != nullptr) ForEach(&RunMeter::ReleasePlanned);
  }
  PlannedMemory(const PlannedMemory&) = delete;
  PlannedMemory& operator=(const PlannedMemory&) = delete;

 private:
  void ForEach(void (RunMeter::*change)(const MemoryInfo&, size_t)) const {
    for (size_t i = 0; i < memory_->slab_bytes.size(); ++i) {
      const size_t bytes = memory_->slab_bytes[i];
      if (bytes > 0) (meter_->*change)(*plan_.locations[i].memory, bytes);
    }
  }

  RunMeter* const meter_;
  const Plan& plan_;
  const MemoryPlan* const memory_;
};

// The streams of the run, which are the outermost plan's.
RunScope WithStreams(const RunScope& scope, Frame& frame) {
  RunScope result = scope;
  if (result.streams == nullptr) result.streams = &frame.streams();
  return result;
}

// For a run that is not planned.
std::shared_ptr<MemoryPlanCache::Entry> NoPlan() {
  return std::make_shared<MemoryPlanCache::Entry>();
}

}  // namespace

ExecutionState::ExecutionState(Executor& executor)
    : executor_(executor), frame_(executor.TakeFrame()) {}

ExecutionState::~ExecutionState() {
  if (is_in_parts_) frame_->streams().Clear();
  frame_->set_keeps_values(false);
  executor_.ReturnFrame(std::move(frame_));
}

Executor::Executor(Plan plan)
    : plan_(std::move(plan)), whole_(WholePlan(plan_), plan_.most_memory_plans) {}

Executor::~Executor() = default;

std::unique_ptr<Frame> Executor::TakeFrame() {
  {
    const MutexLock lock(mutex_);
    if (!idle_frames_.empty()) {
      std::unique_ptr<Frame> frame = std::move(idle_frames_.back());
      idle_frames_.pop_back();
      return frame;
    }
  }
  return std::make_unique<Frame>(plan_);
}

void Executor::ReturnFrame(std::unique_ptr<Frame> frame) {
  frame->Clear();
  const MutexLock lock(mutex_);
  if (idle_frames_.size() < kMostIdleFrames) idle_frames_.push_back(std::move(frame));
}

void Executor::DropFrames() {
  std::vector<std::unique_ptr<Frame>> frames;
  {
    const MutexLock lock(mutex_);
    frames.swap(idle_frames_);
  }
  frames.clear();
  for (const Step& step : plan_.steps) {
    for (const auto& subgraph : step.subgraphs) subgraph->DropFrames();
  }
}

void Executor::Trim() {
  DropFrames();
  for (const Location& location : plan_.locations) (void)location.allocator->Shrink();
  for (const Step& step : plan_.steps) {
    for (const auto& subgraph : step.subgraphs) subgraph->Trim();
  }
}

Status Executor::Run(const RunScope& scope, std::span<const Value> feeds,
                     std::span<Value> fetches) {
  std::unique_ptr<Frame> frame = TakeFrame();
  const Status status = RunWhole(scope, *frame, feeds, fetches);
  ReturnFrame(std::move(frame));
  return status;
}

Status Executor::Run(const RunScope& scope, ExecutionState& state, std::span<const Value> feeds,
                     std::span<Value> fetches) {
  Frame& frame = *state.frame_;
  if (frame.keeps_values()) frame.Clear();  // of the run before
  const Status status = RunWhole(scope, frame, feeds, fetches);
  if (!frame.keeps_values()) frame.Clear();
  return status;
}

Status Executor::FetchAgain(const RunScope& outer, ExecutionState& state,
                            std::span<Value> fetches) {
  const RunScope scope = WithStreams(outer, *state.frame_);
  return TakeOutputs(scope, whole_.region(), *state.frame_, fetches);
}

Status Executor::RunWhole(const RunScope& scope, Frame& frame, std::span<const Value> feeds,
                          std::span<Value> fetches) {
  if (feeds.size() != plan_.inputs.size()) {
    return InvalidArgument("expected {} feeds, got {}", plan_.inputs.size(), feeds.size());
  }
  return RunRegion(scope, whole_, frame, feeds, fetches);
}

Status Executor::RunPart(const RunScope& scope, ExecutionState& state, const PartialRun& part) {
  if (state.is_running_.exchange(true)) return Fail("the execution state is in use");
  const Status status = RunPartLocked(scope, state, part);
  state.is_running_ = false;
  return status;
}

Status Executor::RunPartLocked(const RunScope& scope, ExecutionState& state,
                               const PartialRun& part) {
  TENON_RETURN_IF_ERROR(CheckPart(state, part));
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryPlanCache> plans, FindRegion(part));
  state.is_in_parts_ = true;
  for (const Slot slot : plans->region().taken) state.frame_->value(slot) = Value();
  const Status status = RunRegion(scope, *plans, *state.frame_, part.feeds, part.fetches);
  state.has_failed_ = !status.ok();
  if (!status.ok()) return status;
  state.frame_->Settle(plans->region());
  state.position_ = part.end;
  return OkStatus();
}

Status Executor::CheckPart(const ExecutionState& state, const PartialRun& part) const {
  if (state.has_failed_) return Fail("an earlier part of this execution failed");
  if (part.begin != state.position_) {
    return InvalidArgument("expected a part that begins at step {}, got [{}, {})", state.position_,
                           part.begin, part.end);
  }
  if (part.feed_slots.size() != part.feeds.size()) {
    return InvalidArgument("expected {} feeds, got {}", part.feed_slots.size(), part.feeds.size());
  }
  if (part.fetch_slots.size() != part.fetches.size()) {
    return InvalidArgument("expected {} fetches, got {}", part.fetch_slots.size(),
                           part.fetches.size());
  }
  return OkStatus();
}

Result<std::shared_ptr<MemoryPlanCache>> Executor::FindRegion(const PartialRun& part) {
  const auto matches = [&](const std::shared_ptr<MemoryPlanCache>& known) {
    const Region& region = known->region();
    return region.begin == part.begin && region.end == part.end &&
           std::equal(region.feeds.begin(), region.feeds.end(), part.feed_slots.begin(),
                      part.feed_slots.end()) &&
           std::equal(region.fetches.begin(), region.fetches.end(), part.fetch_slots.begin(),
                      part.fetch_slots.end());
  };
  const MutexLock lock(mutex_);
  const auto known = std::find_if(parts_.begin(), parts_.end(), matches);
  if (known != parts_.end()) {
    std::rotate(parts_.begin(), known, known + 1);
    return parts_.front();
  }
  TENON_ASSIGN_OR_RETURN(
      Region region, ResolveRegion(plan_, part.begin, part.end, part.feed_slots, part.fetch_slots));
  if (parts_.size() == kMostParts) parts_.pop_back();
  parts_.insert(parts_.begin(),
                std::make_shared<MemoryPlanCache>(std::move(region), plan_.most_memory_plans));
  return parts_.front();
}

template <class Feed>
Status Executor::SetFeeds(Frame& frame, const Region& region, std::span<Feed> feeds) {
  const std::span<const Slot> slots = region.feeds;
  for (size_t i = 0; i < feeds.size(); ++i) {
    Value& value = frame.value(slots[i]);
    if (!feeds[i].has_value()) {
      if (region.is_whole && !value.has_value()) return InvalidArgument("input {} is missing", i);
      continue;
    }
    if (!region.is_whole && value.has_value() && !plan_.IsDefaultInput(slots[i])) {
      return InvalidArgument("value '{}' is set already", NameOf(slots[i]));
    }
    const Location& location = plan_.LocationOf(slots[i]);
    const bool is_there =
        !feeds[i].is_tensor() || feeds[i].tensor().memory().SameDevice(*location.memory);
    if (is_there) {
      value = std::move(feeds[i]);  // a copy of what is const
      continue;
    }
    const Tensor& feed = feeds[i].tensor();
    TENON_ASSIGN_OR_RETURN(Tensor copy, frame.Buffer(slots[i], feed.type(), feed.shape()));
    TENON_RETURN_IF_ERROR(plan_.transfers->CopyTensor(feed, copy));
    value = std::move(copy);
  }
  return OkStatus();
}

template <class Feed>
Status Executor::BindAndFeed(const RunScope& scope, const MemoryPlanCache& plans,
                             const MemoryPlanCache::Entry& entry, Frame& frame,
                             std::span<Feed> feeds) {
  const Region& region = plans.region();
  if (scope.meter != nullptr) scope.meter->set_paused(true);
  Status bound = frame.Bind(entry.memory());
  if (scope.meter != nullptr) scope.meter->set_paused(false);
  TENON_RETURN_IF_ERROR(std::move(bound));
  TENON_RETURN_IF_ERROR(SetFeeds<Feed>(frame, region, feeds));
  return CheckNeeded(region, frame);
}

Status Executor::RunRegion(const RunScope& outer, MemoryPlanCache& plans, Frame& frame,
                           std::span<const Value> feeds, std::span<Value> fetches) {
  const RunScope scope = WithStreams(outer, frame);
  const TraceSpan span(scope.profiler, TraceCategory::kSession, "SequentialExecutor::Execute");
  const auto entry = scope.dump == nullptr ? plans.Find(feeds, frame) : NoPlan();
  TENON_RETURN_IF_ERROR(BindAndFeed(scope, plans, *entry, frame, feeds));
  return RunSteps(scope, plans, entry, frame, fetches, false);
}

Status Executor::RunBody(const RunScope& outer, ExecutionState& state, std::span<Value> feeds,
                         std::span<Value> results) {
  if (feeds.size() != plan_.inputs.size()) {
    return InvalidArgument("expected {} feeds, got {}", plan_.inputs.size(), feeds.size());
  }
  Frame& frame = *state.frame_;
  const RunScope scope = WithStreams(outer, frame);
  const TraceSpan span(scope.profiler, TraceCategory::kSession, "SequentialExecutor::Execute");
  state.planned_ =
      scope.dump == nullptr ? whole_.FindAgain(feeds, frame, std::move(state.planned_)) : NoPlan();
  Status status = BindAndFeed(scope, whole_, *state.planned_, frame, feeds);
  std::fill(feeds.begin(), feeds.end(), Value());  // moved from, or copied to another device
  if (status.ok()) status = RunSteps(scope, whole_, state.planned_, frame, results, true);
  frame.Clear();
  return status;
}

Status Executor::RunSteps(const RunScope& scope, MemoryPlanCache& plans,
                          const std::shared_ptr<MemoryPlanCache::Entry>& entry, Frame& frame,
                          std::span<Value> fetches, bool lends) {
  const Region& region = plans.region();
  if (scope.dump != nullptr && region.begin == 0 && region.end > 0) {
    frame.set_execution(++executions_);
  }
  const bool is_planned = entry->memory() != nullptr;
  const PlannedMemory planned(scope.meter, plan_, entry->memory().get());
  if (lends) {
    for (Value& fetch : fetches) {
      if (!is_planned || !fetch.is_tensor() || fetch.is_shared()) fetch = Value();
    }
  }
  OfferOutputs(scope, region, frame, fetches);
  StepRunner steps(plan_, region, scope, frame);
  if (is_planned) {
    TENON_RETURN_IF_ERROR(PrepareOutputs(scope, region, frame, fetches));
    if (lends) std::fill(fetches.begin(), fetches.end(), Value());
    frame.BindMoving();
    TENON_RETURN_IF_ERROR(steps.RunPlanned());
  } else {
    RunRecord record(plan_.slot_count);
    TENON_RETURN_IF_ERROR(steps.RunRecorded(record));
    const bool is_kept = plan_.most_memory_plans > 0 && scope.dump == nullptr;
    if (is_kept) plans.Keep(entry, PlanMemory(plan_, region, record));
  }
  if (frame.keeps_values()) return OkStatus();
  return TakeOutputs(scope, region, frame, fetches);
}

// A part finds there what its steps read. (A whole plan does if all its inputs are fed.)
Status Executor::CheckNeeded(const Region& region, Frame& frame) const {
  for (const Slot slot : region.needed) {
    const ValueInfo& info = plan_.graph->value(plan_.value_of[static_cast<size_t>(slot)]);
    if (!frame.value(slot).has_value() && info.type.kind != Value::Kind::kOptional) {
      return InvalidArgument("value '{}' is needed from step {} on, and was neither made nor fed",
                             info.name, region.begin);
    }
  }
  return OkStatus();
}

std::string Executor::NameOf(Slot slot) const {
  return plan_.graph->value(plan_.value_of[static_cast<size_t>(slot)]).name;
}

Result<Tensor> Executor::AllocateIn(const MemoryInfo& memory, DataType type,
                                    const Shape& shape) const {
  for (const Location& location : plan_.locations) {
    if (location.memory->SameDevice(memory)) {
      return Tensor::Allocate(type, shape, location.allocator);
    }
  }
  return InvalidArgument("no provider of the session has memory '{}'", memory.name);
}

// Where the caller wants the i-th fetch.
const MemoryInfo& Executor::WantedMemory(const RunScope& scope, size_t i, const Value& fetch) {
  if (fetch.is_tensor()) return fetch.tensor().memory();
  const bool is_said = i < scope.fetch_memory.size() && scope.fetch_memory[i] != nullptr;
  return is_said ? *scope.fetch_memory[i] : CpuMemory();
}

// What a device finds at the same place in every run it need not bind again.
void Executor::OfferOutputs(const RunScope& scope, const Region& region, Frame& frame,
                            std::span<const Value> fetches) const {
  frame.ForgetOutputs();
  for (size_t i = 0; i < region.fetches.size() && plan_.locations.size() > 1; ++i) {
    const Slot slot = region.fetches[i];
    const MemoryInfo& memory = *plan_.LocationOf(slot).memory;
    if (memory.device_type == DeviceType::kCpu) continue;
    if (frame.keeps_values() || !WantedMemory(scope, i, fetches[i]).SameDevice(memory)) {
      frame.OfferBuffer(slot);
    } else if (fetches[i].is_tensor()) {
      frame.OfferOutput(slot, fetches[i].tensor());
    }
  }
}

// Gives outputs that have memory of their own that memory: the caller's, or new, or, for those that
// go elsewhere afterwards, the frame's.
Status Executor::PrepareOutputs(const RunScope& scope, const Region& region, Frame& frame,
                                std::span<Value> fetches) {
  const MemoryPlan& memory = *frame.memory();
  for (size_t i = 0; i < region.fetches.size(); ++i) {
    const Slot slot = region.fetches[i];
    const MemoryPlan::Binding& binding = memory.bindings[static_cast<size_t>(slot)];
    if (binding.place != MemoryPlan::Place::kOutput || binding.root != slot) continue;
    if (frame.value(slot).has_value()) continue;  // the same value is an output twice
    const Location& location = plan_.LocationOf(slot);
    const bool stays =
        !frame.keeps_values() && WantedMemory(scope, i, fetches[i]).SameDevice(*location.memory);
    const bool is_given = stays && fetches[i].is_tensor() &&
                          fetches[i].tensor().type() == binding.type &&
                          fetches[i].tensor().shape() == binding.shape;
    if (is_given) {
      frame.value(slot) = fetches[i];
      continue;
    }
    TENON_ASSIGN_OR_RETURN(Tensor tensor,
                           stays ? Tensor::Allocate(binding.type, binding.shape, location.allocator)
                                 : frame.Buffer(slot, binding.type, binding.shape));
    frame.value(slot) = std::move(tensor);
  }
  return OkStatus();
}

Status Executor::TakeOutputs(const RunScope& scope, const Region& region, Frame& frame,
                             std::span<Value> fetches) {
  for (size_t i = 0; i < region.fetches.size(); ++i) {
    const Slot slot = region.fetches[i];
    if (!frame.value(slot).has_value()) return Fail("output '{}' was not produced", NameOf(slot));
    // The caller of a session may keep and change what it gets, so it gets memory that nobody else
    // refers to. Control flow and parts share what is no constant.
    const bool may_share = scope.place != nullptr || (!region.is_whole && !plan_.IsConstant(slot));
    TENON_RETURN_IF_ERROR(
        TakeOutput(scope, frame, slot, WantedMemory(scope, i, fetches[i]), may_share, fetches[i]));
  }
  return OkStatus();
}

Status Executor::TakeOutput(const RunScope& scope, Frame& frame, Slot slot,
                            const MemoryInfo& wanted, bool may_share, Value& fetch) {
  const Value& value = frame.value(slot);
  if (fetch.is_tensor() && !value.is_tensor()) {
    return InvalidArgument("output '{}' is a {}, not a tensor", NameOf(slot),
                           ValueKindName(value.kind()));
  }
  if (!value.is_tensor()) {
    TENON_ASSIGN_OR_RETURN(fetch, may_share ? Retain(value) : Detach(value));
    return OkStatus();
  }
  const Tensor& from = value.tensor();
  if (fetch.is_tensor()) {
    const Tensor& into = fetch.tensor();
    if (from.type() != into.type() || !(from.shape() == into.shape())) {
      return InvalidArgument("output '{}': the given tensor is {} {}, but the result is {} {}",
                             NameOf(slot), DataTypeName(into.type()), into.shape(),
                             DataTypeName(from.type()), from.shape());
    }
    if (from.raw() == into.raw()) return OkStatus();
  }
  // Only the slab's memory, which has no owner, must never leave, nor what the frame keeps.
  const bool is_there = !frame.keeps_values() && !fetch.is_tensor() &&
                        from.memory().SameDevice(wanted) && from.owner() != nullptr &&
                        (from.owner().use_count() == 1 || may_share);
  if (is_there) {
    fetch = value;
    return OkStatus();
  }
  const int32_t producer = plan_.stream_of[static_cast<size_t>(slot)];
  if (producer >= 0) {
    TENON_ASSIGN_OR_RETURN(Stream * stream, scope.streams->Of(producer));
    TENON_RETURN_IF_ERROR(WaitFor(*stream, nullptr));
  }
  if (!fetch.is_tensor()) {
    TENON_ASSIGN_OR_RETURN(Tensor copy, AllocateIn(wanted, from.type(), from.shape()));
    fetch = std::move(copy);
  }
  return plan_.transfers->CopyTensor(from, fetch.tensor());
}

}  // namespace tenon
