// On-device training in C++: onnxruntime_training_c_api.h with objects that release themselves and
// errors as Ort::Exception. To be included in place of onnxruntime_cxx_api.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "onnxruntime_cxx_api.h"
#include "onnxruntime_training_c_api.h"

namespace Ort {

// The table of on-device training.
inline const OrtTrainingApi& GetTrainingApi() {
  return detail::SubTable(GetApi().GetTrainingApi(ORT_API_VERSION), "OrtTrainingApi");
}

}  // namespace Ort

// Where a release of an object of the C interface is looked for.
inline void OrtRelease(OrtTrainingSession* session) noexcept {
  Ort::GetTrainingApi().ReleaseTrainingSession(session);
}
inline void OrtRelease(OrtCheckpointState* state) noexcept {
  Ort::GetTrainingApi().ReleaseCheckpointState(state);
}

namespace Ort {

using Property = std::variant<int64_t, float, std::string>;

// The parameters of a model, the state of its optimizer, and properties. It outlives the training
// session that it is passed to.
class CheckpointState : public detail::Base<OrtCheckpointState> {
 public:
  CheckpointState() = delete;
  // Takes the object.
  CheckpointState(OrtCheckpointState* state) : detail::Base<OrtCheckpointState>(state) {}  // NOLINT

  static CheckpointState LoadCheckpoint(const std::basic_string<ORTCHAR_T>& path_to_checkpoint) {
    OrtCheckpointState* state = nullptr;
    ThrowOnError(GetTrainingApi().LoadCheckpoint(path_to_checkpoint.c_str(), &state));
    return CheckpointState(state);
  }
  static CheckpointState LoadCheckpointFromBuffer(const std::vector<uint8_t>& buffer) {
    OrtCheckpointState* state = nullptr;
    ThrowOnError(GetTrainingApi().LoadCheckpointFromBuffer(buffer.data(), buffer.size(), &state));
    return CheckpointState(state);
  }
  static void SaveCheckpoint(const CheckpointState& checkpoint_state,
                             const std::basic_string<ORTCHAR_T>& path_to_checkpoint,
                             const bool include_optimizer_state = false) {
    OrtCheckpointState* const state = checkpoint_state;
    ThrowOnError(GetTrainingApi().SaveCheckpoint(state, path_to_checkpoint.c_str(),
                                                 include_optimizer_state));
  }

  void AddProperty(const std::string& property_name, const Property& property_value) {
    const auto add = [&](OrtPropertyType type, const void* value) {
      ThrowOnError(
          GetTrainingApi().AddProperty(p_, property_name.c_str(), type, const_cast<void*>(value)));
    };
    if (const auto* const text = std::get_if<std::string>(&property_value)) {
      add(OrtStringProperty, text->c_str());
    } else if (const auto* const integer = std::get_if<int64_t>(&property_value)) {
      add(OrtIntProperty, integer);
    } else {
      add(OrtFloatProperty, &std::get<float>(property_value));
    }
  }
  Property GetProperty(const std::string& property_name) {
    AllocatorWithDefaultOptions allocator;
    OrtPropertyType type = OrtIntProperty;
    void* value = nullptr;
    ThrowOnError(GetTrainingApi().GetProperty(p_, property_name.c_str(), allocator, &type, &value));
    const std::unique_ptr<void, detail::AllocatedFree> owned(value,
                                                             detail::AllocatedFree(allocator));
    switch (type) {
      case OrtIntProperty:
        return *static_cast<int64_t*>(value);
      case OrtFloatProperty:
        return *static_cast<float*>(value);
      default:
        return std::string(static_cast<const char*>(value));
    }
  }

  void UpdateParameter(const std::string& parameter_name, const Value& parameter) {
    OrtValue* const value = const_cast<OrtValue*>(static_cast<const OrtValue*>(parameter));
    ThrowOnError(GetTrainingApi().UpdateParameter(p_, parameter_name.c_str(), value));
  }
  Value GetParameter(const std::string& parameter_name) {
    AllocatorWithDefaultOptions allocator;
    OrtValue* parameter = nullptr;
    ThrowOnError(GetTrainingApi().GetParameter(p_, parameter_name.c_str(), allocator, &parameter));
    return Value{parameter};
  }
};

// Trains a model from its artifacts.
class TrainingSession : public detail::Base<OrtTrainingSession> {
 public:
  // Without an evaluation or an optimizer model, EvalStep and ExportModelForInferencing, or
  // OptimizerStep, throw.
  TrainingSession(
      const Env& env, const SessionOptions& session_options, CheckpointState& checkpoint_state,
      const std::basic_string<ORTCHAR_T>& train_model_path,
      const std::optional<std::basic_string<ORTCHAR_T>>& eval_model_path = std::nullopt,
      const std::optional<std::basic_string<ORTCHAR_T>>& optimizer_model_path = std::nullopt) {
    ThrowOnError(GetTrainingApi().CreateTrainingSession(
        env, session_options, checkpoint_state, train_model_path.c_str(),
        eval_model_path ? eval_model_path->c_str() : nullptr,
        optimizer_model_path ? optimizer_model_path->c_str() : nullptr, &p_));
    DescribeOutputs();
  }
  TrainingSession(const Env& env, const SessionOptions& session_options,
                  CheckpointState& checkpoint_state, const std::vector<uint8_t>& train_model_data,
                  const std::vector<uint8_t>& eval_model_data = {},
                  const std::vector<uint8_t>& optim_model_data = {}) {
    ThrowOnError(GetTrainingApi().CreateTrainingSessionFromBuffer(
        env, session_options, checkpoint_state, train_model_data.data(), train_model_data.size(),
        eval_model_data.data(), eval_model_data.size(), optim_model_data.data(),
        optim_model_data.size(), &p_));
    DescribeOutputs();
  }

