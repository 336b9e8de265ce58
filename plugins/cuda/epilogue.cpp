// Element-wise operators that a product or a convolution does on the way.

#include "operators.h"
#include "product.h"

namespace cuda {
namespace {

Status LowerOrdinarily(Planner& planner, const Node& node) {
  return FindGenerated(node)->lower(planner, node);
}

Status SetExtended(Planner& planner, const Node& node, const TensorRef& from,
                   std::shared_ptr<Call> call) {
  return planner.SetOutput(node, 0, planner.FromCall(from->type, from->shape, std::move(call)));
}

Status LowerActivation(Planner& planner, const Node& node, EpilogueCall::Activation activation) {
  const TensorRef x = planner.Input(node, 0);
  const EpilogueCall* call = Extensible(*x);
  auto extended = call ? call->Activate(activation) : nullptr;
  if (!extended) return LowerOrdinarily(planner, node);
  return SetExtended(planner, node, x, std::move(extended));
}

Status LowerRelu(Planner& planner, const Node& node) {
  return LowerActivation(planner, node, EpilogueCall::Activation::kRelu);
}

bool IsTanhGelu(const Node& node) {
  return node.type == "FastGelu" || node.String("approximate", "none") == "tanh";
}

// The bias of FastGelu and BiasGelu is the product's.
Status LowerGelu(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  const EpilogueCall* call = IsTanhGelu(node) ? Extensible(*x) : nullptr;
  if (!call) return LowerOrdinarily(planner, node);
  std::shared_ptr<Call> biased;
  if (planner.HasInput(node, 1)) {
    biased = call->Add(planner, x->shape, planner.Input(node, 1));
    if (!biased) return LowerOrdinarily(planner, node);
    call = static_cast<const EpilogueCall*>(biased.get());
  }
  auto extended = call->Activate(EpilogueCall::Activation::kTanhGelu);
  if (!extended) return LowerOrdinarily(planner, node);
  return SetExtended(planner, node, x, std::move(extended));
}

}  // namespace

TensorRef AddToCall(Planner& planner, const TensorRef& sum, const TensorRef& other) {
  const EpilogueCall* call = Extensible(*sum);
  auto extended = call ? call->Add(planner, sum->shape, other) : nullptr;
  return extended ? planner.FromCall(sum->type, sum->shape, std::move(extended)) : nullptr;
}

// As codegen has them, but for how they are lowered.
std::span<const Operator> EpilogueOperators() {
  static const std::vector<Operator> kRows = [] {
    std::vector<Operator> rows;
    const auto add = [&](const char* type, const char* domain, Lower lower) {
      Node node;
      node.type = type;
      node.domain = domain;
      rows.push_back(*FindGenerated(node));
      rows.back().lower = lower;
    };
    add("Relu", "", LowerRelu);
    add("Gelu", "", LowerGelu);
    for (const char* type : {"Gelu", "FastGelu", "BiasGelu"}) add(type, "com.microsoft", LowerGelu);
    return rows;
  }();
  return kRows;
}

}  // namespace cuda
