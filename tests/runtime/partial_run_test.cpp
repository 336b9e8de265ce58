// Partial execution: a plan run in parts over one frame. Requirements: partial-execution.
#include <gtest/gtest.h>

#include "ir/inference.h"
#include "runtime/build_plan.h"
#include "runtime/executor.h"
#include "runtime/partition.h"
#include "runtime/profiler.h"
#include "runtime/rows.h"
#include "runtime/test_provider.h"
#include "tensor/arena.h"

namespace tenon {
namespace {

const Dim n = Dim::Symbol("n");

class PartialRunTest : public ::testing::Test {
 protected:
  void Plan(ModelBuilder& builder) {
    ResetRuns();
    model_ = builder.Build();
    providers_.push_back(MakeTestProvider());
    Logger logger("test", Severity::kWarning, 0, StderrSink());
    ASSERT_TRUE(InferTypes(*model_.graph, TestShapeFunctions()).ok());
    ASSERT_TRUE(Partitioner(*model_.graph, providers_, logger).Assign(*model_.graph).ok());
    for (const auto& provider : providers_) {
      provider_pointers_.push_back(provider.get());
      memories_.push_back(MemoryOf(*provider));
    }
    memory_ = std::make_shared<CachingArena>(SharedCpuAllocator());
    PlanParts parts = {provider_pointers_, memories_, memory_, &transfers_};
    parts.owns_memory = parts.may_shrink_memory = true;
    auto plan = BuildPlan(*model_.graph, parts);
    ASSERT_TRUE(plan) << plan.error().message();
    executor_ = std::make_unique<Executor>(std::move(*plan));
    scope_.threads = &threads_;
  }

  // s = 2x, t = 2s, u = s + t, y = 2u: every step feeds a later one, s skips one.
  void PlanChain() {
    ModelBuilder b;
    b.Input("x", {n}).Node("Scale", {"x"}, {"s"}).Node("Scale", {"s"}, {"t"});
    b.Node("Add", {"s", "t"}, {"u"}).Node("Scale", {"u"}, {"y"}).Output("y");
    Plan(b);
  }

  Slot SlotOf(const std::string& name) { return executor_->plan().FindSlot(name).value(); }

  Status RunWhole(const Value& x, std::vector<Value>& fetches) {
    const FrameLease frame(executor_->frames());
    return executor_->Run(scope_, *frame, {{&x, 1}, fetches});
  }

  Status RunPart(Frame& frame, uint32_t begin, uint32_t end,
                 const std::vector<std::pair<std::string, Value>>& feeds,
                 const std::vector<std::string>& fetch_names = {},
                 std::vector<Value>* fetches = nullptr) {
    std::vector<Slot> feed_slots, fetch_slots;
    std::vector<Value> values;
    for (const auto& [name, value] : feeds) {
      feed_slots.push_back(SlotOf(name));
      values.push_back(value);
    }
    for (const std::string& name : fetch_names) fetch_slots.push_back(SlotOf(name));
    std::vector<Value> none;
    std::vector<Value>& out = fetches ? *fetches : none;
    out.assign(fetch_names.size(), Value());
    return executor_->Run(scope_, frame,
                          {values, out, {}, PlanPart{begin, end, feed_slots, fetch_slots}});
  }

