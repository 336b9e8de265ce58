// Reads any bytes as each kind of file that the command takes inputs from.
#include <cstdint>
#include <span>

#include "array.h"
#include "npy.h"
#include "text.h"
#include "wav.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::cli;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto attempt = [](auto&& read) {
    try {
      (void)read();
    } catch (const Error& error) {
      if (*error.what() == '\0') __builtin_trap();  // an error says what is wrong
    }
  };
  if (IsNpy(bytes)) attempt([&] { return ReadNpy(bytes, "file"); });
  if (IsNpz(bytes)) attempt([&] { return ReadNpz(bytes, "file"); });
  if (IsWav(bytes)) attempt([&] { return DecodeWav(bytes, "file"); });
  return 0;
}
