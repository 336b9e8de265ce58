// Graphs run in stages, through the functions that clients ask for by name. (tests/python has
// more.) Requirements: partial-execution, section 11.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon_c_api.h>
#include <tenon_training_c_api.h>

#include <algorithm>
#include <span>
#include <utility>

#include "capi/client.h"
#include "capi/counting_allocator.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

template <class Function>
Function Find(const char* name) {
  const auto function = reinterpret_cast<Function>(Ort::GetApi().GetExperimentalFunction(name));
  EXPECT_NE(function, nullptr) << name;
  return function;
}

const auto create_state = Find<TenonCreatePartialState>(TENON_CREATE_PARTIAL_STATE);
const auto release_state = Find<TenonReleasePartialState>(TENON_RELEASE_PARTIAL_STATE);
const auto create_cache = Find<TenonCreateValueCache>(TENON_CREATE_VALUE_CACHE);
const auto release_cache = Find<TenonReleaseValueCache>(TENON_RELEASE_VALUE_CACHE);
const auto insert = Find<TenonValueCacheInsert>(TENON_VALUE_CACHE_INSERT);
const auto remove_value = Find<TenonValueCacheRemove>(TENON_VALUE_CACHE_REMOVE);
const auto count = Find<TenonValueCacheCount>(TENON_VALUE_CACHE_COUNT);
const auto keys = Find<TenonValueCacheKeys>(TENON_VALUE_CACHE_KEYS);
const auto clear = Find<TenonValueCacheClear>(TENON_VALUE_CACHE_CLEAR);
const auto create_agent = Find<TenonCreateTrainingAgent>(TENON_CREATE_TRAINING_AGENT);
const auto release_agent = Find<TenonReleaseTrainingAgent>(TENON_RELEASE_TRAINING_AGENT);
const auto stage_counts = Find<TenonTrainingAgentStageCounts>(TENON_TRAINING_AGENT_STAGE_COUNTS);
const auto run_stage = Find<TenonRunStage>(TENON_RUN_STAGE);
const auto run_forward = Find<TenonRunForward>(TENON_RUN_FORWARD);
const auto run_backward = Find<TenonRunBackward>(TENON_RUN_BACKWARD);

// a = -x, its gradient goes in as g, and b = a g comes out.
std::string Model() {
  const std::string row = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {2});
  ModelBuilder builder;
  builder.Input("x", row).Node("Neg", {"x"}, {"a"});
  builder.YieldNode({"a"}, {"g"}).Node("Mul", {"a", "g"}, {"b"});
  return builder.Output("b", row).Bytes();
}

class PartialTest : public testing::Test {
 protected:
  TenonTrainingAgent* NewAgent(OrtSession* session) {
    TenonTrainingAgent* agent = nullptr;
    EXPECT_EQ(Outcome(create_agent(session, &info_, &agent)), "");
    return agent;
  }

  const char* feed_ = "x";
  const char* fetch_ = "b";
  const OrtMemoryInfo* const memory_[2] = {};
  const size_t counts_[2] = {1, 1};
  TenonTrainingAgentInfo info_ = {&feed_, 1, &fetch_, 1, memory_, counts_, 2};
  std::vector<float> x_ = {1, 2}, g_ = {10, 100};
};

TEST_F(PartialTest, RunsBothHalvesAfterTheSessionIsReleased) {
  TenonTrainingAgent* agent = nullptr;
  {
    Ort::Session session = Open(Model());
    agent = NewAgent(session);
  }
  size_t feeds = 0, fetches = 0;
  EXPECT_EQ(Outcome(stage_counts(agent, 1, &feeds, &fetches)), "");
  EXPECT_EQ(feeds, 1u);
  EXPECT_EQ(fetches, 1u);
  EXPECT_EQ(Outcome(stage_counts(agent, 2, &feeds, &fetches)),
            "2: index 2 is out of range: there are 2 stages");
  TenonPartialState* state = nullptr;
  ASSERT_EQ(Outcome(create_state(&state)), "");
  const Ort::Value x = TensorOver(x_, {2}), g = TensorOver(g_, {2});
  const OrtValue* feed = x;
  OrtValue* fetched = nullptr;
  ASSERT_EQ(Outcome(run_forward(agent, nullptr, &feed, 1, &fetched, 1, state, nullptr)), "");
  EXPECT_EQ(ElementsOf<float>(Ort::Value(fetched)), (std::vector<float>{-1, -2}));
  std::vector<float> result(2);
  const Ort::Value b = TensorOver(result, {2});
  feed = g;
  fetched = const_cast<OrtValue*>(static_cast<const OrtValue*>(b));
  ASSERT_EQ(Outcome(run_backward(agent, nullptr, &feed, 1, &fetched, 1, state)), "");
  EXPECT_EQ(result, (std::vector<float>{-10, -200}));
  release_agent(agent);
  release_state(state);
}

