// The mock plugin for tests.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "capi/client.h"
#include "capi/model_builder.h"
#include "plugin/mock_control.h"

namespace tenon::test {

constexpr const char* kMock = "MockProvider";
constexpr const char* kLibrary = "mock library";

inline const OrtApi& Api() { return Ort::GetApi(); }

// Keeps the plugin loaded, so that its records can be read.
inline MockControl& Mock() {
  static MockControl* const control = [] {
    void* const library = dlopen(MOCK_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    auto* const get = reinterpret_cast<MockControl* (*)()>(dlsym(library, "GetMockControl"));
    return get();
  }();
  return *control;
}

inline std::string Register(const char* path = MOCK_PLUGIN, const char* name = kLibrary) {
  return Outcome(Api().RegisterExecutionProviderLibrary(Env(), name, path));
}
inline std::string Unregister(const char* name = kLibrary) {
  return Outcome(Api().UnregisterExecutionProviderLibrary(Env(), name));
}

// Receives the log of sessions with these options, and outlives them.
class LoggedMessages {
 public:
  void Watch(Ort::SessionOptions& options) {
    options.SetLogSeverityLevel(ORT_LOGGING_LEVEL_VERBOSE);
    EXPECT_EQ(Outcome(Api().SetUserLoggingFunction(options, Write, this)), "");
  }
  std::vector<std::string> At(OrtLoggingLevel severity) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> texts;
    for (const auto& [level, text] : messages_) {
      if (level == severity) texts.push_back(text);
    }
    return texts;
  }

 private:
  static void Write(void* self, OrtLoggingLevel severity, const char*, const char*, const char*,
                    const char* text) {
    auto* const messages = static_cast<LoggedMessages*>(self);
    const std::lock_guard lock(messages->mutex_);
    messages->messages_.emplace_back(severity, text);
  }

  std::mutex mutex_;
  std::vector<std::pair<OrtLoggingLevel, std::string>> messages_;
};

// The mock's devices among those of the environment.
inline std::vector<const OrtEpDevice*> MockDevices() {
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  EXPECT_EQ(Outcome(Api().GetEpDevices(Env(), &devices, &count)), "");
  std::vector<const OrtEpDevice*> found;
  for (size_t i = 0; i < count; ++i) {
    if (Api().EpDevice_EpName(devices[i]) == std::string(kMock)) found.push_back(devices[i]);
  }
  return found;
}

// y = Relu(x * x), x of any number of floats; the mock takes the product.
inline std::string SquareModel() {
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  return ModelBuilder()
      .Input("x", type)
      .Node("Mul", {"x", "x"}, {"square"})
      .Node("Relu", {"square"}, {"y"})
      .Output("y", type)
      .Bytes();
}

// Each test begins and ends without the library, and without live objects of it.
class MockTest : public testing::Test {
 protected:
  MockTest() { Mock().Reset(); }
  ~MockTest() override {
    Mock().fails.clear();
    Mock().throws.clear();
    if (!MockDevices().empty()) {
      EXPECT_EQ(Unregister(), "");
    }
    EXPECT_EQ(Mock().live_objects, 0);
    EXPECT_EQ(Mock().live_blocks, 0);
  }

  static Ort::SessionOptions OptionsForMock() {
    Ort::SessionOptions options;
    options.AddConfigEntry("session.record_ep_graph_assignment_info", "1");
    const std::vector<const OrtEpDevice*> devices = MockDevices();
    EXPECT_EQ(Outcome(Api().SessionOptionsAppendExecutionProvider_V2(
                  options, Env(), devices.data(), devices.size(), nullptr, nullptr, 0)),
              "");
    return options;
  }

  // The names of the providers that took nodes of the session.
  static std::vector<std::string> Takers(const Ort::Session& session) {
    const OrtEpAssignedSubgraph* const* subgraphs = nullptr;
    size_t count = 0;
    EXPECT_EQ(Outcome(Api().Session_GetEpGraphAssignmentInfo(session, &subgraphs, &count)), "");
    std::vector<std::string> takers;
    for (size_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      EXPECT_EQ(Outcome(Api().EpAssignedSubgraph_GetEpName(subgraphs[i], &name)), "");
      if (takers.empty() || takers.back() != name) takers.emplace_back(name);
    }
    return takers;
  }

  // The position of the slot's first call in the mock's record.
  static size_t FirstCall(const char* slot) {
    const std::vector<std::string>& calls = Mock().calls;
    return static_cast<size_t>(std::find(calls.begin(), calls.end(), slot) - calls.begin());
  }

  static std::vector<float> Run(Ort::Session& session, std::vector<float> x) {
    const char* const input = "x";
    const char* const output = "y";
    const Ort::Value feed = TensorOver(x, {static_cast<int64_t>(x.size())});
    const auto outputs = session.Run({}, &input, &feed, 1, &output, 1);
    return ElementsOf<float>(outputs[0]);
  }
};

}  // namespace tenon::test
