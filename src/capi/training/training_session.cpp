// OrtTrainingSession: the sessions of a model's training, evaluation and optimizer graphs.
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/env.h"
#include "capi/options/run_options.h"
#include "capi/options/session_options.h"
#include "capi/session/fetched_values.h"
#include "capi/session/open_session.h"
#include "capi/training/checkpoint_handle.h"
#include "capi/training/training_session_handle.h"
#include "capi/value/allocator.h"
#include "capi/value/tensor_arguments.h"
#include "ops/tensor/random_numbers.h"
#include "training/inference_model.h"

namespace tenon::capi {
namespace {

template <class Source>
Result<std::unique_ptr<OrtSession>> OpenSession(const OrtEnv& env, const Source& source,
                                                const OrtSessionOptions& options) {
  auto handle = std::make_unique<OrtSession>();
  handle->environment = env.shared;
  TENON_ASSIGN_OR_RETURN(Model model,
                         LoadInTrace(*handle, options, [&] { return LoadModel(source, options); }));
  TENON_RETURN_IF_ERROR(StartSession(*handle, std::move(model), options));
  return handle;
}

// The source of the evaluation model, kept for the export.
std::string KeptSource(const std::string& path) { return path; }
std::vector<std::byte> KeptSource(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

// `eval` and `optimizer` may be null.
template <class Source>
Status MakeSession(const OrtEnv* env, const OrtSessionOptions* options,
                   OrtCheckpointState* checkpoint_state, const Source& train, const Source* eval,
                   const Source* optimizer, OrtTrainingSession** out) {
  TENON_RETURN_IF_NULL(env);
  TENON_RETURN_IF_NULL(checkpoint_state);
  TENON_RETURN_IF_NULL(out);
  *out = nullptr;
  const OrtSessionOptions defaults;
  if (options == nullptr) options = &defaults;
  auto made = std::make_unique<OrtTrainingSession>();
  made->checkpoint = &checkpoint_state->checkpoint;
  TENON_ASSIGN_OR_RETURN(made->train, OpenSession(*env, train, *options));
  TrainingModels models = {.train = *made->train->session};
  if (eval != nullptr) {
    TENON_ASSIGN_OR_RETURN(made->eval, OpenSession(*env, *eval, *options));
    models.eval = made->eval->session.get();
    made->read_eval_model = [source = KeptSource(*eval)] {
      return LoadModel(source, OrtSessionOptions());
    };
  }
  if (optimizer != nullptr) {
    TENON_ASSIGN_OR_RETURN(made->optimizer, OpenSession(*env, *optimizer, *options));
    models.optimizer = made->optimizer->session.get();
  }
  TENON_ASSIGN_OR_RETURN(made->session, TrainingSession::Create(models, *made->checkpoint));
  *out = made.release();
  return OkStatus();
}

// Calls f(session).
template <class Handle, class F>
OrtStatus* OnSession(Handle* handle, F&& f) noexcept {
  return AtBoundary([&]() -> Status {
    if (handle == nullptr) return InvalidArgument("the training session must not be null");
    return f(*handle->session);
  });
}

using Names = std::span<const std::string> (TrainingSession::*)() const;

OrtStatus* CountNames(const OrtTrainingSession* sess, Names names, size_t* out) noexcept {
  return OnSession(sess, [&](const TrainingSession& session) -> Status {
    TENON_RETURN_IF_NULL(out);
    *out = (session.*names)().size();
    return OkStatus();
  });
}

OrtStatus* CopyName(const OrtTrainingSession* sess, Names names, const char* what, size_t index,
                    OrtAllocator* allocator, char** output) noexcept {
  return OnSession(sess, [&](const TrainingSession& session) -> Status {
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(output);
    TENON_RETURN_IF_ERROR(CheckIndex(index, (session.*names)().size(), what));
    TENON_ASSIGN_OR_RETURN(*output, CopyString(allocator, (session.*names)()[index]));
    return OkStatus();
  });
}

const RunOptions& RunOptionsOf(const OrtRunOptions* options) {
  static const RunOptions& defaults = *new RunOptions();
  return options == nullptr ? defaults : options->run;
}

using Step = Status (TrainingSession::*)(const RunOptions&, std::span<const Value>,
                                         std::span<Value>);

OrtStatus* RunStep(OrtTrainingSession* sess, Step step, const OrtRunOptions* run_options,
                   size_t inputs_len, const OrtValue* const* inputs, size_t outputs_len,
                   OrtValue** outputs) noexcept {
  return OnSession(sess, [&](TrainingSession& session) -> Status {
    TENON_RETURN_IF_NULL_ARRAY(inputs, inputs_len);
    TENON_RETURN_IF_NULL_ARRAY(outputs, outputs_len);
    std::vector<Value> feeds, fetches(outputs_len);
    for (size_t i = 0; i < inputs_len; ++i) {
      if (inputs[i] == nullptr) return InvalidArgument("inputs[{}] must not be null", i);
      feeds.push_back(*Unwrap(inputs[i]));
    }
    for (size_t i = 0; i < outputs_len; ++i) {
      if (outputs[i] != nullptr) fetches[i] = *Unwrap(outputs[i]);
    }
    TENON_RETURN_IF_ERROR((session.*step)(RunOptionsOf(run_options), feeds, fetches));
    HandOver(fetches, outputs);
    return OkStatus();
  });
}

std::span<const std::byte> BytesOf(const void* data, size_t length) {
  return {static_cast<const std::byte*>(data), length};
}

}  // namespace

OrtStatus* CreateTrainingSession(const OrtEnv* env, const OrtSessionOptions* options,
                                 OrtCheckpointState* checkpoint_state,
                                 const ORTCHAR_T* train_model_path,
                                 const ORTCHAR_T* eval_model_path,
                                 const ORTCHAR_T* optimizer_model_path,
                                 OrtTrainingSession** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(train_model_path);
    const std::string train = train_model_path;
    const std::string eval = eval_model_path == nullptr ? "" : eval_model_path;
    const std::string optimizer = optimizer_model_path == nullptr ? "" : optimizer_model_path;
    return MakeSession(env, options, checkpoint_state, train,
                       eval_model_path == nullptr ? nullptr : &eval,
                       optimizer_model_path == nullptr ? nullptr : &optimizer, out);
  });
}

