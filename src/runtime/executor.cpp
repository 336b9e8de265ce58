#include "runtime/executor.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "runtime/data_transfer.h"
#include "runtime/profiler.h"
#include "runtime/run_meter.h"
#include "runtime/step_runner.h"

namespace tenon {
namespace {

// How many different parts of the plan an executor remembers.
constexpr size_t kMostParts = 64;

// Counts the memory that a memory plan holds, for as long as this object lives.
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

// Binds the frame to the plan; to none if there is no memory for the slabs: a run without a plan
// needs less at once, or tells which value got no memory.
void BindMemory(const RunScope& scope, std::shared_ptr<const MemoryPlan> memory, Frame& frame) {
  if (scope.meter != nullptr) scope.meter->set_paused(true);
  if (!frame.Bind(std::move(memory)).ok()) (void)frame.Bind(nullptr);
  if (scope.meter != nullptr) scope.meter->set_paused(false);
}

// The run's scope with its streams, which are those of the outermost plan's frame.
RunScope WithStreams(const RunScope& scope, Frame& frame) {
  RunScope result = scope;
  if (result.streams == nullptr) result.streams = &frame.streams();
  return result;
}

// The memory in which the caller wants the i-th fetch.
const MemoryInfo& WantedMemory(const RunArguments& run, size_t i) {
  if (run.fetches[i].is_tensor()) return run.fetches[i].tensor().memory();
  const bool is_said = i < run.fetch_memory.size() && run.fetch_memory[i] != nullptr;
  return is_said ? *run.fetch_memory[i] : CpuMemory();
}

void DropFramesOf(StepBody& body) {
  body.frames().Drop();
  for (const Step& step : body.plan().steps) {
    for (const auto& subgraph : step.subgraphs) DropFramesOf(*subgraph);
  }
}

void ShrinkAllocatorsOf(const Plan& plan) {
  for (const Location& location : plan.locations) (void)location.allocator->Shrink();
  (void)plan.work_memory->Shrink();
  for (const Step& step : plan.steps) {
    for (const auto& subgraph : step.subgraphs) ShrinkAllocatorsOf(subgraph->plan());
  }
}

bool Overlap(const Tensor& a, const Tensor& b) {
  const auto* const a_begin = static_cast<const std::byte*>(a.raw());
  const auto* const b_begin = static_cast<const std::byte*>(b.raw());
  return a_begin < b_begin + b.bytes() && b_begin < a_begin + a.bytes();
}

// Whether the place of an output may be `tensor`, which is the caller's. If it is a feed, too, such
// as a cache, nothing may be written there before the last step that reads the feed: neither the
// output nor values that the plan has put into the output's place. The output's own step may read
// the feed: the caller says by the binding that it can work in place.
bool MayBePlace(const Tensor& tensor, Slot output, const Plan& plan, const Region& region,
                Frame& frame) {
  const int32_t made_at = plan.made_at[static_cast<size_t>(output)];
  bool is_fed = false;
  for (const Slot slot : region.feeds) {
    const Value& feed = frame.value(slot);
    if (!feed.is_tensor() || !Overlap(feed.tensor(), tensor)) continue;
    is_fed = true;
    if (made_at < plan.last_memory_use[static_cast<size_t>(slot)]) return false;
    if (made_at < 0 || region.IsFetched(slot)) return false;
    const KernelTraits& traits = plan.steps[static_cast<size_t>(made_at)].traits;
    if (traits.allocates_outputs && !traits.may_write_feeds) return false;
  }
  const MemoryPlan* const memory = frame.memory();
  if (!is_fed || memory == nullptr) return true;
  return std::none_of(memory->moving.begin(), memory->moving.end(), [&](Slot slot) {
    return memory->bindings[static_cast<size_t>(slot)].root == output;
  });
}

}  // namespace

Executor::Executor(Plan plan)
    : plan_(std::move(plan)), frames_(plan_), whole_(WholePlan(plan_), plan_.most_memory_plans) {}

Executor::~Executor() = default;

void Executor::DropFrames() { DropFramesOf(*this); }

void Executor::Trim() {
  DropFrames();
  ShrinkAllocatorsOf(plan_);
}

Status Executor::Run(const RunScope& scope, Frame& frame, const RunArguments& run) {
  if (run.part) return RunPart(scope, frame, run);
  if (frame.keeps_values()) frame.Clear();  // values of the previous run
  if (run.feeds.size() != plan_.inputs.size()) {
    return InvalidArgument("expected {} feeds, got {}", plan_.inputs.size(), run.feeds.size());
  }
  const Status status = RunRegion(scope, whole_, frame, run.feeds, run);
  if (!frame.keeps_values()) frame.Clear();
  return status;
}

Status Executor::RunBody(const RunScope& scope, Frame& frame, std::span<Value> feeds,
                         std::span<Value> results) {
  if (feeds.size() != plan_.inputs.size()) {
    return InvalidArgument("expected {} feeds, got {}", plan_.inputs.size(), feeds.size());
  }
  const Status status = RunRegion(scope, whole_, frame, feeds, {.fetches = results});
  frame.Clear();
  return status;
}

Status Executor::FetchAgain(const RunScope& outer, Frame& frame, const RunArguments& run) {
  const RunScope scope = WithStreams(outer, frame);
  return TakeOutputs(scope, run, whole_.region(), frame);
}

Status Executor::RunPart(const RunScope& scope, Frame& frame, const RunArguments& run) {
  const FrameUse use(frame);
  if (!use.is_alone()) return Fail("the execution state is in use");
  TENON_RETURN_IF_ERROR(CheckPart(frame, run));
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryPlanCache> plans, FindRegion(*run.part));
  frame.BeginPart(plans->region());
  const Status status = RunRegion(scope, *plans, frame, run.feeds, run);
  frame.EndPart(plans->region(), status.ok());
  return status;
}

