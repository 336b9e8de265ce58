// Runs that return to their caller at partitions. Requirements: web (WB-n).
#include "base/allocation_count.h"
#include "ir/onnx_reader.h"
#include "webnn/fixture.h"

namespace tenon::webnn {
namespace {

class BarrierRunTest : public WebnnTest {
 protected:
  // x -> [Relu] -> Hardmax -> [Exp] -> [y], and a fetch of what the CPU makes.
  void OpenChain(const SymbolicShape& shape = kRow) {
    GraphBuilder b;
    const ValueId x = b.Input("x", DataType::kFloat, shape);
    const ValueId a = b.Op("Relu", {x});
    const ValueId h = b.Op("Hardmax", {a});
    b.graph->AddOutput("y", b.Op("Exp", {h}));
    b.graph->AddOutput("h", h);
    Open(*b.graph);
    ASSERT_EQ(partitions(), 2u);
  }

  // Of the chain, when it has run a few times.
  size_t AllocationsOfSteadyRun() {
    const Value x = SomeValue(DataType::kFloat, Shape{2, 3});
    Hidden({&x, 1});
    const std::vector<Value> none(2);
    const bool wanted[2] = {false, true};
    const RunOptions options;
    size_t allocations = 0;
    for (int i = 0; i < 6; ++i) {
      const size_t before = AllocationsOnThisThread();
      EXPECT_TRUE(run_->Begin(options, hidden_, wanted, none).ok());
      do {
        if (!run_->Next().ok()) return SIZE_MAX;
        for (size_t o = 0; run_->is_at_barrier() && o < 1; ++o) {
          const Tensor& tensor = run_->output(o).tensor();
          if (tensor.raw() == nullptr) continue;
          std::fill_n(static_cast<float*>(const_cast<void*>(tensor.raw())), tensor.size(), 1.0F);
        }
      } while (run_->is_at_barrier());
      run_->End();
      allocations = AllocationsOnThisThread() - before;
    }
    return allocations;
  }

  Status Begin(const Value& feed, std::span<const Value> fetches, const bool (&wanted)[2],
               const RunOptions& options = {}) {
    values_.clear();
    return run_->Begin(options, Hidden({&feed, 1}), wanted, fetches);
  }
};

// WB-30, WB-31
TEST_F(BarrierRunTest, StandsAtEachPartition) {
  OpenChain();
  const Value x = SomeValue(DataType::kFloat, Shape{2, 3});
  const std::vector<Value> none(2);
  ASSERT_TRUE(Begin(x, none, {true, true}).ok());
  EXPECT_EQ(Begin(x, none, {true, true}).code(), StatusCode::kFail);  // one at a time
  ASSERT_TRUE(Step().ok());
  EXPECT_TRUE(run_->is_at_barrier());
  EXPECT_EQ(run_->position(), 0u);
  ASSERT_TRUE(Step().ok());
  EXPECT_TRUE(run_->is_at_barrier());
  EXPECT_EQ(run_->position(), 1u);
  ASSERT_TRUE(Step().ok());
  EXPECT_FALSE(run_->is_at_barrier());
  EXPECT_EQ(run_->Next().code(), StatusCode::kFail);  // there is nothing more
  run_->End();
  ExpectSameAsCpu();
}

// A pre-allocated output is written in place; what is not fetched is not kept.
TEST_F(BarrierRunTest, Fetches) {
  OpenChain();
  const Value x = SomeValue(DataType::kFloat, Shape{2, 3});
  std::vector<Value> fetches(2);
  fetches[1] = SomeValue(DataType::kFloat, Shape{2, 3}, 9);
  ASSERT_TRUE(Begin(x, fetches, {false, true}).ok());
  do {
    ASSERT_TRUE(Step().ok());
  } while (run_->is_at_barrier());
  EXPECT_EQ(run_->fetch(1).tensor().raw(), fetches[1].tensor().raw());
  ExpectSame(RunOnCpu({&x, 1})[1], fetches[1], 0, "h");
  run_->End();
  EXPECT_FALSE(run_->fetch(1).has_value());
}

// Errors leave the session usable.
TEST_F(BarrierRunTest, RefusesWrongFeeds) {
  OpenChain();
  const std::vector<Value> none(2);
  const bool wanted[2] = {true, false};
  const Value missing;
  EXPECT_EQ(run_->Begin({}, {&missing, 1}, wanted, none).code(), StatusCode::kFail);
  for (const Value& wrong :
       {SomeValue(DataType::kInt64, Shape{2, 3}), SomeValue(DataType::kFloat, Shape{2, 4})}) {
    EXPECT_EQ(Begin(wrong, none, {true, false}).code(), StatusCode::kInvalidArgument);
  }
  ExpectSameAsCpu();
}

TEST_F(BarrierRunTest, FeedsOfTheCpuNeedMemory) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, kRow);
  b.graph->AddOutput("y", b.Op("Relu", {b.Op("Hardmax", {x})}));
  Open(*b.graph);
  const Value empty = Tensor::View(DataType::kFloat, Shape{2, 3}, nullptr);
  const bool wanted = true;
  const Value fetch;
  EXPECT_EQ(run_->Begin({}, {&empty, 1}, {&wanted, 1}, {&fetch, 1}).code(),
            StatusCode::kInvalidArgument);
  ExpectSameAsCpu();
}

