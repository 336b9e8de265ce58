// Memory runs out at each point of a session's life.
#include "capi/scarcity.h"

#include <filesystem>
#include <string>
#include <string_view>

#include "capi/model_builder.h"

namespace tenon::test {
namespace {

TEST(ScarcityTest, ASession) { SurvivesScarcity(SessionLife(AddReluModel()), 1); }

TEST(ScarcityTest, ATracedSession) {
  static const std::string prefix = testing::TempDir() + "scarcity";
  const auto trace = [](OrtEnv*, OrtSessionOptions* options) {
    return Api().EnableProfiling(options, prefix.c_str());
  };
  SurvivesScarcity(SessionLife(AddReluModel(), trace), 5);
  for (const auto& entry : std::filesystem::directory_iterator(testing::TempDir())) {
    if (entry.path().filename().string().starts_with("scarcity_")) {
      std::filesystem::remove(entry.path());
    }
  }
}

// x * identity + y, with steps of 1, so that nothing is rounded.
std::string QuantizedModel() {
  constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  return ModelBuilder()
      .Input("x", TensorType(kFloat, {"n", 3}))
      .Input("y", TensorType(kFloat, {3}))
      .Initializer("one", {1})
      .Initializer("w", {1, 0, 0, 0, 1, 0, 0, 0, 1}, 3)
      .Node("Squeeze", {"one"}, {"step"})
      .Node("QuantizeLinear", {"x", "step"}, {"xq"})
      .Node("DequantizeLinear", {"xq", "step"}, {"xd"})
      .Node("QuantizeLinear", {"w", "step"}, {"wq"})
      .Node("DequantizeLinear", {"wq", "step"}, {"wd"})
      .Node("MatMul", {"xd", "wd"}, {"product"})
      .Node("QuantizeLinear", {"product", "step"}, {"pq"})
      .Node("DequantizeLinear", {"pq", "step"}, {"pd"})
      .Node("Add", {"pd", "y"}, {"sum"})
      .Node("Relu", {"sum"}, {"z"})
      .Output("z", TensorType(kFloat, {"n", 3}))
      .Bytes();
}

TEST(ScarcityTest, AQuantizedSession) { SurvivesScarcity(SessionLife(QuantizedModel()), 3); }

// The sum is on the CPU, between nodes of the sample provider, whose device has its own memory.
std::string SampleModel() {
  constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  return ModelBuilder()
      .Input("x", TensorType(kFloat, {2, 3}))
      .Input("y", TensorType(kFloat, {3}))
      .Node("Relu", {"x"}, {"positive"})
      .Node("Add", {"positive", "y"}, {"sum"})
      .Node("Relu", {"sum"}, {"z"})
      .Output("z", TensorType(kFloat, {2, 3}))
      .Bytes();
}

OrtStatus* AddSampleProvider(OrtEnv* env, OrtSessionOptions* options) {
  OrtStatus* status = Api().RegisterExecutionProviderLibrary(env, "sample", TENON_SAMPLE_PROVIDER);
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  if (status == nullptr) status = Api().GetEpDevices(env, &devices, &count);
  for (size_t i = 0; status == nullptr && i < count; ++i) {
    if (std::string_view(Api().EpDevice_EpName(devices[i])) != "SampleProvider") continue;
    status = Api().SessionOptionsAppendExecutionProvider_V2(options, env, &devices[i], 1, nullptr,
                                                            nullptr, 0);
  }
  return status;
}

TEST(ScarcityTest, ASessionWithAPlugin) {
  SurvivesScarcity(SessionLife(SampleModel(), AddSampleProvider, {2}), 1);
}

}  // namespace
}  // namespace tenon::test
