// Trains a model in steps: its training graph adds gradients to buffers, and its optimizer changes
// the parameters by them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/fallback_session.h"
#include "training/checkpoint.h"

namespace tenon {

// The sessions of a model. They outlive the training session.
struct TrainingModels {
  FallbackSession& train;
  FallbackSession* eval = nullptr;
  FallbackSession* optimizer = nullptr;
};

// Inputs of the models are known by their names, as ONNX Runtime's tools give them. Of the training
// model: parameters have their own names, their gradients <name>_grad.accumulation.buffer, and
// lazy_reset_grad tells whether gradients are overwritten; the rest are the user's. Of the
// optimizer model: learning_rate, step, and sequences: params, gradients, and its moments. Its
// first output tells whether the step was done.
//
// Not thread-safe. The checkpoint outlives it; nothing else may change that meanwhile.
class TrainingSession {
 public:
  // Errors: kInvalidArgument for a trained parameter without an input for its gradients, for a
  // parameter of another type or shape than the model declares, for an optimizer model with other
  // inputs, and for a checkpoint that lacks moments of a parameter.
  static Result<std::unique_ptr<TrainingSession>> Create(TrainingModels models,
                                                         Checkpoint& checkpoint);

  // The user's inputs, in the model's order. Without an evaluation model its lists are empty.
  std::span<const std::string> train_inputs() const {
    return std::span(train_.feed_names).first(train_.user_inputs);
  }
  std::span<const std::string> eval_inputs() const {
    return std::span(eval_.feed_names).first(eval_.user_inputs);
  }
  // Without the gradients.
  std::span<const std::string> train_outputs() const {
    return std::span(train_.fetch_names).first(train_.user_outputs);
  }
  std::span<const std::string> eval_outputs() const { return eval_.fetch_names; }

  // Computes the outputs and the gradients. `fetches` as of Session::Run. Errors: kInvalidArgument
  // for as many inputs or outputs as the model does not have, and for parameters without values;
  // those of the run, after which gradients may have changed in part.
  Status TrainStep(const RunOptions& options, std::span<const Value> inputs,
                   std::span<Value> fetches);
  Status EvalStep(const RunOptions& options, std::span<const Value> inputs,
                  std::span<Value> fetches);
  // The next TrainStep overwrites the gradients.
  void ResetGradients() { overwrites_ = true; }
  // Changes the parameters. Error: kInvalidArgument without an optimizer model.
  Status OptimizerStep(const RunOptions& options);

  // The buffer of a parameter's gradient; null if it has none.
  const Tensor* FindGradient(std::string_view parameter) const;

  Status SetLearningRate(float rate);
  Result<float> learning_rate() const;
  // From 0 to `initial_rate` in `warmup_steps`, then to 0 at `total_steps`.
  Status SetLinearSchedule(int64_t warmup_steps, int64_t total_steps, float initial_rate);
  // Sets the learning rate by the schedule and the optimizer's step. kInvalidArgument without one.
  Status ScheduleStep();

  // Elements of all parameters of the training model, or of those that are trained.
  int64_t ParameterCount(bool trained_only) const;
  // Copies them, in the model's order, into a float tensor of so many elements, or from it. Errors:
  // kInvalidArgument for a tensor of another size or type, for parameters that are not of float,
  // and for only a part of the parameters of a nominal checkpoint.
  Status CopyParametersTo(Tensor& buffer, bool trained_only) const;
  Status CopyParametersFrom(const Tensor& buffer, bool trained_only);

 private:
  // How a model is run: feeds are the user's inputs, then parameters, then what `more` has.
  struct Call {
    FallbackSession* session = nullptr;
    std::vector<std::string> feed_names, fetch_names;  // of fetches, the user's come first
    size_t user_inputs = 0, user_outputs = 0;
    std::vector<std::string> parameters;
  };
  struct Schedule {
    int64_t warmup_steps, total_steps;
  };

  TrainingSession(TrainingModels models, Checkpoint& checkpoint)
      : models_(models), checkpoint_(checkpoint) {}
  Status DescribeTraining();
  void DescribeEvaluation();
  Status CheckOptimizer();
  Status MakeGradients();
  Status PrepareOptimizer();
  Status Run(const Call& call, const RunOptions& options, std::span<const Value> inputs,
             std::span<Value> fetches, std::vector<Value> more) const;
  Status CheckHasValues() const;
  Status CheckBuffer(const Tensor& buffer, bool trained_only) const;
  // Of a parameter of the training model; in a nominal checkpoint as the model declares it.
  Shape ShapeOf(const std::string& name) const;
  Status CheckHasOptimizer() const;
  const Parameter& ParameterOf(std::string_view name) const;
  // The parameter's value, with the memory that all share.
  Tensor Share(std::string_view name) const { return ParameterOf(name).value; }

  const TrainingModels models_;
  Checkpoint& checkpoint_;
  Call train_, eval_, optimizer_;
  std::vector<std::string> trained_;  // parameters with gradients, in the order of their inputs
  std::vector<Value> gradients_;      // of these; empty while the checkpoint is nominal
  std::vector<std::string> moment_names_;  // as the checkpoint has them
  // params, gradients and moments; empty until they are needed.
  std::vector<Value> sequences_;
  bool overwrites_ = true;
  std::optional<Schedule> schedule_;
};

}  // namespace tenon
