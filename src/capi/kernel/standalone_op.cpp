// OrtOp: an operator of Tenon that a client's kernel calls.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/inline_array.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/kernel/kernel_context.h"
#include "capi/kernel/kernel_info.h"
#include "capi/value/element_type.h"
#include "ir/inference.h"
#include "ir/schema.h"
#include "ops/cpu_provider.h"
#include "ops/framework/registry.h"
#include "runtime/build_plan.h"
#include "runtime/data_transfer.h"
#include "runtime/executor.h"
#include "runtime/partition.h"
#include "tensor/arena.h"

// A graph of one node.
struct OrtOp {
  tenon::Graph graph;
  std::vector<std::unique_ptr<tenon::ExecutionProvider>> providers;
  // The objects that the plan refers to.
  tenon::ExecutionProvider* cpu = nullptr;
  tenon::Location memory;
  tenon::DataTransfers transfers;
  std::unique_ptr<tenon::Executor> executor;  // runs are safe on several threads at once
};

namespace tenon::capi {
namespace {

constexpr size_t kInlineValues = 8;

// Element types by the names of an operator's type constraints.
struct TypeConstraint {
  std::string_view name;
  DataType type;
};

Result<std::vector<TypeConstraint>> ConstraintsOf(const char** names,
                                                  const ONNXTensorElementDataType* types,
                                                  int count) {
  std::vector<TypeConstraint> constraints;
  for (int i = 0; i < count; ++i) {
    if (names[i] == nullptr) {
      return InvalidArgument("type_constraint_names[{}] must not be null", i);
    }
    TENON_ASSIGN_OR_RETURN(const DataType type, FromElementType(types[i]));
    constraints.push_back({names[i], type});
  }
  return constraints;
}

// The element type of an input, from the schema and the constraints; kUndefined if they say none.
DataType TypeOfInput(const OpSchema* schema, size_t input,
                     const std::vector<TypeConstraint>& constraints) {
  if (schema == nullptr || schema->inputs.empty()) {
    return constraints.empty() ? DataType::kUndefined : constraints.front().type;
  }
  const OpFormal& formal = schema->inputs[std::min(input, schema->inputs.size() - 1)];
  for (const TypeConstraint& constraint : constraints) {
    if (constraint.name == formal.type) return constraint.type;
  }
  constexpr std::string_view kPrefix = "tensor(";
  if (!formal.type.starts_with(kPrefix)) return DataType::kUndefined;
  const std::string_view name = formal.type.substr(kPrefix.size());
  return DataTypeFromName(name.substr(0, name.size() - 1));
}

Status CheckCounts(int type_constraint_count, int attr_count, int input_count, int output_count) {
  const struct {
    const char* name;
    int count;
  } kCounts[] = {{"type_constraint_count", type_constraint_count},
                 {"attr_count", attr_count},
                 {"input_count", input_count},
                 {"output_count", output_count}};
  for (const auto& [name, count] : kCounts) {
    if (count < 0) return InvalidArgument("{} is at least 0, got {}", name, count);
  }
  return OkStatus();
}

// Infers types, claims the node for the CPU and makes it ready to run.
Status Prepare(OrtOp& op, const Logger& logger) {
  TENON_RETURN_IF_ERROR(InferTypes(op.graph, OpShapeFunctions()));
  op.providers.push_back(MakeCpuProvider());
  TENON_RETURN_IF_ERROR(Partitioner(op.graph, op.providers, logger).Assign(op.graph));
  TENON_RETURN_IF_ERROR(CheckAllAssigned(op.graph, OpShapeFunctions()));
  op.cpu = op.providers.front().get();
  op.memory = MemoryOf(*op.cpu);
  const PlanParts parts = {{&op.cpu, 1},
                           {&op.memory, 1},
                           std::make_shared<CachingArena>(SharedCpuAllocator()),
                           &op.transfers,
                           {}};
  TENON_ASSIGN_OR_RETURN(Plan plan, BuildPlan(op.graph, parts));
  op.executor = std::make_unique<Executor>(std::move(plan));
  return OkStatus();
}

}  // namespace

OrtStatus* CreateOp(const OrtKernelInfo* info, const char* op_name, const char* domain, int version,
                    const char** type_constraint_names,
                    const ONNXTensorElementDataType* type_constraint_values,
                    int type_constraint_count, const OrtOpAttr* const* attr_values, int attr_count,
                    int input_count, int output_count, OrtOp** ort_op) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL(op_name);
    TENON_RETURN_IF_NULL(ort_op);
    TENON_RETURN_IF_ERROR(
        CheckCounts(type_constraint_count, attr_count, input_count, output_count));
    TENON_RETURN_IF_NULL_ARRAY(type_constraint_names, type_constraint_count);
    TENON_RETURN_IF_NULL_ARRAY(type_constraint_values, type_constraint_count);
    TENON_RETURN_IF_NULL_ARRAY(attr_values, attr_count);
    TENON_ASSIGN_OR_RETURN(
        const std::vector<TypeConstraint> constraints,
        ConstraintsOf(type_constraint_names, type_constraint_values, type_constraint_count));
    NodeSpec spec;
    spec.op_type = op_name;
    if (domain != nullptr && domain != std::string_view("ai.onnx")) spec.domain = domain;
    spec.opset = version;
    const OpSchema* const schema = FindSchema(spec.domain, spec.op_type, version);
    auto op = std::make_unique<OrtOp>();
    for (size_t i = 0; i < static_cast<size_t>(input_count); ++i) {
      const ValueId id = op->graph.AddValue(Format("input{}", i),
                                            ValueType::Tensor(TypeOfInput(schema, i, constraints)));
      op->graph.AddInput(id);
      spec.inputs.push_back(id);
    }
    for (size_t i = 0; i < static_cast<size_t>(output_count); ++i) {
      spec.outputs.push_back(op->graph.AddValue(Format("output{}", i)));
    }
    for (int i = 0; i < attr_count; ++i) {
      if (attr_values[i] == nullptr) return InvalidArgument("attr_values[{}] must not be null", i);
      spec.attributes.push_back(CloneAttribute(*Unwrap(attr_values[i])));
    }
    Node& node = op->graph.AddNode(std::move(spec));
    node.schema = schema;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      op->graph.AddOutput(Format("output{}", i), node.outputs[i]);
    }
    TENON_RETURN_IF_ERROR(Prepare(*op, info->node->logger));
    *ort_op = op.release();
    return OkStatus();
  });
}

