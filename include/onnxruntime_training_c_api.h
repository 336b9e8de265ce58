// On-device training: trains a model from the artifacts that onnxblock or tenon.training.artifacts
// writes: a training model, an evaluation model, an optimizer model and a checkpoint.
//
//   const OrtTrainingApi* training = api->GetTrainingApi(ORT_API_VERSION);
//   training->LoadCheckpoint("checkpoint", &state);
//   training->CreateTrainingSession(env, options, state, "training_model.onnx", "eval_model.onnx",
//                                   "optimizer_model.onnx", &session);
//   for each batch:
//     training->TrainStep(session, NULL, n, inputs, 1, &loss);
//     training->OptimizerStep(session, NULL);
//     training->LazyResetGrad(session);
//   training->SaveCheckpoint(state, "checkpoint", true);
//
// The rules of onnxruntime_c_api.h hold. A session and its state may be used by one thread at a
// time.
#pragma once

#include <stdbool.h>

#include "onnxruntime_c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// Trains a model. It changes the parameters of its checkpoint state, which must outlive it.
ORT_RUNTIME_CLASS(TrainingSession);
// The parameters of a model, the state of its optimizer, and properties that the user gives names.
ORT_RUNTIME_CLASS(CheckpointState);

// The type of a property: int64_t, float, or a text that ends with a NUL.
typedef enum OrtPropertyType {
  OrtIntProperty = 0,
  OrtFloatProperty = 1,
  OrtStringProperty = 2,
} OrtPropertyType;

