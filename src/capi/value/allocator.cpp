#include "capi/value/allocator.h"

#include <atomic>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "base/arithmetic.h"
#include "base/exception_barrier.h"
#include "base/mutex.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/key_value_pairs.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/value/sync_stream.h"
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

void SetStats(const AllocatorStats& stats, OrtKeyValuePairs& pairs) {
  pairs.Set("NumAllocs", std::to_string(stats.allocations));
  pairs.Set("InUse", std::to_string(stats.bytes_in_use));
  pairs.Set("MaxInUse", std::to_string(stats.peak_bytes_in_use));
  pairs.Set("TotalAllocated", std::to_string(stats.bytes_reserved));
  pairs.Set("Limit", std::to_string(stats.bytes_limit));
}

// An allocator for clients: a table whose functions call `allocator`.
struct OwnAllocator : OrtAllocator {
  explicit OwnAllocator(std::shared_ptr<Allocator> wrapped)
      : OrtAllocator{}, allocator(std::move(wrapped)) {
    version = ORT_API_VERSION;
    Alloc = AllocSlot;
    Reserve = ReserveSlot;
    Free = [](OrtAllocator* self, void* block) { From(self)->FreeBlock(block); };
    Info = [](const OrtAllocator* self) -> const OrtMemoryInfo* {
      return Wrap<OrtMemoryInfo>(&Of(self)->info());
    };
    GetStats = StatsSlot;
    AllocOnStream = [](OrtAllocator* self, size_t size, OrtSyncStream* stream) {
      return From(self)->AllocateOn(size, stream);
    };
    Shrink = [](OrtAllocator* self) -> OrtStatus* {
      return AtBoundary([&] { return Of(self)->Shrink(); });
    };
  }
  virtual ~OwnAllocator() = default;

  static OwnAllocator* From(OrtAllocator* self) { return static_cast<OwnAllocator*>(self); }
  static const std::shared_ptr<Allocator>& Of(const OrtAllocator* self) {
    return static_cast<const OwnAllocator*>(self)->allocator;
  }
  // Null if it is not one of these.
  static BestFitArena* ArenaOf(const OrtAllocator* self) {
    return dynamic_cast<BestFitArena*>(Of(self).get());
  }
  static void* AllocSlot(OrtAllocator* self, size_t size) {
    if (size == 0 && ArenaOf(self) != nullptr) return nullptr;
    return From(self)->Given(Of(self)->Allocate(size));
  }
  static void* ReserveSlot(OrtAllocator* self, size_t size) {
    if (BestFitArena* const arena = ArenaOf(self)) {
      return From(self)->Given(arena->Reserve(size).value_or(nullptr));
    }
    auto* const client = dynamic_cast<ClientAllocator*>(Of(self).get());
    return From(self)->Given(client ? client->Reserve(size) : Of(self)->Allocate(size));
  }
  static OrtStatus* StatsSlot(const OrtAllocator* self, OrtKeyValuePairs** out) {
    return AtBoundary([&]() -> Status {
      TENON_RETURN_IF_NULL(out);
      auto pairs = std::make_unique<OrtKeyValuePairs>();
      if (const auto* const client = dynamic_cast<const ClientAllocator*>(Of(self).get())) {
        TENON_RETURN_IF_ERROR(client->FillStats(*pairs));
      } else if (const BestFitArena* const arena = ArenaOf(self)) {
        SetArenaStats(*arena, *pairs);
      } else if (Of(self) != SharedCpuAllocator()) {  // which is not an arena, so it has none
        SetStats(Of(self)->Stats(), *pairs);
      }
      *out = pairs.release();
      return OkStatus();
    });
  }

  // `block`, which was just allocated.
  virtual void* Given(void* block) { return block; }
  virtual void FreeBlock(void* block) { allocator->Free(block); }
  virtual void* AllocateOn(size_t size, OrtSyncStream*) { return AllocSlot(this, size); }
  // The allocator of values.
  virtual std::shared_ptr<Allocator> ForValues() { return allocator; }
  // Its owner releases it.
  virtual void Drop() { delete this; }

  const std::shared_ptr<Allocator> allocator;
};

// Lives as long as its owner, its blocks and those who allocate from it.
struct SharedAllocator final : OwnAllocator {
  SharedAllocator(std::shared_ptr<Allocator> wrapped, bool heeds_streams)
      : OwnAllocator(std::move(wrapped)), is_stream_aware(heeds_streams) {}

