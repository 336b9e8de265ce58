#include "runtime/executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tenon {
namespace {

// How many sets of feed shapes an executor remembers.
constexpr size_t kMostMemoryPlans = 64;
// How many frames wait for the next run; more are made when more runs overlap.
constexpr size_t kMostIdleFrames = 4;

Status NodeFailure(const Node& node, Status status) {
  std::string text =
      Format("Non-zero status code returned while running {} node. Name:'{}' Status Message: {}",
             node.op_type, node.name, status.message());
  return Status(status.code(), std::move(text));
}

Status CheckStop(const RunScope& scope) {
  if (scope.terminate && scope.terminate->load(std::memory_order_relaxed)) {
    return Fail("Exiting due to terminate flag being set to true.");
  }
  if (scope.deadline && std::chrono::steady_clock::now() > *scope.deadline) {
    return Fail("the run passed its deadline");
  }
  return OkStatus();
}

// Deterministic kernels without subgraphs give what their inputs say.
bool OutputsFollowInputs(const Step& step) {
  return !step.traits.is_stateful && step.subgraphs.empty();
}

}  // namespace

// The kinds and shapes of the feeds that a memory plan is for.
struct Executor::KnownShapes {
  struct Feed {
    Value::Kind kind;
    Shape shape;
  };
  std::vector<Feed> feeds;
  std::shared_ptr<const MemoryPlan> memory;

  bool Matches(std::span<const Value> values) const {
    if (values.size() != feeds.size()) return false;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].kind() != feeds[i].kind) return false;
      if (values[i].is_tensor() && !(values[i].tensor().shape() == feeds[i].shape)) return false;
    }
    return true;
  }
};

// Runs the i-th subgraph of a step with the values that it captures.
class Executor::Runner final : public SubgraphRunner {
 public:
  Runner() = default;
  void Begin(const RunScope& scope, Frame& frame, Executor& executor,
             const std::vector<Slot>& captures) {
    scope_ = scope;
    ++scope_.depth;
    frame_ = &frame;
    executor_ = &executor;
    captures_ = &captures;
  }

  Status Run(std::span<const Value> inputs, std::vector<Value>& outputs) override {
    feeds_.assign(inputs.begin(), inputs.end());
    for (const Slot slot : *captures_) feeds_.push_back(frame_->value(slot));
    outputs.assign(executor_->plan().outputs.size(), Value());
    const Status status = executor_->Run(scope_, feeds_, outputs);
    feeds_.clear();
    return status;
  }

 private:
  RunScope scope_;
  Frame* frame_ = nullptr;
  Executor* executor_ = nullptr;
  const std::vector<Slot>* captures_ = nullptr;
  std::vector<Value> feeds_;
};

class Executor::StepContext final : public KernelContext {
 public:
  StepContext(const RunScope& scope, Frame& frame, const Step& step,
              const std::shared_ptr<Allocator>& memory)
      : scope_(scope), frame_(frame), step_(step), memory_(memory) {
    node_ = step.node;
    inputs_ = frame.InputsOf(step);
    outputs_ = frame.OutputsOf(step);
    threads_ = scope.threads;
    cancelled_ = scope.terminate;
  }

  Result<Tensor*> AllocateOutput(size_t i, DataType type, const Shape& shape) override {
    TENON_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type, shape, memory_));
    *outputs_[i] = std::move(tensor);
    return &outputs_[i]->tensor();
  }

  void* Scratch(size_t bytes) override { return frame_.Scratch(bytes); }

  SubgraphRunner& Subgraph(size_t i) override {
    runner_.Begin(scope_, frame_, *step_.subgraphs[i], step_.captures[i]);
    return runner_;
  }

 private:
  const RunScope& scope_;
  Frame& frame_;
  const Step& step_;
  const std::shared_ptr<Allocator>& memory_;
  Runner runner_;
};

Executor::Executor(Plan plan) : plan_(std::move(plan)) {}

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

std::shared_ptr<const MemoryPlan> Executor::FindMemoryPlan(std::span<const Value> feeds) {
  const MutexLock lock(mutex_);
  for (auto known = known_shapes_.begin(); known != known_shapes_.end(); ++known) {
    if (!known->Matches(feeds)) continue;
    std::rotate(known_shapes_.begin(), known, known + 1);
    return known_shapes_.front().memory;
  }
  return nullptr;
}

