// Reads bytes as a checkpoint of on-device training.
#include <cstddef>
#include <cstdint>
#include <span>

#include "training/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)tenon::ReadCheckpoint(std::as_bytes(std::span(data, size)));
  return 0;
}
