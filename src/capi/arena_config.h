// OrtArenaCfg: settings of an arena.
#pragma once

#include <onnxruntime_c_api.h>

#include <cstddef>

struct OrtArenaCfg {
  size_t max_bytes = 0;  // 0: no limit
};