void Executor::KeepMemoryPlan(std::span<const Value> feeds,
                              std::shared_ptr<const MemoryPlan> memory) {
  KnownShapes known;
  for (const Value& feed : feeds) {
    known.feeds.push_back({feed.kind(), feed.is_tensor() ? feed.tensor().shape() : Shape()});
  }
  known.memory = std::move(memory);
  const MutexLock lock(mutex_);
  if (known_shapes_.size() == kMostMemoryPlans) known_shapes_.pop_back();
  known_shapes_.insert(known_shapes_.begin(), std::move(known));
}

void Executor::Trim() {
  std::vector<std::unique_ptr<Frame>> frames;
  {
    const MutexLock lock(mutex_);
    frames.swap(idle_frames_);
  }
  frames.clear();
  plan_.memory->Shrink();
  for (const Step& step : plan_.steps) {
    for (const auto& subgraph : step.subgraphs) subgraph->Trim();
  }
}

Status Executor::Run(const RunScope& scope, std::span<const Value> feeds,
                     std::span<Value> fetches) {
  std::unique_ptr<Frame> frame = TakeFrame();
  const Status status = RunInFrame(scope, *frame, feeds, fetches);
  ReturnFrame(std::move(frame));
  return status;
}

Status Executor::RunInFrame(const RunScope& scope, Frame& frame, std::span<const Value> feeds,
                            std::span<Value> fetches) {
  std::shared_ptr<const MemoryPlan> memory = FindMemoryPlan(feeds);
  const bool is_planned = memory != nullptr;
  TENON_RETURN_IF_ERROR(frame.Bind(std::move(memory)));
  TENON_RETURN_IF_ERROR(SetFeeds(frame, feeds));
  if (is_planned) {
    TENON_RETURN_IF_ERROR(PrepareOutputs(frame, fetches));
    frame.BindMoving();
    TENON_RETURN_IF_ERROR(RunPlanned(scope, frame));
  } else {
    RunRecord record(plan_.slot_count);
    TENON_RETURN_IF_ERROR(RunRecorded(scope, frame, record));
    KeepMemoryPlan(feeds, PlanMemory(plan_, record));
  }
  return TakeOutputs(scope, frame, fetches);
}

Status Executor::SetFeeds(Frame& frame, std::span<const Value> feeds) {
  if (feeds.size() != plan_.inputs.size()) {
    return InvalidArgument("expected {} feeds, got {}", plan_.inputs.size(), feeds.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    Value& value = frame.value(plan_.inputs[i]);
    if (feeds[i].has_value()) {
      value = feeds[i];
    } else if (!value.has_value()) {
      return InvalidArgument("input {} is missing", i);
    }
  }
  return OkStatus();
}

// Gives outputs that have memory of their own that memory: the caller's or new.
Status Executor::PrepareOutputs(Frame& frame, std::span<Value> fetches) {
  const MemoryPlan& memory = *frame.memory();
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const Slot slot = plan_.outputs[i].slot;
    const MemoryPlan::Binding& binding = memory.bindings[static_cast<size_t>(slot)];
    if (binding.place != MemoryPlan::Place::kOutput || binding.root != slot) continue;
    if (frame.value(slot).has_value()) continue;  // the same value is an output twice
    const bool is_given = fetches[i].is_tensor() && fetches[i].tensor().type() == binding.type &&
                          fetches[i].tensor().shape() == binding.shape;
    if (is_given) {
      frame.value(slot) = fetches[i];
    } else {
      TENON_ASSIGN_OR_RETURN(Tensor tensor,
                             Tensor::Allocate(binding.type, binding.shape, plan_.memory));
      frame.value(slot) = std::move(tensor);
    }
  }
  return OkStatus();
}

namespace {

// Copies a finished output into the caller's tensor.
Status CopyInto(const PlanOutput& output, const Tensor& from, Tensor& into) {
  if (from.type() != into.type() || !(from.shape() == into.shape())) {
    return InvalidArgument("output '{}': the given tensor is {} {}, but the result is {} {}",
                           output.name, DataTypeName(into.type()), into.shape(),
                           DataTypeName(from.type()), from.shape());
  }
  if (from.type() == DataType::kString) {
    std::copy_n(from.data<std::string>(), from.size(), into.data<std::string>());
  } else if (from.bytes() > 0 && from.raw() != into.raw()) {
    std::memcpy(into.raw(), from.raw(), from.bytes());
  }
  return OkStatus();
}

}  // namespace

