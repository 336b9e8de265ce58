// The formats of model files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tenon {

enum class ModelFormat : uint8_t {
  // ORT for a file whose name ends in ".ort" and for bytes that say so at their start, else ONNX.
  kUnspecified,
  kOnnx,  // a ModelProto, in Protocol Buffers
  kOrt,   // ONNX Runtime's format, in FlatBuffers
};

// Whether the name of a file ends in ".ort", in upper or lower case.
bool HasOrtName(std::string_view path);

// Whether these bytes begin like a model in the ORT format.
bool HasOrtIdentifier(std::span<const std::byte> bytes);

}  // namespace tenon