  ThreadPool threads_{ThreadPoolOptions{.threads = 1}};
  Model model_;
  std::vector<std::unique_ptr<ExecutionProvider>> providers_;
  std::vector<ExecutionProvider*> provider_pointers_;
  std::vector<Location> memories_;
  DataTransfers transfers_;
  std::shared_ptr<CachingArena> memory_;
  std::unique_ptr<Executor> executor_;
  RunScope scope_;
};

// TX-17, TX-18, TX-21: any split gives the result of a whole run, at first and again.
TEST_F(PartialRunTest, AnyTwoPartsGiveWhatTheWholeGives) {
  PlanChain();
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (uint32_t split = 0; split <= 4; ++split) {
      const FrameLease frame(executor_->frames());
      std::vector<Value> fetches;
      ASSERT_TRUE(RunPart(*frame, 0, split, {{"x", Row({1, 2, 3})}}).ok());
      EXPECT_EQ(frame->position(), split);
      const Status status = RunPart(*frame, split, 4, {}, {"y"}, &fetches);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(ValuesOf(fetches[0]), (Floats{12, 24, 36})) << split;
    }
  }
}

TEST_F(PartialRunTest, OneStepAtATimeIsAWholeRun) {
  PlanChain();
  for (int repeat = 0; repeat < 3; ++repeat) {
    const FrameLease frame(executor_->frames());
    std::vector<Value> fetches;
    ASSERT_TRUE(RunPart(*frame, 0, 1, {{"x", Row({1, -1})}}).ok());
    ASSERT_TRUE(RunPart(*frame, 1, 2, {}).ok());
    ASSERT_TRUE(RunPart(*frame, 2, 3, {}).ok());
    ASSERT_TRUE(RunPart(*frame, 3, 4, {}, {"y"}, &fetches).ok());
    EXPECT_EQ(ValuesOf(fetches[0]), (Floats{12, -12}));
  }
}

// PR-26: a run in parts has the same trace as a whole run.
TEST_F(PartialRunTest, StepsOfPartsAreTracedAsThoseOfAWholeRun) {
  PlanChain();
  std::vector<TraceEvent> events;
  Logger logger("test", Severity::kWarning, 0, StderrSink());
  const auto profiler =
      Profiler::ToSink([&](const TraceEvent& event) { events.push_back(event); }, logger);
  scope_.profiler = profiler.get();
  const auto take = [&] {
    std::vector<std::string> described;
    for (const TraceEvent& event : std::exchange(events, {})) {
      if (event.category != TraceCategory::kNode) continue;
      std::string keys = event.name;
      for (const TraceArg& arg : event.args) keys += " " + arg.key;
      described.push_back(keys);
    }
    return described;
  };
  const Value x = Row({1, 2});
  std::vector<Value> fetches(1);
  ASSERT_TRUE(RunWhole(x, fetches).ok());
  const std::vector<std::string> whole = take();
  ASSERT_EQ(whole.size(), 12u);
  EXPECT_EQ(whole[0], "node_s_fence_before op_name");
  EXPECT_EQ(whole[1],
            "node_s_kernel_time op_name provider graph_index exec_plan_index node_index "
            "activation_size parameter_size output_size input_type_shape output_type_shape "
            "thread_scheduling_stats program_counter mem_bytes_requested_in_use "
            "mem_requested_in_use_delta mem_bytes_in_use mem_in_use_delta mem_in_use_peak "
            "mem_arena_held mem_arena_held_delta");
  EXPECT_EQ(whole[2], "node_s_fence_after op_name");
  for (const uint32_t split : {1u, 3u}) {
    const FrameLease frame(executor_->frames());
    ASSERT_TRUE(RunPart(*frame, 0, split, {{"x", Row({1, 2})}}).ok());
    ASSERT_TRUE(RunPart(*frame, split, 4, {}, {"y"}, &fetches).ok());
    EXPECT_EQ(take(), whole);
  }
}

// TX-21, TX-22
TEST_F(PartialRunTest, PartsAreInThePlanAndFollowEachOther) {
  PlanChain();
  const FrameLease frame(executor_->frames());
  EXPECT_EQ(RunPart(*frame, 1, 2, {}).message(),
            "expected a part that begins at step 0, got [1, 2)");
  EXPECT_EQ(RunPart(*frame, 0, 5, {}).message(),
            "expected a range of steps within [0, 4), got [0, 5)");
  ASSERT_TRUE(RunPart(*frame, 0, 2, {{"x", Row({1})}}).ok());
  EXPECT_EQ(RunPart(*frame, 2, 1, {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(RunPart(*frame, 0, 2, {}).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(RunPart(*frame, 2, 2, {}).ok());  // an empty region
  EXPECT_TRUE(RunPart(*frame, 2, 4, {}).ok());
}

// TX-6, TX-7: the step in the middle is never run; its outputs are fed.
TEST_F(PartialRunTest, AStepWhoseOutputsAreFedIsNotRun) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"forward"}).Node("Fail", {"forward"}, {"gradient"});
  b.Node("Add", {"gradient", "x"}, {"y"}).Output("y");
  Plan(b);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const FrameLease frame(executor_->frames());
    std::vector<Value> fetches;
    ASSERT_TRUE(RunPart(*frame, 0, 1, {{"x", Row({5, 6})}}, {"forward"}, &fetches).ok());
    EXPECT_EQ(ValuesOf(fetches[0]), (Floats{10, 12}));
    ASSERT_TRUE(RunPart(*frame, 1, 3, {{"gradient", Row({100, 200})}}, {"y"}, &fetches).ok());
    EXPECT_EQ(ValuesOf(fetches[0]), (Floats{105, 206}));
  }
  const FrameLease frame(executor_->frames());
  const Status status = RunPart(*frame, 0, 3, {{"x", Row({5, 6})}});
  EXPECT_NE(status.message().find("Non-zero status code returned while running Fail node."),
            std::string::npos);
}

// TX-5, TX-6, TX-7, TX-8: the inputs of a yield are freed when the next part begins.
TEST_F(PartialRunTest, AYieldIsNeverRunAndLetsGoOfWhatItTakes) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"forward"}).Node("Yield", {"forward"}, {"gradient"});
  b.Node("Scale", {"gradient"}, {"g"}).Node("Add", {"g", "x"}, {"y"}).Output("y");
  Plan(b);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const FrameLease frame(executor_->frames());
    std::vector<Value> fetches;
    ASSERT_TRUE(RunPart(*frame, 0, 1, {{"x", Row({5, 6})}}, {"forward"}, &fetches).ok());
    EXPECT_EQ(ValuesOf(fetches[0]), (Floats{10, 12}));
    const auto alone = fetches[0].tensor().owner();
    fetches.clear();
    EXPECT_GT(alone.use_count(), 1) << "the frame holds it";
    ASSERT_TRUE(RunPart(*frame, 1, 2, {}).ok());
    EXPECT_EQ(alone.use_count(), 1) << repeat;
    ASSERT_TRUE(RunPart(*frame, 2, 4, {{"gradient", Row({100, 200})}}, {"y"}, &fetches).ok());
    EXPECT_EQ(ValuesOf(fetches[0]), (Floats{205, 406}));
  }
  EXPECT_EQ(RunsOf("Yield"), 0);
  const FrameLease frame(executor_->frames());
  EXPECT_EQ(RunPart(*frame, 0, 4, {{"x", Row({5, 6})}}).message(),
            "value 'gradient' is needed from step 0 on, and was neither made nor fed");
  const Value x = Row({5, 6});
  std::vector<Value> fetches(1);
  EXPECT_EQ(RunWhole(x, fetches).message(),
            "value 'gradient' is needed from step 0 on, and was neither made nor fed");
}