// A run that is abandoned at a barrier, in any place.
TEST_F(BarrierRunTest, AbandonedRuns) {
  OpenChain();
  const Value x = SomeValue(DataType::kFloat, Shape{2, 3});
  const std::vector<Value> none(2);
  for (int steps = 0; steps < 4; ++steps) {
    ASSERT_TRUE(Begin(x, none, {true, true}).ok());
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(Step().ok());
    run_->End();
  }
  ExpectSameAsCpu();
  // Also by the end of everything.
  ASSERT_TRUE(Begin(x, none, {true, true}).ok());
  ASSERT_TRUE(Step().ok());
  run_.reset();
}

TEST_F(BarrierRunTest, TerminatedRuns) {
  OpenChain();
  std::atomic<bool> terminate = true;
  RunOptions options;
  options.terminate = &terminate;
  const Value x = SomeValue(DataType::kFloat, Shape{2, 3});
  const std::vector<Value> none(2);
  ASSERT_TRUE(Begin(x, none, {true, true}, options).ok());
  EXPECT_FALSE(run_->Next().ok());
  EXPECT_FALSE(run_->is_at_barrier());
  ExpectSameAsCpu();
}

// A node on the CPU that fails between barriers.
TEST_F(BarrierRunTest, FailingNodes) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, kRow);
  const ValueId to = b.Input("to", DataType::kInt64, SymbolicShape{2});
  const ValueId reshaped = b.Op("Reshape", {b.Op("Relu", {x}), to});
  b.graph->AddOutput("y", reshaped);
  Open(*b.graph);
  ASSERT_EQ(partitions(), 1u);
  const std::vector<Value> feeds = {SomeValue(DataType::kFloat, Shape{2, 3}),
                                    Tensor::Of<int64_t>({2}, {4, 5})};
  const bool wanted = true;
  const Value fetch;
  values_.clear();
  ASSERT_TRUE(run_->Begin({}, Hidden(feeds), {&wanted, 1}, {&fetch, 1}).ok());
  ASSERT_TRUE(Step().ok());
  const Status status = Step();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("Reshape"), std::string::npos) << status.message();
  const std::vector<Value> good = {feeds[0], Tensor::Of<int64_t>({2}, {3, 2})};
  ExpectSame(RunOnCpu(good)[0], RunWithBarriers(good)[0], 1e-6, "y");
}

// An ordinary run says what is wrong.
TEST_F(BarrierRunTest, OrdinaryRunsFail) {
  OpenChain();
  const Value x = SomeValue(DataType::kFloat, Shape{2, 3});
  const std::string_view in = "x", out = "y";
  Value fetch;
  EXPECT_FALSE(session_->Run({}, {&in, 1}, {&x, 1}, {&out, 1}, {&fetch, 1}).ok());
  ExpectSameAsCpu();
}

// WB-31: a steady run allocates nothing, whether sizes are known or open.
TEST_F(BarrierRunTest, SteadyRunsAllocateNothing) {
  for (const bool is_open : {false, true}) {
    OpenChain(is_open ? SymbolicShape{Dim::Symbol("n"), 3} : kRow);
    EXPECT_EQ(AllocationsOfSteadyRun(), 0u) << is_open;
  }
}

// Whole models: what is on the CPU and what is not.
TEST_F(BarrierRunTest, Digits) {
  const auto model = ReadModel(TENON_DIGITS_MODEL, {});
  ASSERT_TRUE(model) << model.error().message();
  OpenOptions options;
  options.opset = model->opsets.at("");
  Open(*model->graph, options);
  ASSERT_EQ(partitions(), 1u);
  for (const int64_t batch : {1, 3}) ExpectSameAsCpu(1e-5, {Shape{batch, 1, 8, 8}});
}

