// The fallback of sessions through the ABI, with a library that has providers which fail.
// Requirements: python-fallback, section 3.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon_c_api.h>

#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/temporary_folder.h"
#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

constexpr const char* kProbe = "ProbeExecutionProvider";
constexpr const char* kSecond = "SecondProbeExecutionProvider";

// The function of that name, as `Function`.
template <class Function>
Function Experimental(const char* name) {
  return reinterpret_cast<Function>(Ort::GetApi().GetExperimentalFunction(name));
}

Json Taken(char* json) {
  Ort::AllocatorWithDefaultOptions allocator;
  const Json parsed = Json::parse(json);
  allocator.Free(json);
  return parsed;
}

Json ReportOf(Ort::Session& session) {
  Ort::AllocatorWithDefaultOptions allocator;
  char* json = nullptr;
  const auto get = Experimental<TenonSessionGetFallbackReport>(TENON_SESSION_GET_FALLBACK_REPORT);
  EXPECT_EQ(Outcome(get(session, allocator, &json)), "");
  return Taken(json);
}

class FallbackTest : public testing::Test {
 protected:
  // z = Relu(x + y), the sum on a probe that fails once.
  Ort::SessionOptions Options(bool is_on = true) const {
    Ort::SessionOptions options;
    options.AppendExecutionProvider(kProbe, {{"fail", "run"}});
    if (is_on) options.AddConfigEntry("tenon.ep_fail_fallback", "1");
    return options;
  }

  std::vector<float> x_ = {1, -2, 3, 4, 5, -6};
  std::vector<float> y_ = {10, 1, -5};
  const char* const inputs_[2] = {"x", "y"};
  const char* const output_ = "z";
  Ort::Value feeds_[2] = {TensorOver(x_, {2, 3}), TensorOver(y_, {3})};
};

TEST_F(FallbackTest, ListsTheProviders) {
  EXPECT_THAT(Ort::GetAvailableProviders(), ElementsAre(kProbe, kSecond, "CPUExecutionProvider"));
}

// FB-22
TEST_F(FallbackTest, IsOffByDefault) {
  Ort::Session session = Open(AddReluModel(), Options(false));
  EXPECT_THAT(ErrorOf([&] { session.Run({}, inputs_, feeds_, 2, &output_, 1); }),
              StartsWith("11: "));
  EXPECT_EQ(ReportOf(session)["state"], "off");
}

// FB-22, FB-26, FB-39
TEST_F(FallbackTest, SwapsTheInnerSession) {
  Ort::Session session = Open(AddReluModel(), Options());
  const OrtSession* const handle = session;
  const std::vector<std::string> names = session.GetInputNames();
  EXPECT_EQ(ReportOf(session)["state"], "armed");
  const auto outputs = session.Run({}, inputs_, feeds_, 2, &output_, 1);
  EXPECT_THAT(ElementsOf<float>(outputs[0]), ElementsAre(11, 0, 0, 14, 6, 0));
  EXPECT_EQ(session, handle);
  EXPECT_EQ(session.GetInputNames(), names);
  EXPECT_THAT(session.GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape(),
              ElementsAre(-1, 3));
  const Json report = ReportOf(session);
  EXPECT_EQ(report["state"], "used");
  EXPECT_EQ(report["provider"], kProbe);
  EXPECT_EQ(report["op_type"], "Add");
}

// FB-25: a provider that stays has its options in the second session too.
TEST_F(FallbackTest, KeepsOptionsOfProvidersThatStay) {
  const TemporaryFolder folder;
  const std::string log = folder / "log";
  Ort::SessionOptions options = Options();
  options.AppendExecutionProvider(kSecond, {{"ops", "Relu"}, {"log", log}});
  {
    Ort::Session session = Open(AddReluModel(), options);
    session.Run({}, inputs_, feeds_, 2, &output_, 1);
    EXPECT_EQ(ReportOf(session)["to"], (Json{kSecond, "CPUExecutionProvider"}));
  }
  std::ifstream file(log);
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_EQ(content.str(), "session_end 2\nrelease\nrun Relu\nsession_end 0\nrelease\n");
}

// FB-35: bound values that the new providers reach.
TEST_F(FallbackTest, RepeatsRunsWithBindings) {
  Ort::Session session = Open(AddReluModel(), Options());
  Ort::IoBinding binding(session);
  binding.BindInput("x", feeds_[0]);
  binding.BindInput("y", feeds_[1]);
  std::vector<float> z(6, -1);
  const Ort::Value fetch = TensorOver(z, {2, 3});
  binding.BindOutput("z", fetch);
  session.Run({}, binding);
  EXPECT_THAT(z, ElementsAre(11, 0, 0, 14, 6, 0));
  EXPECT_EQ(ReportOf(session)["state"], "used");
  z.assign(6, -1);
  session.Run({}, binding);  // the binding goes on with the second session
  EXPECT_THAT(z, ElementsAre(11, 0, 0, 14, 6, 0));
}

