// LSTMGrad, GRUGrad and RNNGrad of com.microsoft beside differences of the forward operators in
// double precision. Other forms are compared with PyTorch in tests/conformance.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/run_op.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

struct Case {
  std::string cell, direction = "forward";
  int64_t sequence = 3, batch = 2, input = 2, hidden = 3;
  int64_t layout = 0, linear = 0;
  bool has_lens = false;
};

const Case kCases[] = {
    {"LSTM"},
    {"LSTM", "bidirectional", 4, 3, 2, 2, 1, 0, true},
    {"LSTM", "reverse", 1, 1, 1, 1},
    {"LSTM", "forward", 2, 5, 3, 17},
    {"GRU"},
    {"GRU", "bidirectional", 4, 3, 2, 2, 0, 0, true},
    {"GRU", "reverse", 3, 2, 2, 5, 1, 1, true},
    {"GRU", "forward", 2, 5, 3, 17, 0, 1},
    {"LSTM", "reverse", 3, 2, 2, 5},
    {"GRU", "reverse", 3, 2, 2, 5, 0, 1},
    {"RNN"},
    {"RNN", "bidirectional", 4, 3, 2, 2, 1, 0, true},
};

// Numbers in [-1, 1] that do not repeat.
template <class T>
Tensor Filled(const Shape& shape, double seed) {
  Tensor tensor = *Tensor::Allocate(sizeof(T) == 4 ? DataType::kFloat : DataType::kDouble, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.data<T>()[i] = static_cast<T>(std::sin(1.7 * static_cast<double>(i) + seed));
  }
  return tensor;
}

template <class T>
class Layer {
 public:
  explicit Layer(const Case& c) : c_(c) {
    const int64_t d = c.direction == "bidirectional" ? 2 : 1;
    const int64_t gates = c.cell == "LSTM" ? 4 : c.cell == "GRU" ? 3 : 1;
    const Shape state = c.layout ? Shape({c.batch, d, c.hidden}) : Shape({d, c.batch, c.hidden});
    x_ = Filled<T>(
        c.layout ? Shape({c.batch, c.sequence, c.input}) : Shape({c.sequence, c.batch, c.input}),
        0.1);
    w_ = Filled<T>({d, gates * c.hidden, c.input}, 0.2);
    r_ = Filled<T>({d, gates * c.hidden, c.hidden}, 0.3);
    b_ = Filled<T>({d, 2 * gates * c.hidden}, 0.4);
    h_ = Filled<T>(state, 0.5);
    factors_ = Filled<T>(c.layout ? Shape({c.batch, c.sequence, d, c.hidden})
                                  : Shape({c.sequence, d, c.batch, c.hidden}),
                         0.6);
    lens_ = *Tensor::Allocate(DataType::kInt32, {c.batch});
    for (int64_t i = 0; i < c.batch; ++i) {
      lens_.data<int32_t>()[i] = static_cast<int32_t>((c.sequence + 2 * i) % (c.sequence + 1));
    }
  }

  // What is differentiated: X, W, R, B, initial_h.
  std::vector<Tensor*> variables() { return {&x_, &w_, &r_, &b_, &h_}; }

  // The sum of Y times the factors.
  double Loss() const {
    const std::vector<Value> y = Forward();
    double sum = 0;
    for (int64_t i = 0; i < factors_.size(); ++i) {
      sum += static_cast<double>(y[0].tensor().template data<T>()[i]) *
             static_cast<double>(factors_.data<T>()[i]);
    }
    return sum;
  }

  // The gradients of the variables.
  std::vector<Value> Gradients(int threads) const {
    const std::vector<Value> kept = Forward();
    const Value lens = c_.has_lens ? Value(lens_) : Value();
    OpCall call;
    call.domain = kMicrosoft;
    call.op_type = c_.cell + "Grad";
    call.attributes = Attributes();
    call.output_count = 5;
    if (c_.cell == "LSTM") {
      call.inputs = {x_, w_, r_, lens, h_, Value(), kept[0], kept[3], kept[4], factors_};
    } else if (c_.cell == "GRU") {
      call.inputs = {x_, w_, r_, b_, lens, h_, kept[0], kept[2], factors_};
    } else {
      call.inputs = {x_, w_, r_, lens, h_, kept[0], factors_};
    }
    Result<std::vector<Value>> gradients = RunOp(std::move(call), threads);
    EXPECT_TRUE(gradients) << gradients.error().message();
    return gradients ? *std::move(gradients) : std::vector<Value>();
  }

 private:
  std::vector<Attribute> Attributes() const {
    std::vector<Attribute> all = MakeAttributes(
        Attr("hidden_size", c_.hidden), Attr("direction", c_.direction), Attr("layout", c_.layout));
    if (c_.cell == "GRU") all.push_back(Attr("linear_before_reset", c_.linear));
    return all;
  }

  std::vector<Value> Forward() const {
    OpCall call;
    call.op_type = c_.cell == "RNN" ? "RNN" : c_.cell + "Training";
    if (c_.cell != "RNN") call.domain = kMicrosoft;
    call.inputs = {x_, w_, r_, b_, c_.has_lens ? Value(lens_) : Value(), h_};
    call.attributes = Attributes();
    call.output_count = c_.cell == "LSTM" ? 5 : c_.cell == "GRU" ? 3 : 1;
    Result<std::vector<Value>> outputs = RunOp(std::move(call));
    EXPECT_TRUE(outputs) << outputs.error().message();
    return outputs ? *std::move(outputs) : std::vector<Value>(5);
  }

  const Case& c_;
  Tensor x_, w_, r_, b_, h_, lens_, factors_;
};

TEST(RecurrentGradientTest, IsTheDerivativeInDouble) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.cell + ", hidden " + std::to_string(c.hidden));
    Layer<double> layer(c);
    const std::vector<Value> gradients = layer.Gradients(2);
    ASSERT_EQ(gradients.size(), 5u);
    constexpr double kStep = 1e-5;
    for (size_t v = 0; v < 5; ++v) {
      Tensor& variable = *layer.variables()[v];
      ASSERT_EQ(gradients[v].tensor().shape(), variable.shape());
      // Some elements of the larger tensors.
      const int64_t stride = variable.size() / 24 + 1;
      for (int64_t i = 0; i < variable.size(); i += stride) {
        double& element = variable.data<double>()[i];
        const double before = element;
        element = before + kStep;
        const double above = layer.Loss();
        element = before - kStep;
        const double below = layer.Loss();
        element = before;
        EXPECT_NEAR(gradients[v].tensor().data<double>()[i], (above - below) / (2 * kStep), 1e-8)
            << "variable " << v << ", element " << i;
      }
    }
  }
}

TEST(RecurrentGradientTest, FloatsAreThoseOfDouble) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.cell + ", hidden " + std::to_string(c.hidden));
    const std::vector<Value> expected = Layer<double>(c).Gradients(1);
    for (const int threads : {1, 2, 3}) {
      const std::vector<Value> actual = Layer<float>(c).Gradients(threads);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t v = 0; v < expected.size(); ++v) {
        for (int64_t i = 0; i < expected[v].tensor().size(); ++i) {
          const double wanted = expected[v].tensor().data<double>()[i];
          EXPECT_NEAR(actual[v].tensor().data<float>()[i], wanted, 1e-5 * (1 + std::abs(wanted)))
              << "variable " << v << ", element " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon
