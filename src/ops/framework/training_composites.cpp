#include "ops/framework/training_composites.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/framework/node_builder.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";
constexpr int32_t kOpset = 16;  // has scatters that add, and axes of ReduceMean as an attribute

// A node that is being replaced, and the builder of what replaces it.
class Composition {
 public:
  Composition(Graph& graph, NodeId id)
      : graph_(graph),
        node_(graph.node(id)),
        inputs_(node_.inputs),
        outputs_(node_.outputs),
        build_(graph, node_.name.empty() ? node_.op_type : node_.name, kOpset) {}

  const Node& node() const { return node_; }
  size_t input_count() const { return inputs_.size(); }
  ValueId in(size_t i) const { return i < inputs_.size() ? inputs_[i] : ValueId::kNone; }
  bool has_output(size_t i) const { return i < outputs_.size() && outputs_[i] != ValueId::kNone; }
  DataType TypeOf(size_t i) const { return graph_.value(in(i)).type.element_type; }
  // -1 if it is unknown.
  int64_t RankOf(size_t i) const {
    const auto& shape = graph_.value(in(i)).type.shape;
    return shape ? static_cast<int64_t>(shape->rank()) : -1;
  }

  // A new node with at most one attribute, and its output.
  ValueId Op(const char* op_type, std::initializer_list<ValueId> inputs,
             const char* attribute = nullptr, int64_t value = 0, const char* domain = "");
  ValueId Op(const char* op_type, const std::vector<ValueId>& inputs,
             std::vector<Attribute> attributes);
  // Joined along an axis.
  ValueId Joined(const std::vector<ValueId>& parts, int64_t axis);
  ValueId ShapeOf(ValueId value) { return Op("Shape", {value}); }
  ValueId Number(float value);
  // Integers in one dimension, and a scalar.
  ValueId Integers(std::span<const int64_t> values);
  ValueId Integer(int64_t value) { return Integers(std::array{value}); }
  ValueId Index(int64_t value);
  ValueId CastTo(ValueId value, DataType type) {
    return Op("Cast", {value}, "to", static_cast<int64_t>(type));
  }
  ValueId CastLike(ValueId value, ValueId like) { return Op("CastLike", {value, like}); }
  // An input as float, and a float in the type of an input.
  ValueId Wide(size_t i) {
    return TypeOf(i) == DataType::kFloat ? in(i) : CastTo(in(i), DataType::kFloat);
  }
  ValueId Narrow(ValueId value, size_t i) {
    return TypeOf(i) == DataType::kFloat ? value : CastLike(value, in(i));
  }
  // Zeros of the type of `like`.
  ValueId Zeros(ValueId shape, ValueId like) {
    return CastLike(Op("ConstantOfShape", {shape}), like);
  }

  // Removes the node, after which a value may be its output; no value means an output without use.
  void Finish(std::span<const ValueId> results);
  void Finish(std::initializer_list<ValueId> results) {
    Finish(std::span(results.begin(), results.size()));
  }

  NodeBuilder& build() { return build_; }
  Graph& graph() { return graph_; }

 private:
  Graph& graph_;
  const Node& node_;
  const std::vector<ValueId> inputs_, outputs_;
  NodeBuilder build_;
};

ValueId Composition::Op(const char* op_type, std::initializer_list<ValueId> inputs,
                        const char* attribute, int64_t value, const char* domain) {
  std::vector<Attribute> attributes;
  if (attribute) attributes.emplace_back(attribute, value);
  return build_.Op(op_type, inputs, std::move(attributes), domain);
}

ValueId Composition::Op(const char* op_type, const std::vector<ValueId>& inputs,
                        std::vector<Attribute> attributes) {
  return build_.Op(op_type, inputs, std::move(attributes));
}

ValueId Composition::Number(float value) {
  return graph_.AddInitializer(graph_.UnusedName("number"), Tensor::Of<float>({}, {value}));
}

