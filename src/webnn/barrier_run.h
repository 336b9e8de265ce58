// Runs of a session with partitions: steps of the CPU up to a partition, which the caller computes.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/executor.h"
#include "runtime/run_options.h"
#include "runtime/session.h"
#include "webnn/partition.h"

namespace tenon::webnn {

// The source of a partition's input.
struct BarrierInput {
  enum class Source : uint8_t {
    kFeed,       // an input of the model
    kPartition,  // an output of an earlier partition
    kHost,       // made by the CPU's nodes
  };

  std::string name;
  Slot slot = kNoSlot;
  Source source = Source::kHost;
  size_t index = 0;   // of the input of the session, or of the partition
  size_t output = 0;  // of that partition
};

struct BarrierOutput {
  std::string name;
  Slot slot = kNoSlot;
  bool is_read_by_host = false;
  std::vector<size_t> fetches;  // outputs of the session that have this value
};

// The steps before a partition, and the partition.
struct BarrierStage {
  uint32_t begin = 0, end = 0;
  Partition* partition = nullptr;  // null in the last stage
  const Node* node = nullptr;
  std::vector<BarrierInput> inputs;
  std::vector<BarrierOutput> outputs;
  // The feeds of the stage: the model's inputs, or the outputs of the partition before it.
  std::vector<Slot> feeds;
};

// The stages of a session's runs. Immutable; the session outlives it.
class BarrierPlan {
 public:
  // Error: kInvalidArgument for a plan with another yielding node.
  static Result<std::unique_ptr<BarrierPlan>> Create(Session& session);

  Session& session() const { return session_; }
  // One more than there are partitions.
  const std::vector<BarrierStage>& stages() const { return stages_; }
  size_t partition_count() const { return stages_.size() - 1; }
  Partition& partition(size_t i) const { return *stages_[i].partition; }
  // The inputs of the session whose elements the CPU's nodes read.
  const std::vector<bool>& host_feeds() const { return host_feeds_; }

  // {"partitions": [...], "hostFeeds": [...]}; docs/web.md describes it.
  std::string ToText() const;

 private:
  friend class BarrierRun;

  explicit BarrierPlan(Session& session) : session_(session) {}
  Status FindStages();
  void FindHostFeeds();
  void Describe(const Step& step, BarrierStage& stage) const;
  BarrierInput InputOf(Slot slot, std::string name) const;
  bool IsReadByHost(Slot slot) const;

  Session& session_;
  std::vector<BarrierStage> stages_;
  std::vector<bool> host_feeds_;
  // By output of the session: the source of its elements.
  struct Fetch {
    Slot slot = kNoSlot;
    size_t stage = 0;
    bool is_of_partition = false;
  };
  std::vector<Fetch> fetches_;
  std::vector<Slot> input_slots_;  // by input of the session
};

// One run at a time, any number of times. Used by one thread. A run that needs no more memory than
// an earlier one allocates nothing.
class BarrierRun {
 public:
  explicit BarrierRun(const BarrierPlan& plan);

  // feeds    one value per input of the session; one without memory (a tensor of null) if only
  //          partitions read the elements
  // fetches  one per output of the session: null for those that are not wanted; kNone, or a tensor
  //          to write into. Those that partitions make are ignored here.
  // Errors: kFail for a missing feed; kInvalidArgument for a feed without memory that the CPU's
  // nodes read; kFail if a run has not ended.
  Status Begin(const RunOptions& options, std::span<const Value> feeds,
               std::span<const bool> is_fetched, std::span<const Value> fetches);
  // Runs to the next partition, or to the end. After a failure the run has ended.
  Status Next();
  // Whether it stands at a partition; which one.
  bool is_at_barrier() const { return frame_.has_value() && position_ < plan_.partition_count(); }
  size_t position() const { return position_; }

  // At a barrier: the inputs of the partition, in its order. Those that only the host made have
  // elements.
  const Value& input(size_t i) const;
  // The outputs of the partition; with memory, which must be written, if the host reads them.
  const Value& output(size_t i) const { return outputs_[position_][i]; }
  Partition::Binding& binding() const { return *binding_; }

  // At the end: an output of the session that was fetched.
  const Value& fetch(size_t i) const { return fetches_[i]; }

  // Releases everything of the run, wherever it stands.
  void End();

 private:
  Status RunStage(const BarrierStage& stage);
  Status PrepareOutputs(const BarrierStage& stage);

  const BarrierPlan& plan_;
  RunOptions options_;
  std::optional<FrameLease> frame_;
  size_t position_ = 0;
  bool has_begun_ =
      false;  // whether the run has reached position_, and not only started towards it
  Partition::Binding* binding_ = nullptr;
  std::vector<Value> feeds_;    // by input of the session
  std::vector<Value> fetches_;  // by output of the session
  std::vector<bool> is_fetched_;
  std::vector<std::vector<Value>> outputs_;  // by partition and output
  std::vector<std::vector<Value>> memory_;   // the same: kept for the next run
  // Of the current part.
  std::vector<Slot> fetch_slots_;
  std::vector<size_t> fetched_;
  std::vector<Value> part_fetches_;
  std::vector<const Value*> partition_inputs_;
};

}  // namespace tenon::webnn