Status Executor::CheckPart(const Frame& frame, const RunArguments& run) const {
  const PlanPart& part = *run.part;
  if (frame.has_failed()) return Fail("an earlier part of this execution failed");
  if (part.begin != frame.position()) {
    return InvalidArgument("expected a part that begins at step {}, got [{}, {})", frame.position(),
                           part.begin, part.end);
  }
  if (part.feeds.size() != run.feeds.size()) {
    return InvalidArgument("expected {} feeds, got {}", part.feeds.size(), run.feeds.size());
  }
  if (part.fetches.size() != run.fetches.size()) {
    return InvalidArgument("expected {} fetches, got {}", part.fetches.size(), run.fetches.size());
  }
  return OkStatus();
}

Result<std::shared_ptr<MemoryPlanCache>> Executor::FindRegion(const PlanPart& part) {
  const auto matches = [&](const std::shared_ptr<MemoryPlanCache>& known) {
    const Region& region = known->region();
    return region.begin == part.begin && region.end == part.end &&
           std::equal(region.feeds.begin(), region.feeds.end(), part.feeds.begin(),
                      part.feeds.end()) &&
           std::equal(region.fetches.begin(), region.fetches.end(), part.fetches.begin(),
                      part.fetches.end());
  };
  const MutexLock lock(mutex_);
  const auto known = std::find_if(parts_.begin(), parts_.end(), matches);
  if (known != parts_.end()) {
    std::rotate(parts_.begin(), known, known + 1);
    return parts_.front();
  }
  TENON_ASSIGN_OR_RETURN(Region region,
                         ResolveRegion(plan_, part.begin, part.end, part.feeds, part.fetches));
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
      value = std::move(feeds[i]);  // const feeds are copied
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
Status Executor::RunRegion(const RunScope& outer, MemoryPlanCache& plans, Frame& frame,
                           std::span<Feed> feeds, const RunArguments& run) {
  constexpr bool kIsBody = !std::is_const_v<Feed>;
  const Region& region = plans.region();
  const RunScope scope = WithStreams(outer, frame);
  const TraceSpan span(scope.profiler, TraceCategory::kSession, "SequentialExecutor::Execute");

  std::shared_ptr<MemoryPlanEntry>& entry = frame.last_plan();
  entry =
      region.is_whole ? plans.FindAgain(feeds, frame, std::move(entry)) : plans.Find(feeds, frame);
  const bool plans_memory =
      plan_.most_memory_plans > 0 && scope.plans_memory && scope.dump == nullptr;
  BindMemory(scope, plans_memory ? entry->memory() : nullptr, frame);
  TENON_RETURN_IF_ERROR(SetFeeds<Feed>(frame, region, feeds));
  TENON_RETURN_IF_ERROR(CheckNeeded(region, frame));
  StepRunner steps(plan_, region, scope, frame, run.given);
  if (plans_memory && entry->memory() == nullptr) {
    RunRecord record(plan_.slot_count);
    TENON_ASSIGN_OR_RETURN(const bool is_right, steps.Trace(record));
    auto memory = is_right ? PlanMemory(plan_, region, record) : nullptr;
    if (memory != nullptr) {
      plans.Keep(entry, std::move(memory));
      BindMemory(scope, entry->memory(), frame);
    }
  }
  const bool is_planned = frame.memory() != nullptr;
  if constexpr (kIsBody) {
    std::fill(feeds.begin(), feeds.end(), Value());  // the frame has them now
    for (Value& fetch : run.fetches) {
      if (!is_planned || !fetch.is_tensor() || fetch.is_shared()) fetch = Value();
    }
  }
  OfferOutputs(run, region, frame);

  if (scope.dump != nullptr && region.begin == 0 && region.end > 0) {
    frame.set_execution(++executions_);
  }
  const PlannedMemory planned(scope.meter, plan_, frame.memory());
  if (is_planned) {
    TENON_RETURN_IF_ERROR(PrepareOutputs(run, region, frame));
    if (kIsBody) std::fill(run.fetches.begin(), run.fetches.end(), Value());
    frame.BindMoving();
    TENON_RETURN_IF_ERROR(steps.RunPlanned());
  } else {
    TENON_RETURN_IF_ERROR(steps.RunUnplanned());
  }
  if (frame.keeps_values()) return OkStatus();
  return TakeOutputs(scope, run, region, frame);
}

// Checks that every value that the region's steps read is in the frame.
Status Executor::CheckNeeded(const Region& region, const Frame& frame) const {
  for (const Slot slot : region.needed) {
    const ValueInfo& info = plan_.graph->value(plan_.value_of[static_cast<size_t>(slot)]);
    if (!frame.ValueOf(slot).has_value() && info.type.kind != Value::Kind::kOptional) {
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

// Outputs whose steps allocate them go to the caller's tensors at once. A device need not bind an
// output again that lies at the same place in every run.
void Executor::OfferOutputs(const RunArguments& run, const Region& region, Frame& frame) const {
  frame.ForgetOutputs();
  const MemoryPlan* const plan = frame.memory();
  for (size_t i = 0; i < region.fetches.size(); ++i) {
    const Slot slot = region.fetches[i];
    const MemoryPlan::Place place = plan == nullptr
                                        ? MemoryPlan::Place::kDynamic
                                        : plan->bindings[static_cast<size_t>(slot)].place;
    if (place != MemoryPlan::Place::kDynamic) continue;
    const MemoryInfo& memory = *plan_.LocationOf(slot).memory;
    const bool stays = !frame.keeps_values() && WantedMemory(run, i).SameDevice(memory);
    if (!stays && memory.device_type != DeviceType::kCpu) frame.OfferBuffer(slot);
    if (!stays || !run.fetches[i].is_tensor()) continue;
    const Tensor& given = run.fetches[i].tensor();
    if (MayBePlace(given, slot, plan_, region, frame)) frame.OfferOutput(slot, given);
  }
}

// Gives memory to outputs that the plan puts in memory of their own: the caller's tensor, or, if
// the output is copied elsewhere afterwards, the frame's buffer. Others get new memory when they
// are first written; at once if the plan does not tell when.
Status Executor::PrepareOutputs(const RunArguments& run, const Region& region, Frame& frame) {
  const MemoryPlan& memory = *frame.memory();
  for (size_t i = 0; i < region.fetches.size(); ++i) {
    const Slot slot = region.fetches[i];
    const MemoryPlan::Binding& binding = memory.bindings[static_cast<size_t>(slot)];
    if (binding.place != MemoryPlan::Place::kOutput || binding.root != slot) continue;
    if (frame.value(slot).has_value()) continue;  // the same value is an output twice
    const Location& location = plan_.LocationOf(slot);
    const bool stays = !frame.keeps_values() && WantedMemory(run, i).SameDevice(*location.memory);
    const Value& fetch = run.fetches[i];
    const bool is_given = stays && fetch.is_tensor() && fetch.tensor().type() == binding.type &&
                          fetch.tensor().shape() == binding.shape &&
                          MayBePlace(fetch.tensor(), slot, plan_, region, frame);
    if (is_given) {
      frame.value(slot) = fetch;
      continue;
    }
    if (stays && !memory.first_uses.empty()) continue;
    TENON_ASSIGN_OR_RETURN(Tensor tensor,
                           stays ? Tensor::Allocate(binding.type, binding.shape, location.allocator)
                                 : frame.Buffer(slot, binding.type, binding.shape));
    frame.value(slot) = std::move(tensor);
  }
  return OkStatus();
}

Status Executor::TakeOutputs(const RunScope& scope, const RunArguments& run, const Region& region,
                             Frame& frame) {
  for (size_t i = 0; i < region.fetches.size(); ++i) {
    const Slot slot = region.fetches[i];
    if (!frame.value(slot).has_value()) return Fail("output '{}' was not produced", NameOf(slot));
    // The caller of a session may keep and change its outputs, so nothing else may refer to their
    // memory. Control flow and parts may share values that are no constants.
    const bool may_share = scope.place != nullptr || (!region.is_whole && !plan_.IsConstant(slot));
    TENON_RETURN_IF_ERROR(
        TakeOutput(scope, frame, slot, WantedMemory(run, i), may_share, run.fetches[i]));
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
  // Memory of a slab, which has no owner, and values that the frame keeps must not leave the frame.
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
