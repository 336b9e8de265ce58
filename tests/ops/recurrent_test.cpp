#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "kernels/dispatch.h"
#include "ops/product_reference.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

using Function = std::function<double(double)>;

struct RecurrentCase {
  const char* name;
  std::string op_type;
  std::string direction = "forward";
  int64_t sequence = 5, batch = 3, input = 4, hidden = 6;
  bool has_bias = true, has_lens = false, has_states = false, has_peepholes = false;
  int64_t layout = 0, input_forget = 0, linear_before_reset = 0;
  float clip = 0;
  std::vector<std::string> activations = {};
  std::vector<float> alpha = {}, beta = {};
  std::vector<Function> functions = {};  // the activations; empty: the defaults
  int32_t opset = 22;
};

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double TanhOf(double x) { return std::tanh(x); }

size_t GateCount(const RecurrentCase& c) {
  return c.op_type == "LSTM" ? 4 : c.op_type == "GRU" ? 3 : 1;
}

std::vector<Function> FunctionsOf(const RecurrentCase& c, size_t direction) {
  const size_t each = c.op_type == "LSTM" ? 3 : c.op_type == "GRU" ? 2 : 1;
  if (c.functions.empty()) {
    if (c.op_type == "RNN") return {TanhOf};
    return {Sigmoid, TanhOf, TanhOf};
  }
  return {c.functions.begin() + static_cast<ptrdiff_t>(direction * each),
          c.functions.begin() + static_cast<ptrdiff_t>((direction + 1) * each)};
}

struct Inputs {
  Tensor x, w, r, b, lens, h, c, p;
};
struct Outputs {
  std::vector<double> y, h, c;  // [sequence, d, batch, hidden], [d, batch, hidden]
};

// One row of one direction, by the formulas of the standard.
class ReferenceRow {
 public:
  ReferenceRow(const RecurrentCase& c, const Inputs& in, size_t direction, int64_t row)
      : c_(c), in_(in), d_(static_cast<int64_t>(direction)), row_(row) {
    functions_ = FunctionsOf(c, direction);
    for (int64_t i = 0; i < c.hidden; ++i) {
      h.push_back(c.has_states ? State(in.h, i) : 0);
      cell.push_back(c.has_states && c.op_type == "LSTM" ? State(in.c, i) : 0);
    }
  }

  void Step(int64_t time) {
    const auto size = static_cast<size_t>(c_.hidden);
    std::vector<double> next_h(size), next_c(size);
    for (int64_t i = 0; i < c_.hidden; ++i) {
      const auto at = static_cast<size_t>(i);
      if (c_.op_type == "LSTM") {
        const double in_gate = functions_[0](Clip(Gate(time, 0, i, h) + Peephole(0, i) * cell[at]));
        const double forget =
            c_.input_forget ? 1 - in_gate
                            : functions_[0](Clip(Gate(time, 2, i, h) + Peephole(2, i) * cell[at]));
        const double candidate = functions_[1](Clip(Gate(time, 3, i, h)));
        next_c[at] = forget * cell[at] + in_gate * candidate;
        const double out = functions_[0](Clip(Gate(time, 1, i, h) + Peephole(1, i) * next_c[at]));
        next_h[at] = out * functions_[2](next_c[at]);
      } else if (c_.op_type == "GRU") {
        const double z = functions_[0](Clip(Gate(time, 0, i, h)));
        next_h[at] = (1 - z) * functions_[1](Clip(GruCandidate(time, i))) + z * h[at];
      } else {
        next_h[at] = functions_[0](Clip(Gate(time, 0, i, h)));
      }
    }
    h = next_h;
    cell = next_c;
  }

  std::vector<double> h, cell;

