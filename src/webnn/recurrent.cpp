// LSTM and GRU over whole sequences.
#include <algorithm>
#include <cctype>

#include "webnn/emission.h"

namespace tenon::webnn {
namespace {

// The activations of one direction by WebNN's names. Both directions must have the same.
Result<std::vector<std::string>> ActivationsOf(const Node& node, std::vector<std::string> fallback,
                                               int64_t directions) {
  const Attribute* const attribute = node.FindAttribute("activations");
  const auto* const given =
      attribute == nullptr ? nullptr : attribute->get<std::vector<std::string>>();
  if (given == nullptr || given->empty()) return fallback;
  const size_t count = fallback.size();
  std::vector<std::string> names;
  for (std::string name : *given) {
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    if (name != "sigmoid" && name != "tanh" && name != "relu") {
      return NotImplemented("WebNN's recurrent operators do not have activation {}", name);
    }
    names.push_back(std::move(name));
  }
  if (names.size() != count * static_cast<size_t>(directions)) {
    return NotImplemented("{} activations", names.size());
  }
  for (size_t i = count; i < names.size(); ++i) {
    if (names[i] != names[i - count]) {
      return NotImplemented("WebNN has the same activations in both directions");
    }
  }
  names.resize(count);
  return names;
}

// Shared by both operators.
struct Recurrence {
  Operand x;
  int64_t steps, batch, hidden, directions;
  Parameters arguments, options;
};

// `gates`: their number; B has the biases of the input, then those of the state.
Result<Recurrence> ReadRecurrence(NodeContext& context, int64_t gates,
                                  std::vector<std::string> activations) {
  ProgramBuilder& b = context.builder();
  const Node& node = context.node();
  if (node.FindAttribute("clip") != nullptr) return NotImplemented("WebNN does not clip gates");
  if (node.GetInt("layout", 0) != 0) return NotImplemented("the batch as the first axis");
  Recurrence r;
  TENON_ASSIGN_OR_RETURN(r.x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand weight, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const Operand recurrent, context.Input(2));
  r.steps = b.ShapeOf(r.x)[0];
  r.batch = b.ShapeOf(r.x)[1];
  r.directions = b.ShapeOf(weight)[0];
  r.hidden = b.ShapeOf(recurrent)[2];
  r.arguments = {{"input", r.x},
                 {"weight", weight},
                 {"recurrentWeight", recurrent},
                 {"", r.steps},
                 {"", r.hidden}};
  if (context.HasInput(3)) {
    TENON_ASSIGN_OR_RETURN(const Operand bias, context.Input(3));
    const Numbers sizes = {r.directions, gates * r.hidden};
    TENON_ASSIGN_OR_RETURN(const Operand of_input, b.Slice(bias, {0, 0}, sizes));
    TENON_ASSIGN_OR_RETURN(const Operand of_state, b.Slice(bias, {0, gates * r.hidden}, sizes));
    r.options.push_back({"bias", of_input});
    r.options.push_back({"recurrentBias", of_state});
  }
  if (context.HasInput(4)) {
    TENON_ASSIGN_OR_RETURN(const Numbers lengths, context.Integers(4));
    for (const int64_t length : lengths) {
      if (length != r.steps) return NotImplemented("sequences shorter than the longest");
    }
  }
  if (context.HasInput(5)) {
    TENON_ASSIGN_OR_RETURN(const Operand state, context.Input(5));
    r.options.push_back({"initialHiddenState", state});
  }
  const std::string_view direction = node.GetString("direction", "forward");
  r.options.push_back({"direction", direction == "reverse"         ? std::string_view("backward")
                                    : direction == "bidirectional" ? std::string_view("both")
                                                                   : std::string_view("forward")});
  TENON_ASSIGN_OR_RETURN(activations, ActivationsOf(node, std::move(activations), r.directions));
  r.options.push_back({"activations", std::move(activations)});
  r.options.push_back({"returnSequence", context.HasOutput(0)});
  return r;
}

// Outputs 1 and 2 of the node are results 0 and 1; output 0 is the last result.
Status EmitRecurrence(NodeContext& context, Recurrence& r, size_t states) {
  ProgramBuilder& b = context.builder();
  const DataType type = b.TypeOf(r.x);
  std::vector<Descriptor> results(states,
                                  Descriptor{type, Shape({r.directions, r.batch, r.hidden})});
  if (context.HasOutput(0)) {
    results.push_back({type, Shape({r.steps, r.directions, r.batch, r.hidden})});
  }
  constexpr std::string_view kOutputs = "outputs";
  TENON_ASSIGN_OR_RETURN(const Operands made,
                         b.CallForSeveral(context.method(), std::move(r.arguments),
                                          std::move(r.options), results, {&kOutputs, 1}));
  for (size_t i = 0; i < states; ++i) {
    if (context.HasOutput(i + 1)) TENON_RETURN_IF_ERROR(context.SetOutput(i + 1, made[i]));
  }
  return context.HasOutput(0) ? context.SetOutput(0, made.back()) : OkStatus();
}

Status EmitLstm(NodeContext& context) {
  if (context.node().GetInt("input_forget", 0) != 0) {
    return NotImplemented("WebNN does not couple input and forget gate");
  }
  TENON_ASSIGN_OR_RETURN(Recurrence r, ReadRecurrence(context, 4, {"sigmoid", "tanh", "tanh"}));
  if (context.HasInput(6)) {
    TENON_ASSIGN_OR_RETURN(const Operand cell, context.Input(6));
    r.options.push_back({"initialCellState", cell});
  }
  // The peephole of the output gate uses the new cell in ONNX and the old one in WebNN.
  if (context.HasInput(7)) return NotImplemented("peepholes, which WebNN defines otherwise");
  r.options.push_back({"layout", std::string_view("iofg")});
  return EmitRecurrence(context, r, 2);
}

Status EmitGru(NodeContext& context) {
  TENON_ASSIGN_OR_RETURN(Recurrence r, ReadRecurrence(context, 3, {"sigmoid", "tanh"}));
  r.options.push_back({"resetAfter", context.node().GetInt("linear_before_reset", 0) != 0});
  r.options.push_back({"layout", std::string_view("zrn")});
  return EmitRecurrence(context, r, 1);
}

constexpr std::string_view kRestrictions =
    "full sequences, no clip, layout 0; Sigmoid, Tanh and Relu, in both directions the same";

constexpr Row kRows[] = {
    {"GRU", EmitGru, "gru", kRestrictions},
    {"LSTM", EmitLstm, "lstm",
     "full sequences, no clip, no peepholes, layout 0; Sigmoid, Tanh and Relu, in both directions "
     "the "
     "same"},
};

}  // namespace

TENON_WEBNN_FAMILY(Recurrent, kRows);

}  // namespace tenon::webnn
