// Tensor elements that a model keeps in files in its folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/status.h"
#include "ir/graph.h"

namespace tenon {

// The contents of TensorProto.external_data.
struct ExternalLocation {
  std::string file;  // relative to the model's folder
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

// Keys "location", "offset" and "length"; others, such as "checksum", are ignored. Errors:
// kInvalidGraph if a key is missing or is not a number.
Result<ExternalLocation> ParseExternalLocation(const Metadata& entries);

// The positions of a model's tensors in external files.
class ExternalPlaces {
 public:
  // `tensor` owns its elements or the mapping that contains them.
  void Add(const Tensor& tensor, ExternalLocation location);
  // Null for a tensor with other elements, in memory or in the model's own file.
  const ExternalLocation* Find(const Tensor& tensor) const;

 private:
  struct Place {
    ExternalLocation location;
    std::weak_ptr<const void> owner;  // otherwise other data may have the address
  };
  std::map<const void*, Place> places_;  // by the address of the elements
};

// Maps, or copies, the files of one model's external data, each once. Not thread-safe.
class ExternalData {
 public:
  // `folders` as for MapConfined; without folders, external data is an error.
  explicit ExternalData(std::vector<std::string> folders, FileAccess access = FileAccess::kMap)
      : folders_(std::move(folders)), access_(access) {}

  struct Region {
    std::span<const std::byte> bytes;
    std::shared_ptr<void> owner;  // keeps `bytes` alive; null: they must be copied
    bool is_in_file = false;      // in one that was found in a folder
  };
  // Adds the content of a file that is not searched in a folder, by its path.
  void Add(std::string_view path, std::span<const std::byte> bytes, std::shared_ptr<void> owner);
  // The `size` bytes of a tensor. Errors: those of MapConfined, and kInvalidGraph if the location
  // has another length or is beyond the file's end.
  Result<Region> Find(const ExternalLocation& location, uint64_t size);

 private:
  Result<std::shared_ptr<MappedFile>> Map(const std::string& file);

  std::vector<std::string> folders_;
  FileAccess access_;
  std::map<std::string, Region> in_memory_;
  std::map<std::string, std::shared_ptr<MappedFile>> files_;
};

}  // namespace tenon
