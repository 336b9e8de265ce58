// tenon train: trains a model from its artifacts, and saves how far it came.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>

#include "commands.h"
#include "dataset.h"
#include "file.h"
#include "interrupt.h"
#include "progress.h"
#include "text.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

// A mean over samples, from means over batches.
class MeanLoss {
 public:
  void Add(double loss, size_t samples) {
    sum_ += loss * static_cast<double>(samples);
    samples_ += samples;
  }
  double value() const { return sum_ / static_cast<double>(samples_); }
  size_t samples() const { return samples_; }

 private:
  double sum_ = 0;
  size_t samples_ = 0;
};

struct EpochReport {
  int64_t epoch = 0, step = 0;  // done with it
  float learning_rate = 0;      // of the next step
  double loss = 0;
  std::optional<double> validation_loss;
  double seconds = 0;  // of training alone
  double samples_per_second = 0;
};

Json ToJson(const EpochReport& report) {
  Json json = {{"epoch", report.epoch},
               {"step", report.step},
               {"loss", report.loss},
               {"seconds", report.seconds},
               {"samples_per_second", report.samples_per_second},
               {"learning_rate", report.learning_rate}};
  if (report.validation_loss) json["validation_loss"] = *report.validation_loss;
  return json;
}

class Training {
 public:
  explicit Training(const TrainCommand& command)
      : command_(command),
        artifacts_(FindArtifacts(command.artifacts)),
        trainer_(artifacts_, command.resume ? command.checkpoint : artifacts_.checkpoint,
                 command.threads),
        plan_(command.resume
                  ? ResumedPlan(command.options, trainer_.checkpoint(), command.checkpoint)
                  : NewPlan(command.options)) {
    CheckCommand();
    CheckFolderOf(command.checkpoint);
    trainer_.Open(plan_.EpochSeed());
    data_.emplace("--data", command.data, artifacts_.training_model, trainer_.TrainingInputs());
    SetSamples(plan_, data_->samples(), data_->FixedBatch());
    if (!command.validation.empty()) {
      validation_.emplace("--validation", command.validation, artifacts_.eval_model,
                          trainer_.EvalInputs());
    }
    SetRate();
    PrepareExport();
  }

  int Run() {
    const Interrupt interrupt;
    if (plan_.epoch >= plan_.epochs) Note(Format("all {} epochs are done already", plan_.epoch));
    while (plan_.epoch < plan_.epochs && !interrupt.requested()) RunEpoch(interrupt);
    const bool is_interrupted = plan_.epoch < plan_.epochs;
    if (is_interrupted) {
      Save();
    } else if (!command_.export_path.empty()) {
      trainer_.Export(command_.export_path, export_outputs_);
    }
    Report(is_interrupted);
    return is_interrupted ? kExitInterrupted : 0;
  }

 private:
  void CheckCommand() const {
    if (plan_.warmup > 0 && plan_.schedule != kLinear) {
      FailUsage("--warmup: only the schedule '{}' has one; give --schedule {}", kLinear, kLinear);
    }
    if (!command_.export_outputs.empty() && command_.export_path.empty()) {
      FailUsage("--export-output: give the file, too: --export FILE");
    }
    if (!artifacts_.eval_model.empty()) return;
    for (const auto& [option, is_given] : {std::pair("--validation", !command_.validation.empty()),
                                           std::pair("--export", !command_.export_path.empty())}) {
      if (is_given)
        FailUsage("{}: the artifacts have no evaluation model; give --eval-model", option);
    }
  }

  void SetRate() {
    if (plan_.schedule == kLinear) {
      trainer_.SetLinearSchedule(plan_.warmup, plan_.epochs * plan_.StepsPerEpoch(),
                                 plan_.learning_rate);
      CheckScheduleStarts();
    } else {
      trainer_.SetLearningRate(plan_.learning_rate);
    }
  }

  // The schedule counts the optimizer's steps, which may be more than this training's.
  void CheckScheduleStarts() const {
    const float first = plan_.warmup > 0 ? 0 : plan_.learning_rate;
    if (plan_.step > 0 || trainer_.learning_rate() == first) return;
    Fail(
        "--schedule {}: '{}' has the state of an optimizer, whose steps the schedule would count; "
        "start from a checkpoint without it, or choose the schedule 'constant'",
        kLinear, artifacts_.checkpoint);
  }

  // Tries the export, so that a mistake does not waste the training.
  void PrepareExport() {
    if (command_.export_path.empty()) return;
    export_outputs_ =
        command_.export_outputs.empty() ? trainer_.MoreOutputs() : command_.export_outputs;
    if (export_outputs_.empty()) {
      FailUsage(
          "--export: give the names of the model's outputs with --export-output; '{}' has no "
          "output but the loss",
          artifacts_.eval_model);
    }
    const std::string trial = command_.export_path + ".trial";
    trainer_.Export(trial, export_outputs_);
    std::filesystem::remove(trial);
    std::filesystem::remove(trial + ".data");
  }

