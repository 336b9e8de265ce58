#include "runtime/packed_weight_files.h"

#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <span>
#include <utility>

#include "base/build_id.h"
#include "base/confined_path.h"
#include "base/mapped_file.h"

namespace tenon {

// Begins a file. The floats follow at a page's start.
struct PackedWeightFiles::Header {
  std::array<char, 16> magic = {'t', 'e', 'n', 'o', 'n', ' ', 'p',
                                'a', 'c', 'k', 'e', 'd', ' ', '1'};
  std::array<unsigned char, 16> key = {};
  std::array<unsigned char, 16> content = {};  // of the floats
  uint64_t floats = 0;
  std::array<std::byte, 4096 - 56> rest = {};
};

namespace {

using Hash = std::array<unsigned char, 16>;

Hash Canonical(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Hash result;
  std::memcpy(result.data(), canonical.digest, result.size());
  return result;
}

Hash HashOf(std::span<const std::byte> bytes) {
  return Canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

std::span<const std::byte> BytesOf(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.raw()), tensor.bytes()};
}

std::string FileName(const PackedWeightFiles::Key& key) {
  std::string name;
  for (const unsigned char byte : key.hash) name += Format("{:02x}", byte);
  return name + ".packed";
}

// Smaller weights are packed sooner than a file is opened.
constexpr size_t kLeastFloats = (64 << 10) / sizeof(float);

}  // namespace

Result<std::shared_ptr<PackedWeightFiles>> PackedWeightFiles::Open(std::string folder,
                                                                   const Logger& logger) {
  struct stat info;
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return InvalidArgument("folder of packed weights '{}': there is no such folder", folder);
  }
  std::string build = BuildId();
  if (build.empty()) {
    return NotImplemented(
        "folder of packed weights '{}': this build of the library has no build "
        "id, by which files of other builds could be told apart",
        folder);
  }
  return std::shared_ptr<PackedWeightFiles>(
      new PackedWeightFiles(std::move(folder), std::move(build), logger));
}

std::optional<PackedWeightFiles::Key> PackedWeightFiles::KeyOf(const Tensor& constant,
                                                               std::string_view form,
                                                               size_t floats) const {
  if (floats < kLeastFloats) return std::nullopt;
  const std::string facts = Format("{}\n{}\n", build_, form);
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, facts.data(), facts.size());
  XXH3_128bits_update(&state, constant.raw(), constant.bytes());
  return Key{Canonical(XXH3_128bits_digest(&state)), floats};
}

std::optional<Tensor> PackedWeightFiles::Load(const Key& key) const {
  const std::string name = FileName(key);
  Result<MappedFile> mapped = MapConfined({folder_}, name);
  if (!mapped) {
    if (mapped.error().code() != StatusCode::kNoSuchFile) {
      TENON_LOG(logger_, kWarning, "packed weights: {}", mapped.error().message());
    }
    return std::nullopt;
  }
  const auto file = std::make_shared<MappedFile>(std::move(*mapped));
  const std::span<const std::byte> bytes = file->bytes();
  const auto is_right = [&] {
    Header header;
    if (bytes.size() != sizeof(header) + key.floats * sizeof(float)) return false;
    std::memcpy(&header, bytes.data(), sizeof(header));
    return header.magic == Header().magic && header.key == key.hash &&
           header.floats == key.floats && header.content == HashOf(bytes.subspan(sizeof(header)));
  };
  if (!is_right()) {
    TENON_LOG(logger_, kWarning,
              "'{}/{}' is no file of these packed weights; they are packed again", folder_, name);
    return std::nullopt;
  }
  return Tensor::ReadOnlyView(DataType::kFloat, Shape({static_cast<int64_t>(key.floats)}),
                              bytes.data() + sizeof(Header), file);
}

void PackedWeightFiles::Store(const Key& key, const Tensor& packed) {
  Header header;
  header.key = key.hash;
  header.content = HashOf(BytesOf(packed));
  header.floats = key.floats;
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(&header, 1)),
                                              BytesOf(packed)};
  const Status written = WriteFileAtomically(Format("{}/{}", folder_, FileName(key)), parts);
  if (!written.ok() && !has_failed_.exchange(true)) {
    TENON_LOG(logger_, kWarning, "packed weights: {}", written.message());
  }
}

}  // namespace tenon