  // Returns the outputs of the training model but the gradients, which the session keeps.
  std::vector<Value> TrainStep(const std::vector<Value>& input_values) {
    std::vector<Value> outputs = NoValues(training_outputs_);
    ThrowOnError(GetTrainingApi().TrainStep(p_, nullptr, input_values.size(), In(input_values),
                                            outputs.size(), Out(outputs)));
    return outputs;
  }
  // The next TrainStep overwrites the gradients instead of adding to them.
  void LazyResetGrad() { ThrowOnError(GetTrainingApi().LazyResetGrad(p_)); }
  std::vector<Value> EvalStep(const std::vector<Value>& input_values) {
    std::vector<Value> outputs = NoValues(eval_outputs_);
    ThrowOnError(GetTrainingApi().EvalStep(p_, nullptr, input_values.size(), In(input_values),
                                           outputs.size(), Out(outputs)));
    return outputs;
  }
  void OptimizerStep() { ThrowOnError(GetTrainingApi().OptimizerStep(p_, nullptr)); }

  void SetLearningRate(float learning_rate) {
    ThrowOnError(GetTrainingApi().SetLearningRate(p_, learning_rate));
  }
  float GetLearningRate() const {
    float rate = 0;
    ThrowOnError(GetTrainingApi().GetLearningRate(p_, &rate));
    return rate;
  }
  void RegisterLinearLRScheduler(int64_t warmup_step_count, int64_t total_step_count,
                                 float initial_lr) {
    ThrowOnError(GetTrainingApi().RegisterLinearLRScheduler(p_, warmup_step_count, total_step_count,
                                                            initial_lr));
  }
  void SchedulerStep() { ThrowOnError(GetTrainingApi().SchedulerStep(p_)); }

  void ExportModelForInferencing(const std::basic_string<ORTCHAR_T>& inference_model_path,
                                 const std::vector<std::string>& graph_output_names) {
    std::vector<const char*> names;
    for (const std::string& name : graph_output_names) names.push_back(name.c_str());
    ThrowOnError(GetTrainingApi().ExportModelForInferencing(p_, inference_model_path.c_str(),
                                                            names.size(), names.data()));
  }

  std::vector<std::string> InputNames(const bool training) {
    return Names(training ? GetTrainingApi().TrainingSessionGetTrainingModelInputCount
                          : GetTrainingApi().TrainingSessionGetEvalModelInputCount,
                 training ? GetTrainingApi().TrainingSessionGetTrainingModelInputName
                          : GetTrainingApi().TrainingSessionGetEvalModelInputName);
  }
  std::vector<std::string> OutputNames(const bool training) {
    return Names(training ? GetTrainingApi().TrainingSessionGetTrainingModelOutputCount
                          : GetTrainingApi().TrainingSessionGetEvalModelOutputCount,
                 training ? GetTrainingApi().TrainingSessionGetTrainingModelOutputName
                          : GetTrainingApi().TrainingSessionGetEvalModelOutputName);
  }

  // A copy of the parameters in one float tensor of rank 1.
  Value ToBuffer(const bool only_trainable) {
    size_t size = 0;
    ThrowOnError(GetTrainingApi().GetParametersSize(p_, &size, only_trainable));
    AllocatorWithDefaultOptions allocator;
    const int64_t shape[] = {static_cast<int64_t>(size)};
    Value buffer = Value::CreateTensor<float>(allocator, shape, 1);
    ThrowOnError(GetTrainingApi().CopyParametersToBuffer(p_, buffer, only_trainable));
    return buffer;
  }
  // Copies all parameters, or those that are trained, from such a tensor, by its size.
  void FromBuffer(Value& buffer) {
    const size_t count = buffer.GetTensorTypeAndShapeInfo().GetElementCount();
    size_t trainable = 0, all = 0;
    ThrowOnError(GetTrainingApi().GetParametersSize(p_, &trainable, true));
    ThrowOnError(GetTrainingApi().GetParametersSize(p_, &all, false));
    ThrowOnError(
        GetTrainingApi().CopyBufferToParameters(p_, buffer, count != all && count == trainable));
  }

 private:
  template <class CountSlot, class NameSlot>
  std::vector<std::string> Names(CountSlot count_slot, NameSlot name_slot) {
    size_t count = 0;
    ThrowOnError(count_slot(p_, &count));
    AllocatorWithDefaultOptions allocator;
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      ThrowOnError(name_slot(p_, i, allocator, &name));
      names.emplace_back(AllocatedStringPtr(name, detail::AllocatedFree(allocator)).get());
    }
    return names;
  }
  void DescribeOutputs() {
    ThrowOnError(
        GetTrainingApi().TrainingSessionGetTrainingModelOutputCount(p_, &training_outputs_));
    ThrowOnError(GetTrainingApi().TrainingSessionGetEvalModelOutputCount(p_, &eval_outputs_));
  }
  static std::vector<Value> NoValues(size_t count) {
    std::vector<Value> values;
    for (size_t i = 0; i < count; ++i) values.emplace_back(nullptr);
    return values;
  }
  // A Value is nothing but its pointer.
  static const OrtValue* const* In(const std::vector<Value>& values) {
    return reinterpret_cast<const OrtValue* const*>(values.data());
  }
  static OrtValue** Out(std::vector<Value>& values) {
    return reinterpret_cast<OrtValue**>(values.data());
  }

  size_t training_outputs_ = 0, eval_outputs_ = 0;
};

// Random operators without an attribute `seed`, in sessions that are created from now on, get
// numbers that follow from this seed.
inline void SetSeed(const int64_t seed) { ThrowOnError(GetTrainingApi().SetSeed(seed)); }

}  // namespace Ort
