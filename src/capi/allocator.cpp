#include "capi/allocator.h"

#include <cstring>
#include <utility>

#include "base/arithmetic.h"
#include "capi/arguments.h"
#include "capi/handles.h"
#include "capi/key_value_pairs.h"
#include "capi/slots.h"
#include "capi/status.h"
#include "tensor/best_fit_arena.h"

namespace tenon::capi {
namespace {

void SetArenaStats(const BestFitArena& arena, OrtKeyValuePairs& pairs) {
  const ArenaStats stats = arena.arena_stats();
  const bool is_limited = arena.limit() != SIZE_MAX;
  pairs.Set("Limit", is_limited ? std::to_string(arena.limit()) : "-1");
  pairs.Set("InUse", std::to_string(stats.in_use));
  pairs.Set("TotalAllocated", std::to_string(stats.total_allocated));
  pairs.Set("MaxInUse", std::to_string(stats.max_in_use));
  pairs.Set("NumAllocs", std::to_string(stats.allocs));
  pairs.Set("NumReserves", std::to_string(stats.reserves));
  pairs.Set("NumArenaExtensions", std::to_string(stats.extensions));
  pairs.Set("NumArenaShrinkages", std::to_string(stats.shrinkages));
  pairs.Set("MaxAllocSize", std::to_string(stats.max_alloc_size));
}

// What clients get: a table whose functions go to `allocator`.
struct OwnAllocator : OrtAllocator {
  explicit OwnAllocator(std::shared_ptr<Allocator> behind)
      : OrtAllocator{}, allocator(std::move(behind)) {
    version = ORT_API_VERSION;
    Alloc = AllocSlot;
    Reserve = [](OrtAllocator* self, size_t size) -> void* {
      if (BestFitArena* const arena = ArenaOf(self)) return arena->Reserve(size).value_or(nullptr);
      return Of(self)->Allocate(size);
    };
    Free = [](OrtAllocator* self, void* block) { Of(self)->Free(block); };
    Info = [](const OrtAllocator* self) -> const OrtMemoryInfo* {
      return Wrap<OrtMemoryInfo>(&Of(self)->info());
    };
    GetStats = StatsSlot;
    AllocOnStream = [](OrtAllocator* self, size_t size, OrtSyncStream*) {
      return AllocSlot(self, size);
    };
    Shrink = [](OrtAllocator* self) -> OrtStatus* {
      return AtBoundary([&] { return Of(self)->Shrink(); });
    };
  }

  static const std::shared_ptr<Allocator>& Of(const OrtAllocator* self) {
    return static_cast<const OwnAllocator*>(self)->allocator;
  }
  // Null if it is none.
  static BestFitArena* ArenaOf(const OrtAllocator* self) {
    return dynamic_cast<BestFitArena*>(Of(self).get());
  }
  static void* AllocSlot(OrtAllocator* self, size_t size) {
    if (size == 0 && ArenaOf(self) != nullptr) return nullptr;
    return Of(self)->Allocate(size);
  }
  static OrtStatus* StatsSlot(const OrtAllocator* self, OrtKeyValuePairs** out) {
    return AtBoundary([&]() -> Status {
      TENON_RETURN_IF_NULL(out);
      auto pairs = std::make_unique<OrtKeyValuePairs>();
      if (const BestFitArena* const arena = ArenaOf(self)) {
        SetArenaStats(*arena, *pairs);
        *out = pairs.release();
        return OkStatus();
      }
      const AllocatorStats stats = Of(self)->Stats();
      pairs->Set("NumAllocs", std::to_string(stats.allocations));
      pairs->Set("InUse", std::to_string(stats.bytes_in_use));
      pairs->Set("MaxInUse", std::to_string(stats.peak_bytes_in_use));
      pairs->Set("TotalAllocated", std::to_string(stats.bytes_reserved));
      pairs->Set("Limit", std::to_string(stats.bytes_limit));
      *out = pairs.release();
      return OkStatus();
    });
  }

  const std::shared_ptr<Allocator> allocator;
};

class ClientAllocator final : public Allocator {
 public:
  explicit ClientAllocator(OrtAllocator* client) : client_(client) {}
  void* Allocate(size_t bytes) override { return client_->Alloc(client_, bytes); }
  void Free(void* block) override { client_->Free(client_, block); }
  const MemoryInfo& info() const override { return *Unwrap(client_->Info(client_)); }

 private:
  OrtAllocator* const client_;
};

// Keeps the address of the client's block in front of the aligned one.
class AligningAllocator final : public Allocator {
 public:
  explicit AligningAllocator(OrtAllocator* client) : client_(client) {}

