#include "ir/model_format.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "ir/ort_tables.h"

namespace tenon {

bool HasOrtName(std::string_view path) {
  constexpr std::string_view kExtension = ".ort";
  if (path.size() <= kExtension.size()) return false;
  const std::string_view end = path.substr(path.size() - kExtension.size());
  return std::equal(end.begin(), end.end(), kExtension.begin(), [](char a, char b) {
    return a == b || (a >= 'A' && a <= 'Z' && a - 'A' + 'a' == b);
  });
}

bool HasOrtIdentifier(std::span<const std::byte> bytes) {
  // A protobuf may have these letters there too, but then no small number before them.
  constexpr std::string_view kIdentifier = ort::kIdentifier;
  uint32_t root = 0;
  if (bytes.size() < sizeof(root) + kIdentifier.size()) return false;
  std::memcpy(&root, bytes.data(), sizeof(root));
  return root < bytes.size() &&
         std::memcmp(bytes.data() + sizeof(root), kIdentifier.data(), kIdentifier.size()) == 0;
}

}  // namespace tenon
