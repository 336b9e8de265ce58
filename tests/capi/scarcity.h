// Lets memory run out at each point of a session's life.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxruntime_c_api.h>

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "capi/scarce_memory.h"

namespace tenon::test {

inline const OrtApi& Api() { return *OrtGetApiBase()->GetApi(ORT_API_VERSION); }

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

// Lets every `stride`-th request for memory of a life fail in turn, alone and with all later ones.
// Afterwards nothing may be left, and the same life must succeed.
inline void SurvivesScarcity(const Life& life, size_t stride) {
  Client first;
  ASSERT_TRUE(life(first));
  ASSERT_FALSE(first.has_failed());
  BeginScarcity(0, Scarcity::kOnce);
  Client counted;
  life(counted);
  const size_t requests = EndScarcity();
  ASSERT_GT(requests, 0u);
  size_t blocks = LiveBlocks();
  // Each thread of the pool that takes part for the first time keeps memory of its own.
  size_t late_threads = 0;
  constexpr size_t kMostLateThreads = 3;
  for (const Scarcity scarcity : {Scarcity::kOnce, Scarcity::kFromNow}) {
    size_t failures = 0;
    for (size_t request = 1; request <= requests; request += stride) {
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
      if (left > blocks && ++late_threads <= kMostLateThreads) blocks = left;
      ASSERT_EQ(left, blocks) << where;
    }
    // What some requests are for, such as an event of a trace, is left out without harm.
    EXPECT_GT(failures, requests / stride / 4);
  }
}

// A session of a model that computes z = Relu(x + y) for x of shape [n, 3] and y of shape [3], in
// runs with few rows and with so many that threads share the work.
class SessionLife {
 public:
  // Prepares the environment and sets options of the session; takes no memory.
  using Configure = OrtStatus* (*)(OrtEnv* env, OrtSessionOptions* options);

  explicit SessionLife(std::string model, Configure configure = nullptr)
      : configure_(configure), model_(std::move(model)) {}
  // The same with runs of these numbers of rows, of at most 50,000.
  SessionLife(std::string model, Configure configure, std::vector<int64_t> rows)
      : configure_(configure), model_(std::move(model)), rows_(std::move(rows)) {}

  bool operator()(Client& client) {
    OrtEnv* env = nullptr;
    OrtSessionOptions* options = nullptr;
    OrtSession* session = nullptr;
    const bool is_open = client.Did(Api().CreateEnv(ORT_LOGGING_LEVEL_FATAL, "scarcity", &env)) &&
                         client.Did(Api().CreateSessionOptions(&options)) &&
                         client.Did(Api().SetIntraOpNumThreads(options, 2)) &&
                         (configure_ == nullptr || client.Did(configure_(env, options))) &&
                         client.Did(Api().CreateSessionFromArray(env, model_.data(), model_.size(),
                                                                 options, &session));
    bool is_right = true;
    for (const int64_t rows : rows_) {
      if (is_open) is_right &= Run(client, session, rows);
    }
    Api().ReleaseSession(session);
    Api().ReleaseSessionOptions(options);
    Api().ReleaseEnv(env);
    return is_right;
  }

 private:
  static constexpr int64_t kMostRows = 50'000;

  bool Run(Client& client, OrtSession* session, int64_t rows) {
    const int64_t x_shape[] = {rows, 3}, y_shape[] = {3};
    const char* const names[] = {"x", "y"};
    const char* const output_name = "z";
    OrtMemoryInfo* cpu = nullptr;
    OrtValue* feeds[2] = {};
    OrtValue* output = nullptr;
    float* z = nullptr;
    const size_t x_bytes = static_cast<size_t>(rows) * sizeof(y_);
    constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    const bool is_run =
        client.Did(Api().CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu)) &&
        client.Did(Api().CreateTensorWithDataAsOrtValue(cpu, x_.data(), x_bytes, x_shape, 2, kFloat,
                                                        &feeds[0])) &&
        client.Did(Api().CreateTensorWithDataAsOrtValue(cpu, y_.data(), sizeof(y_), y_shape, 1,
                                                        kFloat, &feeds[1])) &&
        client.Did(Api().Run(session, nullptr, names, feeds, 2, &output_name, 1, &output)) &&
        client.Did(Api().GetTensorMutableData(output, reinterpret_cast<void**>(&z)));
    bool is_right = true;
    for (int64_t i = 0; is_run && i < rows; ++i) {
      is_right &= z[3 * i] == 12 && z[3 * i + 1] == 3 && z[3 * i + 2] == 0;
    }
    for (OrtValue* const value : {feeds[0], feeds[1], output}) Api().ReleaseValue(value);
    Api().ReleaseMemoryInfo(cpu);
    return is_right;
  }

  const Configure configure_;
  const std::string model_;
  const std::vector<int64_t> rows_ = {1, kMostRows, 2};
  std::vector<float> x_ = std::vector<float>(3 * kMostRows, 2);
  std::array<float, 3> y_ = {10, 1, -5};
};

}  // namespace tenon::test
