#include "capi/training/training_queries.h"

#include <tenon_training_c_api.h>

#include <memory>
#include <utility>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/experimental.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/status.h"
#include "capi/training/checkpoint_handle.h"
#include "capi/training/training_session_handle.h"
#include "capi/value/allocator.h"
#include "capi/value/tensor_arguments.h"

namespace tenon::capi {
namespace {

Status AddParameter(Checkpoint& checkpoint, const char* name, Parameter parameter) {
  const auto [place, is_new] = checkpoint.parameters.try_emplace(name, std::move(parameter));
  return is_new ? OkStatus() : InvalidArgument("parameter '{}' is there twice", name);
}

OrtStatus* CreateCheckpoint(const char* const* names, const OrtValue* const* values,
                            const bool* is_trained, size_t count,
                            OrtCheckpointState** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(names, count);
    TENON_RETURN_IF_NULL_ARRAY(values, count);
    TENON_RETURN_IF_NULL_ARRAY(is_trained, count);
    TENON_RETURN_IF_NULL(out);
    auto state = std::make_unique<OrtCheckpointState>();
    for (size_t i = 0; i < count; ++i) {
      if (names[i] == nullptr) return InvalidArgument("names[{}] must not be null", i);
      TENON_ASSIGN_OR_RETURN(const Tensor* const given, TensorOf(values[i]));
      if (given->type() == DataType::kString) {
        return InvalidArgument("parameter '{}': checkpoints have no strings", names[i]);
      }
      TENON_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(given->type(), given->shape()));
      TENON_RETURN_IF_ERROR(CopyElements(*given, copy));
      TENON_RETURN_IF_ERROR(
          AddParameter(state->checkpoint, names[i], Parameter{std::move(copy), is_trained[i]}));
    }
    *out = state.release();
    return OkStatus();
  });
}

OrtStatus* CreateNominalCheckpoint(const char* const* names, const bool* is_trained, size_t count,
                                   OrtCheckpointState** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(names, count);
    TENON_RETURN_IF_NULL_ARRAY(is_trained, count);
    TENON_RETURN_IF_NULL(out);
    auto state = std::make_unique<OrtCheckpointState>();
    state->checkpoint.is_nominal = true;
    for (size_t i = 0; i < count; ++i) {
      if (names[i] == nullptr) return InvalidArgument("names[{}] must not be null", i);
      TENON_RETURN_IF_ERROR(
          AddParameter(state->checkpoint, names[i], Parameter{Tensor(), is_trained[i]}));
    }
    *out = state.release();
    return OkStatus();
  });
}

template <class Entries>
OrtStatus* CopyKeys(const OrtCheckpointState* state, Entries Checkpoint::*entries,
                    OrtAllocator* allocator, char*** names, size_t* count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(state);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(names);
    TENON_RETURN_IF_NULL(count);
    std::vector<std::string_view> keys;
    for (const auto& [key, entry] : state->checkpoint.*entries) keys.push_back(key);
    TENON_ASSIGN_OR_RETURN(*names, CopyStrings(allocator, keys));
    *count = keys.size();
    return OkStatus();
  });
}

OrtStatus* ParameterNames(const OrtCheckpointState* state, OrtAllocator* allocator, char*** names,
                          size_t* count) noexcept {
  return CopyKeys(state, &Checkpoint::parameters, allocator, names, count);
}

OrtStatus* PropertyNames(const OrtCheckpointState* state, OrtAllocator* allocator, char*** names,
                         size_t* count) noexcept {
  return CopyKeys(state, &Checkpoint::properties, allocator, names, count);
}

OrtStatus* ParameterIsTrained(const OrtCheckpointState* state, const char* name,
                              bool* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(state);
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(out);
    const auto found = state->checkpoint.parameters.find(std::string_view(name));
    if (found == state->checkpoint.parameters.end()) {
      return InvalidArgument("the checkpoint has no parameter '{}'", name);
    }
    *out = found->second.is_trained;
    return OkStatus();
  });
}

OrtStatus* GradientOf(const OrtTrainingSession* session, const char* parameter,
                      OrtValue** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session);
    TENON_RETURN_IF_NULL(parameter);
    TENON_RETURN_IF_NULL(out);
    *out = nullptr;
    const Tensor* const gradient = session->session->FindGradient(parameter);
    if (gradient == nullptr) return OkStatus();
    TENON_ASSIGN_OR_RETURN(Tensor copy, gradient->Clone());
    *out = NewHandle<OrtValue>(std::move(copy));
    return OkStatus();
  });
}

}  // namespace

OrtExperimentalFnPtr FindTrainingQuery(std::string_view name) {
  if (name == TENON_CREATE_CHECKPOINT) return Untyped<TenonCreateCheckpoint>(&CreateCheckpoint);
  if (name == TENON_CREATE_NOMINAL_CHECKPOINT) {
    return Untyped<TenonCreateNominalCheckpoint>(&CreateNominalCheckpoint);
  }
  if (name == TENON_CHECKPOINT_PARAMETER_NAMES) {
    return Untyped<TenonCheckpointNames>(&ParameterNames);
  }
  if (name == TENON_CHECKPOINT_PROPERTY_NAMES) {
    return Untyped<TenonCheckpointNames>(&PropertyNames);
  }
  if (name == TENON_PARAMETER_IS_TRAINED) {
    return Untyped<TenonParameterIsTrained>(&ParameterIsTrained);
  }
  if (name == TENON_TRAINING_SESSION_GRADIENT) {
    return Untyped<TenonTrainingSessionGradient>(&GradientOf);
  }
  return nullptr;
}

}  // namespace tenon::capi
