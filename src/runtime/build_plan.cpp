#include "runtime/build_plan.h"

#include <algorithm>
#include <map>

#include "base/heap.h"
#include "ir/node_error.h"
#include "runtime/copy_kernel.h"
#include "runtime/data_transfer.h"
#include "runtime/executor.h"
#include "runtime/failed_node.h"
#include "runtime/in_place.h"
#include "runtime/kernel_creation.h"
#include "runtime/kernel_info.h"
#include "runtime/provider.h"
#include "runtime/shared_weights.h"

namespace tenon {
namespace {

constexpr size_t kHost = 0;  // index of the CPU's location

// A node with its kernel, before it is a step.
struct Prepared {
  const Node* node = nullptr;
  std::unique_ptr<Kernel> kernel;
  KernelTraits traits;
};

// Whether the kernel reads the elements of input `i`. If not, the input may lie in any memory.
bool Reads(const KernelTraits& traits, size_t i) {
  return !traits.reads_shapes_only && !traits.yields && !(traits.is_view && i == 0);
}

class PlanBuilder {
 public:
  // The plans of subgraphs are parts of the main graph's.
  PlanBuilder(Graph& graph, const PlanParts& parts, bool is_main)
      : graph_(graph), parts_(parts), is_main_(is_main), slot_of_(graph.value_count(), kNoSlot) {
    plan_.graph = &graph;
    plan_.providers = parts.providers;
    plan_.transfers = parts.transfers;
    plan_.most_memory_plans = parts.most_memory_plans;
    plan_.owns_memory = parts.owns_memory;
    plan_.may_shrink_memory = parts.may_shrink_memory;
    plan_.work_memory = parts.work_memory ? parts.work_memory : parts.memory;
  }

  Result<Plan> Build() {
    TENON_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
    TENON_RETURN_IF_ERROR(FindLocations());
    TENON_ASSIGN_OR_RETURN(std::vector<Prepared> nodes, MakeKernels(order));
    PlaceInputs(nodes);
    plan_.steps.reserve(order.size());
    for (Prepared& node : nodes) TENON_RETURN_IF_ERROR(AddStep(std::move(node)));
    for (const GraphOutput& output : graph_.outputs()) {
      plan_.outputs.push_back({output.name, HomeSlot(output.value)});
    }
    if (!parts_.keeps_constants) DropUnreadConstants();
    plan_.slot_count = plan_.value_of.size();
    TENON_RETURN_IF_ERROR(CollectConstants());
    FindLastUses();
    FindInPlace(plan_);
    return std::move(plan_);
  }

 private:
  Result<std::vector<Prepared>> MakeKernels(std::span<const NodeId> order) {
    KernelCreation trace(is_main_ ? parts_.profiler : nullptr);
    const Progress progress = is_main_ ? parts_.progress : Progress();
    std::vector<Prepared> nodes;
    nodes.reserve(order.size());
    for (const NodeId id : order) {
      TENON_RETURN_IF_ERROR(progress.Report("prepare", nodes.size(), order.size()));
      trace.Begin();
      TENON_ASSIGN_OR_RETURN(nodes.emplace_back(), Prepare(graph_.node(id)));
      trace.End(graph_.node(id));
    }
    TENON_RETURN_IF_ERROR(progress.Report("prepare", nodes.size(), order.size()));
    return nodes;
  }

  // --- locations ---

  Status FindLocations() {
    plan_.locations.push_back({&CpuMemory(), parts_.memory, parts_.memory});
    for (const Location& memory : parts_.memories) {
      const auto same = std::find_if(
          plan_.locations.begin(), plan_.locations.end(),
          [&](const Location& known) { return known.memory->SameDevice(*memory.memory); });
      const auto location = same - plan_.locations.begin();
      if (location > UINT8_MAX) return Fail("more than {} memories in one session", UINT8_MAX);
      location_of_provider_.push_back(static_cast<uint8_t>(location));
      if (same == plan_.locations.end()) plan_.locations.push_back(memory);
    }
    return OkStatus();
  }

  uint8_t LocationOf(const Node& node, Residence residence) const {
    return residence == Residence::kHost
               ? kHost
               : location_of_provider_[static_cast<size_t>(node.provider)];
  }

