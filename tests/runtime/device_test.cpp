// Values in the memory of a device: their locations, the copies, and the waits.
#include <gtest/gtest.h>

#include "runtime/device_provider.h"
#include "runtime/io_binding.h"
#include "runtime/rows.h"
#include "runtime/test_provider.h"

namespace tenon {
namespace {

const Dim n = Dim::Symbol("n");

class DeviceTest : public ::testing::Test {
 protected:
  void Open(ModelBuilder& builder, DeviceOptions options = {}) {
    std::vector<std::unique_ptr<ExecutionProvider>> providers;
    providers.push_back(MakeDeviceProvider(log_, std::move(options)));
    device_ = providers[0].get();
    OpenWith(builder, std::move(providers));
  }

  void OpenWith(ModelBuilder& builder, std::vector<std::unique_ptr<ExecutionProvider>> providers) {
    ResetRuns();
    auto session = MakeSession(environment_, builder.Build(), {}, std::move(providers));
    ASSERT_TRUE(session) << session.error().message();
    session_ = std::move(*session);
  }

  Floats RunRow(const Value& x, const RunOptions& options = {}) {
    std::vector<Value> fetches(1);
    const std::string_view in = "x", out = "y";
    const Status status = session_->Run(options, {&in, 1}, {&x, 1}, {&out, 1}, fetches);
    if (!status.ok()) {
      ADD_FAILURE() << status.message();
      return {};
    }
    return ValuesOf(fetches[0]);
  }

  DeviceLog log_, second_log_;
  Environment environment_{{.threads = {.threads = 2}}};
  ExecutionProvider* device_ = nullptr;
  std::unique_ptr<Session> session_;
};

// A model that goes to the device, to the host and back.
ModelBuilder ThereAndBack() {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Fold", {"a", "a"}, {"h"});
  b.Node("Scale", {"h"}, {"d"}).Node("Add", {"d", "a"}, {"y"}).Output("y");
  return b;
}

TEST_F(DeviceTest, ValuesGoWhereTheyAreRead) {
  for (const bool has_streams : {true, false}) {
    ModelBuilder b = ThereAndBack();
    Open(b, {.has_streams = has_streams});
    for (int repeat = 0; repeat < 4; ++repeat) {
      // a = 2x, h = reverse(a) + a, y = 2h + a
      EXPECT_EQ(RunRow(Row({1, 2, 3})), (Floats{18, 20, 22}));
    }
    session_.reset();
    EXPECT_EQ(log_.live_blocks, 0);
  }
}

TEST_F(DeviceTest, NothingIsCopiedTwice) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Fold", {"a", "a"}, {"h"});
  b.Node("Fold", {"h", "a"}, {"g"}).Node("Add", {"g", "g"}, {"y"}).Output("y");
  Open(b);
  for (int run = 1; run <= 3; ++run) {
    RunRow(Row({1, 2}));
    EXPECT_EQ(log_.copies_in, 2 * run);   // x and g
    EXPECT_EQ(log_.copies_out, 2 * run);  // a, once for three reads, and y
  }
}

TEST_F(DeviceTest, ConstantsAreCopiedOnceWhenTheSessionIsMade) {
  ModelBuilder b;
  b.Input("x", {n}).Constant("c", Row({10, 20})).Node("Add", {"x", "c"}, {"y"}).Output("y");
  Open(b);
  EXPECT_EQ(log_.copies_in, 1);
  for (int repeat = 0; repeat < 3; ++repeat) EXPECT_EQ(RunRow(Row({1, 2})), (Floats{11, 22}));
  EXPECT_EQ(log_.copies_in, 4);
}

TEST_F(DeviceTest, AFeedOnTheDeviceStaysThere) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"y"}).Output("y");
  Open(b);
  const Tensor x = OnDevice(*device_, Row({4, 5}));
  const int copies = log_.copies_in;
  for (int repeat = 0; repeat < 3; ++repeat) EXPECT_EQ(RunRow(x), (Floats{8, 10}));
  EXPECT_EQ(log_.copies_in, copies);
  EXPECT_EQ(log_.inputs.back(), x.raw());
}

