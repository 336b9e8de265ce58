// The gradients of LSTM, GRU and RNN, by one operator each.
#include "ir/gradient_rules.h"
#include "ir/output_types.h"
#include "ir/schema.h"

namespace tenon {
namespace {

// Makes a node of the forward part the operator of com.microsoft that keeps what its gradient
// needs.
void BecomeTraining(Builder& b, NodeId id, const char* op_type) {
  Node& node = b.graph().node(id);
  node.op_type = op_type;
  node.domain = kMicrosoft;
  node.opset = 1;
  node.RemoveAttribute("output_sequence");  // which the first versions had
  node.schema = FindSchema(node.domain, node.op_type, node.opset);
}

// `inputs`, then the gradients of Y, Y_h and, for an LSTM, Y_c.
Result<Gradients> ByOperator(Builder& b, const Inputs& in, const char* op_type, Gradients inputs,
                             size_t states, size_t outputs) {
  for (size_t i = 0; i <= states; ++i) {
    const bool has_gradient = i < in.output_gradients.size();
    inputs.push_back(has_gradient ? in.output_gradients[i] : ValueId::kNone);
  }
  if (in.x(7) != ValueId::kNone) inputs.push_back(in.x(7));
  return b.Ops(op_type, inputs, outputs, AttributesBut(in.node, {"output_sequence"}), kMicrosoft);
}

// In the order of the forward's inputs X, W, R, B, sequence_lens, initial_h, initial_c and P, of
// dX, dW, dR, dB, dH0, dC0 and dP.
Gradients InOrderOfInputs(const Inputs& in, const Gradients& found) {
  Gradients all = {found[0], found[1], found[2], found[3], ValueId::kNone};
  all.insert(all.end(), found.begin() + 4, found.end());
  all.resize(std::max(all.size(), in.node.inputs.size()), ValueId::kNone);
  return all;
}

Result<Gradients> Lstm(Builder& b, const Inputs& in) {
  if (in.node.domain.empty()) BecomeTraining(b, in.node.id, "LSTMTraining");
  const ValueId y = b.OutputOf(in.node, 0), cells = b.OutputOf(in.node, 3);
  const ValueId gates = b.OutputOf(in.node, 4);
  TENON_ASSIGN_OR_RETURN(
      const Gradients found,
      ByOperator(b, in, "LSTMGrad",
                 {in.x(0), in.x(1), in.x(2), in.x(4), in.x(5), in.x(6), y, cells, gates}, 2, 7));
  return InOrderOfInputs(in, found);
}

Result<Gradients> Gru(Builder& b, const Inputs& in) {
  if (in.node.domain.empty()) BecomeTraining(b, in.node.id, "GRUTraining");
  const ValueId y = b.OutputOf(in.node, 0), gates = b.OutputOf(in.node, 2);
  TENON_ASSIGN_OR_RETURN(
      const Gradients found,
      ByOperator(b, in, "GRUGrad", {in.x(0), in.x(1), in.x(2), in.x(3), in.x(4), in.x(5), y, gates},
                 1, 5));
  return InOrderOfInputs(in, found);
}

Result<Gradients> Rnn(Builder& b, const Inputs& in) {
  const ValueId y = b.OutputOf(in.node, 0);
  TENON_ASSIGN_OR_RETURN(
      const Gradients found,
      ByOperator(b, in, "RNNGrad", {in.x(0), in.x(1), in.x(2), in.x(4), in.x(5), y}, 1, 5));
  return InOrderOfInputs(in, found);
}

constexpr NamedGradientRule kRules[] = {
    {"GRU", Gru, 7},   {"GRUTraining", Gru, 1, kMicrosoft},
    {"LSTM", Lstm, 7}, {"LSTMTraining", Lstm, 1, kMicrosoft},
    {"RNN", Rnn, 7},
};

}  // namespace

std::span<const NamedGradientRule> RecurrentGradients() { return kRules; }

}  // namespace tenon