// A tensor that an allocator frees.
Ort::Value TensorOf(CountingAllocator& allocator, std::span<const float> elements) {
  void* const data = allocator.Alloc(&allocator, elements.size_bytes());
  std::copy(elements.begin(), elements.end(), static_cast<float*>(data));
  const auto size = static_cast<int64_t>(elements.size());
  OrtValue* value = nullptr;
  Ort::ThrowOnError(Ort::GetApi().CreateTensorWithDataAndDeleterAsOrtValue(
      &allocator, data, elements.size_bytes(), &size, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
      &value));
  return Ort::Value(value);
}

// TX-14, TX-20: what a value owns lives as long as a state or cache has the value.
TEST_F(PartialTest, StatesAndCachesKeepWhatTheirValuesOwn) {
  Ort::Session session = Open(Model());
  TenonTrainingAgent* const agent = NewAgent(session);
  CountingAllocator fed, cached;
  TenonValueCache* cache = nullptr;
  ASSERT_EQ(Outcome(create_cache(&cache)), "");
  ASSERT_EQ(Outcome(insert(cache, "a", TensorOf(cached, g_))), "");
  EXPECT_EQ(cached.blocks, 1);
  TenonPartialState* state = nullptr;
  ASSERT_EQ(Outcome(create_state(&state)), "");
  OrtValue* fetched = nullptr;
  {
    const Ort::Value x = TensorOf(fed, x_);
    const OrtValue* const feed = x;
    ASSERT_EQ(Outcome(run_forward(agent, nullptr, &feed, 1, &fetched, 1, state, cache)), "");
  }
  const Ort::Value a(std::exchange(fetched, nullptr));
  EXPECT_EQ(ElementsOf<float>(a), g_);  // the cached value
  release_cache(cache);
  EXPECT_EQ(cached.blocks, 1);
  const Ort::Value g = TensorOf(fed, x_);
  const OrtValue* const feed = g;
  ASSERT_EQ(Outcome(run_backward(agent, nullptr, &feed, 1, &fetched, 1, state)), "");
  const Ort::Value b(fetched);
  EXPECT_EQ(ElementsOf<float>(b), (std::vector<float>{10, 200}));
  release_state(state);
  release_agent(agent);
  EXPECT_EQ(fed.blocks, 1);  // that of g
}

TEST_F(PartialTest, TerminatedStagesFail) {
  Ort::Session session = Open(Model());
  TenonTrainingAgent* const agent = NewAgent(session);
  TenonPartialState* state = nullptr;
  ASSERT_EQ(Outcome(create_state(&state)), "");
  Ort::RunOptions options;
  options.SetTerminate();
  const Ort::Value x = TensorOver(x_, {2});
  const OrtValue* const feed = x;
  OrtValue* fetched = nullptr;
  EXPECT_EQ(Outcome(run_stage(agent, 0, options, &feed, 1, &fetched, 1, state, nullptr)),
            "1: Exiting due to terminate flag being set to true.");
  EXPECT_EQ(fetched, nullptr);
  release_state(state);
  release_agent(agent);
}

// TX-62: what a half took of memory, without logs.
TEST_F(PartialTest, StagesAreReported) {
  Ort::Session session = Open(Model());
  TenonTrainingAgent* const agent = NewAgent(session);
  const auto get_report = Find<TenonRunGetReport>(TENON_RUN_GET_REPORT);
  Ort::RunOptions options;
  options.AddConfigEntry("tenon.run_report", "1");
  Ort::AllocatorWithDefaultOptions allocator;
  for (int repeat = 0; repeat < 2; ++repeat) {
    TenonPartialState* state = nullptr;
    ASSERT_EQ(Outcome(create_state(&state)), "");
    const Ort::Value x = TensorOver(x_, {2});
    const OrtValue* const feed = x;
    OrtValue* fetched = nullptr;
    ASSERT_EQ(Outcome(run_forward(agent, options, &feed, 1, &fetched, 1, state, nullptr)), "");
    Ort::Value owned(fetched);
    char* json = nullptr;
    ASSERT_EQ(Outcome(get_report(options, allocator, &json)), "");
    const std::string report = json;
    allocator.Free(json);
    EXPECT_THAT(report, testing::HasSubstr("\"nodes\":1,"));
    EXPECT_THAT(report, testing::HasSubstr("\"location\":\"Cpu\""));
    EXPECT_THAT(report, testing::Not(testing::HasSubstr("\"peak_bytes\":0,")));
    release_state(state);
  }
  release_agent(agent);
}

