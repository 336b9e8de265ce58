// The live objects of a plugin's library, by kind. They keep it loaded.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace tenon::capi {

enum class LibraryObject : uint8_t {
  kProvider,
  kAllocator,
  kBlock,  // of memory
  kDataTransfer,
  kStream,
  kProfiler,
  kImporter,
  kResource,  // that an importer imported
};

// Thread-safe.
class LibraryUses {
 public:
  static constexpr size_t kKinds = static_cast<size_t>(LibraryObject::kResource) + 1;

  void Add(LibraryObject kind, int64_t change) { counts_[static_cast<size_t>(kind)] += change; }
  int64_t Count(LibraryObject kind) const { return counts_[static_cast<size_t>(kind)]; }
  // "2 allocators, 1 stream"; "" if no object is alive.
  std::string Describe() const;

 private:
  std::array<std::atomic<int64_t>, kKinds> counts_ = {};
};

// Counts one object while it lives.
class LibraryUse {
 public:
  LibraryUse(std::shared_ptr<LibraryUses> uses, LibraryObject kind)
      : uses_(std::move(uses)), kind_(kind) {
    uses_->Add(kind_, 1);
  }
  ~LibraryUse() { uses_->Add(kind_, -1); }
  LibraryUse(const LibraryUse&) = delete;
  LibraryUse& operator=(const LibraryUse&) = delete;

 private:
  const std::shared_ptr<LibraryUses> uses_;
  const LibraryObject kind_;
};

}  // namespace tenon::capi