  void* Allocate(size_t bytes) override {
    constexpr size_t kExtra = kAlignment + sizeof(void*);
    if (bytes > SIZE_MAX - kExtra) return nullptr;
    void* const block = client_.Allocate(bytes + kExtra);
    if (block == nullptr) return nullptr;
    const auto address = reinterpret_cast<uintptr_t>(block) + sizeof(void*);
    void* const aligned = reinterpret_cast<void*>(RoundUp<uintptr_t>(address, kAlignment));
    static_cast<void**>(aligned)[-1] = block;
    return aligned;
  }
  void Free(void* block) override {
    if (block != nullptr) client_.Free(static_cast<void**>(block)[-1]);
  }
  const MemoryInfo& info() const override { return client_.info(); }

 private:
  ClientAllocator client_;
};

}  // namespace

std::shared_ptr<Allocator> AlignedFromClient(OrtAllocator* allocator) {
  if (allocator->Alloc == OwnAllocator::AllocSlot) return OwnAllocator::Of(allocator);
  return std::make_shared<AligningAllocator>(allocator);
}

std::shared_ptr<Allocator> FromClient(OrtAllocator* allocator) {
  if (allocator->Alloc == OwnAllocator::AllocSlot) return OwnAllocator::Of(allocator);
  return std::make_shared<ClientAllocator>(allocator);
}

OrtAllocator* NewClientAllocator(std::shared_ptr<Allocator> allocator) {
  return new OwnAllocator(std::move(allocator));
}

Result<void*> AllocateFrom(OrtAllocator* allocator, size_t bytes) {
  void* const block = allocator->Alloc(allocator, bytes);
  if (block == nullptr) return Fail("the allocator has no {} bytes left", bytes);
  return block;
}

Result<char*> CopyString(OrtAllocator* allocator, std::string_view text) {
  TENON_ASSIGN_OR_RETURN(void* const block, AllocateFrom(allocator, text.size() + 1));
  char* const copy = static_cast<char*>(block);
  text.copy(copy, text.size());
  copy[text.size()] = '\0';
  return copy;
}

Result<char**> CopyStrings(OrtAllocator* allocator, std::span<const std::string_view> texts) {
  if (texts.empty()) return nullptr;
  TENON_ASSIGN_OR_RETURN(void* const block, AllocateFrom(allocator, texts.size() * sizeof(char*)));
  char** const copies = static_cast<char**>(block);
  for (size_t i = 0; i < texts.size(); ++i) {
    Result<char*> copy = CopyString(allocator, texts[i]);
    if (!copy) {
      while (i > 0) allocator->Free(allocator, copies[--i]);
      allocator->Free(allocator, block);
      return Error(std::move(copy.error()));
    }
    copies[i] = *copy;
  }
  return copies;
}

OrtStatus* GetAllocatorWithDefaultOptions(OrtAllocator** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    // Never destroyed: clients may use it while the process ends.
    static OrtAllocator* const allocator = NewClientAllocator(SharedCpuAllocator());
    *out = allocator;
    return OkStatus();
  });
}

OrtStatus* AllocatorAlloc(OrtAllocator* ort_allocator, size_t size, void** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ort_allocator);
    TENON_RETURN_IF_NULL(out);
    void* const block = ort_allocator->Alloc(ort_allocator, size);
    if (block == nullptr && size != 0) return Fail("the allocator has no {} bytes left", size);
    *out = block;
    return OkStatus();
  });
}

OrtStatus* AllocatorFree(OrtAllocator* ort_allocator, void* p) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ort_allocator);
    if (p != nullptr) ort_allocator->Free(ort_allocator, p);
    return OkStatus();
  });
}

OrtStatus* AllocatorGetInfo(const OrtAllocator* ort_allocator, const OrtMemoryInfo** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ort_allocator);
    TENON_RETURN_IF_NULL(out);
    *out = ort_allocator->Info(ort_allocator);
    return OkStatus();
  });
}

OrtStatus* AllocatorGetStats(const OrtAllocator* ort_allocator, OrtKeyValuePairs** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ort_allocator);
    TENON_RETURN_IF_NULL(out);
    constexpr uint32_t kFirstWithStats = 23;
    if (ort_allocator->version < kFirstWithStats || ort_allocator->GetStats == nullptr) {
      *out = new OrtKeyValuePairs();
      return OkStatus();
    }
    return TakeOrtStatus(ort_allocator->GetStats(ort_allocator, out));
  });
}

void ReleaseAllocator(OrtAllocator* input) noexcept { delete static_cast<OwnAllocator*>(input); }

}  // namespace tenon::capi
