// Trains the demo's digit classifier from random weights with the API for training on devices, and
// exports it for inference. make_artifacts.py writes what it reads.
//   train_digits FOLDER MODEL.onnx
#include <onnxruntime_training_cxx_api.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kEpochs = 30;
constexpr int kEpochsAReport = 10;
constexpr size_t kBatch = 32;
constexpr size_t kPixels = 64;
constexpr size_t kClasses = 10;
constexpr float kLearningRate = 2e-3F;

template <class T>
std::vector<T> ReadArray(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error("cannot read " + path + "; make_artifacts.py writes it");
  std::vector<T> array(static_cast<size_t>(file.tellg()) / sizeof(T));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(array.data()),
            static_cast<std::streamsize>(array.size() * sizeof(T)));
  return array;
}

struct Digits {
  Digits(const std::string& folder, const std::string& part)
      : pictures(ReadArray<float>(folder + "/" + part + "_pictures.bin")),
        labels(ReadArray<int64_t>(folder + "/" + part + "_labels.bin")) {
    if (pictures.size() != labels.size() * kPixels) {
      throw std::runtime_error("expected a label for each picture of " + part);
    }
  }

  std::vector<float> pictures;  // [n, 1, 8, 8]
  std::vector<int64_t> labels;  // [n]
};

// Tensors over arrays, which must live longer.
Ort::Value Pictures(std::vector<float>& pixels) {
  const std::array<int64_t, 4> shape = {static_cast<int64_t>(pixels.size() / kPixels), 1, 8, 8};
  return Ort::Value::CreateTensor<float>(
      Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault), pixels.data(),
      pixels.size(), shape.data(), shape.size());
}
Ort::Value Labels(std::vector<int64_t>& labels) {
  const auto size = static_cast<int64_t>(labels.size());
  return Ort::Value::CreateTensor<int64_t>(
      Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault), labels.data(),
      labels.size(), &size, 1);
}

// One step of the optimizer on some of the pictures; returns their loss.
float Step(Ort::TrainingSession& session, const Digits& digits, const size_t* chosen) {
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  for (size_t i = 0; i < kBatch; ++i) {
    const auto picture = digits.pictures.begin() + static_cast<std::ptrdiff_t>(chosen[i] * kPixels);
    pixels.insert(pixels.end(), picture, picture + kPixels);
    labels.push_back(digits.labels[chosen[i]]);
  }
  std::vector<Ort::Value> inputs;
  inputs.push_back(Pictures(pixels));
  inputs.push_back(Labels(labels));
  const float loss = session.TrainStep(inputs)[0].GetTensorData<float>()[0];
  session.OptimizerStep();
  session.SchedulerStep();
  session.LazyResetGrad();
  return loss;
}

void Train(Ort::TrainingSession& session, const Digits& digits) {
  // Of an epoch, which leaves fewer pictures than a batch out.
  const size_t batches = digits.labels.size() / kBatch;
  session.RegisterLinearLRScheduler(0, static_cast<int64_t>(kEpochs * batches), kLearningRate);
  std::vector<size_t> order(digits.labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random;  // of the same seed in every run
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    float total = 0;
    for (size_t i = 0; i < batches; ++i) total += Step(session, digits, &order[i * kBatch]);
    if (epoch % kEpochsAReport == 0) {
      std::printf("epoch %d: loss %.4f\n", epoch, total / static_cast<float>(batches));
    }
  }
}

// How many pictures the exported model recognizes.
size_t CountRight(Ort::Session& session, Digits& digits) {
  const char* const inputs[] = {"image"};
  const char* const outputs[] = {"probabilities"};
  const Ort::Value pictures = Pictures(digits.pictures);
  const std::vector<Ort::Value> results =
      session.Run(Ort::RunOptions(), inputs, &pictures, 1, outputs, 1);
  const float* scores = results[0].GetTensorData<float>();
  size_t right = 0;
  for (const int64_t label : digits.labels) {
    right += std::max_element(scores, scores + kClasses) - scores == label;
    scores += kClasses;
  }
  return right;
}

void Run(const std::string& folder, const std::string& model) {
  const Digits training(folder, "train");
  Digits test(folder, "test");
  const Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "train_digits");
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1);  // batches of this size are not worth sharing

  Ort::CheckpointState state = Ort::CheckpointState::LoadCheckpoint(folder + "/checkpoint");
  Ort::TrainingSession session(env, options, state, folder + "/training_model.onnx",
                               folder + "/eval_model.onnx", folder + "/optimizer_model.onnx");
  Train(session, training);
  session.ExportModelForInferencing(model, {"probabilities"});

  Ort::Session exported(env, model.c_str(), options);
  const size_t right = CountRight(exported, test);
  std::printf("%zu of %zu unseen pictures are right: %.2f%%\n", right, test.labels.size(),
              100.0 * static_cast<double>(right) / static_cast<double>(test.labels.size()));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: train_digits FOLDER MODEL.onnx\n");
    return 2;
  }
  try {
    Run(arguments[1], arguments[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_digits: %s\n", error.what());
    return 1;
  }
}
