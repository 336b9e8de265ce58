// Sessions through the C++ classes: making, asking, running, and what goes wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxruntime_cxx_api.h>

#include <array>
#include <thread>
#include <vector>

#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Ort::Env& Env() {
  static Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "tests");
  return env;
}

Ort::Session Open(const std::string& model, const Ort::SessionOptions& options = {}) {
  return Ort::Session(Env(), model.data(), model.size(), options);
}

// A tensor over `values`.
Ort::Value TensorOver(std::vector<float>& values, const std::vector<int64_t>& shape) {
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  return Ort::Value::CreateTensor<float>(cpu, values.data(), values.size(), shape.data(),
                                         shape.size());
}

std::vector<float> FloatsOf(const Ort::Value& value) {
  const float* const data = value.GetTensorData<float>();
  return {data, data + value.GetTensorTypeAndShapeInfo().GetElementCount()};
}

// "code: text" of what `body` throws, or "".
template <class Body>
std::string ErrorOf(Body&& body) {
  try {
    body();
  } catch (const Ort::Exception& exception) {
    return std::to_string(exception.GetOrtErrorCode()) + ": " + exception.what();
  }
  return "";
}

class AddReluTest : public testing::Test {
 protected:
  std::vector<Ort::Value> Run(const std::vector<const char*>& inputs,
                              const std::vector<Ort::Value>& values,
                              const std::vector<const char*>& outputs) {
    return session_.Run(Ort::RunOptions{nullptr}, inputs.data(), values.data(), inputs.size(),
                        outputs.data(), outputs.size());
  }

  Ort::Session session_ = Open(AddReluModel());
  std::vector<float> x_ = {1, -2, 3, 4, 5, -6};
  std::vector<float> y_ = {10, 1, -5};
};

TEST_F(AddReluTest, ComputesIntoANewValue) {
  std::vector<Ort::Value> feeds;
  feeds.push_back(TensorOver(x_, {2, 3}));
  feeds.push_back(TensorOver(y_, {3}));
  const std::vector<Ort::Value> outputs = Run({"x", "y"}, feeds, {"z"});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_THAT(outputs[0].GetTensorTypeAndShapeInfo().GetShape(), ElementsAre(2, 3));
  EXPECT_THAT(FloatsOf(outputs[0]), ElementsAre(11, 0, 0, 14, 6, 0));
}

TEST_F(AddReluTest, WritesIntoTheCallersMemory) {
  std::vector<float> z(6, -1);
  const Ort::Value feeds[] = {TensorOver(y_, {3}), TensorOver(x_, {2, 3})};
  Ort::Value fetch = TensorOver(z, {2, 3});
  const char* const inputs[] = {"y", "x"};
  const char* const output = "z";
  session_.Run(Ort::RunOptions{}, inputs, feeds, 2, &output, &fetch, 1);
  EXPECT_THAT(z, ElementsAre(11, 0, 0, 14, 6, 0));
  EXPECT_EQ(fetch.GetTensorData<float>(), z.data());
}

}  // namespace
}  // namespace tenon::test
