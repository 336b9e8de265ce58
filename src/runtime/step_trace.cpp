#include "runtime/step_trace.h"

#include "base/exception_barrier.h"
#include "base/thread_id.h"
#include "base/thread_pool.h"

namespace tenon {
namespace {

TracedNode Describe(const RunScope& scope, const Plan& plan, const Step& step) {
  const Node& node = *step.node;
  const auto index = static_cast<uint32_t>(Index(node.id));
  TracedNode traced;
  traced.name = node.name.empty() ? Format("{}_{}", node.op_type, index) : node.name;
  traced.op_type = node.op_type;
  traced.provider = plan.providers[static_cast<size_t>(node.provider)]->name();
  traced.index = index;
  traced.counter = static_cast<uint32_t>(&step - plan.steps.data());
  const bool has_pool = scope.threads != nullptr && scope.threads->threads() > 1;
  if (has_pool) traced.threads = Format("session-{}-intra-op", scope.session_id);
  return traced;
}

const TracedNode* Find(const RunScope& scope, const Plan& plan, const Step& step) {
  if (scope.profiler == nullptr) return nullptr;
  return scope.profiler->Describe(&step, [&] { return Describe(scope, plan, step); });
}

}  // namespace

NodeInTrace::NodeInTrace(const RunScope& scope, const Plan& plan, const Step& step)
    : node_(Find(scope, plan, step)),
      context_(node_ == nullptr ? nullptr : TraceContext::Current()),
      outer_(context_ == nullptr ? nullptr : context_->node) {
  if (context_ != nullptr) context_->node = &node_->name;
}

NodeInTrace::~NodeInTrace() {
  if (context_ != nullptr) context_->node = outer_;
}

StepTrace::StepTrace(const RunScope& scope, const Plan& plan, const Step& step)
    : profiler_(*scope.profiler), plan_(plan), step_(step), node_(scope, plan, step) {
  trace_.node = node_.node();
  trace_.fence_before = profiler_.Now();
}

StepTrace::~StepTrace() {
  if (told_providers_) (void)HasMemoryFor([this] { TellProvidersEnd(); });
  if (!is_done_) return;
  trace_.fence_after = profiler_.Now();
  profiler_.Add(std::move(trace_));
}

void StepTrace::TellProvidersEnd() {
  TraceEvent event;
  event.category = TraceCategory::kNode;
  event.name = trace_.node->name + "_kernel_time";
  event.start = trace_.kernel_start;
  event.duration = profiler_.Now() - trace_.kernel_start;
  event.args = {{"op_name", trace_.node->op_type}, {"provider", trace_.node->provider}};
  profiler_.StopEvent(event);
}

void StepTrace::Measure(const Value* value, uint64_t* bytes) {
  if (value == nullptr || !value->is_tensor()) return;
  const Tensor& tensor = value->tensor();
  *bytes += tensor.bytes();
  trace_.shapes.push_back(static_cast<int64_t>(tensor.type()));
  trace_.shapes.push_back(static_cast<int64_t>(tensor.rank()));
  for (const int64_t size : tensor.shape()) trace_.shapes.push_back(size);
}

AllocatorStats StepTrace::MemoryStats() const {
  for (const Slot output : plan_.OutputsOf(step_)) {
    if (output != kNoSlot) return plan_.LocationOf(output).allocator->Stats();
  }
  return {};
}

void StepTrace::StartKernel(const Frame& frame) {
  trace_.memory_before = MemoryStats();
  trace_.kernel_start = profiler_.Now();
  if (profiler_.has_providers()) {
    profiler_.StartEvent(trace_.kernel_start);
    told_providers_ = true;
  }
  collecting_.emplace(&loops_);
  const std::span<const Value* const> inputs = frame.InputsOf(step_);
  const std::span<const Slot> slots = plan_.InputsOf(step_);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    const bool is_parameter = plan_.IsConstant(slots[i]);
    trace_.input_tensors += inputs[i]->is_tensor();
    Measure(inputs[i], is_parameter ? &trace_.parameter_bytes : &trace_.activation_bytes);
  }
}

void StepTrace::EndKernel(const Frame& frame) {
  collecting_.reset();
  trace_.core = CurrentCpu();
  if (loops_.has_loops()) trace_.loops = std::make_unique<LoopStats::Record>(loops_.Take());
  for (const Value* output : frame.OutputsOf(step_)) Measure(output, &trace_.output_bytes);
  trace_.memory_after = MemoryStats();
  trace_.kernel_end = profiler_.Now();
  is_done_ = true;
}

void StepTrace::EndCached(const Frame& frame) {
  trace_.is_cached = true;
  EndKernel(frame);
}

}  // namespace tenon
