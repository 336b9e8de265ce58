// The gradients of If, Loop and Scan. Each is an operator of that kind, whose subgraph computes the
// original one again, and has a Gradient of its own, which is replaced afterwards.
#include <algorithm>
#include <array>

#include "ir/gradient_rules.h"
#include "ir/schema.h"

namespace tenon {
namespace {

// A copy of a subgraph that becomes one for the gradients of what it reads. Its values have the ids
// that they have in the original.
class SubgraphGradient {
 public:
  SubgraphGradient(Builder& outer, const Graph& original)
      : outer_(outer),
        graph_(original.Clone()),
        // Names may not be those of outer values.
        b_(*graph_, outer.graph().UnusedName(outer.prefix() + "body") + "/", outer.opset(), false) {
    for (const ValueId input : graph_->inputs) graph_->value(input).is_input = false;
    graph_->inputs.clear();
    for (const GraphOutput& output : graph_->outputs()) outputs_.push_back(output.value);
    graph_->ReplaceOutputs({});
  }

  Builder& b() { return b_; }
  Graph& graph() { return *graph_; }
  std::unique_ptr<Graph> Take() { return std::move(graph_); }

  // A value of the outer graph as one of this.
  ValueId Captured(ValueId outer) {
    for (const Capture& capture : graph_->captures) {
      if (capture.outer == outer) return capture.inner;
    }
    const ValueInfo& info = outer_.graph().value(outer);
    const ValueId inner = graph_->AddValue(graph_->UnusedName(info.name), info.type);
    graph_->captures.push_back({outer, inner});
    return inner;
  }

  ValueId NewInput(const ValueType& type) {
    const ValueId id = graph_->AddValue(graph_->UnusedName(b_.prefix() + "input"), type);
    graph_->AddInput(id);
    return id;
  }

  void AddOutput(ValueId id) {
    // Each output is a value of its own that a node makes.
    const ValueId own = b_.Op("Identity", {id});
    graph_->AddOutput(graph_->value(own).name, own);
  }

  // Tells the gradient of the original output `i`.
  void SetGradient(size_t i, ValueId gradient) {
    const ValueId product =
        b_.Op("ReduceSum", {Mul(b_, outputs_[i], gradient)}, Attributes(Int("keepdims", 0)));
    loss_ = loss_ == ValueId::kNone ? product : Add(b_, loss_, b_.CastTo(product, loss_));
  }

  Gradients GradientsOf(const std::vector<ValueId>& xs) {
    if (loss_ == ValueId::kNone) {
      Gradients zeros;
      for (const ValueId x : xs) zeros.push_back(b_.Filled(0, x));
      return zeros;
    }
    if (xs.empty()) return {};
    std::vector<std::string> names;
    for (const ValueId x : xs) names.push_back(graph_->value(x).name);
    const std::string y = graph_->value(loss_).name;
    Gradients found =
        b_.Ops("Gradient", xs, xs.size(),
               Attributes(Attribute("xs", std::move(names)), Attribute("y", y)), kTraining);
    for (size_t i = 0; i < xs.size(); ++i) {
      graph_->value(found[i]).type = graph_->value(xs[i]).type;
    }
    return found;
  }

