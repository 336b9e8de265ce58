#include "on_device_training.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tenon_training_c_api.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gil.h"
#include "options.h"
#include "value.h"

namespace tenon::python {
namespace {

struct ReleaseState {
  void operator()(OrtCheckpointState* state) const { TrainingApi().ReleaseCheckpointState(state); }
};
struct ReleaseTraining {
  void operator()(OrtTrainingSession* session) const {
    const WithoutGil other_threads_run;
    TrainingApi().ReleaseTrainingSession(session);
  }
};

// Calls a function without the GIL and raises its error.
template <class Function>
void CheckLong(Function function) {
  OrtStatus* status = nullptr;
  {
    const WithoutGil other_threads_run;
    status = function();
  }
  Check(status);
}

class TrainingState {
 public:
  static TrainingState Load(const std::string& path) {
    OrtCheckpointState* state = nullptr;
    CheckLong([&] { return TrainingApi().LoadCheckpoint(path.c_str(), &state); });
    return TrainingState(state);
  }
  static TrainingState LoadBytes(nb::bytes bytes) {
    OrtCheckpointState* state = nullptr;
    Check(TrainingApi().LoadCheckpointFromBuffer(bytes.c_str(), bytes.size(), &state));
    return TrainingState(state);
  }

  static TrainingState Create(const std::vector<std::string>& names,
                              const std::vector<nb::object>& values,
                              const std::vector<bool>& is_trained) {
    std::vector<const char*> texts;
    std::vector<const OrtValue*> tensors;
    const auto flags = std::make_unique<bool[]>(is_trained.size());
    for (size_t i = 0; i < names.size(); ++i) {
      texts.push_back(names[i].c_str());
      tensors.push_back(nb::cast<const Value&>(values.at(i)).get());
      flags[i] = is_trained.at(i);
    }
    OrtCheckpointState* state = nullptr;
    Check(Experimental<TenonCreateCheckpoint>(TENON_CREATE_CHECKPOINT)(
        texts.data(), tensors.data(), flags.get(), texts.size(), &state));
    return TrainingState(state);
  }

  static TrainingState CreateNominal(const std::vector<std::string>& names,
                                     const std::vector<bool>& is_trained) {
    std::vector<const char*> texts;
    const auto flags = std::make_unique<bool[]>(names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      texts.push_back(names[i].c_str());
      flags[i] = is_trained.at(i);
    }
    OrtCheckpointState* state = nullptr;
    Check(Experimental<TenonCreateNominalCheckpoint>(TENON_CREATE_NOMINAL_CHECKPOINT)(
        texts.data(), flags.get(), texts.size(), &state));
    return TrainingState(state);
  }

  OrtCheckpointState* get() const { return state_.get(); }

  void Save(const std::string& path, bool with_optimizer_state) const {
    CheckLong(
        [&] { return TrainingApi().SaveCheckpoint(get(), path.c_str(), with_optimizer_state); });
  }

  std::vector<std::string> ParameterNames() const {
    return Names(TENON_CHECKPOINT_PARAMETER_NAMES);
  }
  std::vector<std::string> PropertyNames() const { return Names(TENON_CHECKPOINT_PROPERTY_NAMES); }

  Value Parameter(const std::string& name) const {
    return Value(
        Make<ValueHandle>(TrainingApi().GetParameter, Const(), name.c_str(), DefaultAllocator()));
  }
  void SetParameter(const std::string& name, const Value& value) const {
    Check(TrainingApi().UpdateParameter(get(), name.c_str(), value.get()));
  }
  bool IsTrained(const std::string& name) const {
    return Get<bool>(Experimental<TenonParameterIsTrained>(TENON_PARAMETER_IS_TRAINED), Const(),
                     name.c_str());
  }

  nb::object Property(const std::string& name) const {
    OrtPropertyType type = OrtIntProperty;
    void* value = nullptr;
    OrtAllocator* const allocator = DefaultAllocator();
    Check(TrainingApi().GetProperty(get(), name.c_str(), allocator, &type, &value));
    if (type == OrtStringProperty) return nb::cast(TakeString(static_cast<char*>(value)));
    const nb::object number = type == OrtIntProperty ? nb::cast(*static_cast<int64_t*>(value))
                                                     : nb::cast(*static_cast<float*>(value));
    allocator->Free(allocator, value);
    return number;
  }
  void SetProperty(const std::string& name, nb::handle value) const {
    if (PyFloat_Check(value.ptr())) {
      auto number = nb::cast<float>(value);
      return Add(name, OrtFloatProperty, &number);
    }
    if (PyLong_Check(value.ptr())) {
      auto number = nb::cast<int64_t>(value);
      return Add(name, OrtIntProperty, &number);
    }
    if (!PyUnicode_Check(value.ptr())) {
      throw nb::type_error("a property is an int, a float or a str");
    }
    auto text = nb::cast<std::string>(value);
    Add(name, OrtStringProperty, text.data());
  }