TEST_F(PartialTest, CachesHoldValuesByName) {
  TenonValueCache* cache = nullptr;
  ASSERT_EQ(Outcome(create_cache(&cache)), "");
  {
    const Ort::Value x = TensorOver(x_, {2});
    EXPECT_EQ(Outcome(insert(cache, "b", x)), "");
    EXPECT_EQ(Outcome(insert(cache, "a", x)), "");
  }
  size_t found = 7;
  EXPECT_EQ(Outcome(count(cache, "a", &found)), "");
  EXPECT_EQ(found, 1u);
  Ort::AllocatorWithDefaultOptions allocator;
  char** names = nullptr;
  ASSERT_EQ(Outcome(keys(cache, allocator, &names, &found)), "");
  ASSERT_EQ(found, 2u);
  EXPECT_STREQ(names[0], "a");
  EXPECT_STREQ(names[1], "b");
  for (size_t i = 0; i < found; ++i) allocator.Free(names[i]);
  allocator.Free(names);
  EXPECT_EQ(Outcome(remove_value(cache, "c")), "2: the cache has no value 'c'");
  EXPECT_EQ(Outcome(remove_value(cache, "a")), "");
  EXPECT_EQ(Outcome(clear(cache)), "");
  EXPECT_EQ(Outcome(count(cache, "b", &found)), "");
  EXPECT_EQ(found, 0u);
  release_cache(cache);
}

TEST_F(PartialTest, NullsAndWrongCountsAreErrors) {
  Ort::Session session = Open(Model());
  TenonTrainingAgent* agent = nullptr;
  EXPECT_EQ(Outcome(create_agent(nullptr, &info_, &agent)), "2: session must not be null");
  EXPECT_EQ(Outcome(create_agent(session, nullptr, &agent)), "2: info must not be null");
  TenonTrainingAgentInfo wrong = info_;
  wrong.stage_count = 1;
  EXPECT_EQ(Outcome(create_agent(session, &wrong, &agent)),
            "2: expected a list of memories for each of 2 stages, got 1");
  wrong = info_;
  wrong.feed_names = nullptr;
  EXPECT_NE(Outcome(create_agent(session, &wrong, &agent)), "");
  agent = NewAgent(session);
  TenonPartialState* state = nullptr;
  ASSERT_EQ(Outcome(create_state(&state)), "");
  OrtValue* fetched[2] = {};
  const OrtValue* feed = nullptr;
  EXPECT_EQ(Outcome(run_forward(agent, nullptr, &feed, 1, fetched, 2, state, nullptr)),
            "2: stage 0: expected 1 fetches, got 2");
  EXPECT_EQ(Outcome(run_forward(agent, nullptr, &feed, 1, fetched, 1, state, nullptr)),
            "2: feed 'x' is empty");
  EXPECT_EQ(Outcome(run_forward(agent, nullptr, nullptr, 1, fetched, 1, state, nullptr)),
            "2: feeds must not be null, feed_count is 1");
  EXPECT_EQ(Outcome(run_forward(agent, nullptr, &feed, 1, fetched, 1, nullptr, nullptr)),
            "2: state must not be null");
  EXPECT_EQ(Outcome(run_stage(agent, 2, nullptr, &feed, 1, fetched, 1, state, nullptr)),
            "2: index 2 is out of range: there are 2 stages");
  EXPECT_EQ(Outcome(insert(nullptr, "a", nullptr)), "2: cache must not be null");
  release_agent(nullptr);
  release_state(nullptr);
  release_cache(nullptr);
  release_agent(agent);
  release_state(state);
}

}  // namespace
}  // namespace tenon::test
