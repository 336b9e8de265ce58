#include "ir/external_data.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "base/confined_path.h"

namespace tenon {
namespace {

Result<uint64_t> ParseNumber(const std::string& key, const std::string& text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) {
    return InvalidGraph("external data: expected a number of bytes for '{}', got '{}'", key, text);
  }
  return number;
}

}  // namespace

Result<ExternalLocation> ParseExternalLocation(const Metadata& entries) {
  ExternalLocation location;
  for (const auto& [key, text] : entries) {
    if (key == "location") {
      location.file = text;
    } else if (key == "offset") {
      TENON_ASSIGN_OR_RETURN(location.offset, ParseNumber(key, text));
    } else if (key == "length") {
      TENON_ASSIGN_OR_RETURN(location.length, ParseNumber(key, text));
    }
  }
  if (location.file.empty()) return InvalidGraph("external data has no 'location'");
  return location;
}

void ExternalPlaces::Add(const Tensor& tensor, ExternalLocation location) {
  places_.insert_or_assign(tensor.raw(), Place{std::move(location), tensor.owner()});
}

const ExternalLocation* ExternalPlaces::Find(const Tensor& tensor) const {
  const auto found = places_.find(tensor.raw());
  if (found == places_.end()) return nullptr;
  const Place& place = found->second;
  const bool is_same = !place.owner.expired() && !place.owner.owner_before(tensor.owner()) &&
                       !tensor.owner().owner_before(place.owner);
  return is_same ? &place.location : nullptr;
}

void ExternalData::Add(std::string_view path, std::span<const std::byte> bytes,
                       std::shared_ptr<void> owner) {
  in_memory_.insert_or_assign(PlainPath(path), Region{bytes, std::move(owner)});
}

Result<ExternalData::Region> ExternalData::Find(const ExternalLocation& location, uint64_t size) {
  if (location.length && *location.length != size) {
    return InvalidGraph("external data in '{}': the tensor has {} bytes, got a length of {}",
                        location.file, size, *location.length);
  }
  Region region;
  if (const auto held = in_memory_.find(PlainPath(location.file)); held != in_memory_.end()) {
    region = held->second;
  } else {
    TENON_ASSIGN_OR_RETURN(const std::shared_ptr<MappedFile> file, Map(location.file));
    region = {file->bytes(), file, true};
  }
  const std::span<const std::byte> bytes = region.bytes;
  if (location.offset > bytes.size() || size > bytes.size() - location.offset) {
    return InvalidGraph("external data in '{}': {} bytes at offset {} exceed the file's {} bytes",
                        location.file, size, location.offset, bytes.size());
  }
  region.bytes = bytes.subspan(location.offset, size);
  return region;
}

Result<std::shared_ptr<MappedFile>> ExternalData::Map(const std::string& file) {
  if (const auto known = files_.find(file); known != files_.end()) return known->second;
  if (folders_.empty()) {
    return InvalidArgument(
        "external data in '{}': a model in memory has no folder; name one to allow its files",
        file);
  }
  TENON_ASSIGN_OR_RETURN(MappedFile mapped, MapConfined(folders_, file, access_));
  const auto shared = MappedFile::Share(std::move(mapped));
  files_.emplace(file, shared);
  return shared;
}

}  // namespace tenon
