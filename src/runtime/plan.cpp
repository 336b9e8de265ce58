#include "runtime/plan.h"

#include <algorithm>
#include <map>

#include "ir/schema.h"
#include "runtime/executor.h"

namespace tenon {
namespace {

class PlanBuilder {
 public:
  PlanBuilder(Graph& graph, std::span<ExecutionProvider* const> providers,
              std::shared_ptr<Allocator> memory)
      : graph_(graph), providers_(providers), slot_of_(graph.value_count(), kNoSlot) {
    plan_.graph = &graph;
    plan_.memory = std::move(memory);
  }

  Result<Plan> Build() {
    TENON_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
    for (const ValueId input : graph_.inputs) plan_.inputs.push_back(SlotOf(input));
    for (const Capture& capture : graph_.captures) plan_.inputs.push_back(SlotOf(capture.inner));
    plan_.capture_count = graph_.captures.size();
    plan_.steps.reserve(order.size());
    for (const NodeId id : order) {
      TENON_RETURN_IF_ERROR(AddStep(graph_.node(id)));
    }
    for (const GraphOutput& output : graph_.outputs()) {
      plan_.outputs.push_back({output.name, SlotOf(output.value)});
    }
    DropPackedConstants();
    CollectConstants();
    plan_.slot_count = slot_count_;
    FindLastUses();
    return std::move(plan_);
  }

 private:
  Slot SlotOf(ValueId id) {
    if (id == ValueId::kNone) return kNoSlot;
    Slot& slot = slot_of_[Index(id)];
    if (slot == kNoSlot) slot = static_cast<Slot>(slot_count_++);
    return slot;
  }

  Status AddStep(const Node& node) {
    Step step;
    step.node = &node;
    KernelInfo info(graph_, node);
    Result<std::unique_ptr<Kernel>> kernel = MakeKernel(node, info);
    if (!kernel) return std::move(kernel.error()).WithContext(DescribeWithVersion(node));
    step.kernel = std::move(*kernel);
    step.traits = step.kernel->traits();
    for (const size_t input : info.released_constants) ++packed_reads_[node.inputs[input]];
    AppendSlots(node.inputs, &step.inputs_begin, &step.inputs_end);
    AppendSlots(node.outputs, &step.outputs_begin, &step.outputs_end);
    for (Graph* subgraph : node.Subgraphs()) {
      TENON_ASSIGN_OR_RETURN(Plan subplan, BuildPlan(*subgraph, providers_, plan_.memory));
      step.subgraphs.push_back(std::make_unique<Executor>(std::move(subplan)));
      std::vector<Slot>& captured = step.captures.emplace_back();
      for (const Capture& capture : subgraph->captures) captured.push_back(SlotOf(capture.outer));
    }
    plan_.steps.push_back(std::move(step));
    return OkStatus();
  }

  Result<std::unique_ptr<Kernel>> MakeKernel(const Node& node, KernelInfo& info) {
    const auto provider = static_cast<size_t>(node.provider);
    if (provider >= providers_.size()) return NotImplemented("no provider has a kernel for it");
    return providers_[provider]->CreateKernel(info);
  }

  void AppendSlots(const std::vector<ValueId>& ids, uint32_t* begin, uint32_t* end) {
    *begin = static_cast<uint32_t>(plan_.slots.size());
    for (const ValueId id : ids) plan_.slots.push_back(SlotOf(id));
    *end = static_cast<uint32_t>(plan_.slots.size());
  }

  // Frees the elements of constants that all their readers have packed into a form of their own;
  // their shapes stay, since shape functions read them.
  void DropPackedConstants() {
    for (const auto& [id, reads] : packed_reads_) {
      const ValueInfo& info = graph_.value(id);
      if (info.output_uses == 0 && reads == info.consumers.size() && graph_.ConstantOf(id)) {
        const Tensor& constant = info.initializer.tensor();
        graph_.SetInitializer(id, Tensor::View(constant.type(), constant.shape(), nullptr));
      }
    }
  }

  void CollectConstants() {
    for (size_t i = 0; i < slot_of_.size(); ++i) {
      const ValueInfo& info = graph_.value(static_cast<ValueId>(i));
      if (slot_of_[i] == kNoSlot || !info.initializer.has_value()) continue;
      plan_.constants.emplace_back(slot_of_[i], info.initializer);
      if (info.is_input) plan_.default_inputs.emplace_back(slot_of_[i], info.initializer);
    }
  }

  void FindLastUses() {
    plan_.last_use.assign(slot_count_, -1);
    std::vector<bool> kept(slot_count_, false);
    for (const auto& [slot, value] : plan_.constants) kept[static_cast<size_t>(slot)] = true;
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
    std::vector<std::vector<Slot>> releases(plan_.steps.size());
    for (size_t slot = 0; slot < slot_count_; ++slot) {
      if (!kept[slot] && plan_.last_use[slot] >= 0) {
        releases[static_cast<size_t>(plan_.last_use[slot])].push_back(static_cast<Slot>(slot));
      }
    }
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      plan_.steps[i].releases_begin = static_cast<uint32_t>(plan_.slots.size());
      plan_.slots.insert(plan_.slots.end(), releases[i].begin(), releases[i].end());
      plan_.steps[i].releases_end = static_cast<uint32_t>(plan_.slots.size());
    }
  }

  Graph& graph_;
  std::span<ExecutionProvider* const> providers_;
  Plan plan_;
  std::vector<Slot> slot_of_;
  size_t slot_count_ = 0;
  std::map<ValueId, size_t> packed_reads_;
};

}  // namespace

Result<Plan> BuildPlan(Graph& graph, std::span<ExecutionProvider* const> providers,
                       std::shared_ptr<Allocator> memory) {
  return PlanBuilder(graph, providers, std::move(memory)).Build();
}

std::string DescribeWithVersion(const Node& node) {
  const std::string name =
      node.name.empty() ? Format("#{}", Index(node.id)) : Format("'{}'", node.name);
  const int32_t since = node.schema ? node.schema->since : node.opset;
  const std::string domain = node.domain.empty() ? "" : node.domain + ".";
  return Format("{}{}-{} node {}", domain, node.op_type, since, name);
}

}  // namespace tenon
