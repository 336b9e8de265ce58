// What a training is to do, what of it is done, and how a checkpoint keeps both.
#pragma once

#include <onnxruntime_training_cxx_api.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

// Without a value: what the checkpoint to be resumed says, or else the default.
struct TrainingOptions {
  std::optional<int64_t> epochs, batch_size, accumulate, seed, shuffle, warmup;
  std::optional<float> learning_rate;
  std::optional<std::string> schedule;
};

inline constexpr const char* kLinear = "linear";  // TrainingPlan::schedule

struct TrainingPlan {
  int64_t samples = 0;
  int64_t epochs = 1;
  int64_t batch_size = 0;  // 0: not known before the samples
  int64_t accumulate = 1;  // batches whose gradients make a step
  int64_t seed = 0;
  int64_t shuffle = 1;  // 0: the samples keep their order
  int64_t warmup = 0;   // steps
  float learning_rate = 0.001f;
  std::string schedule = "constant";
  // So many are done. Steps are counted over all epochs.
  int64_t epoch = 0, step = 0;

  int64_t Batches() const { return (samples + batch_size - 1) / batch_size; }
  int64_t StepsPerEpoch() const { return (Batches() + accumulate - 1) / accumulate; }
  // Of what is random in the current epoch.
  uint64_t EpochSeed() const;
  // The samples in the order of the current epoch.
  std::vector<size_t> Order() const;
  // The first batch of the current epoch that is not done.
  int64_t FirstBatch() const { return StepInEpoch() * accumulate; }
  int64_t StepInEpoch() const { return step - epoch * StepsPerEpoch(); }
};

// A plan for a new training.
TrainingPlan NewPlan(const TrainingOptions& options);

// The plan for the rest of a training. Options that change what a step sees must be as they were.
// `path` has the checkpoint, for errors. Throws Error.
TrainingPlan ResumedPlan(const TrainingOptions& options, Ort::CheckpointState& checkpoint,
                         const std::string& path);

// Completes the plan: `fixed_batch` is the only number of samples that the model takes, if there is
// one. Throws Error if the samples do not fit the plan.
void SetSamples(TrainingPlan& plan, size_t samples, std::optional<int64_t> fixed_batch);

// Stores the plan in the checkpoint's properties, as "train.<name>".
void KeepPlan(const TrainingPlan& plan, Ort::CheckpointState& checkpoint);

}  // namespace tenon::cli