OrtStatus* InvokeOp(const OrtKernelContext* context, const OrtOp* ort_op,
                    const OrtValue* const* input_values, int input_count,
                    OrtValue* const* output_values, int output_count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(ort_op);
    const size_t inputs = ort_op->graph.inputs.size();
    const size_t outputs = ort_op->graph.outputs().size();
    if (input_count < 0 || static_cast<size_t>(input_count) != inputs) {
      return InvalidArgument("the operator has {} inputs, got {}", inputs, input_count);
    }
    if (output_count < 0 || static_cast<size_t>(output_count) != outputs) {
      return InvalidArgument("the operator has {} outputs, got {}", outputs, output_count);
    }
    TENON_RETURN_IF_NULL_ARRAY(input_values, input_count);
    TENON_RETURN_IF_NULL_ARRAY(output_values, output_count);
    InlineArray<Value, kInlineValues> feeds(inputs);
    InlineArray<Value, kInlineValues> fetches(outputs);
    for (size_t i = 0; i < inputs; ++i) {
      if (input_values[i] == nullptr) return InvalidArgument("input {} must not be null", i);
      feeds[i] = *Unwrap(input_values[i]);
      const DataType type = ort_op->graph.value(ort_op->graph.inputs[i]).type.element_type;
      const bool fits = type == DataType::kUndefined ||
                        (feeds[i].is_tensor() && feeds[i].tensor().type() == type);
      if (!fits) return InvalidArgument("input {}: expected tensor({})", i, DataTypeName(type));
    }
    for (size_t i = 0; i < outputs; ++i) {
      if (output_values[i] == nullptr) return InvalidArgument("output {} must not be null", i);
      fetches[i] = *Unwrap(output_values[i]);
    }
    RunScope scope;
    scope.threads = &context->context.threads();
    const FrameLease frame(ort_op->executor->frames());
    TENON_RETURN_IF_ERROR(
        ort_op->executor->Run(scope, *frame, {.feeds = feeds.span(), .fetches = fetches.span()}));
    for (size_t i = 0; i < outputs; ++i) {
      if (!Unwrap(output_values[i])->has_value()) *Unwrap(output_values[i]) = fetches[i];
    }
    return OkStatus();
  });
}

void ReleaseOp(OrtOp* input) noexcept { delete input; }

}  // namespace tenon::capi
