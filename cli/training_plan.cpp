#include "training_plan.h"

#include <numeric>
#include <random>
#include <utility>

#include "text.h"

namespace tenon::cli {
namespace {

constexpr int64_t kDefaultBatch = 32;

// Calls visit(name, option, member, may_change) for each setting; the option is --<name>, and a
// resumed training may have another value if `may_change`.
template <class Plan, class Visit>
void ForEachSetting(const TrainingOptions& options, Plan& plan, const Visit& visit) {
  visit("epochs", options.epochs, plan.epochs, true);
  visit("batch-size", options.batch_size, plan.batch_size, false);
  visit("accumulate", options.accumulate, plan.accumulate, false);
  visit("seed", options.seed, plan.seed, false);
  visit("shuffle", options.shuffle, plan.shuffle, false);
  visit("learning-rate", options.learning_rate, plan.learning_rate, true);
  visit("schedule", options.schedule, plan.schedule, true);
  visit("warmup", options.warmup, plan.warmup, true);
}

std::string PropertyName(const char* name) { return Format("train.{}", name); }

template <class T>
T ReadProperty(Ort::CheckpointState& checkpoint, const char* name, const std::string& path) {
  std::optional<Ort::Property> property;
  try {
    property = checkpoint.GetProperty(PropertyName(name));
  } catch (const Ort::Exception&) {
    Fail(
        "'{}': expected a checkpoint that `tenon train` wrote, got one without the property '{}'; "
        "without --resume it can be the start of a new training",
        path, PropertyName(name));
  }
  if (const T* const value = std::get_if<T>(&*property)) return *value;
  Fail("'{}': the property '{}' has another type than `tenon train` gives it", path,
       PropertyName(name));
}

void CheckPosition(const TrainingPlan& plan) {
  constexpr int64_t kMost = int64_t{1} << 30;  // so that products fit
  if (plan.epoch >= 0 && plan.epoch <= kMost && plan.StepInEpoch() >= 0 &&
      plan.StepInEpoch() < plan.StepsPerEpoch()) {
    return;
  }
  Fail(
      "the checkpoint to resume has done {} epochs and {} steps, which do not belong together: an "
      "epoch has {} steps",
      plan.epoch, plan.step, plan.StepsPerEpoch());
}

}  // namespace

uint64_t TrainingPlan::EpochSeed() const {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;  // seeds of successive epochs lie far apart
  return static_cast<uint64_t>(seed) + kGolden * static_cast<uint64_t>(epoch);
}

std::vector<size_t> TrainingPlan::Order() const {
  std::vector<size_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), size_t{0});
  if (shuffle == 0) return order;
  // Fisher and Yates's. The standard's own shuffle differs between libraries.
  std::mt19937_64 generator(EpochSeed());
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[generator() % i]);
  return order;
}

TrainingPlan NewPlan(const TrainingOptions& options) {
  TrainingPlan plan;
  ForEachSetting(options, plan, [](const char*, const auto& option, auto& member, bool) {
    member = option.value_or(member);
  });
  return plan;
}

TrainingPlan ResumedPlan(const TrainingOptions& options, Ort::CheckpointState& checkpoint,
                         const std::string& path) {
  TrainingPlan plan;
  plan.samples = ReadProperty<int64_t>(checkpoint, "samples", path);
  plan.epoch = ReadProperty<int64_t>(checkpoint, "epoch", path);
  plan.step = ReadProperty<int64_t>(checkpoint, "step", path);
  ForEachSetting(
      options, plan,
      [&]<class T>(const char* name, const std::optional<T>& option, T& member, bool may_change) {
        member = ReadProperty<T>(checkpoint, name, path);
        if (!option || *option == member) return;
        if (!may_change) {
          FailUsage("--{}: expected {}, with which the training of '{}' began, got {}", name,
                    member, path, *option);
        }
        member = *option;
      });
  const auto is_count = [](int64_t number) { return number >= 1 && number <= int64_t{1} << 30; };
  if (!is_count(plan.batch_size) || !is_count(plan.accumulate) || !is_count(plan.epochs)) {
    Fail("'{}': expected numbers of samples, batches and epochs, got {}, {} and {}", path,
         plan.batch_size, plan.accumulate, plan.epochs);
  }
  return plan;
}

void SetSamples(TrainingPlan& plan, size_t samples, std::optional<int64_t> fixed_batch) {
  const auto count = static_cast<int64_t>(samples);
  if (plan.samples != 0 && plan.samples != count) {
    Fail("--data: expected the {} samples with which the training began, got {}", plan.samples,
         count);
  }
  plan.samples = count;
  if (plan.batch_size == 0) plan.batch_size = fixed_batch.value_or(kDefaultBatch);
  if (fixed_batch && *fixed_batch != plan.batch_size) {
    FailUsage("--batch-size: the training model takes {} samples at a time, got {}", *fixed_batch,
              plan.batch_size);
  }
  if (fixed_batch && count % *fixed_batch != 0) {
    Fail(
        "--data: the training model takes {} samples at a time, and {} samples are no multiple of "
        "it",
        *fixed_batch, count);
  }
  CheckPosition(plan);
}

void KeepPlan(const TrainingPlan& plan, Ort::CheckpointState& checkpoint) {
  const auto keep = [&](const char* name, const auto& value) {
    checkpoint.AddProperty(PropertyName(name), value);
  };
  keep("samples", plan.samples);
  keep("epoch", plan.epoch);
  keep("step", plan.step);
  ForEachSetting({}, plan, [&](const char* name, const auto&, const auto& member, bool) {
    keep(name, member);
  });
}

}  // namespace tenon::cli