TEST_F(DeviceTest, AnOutputStaysOnTheDeviceIfWanted) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"y"}).Output("y");
  Open(b);
  IoBinding binding(*session_);
  ASSERT_TRUE(binding.BindInput("x", Row({1, 2})).ok());
  ASSERT_TRUE(binding.BindOutputTo("y", device_->memory()).ok());
  for (int repeat = 0; repeat < 3; ++repeat) {
    ASSERT_TRUE(binding.Run({}).ok());
    EXPECT_TRUE(binding.results()[0].tensor().memory().SameDevice(device_->memory()));
    EXPECT_EQ(log_.copies_out, 0);
  }
  // A value that one run leaves on the device is read there by another run.
  EXPECT_EQ(RunRow(binding.results()[0]), (Floats{4, 8}));
}

TEST_F(DeviceTest, WritesIntoGivenTensorsInEitherMemory) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"y"}).Output("y");
  Open(b);
  for (int repeat = 0; repeat < 3; ++repeat) {
    Tensor host = Row({0, 0});
    Tensor there = OnDevice(*device_, host);
    for (const Tensor& given : {host, there}) {
      IoBinding binding(*session_);
      ASSERT_TRUE(binding.BindInput("x", Row({1, 2})).ok());
      ASSERT_TRUE(binding.BindOutput("y", given).ok());
      ASSERT_TRUE(binding.Run({}).ok());
      EXPECT_EQ(binding.results()[0].tensor().raw(), given.raw());
    }
    EXPECT_EQ(ValuesOf(host), (Floats{2, 4}));
    EXPECT_EQ(RunRow(there), (Floats{4, 8}));
  }
}

TEST_F(DeviceTest, ASteadyRunTakesNoMemoryAndKeepsItsPlaces) {
  ModelBuilder b = ThereAndBack();
  Open(b);
  for (int repeat = 0; repeat < 3; ++repeat) RunRow(Row({1, 2, 3}));
  const int allocations = log_.allocations;
  const int streams = log_.streams;
  log_.inputs.clear();
  RunRow(Row({4, 5, 6}));
  const std::vector<const void*> before = log_.inputs;
  log_.inputs.clear();
  RunRow(Row({7, 8, 9}));
  EXPECT_EQ(log_.inputs, before);
  EXPECT_EQ(log_.streams, streams);
  // The output is allocated again for each caller.
  EXPECT_LE(log_.allocations - allocations, 2);
}

TEST_F(DeviceTest, SizesAreReadOnTheHost) {
  ModelBuilder b;
  b.Input("x", {n}).Input("times", {1}, DataType::kInt64);
  b.Node("Scale", {"x"}, {"a"}).Node("Repeat", {"a", "times"}, {"y"}).Output("y");
  Open(b);
  for (const int64_t times : {2, 1, 3, 2}) {
    const std::vector<std::string_view> names = {"x", "times"};
    const std::vector<Value> feeds = {Row({1, 2}), Tensor::Of<int64_t>({1}, {times})};
    std::vector<Value> fetches(1);
    const std::string_view out = "y";
    const Status status = session_->Run({}, names, feeds, {&out, 1}, fetches);
    ASSERT_TRUE(status.ok()) << status.message();
    Floats expected;
    for (int64_t i = 0; i < times; ++i) expected.insert(expected.end(), {2, 4});
    EXPECT_EQ(ValuesOf(fetches[0]), expected);
  }
}

TEST_F(DeviceTest, TwoDevicesMeetOnTheHost) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Add", {"a", "a"}, {"b"});
  b.Node("Scale", {"b"}, {"y"}).Output("y");
  std::vector<std::unique_ptr<ExecutionProvider>> providers;
  providers.push_back(MakeDeviceProvider(log_, {.ops = {"Scale"}}));
  providers.push_back(MakeDeviceProvider(second_log_, {.ops = {"Add"}, .device_id = 1}));
  OpenWith(b, std::move(providers));
  for (int repeat = 0; repeat < 3; ++repeat) EXPECT_EQ(RunRow(Row({1, 2})), (Floats{8, 16}));
  EXPECT_EQ(second_log_.copies_in, 3);
  EXPECT_EQ(second_log_.copies_out, 3);
}

