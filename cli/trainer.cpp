#include "trainer.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "description.h"
#include "progress.h"
#include "text.h"
#include "values.h"

namespace tenon::cli {
namespace {

// Calls body(); an error of the library gets the path, unless it has it.
template <class Body>
auto WithErrorsOf(const std::string& path, const Body& body) {
  try {
    return body();
  } catch (const Ort::Exception& exception) {
    throw Error(kExitFailure, WithPath(path, exception.what()));
  }
}

Ort::CheckpointState Load(const std::string& path) {
  const Progress progress("loading " + path);
  return WithErrorsOf(path, [&] { return Ort::CheckpointState::LoadCheckpoint(path); });
}

// Their names are those of ONNX and com.microsoft: Dropout, BiasDropout, RandomNormalLike, ...
bool HasRandomOperators(const nlohmann::ordered_json& description) {
  constexpr std::string_view kWords[] = {"Dropout", "Random", "Bernoulli", "Multinomial"};
  for (const auto& entry : description["operators"]) {
    const auto name = entry["op_type"].get<std::string>();
    for (const std::string_view word : kWords) {
      if (name.find(word) != name.npos) return true;
    }
  }
  return false;
}

std::vector<ValueSpec> Select(const std::vector<ValueSpec>& specs,
                              const std::vector<std::string>& names) {
  std::vector<ValueSpec> selected;
  for (const std::string& name : names) {
    const auto found = std::find_if(specs.begin(), specs.end(),
                                    [&](const ValueSpec& spec) { return spec.name == name; });
    if (found != specs.end()) selected.push_back(*found);
  }
  return selected;
}

double LossOf(const std::vector<Ort::Value>& outputs, const std::string& model) {
  if (outputs.empty()) Fail("'{}': expected the loss as its first output, got no output", model);
  if (!outputs[0].IsTensor())
    Fail("'{}': expected the loss as its first output, got no tensor", model);
  const Array loss = ToArray(outputs[0]);
  if (IsNumber(loss.type) && ElementCount(loss.shape) == 1) {
    return ReadNumber(loss.type, loss.bytes.data(), 0);
  }
  Fail("'{}': expected the loss, which is one number, as its first output, got {} {}", model,
       ElementTypeOf(loss.type).name, ShapeText(loss.shape));
}

}  // namespace

ArtifactPaths FindArtifacts(ArtifactPaths given) {
  namespace fs = std::filesystem;
  const std::string& folder = given.folder;
  if (!folder.empty() && !fs::is_directory(folder)) {
    Fail(
        "'{}': expected a folder of artifacts: training_model.onnx, optimizer_model.onnx, "
        "checkpoint and, if there is one, eval_model.onnx",
        folder);
  }
  const auto find = [&](std::string& path, const char* name, const char* option,
                        const char* remark) {
    if (path.empty() && folder.empty()) {
      FailUsage("give the folder of the artifacts, or {} FILE", option);
    }
    if (path.empty()) path = fs::path(folder) / name;
    if (!fs::exists(path)) Fail("'{}': No such file or directory{}", path, remark);
  };
  find(given.training_model, "training_model.onnx", "--training-model", "");
  find(given.optimizer_model, "optimizer_model.onnx", "--optimizer-model",
       "; training needs an optimizer model, which generate_artifacts(optimizer=...) writes");
  find(given.checkpoint, "checkpoint", "--start", "");
  if (!given.eval_model.empty()) {
    find(given.eval_model, "", "", "");
  } else if (const fs::path eval = fs::path(folder) / "eval_model.onnx"; fs::exists(eval)) {
    given.eval_model = eval;
  }
  return given;
}

Trainer::Trainer(ArtifactPaths paths, const std::string& checkpoint, int threads)
    : paths_(std::move(paths)),
      threads_(threads),
      env_(ORT_LOGGING_LEVEL_ERROR, "tenon"),
      checkpoint_(Load(checkpoint)) {
  const nlohmann::ordered_json description = DescribeModel(paths_.training_model, {});
  training_inputs_ = InputsOf(description);
  is_random_ = HasRandomOperators(description);
}

void Trainer::Open(uint64_t seed) {
  const Progress progress("loading " + paths_.training_model);
  Ort::SetSeed(static_cast<int64_t>(seed));
  Ort::SessionOptions options;
  if (threads_ > 0) options.SetIntraOpNumThreads(threads_);
  std::optional<std::string> eval;
  if (!paths_.eval_model.empty()) eval = paths_.eval_model;
  // The library's errors name the model, unless it is the training model and the checkpoint that do
  // not belong together.
  const auto is_named = [&](const std::string& text, const std::string& path) {
    return !path.empty() && text.find(path) != text.npos;
  };
  try {
    session_.emplace(env_, options, checkpoint_, paths_.training_model, eval,
                     paths_.optimizer_model);
  } catch (const Ort::Exception& exception) {
    const std::string text = exception.what();
    const bool has_path =
        is_named(text, paths_.eval_model) || is_named(text, paths_.optimizer_model);
    throw Error(kExitFailure, has_path ? text : WithPath(paths_.training_model, text));
  }
  has_schedule_ = false;
}

std::vector<ValueSpec> Trainer::TrainingInputs() {
  return Select(training_inputs_, session_->InputNames(true));
}

std::vector<ValueSpec> Trainer::EvalInputs() {
  return Select(InputsOf(DescribeModel(paths_.eval_model, {})), session_->InputNames(false));
}

double Trainer::TrainStep(std::vector<Array> batch) {
  return WithErrorsOf(paths_.training_model, [&] {
    return LossOf(session_->TrainStep(ToValues(batch)), paths_.training_model);
  });
}

double Trainer::EvalStep(std::vector<Array> batch) {
  return WithErrorsOf(paths_.eval_model, [&] {
    return LossOf(session_->EvalStep(ToValues(batch)), paths_.eval_model);
  });
}

void Trainer::OptimizerStep() {
  WithErrorsOf(paths_.optimizer_model, [&] {
    session_->OptimizerStep();
    session_->LazyResetGrad();
    if (has_schedule_) session_->SchedulerStep();
  });
}

void Trainer::SetLearningRate(float rate) { session_->SetLearningRate(rate); }

void Trainer::SetLinearSchedule(int64_t warmup, int64_t total, float rate) {
  session_->RegisterLinearLRScheduler(warmup, total, rate);
  session_->SchedulerStep();  // for the steps that are already done
  has_schedule_ = true;
}

std::vector<std::string> Trainer::MoreOutputs() {
  std::vector<std::string> names = session_->OutputNames(false);
  if (!names.empty()) names.erase(names.begin());
  return names;
}

void Trainer::Export(const std::string& path, const std::vector<std::string>& outputs) {
  WithErrorsOf(paths_.eval_model, [&] { session_->ExportModelForInferencing(path, outputs); });
}

void Trainer::Save(const std::string& path) {
  WithErrorsOf(path, [&] { Ort::CheckpointState::SaveCheckpoint(checkpoint_, path, true); });
}

}  // namespace tenon::cli