 private:
  double Clip(double x) const { return c_.clip > 0 ? std::clamp<double>(x, -c_.clip, c_.clip) : x; }
  double State(const Tensor& state, int64_t i) const {
    const int64_t directions = c_.direction == "bidirectional" ? 2 : 1;
    const int64_t at = c_.layout ? row_ * directions + d_ : d_ * c_.batch + row_;
    return state.data<float>()[at * c_.hidden + i];
  }
  double Peephole(int64_t gate, int64_t i) const {
    return c_.has_peepholes ? in_.p.data<float>()[(d_ * 3 + gate) * c_.hidden + i] : 0;
  }
  double Bias(bool recurrent, int64_t gate, int64_t i) const {
    if (!c_.has_bias) return 0;
    const auto gates = static_cast<int64_t>(GateCount(c_));
    const int64_t first = (d_ * 2 + recurrent) * gates;
    return in_.b.data<float>()[(first + gate) * c_.hidden + i];
  }
  double InputPart(int64_t time, int64_t gate, int64_t i) const {
    const auto gates = static_cast<int64_t>(GateCount(c_));
    const int64_t row = c_.layout ? row_ * c_.sequence + time : time * c_.batch + row_;
    double sum = Bias(false, gate, i);
    for (int64_t p = 0; p < c_.input; ++p) {
      sum += double{in_.x.data<float>()[row * c_.input + p]} *
             in_.w.data<float>()[((d_ * gates + gate) * c_.hidden + i) * c_.input + p];
    }
    return sum;
  }
  double RecurrentPart(int64_t gate, int64_t i, const std::vector<double>& state) const {
    const auto gates = static_cast<int64_t>(GateCount(c_));
    double sum = 0;
    for (int64_t p = 0; p < c_.hidden; ++p) {
      sum += state[static_cast<size_t>(p)] *
             in_.r.data<float>()[((d_ * gates + gate) * c_.hidden + i) * c_.hidden + p];
    }
    return sum;
  }
  double Gate(int64_t time, int64_t gate, int64_t i, const std::vector<double>& state) const {
    return InputPart(time, gate, i) + RecurrentPart(gate, i, state) + Bias(true, gate, i);
  }
  double GruCandidate(int64_t time, int64_t i) const {
    const auto reset = [&](int64_t j) { return functions_[0](Clip(Gate(time, 1, j, h))); };
    if (c_.linear_before_reset) {
      return InputPart(time, 2, i) + reset(i) * (RecurrentPart(2, i, h) + Bias(true, 2, i));
    }
    std::vector<double> state;
    for (int64_t j = 0; j < c_.hidden; ++j) state.push_back(reset(j) * h[static_cast<size_t>(j)]);
    return Gate(time, 2, i, state);
  }

  const RecurrentCase& c_;
  const Inputs& in_;
  const int64_t d_, row_;
  std::vector<Function> functions_;
};

Outputs Reference(const RecurrentCase& c, const Inputs& in) {
  const int64_t directions = c.direction == "bidirectional" ? 2 : 1;
  Outputs out;
  out.y.resize(static_cast<size_t>(c.sequence * directions * c.batch * c.hidden));
  out.h.resize(static_cast<size_t>(directions * c.batch * c.hidden));
  out.c = out.h;
  for (int64_t d = 0; d < directions; ++d) {
    for (int64_t b = 0; b < c.batch; ++b) {
      ReferenceRow row(c, in, static_cast<size_t>(d), b);
      const int64_t length = c.has_lens ? in.lens.data<int32_t>()[b] : c.sequence;
      for (int64_t i = 0; i < length; ++i) {
        const int64_t time = d == 1 || c.direction == "reverse" ? length - 1 - i : i;
        row.Step(time);
        const int64_t at = c.layout ? (b * c.sequence + time) * directions + d
                                    : (time * directions + d) * c.batch + b;
        std::copy(row.h.begin(), row.h.end(), out.y.begin() + at * c.hidden);
      }
      const int64_t at = c.layout ? b * directions + d : d * c.batch + b;
      std::copy(row.h.begin(), row.h.end(), out.h.begin() + at * c.hidden);
      std::copy(row.cell.begin(), row.cell.end(), out.c.begin() + at * c.hidden);
    }
  }
  return out;
}

Inputs MakeInputs(const RecurrentCase& c) {
  const int64_t d = c.direction == "bidirectional" ? 2 : 1;
  const auto gates = static_cast<int64_t>(GateCount(c));
  const Shape state = c.layout ? Shape{c.batch, d, c.hidden} : Shape{d, c.batch, c.hidden};
  Inputs in;
  in.x = FilledWith<float>(
      c.layout ? Shape{c.batch, c.sequence, c.input} : Shape{c.sequence, c.batch, c.input}, 1);
  in.w = FilledWith<float>({d, gates * c.hidden, c.input}, 2);
  in.r = FilledWith<float>({d, gates * c.hidden, c.hidden}, 3);
  // Large sums would leave nothing but saturated gates to compare.
  for (int64_t i = 0; i < in.r.size(); ++i) {
    in.r.data<float>()[i] /= std::sqrt(static_cast<float>(c.hidden));
  }
  in.b = FilledWith<float>({d, 2 * gates * c.hidden}, 4);
  in.h = FilledWith<float>(state, 5);
  in.c = FilledWith<float>(state, 6);
  in.p = FilledWith<float>({d, 3 * c.hidden}, 7);
  in.lens = Tensor::Allocate(DataType::kInt32, {c.batch}).value();
  for (int64_t b = 0; b < c.batch; ++b) {
    in.lens.data<int32_t>()[b] = static_cast<int32_t>((c.sequence + b * 3) % (c.sequence + 1));
  }
  return in;
}

