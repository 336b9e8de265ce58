// Reads any bytes as a model in ONNX Runtime's format. What can be read can be checked and written,
// and what is written in the same format can be read again.
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
  constexpr auto kFormat = tenon::ModelFormat::kOrt;
  const tenon::Result<tenon::Model> model = tenon::ReadModel(bytes, owner, {.format = kFormat});
  if (!model) return 0;
  (void)tenon::CheckModel(*model).ok();
  if (!tenon::WriteModel(*model)) std::abort();
  // A model need not say the types of its values, but a file in this format must.
  const tenon::Result<std::string> written = tenon::WriteModel(*model, {.format = kFormat});
  if (!written) return 0;
  const auto again = std::as_bytes(std::span(*written));
  if (!tenon::ReadModel(again, nullptr, {.format = kFormat})) std::abort();
  return 0;
}
