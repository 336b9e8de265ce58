// The contents of a dump of nodes. Requirements: partial-execution.
#include "runtime/node_dump.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "ir/inference.h"
#include "runtime/build_plan.h"
#include "runtime/device_provider.h"
#include "runtime/executor.h"
#include "runtime/partition.h"
#include "runtime/profiler.h"
#include "runtime/rows.h"
#include "runtime/tensor_text.h"
#include "runtime/test_provider.h"
#include "tensor/arena.h"

namespace tenon {
namespace {

const Dim n = Dim::Symbol("n");
using Names = NodeDumpSettings::Names;

Result<std::optional<NodeDumpSettings>> Read(const StringMap& variables) {
  return NodeDumpSettings::Read([&](const char* name) -> const char* {
    const auto found = variables.find(std::string_view(name));
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

NodeDumpSettings Settings(const StringMap& variables) { return Read(variables).value().value(); }

std::string ErrorOf(const StringMap& variables) {
  const auto settings = Read(variables);
  return settings ? "no error" : settings.error().message();
}

TEST(NodeDumpSettingsTest, NothingIsShownUnlessAVariableIsSet) {
  EXPECT_FALSE(Read({}).value());
  EXPECT_FALSE(Read({{"ORT_DEBUG_NODE_IO_DUMP_INPUT_DATA", ""}}).value());
  EXPECT_FALSE(Read({{"OMPI_COMM_WORLD_RANK", "1"}}).value());
}

TEST(NodeDumpSettingsTest, OneVariableTurnsOnShapesAndPlacement) {
  const NodeDumpSettings settings = Settings({{"ORT_DEBUG_NODE_IO_OUTPUT_DIR", "folder"}});
  EXPECT_TRUE(settings.shapes);
  EXPECT_TRUE(settings.placement);
  EXPECT_FALSE(settings.input_data);
  EXPECT_FALSE(settings.output_data);
  EXPECT_FALSE(settings.statistics);
  EXPECT_FALSE(settings.into_files);
  EXPECT_TRUE(settings.names.empty());
  EXPECT_TRUE(settings.op_types.empty());
  EXPECT_EQ(settings.snippet_threshold, 200u);
  EXPECT_EQ(settings.snippet_edge_items, 3u);
  EXPECT_EQ(settings.folder, "folder/");
  EXPECT_EQ(settings.file_suffix, "");
}

// TX-72
TEST(NodeDumpSettingsTest, FiltersAreListsOfNames) {
  const NodeDumpSettings settings = Settings({{"ORT_DEBUG_NODE_IO_NAME_FILTER", "a/b;c d;;"},
                                              {"ORT_DEBUG_NODE_IO_OP_TYPE_FILTER", "Conv"}});
  EXPECT_EQ(settings.names, (Names{"a/b", "c d"}));
  EXPECT_EQ(settings.op_types, (Names{"Conv"}));
}

// TX-74
TEST(NodeDumpSettingsTest, TheRankEndsTheNamesOfFiles) {
  StringMap variables = {{"ORT_DEBUG_NODE_IO_APPEND_RANK_TO_FILE_NAME", "1"}};
  EXPECT_EQ(Settings(variables).file_suffix, "_default_rank_0");
  variables["OMPI_COMM_WORLD_RANK"] = "3";
  EXPECT_EQ(Settings(variables).file_suffix, "_rank_3");
  variables["ORT_DEBUG_NODE_IO_APPEND_RANK_TO_FILE_NAME"] = "0";
  EXPECT_EQ(Settings(variables).file_suffix, "");
}

// TX-75, TX-76
TEST(NodeDumpSettingsTest, MistakesNameTheirVariable) {
  const std::string destination = "ORT_DEBUG_NODE_IO_DUMP_DATA_DESTINATION";
  EXPECT_EQ(ErrorOf({{destination, "printer"}}),
            destination + ": expected stdout, files or sqlite, got 'printer'");
  EXPECT_EQ(ErrorOf({{destination, "sqlite"}}),
            destination + ": this build of Tenon cannot write 'sqlite'; it has stdout and files");
  for (const std::string flag :
       {"DUMP_SHAPE_DATA", "DUMP_NODE_PLACEMENT", "DUMP_INPUT_DATA", "DUMP_OUTPUT_DATA",
        "DUMP_STATISTICS_DATA", "APPEND_RANK_TO_FILE_NAME",
        "DUMPING_DATA_TO_FILES_FOR_ALL_NODES_IS_OK"}) {
    const std::string variable = "ORT_DEBUG_NODE_IO_" + flag;
    EXPECT_EQ(ErrorOf({{variable, "yes"}}), variable + ": expected 0 or 1, got 'yes'");
  }
  for (const std::string count : {"SNIPPET_THRESHOLD", "SNIPPET_EDGE_ITEMS"}) {
    const std::string variable = "ORT_DEBUG_NODE_IO_" + count;
    for (const std::string wrong : {"-1", "7x", "99999999999999999999"}) {
      EXPECT_EQ(ErrorOf({{variable, wrong}}),
                variable + ": expected a number of elements, got '" + wrong + "'");
    }
  }
}

// TX-76
TEST(NodeDumpSettingsTest, DataOfAllNodesGoesToFilesOnlyIfConfirmed) {
  const std::string confirmation = "ORT_DEBUG_NODE_IO_DUMPING_DATA_TO_FILES_FOR_ALL_NODES_IS_OK";
  StringMap variables = {{"ORT_DEBUG_NODE_IO_DUMP_DATA_DESTINATION", "files"}};
  EXPECT_TRUE(Settings(variables).into_files);  // no data
  for (const char* data : {"INPUT", "OUTPUT"}) {
    StringMap all = variables;
    all.emplace(Format("ORT_DEBUG_NODE_IO_DUMP_{}_DATA", data), "1");
    EXPECT_NE(ErrorOf(all).find(confirmation + "=1"), std::string::npos) << ErrorOf(all);
    StringMap chosen = all;
    chosen.emplace("ORT_DEBUG_NODE_IO_OP_TYPE_FILTER", "Conv");
    EXPECT_TRUE(Settings(chosen).into_files);
    all.emplace(confirmation, "1");
    EXPECT_TRUE(Settings(all).into_files);
  }
}

template <class T>
std::string TextOf(Shape shape, std::initializer_list<T> values, TensorTextOptions options = {}) {
  return TensorText(Tensor::Of<T>(std::move(shape), values), options);
}

TEST(TensorTextTest, NestsLikeTheShape) {
  EXPECT_EQ(TextOf<float>({}, {0.1f}), "0.1");
  EXPECT_EQ(TextOf<int64_t>({0}, {}), "[]");
  EXPECT_EQ(TextOf<int64_t>({2, 0}, {}), "[[],\n []]");
  EXPECT_EQ(TextOf<uint8_t>({2, 1, 2}, {1, 2, 3, 255}), "[[[1, 2]],\n [[3, 255]]]");
  EXPECT_EQ(TextOf<double>({1, 2, 2}, {1, -2.5, 1e300, 4}, {.indent = "  "}),
            "[[[1, -2.5],\n    [1e+300, 4]]]");
}

TEST(TensorTextTest, ElementsOfEveryKind) {
  EXPECT_EQ(TextOf<bool>({2}, {true, false}), "[true, false]");
  EXPECT_EQ(TextOf<std::string>({2}, {"a\"b", ""}), "[\"a\\\"b\", \"\"]");
  EXPECT_EQ(TextOf<Float16>({2}, {Float16(0.5f), Float16(-65504)}), "[0.5, -65504]");
  EXPECT_EQ(TextOf<uint64_t>({1}, {~uint64_t{0}}), "[18446744073709551615]");
  EXPECT_EQ(TextOf<int64_t>({1}, {std::numeric_limits<int64_t>::min()}), "[-9223372036854775808]");
  uint8_t packed[] = {0x8f, 0x07};
  EXPECT_EQ(TensorText(Tensor::View(DataType::kInt4, {3}, packed), {}), "[-1, -8, 7]");
  EXPECT_EQ(TensorText(Tensor::View(DataType::kUint4, {3}, packed), {}), "[15, 8, 7]");
  EXPECT_EQ(TensorText(Tensor::View(DataType::kInt2, {5}, packed), {}), "[-1, -1, 0, -2, -1]");
  EXPECT_EQ(TensorText(Tensor::View(DataType::kFloat8e5m2, {2}, packed), {}), "[0x8f, 0x7]");
  float complex[] = {1, -2};
  EXPECT_EQ(TensorText(Tensor::View(DataType::kComplex64, {1}, complex), {}), "[1-2j]");
  char bytes[1 + sizeof(float)];
  const float value = 1.25f;
  std::memcpy(bytes + 1, &value, sizeof(value));  // at an odd address
  EXPECT_EQ(TensorText(Tensor::View(DataType::kFloat, {1}, bytes + 1), {}), "[1.25]");
}

TEST(TensorTextTest, LongAxesLoseTheirMiddle) {
  const TensorTextOptions one = {.threshold = 5, .edge_items = 1, .indent = ""};
  EXPECT_EQ(TextOf<int32_t>({5}, {1, 2, 3, 4, 5}, one), "[1, 2, 3, 4, 5]");
  EXPECT_EQ(TextOf<int32_t>({6}, {1, 2, 3, 4, 5, 6}, one), "[1, ..., 6]");
  EXPECT_EQ(TextOf<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6}, one), "[[1, ..., 3],\n [4, ..., 6]]");
  EXPECT_EQ(TextOf<int32_t>({3, 2}, {1, 2, 3, 4, 5, 6}, one), "[[1, 2],\n ...,\n [5, 6]]");
  EXPECT_EQ(TextOf<int32_t>({2}, {1, 2}, {.threshold = 1, .edge_items = 0}), "[...]");
  const TensorTextOptions huge = {.threshold = 1, .edge_items = ~size_t{0}};
  EXPECT_EQ(TextOf<int32_t>({3}, {1, 2, 3}, huge), "[1, 2, 3]");
}

TEST(TensorTextTest, StatisticsLeaveOutWhatIsNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto of = [](std::initializer_list<float> values) {
    return TensorStatistics(Tensor::Of<float>({static_cast<int64_t>(values.size())}, values));
  };
  EXPECT_EQ(of({3, -1, 0.25f, 0}), "Min: -1, Max: 3, Mean: 0.5625, NaN: 0, Inf: 0");
  EXPECT_EQ(of({nan, 4, nan, 2}), "Min: 2, Max: 4, Mean: 3, NaN: 2, Inf: 0");
  EXPECT_EQ(of({infinity, 4}), "Min: 4, Max: inf, Mean: inf, NaN: 0, Inf: 1");
  EXPECT_EQ(of({nan}), "NaN: 1, Inf: 0");
  EXPECT_EQ(of({}), "NaN: 0, Inf: 0");
  EXPECT_EQ(TensorStatistics(Tensor::Of<std::string>({1}, {std::string("a")})), "");
  // Beyond what a double holds.
  EXPECT_EQ(TensorStatistics(Tensor::Of<int64_t>({1}, {9007199254740993})),
            "Min: 9007199254740993, Max: 9007199254740993, Mean: 9007199254740992, NaN: 0, Inf: 0");
}

class NodeDumpTest : public ::testing::Test {
 protected:
  void Plan(ModelBuilder& builder, NodeDumpSettings settings) {
    ResetRuns();
    model_ = builder.Build();
    providers_.push_back(MakeTestProvider());
    Logger logger("test", Severity::kWarning, 0, StderrSink());
    ASSERT_TRUE(InferTypes(*model_.graph, TestShapeFunctions()).ok());
    ASSERT_TRUE(Partitioner(*model_.graph, providers_, logger).Assign(*model_.graph).ok());
    for (const auto& provider : providers_) {
      pointers_.push_back(provider.get());
      memories_.push_back(MemoryOf(*provider));
    }
    auto plan = BuildPlan(*model_.graph, {pointers_, memories_, memory_, &transfers_});
    ASSERT_TRUE(plan) << plan.error().message();
    executor_ = std::make_unique<Executor>(std::move(*plan));
    dump_ = std::make_unique<NodeDump>(std::move(settings), [this](std::string_view text) {
      pieces_.emplace_back(text);
      if (on_piece_) on_piece_();
    });
    scope_.threads = &threads_;
    scope_.dump = dump_.get();
  }

  std::vector<std::string> Take() { return std::exchange(pieces_, {}); }

  Result<Value> Run(const Value& x) {
    std::vector<Value> fetches(1);
    const FrameLease frame(executor_->frames());
    TENON_RETURN_IF_ERROR(executor_->Run(scope_, *frame, {{&x, 1}, fetches, fetch_memory_}));
    return fetches[0];
  }

  Status RunPart(Frame& frame, uint32_t begin, uint32_t end,
                 const std::vector<std::pair<std::string, Value>>& feeds,
                 const std::vector<std::string>& fetch_names = {}) {
    std::vector<Slot> feed_slots, fetch_slots;
    std::vector<Value> values, fetches(fetch_names.size());
    for (const auto& [name, value] : feeds) {
      feed_slots.push_back(executor_->plan().FindSlot(name).value());
      values.push_back(value);
    }
    for (const std::string& name : fetch_names) {
      fetch_slots.push_back(executor_->plan().FindSlot(name).value());
    }
    return executor_->Run(scope_, frame,
                          {values, fetches, {}, PlanPart{begin, end, feed_slots, fetch_slots}});
  }

  ThreadPool threads_{ThreadPoolOptions{.threads = 1}};
  Model model_;
  std::vector<std::unique_ptr<ExecutionProvider>> providers_;
  std::vector<ExecutionProvider*> pointers_;
  std::vector<Location> memories_;
  DataTransfers transfers_;
  std::shared_ptr<CachingArena> memory_ = std::make_shared<CachingArena>(SharedCpuAllocator());
  std::unique_ptr<Executor> executor_;
  std::vector<std::string> pieces_;
  std::function<void()> on_piece_;
  std::unique_ptr<NodeDump> dump_;
  RunScope scope_;
  std::span<const MemoryInfo* const> fetch_memory_;
};

// s = 2x, y = s + x
ModelBuilder ScaleAndAdd() {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"s"}).Node("Add", {"s", "x"}, {"y"}).Output("y");
  return b;
}

// TX-11, TX-73: the layout, which is the same in every run except for the placement.
TEST_F(NodeDumpTest, ShowsEachNodeInEveryRun) {
  ModelBuilder b = ScaleAndAdd();
  Plan(b, {.input_data = true, .output_data = true, .statistics = true});
  for (int run = 1; run <= 3; ++run) {
    const std::string provider = providers_[0]->name();
    const std::string placement = run == 1 ? "Placement: " + provider + "\n" : "";
    ASSERT_TRUE(Run(Row({1, 2, 3})));
    EXPECT_EQ(Take(), (std::vector<std::string>{"-----------\nScale node: node_s\n" + placement +
                                                    "Input 0 Name: x\n Shape: {3}\n [1, 2, 3]\n"
                                                    " Min: 1, Max: 3, Mean: 2, NaN: 0, Inf: 0\n",
                                                "Output 0 Name: s\n Shape: {3}\n [2, 4, 6]\n"
                                                " Min: 2, Max: 6, Mean: 4, NaN: 0, Inf: 0\n",
                                                "-----------\nAdd node: node_y\n" + placement +
                                                    "Input 0 Name: s\n Shape: {3}\n [2, 4, 6]\n"
                                                    " Min: 2, Max: 6, Mean: 4, NaN: 0, Inf: 0\n"
                                                    "Input 1 Name: x\n Shape: {3}\n [1, 2, 3]\n"
                                                    " Min: 1, Max: 3, Mean: 2, NaN: 0, Inf: 0\n",
                                                "Output 0 Name: y\n Shape: {3}\n [3, 6, 9]\n"
                                                " Min: 3, Max: 9, Mean: 6, NaN: 0, Inf: 0\n"}))
        << run;
  }
}

// TX-72: both filters must take the node.
TEST_F(NodeDumpTest, ShowsNodesThatMatchBothFilters) {
  ModelBuilder b = ScaleAndAdd();
  Plan(b,
       {.shapes = false, .placement = false, .names = {"node_s", "node_y"}, .op_types = {"Add"}});
  ASSERT_TRUE(Run(Row({1})));
  EXPECT_EQ(Take(), (std::vector<std::string>{"-----------\nAdd node: node_y\nInput 0 Name: s\n"
                                              "Input 1 Name: x\n",
                                              "Output 0 Name: y\n"}));
}

// TX-24: before the node's first event and its kernel, and after its last event.
TEST_F(NodeDumpTest, InputsComeBeforeTheKernelAndOutputsAfterIt) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"y"}).Output("y");
  Plan(b, {.output_data = true});
  std::vector<TraceEvent> events;
  Logger logger("test", Severity::kWarning, 0, StderrSink());
  const auto profiler =
      Profiler::ToSink([&](const TraceEvent& event) { events.push_back(event); }, logger);
  scope_.profiler = profiler.get();
  std::vector<int> runs;
  std::vector<int64_t> times;
  on_piece_ = [&] {
    runs.push_back(RunsOf("Scale"));
    times.push_back(profiler->Now());
  };
  ASSERT_TRUE(Run(Row({1, 2})));
  ASSERT_TRUE(Run(Row({1, 2})));
  profiler->EndRun();
  EXPECT_EQ(runs, (std::vector<int>{0, 1, 1, 2}));
  std::vector<TraceEvent> of_node;
  for (const TraceEvent& event : events) {
    if (event.category == TraceCategory::kNode) of_node.push_back(event);
  }
  ASSERT_EQ(of_node.size(), 6u);
  for (size_t run = 0; run < 2; ++run) {
    const TraceEvent& first = of_node[3 * run];
    const TraceEvent& last = of_node[3 * run + 2];
    EXPECT_EQ(first.name, "node_y_fence_before");
    EXPECT_LE(times[2 * run], first.start);
    EXPECT_EQ(last.name, "node_y_fence_after");
    EXPECT_GE(times[2 * run + 1], last.start + last.duration);
  }
}