OrtStatus* CreateTrainingSessionFromBuffer(const OrtEnv* env, const OrtSessionOptions* options,
                                           OrtCheckpointState* checkpoint_state,
                                           const void* train_model_data, size_t train_data_length,
                                           const void* eval_model_data, size_t eval_data_length,
                                           const void* optim_model_data, size_t optim_data_length,
                                           OrtTrainingSession** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(train_model_data);
    TENON_RETURN_IF_NULL_ARRAY(eval_model_data, eval_data_length);
    TENON_RETURN_IF_NULL_ARRAY(optim_model_data, optim_data_length);
    const auto train = BytesOf(train_model_data, train_data_length),
               eval = BytesOf(eval_model_data, eval_data_length),
               optimizer = BytesOf(optim_model_data, optim_data_length);
    return MakeSession(env, options, checkpoint_state, train, eval.empty() ? nullptr : &eval,
                       optimizer.empty() ? nullptr : &optimizer, out);
  });
}

OrtStatus* TrainingSessionGetTrainingModelOutputCount(const OrtTrainingSession* sess,
                                                      size_t* out) noexcept {
  return CountNames(sess, &TrainingSession::train_outputs, out);
}
OrtStatus* TrainingSessionGetEvalModelOutputCount(const OrtTrainingSession* sess,
                                                  size_t* out) noexcept {
  return CountNames(sess, &TrainingSession::eval_outputs, out);
}
OrtStatus* TrainingSessionGetTrainingModelInputCount(const OrtTrainingSession* sess,
                                                     size_t* out) noexcept {
  return CountNames(sess, &TrainingSession::train_inputs, out);
}
OrtStatus* TrainingSessionGetEvalModelInputCount(const OrtTrainingSession* sess,
                                                 size_t* out) noexcept {
  return CountNames(sess, &TrainingSession::eval_inputs, out);
}

OrtStatus* TrainingSessionGetTrainingModelOutputName(const OrtTrainingSession* sess, size_t index,
                                                     OrtAllocator* allocator,
                                                     char** output) noexcept {
  return CopyName(sess, &TrainingSession::train_outputs, "outputs", index, allocator, output);
}
OrtStatus* TrainingSessionGetEvalModelOutputName(const OrtTrainingSession* sess, size_t index,
                                                 OrtAllocator* allocator, char** output) noexcept {
  return CopyName(sess, &TrainingSession::eval_outputs, "outputs", index, allocator, output);
}
OrtStatus* TrainingSessionGetTrainingModelInputName(const OrtTrainingSession* sess, size_t index,
                                                    OrtAllocator* allocator,
                                                    char** output) noexcept {
  return CopyName(sess, &TrainingSession::train_inputs, "inputs", index, allocator, output);
}
OrtStatus* TrainingSessionGetEvalModelInputName(const OrtTrainingSession* sess, size_t index,
                                                OrtAllocator* allocator, char** output) noexcept {
  return CopyName(sess, &TrainingSession::eval_inputs, "inputs", index, allocator, output);
}

OrtStatus* LazyResetGrad(OrtTrainingSession* session) noexcept {
  return OnSession(session, [](TrainingSession& training) {
    training.ResetGradients();
    return OkStatus();
  });
}