// TX-38, TX-67: a cached value's step is in the trace.
TEST_F(PartialRunTest, CachedStepsAreTraced) {
  PlanChain();
  std::vector<std::string> seen;
  Logger logger("test", Severity::kWarning, 0, StderrSink());
  const auto profiler = Profiler::ToSink(
      [&](const TraceEvent& event) {
        if (event.category != TraceCategory::kNode) return;
        const bool is_cached = !event.args.empty() && event.args.back().key == "cached";
        seen.push_back(event.name + (is_cached ? " cached" : ""));
      },
      logger);
  scope_.profiler = profiler.get();
  for (int repeat = 0; repeat < 2; ++repeat) {
    const FrameLease frame(executor_->frames());
    seen.clear();
    ASSERT_TRUE(RunPart(*frame, 0, 3, {{"x", Row({1})}, {"t", Row({5})}}).ok());
    EXPECT_EQ(seen, (std::vector<std::string>{
                        "node_s_fence_before", "node_s_kernel_time", "node_s_fence_after",
                        "node_t_fence_before", "node_t_kernel_time cached", "node_t_fence_after",
                        "node_u_fence_before", "node_u_kernel_time", "node_u_fence_after"}));
  }
}

// TX-38, TX-39: cached values replace steps.
TEST_F(PartialRunTest, ACachedValueTakesThePlaceOfItsStep) {
  PlanChain();
  const FrameLease frame(executor_->frames());
  std::vector<Value> fetches;
  ASSERT_TRUE(RunPart(*frame, 0, 4, {{"x", Row({1})}, {"t", Row({50})}}, {"y"}, &fetches).ok());
  EXPECT_EQ(ValuesOf(fetches[0]), (Floats{104}));
  EXPECT_EQ(RunsOf("Scale"), 2);
}

