// Runs a training graph in stages, which its YieldOps divide: forward and backward, or more.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/frame_pool.h"
#include "runtime/placement.h"
#include "runtime/session.h"
#include "training/memory_profile.h"
#include "training/value_cache.h"

namespace tenon {

// One execution of all stages: the values that earlier stages leave to later ones. It belongs to
// the session of its first stage and keeps that alive. Only one thread at a time may use it; a
// second one gets an error.
class PartialGraphExecutionState {
 public:
  PartialGraphExecutionState() = default;
  // Frees every value that it still holds, and its streams.
  ~PartialGraphExecutionState() = default;
  PartialGraphExecutionState(const PartialGraphExecutionState&) = delete;
  PartialGraphExecutionState& operator=(const PartialGraphExecutionState&) = delete;

 private:
  friend class TrainingAgent;

  std::shared_ptr<Session> session_;
  std::optional<FrameLease> frame_;  // goes before the session does
  size_t stage_ = 0;                 // the next one
  uint64_t iteration_ = 0;           // of the agent's memory profile
  std::vector<Placement> placements_;
  std::atomic<bool> is_running_ = false;
};

// The stages of a graph. Stage i ends before the i-th YieldOp in the order of execution: it returns
// that node's inputs, and the next stage takes that node's outputs.
struct TrainingAgentParts {
  // Inputs of the graph, in the order in which the first stage is fed.
  std::vector<std::string> feed_names;
  // Outputs of the graph, in the order in which the last stage gives them.
  std::vector<std::string> fetch_names;
  // The memories of the fetches, which outlive the agent: one list per stage, one entry per fetch.
  std::vector<std::vector<const MemoryInfo*>> fetch_memory;
};

// Thread-safe: several states may be at any stages at the same time.
class TrainingAgent {
 public:
  // Keeps the session alive. Errors: kInvalidArgument for a graph without YieldOp, a name that the
  // graph does not have, lists of memories that do not fit the stages' fetches, and for a session
  // that is to run branches in parallel.
  static Result<std::unique_ptr<TrainingAgent>> Create(std::shared_ptr<Session> session,
                                                       TrainingAgentParts parts);

  // The rank of the process on its machine, for the name of the memory profile. Not to be called
  // while stages run.
  void SetLocalRank(int32_t rank) {
    if (profile_) profile_->set_local_rank(rank);
  }

  size_t stage_count() const { return stages_.size(); }
  // Names of the inputs and outputs of a stage, in order.
  std::span<const std::string> feed_names(size_t stage) const { return stages_[stage].feed_names; }
  std::span<const std::string> fetch_names(size_t stage) const {
    return stages_[stage].fetch_names;
  }

  // Runs the next stage of `state`.
  // feeds    one value per entry of feed_names(stage); shared, not copied
  // fetches  gets one value per entry of fetch_names(stage): it is resized, and a tensor that is
  //          there is written in place
  // cache    values that replace the only output of a step, by name, so that the step does not run;
  //          may be null. Not changed.
  // errors   kInvalidArgument  a stage out of turn, a state of another session, as many feeds as
  // are
  //                            not expected, a feed or cached value of another type or shape
  //          kFail             the state is in use, or one of its stages failed
  //          otherwise the code of the failing node
  Status RunStage(size_t stage, const RunOptions& options, std::span<const Value> feeds,
                  std::vector<Value>& fetches, PartialGraphExecutionState& state,
                  const ValueCache* cache = nullptr) const;
  // The first stage and the last.
  Status RunForward(const RunOptions& options, std::span<const Value> feeds,
                    std::vector<Value>& fetches, PartialGraphExecutionState& state,
                    const ValueCache* cache = nullptr) const {
    return RunStage(0, options, feeds, fetches, state, cache);
  }
  Status RunBackward(const RunOptions& options, std::span<const Value> feeds,
                     std::vector<Value>& fetches, PartialGraphExecutionState& state) const {
    return RunStage(stages_.size() - 1, options, feeds, fetches, state);
  }

 private:
  struct Stage {
    uint32_t begin = 0, end = 0;  // steps
    std::vector<std::string> feed_names, fetch_names;
    std::vector<Slot> feeds, fetches;
    std::vector<const MemoryInfo*> fetch_memory;
    // The outputs that a cache may replace: the only outputs of steps, by name.
    std::map<std::string, Slot, std::less<>> cacheable;
  };

  explicit TrainingAgent(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  Status FindStages(TrainingAgentParts parts);
  // Opens the memory profile if the session's config entry tenon.memory_profile names a folder.
  void StartProfile();
  Status RunLocked(size_t stage, const RunOptions& options, std::span<const Value> feeds,
                   std::vector<Value>& fetches, PartialGraphExecutionState& state,
                   const ValueCache* cache) const;

  const std::shared_ptr<Session> session_;
  std::vector<Stage> stages_;
  std::unique_ptr<MemoryProfile> profile_;  // null if memory is not profiled
  mutable std::atomic<uint64_t> iterations_ = 0;
};

}  // namespace tenon
