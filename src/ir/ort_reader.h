// Reads models in ONNX Runtime's format (.ort).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tenon {

// The name under which the message below refers to the file that it was made from, as if that were
// a file of external data.
inline constexpr std::string_view kOrtElements = "ort";

// The model as a ModelProto, which the reader of ONNX models takes. The elements of its tensors
// stay where they are: each tensor has the position of its elements in `bytes`, which begin at a
// multiple of 8, as external data. Not in the result: the edges, which follow from the names, and
// the saved optimizations, which ONNX Runtime ignores too unless told otherwise. Errors, all kFail
// but the last: another identifier; bytes that are no FlatBuffer, naming the table and its
// position; a format version above 6; elements in other files, of which the format does not store
// the names; more text than the file can hold, because many refer to the same; kNotImplemented for
// fused nodes.
Result<std::string> OrtModelMessage(std::span<const std::byte> bytes);

}  // namespace tenon
