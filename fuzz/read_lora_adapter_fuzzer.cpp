// Reads any bytes as an adapter and checks that its parts lie within them.
#include <cstdint>
#include <span>

#include "runtime/lora_adapter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  const Result<LoraAdapter> adapter =
      ReadLoraAdapter(std::as_bytes(std::span(data, size)), nullptr);
  if (!adapter) return 0;
  volatile uint8_t byte = 0;
  for (const LoraParameter& parameter : adapter->parameters) {
    const auto* const bytes = static_cast<const uint8_t*>(parameter.tensor.raw());
    for (size_t i = 0; i < parameter.tensor.bytes(); ++i) byte = bytes[i];
  }
  (void)byte;
  return 0;
}