// TX-14
TEST_F(PartialRunTest, AFeedDoesNotOverwriteAValue) {
  PlanChain();
  const FrameLease frame(executor_->frames());
  ASSERT_TRUE(RunPart(*frame, 0, 1, {{"x", Row({1})}}).ok());
  EXPECT_EQ(RunPart(*frame, 1, 2, {{"s", Row({1})}}).message(), "value 's' is set already");
}

TEST_F(PartialRunTest, AMissingValueIsNamed) {
  PlanChain();
  const FrameLease frame(executor_->frames());
  EXPECT_EQ(RunPart(*frame, 0, 2, {}).message(),
            "value 'x' is needed from step 0 on, and was neither made nor fed");
}

// TX-15, TX-25
TEST_F(PartialRunTest, FetchesWhatIsThereAndNamesWhatIsNot) {
  ModelBuilder b;
  b.Input("x", {n}).Constant("c", Row({7, 7})).Node("Add", {"x", "c"}, {"a"});
  b.Node("Scale", {"a"}, {"b"}).Output("a").Output("b");
  Plan(b);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const FrameLease frame(executor_->frames());
    std::vector<Value> early, late;
    ASSERT_TRUE(RunPart(*frame, 0, 1, {{"x", Row({1, 2})}}, {"c"}, &early).ok());
    early[0].tensor().data<float>()[0] = 1000;  // a copy: the initializer stays
    ASSERT_TRUE(RunPart(*frame, 1, 2, {}, {"a", "b", "c"}, &late).ok());
    EXPECT_EQ(ValuesOf(late[0]), (Floats{8, 9}));
    EXPECT_EQ(ValuesOf(late[1]), (Floats{16, 18}));
    EXPECT_EQ(ValuesOf(late[2]), (Floats{7, 7}));
  }
  const FrameLease frame(executor_->frames());
  std::vector<Value> fetches;
  EXPECT_EQ(RunPart(*frame, 0, 1, {{"x", Row({1, 2})}}, {"b"}, &fetches).message(),
            "output 'b' was not produced");
}

// TX-25: what a later part may fetch is not written over, also where the part that makes it does
// not fetch it.
TEST_F(PartialRunTest, AnOutputIsNotWrittenOver) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"s"}).Node("Reuse", {"s"}, {"y"});
  b.Output("s").Output("y");
  Plan(b);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const FrameLease frame(executor_->frames());
    std::vector<Value> early, late;
    ASSERT_TRUE(RunPart(*frame, 0, 2, {{"x", Row({1, 2})}}, {"y"}, &early).ok());
    EXPECT_EQ(ValuesOf(early[0]), (Floats{4, 8}));
    ASSERT_TRUE(RunPart(*frame, 2, 2, {}, {"s"}, &late).ok());
    EXPECT_EQ(ValuesOf(late[0]), (Floats{2, 4}));
  }
}

// TX-23
TEST_F(PartialRunTest, AfterAFailureTheStateIsOfNoUse) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Fail", {"a"}, {"y"}).Output("y");
  Plan(b);
  const FrameLease frame(executor_->frames());
  EXPECT_FALSE(RunPart(*frame, 0, 2, {{"x", Row({1})}}).ok());
  const Status again = RunPart(*frame, 0, 1, {});
  EXPECT_EQ(again.code(), StatusCode::kFail);
  EXPECT_EQ(again.message(), "an earlier part of this execution failed");
}

// TX-50
TEST_F(PartialRunTest, StatesDoNotDisturbEachOther) {
  PlanChain();
  for (int repeat = 0; repeat < 3; ++repeat) {
    const FrameLease first(executor_->frames()), second(executor_->frames());
    std::vector<Value> fetches;
    ASSERT_TRUE(RunPart(*first, 0, 2, {{"x", Row({1, 1})}}).ok());
    ASSERT_TRUE(RunPart(*second, 0, 2, {{"x", Row({3, 3, 3})}}).ok());
    ASSERT_TRUE(RunPart(*first, 2, 4, {}, {"y"}, &fetches).ok());
    EXPECT_EQ(ValuesOf(fetches[0]), (Floats{12, 12}));
    ASSERT_TRUE(RunPart(*second, 2, 4, {}, {"y"}, &fetches).ok());
    EXPECT_EQ(ValuesOf(fetches[0]), (Floats{36, 36, 36}));
  }
}

