#include <cmath>

#include "ops/op_cases.h"

namespace tenon {
namespace {

using Doubles = std::vector<double>;

constexpr double kNorm = 0.01;

// One element: its value, gradient and states, and the results of an update.
struct Element {
  double x, g, v, h;
};
using Reference = Element (*)(Element e, double r, int64_t t);

Element Adagrad(Element e, double r, int64_t t) {
  const double gradient = kNorm * e.x + e.g;
  e.h += gradient * gradient;
  e.x -= r / (1 + 0.1 * static_cast<double>(t)) * gradient / (std::sqrt(e.h) + 1e-4);
  return e;
}

Element Adam(Element e, double r, int64_t t) {
  const double gradient = kNorm * e.x + e.g;
  e.v = 0.9 * e.v + 0.1 * gradient;
  e.h = 0.99 * e.h + 0.01 * gradient * gradient;
  const auto n = static_cast<double>(t);
  if (t > 0) r *= std::sqrt(1 - std::pow(0.99, n)) / (1 - std::pow(0.9, n));
  e.x = (1 - 0.05) * (e.x - r * e.v / (std::sqrt(e.h) + 1e-4));
  return e;
}

template <bool is_nesterov>
Element Momentum(Element e, double r, int64_t t) {
  const double gradient = kNorm * e.x + e.g;
  e.v = 0.9 * e.v + (t > 0 ? 0.5 : 1) * gradient;
  e.x -= r * (is_nesterov ? gradient + 0.9 * e.v : e.v);
  return e;
}

struct Case {
  std::string op;
  bool has_v, has_h;
  std::vector<Attribute> (*attributes)();
  Reference reference;
};

const Case kCases[] = {
    {"Adagrad", false, true,
     [] {
       return MakeAttributes(Attr("norm_coefficient", 0.01f), Attr("decay_factor", 0.1f),
                             Attr("epsilon", 1e-4f));
     },
     Adagrad},
    {"Adam", true, true,
     [] {
       return MakeAttributes(Attr("norm_coefficient", 0.01f), Attr("alpha", 0.9f),
                             Attr("beta", 0.99f), Attr("epsilon", 1e-4f),
                             Attr("norm_coefficient_post", 0.05f));
     },
     Adam},
    {"Momentum", true, false,
     [] {
       return MakeAttributes(Attr("norm_coefficient", 0.01f), Attr("alpha", 0.9f),
                             Attr("beta", 0.5f), Attr("mode", std::string("standard")));
     },
     Momentum<false>},
    {"Momentum", true, false,
     [] {
       return MakeAttributes(Attr("norm_coefficient", 0.01f), Attr("alpha", 0.9f),
                             Attr("beta", 0.5f), Attr("mode", std::string("nesterov")));
     },
     Momentum<true>},
};

// Two tensors of different lengths, as doubles.
TEST(OptimizersTest, MatchPlainLoops) {
  for (const Case& c : kCases) {
    for (const int64_t t : {0, 3}) {
      std::vector<std::vector<Element>> tensors(2);
      for (int i = 0; i < 21; ++i) {
        tensors[i < 4 ? 0 : 1].push_back(
            {std::sin(i), std::cos(3 * i), 0.1 * std::sin(2 * i), 0.01 * i + 0.5});
      }
      OpCall call{
          c.op, 1, {Tensor::Of<double>({}, {0.1}), Tensor::Of<int64_t>({}, {t})}, c.attributes()};
      call.domain = "ai.onnx.preview.training";
      const auto add = [&](double Element::*member) {
        for (const auto& tensor : tensors) {
          Doubles values;
          for (const Element& e : tensor) values.push_back(e.*member);
          call.inputs.emplace_back(Tensor::Of<double>({static_cast<int64_t>(values.size())},
                                                      std::span<const double>(values)));
        }
      };
      std::vector<double Element::*> outputs = {&Element::x};
      add(&Element::x);
      add(&Element::g);
      if (c.has_v) add(&Element::v), outputs.push_back(&Element::v);
      if (c.has_h) add(&Element::h), outputs.push_back(&Element::h);
      call.output_count = 2 * outputs.size();
      const auto results = RunOp(std::move(call));
      ASSERT_TRUE(results) << results.error().message();
      for (size_t k = 0; k < results->size(); ++k) {
        const Tensor& result = (*results)[k].tensor();
        const auto& tensor = tensors[k % 2];
        ASSERT_EQ(result.size(), static_cast<int64_t>(tensor.size()));
        for (size_t i = 0; i < tensor.size(); ++i) {
          const double expected = c.reference(tensor[i], 0.1, t).*outputs[k / 2];
          EXPECT_NEAR(result.data<double>()[i], expected, 1e-7) << c.op << k << ' ' << i;
        }
      }
    }
  }
}

TEST(OptimizersTest, RejectInputsThatDoNotFit) {
  const auto error = [](std::vector<Value> inputs) {
    OpCall call{"Adagrad", 1, std::move(inputs)};
    call.domain = "ai.onnx.preview.training";
    call.output_count = 2;
    return ErrorOf(std::move(call));
  };
  const Tensor r = Tensor::Of<float>({}, {0.1f}), t = Tensor::Of<int64_t>({}, {0});
  EXPECT_EQ(error({r, t, Iota<float>({2}), Iota<float>({2})}),
            "expected 2 inputs and a multiple of 3 more, got 4");
  EXPECT_EQ(error({r, t, Iota<float>({2}), Iota<float>({3}), Iota<float>({2})}),
            "input 3: expected float [2] as of input 2, got float [3]");
}

}  // namespace
}  // namespace tenon
