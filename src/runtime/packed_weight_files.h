// Packed weights in files: a later process need not pack them, and processes share their memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/logging.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace tenon {

// The files of one folder. A file is named by a hash of what it was packed from, of the form, and
// of the build of the library, so that it is never out of date. Nothing that it holds is trusted: a
// file that is not as this class writes it is packed again, with a warning. Thread-safe, also with
// other processes.
class PackedWeightFiles {
 public:
  // Errors: kInvalidArgument if `folder` is no folder; kNotImplemented if the library has no build
  // id.
  static Result<std::shared_ptr<PackedWeightFiles>> Open(std::string folder, const Logger& logger);

  // What a file is found by.
  struct Key {
    std::array<unsigned char, 16> hash;
    size_t floats;  // that it holds
  };
  // Of so many packed floats of `constant`. `form` is all that decides about them besides the
  // constant's elements. Absent if there are so few that packing them takes no longer than reading
  // a file.
  std::optional<Key> KeyOf(const Tensor& constant, std::string_view form, size_t floats) const;
  // The floats of the file, mapped; absent if there is no such file, or a wrong one.
  std::optional<Tensor> Load(const Key& key) const;
  // Writes the file. If it cannot be written, that is a warning.
  void Store(const Key& key, const Tensor& packed);

 private:
  struct Header;

  PackedWeightFiles(std::string folder, std::string build, const Logger& logger)
      : folder_(std::move(folder)), build_(std::move(build)), logger_(logger) {}

  const std::string folder_, build_;
  const Logger& logger_;
  std::atomic<bool> has_failed_ = false;  // to write a file
};

}  // namespace tenon