 private:
  explicit TrainingState(OrtCheckpointState* state) : state_(state) {}
  const OrtCheckpointState* Const() const { return get(); }
  void Add(const std::string& name, OrtPropertyType type, void* value) const {
    Check(TrainingApi().AddProperty(get(), name.c_str(), type, value));
  }
  std::vector<std::string> Names(const char* function) const {
    char** names = nullptr;
    size_t count = 0;
    OrtAllocator* const allocator = DefaultAllocator();
    Check(Experimental<TenonCheckpointNames>(function)(get(), allocator, &names, &count));
    std::vector<std::string> taken;
    for (size_t i = 0; i < count; ++i) taken.push_back(TakeString(names[i]));
    allocator->Free(allocator, names);
    return taken;
  }

  std::unique_ptr<OrtCheckpointState, ReleaseState> state_;
};

class OnDeviceSession {
 public:
  OnDeviceSession(nb::object state, const std::string& train,
                  const std::optional<std::string>& eval,
                  const std::optional<std::string>& optimizer, const SessionOptions& options)
      : environment_(Environment()), state_(std::move(state)) {
    const SessionOptionsHandle own = options.CloneWith(nullptr);
    OrtCheckpointState* const checkpoint = nb::cast<const TrainingState&>(state_).get();
    OrtTrainingSession* session = nullptr;
    const auto path = [](const std::optional<std::string>& text) {
      return text ? text->c_str() : nullptr;
    };
    CheckLong([&] {
      return TrainingApi().CreateTrainingSession(environment_.get(), own.get(), checkpoint,
                                                 train.c_str(), path(eval), path(optimizer),
                                                 &session);
    });
    session_.reset(session);
  }

  nb::list Step(bool trains, const std::vector<nb::object>& inputs) const {
    std::vector<const OrtValue*> fed;
    for (const nb::object& input : inputs) fed.push_back(nb::cast<const Value&>(input).get());
    size_t count = 0;
    const auto counts = trains ? TrainingApi().TrainingSessionGetTrainingModelOutputCount
                               : TrainingApi().TrainingSessionGetEvalModelOutputCount;
    Check(counts(session_.get(), &count));
    std::vector<OrtValue*> fetched(count);
    CheckLong([&] {
      return trains ? TrainingApi().TrainStep(session_.get(), nullptr, fed.size(), fed.data(),
                                              count, fetched.data())
                    : TrainingApi().EvalStep(session_.get(), nullptr, fed.size(), fed.data(), count,
                                             fetched.data());
    });
    nb::list outputs;
    for (OrtValue* const value : fetched) outputs.append(nb::cast(Value(ValueHandle(value))));
    return outputs;
  }

  void ResetGradients() const { Check(TrainingApi().LazyResetGrad(session_.get())); }
  void OptimizerStep() const {
    CheckLong([&] { return TrainingApi().OptimizerStep(session_.get(), nullptr); });
  }
  void SetLearningRate(float rate) const {
    Check(TrainingApi().SetLearningRate(session_.get(), rate));
  }
  float LearningRate() const { return Get<float>(TrainingApi().GetLearningRate, session_.get()); }
  void SetLinearSchedule(int64_t warmup_steps, int64_t total_steps, float initial_rate) const {
    Check(TrainingApi().RegisterLinearLRScheduler(session_.get(), warmup_steps, total_steps,
                                                  initial_rate));
  }
  void ScheduleStep() const { Check(TrainingApi().SchedulerStep(session_.get())); }

