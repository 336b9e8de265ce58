#include "webnn/barrier_run.h"

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "runtime/run_scope.h"

namespace tenon::webnn {
namespace {

const PartitionKernel* KernelOf(const Step& step) {
  return step.traits.yields ? dynamic_cast<const PartitionKernel*>(step.kernel.get()) : nullptr;
}

template <class List, class T>
bool Contains(const List& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

Result<std::unique_ptr<BarrierPlan>> BarrierPlan::Create(Session& session) {
  if (session.options().is_parallel) {
    return InvalidArgument("expected a session with sequential execution mode for partitions");
  }
  std::unique_ptr<BarrierPlan> plan(new BarrierPlan(session));
  TENON_RETURN_IF_ERROR(plan->FindStages());
  plan->FindHostFeeds();
  return plan;
}

Status BarrierPlan::FindStages() {
  const Plan& plan = session_.executor().plan();
  for (const SessionValue& input : session_.inputs()) {
    TENON_ASSIGN_OR_RETURN(const Slot slot, plan.FindSlot(input.name));
    input_slots_.push_back(slot);
  }
  for (const SessionValue& output : session_.outputs()) {
    const auto found = std::find_if(plan.outputs.begin(), plan.outputs.end(),
                                    [&](const PlanOutput& one) { return one.name == output.name; });
    if (found == plan.outputs.end()) return Fail("output '{}' is not in the plan", output.name);
    fetches_.push_back({found->slot});
  }
  BarrierStage stage;
  stage.feeds = input_slots_;
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const std::span<const Slot> outputs = plan.OutputsOf(step);
    const PartitionKernel* const kernel = KernelOf(step);
    if (step.traits.yields && kernel == nullptr) {
      return InvalidArgument("{} yields, which a run with partitions does not serve",
                             step.node->Describe());
    }
    for (Fetch& fetch : fetches_) {
      if (!Contains(outputs, fetch.slot)) continue;
      fetch.stage = stages_.size();
      fetch.is_of_partition = kernel != nullptr;
    }
    if (kernel == nullptr) continue;
    stage.end = i;
    stage.partition = &kernel->partition();
    stage.node = step.node;
    Describe(step, stage);
    stages_.push_back(std::exchange(stage, BarrierStage()));
    stage.begin = i;
    for (const BarrierOutput& output : stages_.back().outputs) stage.feeds.push_back(output.slot);
  }
  stage.end = static_cast<uint32_t>(plan.steps.size());
  stages_.push_back(std::move(stage));
  // Outputs that are inputs or constants are fetched at the end.
  for (Fetch& fetch : fetches_) {
    const bool is_made = std::any_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
      return Contains(plan.OutputsOf(step), fetch.slot);
    });
    if (!is_made) fetch.stage = stages_.size() - 1;
  }
  return OkStatus();
}

void BarrierPlan::Describe(const Step& step, BarrierStage& stage) const {
  const Plan& plan = session_.executor().plan();
  const std::span<const Slot> inputs = plan.InputsOf(step);
  const std::span<const Slot> outputs = plan.OutputsOf(step);
  const Partition& partition = *stage.partition;
  for (size_t i = 0; i < partition.input_names().size(); ++i) {
    stage.inputs.push_back(InputOf(inputs[i], partition.input_names()[i]));
  }
  for (size_t i = 0; i < partition.output_names().size(); ++i) {
    BarrierOutput output = {partition.output_names()[i], outputs[i], IsReadByHost(outputs[i]), {}};
    for (size_t fetch = 0; fetch < fetches_.size(); ++fetch) {
      if (fetches_[fetch].slot == outputs[i]) output.fetches.push_back(fetch);
    }
    stage.outputs.push_back(std::move(output));
  }
}

BarrierInput BarrierPlan::InputOf(Slot slot, std::string name) const {
  using Source = BarrierInput::Source;
  const auto feed = std::find(input_slots_.begin(), input_slots_.end(), slot);
  if (feed != input_slots_.end()) {
    const auto index = static_cast<size_t>(feed - input_slots_.begin());
    return {std::move(name), slot, Source::kFeed, index, 0};
  }
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    const std::vector<BarrierOutput>& outputs = stages_[stage].outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].slot == slot) return {std::move(name), slot, Source::kPartition, stage, i};
    }
  }
  return {std::move(name), slot, Source::kHost, 0, 0};
}

