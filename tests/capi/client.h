// Shared by the tests of the ABI: the environment, and checks of statuses.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace tenon::test {

// The environment of all tests.
inline Ort::Env& Env() {
  static Ort::Env env(ORT_LOGGING_LEVEL_FATAL, "tests");
  return env;
}

inline Ort::Session Open(const std::string& model, const Ort::SessionOptions& options = {}) {
  return Ort::Session(Env(), model.data(), model.size(), options);
}

// A float tensor over `values`.
inline Ort::Value TensorOver(std::vector<float>& values, const std::vector<int64_t>& shape) {
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  return Ort::Value::CreateTensor<float>(cpu, values.data(), values.size(), shape.data(),
                                         shape.size());
}

template <class T>
std::vector<T> ElementsOf(const Ort::Value& value) {
  const T* const data = value.GetTensorData<T>();
  return {data, data + value.GetTensorTypeAndShapeInfo().GetElementCount()};
}

// WebAssembly cannot catch exceptions: the test ends here and counts as skipped.
inline void NeedExceptions() {
#if defined(__wasm__)
  std::puts("[  SKIPPED ] it needs exceptions");
  std::exit(0);
#endif
}

// "code: text" of what a slot returned, or "".
inline std::string Outcome(OrtStatus* status) {
  const Ort::Status owned(status);
  if (owned.IsOK()) return "";
  return std::to_string(owned.GetErrorCode()) + ": " + owned.GetErrorMessage();
}

// The same of what `body` throws.
template <class Body>
std::string ErrorOf(Body&& body) {
  NeedExceptions();
  try {
    body();
  } catch (const Ort::Exception& exception) {
    return std::to_string(exception.GetOrtErrorCode()) + ": " + exception.what();
  }
  return "";
}

}  // namespace tenon::test
