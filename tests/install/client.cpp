// Runs the digit classifier on an empty picture and prints its scores: client MODEL.
#include <onnxruntime_cxx_api.h>

#include <array>
#include <cstdio>

int main(int, char** arguments) {
  try {
    const Ort::Env env;
    Ort::Session session(env, arguments[1], Ort::SessionOptions());
    std::array<float, 64> pixels = {};
    const std::array<int64_t, 4> shape = {1, 1, 8, 8};
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    const Ort::Value image = Ort::Value::CreateTensor<float>(memory, pixels.data(), pixels.size(),
                                                             shape.data(), shape.size());
    const char* const input = "image";
    const char* const output = "probabilities";
    const std::vector<Ort::Value> outputs =
        session.Run(Ort::RunOptions(), &input, &image, 1, &output, 1);
    for (int i = 0; i < 10; ++i) std::printf("%.9g\n", outputs[0].GetTensorData<float>()[i]);
  } catch (const Ort::Exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
