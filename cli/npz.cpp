#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "file.h"
#include "npy.h"
#include "stb.h"
#include "text.h"

namespace tenon::cli {
namespace {

constexpr std::string_view kLocalHeader = "PK\x03\x04";
constexpr std::string_view kCentralHeader = "PK\x01\x02";
constexpr std::string_view kEndRecord = "PK\x05\x06";
constexpr size_t kLocalBytes = 30;
constexpr size_t kCentralBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr std::string_view kSuffix = ".npy";

uint32_t Crc32(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries;
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t bits = i;
      for (int k = 0; k < 8; ++k) bits = bits >> 1 ^ (bits & 1 ? 0xEDB88320u : 0);
      entries[i] = bits;
    }
    return entries;
  }();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ crc >> 8;
  return ~crc;
}

// A little-endian number; the caller has checked that it is there.
uint32_t Number(std::string_view bytes, size_t offset, size_t size) {
  uint32_t number = 0;
  for (size_t i = size; i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[offset + i]);
  }
  return number;
}

void Append(std::string& bytes, size_t number, size_t size) {
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(number >> 8 * i & 0xFF);
}

struct Entry {
  std::string name;
  uint32_t method = 0;  // 0: stored, 8: deflated
  uint32_t crc = 0;
  std::string_view packed;
  size_t size = 0;
};

[[noreturn]] void FailDamaged(const std::string& name) { Fail("{}: a damaged .npz file", name); }

// The entry that the central directory describes at `offset`, which is advanced to the next entry.
Entry ReadEntry(std::string_view archive, size_t& offset, const std::string& name) {
  if (archive.size() - offset < kCentralBytes ||
      !archive.substr(offset).starts_with(kCentralHeader))
    FailDamaged(name);
  const size_t name_bytes = Number(archive, offset + 28, 2);
  const size_t rest = Number(archive, offset + 30, 2) + Number(archive, offset + 32, 2);
  const size_t packed = Number(archive, offset + 20, 4);
  const size_t local = Number(archive, offset + 42, 4);
  Entry entry;
  entry.method = Number(archive, offset + 10, 2);
  entry.crc = Number(archive, offset + 16, 4);
  entry.size = Number(archive, offset + 24, 4);
  if (Number(archive, offset + 8, 2) & 1) Fail("{}: it is encrypted", name);
  if (packed == 0xFFFFFFFF || entry.size == 0xFFFFFFFF || local == 0xFFFFFFFF) {
    Fail("{}: .npz files of 4 GiB and more cannot be read; use .npy files", name);
  }
  if (archive.size() - offset - kCentralBytes < name_bytes + rest) FailDamaged(name);
  entry.name = std::string(archive.substr(offset + kCentralBytes, name_bytes));
  offset += kCentralBytes + name_bytes + rest;

  if (local > archive.size() || archive.size() - local < kLocalBytes) FailDamaged(name);
  const size_t start =
      local + kLocalBytes + Number(archive, local + 26, 2) + Number(archive, local + 28, 2);
  if (start > archive.size() || archive.size() - start < packed) FailDamaged(name);
  entry.packed = archive.substr(start, packed);
  return entry;
}

std::string Unpack(const Entry& entry, const std::string& name) {
  std::string bytes;
  if (entry.method == 0) {
    bytes = entry.packed;
  } else if (entry.method == 8) {
    bytes = Inflate(entry.packed, entry.size);
  } else {
    Fail("{}: compression method {} is not known", name, entry.method);
  }
  if (bytes.size() != entry.size || Crc32(bytes) != entry.crc) FailDamaged(name);
  return bytes;
}

// Writes the fields that local and central headers share.
void AppendCommon(std::string& archive, std::string_view content, size_t name_bytes) {
  Append(archive, 20, 2);    // version needed: 2.0
  Append(archive, 0, 2);     // flags
  Append(archive, 0, 2);     // method: stored
  Append(archive, 0, 2);     // time
  Append(archive, 0x21, 2);  // date: 1 January 1980, so that equal arrays give equal files
  Append(archive, Crc32(content), 4);
  Append(archive, content.size(), 4);
  Append(archive, content.size(), 4);
  Append(archive, name_bytes, 2);
  Append(archive, 0, 2);  // extra field
}

}  // namespace

bool IsNpz(std::span<const std::byte> bytes) {
  return AsText(bytes).starts_with(kLocalHeader) || AsText(bytes).starts_with(kEndRecord);
}

std::map<std::string, Array> ReadNpz(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view archive = AsText(bytes);
  const size_t end = archive.rfind(kEndRecord);
  if (end == archive.npos || archive.size() - end < kEndBytes) FailDamaged(name);
  const size_t count = Number(archive, end + 10, 2);
  size_t offset = Number(archive, end + 16, 4);
  if (offset > archive.size()) FailDamaged(name);
  std::map<std::string, Array> arrays;
  for (size_t i = 0; i < count; ++i) {
    Entry entry = ReadEntry(archive, offset, name);
    const std::string where = Format("{}: {}", name, entry.name);
    const std::string content = Unpack(entry, where);
    if (entry.name.ends_with(kSuffix)) entry.name.resize(entry.name.size() - kSuffix.size());
    arrays[entry.name] = ReadNpy(AsBytes(content), where);
  }
  return arrays;
}

std::vector<std::byte> WriteNpz(const std::map<std::string, Array>& arrays) {
  std::string archive;
  std::string directory;
  for (const auto& [name, array] : arrays) {
    const std::vector<std::byte> file = WriteNpy(array);
    const std::string_view content = AsText(file);
    const std::string entry_name = name + std::string(kSuffix);
    const size_t local = archive.size();
    if (local + content.size() >= 0xFFFFFFFF) {
      Fail(".npz files of 4 GiB and more cannot be written; give a folder");
    }
    archive += kLocalHeader;
    AppendCommon(archive, content, entry_name.size());
    archive += entry_name;
    archive += content;
    directory += kCentralHeader;
    Append(directory, 20, 2);  // made by
    AppendCommon(directory, content, entry_name.size());
    Append(directory, 0, 2);  // comment
    Append(directory, 0, 2);  // disk
    Append(directory, 0, 2);  // internal attributes
    Append(directory, 0, 4);  // external attributes
    Append(directory, local, 4);
    directory += entry_name;
  }
  const size_t start = archive.size();
  archive += directory;
  archive += kEndRecord;
  Append(archive, 0, 4);  // disks
  Append(archive, arrays.size(), 2);
  Append(archive, arrays.size(), 2);
  Append(archive, directory.size(), 4);
  Append(archive, start, 4);
  Append(archive, 0, 2);  // comment
  const std::span<const std::byte> bytes = AsBytes(archive);
  return {bytes.begin(), bytes.end()};
}

}  // namespace tenon::cli