  // Whether a value in location `from` can be read where location `wanted` is asked for.
  bool CanRead(size_t from, size_t wanted) const {
    return from == wanted || (wanted == kHost && plan_.locations[from].memory->IsHostAccessible());
  }

  // Places a graph input in the location that all its readers want, else on the CPU.
  void PlaceInputs(const std::vector<Prepared>& nodes) {
    std::vector<int> wanted(graph_.value_count(), kNowhere);
    const bool has_choice = plan_.locations.size() > 1;
    for (const Prepared& prepared : has_choice ? std::span(nodes) : std::span<const Prepared>()) {
      const Node& node = *prepared.node;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == ValueId::kNone || !Reads(prepared.traits, i)) continue;
        int& place = wanted[Index(node.inputs[i])];
        const int here = LocationOf(node, prepared.kernel->InputResidence(i));
        place = place == kNowhere || place == here ? here : static_cast<int>(kHost);
      }
    }
    const auto add = [&](ValueId id) {
      const ValueInfo& info = graph_.value(id);
      int place = wanted[Index(id)];
      if (place == kNowhere || info.initializer.has_value() || !info.type.is_tensor())
        place = kHost;
      slot_of_[Index(id)] = NewSlot(id, static_cast<uint8_t>(place));
      plan_.inputs.push_back(slot_of_[Index(id)]);
    };
    for (const ValueId input : graph_.inputs) add(input);
    for (const Capture& capture : graph_.captures) add(capture.inner);
    plan_.capture_count = graph_.captures.size();
  }

  // --- slots ---

  Slot NewSlot(ValueId id, uint8_t location) {
    plan_.value_of.push_back(id);
    plan_.location_of.push_back(location);
    plan_.stream_of.push_back(-1);
    plan_.made_at.push_back(-1);
    return static_cast<Slot>(plan_.value_of.size() - 1);
  }

  // The slot of the value itself, where it was made.
  Slot HomeSlot(ValueId id) {
    if (id == ValueId::kNone) return kNoSlot;
    Slot& slot = slot_of_[Index(id)];
    if (slot == kNoSlot) slot = NewSlot(id, kHost);
    return slot;
  }

  // The slot of the value, or of a copy of it, that can be read in `location`.
  Result<Slot> SlotIn(ValueId id, uint8_t location) {
    const bool is_constant = graph_.StoredConstantOf(id) != nullptr;
    const size_t home = is_constant ? kHost : LocationOf(HomeSlot(id));
    if (CanRead(home, location)) return HomeSlot(id);
    const auto [known, is_new] = copies_.try_emplace({id, location}, kNoSlot);
    if (is_new) {
      TENON_ASSIGN_OR_RETURN(known->second,
                             is_constant ? CopyConstant(id, location) : AddCopyStep(id, location));
    }
    return known->second;
  }

  uint8_t LocationOf(Slot slot) const { return plan_.location_of[static_cast<size_t>(slot)]; }
  int32_t& StreamOf(Slot slot) { return plan_.stream_of[static_cast<size_t>(slot)]; }

  Result<Slot> CopyConstant(ValueId id, uint8_t location) {
    TENON_RETURN_IF_ERROR(Align(id));
    const Tensor& constant = *graph_.StoredConstantOf(id);
    Result<Tensor> copy = Tensor::Allocate(constant.type(), constant.shape(),
                                           plan_.locations[location].constant_allocator);
    Status status = copy ? parts_.transfers->CopyTensor(constant, *copy) : copy.error();
    if (!status.ok()) {
      return Failure(
          std::move(status).WithContext(Format("initializer '{}'", graph_.value(id).name)));
    }
    const Slot slot = NewSlot(id, location);
    plan_.constants.emplace_back(slot, std::move(*copy));
    return slot;
  }

  // --- steps ---