TEST_F(DeviceTest, MemoryThatTheHostCanReachIsNotCopied) {
  ModelBuilder b = ThereAndBack();
  Open(b, {.is_host_accessible = true});
  for (int repeat = 0; repeat < 3; ++repeat) {
    EXPECT_EQ(RunRow(Row({1, 2, 3})), (Floats{18, 20, 22}));
  }
  EXPECT_EQ(log_.copies_out, 3);  // y alone; the host reads a where it is
}

TEST_F(DeviceTest, StreamsHearOfEveryRunsEnd) {
  ModelBuilder b = ThereAndBack();
  Open(b);
  RunRow(Row({1, 2, 3}));
  RunRow(Row({1, 2, 3}));
  EXPECT_EQ(log_.streams, 1);  // pooled
  EXPECT_EQ(log_.run_ends, 2);
  EXPECT_EQ(log_.flushes, 2);
  RunOptions options;
  options.config["disable_synchronize_execution_providers"] = "1";
  RunRow(Row({1, 2, 3}), options);
  EXPECT_EQ(log_.run_ends, 3);
  EXPECT_EQ(log_.flushes, 2);
}

TEST_F(DeviceTest, AProviderWithoutStreamsToGiveFailsTheRun) {
  ModelBuilder b = ThereAndBack();
  Open(b, {.refuses_streams = true});
  std::vector<Value> fetches(1);
  const std::string_view in = "x", out = "y";
  const Value x = Row({1});
  const Status status = session_->Run({}, {&in, 1}, {&x, 1}, {&out, 1}, fetches);
  EXPECT_EQ(status.code(), StatusCode::kEpFail);
  EXPECT_EQ(
      status.message(),
      "Non-zero status code returned while running Scale node. Name:'node_a' Status Message: "
      "no more streams (node 0 of graph 'graph', test opset 1; inputs: 'x' tensor(float) [1])");
}

TEST_F(DeviceTest, ValuesThatOutliveTheSessionKeepTheirMemory) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"y"}).Output("y");
  Open(b);
  Value kept;
  {
    IoBinding binding(*session_);
    ASSERT_TRUE(binding.BindInput("x", Row({1, 2})).ok());
    ASSERT_TRUE(binding.BindOutputTo("y", device_->memory()).ok());
    ASSERT_TRUE(binding.Run({}).ok());
    kept = binding.results()[0];
  }
  session_.reset();
  EXPECT_EQ(log_.live_blocks, 1);
  kept = Value();
  EXPECT_EQ(log_.live_blocks, 0);
}

TEST(DataTransfersTest, SaysWhichMemoriesItCannotJoin) {
  DeviceLog log;
  const auto device = MakeDeviceProvider(log);
  const Tensor there = OnDevice(*device, Row({1, 2}));
  Tensor here = Row({0, 0});
  const DataTransfers none;
  const Status status = none.CopyTensor(there, here);
  EXPECT_EQ(status.code(), StatusCode::kNotImplemented);
  EXPECT_EQ(status.message(),
            "no data transfer can copy from Device (device type 1, vendor 7, id 0) to Cpu (device "
            "type 0, vendor 0, id 0)");
}

// PE-97, PE-98: one call of the transfer for a batch; pairs must fit and lie together.
TEST(DataTransfersTest, ABatchIsOneCallOfPairsThatFit) {
  DeviceLog log;
  const auto device = MakeDeviceProvider(log);
  DataTransfers environment;
  environment.Add(device->data_transfer());
  const DataTransfers session(&environment);
  const Tensor one = Row({1, 2}), two = Row({3, 4});
  Tensor first = OnDevice(*device, Row({0, 0})), second = OnDevice(*device, Row({0, 0}));
  Tensor back = Row({0, 0}), longer = Row({0, 0, 0});
  const std::vector<TensorCopy> in = {{&one, &first}, {&two, &second}};
  ASSERT_TRUE(session.Copy(in).ok());
  ASSERT_TRUE(session.CopyTensor(second, back).ok());
  EXPECT_EQ(ValuesOf(back), (Floats{3, 4}));
  const std::vector<TensorCopy> mixed = {{&one, &first}, {&two, &back}};
  EXPECT_EQ(session.Copy(mixed).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(session.CopyTensor(one, longer).message(), "cannot copy float [2] into float [3]");
}

}  // namespace
}  // namespace tenon
