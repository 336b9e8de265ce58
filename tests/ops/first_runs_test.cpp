// The first runs of a session, in which its weights are packed piece by piece, on several threads
// at once.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "ir/graph_builder.h"
#include "ir/schema.h"
#include "ops/conv_reference.h"
#include "ops/cpu_provider.h"
#include "ops/framework/registry.h"
#include "ops/product_reference.h"
#include "runtime/environment.h"
#include "runtime/session.h"

namespace tenon {
namespace {

constexpr int kClients = 4, kRuns = 20;

// y = Relu(Conv(Relu(Conv(x, first)), second)) as one row, times `third`: a convolution by
// Winograd's method, one of single taps, and a product, which all can read their weights as they
// are.
struct Layers {
  Tensor x = FilledWith<float>({1, 256, 4, 4}, 1);
  Tensor first = FilledWith<float>({256, 256, 3, 3}, 2);
  Tensor second = FilledWith<float>({512, 256, 1, 1}, 3);
  Tensor third = FilledWith<float>({512 * 16, 320}, 4);

  Model ToModel() const {
    constexpr int32_t kOpset = 20;
    GraphBuilder b(kOpset);
    const ValueId image = b.Input("x", DataType::kFloat, SymbolicShape(x.shape()));
    const ValueId c =
        b.Op("Relu", {b.Op("Conv", {image, b.Constant(first)},
                           MakeAttributes(Attr("pads", std::vector<int64_t>{1, 1, 1, 1})))});
    const ValueId d = b.Op("Relu", {b.Op("Conv", {c, b.Constant(second)})});
    b.Output(b.Op("MatMul", {b.Op("Flatten", {d}), b.Constant(third)}));
    for (size_t i = 0; i < b.graph->node_capacity(); ++i) {
      if (Node* const node = b.graph->FindNode(static_cast<NodeId>(i))) {
        node->schema = FindSchema(node->domain, node->op_type, node->opset);
      }
    }
    Model model;
    model.ir_version = 9;
    model.opsets = {{"", kOpset}};
    model.graph = std::move(b.graph);
    return model;
  }

  std::vector<double> Reference() const {
    const auto relu = [&](const Tensor& in, const Tensor& w, const ReferenceConv& conv) {
      Tensor out =
          Tensor::Allocate(DataType::kFloat, {1, w.shape()[0], in.shape()[2], in.shape()[3]})
              .value();
      const std::vector<double> sums = ConvReference(conv, in, w, Tensor(), out.shape());
      for (size_t i = 0; i < sums.size(); ++i) {
        out.data<float>()[i] = static_cast<float>(std::max(0.0, sums[i]));
      }
      return out;
    };
    const Tensor c = relu(x, first, {.pads = {0, 1, 1}});
    const Tensor d = relu(c, second, {});
    const int64_t k = third.shape()[0], n = third.shape()[1];
    return ReferenceProduct{
        1,
        1,
        n,
        k,
        [&](int64_t, int64_t, int64_t p) { return double{d.data<float>()[p]}; },
        [&](int64_t, int64_t p, int64_t j) { return double{third.data<float>()[p * n + j]}; }}
        .Compute([](double sum, int64_t, int64_t, int64_t) { return sum; });
  }
};

class Runner {
 public:
  Runner(Environment& environment, Model model) {
    output_ = model.graph->outputs()[0].name;
    SessionParts parts;
    parts.providers.push_back(MakeCpuProvider());
    parts.shape_functions = &OpShapeFunctions();
    session_ = Session::Create(environment, std::move(model), {}, std::move(parts)).value();
  }
  // Undefined if the run fails.
  Tensor Run(const Tensor& x) {
    const std::string_view names[] = {"x"}, outputs[] = {output_};
    const Value feeds[] = {x};
    Value fetches[1];
    const Status status = session_->Run({}, names, feeds, outputs, fetches);
    EXPECT_TRUE(status.ok()) << status.message();
    return status.ok() ? fetches[0].tensor() : Tensor();
  }

 private:
  std::string output_;
  std::unique_ptr<Session> session_;
};

bool HaveSameBits(const Tensor& a, const Tensor& b) {
  return a.defined() && a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

TEST(FirstRunsTest, HaveTheSameBitsOnThreadsThatShareASession) {
  const Layers layers;
  Environment one({.threads = {.threads = 1}}), three({.threads = {.threads = 3}});
  const Tensor expected = Runner(one, layers.ToModel()).Run(layers.x);
  ASSERT_TRUE(expected.defined());
  const std::vector<double> reference = layers.Reference();
  double largest = 0;
  for (const double y : reference) largest = std::max(largest, std::abs(y));
  for (size_t i = 0; i < reference.size(); ++i) {
    ASSERT_NEAR(expected.data<float>()[i], reference[i], 1e-5 * largest) << "element " << i;
  }
  for (Environment* const environment : {&one, &three}) {
    Runner runner(*environment, layers.ToModel());
    std::atomic<int> started = 0, wrong = 0;
    std::vector<std::thread> clients;
    for (int client = 0; client < kClients; ++client) {
      clients.emplace_back([&] {
        for (++started; started < kClients;) std::this_thread::yield();
        for (int run = 0; run < kRuns; ++run) {
          if (!HaveSameBits(runner.Run(layers.x), expected)) ++wrong;
        }
      });
    }
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace tenon