  size_t ParameterCount(bool trained_only) const {
    size_t count = 0;
    Check(TrainingApi().GetParametersSize(session_.get(), &count, trained_only));
    return count;
  }
  void CopyTo(const Value& buffer, bool trained_only) const {
    Check(TrainingApi().CopyParametersToBuffer(session_.get(), buffer.get(), trained_only));
  }
  void CopyFrom(const Value& buffer, bool trained_only) const {
    Check(TrainingApi().CopyBufferToParameters(session_.get(), buffer.get(), trained_only));
  }
  void Export(const std::string& path, const std::vector<std::string>& outputs) const {
    std::vector<const char*> names;
    for (const std::string& output : outputs) names.push_back(output.c_str());
    CheckLong([&] {
      return TrainingApi().ExportModelForInferencing(session_.get(), path.c_str(), names.size(),
                                                     names.data());
    });
  }
  // None if the parameter has none.
  nb::object Gradient(const std::string& parameter) const {
    OrtValue* value = nullptr;
    Check(Experimental<TenonTrainingSessionGradient>(TENON_TRAINING_SESSION_GRADIENT)(
        session_.get(), parameter.c_str(), &value));
    return value == nullptr ? nb::none() : nb::cast(Value(ValueHandle(value)));
  }

  std::vector<std::string> InputNames(bool trains) const {
    return trains ? Names(TrainingApi().TrainingSessionGetTrainingModelInputCount,
                          TrainingApi().TrainingSessionGetTrainingModelInputName)
                  : Names(TrainingApi().TrainingSessionGetEvalModelInputCount,
                          TrainingApi().TrainingSessionGetEvalModelInputName);
  }
  std::vector<std::string> OutputNames(bool trains) const {
    return trains ? Names(TrainingApi().TrainingSessionGetTrainingModelOutputCount,
                          TrainingApi().TrainingSessionGetTrainingModelOutputName)
                  : Names(TrainingApi().TrainingSessionGetEvalModelOutputCount,
                          TrainingApi().TrainingSessionGetEvalModelOutputName);
  }

 private:
  template <class CountSlot, class NameSlot>
  std::vector<std::string> Names(CountSlot count_slot, NameSlot name_slot) const {
    size_t count = 0;
    Check(count_slot(session_.get(), &count));
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      Check(name_slot(session_.get(), i, DefaultAllocator(), &name));
      names.push_back(TakeString(name));
    }
    return names;
  }

  std::shared_ptr<OrtEnv> environment_;
  nb::object state_;  // outlives the session
  std::unique_ptr<OrtTrainingSession, ReleaseTraining> session_;
};

}  // namespace

void BindOnDeviceTraining(nb::module_& module) {
  nb::class_<TrainingState>(module, "_CheckpointState")
      .def_static("create", &TrainingState::Create)
      .def_static("create_nominal", &TrainingState::CreateNominal)
      .def_static("load", &TrainingState::Load)
      .def_static("load_bytes", &TrainingState::LoadBytes)
      .def("save", &TrainingState::Save)
      .def("parameter_names", &TrainingState::ParameterNames)
      .def("property_names", &TrainingState::PropertyNames)
      .def("parameter", &TrainingState::Parameter)
      .def("set_parameter", &TrainingState::SetParameter)
      .def("is_trained", &TrainingState::IsTrained)
      .def("property", &TrainingState::Property)
      .def("set_property", &TrainingState::SetProperty);
  nb::class_<OnDeviceSession>(module, "_TrainingSession")
      .def(nb::init<nb::object, const std::string&, const std::optional<std::string>&,
                    const std::optional<std::string>&, const SessionOptions&>(),
           nb::arg("state"), nb::arg("train"), nb::arg("eval").none(), nb::arg("optimizer").none(),
           nb::arg("options"))
      .def("step", &OnDeviceSession::Step)
      .def("reset_gradients", &OnDeviceSession::ResetGradients)
      .def("optimizer_step", &OnDeviceSession::OptimizerStep)
      .def("set_learning_rate", &OnDeviceSession::SetLearningRate)
      .def("learning_rate", &OnDeviceSession::LearningRate)
      .def("set_linear_schedule", &OnDeviceSession::SetLinearSchedule)
      .def("schedule_step", &OnDeviceSession::ScheduleStep)
      .def("parameter_count", &OnDeviceSession::ParameterCount)
      .def("copy_to", &OnDeviceSession::CopyTo)
      .def("copy_from", &OnDeviceSession::CopyFrom)
      .def("export", &OnDeviceSession::Export)
      .def("gradient", &OnDeviceSession::Gradient)
      .def("input_names", &OnDeviceSession::InputNames)
      .def("output_names", &OnDeviceSession::OutputNames);
}

}  // namespace tenon::python