// Attention as exporters write it, over sequences of open length, with a node that WebNN lacks.
TEST_F(BarrierRunTest, Transformer) {
  GraphBuilder b;
  const Dim n = Dim::Symbol("batch"), t = Dim::Symbol("time");
  const int64_t width = 8, heads = 2;
  const auto weight = [&](Shape shape, int seed) {
    return b.Constant(SomeValue(DataType::kFloat, shape, seed).tensor());
  };
  const auto ints = [&](int64_t value) { return b.Ints({value}); };
  const auto concat = [&](std::vector<ValueId> parts) {
    return b.Op("Concat", std::move(parts), MakeAttributes(Attr("axis", int64_t{0})));
  };
  const auto transpose = [&](ValueId x, std::vector<int64_t> perm) {
    return b.Op("Transpose", {x}, MakeAttributes(Attr("perm", std::move(perm))));
  };
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{n, t, width});
  const ValueId normalized =
      b.Op("LayerNormalization", {x, weight({width}, 1), weight({width}, 2)});
  const ValueId shape = b.Op("Shape", {normalized});
  const ValueId batch = b.Op("Gather", {shape, ints(0)}), time = b.Op("Gather", {shape, ints(1)});
  const ValueId split = concat({batch, time, ints(heads), ints(width / heads)});
  const auto head = [&](int seed, std::vector<int64_t> perm) {
    const ValueId projected = b.Op("MatMul", {normalized, weight({width, width}, seed)});
    return transpose(b.Op("Reshape", {projected, split}), std::move(perm));
  };
  const ValueId scores = b.Op("MatMul", {head(3, {0, 2, 1, 3}), head(4, {0, 2, 3, 1})});
  const ValueId attention = b.Op("Softmax", {b.Op("Mul", {scores, b.Scalar(0.5F)})});
  const ValueId mixed = transpose(b.Op("MatMul", {attention, head(5, {0, 2, 1, 3})}), {0, 2, 1, 3});
  const ValueId joined = b.Op("Reshape", {mixed, concat({batch, time, ints(width)})});
  const ValueId residual = b.Op("Add", {x, b.Op("MatMul", {joined, weight({width, width}, 6)})});
  const ValueId gated = b.Op("Gelu", {b.Op("MatMul", {residual, weight({width, 16}, 7)})});
  const ValueId picked = b.Op("Hardmax", {gated});  // on the CPU
  b.graph->AddOutput("y", b.Op("MatMul", {b.Op("Add", {gated, picked}), weight({16, 4}, 8)}));
  Open(*b.graph);
  EXPECT_EQ(partitions(), 2u);
  for (const Shape& size : {Shape{1, 3, width}, Shape{2, 5, width}, Shape{1, 3, width}}) {
    ExpectSameAsCpu(1e-4, {size});
  }
}

// WB-57: a small CNN with a skip connection and pools, in both layouts.
TEST_F(BarrierRunTest, Convolutions) {
  const Dim batch = Dim::Symbol("batch");
  for (const bool channels_last : {false, true}) {
    GraphBuilder b;
    const auto weight = [&](Shape shape, int seed) {
      return b.Constant(SomeValue(DataType::kFloat, shape, seed).tensor());
    };
    const std::vector<int64_t> pads = {1, 1, 1, 1};
    const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{batch, 3, 12, 12});
    const ValueId a = b.Op("Conv", {x, weight({4, 3, 3, 3}, 1), weight({4}, 2)},
                           MakeAttributes(Attr("pads", pads)));
    const ValueId norm =
        b.Op("BatchNormalization", {a, weight({4}, 3), weight({4}, 4), weight({4}, 5),
                                    b.Constant(Tensor::Of<float>({4}, {1, 2, 3, 4}))});
    const ValueId r = b.Op("Relu", {norm});
    const ValueId c =
        b.Op("Conv", {r, weight({4, 4, 3, 3}, 6)}, MakeAttributes(Attr("pads", pads)));
    const ValueId s = b.Op("Add", {c, r});
    const ValueId p = b.Op("MaxPool", {s},
                           MakeAttributes(Attr("kernel_shape", std::vector<int64_t>{2, 2}),
                                          Attr("strides", std::vector<int64_t>{2, 2})));
    const ValueId g = b.Op("GlobalAveragePool", {p});
    const ValueId f = b.Op("Flatten", {g});
    b.graph->AddOutput("y", b.Op("Gemm", {f, weight({4, 5}, 7), weight({5}, 8)}));
    Open(*b.graph, {.limits = LimitsText({.prefers_channels_last = channels_last})});
    ASSERT_EQ(partitions(), 1u);
    for (const int64_t size : {1, 3}) ExpectSameAsCpu(1e-4, {Shape{size, 3, 12, 12}});
  }
}

}  // namespace
}  // namespace tenon::webnn
