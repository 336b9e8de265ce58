#include "ops/run_op.h"

#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ir/output_types.h"
#include "ir/schema.h"
#include "runtime/evaluate.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"

namespace tenon {

Result<std::vector<Value>> RunOp(OpCall call, int threads) {
  Graph graph;
  NodeSpec spec;
  spec.op_type = call.op_type;
  spec.domain = call.domain;
  spec.opset = call.opset != 0 ? call.opset : NewestOpset(call.domain);
  spec.attributes = std::move(call.attributes);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Value& input = call.inputs[i];
    if (!input.has_value()) {
      spec.inputs.push_back(ValueId::kNone);
      continue;
    }
    const ValueId id = graph.AddValue(Format("input{}", i), ValueType::Of(input));
    if (i >= call.first_constant) graph.SetInitializer(id, input);
    spec.inputs.push_back(id);
  }
  for (size_t i = 0; i < call.output_count; ++i) {
    spec.outputs.push_back(graph.AddValue(Format("output{}", i)));
  }
  Node& node = graph.AddNode(std::move(spec));
  node.schema = FindSchema(node.domain, node.op_type, node.opset);
  SetOutputTypes(graph, node);

  const OpRow* row = FindOpRow(graph, node);
  if (row == nullptr) return NotImplemented("no kernel for {}-{}", node.op_type, node.opset);
  KernelInfo info(graph, node);
  std::unique_ptr<Kernel> kernel;
  TENON_RETURN_IF_ERROR(row->make(info, row->options.traits, kernel));
  ThreadPool pool({.threads = threads});
  return EvaluateNode(graph, node, *kernel, call.inputs, pool);
}

Tensor RunTensorOp(OpCall call) {
  Result<std::vector<Value>> outputs = RunOp(std::move(call));
  if (!outputs) {
    ADD_FAILURE() << outputs.error().message();
    return {};
  }
  return (*outputs)[0].tensor();
}

}  // namespace tenon
