// Memory runs out at each point of a session's life.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxruntime_c_api.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "capi/model_builder.h"
#include "capi/scarce_memory.h"

namespace tenon::test {
namespace {

const OrtApi& Api() { return *OrtGetApiBase()->GetApi(ORT_API_VERSION); }

// What a client makes and releases. Nothing here takes memory, so that only the library's requests
// fail.
class Client {
 public:
  // The calls of a life. Once one has failed, the others are left out.
  bool Did(OrtStatus* status) {
    if (status == nullptr) return true;
    has_failed_ = true;
    Api().ReleaseStatus(status);
    return false;
  }
  bool has_failed() const { return has_failed_; }

 private:
  bool has_failed_ = false;
};

// A life: creates things by `client`, uses them and releases them. Returns whether results that it
// got were right.
using Life = std::function<bool(Client& client)>;

// Lets each request for memory of a life fail in turn, alone and with all later ones. Afterwards
// nothing may be left, and the same life must succeed.
void SurvivesScarcity(const Life& life) {
  Client first;
  ASSERT_TRUE(life(first));
  ASSERT_FALSE(first.has_failed());
  BeginScarcity(0, Scarcity::kOnce);
  Client counted;
  life(counted);
  const size_t requests = EndScarcity();
  ASSERT_GT(requests, 0u);
  const size_t blocks = LiveBlocks();
  for (const Scarcity scarcity : {Scarcity::kOnce, Scarcity::kFromNow}) {
    size_t failures = 0;
    for (size_t request = 1; request <= requests; ++request) {
      Client client, after;
      BeginScarcity(request, scarcity);
      const bool is_right = life(client);
      EndScarcity();
      failures += client.has_failed();
      const bool is_right_after = life(after);
      const size_t left = LiveBlocks();
      const std::string where = "request " + std::to_string(request) + " of " +
                                std::to_string(requests) +
                                (scarcity == Scarcity::kOnce ? "" : " and all later ones");
      ASSERT_TRUE(is_right) << where;
      ASSERT_TRUE(is_right_after && !after.has_failed()) << where;
      ASSERT_EQ(left, blocks) << where;
    }
    // Some requests are for speed alone, and their failures harm nothing.
    EXPECT_GT(failures, requests / 2);
  }
}

// An environment, a session for z = Relu(x + y), two runs with different shapes.
bool RunsASession(Client& client, const std::string& model) {
  OrtEnv* env = nullptr;
  OrtSessionOptions* options = nullptr;
  OrtSession* session = nullptr;
  OrtMemoryInfo* cpu = nullptr;
  bool is_right = true;
  const bool is_open =
      client.Did(Api().CreateEnv(ORT_LOGGING_LEVEL_FATAL, "scarcity", &env)) &&
      client.Did(Api().CreateSessionOptions(&options)) &&
      client.Did(Api().SetIntraOpNumThreads(options, 2)) &&
      client.Did(
          Api().CreateSessionFromArray(env, model.data(), model.size(), options, &session)) &&
      client.Did(Api().CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  for (int64_t rows = 1; is_open && rows <= 2; ++rows) {
    std::array<float, 6> x = {1, -2, 3, 4, 5, -6};
    std::array<float, 3> y = {10, 1, -5};
    const int64_t x_shape[] = {rows, 3}, y_shape[] = {3};
    const char* const names[] = {"x", "y"};
    const char* const output_name = "z";
    OrtValue* feeds[2] = {};
    OrtValue* output = nullptr;
    float* z = nullptr;
    const size_t x_bytes = static_cast<size_t>(rows) * 3 * sizeof(float);
    const bool is_run =
        client.Did(Api().CreateTensorWithDataAsOrtValue(
            cpu, x.data(), x_bytes, x_shape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &feeds[0])) &&
        client.Did(Api().CreateTensorWithDataAsOrtValue(cpu, y.data(), sizeof(y), y_shape, 1,
                                                        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                                        &feeds[1])) &&
        client.Did(Api().Run(session, nullptr, names, feeds, 2, &output_name, 1, &output)) &&
        client.Did(Api().GetTensorMutableData(output, reinterpret_cast<void**>(&z)));
    if (is_run) is_right &= z[0] == 11 && z[1] == 0 && z[2] == 0;
    for (OrtValue* const value : {feeds[0], feeds[1], output}) Api().ReleaseValue(value);
  }
  Api().ReleaseMemoryInfo(cpu);
  Api().ReleaseSession(session);
  Api().ReleaseSessionOptions(options);
  Api().ReleaseEnv(env);
  return is_right;
}

TEST(ScarcityTest, ASession) {
  const std::string model = AddReluModel();
  SurvivesScarcity([&](Client& client) { return RunsASession(client, model); });
}

}  // namespace
}  // namespace tenon::test
