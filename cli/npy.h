// NumPy's .npy files, and .npz archives of them.
//
// Formats: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, and ZIP as in
// PKWARE's APPNOTE, stored or deflated, without encryption and ZIP64 (files below 4 GiB).
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "array.h"

namespace tenon::cli {

bool IsNpy(std::span<const std::byte> bytes);
bool IsNpz(std::span<const std::byte> bytes);

// Throws Error, its text starting with `name`, for what is no .npy file or has elements that are
// no element type of ONNX. Fortran order and the other byte order are converted. Elements that
// NumPy calls void ("V2") get the first of our types with that size that .npy has no name for.
Array ReadNpy(std::span<const std::byte> bytes, const std::string& name);

// Throws Error for types that .npy cannot store.
std::vector<std::byte> WriteNpy(const Array& array);

// Entries by name, without ".npy".
std::map<std::string, Array> ReadNpz(std::span<const std::byte> bytes, const std::string& name);
// Stored, not compressed.
std::vector<std::byte> WriteNpz(const std::map<std::string, Array>& arrays);

}  // namespace tenon::cli
