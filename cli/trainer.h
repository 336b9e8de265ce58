// A model's artifacts, opened for training.
#pragma once

#include <onnxruntime_training_cxx_api.h>

#include <optional>
#include <string>
#include <vector>

#include "array.h"
#include "model.h"

namespace tenon::cli {

struct ArtifactPaths {
  std::string folder;  // has those that are not given, under the names of generate_artifacts
  std::string training_model, eval_model, optimizer_model, checkpoint;
};

// Gives each path its file. An evaluation model that is not there has none. Throws Error.
ArtifactPaths FindArtifacts(ArtifactPaths given);

// Errors of the library are thrown as Error. A loss is the mean over the batch.
class Trainer {
 public:
  // Reads `checkpoint`.
  Trainer(ArtifactPaths paths, const std::string& checkpoint, int threads);

  // Opens the models on the checkpoint's parameters; again, too: then gradients are zero, and
  // random operators begin anew. Their numbers follow from the seed.
  void Open(uint64_t seed);
  // Whether the training model has random operators.
  bool is_random() const { return is_random_; }

  // The inputs that samples are for, in the models' order.
  std::vector<ValueSpec> TrainingInputs();
  std::vector<ValueSpec> EvalInputs();

  // Adds the batch's gradients, and returns its loss.
  double TrainStep(std::vector<Array> batch);
  double EvalStep(std::vector<Array> batch);
  // Changes the parameters, and forgets the gradients.
  void OptimizerStep();
  void ForgetGradients() { session_->LazyResetGrad(); }

  void SetLearningRate(float rate);
  // From 0 to `rate` in `warmup` steps, then to 0 at step `total`.
  void SetLinearSchedule(int64_t warmup, int64_t total, float rate);
  float learning_rate() const { return session_->GetLearningRate(); }

  // The outputs of the evaluation model but the loss.
  std::vector<std::string> MoreOutputs();
  // Writes the model for inference that makes these values.
  void Export(const std::string& path, const std::vector<std::string>& outputs);
  // Writes the checkpoint with the optimizer's state, as a whole or not at all.
  void Save(const std::string& path);

  Ort::CheckpointState& checkpoint() { return checkpoint_; }
  const ArtifactPaths& paths() const { return paths_; }

 private:
  const ArtifactPaths paths_;
  const int threads_;
  std::vector<ValueSpec> training_inputs_;  // of the user and of the artifacts
  bool is_random_ = false;
  Ort::Env env_;
  Ort::CheckpointState checkpoint_;
  std::optional<Ort::TrainingSession> session_;
  bool has_schedule_ = false;
};

}  // namespace tenon::cli
