// Ends a process in one of many orders, after a run with threads:
//   exit_client LIBRARY ORDER
// The exit status is 0 if the process ends correctly.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "capi/model_builder.h"

namespace {

constexpr int64_t kRows = 1500000;  // so much that the session would give it back when idle

const OrtApi* api = nullptr;
void* library = nullptr;

void Must(OrtStatus* status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "exit_client: %s\n", api->GetErrorMessage(status));
  std::_Exit(3);
}

// An environment, and a session with threads of its own.
struct Client {
  OrtEnv* env = nullptr;
  OrtSession* session = nullptr;

  void Open(const char* path) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) std::_Exit(2);
    const auto get_base =
        reinterpret_cast<decltype(&OrtGetApiBase)>(dlsym(library, "OrtGetApiBase"));
    api = get_base()->GetApi(ORT_API_VERSION);
    OrtSessionOptions* options = nullptr;
    Must(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "exit", &env));
    Must(api->CreateSessionOptions(&options));
    Must(api->SetIntraOpNumThreads(options, 3));
    Must(api->AddSessionConfigEntry(options, "tenon.idle_trim_us", "20000"));
    const std::string model = tenon::test::AddReluModel();
    Must(api->CreateSessionFromArray(env, model.data(), model.size(), options, &session));
    api->ReleaseSessionOptions(options);
    Run();
  }

  void Run() const {
    std::vector<float> x(kRows * 3, 1), y(3, 1);
    const int64_t x_shape[] = {kRows, 3}, y_shape[] = {3};
    OrtMemoryInfo* cpu = nullptr;
    OrtValue *feeds[2] = {}, *output = nullptr;
    Must(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
    Must(api->CreateTensorWithDataAsOrtValue(cpu, x.data(), x.size() * sizeof(float), x_shape, 2,
                                             ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &feeds[0]));
    Must(api->CreateTensorWithDataAsOrtValue(cpu, y.data(), y.size() * sizeof(float), y_shape, 1,
                                             ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &feeds[1]));
    const char *const inputs[] = {"x", "y"}, *const outputs[] = {"z"};
    Must(api->Run(session, nullptr, inputs, feeds, 2, outputs, 1, &output));
    for (OrtValue* value : {feeds[0], feeds[1], output}) api->ReleaseValue(value);
    api->ReleaseMemoryInfo(cpu);
  }

  void Close() {
    api->ReleaseSession(session);
    api->ReleaseEnv(env);
    session = nullptr;
    env = nullptr;
  }
};

Client client;

// Releases in the destructor of a static object, after main.
struct Late {
  ~Late() {
    if (armed) client.Close();
  }
  bool armed = false;
} late;

void ExitInAnotherThread() {
  std::thread([] { std::exit(0); }).join();
}

void ExitDuringRuns() {
  static std::atomic<int> runs = 0;
  std::thread([] {
    for (;;) {
      client.Run();
      ++runs;
    }
  }).detach();
  while (runs < 3) std::this_thread::yield();
  std::exit(0);
}

void ExitInAnAsynchronousRun() {
  static std::vector<float> data(3, 1);
  static const char *const inputs[] = {"x", "y"}, *const outputs[] = {"z"};
  static OrtValue *feeds[2] = {}, *output = nullptr;
  const int64_t x_shape[] = {1, 3}, y_shape[] = {3};
  OrtMemoryInfo* cpu = nullptr;
  Must(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  Must(api->CreateTensorWithDataAsOrtValue(cpu, data.data(), 12, x_shape, 2,
                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &feeds[0]));
  Must(api->CreateTensorWithDataAsOrtValue(cpu, data.data(), 12, y_shape, 1,
                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &feeds[1]));
  const auto done = [](void*, OrtValue**, size_t, OrtStatusPtr) { std::exit(0); };
  Must(
      api->RunAsync(client.session, nullptr, inputs, feeds, 2, outputs, 1, &output, done, nullptr));
  for (;;) pause();
}

void LoadAgainAndAgain(const char* path) {
  for (int i = 0; i < 3; ++i) {
    client.Close();
    dlclose(library);
    client.Open(path);
  }
  client.Close();
  dlclose(library);
}

int End(std::string_view order, const char* path) {
  if (order == "clean") client.Close();
  if (order == "session-leaked") api->ReleaseEnv(client.env);
  if (order == "late") late.armed = true;
  if (order == "at-exit") std::atexit([] { client.Close(); });
  if (order == "thread") ExitInAnotherThread();
  if (order == "running") ExitDuringRuns();
  if (order == "asynchronous") ExitInAnAsynchronousRun();
  if (order == "dlclose") LoadAgainAndAgain(path);
  if (order == "dlclose-leaked") {
    dlclose(library);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // nothing of it is called now
  }
  return 0;  // "leaked": nothing is released at all
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  client.Open(arguments[1]);
  return End(arguments[2], arguments[1]);
}
