#include "runtime/captured_runs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/node_error.h"
#include "runtime/data_transfer.h"
#include "runtime/provider.h"

namespace tenon {
namespace {

// At most so often a run is executed until the provider has recorded it; it may warm up first.
constexpr int kMostRuns = 8;

// Which values of a plan depend on shapes alone, by slot.
struct ShapeSlots {
  explicit ShapeSlots(const Plan& plan)
      : is_shape(plan.is_constant), is_read(plan.slot_count, false) {
    for (const Step& step : plan.steps) {
      const std::span<const Slot> inputs = plan.InputsOf(step);
      const bool follows = std::all_of(inputs.begin(), inputs.end(), [&](Slot slot) {
        return slot == kNoSlot || is_shape[static_cast<size_t>(slot)];
      });
      for (const Slot slot : plan.OutputsOf(step)) {
        if (slot == kNoSlot) continue;
        is_shape[static_cast<size_t>(slot)] = follows || step.traits.reads_shapes_only;
      }
      for (const Slot slot : inputs) {
        if (slot == kNoSlot || step.traits.reads_shapes_only) continue;
        is_read[static_cast<size_t>(slot)] = true;
      }
    }
    for (const PlanOutput& output : plan.outputs) is_read[static_cast<size_t>(output.slot)] = true;
  }

  // Whether running the step again would change nothing that is read.
  bool IsDone(const Plan& plan, const Step& step) const {
    const std::span<const Slot> outputs = plan.OutputsOf(step);
    return std::all_of(outputs.begin(), outputs.end(), [&](Slot slot) {
      if (slot == kNoSlot) return true;
      return is_shape[static_cast<size_t>(slot)] || !is_read[static_cast<size_t>(slot)];
    });
  }

  std::vector<bool> is_shape;
  std::vector<bool> is_read;  // for its elements, not only for its shape
};

// Whether the plan added the step to copy a value to another memory; the host does such steps.
bool IsCopy(const Plan& plan, const Step& step) {
  return std::any_of(plan.own_nodes.begin(), plan.own_nodes.end(),
                     [&](const auto& node) { return node.get() == step.node; });
}

}  // namespace

// A run that was recorded or is about to be recorded.
struct CapturedRuns::Kept {
  explicit Kept(Executor& executor) : frame(executor.frames()) { frame->KeepValues(); }
  const FrameLease frame;
  std::vector<Value> feeds;  // copies on the device
};

CapturedRuns::CapturedRuns(ExecutionProvider& provider, GraphCapture& capture, Executor& executor)
    : provider_(provider), capture_(capture), executor_(executor) {}

CapturedRuns::~CapturedRuns() = default;

Result<std::unique_ptr<CapturedRuns>> CapturedRuns::Make(
    std::span<ExecutionProvider* const> providers, Executor& executor) {
  for (size_t i = 0; i < providers.size(); ++i) {
    GraphCapture* const capture = providers[i]->graph_capture();
    if (capture == nullptr) continue;
    std::unique_ptr<CapturedRuns> runs(new CapturedRuns(*providers[i], *capture, executor));
    TENON_RETURN_IF_ERROR(runs->CheckPlan(static_cast<int32_t>(i)));
    return runs;
  }
  return nullptr;
}

// A replay repeats only what the provider did, so no other step may do work in a run.
Status CapturedRuns::CheckPlan(int32_t provider) const {
  const Plan& plan = executor_.plan();
  const bool may_shape = capture_.policy() == CapturePolicy::kCpuForShapes;
  const ShapeSlots shapes(plan);
  const auto check = [&](const Step& step, bool is_copy) -> Status {
    if (!step.subgraphs.empty()) {
      return Fail("{} cannot capture the graph: {} is control flow", provider_.name(),
                  DescribeOperator(*step.node));
    }
    if (step.node->provider == provider && !is_copy) return OkStatus();
    const bool is_last = step.node->provider + 1 == static_cast<int32_t>(plan.providers.size());
    if (may_shape && (is_last || is_copy) && shapes.IsDone(plan, step)) return OkStatus();
    const auto owner = static_cast<size_t>(step.node->provider);
    return Fail("{} cannot capture the graph: {} runs on {}", provider_.name(),
                DescribeOperator(*step.node), is_copy ? "the host" : plan.providers[owner]->name());
  };
  // Nodes are checked before copies: an error about a node explains more.
  for (const bool are_copies : {false, true}) {
    for (const Step& step : plan.steps) {
      if (IsCopy(plan, step) == are_copies) TENON_RETURN_IF_ERROR(check(step, are_copies));
    }
  }
  return OkStatus();
}

Result<std::vector<Value>> CapturedRuns::Stage(std::span<const Value> feeds) const {
  const Plan& plan = executor_.plan();
  std::vector<Value> staged(feeds.size());
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (!feeds[i].has_value()) continue;
    if (!feeds[i].is_tensor()) {
      return NotImplemented("{} captures graphs of tensors; input {} is a {}", provider_.name(), i,
                            ValueKindName(feeds[i].kind()));
    }
    const Tensor& feed = feeds[i].tensor();
    TENON_ASSIGN_OR_RETURN(
        Tensor copy,
        Tensor::Allocate(feed.type(), feed.shape(), plan.LocationOf(plan.inputs[i]).allocator));
    TENON_RETURN_IF_ERROR(plan.transfers->CopyTensor(feed, copy));
    staged[i] = std::move(copy);
  }
  return staged;
}