OpCall MakeCall(const RecurrentCase& c, const Inputs& in) {
  const auto optional = [](bool there, const Tensor& x) { return there ? Value(x) : Value(); };
  OpCall call = {.op_type = c.op_type, .opset = c.opset};
  call.inputs = {in.x,
                 in.w,
                 in.r,
                 optional(c.has_bias, in.b),
                 optional(c.has_lens, in.lens),
                 optional(c.has_states, in.h)};
  if (c.op_type == "LSTM") {
    call.inputs.push_back(optional(c.has_states, in.c));
    call.inputs.push_back(optional(c.has_peepholes, in.p));
  }
  call.attributes =
      MakeAttributes(Attr("hidden_size", c.hidden), Attr("direction", std::string(c.direction)));
  const auto add = [&](const char* name, auto value, bool there) {
    if (there) call.attributes.push_back(Attr(name, value));
  };
  add("layout", c.layout, c.layout != 0);
  add("input_forget", c.input_forget, c.input_forget != 0);
  add("linear_before_reset", c.linear_before_reset, c.linear_before_reset != 0);
  add("clip", c.clip, c.clip != 0);
  add("activations", c.activations, !c.activations.empty());
  add("activation_alpha", c.alpha, !c.alpha.empty());
  add("activation_beta", c.beta, !c.beta.empty());
  call.output_count = c.op_type == "LSTM" ? 3 : 2;
  return call;
}

void CheckRecurrent(const RecurrentCase& c) {
  SCOPED_TRACE(c.op_type + ": " + c.name);
  const Inputs in = MakeInputs(c);
  const Outputs expected = Reference(c, in);
  for (const bool is_constant : {true, false}) {
    OpCall call = MakeCall(c, in);
    if (is_constant) call.first_constant = 1;
    const Result<std::vector<Value>> outputs = RunOp(std::move(call));
    ASSERT_TRUE(outputs) << outputs.error().message();
    ExpectNear<float>((*outputs)[0].tensor(), expected.y, 1e-5);
    ExpectNear<float>((*outputs)[1].tensor(), expected.h, 1e-5);
    if (c.op_type == "LSTM") ExpectNear<float>((*outputs)[2].tensor(), expected.c, 1e-5);
  }
}

const RecurrentCase kCases[] = {
    {.name = "forward"},
    {.name = "reverse", .direction = "reverse"},
    {.name = "bidirectional", .direction = "bidirectional"},
    {.name = "no bias", .has_bias = false},
    {.name = "initial states", .direction = "bidirectional", .has_states = true},
    {.name = "lengths", .has_lens = true, .has_states = true},
    {.name = "lengths in both directions",
     .direction = "bidirectional",
     .batch = 7,
     .has_lens = true,
     .has_states = true},
    {.name = "batch first",
     .direction = "bidirectional",
     .has_lens = true,
     .has_states = true,
     .layout = 1},
    {.name = "clip", .clip = 0.5f},
    {.name = "one step", .sequence = 1, .batch = 1},
    {.name = "no step", .sequence = 0, .has_states = true},
    {.name = "no row", .batch = 0},
    {.name = "one of each", .sequence = 1, .batch = 1, .input = 1, .hidden = 1},
    {.name = "hidden 17", .input = 3, .hidden = 17},
    {.name = "hidden 130", .sequence = 3, .batch = 2, .input = 40, .hidden = 130},
    {.name = "version 7", .opset = 7},
    {.name = "version 14", .layout = 1, .opset = 14},
};

TEST(RecurrentTest, EveryOperatorMatchesItsFormulas) {
  for (const RecurrentCase& common : kCases) {
    for (const char* op_type : {"LSTM", "GRU", "RNN"}) {
      RecurrentCase c = common;
      c.op_type = op_type;
      CheckRecurrent(c);
    }
    RecurrentCase linear = common;
    linear.op_type = "GRU";
    linear.linear_before_reset = 1;
    CheckRecurrent(linear);
  }
}

TEST(RecurrentTest, CellsMatchOnEveryTarget) {
  for (const kernels::Target target : kernels::SupportedTargets()) {
    SCOPED_TRACE(kernels::TargetName(target));
    kernels::SetActiveTarget(target);
    for (const int64_t hidden : {1, 3, 4, 5, 8, 9, 15, 16, 17, 33}) {
      CheckRecurrent(
          {.name = "target", .op_type = "LSTM", .hidden = hidden, .has_peepholes = true});
      CheckRecurrent({.name = "target", .op_type = "GRU", .hidden = hidden});
      CheckRecurrent(
          {.name = "target", .op_type = "GRU", .hidden = hidden, .linear_before_reset = 1});
      CheckRecurrent({.name = "target", .op_type = "RNN", .hidden = hidden});
    }
  }
  kernels::SetActiveTarget(kernels::SupportedTargets().back());
}