// FB-35
TEST_F(FallbackTest, RefusesBindingsInLostMemory) {
  Ort::SessionOptions options;
  options.AppendExecutionProvider(kProbe, {{"fail", "run"}, {"memory", "1"}});
  options.AddConfigEntry("tenon.ep_fail_fallback", "1");
  Ort::Session session = Open(AddReluModel(), options);
  OrtMemoryInfo* info = nullptr;
  EXPECT_EQ(Outcome(Ort::GetApi().CreateMemoryInfo_V2("Probe", OrtMemoryInfoDeviceType_GPU, 0x7e40,
                                                      0, OrtDeviceMemoryType_DEFAULT, 0,
                                                      OrtDeviceAllocator, &info)),
            "");
  const Ort::MemoryInfo memory(info);
  const Ort::Value x = Ort::Value::CreateTensor<float>(memory, x_.data(), x_.size(),
                                                       std::vector<int64_t>{2, 3}.data(), 2);
  Ort::IoBinding binding(session);
  binding.BindInput("x", x);
  binding.BindInput("y", feeds_[1]);
  binding.BindOutput("z", TensorOver(y_, {3}).GetTensorMemoryInfo());
  EXPECT_THAT(ErrorOf([&] { session.Run({}, binding); }), StartsWith("11: "));
  const Json report = ReportOf(session);
  EXPECT_EQ(report["state"], "armed");
  EXPECT_EQ(report["not_replayed"], Json::parse(R"([{"run_id": 1, "reason": "binding"}])"));
}

// FB-36
TEST_F(FallbackTest, CallsBackOnce) {
  Ort::Session session = Open(AddReluModel(), Options());
  struct Calls {
    std::promise<void> done;
    int count = 0;
    std::string error;
    std::vector<float> z;
  } calls;
  std::vector<Ort::Value> outputs;
  outputs.emplace_back(nullptr);
  const Ort::RunOptions options;
  session.RunAsync(
      options, inputs_, feeds_, 2, &output_, outputs.data(), 1,
      [](void* data, OrtValue** values, size_t, OrtStatusPtr status) {
        auto& result = *static_cast<Calls*>(data);
        ++result.count;
        result.error = Outcome(status);
        const float* z = nullptr;
        if (values[0] != nullptr) {
          Ort::ThrowOnError(Ort::GetApi().GetTensorMutableData(
              values[0], reinterpret_cast<void**>(const_cast<float**>(&z))));
          result.z.assign(z, z + 6);
        }
        result.done.set_value();
      },
      &calls);
  calls.done.get_future().wait();
  EXPECT_EQ(calls.count, 1);
  EXPECT_EQ(calls.error, "");
  EXPECT_THAT(calls.z, ElementsAre(11, 0, 0, 14, 6, 0));
}

// FB-40, PR-51
TEST_F(FallbackTest, ReportsOfARun) {
  Ort::Session session = Open(AddReluModel(), Options());
  Ort::RunOptions options;
  Ort::AllocatorWithDefaultOptions allocator;
  const auto get = Experimental<TenonRunGetReport>(TENON_RUN_GET_REPORT);
  char* json = nullptr;
  EXPECT_THAT(Outcome(get(options, allocator, &json)), HasSubstr("tenon.run_report"));
  options.AddConfigEntry("tenon.run_report", "1");
  session.Run(options, inputs_, feeds_, 2, &output_, 1);
  EXPECT_EQ(Outcome(get(options, allocator, &json)), "");
  const Json report = Taken(json);
  EXPECT_EQ(report["attempts"], 2);
  EXPECT_EQ(report["fallback"], true);
  EXPECT_EQ(report["reason"], "");
}

// Section 6
TEST_F(FallbackTest, RefusesProvidersThatAreNotThere) {
  Ort::SessionOptions options = Options();
  options.AddConfigEntry("tenon.ep_fail_fallback.providers", "CPUExecutionProvider,Missing");
  EXPECT_EQ(ErrorOf([&] { Open(AddReluModel(), options); }),
            "2: tenon.ep_fail_fallback.providers: expected some of ProbeExecutionProvider, "
            "SecondProbeExecutionProvider, CPUExecutionProvider, got 'Missing'");
}

// Section 6: the caller's bytes may be freed, unless a copy is to be kept.
TEST_F(FallbackTest, KeepsTheModelsBytesUnlessTold) {
  for (const char* keep : {"1", "0"}) {
    Ort::SessionOptions options = Options();
    options.AddConfigEntry("tenon.ep_fail_fallback.keep_model", keep);
    std::string model = AddReluModel();
    Ort::Session session(Env(), model.data(), model.size(), options);
    model.assign(model.size(), '\xff');
    const std::string error = ErrorOf([&] { session.Run({}, inputs_, feeds_, 2, &output_, 1); });
    const Json report = ReportOf(session);
    if (*keep == '1') {
      EXPECT_EQ(error, "");
      EXPECT_EQ(report["state"], "used");
    } else {
      EXPECT_THAT(error, StartsWith("11: "));
      EXPECT_EQ(report["not_replayed"][0]["reason"], "no_model");
    }
  }
}

TEST_F(FallbackTest, ReadsAModelFileAgain) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.onnx";
  std::ofstream(path, std::ios::binary) << AddReluModel();
  Ort::Session session(Env(), path.c_str(), Options());
  const auto outputs = session.Run({}, inputs_, feeds_, 2, &output_, 1);
  EXPECT_THAT(ElementsOf<float>(outputs[0]), ElementsAre(11, 0, 0, 14, 6, 0));
}

}  // namespace
}  // namespace tenon::test