 private:
  Builder& outer_;
  std::unique_ptr<Graph> graph_;
  Builder b_;
  std::vector<ValueId> outputs_;
  ValueId loss_ = ValueId::kNone;
};

// The outer values that subgraphs read and that have gradients, each once.
std::vector<ValueId> CapturesOf(const Inputs& in) {
  std::vector<ValueId> found;
  for (const Graph* subgraph : in.node.Subgraphs()) {
    for (const Capture& capture : subgraph->captures) {
      const bool is_known = std::find(found.begin(), found.end(), capture.outer) != found.end();
      if (in.Needs(capture.outer) && !is_known) found.push_back(capture.outer);
    }
  }
  return found;
}

// `all`, the gradients of the node's inputs, followed by those of all captures of its subgraphs, of
// which `found` has the gradients of `captures`.
Gradients WithCaptures(const Inputs& in, Gradients all, const std::vector<ValueId>& captures,
                       Gradients found) {
  for (const Graph* subgraph : in.node.Subgraphs()) {
    for (const Capture& capture : subgraph->captures) {
      const auto known = std::find(captures.begin(), captures.end(), capture.outer);
      if (known == captures.end()) {
        all.push_back(ValueId::kNone);
      } else {
        // Values that occur twice are counted once.
        all.push_back(
            std::exchange(found[static_cast<size_t>(known - captures.begin())], ValueId::kNone));
      }
    }
  }
  return all;
}

bool HasGradient(const Inputs& in, size_t output) {
  return output < in.output_gradients.size() && in.output_gradients[output] != ValueId::kNone &&
         in.Needs(in.node.outputs[output]);
}

void SetTypes(Builder& b, const std::vector<ValueId>& values, const std::vector<ValueId>& like) {
  for (size_t i = 0; i < like.size(); ++i) {
    b.graph().value(values[i]).type = b.graph().value(like[i]).type;
  }
}

// ---- If -----------------------------------------------------------------------------------------

Result<Gradients> If(Builder& b, const Inputs& in) {
  const std::vector<ValueId> captures = CapturesOf(in);
  if (captures.empty()) return Gradients{ValueId::kNone};
  std::vector<Attribute> branches;
  for (const Attribute& attribute : in.node.attributes) {
    const auto* original = attribute.get<std::unique_ptr<Graph>>();
    if (original == nullptr) continue;
    SubgraphGradient branch(b, **original);
    for (size_t i = 0; i < in.output_gradients.size(); ++i) {
      if (HasGradient(in, i)) branch.SetGradient(i, branch.Captured(in.output_gradients[i]));
    }
    std::vector<ValueId> xs;
    for (const ValueId captured : captures) xs.push_back(branch.Captured(captured));
    for (const ValueId gradient : branch.GradientsOf(xs)) branch.AddOutput(gradient);
    branches.emplace_back(attribute.name, branch.Take());
  }
  const Gradients found = b.Ops("If", std::array{in.x(0)}, captures.size(), std::move(branches));
  SetTypes(b, found, captures);
  return WithCaptures(in, {ValueId::kNone}, captures, found);
}

// ---- Loop and Scan ------------------------------------------------------------------------------

// A Scan or a Loop as the other one would see it. Of both the gradient is a Scan from the last
// iteration to the first, whose states are the gradients of the states and the sums of those of the
// captures.
struct Iteration {
  size_t first_input = 0;        // states among the inputs, of the node and of its subgraph
  size_t first_body_output = 0;  // states among the outputs of the subgraph
  size_t states = 0;             // which are the first outputs of the node
  size_t scanned = 0;            // inputs of which each iteration has a slice, after the states
  size_t collected = 0;          // outputs, likewise
  std::vector<int64_t> input_axes, input_directions, output_axes, output_directions;
};

std::vector<int64_t> ListOf(const Node& node, const char* name, size_t count) {
  std::vector<int64_t> list = node.GetInts(name);
  list.resize(count, 0);
  return list;
}

// The type of a value, without a shape.
ValueType ElementOf(Builder& b, ValueId id) {
  ValueType type;
  type.element_type = b.graph().value(id).type.element_type;
  return type;
}

// Makes the node collect an input of its subgraph, before each iteration; returns what it collects.
ValueId Collect(Builder& b, NodeId id, Graph& body, size_t input) {
  const ValueId inner = body.inputs[input];
  Builder inside(body, b.graph().UnusedName(b.prefix() + "kept") + "/", b.opset(), false);
  const ValueId copy = inside.Op("Identity", {inner});
  const size_t place = body.outputs().size() - (b.graph().node(id).op_type == "Loop" ? 1 : 0);
  body.AddOutput(body.value(copy).name, copy);
  const ValueId collected =
      b.graph().AddValue(b.graph().UnusedName(inside.prefix()), ElementOf(inside, inner));
  b.graph().SetOutputValue(id, place, collected);
  return collected;
}

// The attributes of the gradient: the lists grow with inputs and outputs.
struct ScanLists {
  std::vector<int64_t> input_axes, input_directions, output_axes, output_directions;
};

Result<Gradients> Iterated(Builder& b, const Inputs& in, const Iteration& iteration) {
  Graph& outer = b.graph();
  const NodeId id = in.node.id;
  Graph& body = *in.node.Subgraphs()[0];
  for (size_t i = 0; i < iteration.states; ++i) {
    const ValueId state = in.x(iteration.first_input + i);
    if (state != ValueId::kNone && outer.value(state).type.is_tensor()) continue;
    return NotImplemented("{} has no gradient yet: state {} is no tensor", in.node.Describe(), i);
  }
  const bool is_loop = in.node.op_type == "Loop";
  const std::vector<ValueId> captures = CapturesOf(in);
  SubgraphGradient inside(b, body);
  Graph& graph = inside.graph();
  std::vector<ValueId> states, scanned, xs, like;

  // The gradients of the states, from those of the results on.
  std::vector<size_t> with_gradient;
  for (size_t i = 0; i < iteration.states; ++i) {
    const ValueId state = in.x(iteration.first_input + i);
    const ValueId result = in.node.has_output(i) ? in.node.outputs[i] : ValueId::kNone;
    const bool needs = in.Needs(state) || (result != ValueId::kNone && in.Needs(result));
    if (!needs) continue;
    with_gradient.push_back(i);
    states.push_back(HasGradient(in, i) ? in.output_gradients[i] : b.Filled(0, state));
    like.push_back(state);
    inside.SetGradient(iteration.first_body_output + i, inside.NewInput(ElementOf(b, state)));
    xs.push_back(body.inputs[iteration.first_input + i]);
  }
  std::vector<ValueId> sums;
  for (const ValueId captured : captures) {
    states.push_back(b.Filled(0, captured));
    like.push_back(captured);
    sums.push_back(inside.NewInput(outer.value(captured).type));
    xs.push_back(inside.Captured(captured));
  }

  // What the iterations read.
  ScanLists lists;
  const auto add_scanned = [&](ValueId whole, int64_t axis, int64_t direction) {
    scanned.push_back(whole);
    lists.input_axes.push_back(axis);
    lists.input_directions.push_back(1 - direction);
  };
  for (size_t i = is_loop ? 0 : iteration.first_input; i < body.inputs.size(); ++i) {
    const ValueId inner = body.inputs[i];
    if (is_loop && i == 1) {  // the condition, which holds
      const auto& shape = body.value(inner).type.shape;
      const bool is_scalar = !shape || shape->rank() == 0;
      graph.SetInitializer(inner, Tensor::Of<bool>(is_scalar ? Shape() : Shape({1}), {true}));
      continue;
    }
    graph.AddInput(inner);
    const size_t slice = i - iteration.states;
    if (is_loop || i < iteration.states) {
      add_scanned(Collect(b, id, body, i), 0, 0);
    } else {
      const ValueId whole = in.x(i);
      add_scanned(whole, iteration.input_axes[slice], iteration.input_directions[slice]);
      if (!in.Needs(whole)) continue;
      lists.output_axes.push_back(iteration.input_axes[slice]);
      lists.output_directions.push_back(1 - iteration.input_directions[slice]);
      like.push_back(whole);
      xs.push_back(inner);
    }
  }
  for (size_t k = 0; k < iteration.collected; ++k) {
    if (!HasGradient(in, iteration.states + k)) continue;
    add_scanned(in.output_gradients[iteration.states + k], iteration.output_axes[k],
                iteration.output_directions[k]);
    inside.SetGradient(iteration.first_body_output + iteration.states + k,
                       inside.NewInput(ElementOf(b, in.node.outputs[iteration.states + k])));
  }

  Gradients slopes = inside.GradientsOf(xs);
  for (size_t i = 0; i < sums.size(); ++i) {
    ValueId& slope = slopes[with_gradient.size() + i];
    slope = Add(inside.b(), sums[i], slope);
  }
  for (const ValueId slope : slopes) inside.AddOutput(slope);

  std::vector<ValueId> inputs = states;
  inputs.insert(inputs.end(), scanned.begin(), scanned.end());
  std::vector<Attribute> attributes;
  attributes.emplace_back("body", inside.Take());
  attributes.push_back(Int("num_scan_inputs", static_cast<int64_t>(scanned.size())));
  attributes.emplace_back("scan_input_axes", std::move(lists.input_axes));
  attributes.emplace_back("scan_input_directions", std::move(lists.input_directions));
  attributes.emplace_back("scan_output_axes", std::move(lists.output_axes));
  attributes.emplace_back("scan_output_directions", std::move(lists.output_directions));
  const Gradients found = b.Ops("Scan", inputs, like.size(), std::move(attributes));
  SetTypes(b, found, like);

  Gradients all(in.node.inputs.size(), ValueId::kNone);
  for (size_t i = 0; i < with_gradient.size(); ++i) {
    all[iteration.first_input + with_gradient[i]] = found[i];
  }
  size_t next = with_gradient.size();
  const Gradients of_captures(found.begin() + static_cast<ptrdiff_t>(next),
                              found.begin() + static_cast<ptrdiff_t>(next + captures.size()));
  next += captures.size();
  for (size_t i = 0; i < iteration.scanned; ++i) {
    const size_t input = iteration.states + i;
    if (in.Needs(in.x(input))) all[input] = found[next++];
  }
  return WithCaptures(in, std::move(all), captures, of_captures);
}

Result<Gradients> Loop(Builder& b, const Inputs& in) {
  Iteration iteration;
  iteration.first_input = 2;
  iteration.first_body_output = 1;
  iteration.states = in.node.inputs.size() < 2 ? 0 : in.node.inputs.size() - 2;
  iteration.collected = in.node.Subgraphs()[0]->outputs().size() - 1 - iteration.states;
  iteration.output_axes.resize(iteration.collected);
  iteration.output_directions.resize(iteration.collected);
  return Iterated(b, in, iteration);
}

Result<Gradients> Scan(Builder& b, const Inputs& in) {
  Iteration iteration;
  iteration.scanned = static_cast<size_t>(in.node.GetInt("num_scan_inputs", 1));
  iteration.states = in.node.inputs.size() - iteration.scanned;
  iteration.collected = in.node.Subgraphs()[0]->outputs().size() - iteration.states;
  iteration.input_axes = ListOf(in.node, "scan_input_axes", iteration.scanned);
  iteration.input_directions = ListOf(in.node, "scan_input_directions", iteration.scanned);
  iteration.output_axes = ListOf(in.node, "scan_output_axes", iteration.collected);
  iteration.output_directions = ListOf(in.node, "scan_output_directions", iteration.collected);
  // The states are collected, too.
  const size_t outputs = iteration.collected + iteration.states;
  Node& node = b.graph().node(in.node.id);
  for (const char* name : {"scan_output_axes", "scan_output_directions"}) {
    if (node.FindAttribute(name)) node.SetAttribute(name, ListOf(node, name, outputs));
  }
  return Iterated(b, in, iteration);
}

constexpr NamedGradientRule kRules[] = {
    {"If", If},
    {"Loop", Loop},
    {"Scan", Scan, 9},
};

}  // namespace

std::span<const NamedGradientRule> ControlGradients() { return kRules; }

}  // namespace tenon
