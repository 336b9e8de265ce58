// OrtTrainingSession.
#pragma once

#include <onnxruntime_training_c_api.h>

#include <functional>
#include <memory>

#include "capi/session/session_handle.h"
#include "training/training_session.h"

struct OrtTrainingSession {
  // Of what TrainingModels points to.
  std::unique_ptr<OrtSession> train, eval, optimizer;
  tenon::Checkpoint* checkpoint = nullptr;
  std::function<tenon::Result<tenon::Model>()> read_eval_model;  // null if there is none
  std::unique_ptr<tenon::TrainingSession> session;
};
