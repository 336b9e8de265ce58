// Tensor elements that a model keeps in files beside itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/status.h"
#include "ir/graph.h"

namespace tenon {

// TensorProto.external_data, understood.
struct ExternalLocation {
  std::string file;  // relative to the model's folder
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

// Keys "location", "offset" and "length"; others, such as "checksum", are ignored.
// Errors: kInvalidGraph where a key is missing or no number.
Result<ExternalLocation> ParseExternalLocation(const Metadata& entries);

// Where the elements of a model's tensors lie in files beside it.
class ExternalPlaces {
 public:
  // `tensor` owns its elements or the mapping that they are in.
  void Add(const Tensor& tensor, ExternalLocation location);
  // Null for a tensor with other elements, in memory or in the model's own file.
  const ExternalLocation* Find(const Tensor& tensor) const;

 private:
  struct Place {
    ExternalLocation location;
    std::weak_ptr<const void> owner;  // without it something else may lie at the address
  };
  std::map<const void*, Place> places_;  // by the address of the elements
};

// Maps the files of one model's external data, each once. Not thread-safe.
class ExternalData {
 public:
  // `folders` as of MapConfined; without folders, external data is an error.
  // `in_memory` has the content of files that are not looked for in a folder.
  explicit ExternalData(std::vector<std::string> folders,
                        std::map<std::string, std::span<const std::byte>> in_memory = {})
      : folders_(std::move(folders)), in_memory_(std::move(in_memory)) {}

  struct Region {
    std::span<const std::byte> bytes;
    std::shared_ptr<void> owner;  // keeps `bytes` mapped; null for a file in memory
  };
  // The `size` bytes of a tensor. Errors: those of MapConfined, and kInvalidGraph where the
  // location has another length or lies beyond the file's end.
  Result<Region> Find(const ExternalLocation& location, uint64_t size);

 private:
  Result<std::shared_ptr<MappedFile>> Map(const std::string& file);

  std::vector<std::string> folders_;
  std::map<std::string, std::span<const std::byte>> in_memory_;
  std::map<std::string, std::shared_ptr<MappedFile>> files_;
};

}  // namespace tenon