// TX-30: a node that fails has shown its inputs.
TEST_F(NodeDumpTest, AFailingNodeShowsWhatItRead) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Fail", {"x"}, {"y"}).Output("y");
  Plan(b, {.input_data = true});
  EXPECT_FALSE(Run(Row({7})));
  ASSERT_EQ(pieces_.size(), 1u);
  EXPECT_NE(pieces_[0].find("Input 0 Name: x\n Shape: {1}\n [7]\n"), std::string::npos);
}

// TX-7, TX-11, TX-38: parts of a run share its number, cached values are shown, yields are not.
TEST_F(NodeDumpTest, PartsAreShownAsWholeRunsAre) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"f"}).Node("Yield", {"f"}, {"g"});
  b.Node("Add", {"g", "x"}, {"y"}).Output("y");
  Plan(b, {.output_data = true});
  const std::string placement = "Placement: " + providers_[0]->name() + "\n";
  const FrameLease first(executor_->frames()), second(executor_->frames());
  ASSERT_TRUE(RunPart(*first, 0, 1, {{"x", Row({1})}}, {"f"}).ok());
  ASSERT_TRUE(RunPart(*second, 0, 1, {{"x", Row({2})}, {"f", Row({50})}}, {"f"}).ok());
  EXPECT_EQ(RunsOf("Scale"), 1);
  const std::string scale = "-----------\nScale node: node_f\n";
  EXPECT_EQ(Take(), (std::vector<std::string>{
                        scale + placement + "Input 0 Name: x\n Shape: {1}\n",
                        "Output 0 Name: f\n Shape: {1}\n [2]\n",
                        scale + "Input 0 Name: x\n Shape: {1}\n",
                        "Output 0 Name: f\n Shape: {1}\n [50]\n",
                    }));
  ASSERT_TRUE(RunPart(*second, 1, 3, {{"g", Row({10})}}, {"y"}).ok());
  ASSERT_TRUE(RunPart(*first, 1, 3, {{"g", Row({20})}}, {"y"}).ok());
  const std::string add = "-----------\nAdd node: node_y\n";
  const std::string inputs = "Input 0 Name: g\n Shape: {1}\nInput 1 Name: x\n Shape: {1}\n";
  EXPECT_EQ(Take(), (std::vector<std::string>{
                        add + inputs,
                        "Output 0 Name: y\n Shape: {1}\n [12]\n",
                        add + placement + inputs,
                        "Output 0 Name: y\n Shape: {1}\n [21]\n",
                    }));
  EXPECT_EQ(RunsOf("Yield"), 0);
}

