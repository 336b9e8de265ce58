// OrtCheckpointState.
#pragma once

#include <onnxruntime_training_c_api.h>

#include "training/checkpoint.h"

struct OrtCheckpointState {
  tenon::Checkpoint checkpoint;
};
