#include "capi/env/library_uses.h"

#include "base/text.h"

namespace tenon::capi {

std::string LibraryUses::Describe() const {
  struct Names {
    const char *one, *many;
  };
  static constexpr Names kNames[kKinds] = {
      {"provider", "providers"},
      {"allocator", "allocators"},
      {"block of memory", "blocks of memory"},
      {"data transfer", "data transfers"},
      {"stream", "streams"},
      {"profiler", "profilers"},
      {"importer", "importers"},
      {"imported resource", "imported resources"},
  };
  std::string text;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    const int64_t count = counts_[kind];
    if (count <= 0) continue;
    const char* const name = count == 1 ? kNames[kind].one : kNames[kind].many;
    text += Format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

}  // namespace tenon::capi
