// Reads any bytes as an ONNX model. What can be read can be checked, written, and read again.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "ir/checker.h"
#include "ir/onnx_reader.h"
#include "ir/onnx_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  // The fuzzer owns the bytes for as long as the model lives.
  const auto owner = std::make_shared<int>(0);
  const tenon::Result<tenon::Model> model = tenon::ReadModel(bytes, owner);
  if (!model) return 0;
  (void)tenon::CheckModel(*model).ok();
  const tenon::Result<std::string> written = tenon::WriteModel(*model);
  if (!written) std::abort();
  if (!tenon::ReadModel(std::as_bytes(std::span(*written)), nullptr)) std::abort();
  return 0;
}