ValueId Composition::Integers(std::span<const int64_t> values) {
  return graph_.AddInitializer(graph_.UnusedName("integers"),
                               Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

ValueId Composition::Index(int64_t value) {
  return graph_.AddInitializer(graph_.UnusedName("index"), Tensor::Of<int64_t>({}, {value}));
}

void Composition::Finish(std::span<const ValueId> results) {
  graph_.RemoveNode(node_.id);
  for (size_t i = 0; i < std::min(results.size(), outputs_.size()); ++i) {
    if (has_output(i)) build_.Add("Identity", {results[i]}, {outputs_[i]}, {});
  }
}

std::vector<Attribute> One(const char* name, int64_t value) {
  std::vector<Attribute> attributes;
  attributes.emplace_back(name, value);
  return attributes;
}

ValueId Composition::Joined(const std::vector<ValueId>& parts, int64_t axis) {
  return Op("Concat", parts, One("axis", axis));
}

using C = Composition;

bool BatchNormInternal(C& c) {
  const int64_t rank = c.RankOf(0);
  const bool is_training = c.node().GetInt("training_mode", 1) != 0;
  if (rank < 2 || (!is_training && (c.has_output(3) || c.has_output(4)))) return false;
  std::vector<Attribute> attributes;
  for (const char* name : {"epsilon", "momentum"}) {
    if (const Attribute* given = c.node().FindAttribute(name)) {
      attributes.push_back(CloneAttribute(*given));
    }
  }
  attributes.emplace_back("training_mode", int64_t{is_training});
  std::vector<ValueId> results(5, ValueId::kNone);
  for (size_t i = 0; i < (is_training ? 3 : 1); ++i) {
    results[i] = c.graph().AddValue(c.graph().UnusedName("normalized"));
  }
  c.build().Add("BatchNormalization", {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)},
                {results.begin(), results.begin() + (is_training ? 3 : 1)}, std::move(attributes));
  if (is_training) {
    std::vector<int64_t> axes = {0};
    for (int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
    const auto mean = [&](ValueId value, bool keeps) {
      std::vector<Attribute> options = One("keepdims", keeps);
      options.emplace_back("axes", axes);
      return c.Op("ReduceMean", {value}, std::move(options));
    };
    const ValueId centred = c.Op("Sub", {c.in(0), mean(c.in(0), true)});
    const ValueId variance = mean(c.Op("Mul", {centred, centred}), false);
    const ValueId epsilon = c.Number(c.node().GetFloat("epsilon", 1e-5f));
    results[3] = mean(c.in(0), false);
    results[4] = c.Op("Reciprocal", {c.Op("Sqrt", {c.Op("Add", {variance, epsilon})})});
  } else {
    results[1] = c.in(3), results[2] = c.in(4);
  }
  c.Finish(results);
  return true;
}

std::vector<Attribute> Adding(const C& c, const char* attribute) {
  std::vector<Attribute> attributes;
  if (attribute) attributes.emplace_back(attribute, c.node().GetInt(attribute, 0));
  attributes.emplace_back("reduction", std::string("add"));
  return attributes;
}

// Of dY, the shape of X and the indices.
bool GatherElementsGrad(C& c) {
  const ValueId zeros = c.Zeros(c.in(1), c.in(0));
  c.Finish({c.Op("ScatterElements", {zeros, c.in(2), c.in(0)}, Adding(c, "axis"))});
  return true;
}

// The indices of the first `count` axes, then those given: [..., count + depth] of [..., depth].
ValueId WithBatches(C& c, ValueId indices, int64_t rank, int64_t count) {
  const ValueId sizes = c.ShapeOf(indices);
  const ValueId tuples =
      c.Joined({c.Op("Slice", {sizes, c.Integer(0), c.Integer(rank - 1)}), c.Integer(1)}, 0);
  std::vector<ValueId> parts;
  for (int64_t axis = 0; axis < count; ++axis) {
    std::vector<int64_t> column(static_cast<size_t>(rank - axis), 1);
    column[0] = -1;
    const ValueId numbers =
        c.Op("Range", {c.Index(0), c.Op("Gather", {sizes, c.Index(axis)}), c.Index(1)});
    parts.push_back(c.Op("Expand", {c.Op("Reshape", {numbers, c.Integers(column)}), tuples}));
  }
  parts.push_back(indices);
  return c.Joined(parts, -1);
}

// Of the shape of X, the indices and dY.
bool GatherNdGrad(C& c) {
  const int64_t batches = c.node().GetInt("batch_dims", 0), rank = c.RankOf(1);
  if (batches < 0 || (batches > 0 && rank <= batches)) return false;
  const ValueId indices = batches == 0 ? c.in(1) : WithBatches(c, c.in(1), rank, batches);
  const ValueId zeros = c.Zeros(c.in(0), c.in(2));
  c.Finish({c.Op("ScatterND", {zeros, indices, c.in(2)}, Adding(c, nullptr))});
  return true;
}

// Each operand's gradient is summed over the axes along which it was repeated.
bool DivGrad(C& c) {
  const ValueId dy = c.in(0), a = c.in(1), b = c.in(2);
  const ValueId shapes[] = {c.ShapeOf(a), c.ShapeOf(b)};
  std::vector<ValueId> axes;
  for (int i = 0; i < 2; ++i) axes.push_back(c.graph().AddValue(c.graph().UnusedName("axes")));
  c.build().Add("BroadcastGradientArgs", {shapes[0], shapes[1]}, axes, {}, kMicrosoft);
  const auto summed = [&](ValueId value, size_t i) {
    const ValueId sum = c.Op("ReduceSum", {value, axes[i]}, "noop_with_empty_axes", 1);
    return c.Op("Reshape", {sum, shapes[i]});
  };
  const ValueId da = c.Op("Div", {dy, b});
  const ValueId db = c.Op("Neg", {c.Op("Div", {c.Op("Mul", {da, a}), b})});
  c.Finish({summed(da, 0), summed(db, 1)});
  return true;
}

template <bool is_fast>
bool BiasGeluGrad(C& c) {
  const ValueId sum = c.Op("Add", {c.in(1), c.in(2)});
  c.Finish({c.Op(is_fast ? "FastGeluGrad" : "GeluGrad", {c.in(0), sum}, nullptr, 0, kMicrosoft)});
  return true;
}

bool ConcatTraining(C& c) {
  const int64_t axis = c.node().GetInt("axis", 0);
  std::vector<ValueId> parts, lengths;
  for (size_t i = 0; i < c.input_count(); ++i) {
    parts.push_back(c.in(i));
    lengths.push_back(c.Op("Gather", {c.ShapeOf(c.in(i)), c.Integer(axis)}));
  }
  c.Finish({c.Joined(parts, axis), c.has_output(1) ? c.Joined(lengths, 0) : ValueId::kNone});
  return true;
}

bool SplitTraining(C& c) {
  std::vector<ValueId> parts(c.node().outputs.size());
  for (ValueId& part : parts) part = c.graph().AddValue(c.graph().UnusedName("part"));
  c.build().Add("Split", {c.in(0), c.in(1)}, parts, One("axis", c.node().GetInt("axis", 0)));
  c.Finish(parts);
  return true;
}

// Over axis `axis` and all after it together.
template <bool is_log>
bool SoftmaxGrad(C& c) {
  const auto rows = [&](size_t i) {
    return c.Op("Flatten", {c.in(i)}, "axis", c.node().GetInt("axis", 1));
  };
  const ValueId dx = c.Op(is_log ? "LogSoftmaxGrad_13" : "SoftmaxGrad_13", {rows(0), rows(1)},
                          "axis", 1, kMicrosoft);
  c.Finish({c.Op("Reshape", {dx, c.ShapeOf(c.in(0))})});
  return true;
}

// The norm of all inputs together.
bool ReduceAllL2(C& c) {
  std::vector<ValueId> squares;
  for (size_t i = 0; i < c.input_count(); ++i) {
    const ValueId wide = c.CastTo(c.in(i), DataType::kFloat);
    squares.push_back(c.Op("ReduceSumSquare", {wide}, "keepdims", 0));
  }
  c.Finish({c.Op("Sqrt", {c.Op("Sum", squares, {})})});
  return true;
}

// What follows a scale is cast; it may be joined to one vector.
bool MixedPrecisionScale(C& c) {
  const auto to = static_cast<DataType>(c.node().GetInt("to", 0));
  const ValueId scale = c.CastTo(c.in(0), DataType::kFloat);
  std::vector<ValueId> results;
  for (size_t i = 1; i < c.input_count(); ++i) {
    results.push_back(c.CastTo(c.Op("Mul", {c.CastTo(c.in(i), DataType::kFloat), scale}), to));
  }
  if (c.node().GetInt("fuse_outputs", 0) != 0) {
    for (ValueId& result : results) result = c.Op("Reshape", {result, c.Integer(-1)});
    results = {c.Joined(results, 0)};
  }
  c.Finish(results);
  return true;
}

ValueId ScaledBy(C& c, ValueId x, size_t i) {
  const ValueId scale = c.Number(c.node().GetFloat(Format("scale_{}", i), 1));
  return c.Op("Mul", {x, c.CastLike(scale, x)});
}

bool ScaledSum(C& c) {
  std::vector<ValueId> terms;
  for (size_t i = 0; i < c.input_count(); ++i) terms.push_back(ScaledBy(c, c.in(i), i));
  c.Finish({c.Op("Sum", terms, {})});
  return true;
}

bool BatchScale(C& c) {
  std::vector<ValueId> results;
  for (size_t i = 0; i < c.node().outputs.size(); ++i) {
    results.push_back(ScaledBy(c, c.in(0), i));
  }
  c.Finish(results);
  return true;
}

bool Scale(C& c) {
  const ValueId scale = c.CastLike(c.in(1), c.in(0));
  const bool divides = c.node().GetInt("scale_down", 0) != 0;
  c.Finish({c.Op(divides ? "Div" : "Mul", {c.in(0), scale})});
  return true;
}

bool ZeroGradient(C& c) {
  c.Finish({c.Zeros(c.ShapeOf(c.in(0)), c.in(0))});
  return true;
}

bool InPlaceAccumulator(C& c) {
  ValueId sum = c.Op("Add", {c.in(0), c.CastLike(c.in(1), c.in(0))});
  if (c.in(2) != ValueId::kNone) sum = c.Op("Where", {c.in(2), sum, c.in(0)});
  c.Finish({sum});
  return true;
}

bool PassThrough(C& c) {
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < c.input_count(); ++i) inputs.push_back(c.in(i));
  c.Finish(inputs);
  return true;
}

// Of the learning rate, weights and gradients: new weights, and what they changed by.
bool SgdOptimizer(C& c) {
  const ValueId change = c.Op("Neg", {c.Op("Mul", {c.in(0), c.in(2)})});
  c.Finish({c.Op("Add", {c.in(1), change}), change});
  return true;
}

// AdamOptimizer-1, computed in float.
enum AdamInput : size_t {
  kRate,
  kStep,
  kWeights,
  kGradients,
  kFirst,
  kSecond,
  kNarrowWeights,
  kLossScale,
  kNorm,
  kUpdates
};

// What scaled gradients are divided by: the scale of the loss, and more if their norm is above
// max_norm_clip; kNone if they are not.
ValueId GradientScale(C& c) {
  const ValueId scale = c.in(kLossScale) == ValueId::kNone ? ValueId::kNone : c.Wide(kLossScale);
  if (c.in(kNorm) == ValueId::kNone) return scale;
  const ValueId most = c.Number(c.node().GetFloat("max_norm_clip", 1));
  const ValueId relative = c.Op("Div", {c.Wide(kNorm), most});
  return c.Op("Max", {scale == ValueId::kNone ? c.Number(1) : scale, relative});
}

// The new moments and what is added to the weights.
struct AdamStep {
  ValueId first, second, change;
};

AdamStep StepOfAdam(C& c) {
  const auto setting = [&](const char* name, float otherwise) {
    return c.node().GetFloat(name, otherwise);
  };
  const auto times = [&](ValueId x, float factor) { return c.Op("Mul", {x, c.Number(factor)}); };
  const ValueId weights = c.Wide(kWeights), rate = c.Wide(kRate), step = c.Wide(kStep);
  ValueId gradients = c.Wide(kGradients);
  if (const ValueId scale = GradientScale(c); scale != ValueId::kNone) {
    gradients = c.Op("Div", {gradients, scale});
  }
  // A moment, and what it lacks after so many steps.
  const auto moment = [&](size_t i, float decay, ValueId value) {
    return c.Op("Add", {times(c.Wide(i), decay), times(value, 1 - decay)});
  };
  const auto correction = [&](float decay) {
    if (c.node().GetInt("do_bias_correction", 1) == 0) return c.Number(1);
    return c.Op("Sub", {c.Number(1), c.Op("Pow", {c.Number(decay), step})});
  };
  const float alpha = setting("alpha", 0.9f), beta = setting("beta", 0.999f);
  AdamStep result;
  result.first = moment(kFirst, alpha, gradients);
  result.second = moment(kSecond, beta, c.Op("Mul", {gradients, gradients}));
  const ValueId epsilon = c.Number(setting("epsilon", 1e-8f)), of_first = correction(alpha);
  const ValueId decayed = times(rate, setting("lambda", 0));
  if (c.node().GetInt("weight_decay_mode", 0) == 0) {
    const ValueId root = c.Op("Sqrt", {c.Op("Div", {result.second, correction(beta)})});
    const ValueId direction =
        c.Op("Div", {c.Op("Div", {result.first, of_first}), c.Op("Add", {root, epsilon})});
    result.change = c.Op("Add", {c.Op("Mul", {direction, rate}), c.Op("Mul", {weights, decayed})});
  } else {
    const ValueId size =
        c.Op("Div", {c.Op("Mul", {rate, c.Op("Sqrt", {correction(beta)})}), of_first});
    const ValueId part = c.Op("Div", {c.Op("Mul", {result.first, size}),
                                      c.Op("Add", {c.Op("Sqrt", {result.second}), epsilon})});
    const ValueId rest = c.Op("Sub", {weights, part});
    result.change = c.Op("Add", {part, c.Op("Mul", {rest, decayed})});
  }
  result.change = c.Op("Neg", {result.change});
  return result;
}

bool AdamOptimizer(C& c) {
  const AdamStep step = StepOfAdam(c);
  const ValueId weights = c.Op("Add", {c.in(kWeights), c.Narrow(step.change, kWeights)});
  // The outputs, and the inputs that they are if there is no update.
  const std::pair<ValueId, AdamInput> results[] = {
      {c.Op("Add", {c.in(kStep), c.Index(1)}), kStep}, {c.Narrow(step.first, kFirst), kFirst},
      {c.Narrow(step.second, kSecond), kSecond},       {weights, kWeights},
      {c.Narrow(step.change, kGradients), kGradients}, {weights, kNarrowWeights}};
  std::vector<ValueId> outputs;
  for (const auto& [result, input] : results) {
    if (c.in(input) == ValueId::kNone) continue;  // no weights of a narrow type
    const ValueId value = input == kNarrowWeights ? c.CastLike(result, c.in(input)) : result;
    outputs.push_back(c.in(kUpdates) == ValueId::kNone
                          ? value
                          : c.Op("Where", {c.in(kUpdates), value, c.in(input)}));
  }
  c.Finish(outputs);
  return true;
}

// Of scores [N, C, ...], labels, weights of the classes, and the label that counts nothing: the
// loss and the logarithms of the probabilities.
bool SoftmaxCrossEntropyLossInternal(C& c) {
  enum Input : size_t { kScores, kLabels, kWeights, kIgnored };
  const std::string_view reduction = c.node().GetString("reduction", "mean");
  const auto classes = [&](const char* op_type, ValueId value) {
    return c.Op(op_type, {value, c.Integer(1)});
  };
  const ValueId log_prob = c.Op("LogSoftmax", {c.Wide(kScores)}, "axis", 1);
  ValueId labels = c.in(kLabels), weights = ValueId::kNone, counts = ValueId::kNone;
  if (c.in(kIgnored) != ValueId::kNone) {
    const ValueId ignored = c.CastLike(c.in(kIgnored), labels);
    const ValueId is_ignored = c.Op("Equal", {labels, ignored});
    labels = c.Op("Where", {is_ignored, c.CastLike(c.Index(0), labels), labels});
    counts = c.CastTo(c.Op("Not", {is_ignored}), DataType::kFloat);
  }
  if (c.in(kWeights) != ValueId::kNone) weights = c.Op("Gather", {c.Wide(kWeights), labels});
  if (weights != ValueId::kNone && counts != ValueId::kNone) {
    weights = c.Op("Mul", {weights, counts});
  } else if (weights == ValueId::kNone) {
    weights = counts;
  }
  const ValueId places = classes("Unsqueeze", labels);
  const ValueId picked = c.Op("GatherElements", {log_prob, places}, "axis", 1);
  ValueId loss = c.Op("Neg", {classes("Squeeze", picked)});
  if (weights != ValueId::kNone) loss = c.Op("Mul", {loss, weights});
  const auto total = [&](const char* op_type, ValueId x) {
    return c.Op(op_type, {x}, "keepdims", 0);
  };
  if (reduction == "mean" && weights == ValueId::kNone) {
    loss = total("ReduceMean", loss);
  } else if (reduction != "none") {
    loss = total("ReduceSum", loss);
    if (reduction == "mean") loss = c.Op("Div", {loss, total("ReduceSum", weights)});
  }
  const int64_t type = c.node().GetInt("output_type", 0);
  loss = type == 0 ? c.Narrow(loss, kScores) : c.CastTo(loss, static_cast<DataType>(type));
  c.Finish({loss, c.Narrow(log_prob, kScores)});
  return true;
}

// Of x, a scale and a zero point that is a float, too: x rounded to the quantized numbers, and
// where these are in their range.
bool FakeQuant(C& c) {
  enum Input : size_t { kX, kScale, kZeroPoint };
  const ValueId low = c.Number(static_cast<float>(c.node().GetInt("quant_min", 0)));
  const ValueId high = c.Number(static_cast<float>(c.node().GetInt("quant_max", 255)));
  const ValueId steps = c.Op("Round", {c.Op("Div", {c.Wide(kX), c.Wide(kScale)})});
  const ValueId level = c.Op("Add", {steps, c.Wide(kZeroPoint)});
  const ValueId inside = c.Op("Max", {c.Op("Min", {level, high}), low});
  const ValueId y = c.Op("Mul", {c.Op("Sub", {inside, c.Wide(kZeroPoint)}), c.Wide(kScale)});
  c.Finish({c.Narrow(y, kX), c.Op("Equal", {level, inside})});
  return true;
}

bool FakeQuantGrad(C& c) {
  c.Finish({c.Op("Where", {c.in(1), c.in(0), c.CastLike(c.Number(0), c.in(0))})});
  return true;
}

struct TrainingComposition {
  std::string_view op_type;
  bool (*expand)(C&);
};
constexpr TrainingComposition kCompositions[] = {
    {"AdamOptimizer", AdamOptimizer},
    {"BatchNormInternal", BatchNormInternal},
    {"BatchScale", BatchScale},
    {"BiasFastGeluGrad_dX", BiasGeluGrad<true>},
    {"BiasGeluGrad_dX", BiasGeluGrad<false>},
    {"ConcatTraining", ConcatTraining},
    {"DivGrad", DivGrad},
    {"FakeQuant", FakeQuant},
    {"FakeQuantGrad", FakeQuantGrad},
    {"GatherElementsGrad", GatherElementsGrad},
    {"GatherNDGrad", GatherNdGrad},
    {"InPlaceAccumulator", InPlaceAccumulator},
    {"LogSoftmaxGrad", SoftmaxGrad<true>},
    {"MixedPrecisionScale", MixedPrecisionScale},
    {"PassThrough", PassThrough},
    {"ReduceAllL2", ReduceAllL2},
    {"SGDOptimizer", SgdOptimizer},
    {"Scale", Scale},
    {"ScaledSum", ScaledSum},
    {"SoftmaxCrossEntropyLossInternal", SoftmaxCrossEntropyLossInternal},
    {"SoftmaxGrad", SoftmaxGrad<false>},
    {"SplitTraining", SplitTraining},
    {"ZeroGradient", ZeroGradient},
};

}  // namespace

bool ExpandTrainingComposite(Graph& graph, NodeId id) {
  const auto* found =
      std::find_if(std::begin(kCompositions), std::end(kCompositions),
                   [&](const auto& known) { return known.op_type == graph.node(id).op_type; });
  if (found == std::end(kCompositions)) return false;
  Composition composition(graph, id);
  return found->expand(composition);
}

}  // namespace tenon