// Steps that only read shapes need no elements.
bool BarrierPlan::IsReadByHost(Slot slot) const {
  const Plan& plan = session_.executor().plan();
  return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
    if (step.traits.yields || step.traits.reads_shapes_only) return false;
    return Contains(plan.InputsOf(step), slot) ||
           std::any_of(step.captures.begin(), step.captures.end(),
                       [&](const std::vector<Slot>& captures) { return Contains(captures, slot); });
  });
}

void BarrierPlan::FindHostFeeds() {
  for (const Slot slot : input_slots_) {
    bool is_read = IsReadByHost(slot);
    for (const Fetch& fetch : fetches_) is_read |= fetch.slot == slot;
    for (const BarrierStage& stage : stages_) {
      for (size_t i = 0; i < stage.inputs.size(); ++i) {
        is_read |= stage.inputs[i].slot == slot && stage.partition->is_parameter(i);
      }
    }
    host_feeds_.push_back(is_read);
  }
}

std::string BarrierPlan::ToText() const {
  JsonWriter json;
  json.BeginObject();
  json.Key("partitions").BeginArray();
  for (size_t i = 0; i < partition_count(); ++i) {
    const BarrierStage& stage = stages_[i];
    json.BeginObject();
    json.Key("name").Text(Format("WebNN_graph_{}", i));
    json.Key("nodes").Integer(stage.partition->node_count());
    json.Key("firstNode").Text(stage.partition->first_node());
    json.Key("isStatic").Bool(stage.partition->is_static());
    json.Key("inputs").BeginArray();
    for (const BarrierInput& input : stage.inputs) {
      json.BeginObject();
      json.Key("name").Text(input.name);
      json.Key("source");
      if (input.source == BarrierInput::Source::kHost) {
        json.Text("host");
      } else {
        json.BeginObject();
        if (input.source == BarrierInput::Source::kFeed) {
          json.Key("feed").Text(session_.inputs()[input.index].name);
        } else {
          json.Key("partition").Integer(input.index);
          json.Key("output").Integer(input.output);
        }
        json.EndObject();
      }
      json.EndObject();
    }
    json.EndArray();
    json.Key("outputs").BeginArray();
    for (const BarrierOutput& output : stage.outputs) {
      json.BeginObject();
      json.Key("name").Text(output.name);
      json.Key("host").Bool(output.is_read_by_host);
      json.Key("fetches").BeginArray();
      for (const size_t fetch : output.fetches) json.Text(session_.outputs()[fetch].name);
      json.EndArray();
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.Key("hostFeeds").BeginArray();
  for (size_t i = 0; i < host_feeds_.size(); ++i) {
    if (host_feeds_[i]) json.Text(session_.inputs()[i].name);
  }
  json.EndArray();
  json.EndObject();
  return json.text();
}

BarrierRun::BarrierRun(const BarrierPlan& plan)
    : plan_(plan),
      feeds_(plan.session().inputs().size()),
      fetches_(plan.session().outputs().size()),
      is_fetched_(fetches_.size(), false) {
  size_t most_inputs = 0;
  for (size_t i = 0; i < plan.partition_count(); ++i) {
    const BarrierStage& stage = plan.stages()[i];
    outputs_.emplace_back(stage.outputs.size());
    memory_.emplace_back(stage.outputs.size());
    most_inputs = std::max(most_inputs, stage.inputs.size());
  }
  partition_inputs_.reserve(most_inputs);
  fetch_slots_.reserve(fetches_.size());
  fetched_.reserve(fetches_.size());
  part_fetches_.reserve(fetches_.size());
}

Status BarrierRun::Begin(const RunOptions& options, std::span<const Value> feeds,
                         std::span<const bool> is_fetched, std::span<const Value> fetches) {
  if (frame_.has_value()) return Fail("the run before has not been finished");
  const std::vector<SessionValue>& inputs = plan_.session().inputs();
  std::vector<std::string> missing;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!feeds[i].has_value()) missing.push_back(Format("'{}'", inputs[i].name));
  }
  if (!missing.empty()) {
    return Fail("Required inputs ([{}]) are missing from input feed", JoinNames(missing));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool has_memory = !feeds[i].is_tensor() || feeds[i].tensor().raw() != nullptr ||
                            feeds[i].tensor().bytes() == 0;
    if (has_memory || !plan_.host_feeds()[i]) continue;
    return InvalidArgument("input '{}' has no memory, and nodes on the CPU read it",
                           inputs[i].name);
  }
  const BarrierStage& first = plan_.stages().front();
  TENON_RETURN_IF_ERROR(plan_.session().CheckPart(
      {feeds, {}, {}, PlanPart{first.begin, first.end, first.feeds, {}}}));
  options_ = options;
  for (size_t i = 0; i < feeds.size(); ++i) feeds_[i] = feeds[i];
  for (size_t i = 0; i < fetches.size(); ++i) {
    fetches_[i] = fetches[i];
    is_fetched_[i] = is_fetched[i];
  }
  position_ = 0;
  has_begun_ = false;
  frame_.emplace(plan_.session().executor().frames());
  return OkStatus();
}

