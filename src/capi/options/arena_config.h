// OrtArenaCfg: settings of an arena.
#pragma once

#include <onnxruntime_c_api.h>

#include "tensor/arena_config.h"

struct OrtArenaCfg {
  tenon::ArenaConfig config;
};