  Result<Prepared> Prepare(const Node& node) {
    KernelInfo info(graph_, node, parts_.weights);
    Result<std::unique_ptr<Kernel>> kernel = MakeKernel(node, info);
    if (!kernel) {
      NoteFailed(node);
      const Status& status = kernel.error();
      return Failure(Status(status.code(), DescribeFailure(graph_, node, status.message())));
    }
    for (const size_t input : info.released_constants) ++packed_reads_[node.inputs[input]];
    if (info.are_attributes_released) DropAttributes(graph_.node(node.id));
    Prepared prepared{&node, std::move(*kernel), {}};
    prepared.traits = prepared.kernel->traits();
    const int unaligned = prepared.traits.unaligned_input;
    if (unaligned >= 0 && node.has_input(static_cast<size_t>(unaligned))) {
      ++unaligned_reads_[node.inputs[static_cast<size_t>(unaligned)]];
    }
    return prepared;
  }

  // What long lists leave in the heap, with the kernel's copies of them, goes back to the system.
  static void DropAttributes(Node& node) {
    constexpr size_t kManyElements = 1 << 20;
    size_t elements = 0;
    for (const Attribute& attribute : node.attributes) {
      if (const auto* ints = attribute.get<std::vector<int64_t>>()) elements += ints->size();
    }
    node.attributes.clear();
    if (elements >= kManyElements) GiveFreedMemoryBack();
  }

  Result<std::unique_ptr<Kernel>> MakeKernel(const Node& node, KernelInfo& info) {
    const auto provider = static_cast<size_t>(node.provider);
    if (provider >= parts_.providers.size()) {
      return NotImplemented("no provider has a kernel for it");
    }
    return parts_.providers[provider]->CreateKernel(info);
  }

  void NoteFailed(const Node& node) const {
    const auto provider = static_cast<size_t>(node.provider);
    if (parts_.failed == nullptr || provider >= parts_.providers.size()) return;
    *parts_.failed = {.provider = node.provider,
                      .provider_name = parts_.providers[provider]->name(),
                      .node = node.name,
                      .op_type = node.op_type};
  }

