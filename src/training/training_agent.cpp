#include "training/training_agent.h"

#include <algorithm>
#include <utility>

#include "base/logging.h"
#include "runtime/executor.h"

namespace tenon {
namespace {

std::string_view NameOf(const Plan& plan, Slot slot) {
  return plan.graph->value(plan.value_of[static_cast<size_t>(slot)]).name;
}

// The values among `slots`, which may leave some out.
void Append(const Plan& plan, std::span<const Slot> slots, std::vector<Slot>& into,
            std::vector<std::string>& names) {
  for (const Slot slot : slots) {
    if (slot == kNoSlot) continue;
    into.push_back(slot);
    names.emplace_back(NameOf(plan, slot));
  }
}

Result<std::vector<Slot>> FindInputs(const Plan& plan, const std::vector<std::string>& names) {
  std::vector<Slot> slots;
  for (const std::string& name : names) {
    const auto found = std::find_if(plan.inputs.begin(), plan.inputs.end(),
                                    [&](Slot slot) { return NameOf(plan, slot) == name; });
    if (found == plan.inputs.end()) {
      return InvalidArgument("'{}' is not an input of the training graph", name);
    }
    slots.push_back(*found);
  }
  return slots;
}

Result<std::vector<Slot>> FindOutputs(const Plan& plan, const std::vector<std::string>& names) {
  std::vector<Slot> slots;
  for (const std::string& name : names) {
    const auto found = std::find_if(plan.outputs.begin(), plan.outputs.end(),
                                    [&](const PlanOutput& output) { return output.name == name; });
    if (found == plan.outputs.end()) {
      return InvalidArgument("'{}' is not an output of the training graph", name);
    }
    slots.push_back(found->slot);
  }
  return slots;
}

}  // namespace

Result<std::unique_ptr<TrainingAgent>> TrainingAgent::Create(std::shared_ptr<Session> session,
                                                             TrainingAgentParts parts) {
  std::unique_ptr<TrainingAgent> agent(new TrainingAgent(std::move(session)));
  TENON_RETURN_IF_ERROR(agent->FindStages(std::move(parts)));
  agent->StartProfile();
  return agent;
}

Status TrainingAgent::FindStages(TrainingAgentParts parts) {
  if (session_->options().is_parallel) {
    return InvalidArgument("expected a session with sequential execution mode for a TrainingAgent");
  }
  const Plan& plan = session_->executor().plan();
  Stage stage;
  TENON_ASSIGN_OR_RETURN(stage.feeds, FindInputs(plan, parts.feed_names));
  stage.feed_names = std::move(parts.feed_names);
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const std::span<const Slot> outputs = plan.OutputsOf(step);
    if (!step.traits.yields) {
      const bool has_one = outputs.size() == 1 && outputs[0] != kNoSlot;
      if (has_one) stage.cacheable.emplace(NameOf(plan, outputs[0]), outputs[0]);
      continue;
    }
    stage.end = i;
    Append(plan, plan.InputsOf(step), stage.fetches, stage.fetch_names);
    stages_.push_back(std::exchange(stage, Stage()));
    stage.begin = i;
    Append(plan, outputs, stage.feeds, stage.feed_names);
  }
  if (stages_.empty()) {
    return InvalidArgument("graph '{}' has no YieldOp, which divides it into stages",
                           plan.graph->name);
  }
  stage.end = static_cast<uint32_t>(plan.steps.size());
  TENON_ASSIGN_OR_RETURN(stage.fetches, FindOutputs(plan, parts.fetch_names));
  stage.fetch_names = std::move(parts.fetch_names);
  stages_.push_back(std::move(stage));
  if (parts.fetch_memory.size() != stages_.size()) {
    return InvalidArgument("expected a list of memories for each of {} stages, got {}",
                           stages_.size(), parts.fetch_memory.size());
  }
  for (size_t i = 0; i < stages_.size(); ++i) {
    stages_[i].fetch_memory = std::move(parts.fetch_memory[i]);
    if (stages_[i].fetch_memory.size() == stages_[i].fetches.size()) continue;
    return InvalidArgument("stage {}: expected a memory for each of {} fetches, got {}", i,
                           stages_[i].fetches.size(), stages_[i].fetch_memory.size());
  }
  return OkStatus();
}

void TrainingAgent::StartProfile() {
  const StringMap& config = session_->options().config;
  const auto entry = config.find("tenon.memory_profile");
  if (entry == config.end() || entry->second.empty()) return;
  profile_ = std::make_unique<MemoryProfile>(entry->second, session_->executor().plan(),
                                             session_->logger());
}

Status TrainingAgent::RunStage(size_t stage, const RunOptions& options,
                               std::span<const Value> feeds, std::vector<Value>& fetches,
                               PartialGraphExecutionState& state, const ValueCache* cache) const {
  if (stage >= stages_.size()) {
    return InvalidArgument("expected one of {} stages, got {}", stages_.size(), stage);
  }
  if (state.is_running_.exchange(true)) return Fail("the execution state is in use");
  Status status = RunLocked(stage, options, feeds, fetches, state, cache);
  state.is_running_ = false;
  return status;
}

Status TrainingAgent::RunLocked(size_t index, const RunOptions& options,
                                std::span<const Value> feeds, std::vector<Value>& fetches,
                                PartialGraphExecutionState& state, const ValueCache* cache) const {
  const Stage& stage = stages_[index];
  if (state.session_ != nullptr && state.session_ != session_) {
    return InvalidArgument("the execution state belongs to another session");
  }
  if (state.stage_ != index) {
    return state.stage_ == stages_.size()
               ? InvalidArgument("all stages of the execution state have run")
               : InvalidArgument("expected stage {} of the execution state to run next, got {}",
                                 state.stage_, index);
  }
  if (feeds.size() != stage.feeds.size()) {
    return InvalidArgument("expected {} feeds, got {}", stage.feeds.size(), feeds.size());
  }
  std::vector<Slot> slots = stage.feeds;
  std::vector<Value> values(feeds.begin(), feeds.end());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].has_value()) return InvalidArgument("feed '{}' is empty", stage.feed_names[i]);
  }
  if (cache != nullptr) {
    for (const auto& [name, value] : cache->values()) {
      const auto found = stage.cacheable.find(name);
      if (found == stage.cacheable.end()) continue;
      TENON_VLOG(session_->logger(), 1, "'{}' comes from the cache", name);
      slots.push_back(found->second);
      values.push_back(value);
    }
  }
  fetches.resize(stage.fetches.size());
  if (state.session_ == nullptr) {
    state.session_ = session_;
    state.frame_.emplace(session_->executor().frames());
  }
  if (profile_ && index == 0) state.iteration_ = iterations_.fetch_add(1);
  Status status = session_->RunPart(
      options, **state.frame_,
      {values, fetches, stage.fetch_memory, PlanPart{stage.begin, stage.end, slots, stage.fetches}},
      profile_ ? &state.placements_ : nullptr);
  if (status.ok()) ++state.stage_;
  // After a failure the state keeps what it knows.
  if (profile_ && (!status.ok() || state.stage_ == stages_.size())) {
    profile_->Add(state.iteration_, state.placements_);
    if (status.ok()) state.placements_.clear();
  }
  return status;
}

}  // namespace tenon