Status Executor::TakeOutputs(const RunScope& scope, Frame& frame, std::span<Value> fetches) {
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const PlanOutput& output = plan_.outputs[i];
    const Value& value = frame.value(output.slot);
    if (!value.has_value()) return Fail("output '{}' was not produced", output.name);
    if (fetches[i].is_tensor()) {
      if (!value.is_tensor()) {
        return InvalidArgument("output '{}' is a {}, not a tensor", output.name,
                               ValueKindName(value.kind()));
      }
      TENON_RETURN_IF_ERROR(CopyInto(output, value.tensor(), fetches[i].tensor()));
      continue;
    }
    // The caller of a session may keep and change what it gets, so it gets memory that nobody else
    // refers to. Control flow shares what it does not own; only the slab's memory must not leave.
    const bool may_hand_over =
        !value.is_tensor() || (value.tensor().owner() != nullptr &&
                               (value.tensor().owner().use_count() == 1 || scope.depth > 0));
    if (may_hand_over) {
      fetches[i] = value;
    } else {
      TENON_ASSIGN_OR_RETURN(Tensor copy, value.tensor().Clone());
      fetches[i] = std::move(copy);
    }
  }
  return OkStatus();
}

Status Executor::RunStep(const RunScope& scope, Frame& frame, const Step& step) {
  StepContext context(scope, frame, step, plan_.memory);
  Status status = step.kernel->Run(context);
  if (!status.ok()) return NodeFailure(*step.node, std::move(status));
  return OkStatus();
}

Status Executor::RunPlanned(const RunScope& scope, Frame& frame) {
  const MemoryPlan& memory = *frame.memory();
  for (const uint32_t index : memory.steps) {
    TENON_RETURN_IF_ERROR(CheckStop(scope));
    const Step& step = plan_.steps[index];
    if (memory.is_bound[index]) {
      TENON_RETURN_IF_ERROR(RunStep(scope, frame, step));
      continue;
    }
    TENON_RETURN_IF_ERROR(RunUnboundStep(scope, frame, step));
    // Dynamic values give their memory back as soon as nobody needs it.
    for (const Slot slot : plan_.ReleasesOf(step)) {
      const auto place = memory.bindings[static_cast<size_t>(slot)].place;
      if (place == MemoryPlan::Place::kDynamic) frame.value(slot) = Value();
    }
  }
  return OkStatus();
}

Status Executor::RunRecorded(const RunScope& scope, Frame& frame, RunRecord& record) {
  const auto at = [&](Slot slot) -> SlotRecord& { return record.slots[static_cast<size_t>(slot)]; };
  for (const auto& [slot, constant] : plan_.constants) {
    at(slot).shape_is_fixed = at(slot).data_is_fixed = true;
  }
  for (const Slot slot : plan_.inputs) {
    const Value& feed = frame.value(slot);
    at(slot).shape_is_fixed = feed.is_tensor();
    at(slot).data_is_fixed = false;
    RecordShape(feed, at(slot));
  }
  for (const Step& step : plan_.steps) {
    TENON_RETURN_IF_ERROR(CheckStop(scope));
    TENON_RETURN_IF_ERROR(RunUnboundStep(scope, frame, step));
    RecordStep(frame, step, record);
    for (const Slot slot : plan_.ReleasesOf(step)) frame.value(slot) = Value();
  }
  return OkStatus();
}

void Executor::RecordShape(const Value& value, SlotRecord& slot) {
  slot.is_tensor = value.is_tensor();
  if (!slot.is_tensor) return;
  slot.type = value.tensor().type();
  slot.shape = value.tensor().shape();
}