Status CapturedRuns::StageAgain(std::span<const Value> feeds, Kept& kept) const {
  const Plan& plan = executor_.plan();
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Value& before = kept.feeds[i];
    const std::string& name =
        plan.graph->value(plan.value_of[static_cast<size_t>(plan.inputs[i])]).name;
    if (!feeds[i].is_tensor() || !before.is_tensor()) {
      if (!feeds[i].has_value() && !before.has_value()) continue;
      return InvalidArgument("input '{}': the captured run {}; another gpu_graph_id captures anew",
                             name, before.has_value() ? "was fed a tensor" : "was fed nothing");
    }
    const Tensor& feed = feeds[i].tensor();
    const Tensor& tensor = before.tensor();
    if (feed.type() != tensor.type() || !(feed.shape() == tensor.shape())) {
      return InvalidArgument(
          "input '{}': expected {} {} as in the captured run, got {} {}; another gpu_graph_id "
          "captures anew",
          name, DataTypeName(tensor.type()), tensor.shape(), DataTypeName(feed.type()),
          feed.shape());
    }
    Tensor into = tensor;
    TENON_RETURN_IF_ERROR(plan.transfers->CopyTensor(feed, into));
  }
  return OkStatus();
}

CapturedRuns::Turn::Turn(CapturedRuns* runs, int32_t id, const RunArguments& run)
    : runs_(runs), id_(id), arguments_(run) {
  if (runs_ != nullptr) lock_ = DeferredLock(runs_->mutex_);
}

CapturedRuns::Turn::~Turn() = default;

Frame* CapturedRuns::Turn::frame() const { return kept_ == nullptr ? nullptr : &*kept_->frame; }

Status CapturedRuns::Turn::Begin(const RunScope& scope) {
  if (runs_ == nullptr) return OkStatus();
  if (runs_->capture_.IsCaptured(id_)) {
    is_to_execute_ = false;
    return runs_->Replay(id_, scope, arguments_);
  }
  runs_->kept_.erase(id_);
  kept_ = std::make_unique<Kept>(runs_->executor_);
  TENON_ASSIGN_OR_RETURN(kept_->feeds, runs_->Stage(arguments_.feeds));
  arguments_.feeds = kept_->feeds;
  return OkStatus();
}

Status CapturedRuns::Turn::EndExecution(Status status, const RunScope& scope) {
  is_to_execute_ = false;
  if (runs_ == nullptr) return status;
  const bool is_captured = runs_->capture_.IsCaptured(id_);
  if (!status.ok()) {
    // A run that failed half-way must not be replayed.
    if (is_captured) (void)runs_->capture_.Release(id_);
    return status;
  }
  if (is_captured) {
    const Kept& recorded = *runs_->kept_.emplace(id_, std::move(kept_)).first->second;
    return runs_->executor_.FetchAgain(scope, *recorded.frame, arguments_);
  }
  if (++executions_ == kMostRuns) {
    return Fail("{} has not captured graph {} in {} runs", runs_->provider_.name(), id_, kMostRuns);
  }
  is_to_execute_ = true;
  return OkStatus();
}

Status CapturedRuns::Replay(int32_t id, const RunScope& scope, const RunArguments& run) {
  const auto recorded = kept_.find(id);
  if (recorded == kept_.end()) {
    return Fail("{} says that it has captured graph {}, which no run of the session had",
                provider_.name(), id);
  }
  Kept& kept = *recorded->second;
  // A graph that only passes its inputs on has no steps.
  const std::vector<Step>& steps = executor_.plan().steps;
  if (!steps.empty()) TENON_RETURN_IF_ERROR(scope.CheckStop(*steps.front().node));
  TENON_RETURN_IF_ERROR(StageAgain(run.feeds, kept));
  TENON_RETURN_IF_ERROR(capture_.Replay(id));
  TENON_RETURN_IF_ERROR(provider_.Synchronize());
  return executor_.FetchAgain(scope, *kept.frame, run);
}

Status CapturedRuns::Release(int32_t id) {
  const MutexLock lock(mutex_);
  Status status = capture_.Release(id);
  if (!capture_.IsCaptured(id)) kept_.erase(id);
  return status;
}

}  // namespace tenon