OrtStatus* TrainStep(OrtTrainingSession* sess, const OrtRunOptions* run_options, size_t inputs_len,
                     const OrtValue* const* inputs, size_t outputs_len,
                     OrtValue** outputs) noexcept {
  return RunStep(sess, &TrainingSession::TrainStep, run_options, inputs_len, inputs, outputs_len,
                 outputs);
}

OrtStatus* EvalStep(const OrtTrainingSession* sess, const OrtRunOptions* run_options,
                    size_t inputs_len, const OrtValue* const* inputs, size_t outputs_len,
                    OrtValue** outputs) noexcept {
  // The slot's type says const; the handle is the client's own, which is not.
  return RunStep(const_cast<OrtTrainingSession*>(sess), &TrainingSession::EvalStep, run_options,
                 inputs_len, inputs, outputs_len, outputs);
}

OrtStatus* OptimizerStep(OrtTrainingSession* sess, const OrtRunOptions* run_options) noexcept {
  return OnSession(sess, [&](TrainingSession& session) {
    return session.OptimizerStep(RunOptionsOf(run_options));
  });
}

OrtStatus* SetLearningRate(OrtTrainingSession* sess, float learning_rate) noexcept {
  return OnSession(
      sess, [&](TrainingSession& session) { return session.SetLearningRate(learning_rate); });
}

OrtStatus* GetLearningRate(OrtTrainingSession* sess, float* learning_rate) noexcept {
  return OnSession(sess, [&](TrainingSession& session) -> Status {
    TENON_RETURN_IF_NULL(learning_rate);
    TENON_ASSIGN_OR_RETURN(*learning_rate, session.learning_rate());
    return OkStatus();
  });
}

OrtStatus* RegisterLinearLRScheduler(OrtTrainingSession* sess, const int64_t warmup_step_count,
                                     const int64_t total_step_count,
                                     const float initial_lr) noexcept {
  return OnSession(sess, [&](TrainingSession& session) {
    return session.SetLinearSchedule(warmup_step_count, total_step_count, initial_lr);
  });
}

OrtStatus* SchedulerStep(OrtTrainingSession* sess) noexcept {
  return OnSession(sess, [](TrainingSession& session) { return session.ScheduleStep(); });
}

OrtStatus* GetParametersSize(OrtTrainingSession* sess, size_t* out, bool trainable_only) noexcept {
  return OnSession(sess, [&](TrainingSession& session) -> Status {
    TENON_RETURN_IF_NULL(out);
    *out = static_cast<size_t>(session.ParameterCount(trainable_only));
    return OkStatus();
  });
}

OrtStatus* CopyParametersToBuffer(OrtTrainingSession* sess, OrtValue* parameters_buffer,
                                  bool trainable_only) noexcept {
  return OnSession(sess, [&](TrainingSession& session) -> Status {
    TENON_ASSIGN_OR_RETURN(Tensor* const buffer, TensorOf(parameters_buffer));
    return session.CopyParametersTo(*buffer, trainable_only);
  });
}

OrtStatus* CopyBufferToParameters(OrtTrainingSession* sess, OrtValue* parameters_buffer,
                                  bool trainable_only) noexcept {
  return OnSession(sess, [&](TrainingSession& session) -> Status {
    TENON_ASSIGN_OR_RETURN(const Tensor* const buffer, TensorOf(parameters_buffer));
    return session.CopyParametersFrom(*buffer, trainable_only);
  });
}

OrtStatus* ExportModelForInferencing(OrtTrainingSession* sess,
                                     const ORTCHAR_T* inference_model_path,
                                     size_t graph_outputs_len,
                                     const char* const* graph_output_names) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(sess);
    TENON_RETURN_IF_NULL(inference_model_path);
    TENON_RETURN_IF_NULL(graph_output_names);
    if (!sess->read_eval_model) {
      return InvalidArgument(
          "the training session was made without an evaluation model, from which "
          "models for inference are made");
    }
    std::vector<std::string> outputs;
    for (size_t i = 0; i < graph_outputs_len; ++i) {
      if (graph_output_names[i] == nullptr) {
        return InvalidArgument("graph_output_names[{}] must not be null", i);
      }
      outputs.emplace_back(graph_output_names[i]);
    }
    TENON_ASSIGN_OR_RETURN(Model model, sess->read_eval_model());
    return WriteInferenceModel(std::move(model), outputs, *sess->checkpoint, inference_model_path);
  });
}

OrtStatus* SetSeed(const int64_t seed) noexcept {
  return AtBoundary([&] {
    SetProcessSeed(static_cast<uint64_t>(seed));
    return OkStatus();
  });
}

void ReleaseTrainingSession(OrtTrainingSession* input) noexcept { delete input; }

}  // namespace tenon::capi