// What the feed shapes determine of a step's outputs, given what they determine of its inputs.
void Executor::RecordStep(Frame& frame, const Step& step, RunRecord& record) {
  const auto at = [&](Slot slot) -> SlotRecord& { return record.slots[static_cast<size_t>(slot)]; };
  const std::span<const Slot> inputs = plan_.InputsOf(step);
  bool shapes_fixed = true, data_fixed = OutputsFollowInputs(step), data_read_fixed = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kNoSlot) continue;
    shapes_fixed &= at(inputs[i]).shape_is_fixed;
    data_fixed &= at(inputs[i]).data_is_fixed;
    if (!step.traits.allocates_outputs && frame.shapes().ReadData(i)) {
      data_read_fixed &= at(inputs[i]).data_is_fixed;
    }
  }
  if (step.traits.reads_shapes_only) data_fixed = shapes_fixed;
  const bool output_shapes_fixed =
      data_fixed || (!step.traits.allocates_outputs && shapes_fixed && data_read_fixed);
  for (const Slot slot : plan_.OutputsOf(step)) {
    if (slot == kNoSlot) continue;
    const Value& value = frame.value(slot);
    RecordShape(value, at(slot));
    at(slot).shape_is_fixed = output_shapes_fixed;
    at(slot).data_is_fixed = data_fixed;
    if (data_fixed) at(slot).value = value;
  }
}

Status Executor::RunUnboundStep(const RunScope& scope, Frame& frame, const Step& step) {
  if (!step.traits.allocates_outputs && step.subgraphs.empty()) {
    bool is_done = false;
    Status status = AllocateOutputs(frame, step, &is_done);
    if (!status.ok()) return NodeFailure(*step.node, std::move(status));
    if (is_done) return OkStatus();
  }
  return RunStep(scope, frame, step);
}

// Finds the outputs' shapes and gives them memory. `*is_done` if there is nothing to run: a view.
Status Executor::AllocateOutputs(Frame& frame, const Step& step, bool* is_done) {
  const std::span<const Value* const> inputs = frame.InputsOf(step);
  const std::span<Value* const> outputs = frame.OutputsOf(step);
  ConcreteShapeContext& shapes = frame.shapes();
  shapes.Begin(*plan_.graph, *step.node, inputs);
  if (step.traits.is_view && !inputs[0]->is_tensor()) {
    *outputs[0] = *inputs[0];
    *is_done = true;
    return OkStatus();
  }
  TENON_RETURN_IF_ERROR(step.kernel->InferShapes(shapes));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr) continue;
    const ConcreteShapeContext::OutputShape& output = shapes.output(i);
    if (!output.set) return Fail("the shape function did not set output {}", i);
    if (i == 0 && step.traits.is_view) {
      *outputs[0] = inputs[0]->tensor().Reshaped(output.shape);
      *is_done = true;
    } else if (i == 0 && TakeOverInput(frame, step, output)) {
      continue;
    } else {
      TENON_ASSIGN_OR_RETURN(*outputs[i],
                             Tensor::Allocate(output.type, output.shape, plan_.memory));
    }
  }
  return OkStatus();
}

// Puts output 0 where an input is that nobody needs afterwards, if the kernel can work in place.
bool Executor::TakeOverInput(Frame& frame, const Step& step,
                             const ConcreteShapeContext::OutputShape& output) {
  const std::span<const Slot> inputs = plan_.InputsOf(step);
  const std::span<const Slot> dying = plan_.ReleasesOf(step);
  for (const int candidate : {step.traits.in_place_input, step.traits.in_place_also}) {
    if (candidate < 0 || static_cast<size_t>(candidate) >= inputs.size()) continue;
    const Slot slot = inputs[static_cast<size_t>(candidate)];
    if (slot == kNoSlot || std::find(dying.begin(), dying.end(), slot) == dying.end()) continue;
    // A kernel may write over one operand while it reads another, not while it reads the same.
    if (std::count(inputs.begin(), inputs.end(), slot) != 1) continue;
    const Value& value = frame.value(slot);
    if (!value.is_tensor() || value.tensor().owner().use_count() != 1) continue;
    const Tensor& input = value.tensor();
    const bool fits = input.type() != DataType::kString && output.type != DataType::kString &&
                      DataTypeBytes(output.type, output.shape.NumElements()) == input.bytes();
    if (!fits) continue;
    Value& into = frame.value(plan_.OutputsOf(step)[0]);
    into = Tensor::View(output.type, output.shape, const_cast<void*>(input.raw()), input.owner());
    return true;
  }
  return false;
}

}  // namespace tenon