Status BarrierRun::Next() {
  if (!frame_.has_value()) return Fail("no run has begun");
  if (has_begun_ && position_ == plan_.partition_count()) return Fail("the run is at its end");
  if (has_begun_) ++position_;
  has_begun_ = true;
  const BarrierStage& stage = plan_.stages()[position_];
  Status status = RunStage(stage);
  if (status.ok() && stage.partition != nullptr) {
    const StopSignal stop(options_.terminate, std::nullopt);
    const RunScope scope{.stop = &stop};
    status = scope.CheckStop(*stage.node);
    if (status.ok()) status = PrepareOutputs(stage);
  }
  if (!status.ok()) End();
  return status;
}

Status BarrierRun::RunStage(const BarrierStage& stage) {
  fetch_slots_.clear();
  fetched_.clear();
  part_fetches_.clear();
  for (size_t i = 0; i < fetches_.size(); ++i) {
    const BarrierPlan::Fetch& fetch = plan_.fetches_[i];
    if (!is_fetched_[i] || fetch.is_of_partition || fetch.stage != position_) continue;
    fetch_slots_.push_back(fetch.slot);
    fetched_.push_back(i);
    part_fetches_.push_back(fetches_[i]);
  }
  const std::span<const Value> feeds =
      position_ == 0 ? std::span<const Value>(feeds_) : outputs_[position_ - 1];
  TENON_RETURN_IF_ERROR(plan_.session().RunPart(
      options_, **frame_,
      {feeds, part_fetches_, {}, PlanPart{stage.begin, stage.end, stage.feeds, fetch_slots_}}));
  for (size_t i = 0; i < fetched_.size(); ++i) {
    fetches_[fetched_[i]] = std::move(part_fetches_[i]);
  }
  return OkStatus();
}

const Value& BarrierRun::input(size_t i) const {
  return (*frame_)->ValueOf(plan_.stages()[position_].inputs[i].slot);
}

Status BarrierRun::PrepareOutputs(const BarrierStage& stage) {
  partition_inputs_.clear();
  for (size_t i = 0; i < stage.inputs.size(); ++i) partition_inputs_.push_back(&input(i));
  TENON_ASSIGN_OR_RETURN(binding_, stage.partition->Bind(partition_inputs_));
  for (size_t i = 0; i < stage.outputs.size(); ++i) {
    const Descriptor& is = binding_->outputs[i];
    Value& output = outputs_[position_][i];
    if (!stage.outputs[i].is_read_by_host) {
      output = Tensor::View(is.type, is.shape, nullptr);
      continue;
    }
    Value& memory = memory_[position_][i];
    const bool fits = memory.has_value() && !memory.is_shared() &&
                      memory.tensor().type() == is.type && memory.tensor().shape() == is.shape;
    if (!fits) {
      const auto& allocator = plan_.session().executor().plan().locations.front().allocator;
      TENON_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(is.type, is.shape, allocator));
      memory = std::move(tensor);
    }
    output = memory;
  }
  return OkStatus();
}

void BarrierRun::End() {
  frame_.reset();
  binding_ = nullptr;
  for (Value& value : feeds_) value = Value();
  for (Value& value : fetches_) value = Value();
  for (Value& value : part_fetches_) value = Value();
  for (auto& outputs : outputs_) {
    for (Value& value : outputs) value = Value();
  }
}

}  // namespace tenon::webnn