TEST(RecurrentTest, LstmHasPeepholesAndCoupledGates) {
  CheckRecurrent({.name = "peepholes",
                  .op_type = "LSTM",
                  .direction = "bidirectional",
                  .has_states = true,
                  .has_peepholes = true});
  CheckRecurrent({.name = "coupled", .op_type = "LSTM", .has_states = true, .input_forget = 1});
  CheckRecurrent({.name = "both",
                  .op_type = "LSTM",
                  .has_states = true,
                  .has_peepholes = true,
                  .input_forget = 1,
                  .clip = 0.75f});
}

TEST(RecurrentTest, EveryActivationIsKnown) {
  struct ActivationCase {
    const char* name;
    std::vector<float> alpha, beta;
    Function function;
  };
  const ActivationCase activations[] = {
      {"Sigmoid", {}, {}, Sigmoid},
      {"tanh", {}, {}, TanhOf},
      {"Relu", {}, {}, [](double x) { return std::max(x, 0.0); }},
      {"Affine", {0.5f}, {0.25f}, [](double x) { return 0.5 * x + 0.25; }},
      {"LeakyRelu", {0.125f}, {}, [](double x) { return x < 0 ? 0.125 * x : x; }},
      {"LeakyRelu", {}, {}, [](double x) { return x < 0 ? double{0.01f} * x : x; }},
      {"ThresholdedRelu", {0.25f}, {}, [](double x) { return x > 0.25 ? x : 0; }},
      {"ScaledTanh", {0.5f}, {2}, [](double x) { return 0.5 * std::tanh(2 * x); }},
      {"ScaledTanh", {}, {}, [](double) { return 0.0; }},  // as in ONNX Runtime
      {"HardSigmoid", {}, {}, [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }},
      {"HardSigmoid",
       {0.5f},
       {0.25f},
       [](double x) { return std::clamp(0.5 * x + 0.25, 0.0, 1.0); }},
      {"Elu", {}, {}, [](double x) { return x < 0 ? std::exp(x) - 1 : x; }},
      {"Softsign", {}, {}, [](double x) { return x / (1 + std::abs(x)); }},
      {"Softplus", {}, {}, [](double x) { return std::log1p(std::exp(x)); }},
  };
  for (const ActivationCase& a : activations) {
    CheckRecurrent({.name = a.name,
                    .op_type = "RNN",
                    .activations = {a.name},
                    .alpha = a.alpha,
                    .beta = a.beta,
                    .functions = {a.function}});
  }
}

// Parameters go to the activations that have such a parameter, in order.
TEST(RecurrentTest, ParametersGoToTheActivationsThatHaveThem) {
  const Function leaky = [](double x) { return x < 0 ? 0.25 * x : x; };
  const Function affine = [](double x) { return 0.5 * x + 0.125; };
  CheckRecurrent({.name = "parameters",
                  .op_type = "LSTM",
                  .direction = "bidirectional",
                  .sequence = 3,
                  .activations = {"Sigmoid", "LeakyRelu", "Tanh", "HardSigmoid", "Tanh", "Affine"},
                  .alpha = {0.25f, 0.125f, 0.5f},
                  .beta = {0.5f, 0.125f},
                  .functions = {Sigmoid, leaky, TanhOf,
                                [](double x) { return std::clamp(0.125 * x + 0.5, 0.0, 1.0); },
                                TanhOf, affine}});
}

TEST(RecurrentTest, RefusesWhatDoesNotFit) {
  const auto message = [](RecurrentCase c, void (*spoil)(Inputs*)) {
    Inputs in = MakeInputs(c);
    spoil(&in);
    const auto outputs = RunOp(MakeCall(c, in));
    return outputs ? std::string("no error") : outputs.error().message();
  };
  const RecurrentCase c = {.name = "errors", .op_type = "LSTM", .has_lens = true};
  EXPECT_EQ(message(c,
                    [](Inputs* in) {
                      in->w = FilledWith<float>({1, 24, 5}, 0);
                    }),
            "input 1: expected [1, 24, 4], got [1, 24, 5]");
  EXPECT_EQ(message(c,
                    [](Inputs* in) {
                      in->b = FilledWith<float>({1, 24}, 0);
                    }),
            "input 3: expected [1, 48], got [1, 24]");
  EXPECT_EQ(message(c,
                    [](Inputs* in) {
                      in->lens = Tensor::Of<int32_t>({3}, {1, 6, 2});
                    }),
            "input 4: expected lengths in [0, 5], got 6");
  RecurrentCase bad = c;
  bad.activations = {"Tanh"};
  EXPECT_EQ(message(bad, [](Inputs*) {}), "expected 3 activations, got 1");
  bad.activations = {"Tanh", "Tanh", "Cosine"};
  EXPECT_EQ(message(bad, [](Inputs*) {}), "unknown activation 'Cosine'");
}

}  // namespace
}  // namespace tenon