// What OrtApi::GetTrainingApi returns.
struct OrtTrainingApi {
  // Reads a checkpoint. Large ones have a second file, <checkpoint_path>.data. Released with
  // ReleaseCheckpointState.
  ORT_API2_STATUS(LoadCheckpoint, const ORTCHAR_T* checkpoint_path,
                  OrtCheckpointState** checkpoint_state);
  // Writes a checkpoint: the parameters, the properties and, if wanted, the optimizer's state.
  // Either the whole file is replaced or, in case of an error, nothing.
  ORT_API2_STATUS(SaveCheckpoint, OrtCheckpointState* checkpoint_state,
                  const ORTCHAR_T* checkpoint_path, const bool include_optimizer_state);
  // Makes a session from the files of its models. The evaluation and the optimizer model may be
  // null; then EvalStep and ExportModelForInferencing, or OptimizerStep, are errors.
  ORT_API2_STATUS(CreateTrainingSession, const OrtEnv* env, const OrtSessionOptions* options,
                  OrtCheckpointState* checkpoint_state, const ORTCHAR_T* train_model_path,
                  const ORTCHAR_T* eval_model_path, const ORTCHAR_T* optimizer_model_path,
                  OrtTrainingSession** out);
  // The same from the bytes of the models, which may be freed afterwards. A model of 0 bytes is
  // none.
  ORT_API2_STATUS(CreateTrainingSessionFromBuffer, const OrtEnv* env,
                  const OrtSessionOptions* options, OrtCheckpointState* checkpoint_state,
                  const void* train_model_data, size_t train_data_length,
                  const void* eval_model_data, size_t eval_data_length,
                  const void* optim_model_data, size_t optim_data_length, OrtTrainingSession** out);
  // The outputs of TrainStep: those of the training model but the gradients.
  ORT_API2_STATUS(TrainingSessionGetTrainingModelOutputCount, const OrtTrainingSession* sess,
                  size_t* out);
  // The outputs of EvalStep. 0 without an evaluation model.
  ORT_API2_STATUS(TrainingSessionGetEvalModelOutputCount, const OrtTrainingSession* sess,
                  size_t* out);
  // The name of such an output, to be freed with `allocator`.
  ORT_API2_STATUS(TrainingSessionGetTrainingModelOutputName, const OrtTrainingSession* sess,
                  size_t index, OrtAllocator* allocator, char** output);
  ORT_API2_STATUS(TrainingSessionGetEvalModelOutputName, const OrtTrainingSession* sess,
                  size_t index, OrtAllocator* allocator, char** output);
  // The next TrainStep overwrites the gradients instead of adding to them.
  ORT_API2_STATUS(LazyResetGrad, OrtTrainingSession* session);
  // Computes the outputs and the gradients.
  // inputs   one for each input that is neither a parameter nor a gradient, in the model's order
  // outputs  all outputs, in the model's order; a null entry is made, another one is written
  ORT_API2_STATUS(TrainStep, OrtTrainingSession* sess, const OrtRunOptions* run_options,
                  size_t inputs_len, const OrtValue* const* inputs, size_t outputs_len,
                  OrtValue** outputs);
  // Runs the evaluation model with the current parameters; inputs and outputs as of TrainStep.
  ORT_API2_STATUS(EvalStep, const OrtTrainingSession* sess, const OrtRunOptions* run_options,
                  size_t inputs_len, const OrtValue* const* inputs, size_t outputs_len,
                  OrtValue** outputs);
  // The learning rate of the next OptimizerStep; 0.001 at first. A scheduler changes it again.
  ORT_API2_STATUS(SetLearningRate, OrtTrainingSession* sess, float learning_rate);
  ORT_API2_STATUS(GetLearningRate, OrtTrainingSession* sess, float* learning_rate);
  // Changes the parameters by the gradients.
  ORT_API2_STATUS(OptimizerStep, OrtTrainingSession* sess, const OrtRunOptions* run_options);
  // A schedule that lets the learning rate rise from 0 to `initial_lr` in the first
  // `warmup_step_count` steps, and then fall to 0 until step `total_step_count`.
  ORT_API2_STATUS(RegisterLinearLRScheduler, OrtTrainingSession* sess,
                  const int64_t warmup_step_count, const int64_t total_step_count,
                  const float initial_lr);
  // Sets the learning rate by the schedule. To be called after OptimizerStep.
  ORT_API2_STATUS(SchedulerStep, OrtTrainingSession* sess);
  // How many elements the parameters have, or those that are trained.
  ORT_API2_STATUS(GetParametersSize, OrtTrainingSession* sess, size_t* out, bool trainable_only);
  // Copies the parameters, one after the other, into a float tensor of that size, or from it.
  ORT_API2_STATUS(CopyParametersToBuffer, OrtTrainingSession* sess, OrtValue* parameters_buffer,
                  bool trainable_only);
  ORT_API2_STATUS(CopyBufferToParameters, OrtTrainingSession* sess, OrtValue* parameters_buffer,
                  bool trainable_only);
  ORT_CLASS_RELEASE(TrainingSession);
  ORT_CLASS_RELEASE(CheckpointState);
  // Writes a model for inference: the part of the evaluation model that makes the named outputs,
  // with the parameters as initializers.
  ORT_API2_STATUS(ExportModelForInferencing, OrtTrainingSession* sess,
                  const ORTCHAR_T* inference_model_path, size_t graph_outputs_len,
                  const char* const* graph_output_names);
  // Random operators without an attribute `seed`, in sessions that are created from now on, get
  // numbers that follow from this seed and from the order in which the sessions are created.
  ORT_API2_STATUS(SetSeed, const int64_t seed);
  // The inputs of TrainStep and EvalStep, and their names, to be freed with `allocator`.
  ORT_API2_STATUS(TrainingSessionGetTrainingModelInputCount, const OrtTrainingSession* sess,
                  size_t* out);
  ORT_API2_STATUS(TrainingSessionGetEvalModelInputCount, const OrtTrainingSession* sess,
                  size_t* out);
  ORT_API2_STATUS(TrainingSessionGetTrainingModelInputName, const OrtTrainingSession* sess,
                  size_t index, OrtAllocator* allocator, char** output);
  ORT_API2_STATUS(TrainingSessionGetEvalModelInputName, const OrtTrainingSession* sess,
                  size_t index, OrtAllocator* allocator, char** output);
  // Gives a property its value; an earlier one of that name is replaced.
  ORT_API2_STATUS(AddProperty, OrtCheckpointState* checkpoint_state, const char* property_name,
                  enum OrtPropertyType property_type, void* property_value);
  // The value of a property, to be freed with `allocator`.
  ORT_API2_STATUS(GetProperty, const OrtCheckpointState* checkpoint_state,
                  const char* property_name, OrtAllocator* allocator,
                  enum OrtPropertyType* property_type, void** property_value);
  // Reads a checkpoint from memory, which may be freed afterwards. It has no second file.
  ORT_API2_STATUS(LoadCheckpointFromBuffer, const void* checkpoint_buffer, const size_t num_bytes,
                  OrtCheckpointState** checkpoint_state);
  // Type and shape of a parameter, to be freed with ReleaseTensorTypeAndShapeInfo.
  ORT_API2_STATUS(GetParameterTypeAndShape, const OrtCheckpointState* checkpoint_state,
                  const char* parameter_name, OrtTensorTypeAndShapeInfo** parameter_type_and_shape);
  // Copies a tensor of the same type and shape into a parameter.
  ORT_API2_STATUS(UpdateParameter, OrtCheckpointState* checkpoint_state, const char* parameter_name,
                  OrtValue* parameter);
  // A copy of a parameter in memory of `allocator`, to be freed with ReleaseValue.
  ORT_API2_STATUS(GetParameter, const OrtCheckpointState* checkpoint_state,
                  const char* parameter_name, OrtAllocator* allocator, OrtValue** parameter);
};

typedef struct OrtTrainingApi OrtTrainingApi;

#ifdef __cplusplus
}
#endif