  void RunEpoch(const Interrupt& interrupt) {
    if (trainer_.is_random() && was_opened_) {
      trainer_.Open(plan_.EpochSeed());
      SetRate();
    }
    was_opened_ = true;
    const std::vector<size_t> order = plan_.Order();
    if (trainer_.is_random()) Repeat(order);
    EpochReport report;
    const double start = NowMs();
    MeanLoss loss;
    if (!Steps(order, interrupt, loss)) return;
    ++plan_.epoch;
    report.seconds = (NowMs() - start) / 1e3;
    report.epoch = plan_.epoch;
    report.step = plan_.step;
    report.loss = loss.value();
    report.samples_per_second = static_cast<double>(loss.samples()) / report.seconds;
    report.learning_rate = trainer_.learning_rate();
    if (validation_) report.validation_loss = Evaluate(interrupt);
    if (plan_.epoch % command_.save_every == 0 || plan_.epoch >= plan_.epochs) Save();
    reports_.push_back(report);
    if (!command_.json) PrintReport(report);
  }

  // Random operators have given what they gave in the epoch's steps that are done. No parameter
  // changes.
  void Repeat(std::span<const size_t> order) {
    for (int64_t batch = 0; batch < plan_.FirstBatch(); ++batch) {
      trainer_.TrainStep(data_->Batch(BatchOf(order, batch)));
    }
    trainer_.ForgetGradients();
  }

  // The rest of the epoch's steps. False if it was interrupted before their end.
  bool Steps(std::span<const size_t> order, const Interrupt& interrupt, MeanLoss& loss) {
    Progress progress(Format("epoch {}/{}", plan_.epoch + 1, plan_.epochs));
    const double start = NowMs();
    int64_t batch = plan_.FirstBatch();
    while (batch < plan_.Batches()) {
      if (interrupt.requested()) return false;
      for (int64_t i = 0; i < plan_.accumulate && batch < plan_.Batches(); ++i, ++batch) {
        const std::span<const size_t> samples = BatchOf(order, batch);
        loss.Add(trainer_.TrainStep(data_->Batch(samples)), samples.size());
      }
      trainer_.OptimizerStep();
      ++plan_.step;
      progress.Set(static_cast<double>(batch) / static_cast<double>(plan_.Batches()));
      progress.Say(Format("loss {:.4g}, {:.0f} samples/s", loss.value(),
                          static_cast<double>(loss.samples()) / (NowMs() - start) * 1e3));
    }
    return true;
  }

  // Nothing if it was interrupted.
  std::optional<double> Evaluate(const Interrupt& interrupt) {
    const Progress progress("evaluating");
    std::vector<size_t> order(validation_->samples());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto size = static_cast<size_t>(validation_->FixedBatch().value_or(plan_.batch_size));
    MeanLoss loss;
    for (size_t first = 0; first < order.size(); first += size) {
      if (interrupt.requested()) return std::nullopt;
      const auto samples = std::span(order).subspan(first, std::min(size, order.size() - first));
      loss.Add(trainer_.EvalStep(validation_->Batch(samples)), samples.size());
    }
    return loss.value();
  }

  std::span<const size_t> BatchOf(std::span<const size_t> order, int64_t batch) const {
    const auto size = static_cast<size_t>(plan_.batch_size);
    const size_t first = static_cast<size_t>(batch) * size;
    return order.subspan(first, std::min(size, order.size() - first));
  }

  void Save() {
    KeepPlan(plan_, trainer_.checkpoint());
    trainer_.Save(command_.checkpoint);
  }

  void PrintReport(const EpochReport& report) const {
    const std::string validation =
        report.validation_loss ? Format(", validation loss {:.6g}", *report.validation_loss) : "";
    Print("epoch {}/{}: loss {:.6g}{}, {:.0f} samples/s\n", report.epoch, plan_.epochs, report.loss,
          validation, report.samples_per_second);
    std::fflush(stdout);  // a log is to show how far the training is
  }

  void Report(bool is_interrupted) const {
    const bool is_exported = !is_interrupted && !command_.export_path.empty();
    if (is_interrupted) {
      Note(Format("interrupted after {} epochs and {} steps; saved '{}'; --resume continues there",
                  plan_.epoch, plan_.step, command_.checkpoint));
    }
    if (command_.json) {
      Json json = {{"samples", plan_.samples},
                   {"batch_size", plan_.batch_size},
                   {"steps_per_epoch", plan_.StepsPerEpoch()},
                   {"epochs", Json::array()},
                   {"interrupted", is_interrupted},
                   {"epoch", plan_.epoch},
                   {"step", plan_.step},
                   {"checkpoint", command_.checkpoint},
                   {"exported", is_exported ? Json(command_.export_path) : Json()}};
      for (const EpochReport& report : reports_) json["epochs"].push_back(ToJson(report));
      return Print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
    }
    if (!reports_.empty()) Print("saved {}\n", command_.checkpoint);
    if (is_exported) Print("saved {}\n", command_.export_path);
  }

  const TrainCommand& command_;
  const ArtifactPaths artifacts_;
  Trainer trainer_;
  TrainingPlan plan_;
  std::optional<Dataset> data_, validation_;
  std::vector<std::string> export_outputs_;
  bool was_opened_ = false;  // for the current epoch's seed
  std::vector<EpochReport> reports_;
};

}  // namespace

int Train(const TrainCommand& command) { return Training(command).Run(); }

}  // namespace tenon::cli