  void* Given(void* block) override {
    if (block == nullptr) return nullptr;
    const MutexLock lock(mutex);
    if (blocks.insert(block).second) ++users;
    return block;
  }
  void FreeBlock(void* block) override {
    bool is_known = false;
    {
      // Before another caller gets the block.
      const MutexLock lock(mutex);
      is_known = blocks.erase(block) != 0;
    }
    allocator->Free(block);
    if (is_known) Drop();
  }
  void* AllocateOn(size_t size, OrtSyncStream* stream) override {
    const auto on_streams = std::dynamic_pointer_cast<StreamAllocator>(allocator);
    if (!is_stream_aware || stream == nullptr || on_streams == nullptr) {
      return AllocSlot(this, size);
    }
    if (size == 0 && ArenaOf(this) != nullptr) return nullptr;
    stream->AddAllocator(on_streams);
    return Given(on_streams->AllocateOn(size, *stream));
  }
  std::shared_ptr<Allocator> ForValues() override {
    ++users;
    return {allocator.get(), [this](Allocator*) { Drop(); }};
  }
  void Drop() override {
    if (--users == 0) delete this;
  }

  const bool is_stream_aware;
  std::atomic<size_t> users = 1;  // the owner, the blocks, and those who allocate
  Mutex mutex;
  std::unordered_set<void*> blocks;
};

constexpr uint32_t kFirstWithReserve = 18, kFirstWithStats = 23, kFirstWithStreams = 23,
                   kFirstWithShrink = 25;

// Stores the address of the client's block in front of the aligned one.
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
  bool CanShrink() const override { return client_.CanShrink(); }
  Status Shrink() override { return client_.Shrink(); }

 private:
  ClientAllocator client_;
};

// A block, or null if the client throws.
template <class Body>
void* BlockOf(Body&& body) {
  void* block = nullptr;
  (void)CatchExceptions([&] {
    block = body();
    return OkStatus();
  });
  return block;
}

}  // namespace

void* ClientAllocator::Allocate(size_t bytes) {
  return BlockOf([&] { return client_->Alloc(client_, bytes); });
}

void* ClientAllocator::AllocateOn(size_t bytes, StreamOrder& stream) {
  auto* const client_stream = dynamic_cast<OrtSyncStream*>(&stream);
  const bool has_slot = client_->version >= kFirstWithStreams && client_->AllocOnStream != nullptr;
  if (client_stream == nullptr || !has_slot) return Allocate(bytes);
  return BlockOf([&] { return client_->AllocOnStream(client_, bytes, client_stream); });
}

void* ClientAllocator::Reserve(size_t bytes) {
  if (client_->version < kFirstWithReserve || client_->Reserve == nullptr) return Allocate(bytes);
  return BlockOf([&] { return client_->Reserve(client_, bytes); });
}

void ClientAllocator::Free(void* block) {
  (void)CatchExceptions([&] {
    client_->Free(client_, block);
    return OkStatus();
  });
}

const MemoryInfo& ClientAllocator::info() const {
  return memory_ != nullptr ? *memory_ : *Unwrap(client_->Info(client_));
}

bool ClientAllocator::CanShrink() const {
  return client_->version >= kFirstWithShrink && client_->Shrink != nullptr;
}

Status ClientAllocator::Shrink() {
  if (!CanShrink()) return OkStatus();
  return CatchExceptions([&] { return TakeOrtStatus(client_->Shrink(client_)); });
}

Status ClientAllocator::FillStats(OrtKeyValuePairs& pairs) const {
  if (client_->version < kFirstWithStats || client_->GetStats == nullptr) return OkStatus();
  OrtKeyValuePairs* given = nullptr;
  TENON_RETURN_IF_ERROR(
      CatchExceptions([&] { return TakeOrtStatus(client_->GetStats(client_, &given)); }));
  const std::unique_ptr<OrtKeyValuePairs> owned(given);
  if (owned == nullptr) return OkStatus();
  for (const auto& [key, value] : owned->entries()) pairs.Set(key, value);
  return OkStatus();
}

std::shared_ptr<Allocator> AlignedFromClient(OrtAllocator* allocator) {
  if (allocator->Alloc == OwnAllocator::AllocSlot) {
    return OwnAllocator::From(allocator)->ForValues();
  }
  return std::make_shared<AligningAllocator>(allocator);
}

std::shared_ptr<Allocator> FromClient(OrtAllocator* allocator) {
  if (allocator->Alloc == OwnAllocator::AllocSlot) {
    return OwnAllocator::From(allocator)->ForValues();
  }
  return std::make_shared<ClientAllocator>(allocator);
}

OrtAllocator* NewClientAllocator(std::shared_ptr<Allocator> allocator) {
  return new OwnAllocator(std::move(allocator));
}

OrtAllocator* NewSharedAllocator(std::shared_ptr<Allocator> allocator, bool is_stream_aware) {
  return new SharedAllocator(std::move(allocator), is_stream_aware);
}

bool IsInUse(const OrtAllocator* shared) {
  return static_cast<const SharedAllocator*>(shared)->users > 1;
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
    if (ort_allocator->version < kFirstWithStats || ort_allocator->GetStats == nullptr) {
      *out = new OrtKeyValuePairs();
      return OkStatus();
    }
    return TakeOrtStatus(ort_allocator->GetStats(ort_allocator, out));
  });
}

void ReleaseAllocator(OrtAllocator* input) noexcept {
  if (input != nullptr) OwnAllocator::From(input)->Drop();
}

}  // namespace tenon::capi
