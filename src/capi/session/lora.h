// OrtLoraAdapter.
#pragma once

#include <onnxruntime_c_api.h>

#include "runtime/lora_adapter.h"

struct OrtLoraAdapter {
  tenon::LoraAdapter adapter;
};