// TX-20, TX-57
TEST_F(PartialRunTest, AStateFreesWhatItHolds) {
  PlanChain();
  for (int repeat = 0; repeat < 3; ++repeat) {
    {
      const FrameLease frame(executor_->frames());
      ASSERT_TRUE(RunPart(*frame, 0, 2, {{"x", Row(Floats(1000, 1))}}).ok());
      EXPECT_GT(memory_->Stats().bytes_in_use, 0u);
    }
    EXPECT_EQ(memory_->Stats().bytes_in_use, 0u);
  }
}

// TX-32, TX-34, TX-35: one allocation holds all outputs of a part after a first run with these
// shapes.
TEST_F(PartialRunTest, APlannedPartAllocatesOnce) {
  PlanChain();
  for (int repeat = 0; repeat < 3; ++repeat) {
    const FrameLease frame(executor_->frames());
    const uint64_t before = memory_->Stats().allocations;
    ASSERT_TRUE(RunPart(*frame, 0, 2, {{"x", Row(Floats(100, 1))}}).ok());
    const uint64_t after_one = memory_->Stats().allocations;
    ASSERT_TRUE(RunPart(*frame, 2, 4, {}).ok());
    if (repeat == 0) continue;
    EXPECT_LE(after_one - before, 1u);
    EXPECT_LE(memory_->Stats().allocations - after_one, 1u);
  }
}

// All runs use the slab of the first.
TEST_F(PartialRunTest, LaterRunsHoldNoMoreThanTheFirst) {
  ModelBuilder b;
  b.Input("x", {n});
  for (const char* scaled : {"p", "q", "r", "s"}) b.Node("Scale", {"x"}, {scaled});
  b.Node("Add", {"p", "q"}, {"pq"}).Node("Add", {"r", "s"}, {"rs"});
  b.Node("Add", {"pq", "rs"}, {"y"}).Output("y");
  Plan(b);
  const Value x = Row(Floats(size_t{1} << 18, 1));
  std::vector<uint64_t> reserved;
  for (int run = 0; run < 3; ++run) {
    std::vector<Value> fetches(1);
    ASSERT_TRUE(RunWhole(x, fetches).ok());
    reserved.push_back(memory_->Stats().bytes_reserved);
  }
  EXPECT_LE(reserved[1], reserved[0]);
  EXPECT_EQ(reserved[2], reserved[1]);
}

// TX-8: what the caller fetched outlives the frame.
TEST_F(PartialRunTest, FetchedValuesOutliveTheState) {
  PlanChain();
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::vector<Value> fetches;
    {
      const FrameLease frame(executor_->frames());
      ASSERT_TRUE(RunPart(*frame, 0, 2, {{"x", Row({1, 2})}}, {"s", "t"}, &fetches).ok());
      ASSERT_TRUE(RunPart(*frame, 2, 4, {}).ok());
    }
    EXPECT_EQ(ValuesOf(fetches[0]), (Floats{2, 4}));
    EXPECT_EQ(ValuesOf(fetches[1]), (Floats{4, 8}));
  }
}

// TX-33: 2 x 3 elements and 3 x 2 elements do not share a memory plan.
TEST_F(PartialRunTest, EveryListOfShapesHasAPlanOfItsOwn) {
  ModelBuilder b;
  b.Input("x", {n, Dim::Symbol("m")}).Node("Scale", {"x"}, {"y"}).Output("y");
  Plan(b);
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const Shape& shape : {Shape({2, 3}), Shape({3, 2})}) {
      const FrameLease frame(executor_->frames());
      std::vector<Value> fetches;
      const Tensor x = Tensor::Of<float>(shape, {1, 2, 3, 4, 5, 6});
      ASSERT_TRUE(RunPart(*frame, 0, 1, {{"x", x}}, {"y"}, &fetches).ok());
      EXPECT_EQ(fetches[0].tensor().shape(), shape);
    }
  }
}

}  // namespace
}  // namespace tenon