// TX-72, TX-77: the work of a stream is done, and its result copied, before it is shown.
TEST_F(NodeDumpTest, ValuesOfADeviceAreCopied) {
  DeviceLog log;
  providers_.push_back(MakeDeviceProvider(log));
  transfers_.Add(providers_[0]->data_transfer());
  ModelBuilder b = ScaleAndAdd();
  Plan(b, {.input_data = true, .output_data = true});
  const Result<Value> y = Run(Row({1, -2}));
  ASSERT_TRUE(y) << y.error().message();
  EXPECT_EQ(ValuesOf(*y), (Floats{3, -6}));
  std::string shown;
  for (const std::string& piece : Take()) shown += piece;
  for (const char* value :
       {"Input 0 Name: x\n Shape: {2}\n [1, -2]\n", "Output 0 Name: s\n Shape: {2}\n [2, -4]\n",
        "Output 0 Name: y\n Shape: {2}\n [3, -6]\n"}) {
    EXPECT_NE(shown.find(value), std::string::npos) << value << " in\n" << shown;
  }
  EXPECT_GE(log.flushes, 4);
  executor_.reset();
}

// TX-77
TEST_F(NodeDumpTest, ValuesThatCannotBeCopiedAreSaidSo) {
  DeviceLog log;
  providers_.push_back(MakeDeviceProvider(log));
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"y"}).Output("y");
  Plan(b, {.output_data = true});
  const MemoryInfo& memory = providers_[0]->memory();
  const MemoryInfo* const wanted[] = {&memory};
  fetch_memory_ = wanted;
  const Result<Value> y = Run(OnDevice(*providers_[0], Row({1, 2})));
  ASSERT_TRUE(y) << y.error().message();
  ASSERT_EQ(pieces_.size(), 2u);
  EXPECT_EQ(pieces_[1].find(Format("Output 0 Name: y\n Shape: {{2}}\n is in memory '{}' of device "
                                   "{}, and cannot be copied to the CPU: no data transfer",
                                   memory.name, memory.device_id)),
            0u)
      << pieces_[1];
  executor_.reset();
}

// TX-73: if pieces of other nodes come in between, the outputs name their node.
TEST_F(NodeDumpTest, OutputsNameTheirNodeAgainAfterAnothers) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"y"}).Output("y");
  Plan(b, {.placement = false});
  const tenon::Plan& plan = executor_->plan();
  Frame frame(plan);
  const Step& step = plan.steps[0];
  StepDump outer(*dump_, plan, step, 1), inner(*dump_, plan, step, 1);
  ASSERT_TRUE(outer.Inputs(frame).ok());
  ASSERT_TRUE(inner.Inputs(frame).ok());
  ASSERT_TRUE(inner.Outputs(frame).ok());
  ASSERT_TRUE(outer.Outputs(frame).ok());
  const std::string header = "-----------\nScale node: node_y\n";
  const std::string x = "Input 0 Name: x\n is an empty optional\n";
  const std::string y = "Output 0 Name: y\n is an empty optional\n";
  EXPECT_EQ(Take(), (std::vector<std::string>{header + x, header + x, y, header + y}));
}

}  // namespace
}  // namespace tenon