  Status AddStep(Prepared prepared) {
    const Node& node = *prepared.node;
    const Kernel& kernel = *prepared.kernel;
    std::vector<Slot> inputs, outputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Slot slot = kNoSlot;
      if (node.inputs[i] != ValueId::kNone && !Reads(prepared.traits, i)) {
        slot = HomeSlot(node.inputs[i]);
      } else if (node.inputs[i] != ValueId::kNone) {
        const uint8_t location = LocationOf(node, kernel.InputResidence(i));
        TENON_ASSIGN_OR_RETURN(slot, SlotIn(node.inputs[i], location));
      }
      inputs.push_back(slot);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (id == ValueId::kNone) {
        outputs.push_back(kNoSlot);
        continue;
      }
      const uint8_t location = prepared.traits.is_view && i == 0
                                   ? LocationOf(inputs[0])
                                   : LocationOf(node, kernel.OutputResidence(i));
      outputs.push_back(slot_of_[Index(id)] = NewSlot(id, location));
    }
    Step step;
    step.node = &node;
    step.traits = prepared.traits;
    step.kernel = std::move(prepared.kernel);
    const auto provider = static_cast<size_t>(node.provider);
    if (parts_.providers[provider]->HasStreams()) step.stream = node.provider;
    TENON_RETURN_IF_ERROR(AddSubgraphs(node, step));
    LayOut(std::move(step), inputs, outputs);
    return OkStatus();
  }

  Status AddSubgraphs(const Node& node, Step& step) {
    for (Graph* subgraph : node.Subgraphs()) {
      TENON_ASSIGN_OR_RETURN(Plan subplan, PlanBuilder(*subgraph, parts_, false).Build());
      step.subgraphs.push_back(std::make_unique<Executor>(std::move(subplan)));
      std::vector<Slot>& captured = step.captures.emplace_back();
      for (const Capture& capture : subgraph->captures) {
        captured.push_back(HomeSlot(capture.outer));
      }
    }
    return OkStatus();
  }

  Result<Slot> AddCopyStep(ValueId id, uint8_t location) {
    const Slot from = HomeSlot(id);
    const Slot into = NewSlot(id, location);
    const uint8_t device = location == kHost ? LocationOf(from) : location;
    plan_.own_nodes.push_back(MakeCopyNode(id, graph_.value(id).name,
                                           *plan_.locations[LocationOf(from)].memory,
                                           *plan_.locations[location].memory));
    Step step;
    plan_.own_nodes.back()->provider = ProviderOf(device);
    step.node = plan_.own_nodes.back().get();
    step.kernel = std::make_unique<CopyKernel>(*parts_.transfers);
    if (parts_.providers[static_cast<size_t>(step.node->provider)]->HasStreams()) {
      step.stream = step.node->provider;
    }
    // Otherwise the host could write over the source before the stream has read it.
    step.drains = step.stream >= 0 && LocationOf(from) == kHost;
    LayOut(std::move(step), {&from, 1}, {&into, 1});
    return into;
  }

  // The first provider that works in the location: its streams copy to and from there.
  int32_t ProviderOf(uint8_t location) const {
    const auto first =
        std::find(location_of_provider_.begin(), location_of_provider_.end(), location);
    return static_cast<int32_t>(first - location_of_provider_.begin());
  }

  void LayOut(Step step, std::span<const Slot> inputs, std::span<const Slot> outputs) {
    const auto index = static_cast<int32_t>(plan_.steps.size());
    for (const Slot slot : inputs) AddWait(step, slot);
    for (const auto& captures : step.captures) {
      for (const Slot slot : captures) AddWait(step, slot);
    }
    for (const Slot slot : outputs) {
      if (slot == kNoSlot) continue;
      // A view is ready when the value that it shows is ready.
      StreamOf(slot) = step.traits.is_view ? StreamOf(inputs[0]) : step.stream;
      plan_.made_at[static_cast<size_t>(slot)] =
          step.traits.is_view ? plan_.made_at[static_cast<size_t>(inputs[0])] : index;
    }
    AppendSlots(inputs, &step.inputs_begin, &step.inputs_end);
    AppendSlots(outputs, &step.outputs_begin, &step.outputs_end);
    plan_.steps.push_back(std::move(step));
  }

  // Makes the step wait for the stream that makes `slot`, unless an earlier wait covers it.
  void AddWait(Step& step, Slot slot) {
    if (slot == kNoSlot || StreamOf(slot) < 0) return;
    if (step.traits.is_view || step.traits.yields) return;
    const int32_t producer = StreamOf(slot);
    if (producer == step.stream) return;
    const int32_t made_at = plan_.made_at[static_cast<size_t>(slot)];
    const auto [known, is_new] = waited_.try_emplace({step.stream, producer}, -1);
    if (!is_new && known->second >= made_at) return;
    known->second = static_cast<int32_t>(plan_.steps.size()) - 1;
    step.waits.push_back(producer);
    // Otherwise the producer's stream could write over the value while this step's stream reads it.
    if (step.stream >= 0) step.drains = true;
  }

  void AppendSlots(std::span<const Slot> slots, uint32_t* begin, uint32_t* end) {
    *begin = static_cast<uint32_t>(plan_.slots.size());
    plan_.slots.insert(plan_.slots.end(), slots.begin(), slots.end());
    *end = static_cast<uint32_t>(plan_.slots.size());
  }

  // --- constants ---

  // Frees the elements of constants that every reader has packed into a form of its own or reads in
  // another memory. The shapes stay, since shape functions read them.
  void DropUnreadConstants() {
    for (const auto& [id, reads] : packed_reads_) {
      const ValueInfo& info = graph_.value(id);
      if (info.output_uses == 0 && reads == info.consumers.size()) Drop(id);
    }
    for (const auto& [key, slot] : copies_) {
      if (slot_of_[Index(key.first)] == kNoSlot) Drop(key.first);
    }
  }

  void Drop(ValueId id) {
    const Tensor* constant = graph_.StoredConstantOf(id);
    if (constant == nullptr) return;
    graph_.SetInitializer(id, Tensor::View(constant->type(), constant->shape(), nullptr));
  }

  // Whether all readers take the constant as it is stored, aligned or not.
  bool MayBeUnaligned(ValueId id) const {
    const auto reads = unaligned_reads_.find(id);
    if (reads == unaligned_reads_.end()) return false;
    const auto packed = packed_reads_.find(id);
    const ValueInfo& info = graph_.value(id);
    return info.output_uses == 0 &&
           reads->second + (packed == packed_reads_.end() ? 0 : packed->second) ==
               info.consumers.size();
  }

  // Aligns the elements of a constant by a copy, which sessions on the same file share.
  Status Align(ValueId id) {
    const Tensor* const stored = graph_.StoredConstantOf(id);
    if (stored != nullptr && !stored->is_aligned() && parts_.weights.shared != nullptr) {
      TENON_ASSIGN_OR_RETURN(
          const std::shared_ptr<const Tensor> aligned,
          parts_.weights.shared->Get(*stored, "aligned",
                                     [](const Tensor& constant) { return constant.Clone(); }));
      graph_.SetInitializer(id,
                            Tensor::ReadOnlyView(stored->type(), stored->shape(), aligned->raw(),
                                                 std::const_pointer_cast<Tensor>(aligned)));
    }
    return graph_.AlignInitializer(id);
  }

  Status CollectConstants() {
    for (size_t i = 0; i < slot_of_.size(); ++i) {
      const ValueInfo& info = graph_.value(static_cast<ValueId>(i));
      if (slot_of_[i] == kNoSlot || !info.initializer.has_value()) continue;
      if (const auto id = static_cast<ValueId>(i); !MayBeUnaligned(id)) {
        TENON_RETURN_IF_ERROR(Align(id));
      }
      plan_.constants.emplace_back(slot_of_[i], info.initializer);
      if (info.is_input) plan_.default_inputs.emplace_back(slot_of_[i], info.initializer);
    }
    plan_.is_constant.resize(plan_.slot_count, false);
    for (const auto& [slot, value] : plan_.constants) {
      plan_.is_constant[static_cast<size_t>(slot)] = true;
    }
    return OkStatus();
  }

  void FindLastUses() {
    plan_.last_use.assign(plan_.slot_count, -1);
    std::vector<bool> kept = plan_.is_constant;
    for (const Slot slot : plan_.inputs) kept[static_cast<size_t>(slot)] = true;
    for (const PlanOutput& output : plan_.outputs) kept[static_cast<size_t>(output.slot)] = true;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      const auto use = [&](Slot slot) {
        if (slot != kNoSlot) plan_.last_use[static_cast<size_t>(slot)] = static_cast<int32_t>(i);
      };
      for (const Slot slot : plan_.InputsOf(step)) use(slot);
      for (const auto& captured : step.captures)
        std::for_each(captured.begin(), captured.end(), use);
      for (const Slot slot : plan_.OutputsOf(step)) use(slot);  // unused outputs die at once
    }
    plan_.last_memory_use = plan_.last_use;
    for (size_t i = plan_.steps.size(); i-- > 0;) {
      const Step& step = plan_.steps[i];
      if (!step.traits.is_view) continue;
      const auto of = static_cast<size_t>(plan_.InputsOf(step)[0]);
      const auto view = static_cast<size_t>(plan_.OutputsOf(step)[0]);
      plan_.last_memory_use[of] = std::max(plan_.last_memory_use[of], plan_.last_memory_use[view]);
    }
    std::vector<std::vector<Slot>> releases(plan_.steps.size());
    for (size_t slot = 0; slot < plan_.slot_count; ++slot) {
      if (!kept[slot] && plan_.last_use[slot] >= 0) {
        releases[static_cast<size_t>(plan_.last_use[slot])].push_back(static_cast<Slot>(slot));
      }
    }
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      AppendSlots(releases[i], &plan_.steps[i].releases_begin, &plan_.steps[i].releases_end);
    }
  }

  static constexpr int kNowhere = -1;

  Graph& graph_;
  const PlanParts& parts_;
  const bool is_main_;
  Plan plan_;
  std::vector<uint8_t> location_of_provider_;
  std::vector<Slot> slot_of_;                              // by value: where it was made
  std::map<std::pair<ValueId, uint8_t>, Slot> copies_;     // by value and location
  std::map<std::pair<int32_t, int32_t>, int32_t> waited_;  // (waiting, awaited stream): last step
  std::map<ValueId, size_t> packed_reads_;                 // number of kernels that packed it
  std::map<ValueId, size_t> unaligned_reads_;  // number of kernels that take it as stored
};

}  // namespace

Result<Plan> BuildPlan(Graph& graph, const PlanParts& parts) {
  return PlanBuilder(graph, parts, true).Build();
}

}  // namespace tenon
