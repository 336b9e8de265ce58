#include "capi/shared_allocators.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "capi/allocator.h"
#include "capi/arena_config.h"
#include "capi/arguments.h"
#include "capi/env.h"
#include "capi/ep_device.h"
#include "capi/ep_source.h"
#include "capi/handles.h"
#include "capi/key_value_pairs.h"
#include "capi/slots.h"
#include "capi/status.h"
#include "tensor/best_fit_arena.h"

namespace tenon::capi {

SharedAllocators::~SharedAllocators() {
  for (const Entry& entry : entries_) {
    if (entry.of_client == nullptr) ReleaseAllocator(entry.handle);
  }
}

std::vector<SharedAllocators::Entry>::const_iterator SharedAllocators::FindEntry(
    const MemoryInfo& memory) const {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.memory->SameDevice(memory); });
}

Status SharedAllocators::Register(OrtAllocator* client) {
  const MemoryInfo& memory = InternMemoryInfo(*Unwrap(client->Info(client)));
  if (memory.allocator_type == OrtArenaAllocator) {
    return InvalidArgument("the allocator of '{}' is of type arena, which cannot be registered",
                           memory.name);
  }
  const MutexLock lock(mutex_);
  const auto known = FindEntry(memory);
  if (known != entries_.end() && !known->is_of_plugin) {
    return InvalidArgument("memory of '{}' has a shared allocator already", memory.name);
  }
  if (known != entries_.end()) {
    displaced_.push_back({known->memory, known->source});
    Erase(known);
  }
  // Aligning writes in front of a block, which only the host's memory allows.
  auto allocator = memory.IsHostAccessible() ? AlignedFromClient(client) : FromClient(client);
  entries_.push_back({&memory, client, {}, std::move(allocator)});
  return OkStatus();
}

void SharedAllocators::Erase(std::vector<Entry>::const_iterator entry) {
  if (entry->of_client == nullptr) ReleaseAllocator(entry->handle);
  entries_.erase(entry);
}

void SharedAllocators::Add(const MemoryInfo& memory, std::shared_ptr<Allocator> allocator,
                           const std::shared_ptr<EpSource>& source) {
  const bool is_stream_aware = source != nullptr && source->IsStreamAware();
  entries_.push_back({&memory, NewSharedAllocator(std::move(allocator), is_stream_aware), source,
                      nullptr, source != nullptr});
}

void SharedAllocators::AddDefault(std::shared_ptr<Allocator> allocator,
                                  const std::shared_ptr<EpSource>& source) {
  const MemoryInfo& memory = InternMemoryInfo(allocator->info());
  const MutexLock lock(mutex_);
  if (FindEntry(memory) == entries_.end()) Add(memory, std::move(allocator), source);
}

void SharedAllocators::RemoveOf(const EpSource& source) {
  const auto is_of = [&](const auto& entry) { return entry.source.lock().get() == &source; };
  const MutexLock lock(mutex_);
  std::erase_if(displaced_, is_of);
  for (size_t i = entries_.size(); i > 0; --i) {
    if (is_of(entries_[i - 1])) Erase(entries_.begin() + static_cast<ptrdiff_t>(i - 1));
  }
}

SharedAllocators::Holdings SharedAllocators::HoldingsOf(const EpSource& source) const {
  const MutexLock lock(mutex_);
  Holdings holdings;
  for (const Entry& entry : entries_) {
    if (entry.source.lock().get() != &source) continue;
    ++holdings.count;
    holdings.are_in_use |= IsInUse(entry.handle);
  }
  return holdings;
}

void SharedAllocators::Abandon() {
  // Kept, not leaked: the process ends with it.
  static auto* const kept = new std::vector<Entry>();
  const MutexLock lock(mutex_);
  for (Entry& entry : entries_) kept->push_back(std::move(entry));
  entries_.clear();
}

Result<OrtAllocator*> SharedAllocators::Create(std::shared_ptr<Allocator> allocator, bool replace,
                                               const std::shared_ptr<EpSource>& source) {
  const MemoryInfo& memory = InternMemoryInfo(allocator->info());
  const MutexLock lock(mutex_);
  const auto known = FindEntry(memory);
  if (known != entries_.end() && !replace) {
    return InvalidArgument("memory of '{}' has a shared allocator already", memory.name);
  }
  if (known != entries_.end()) Erase(known);
  Add(memory, std::move(allocator), source);
  return entries_.back().handle;
}

Status SharedAllocators::Remove(const MemoryInfo& memory) {
  const MutexLock lock(mutex_);
  const auto known = FindEntry(memory);
  if (known == entries_.end()) {
    return InvalidArgument("memory of '{}' has no shared allocator", memory.name);
  }
  Erase(known);
  return OkStatus();
}

// Makes the default allocator of the memory anew if a client's took its place and is gone.
void SharedAllocators::Restore(const MemoryInfo& memory) {
  Displaced displaced = {};
  {
    const MutexLock lock(mutex_);
    if (FindEntry(memory) != entries_.end()) return;
    const auto found =
        std::find_if(displaced_.begin(), displaced_.end(),
                     [&](const Displaced& one) { return one.memory->SameDevice(memory); });
    if (found == displaced_.end()) return;
    displaced = std::move(*found);
    displaced_.erase(found);
  }
  const std::shared_ptr<EpSource> source = displaced.source.lock();
  if (source == nullptr) return;
  // Nobody asked for it by name, so a failure only means that there is none.
  Result<std::shared_ptr<Allocator>> made = source->MakeAllocator(*displaced.memory, nullptr);
  if (made) AddDefault(std::move(*made), source);
}

OrtAllocator* SharedAllocators::Find(const MemoryInfo& memory) {
  Restore(memory);
  const MutexLock lock(mutex_);
  const auto known = FindEntry(memory);
  return known == entries_.end() ? nullptr : known->handle;
}

std::shared_ptr<Allocator> SharedAllocators::FindForSessions(const MemoryInfo& memory) {
  Restore(memory);
  const MutexLock lock(mutex_);
  const auto known = FindEntry(memory);
  if (known == entries_.end()) return nullptr;
  return known->of_client != nullptr ? known->of_client : FromClient(known->handle);
}

namespace {

Status CheckCpu(const MemoryInfo& memory) {
  if (memory.SameDevice(CpuMemory())) return OkStatus();
  return InvalidArgument("no provider allocates memory of '{}', device {}", memory.name,
                         memory.device_id);
}

}  // namespace

OrtStatus* CreateAndRegisterAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info,
                                      const OrtArenaCfg* arena_cfg) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(mem_info);
    TENON_RETURN_IF_ERROR(CheckCpu(*Unwrap(mem_info)));
    std::shared_ptr<Allocator> created = SharedCpuAllocator();
    if (Unwrap(mem_info)->allocator_type == OrtArenaAllocator) {
      const ArenaConfig config = arena_cfg == nullptr ? ArenaConfig() : arena_cfg->config;
      created = std::make_shared<BestFitArena>(std::move(created), config);
    }
    TENON_RETURN_IF_ERROR(env->shared->allocators.Create(std::move(created), false));
    return OkStatus();
  });
}

OrtStatus* CreateAndRegisterAllocatorV2(OrtEnv* env, const char* provider_type,
                                        const OrtMemoryInfo* mem_info, const OrtArenaCfg* arena_cfg,
                                        const char* const*, const char* const*, size_t) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(provider_type);
    if (provider_type != std::string_view("CPUExecutionProvider")) {
      return InvalidArgument("there is no execution provider '{}'", provider_type);
    }
    return TakeOrtStatus(CreateAndRegisterAllocator(env, mem_info, arena_cfg));
  });
}

OrtStatus* RegisterAllocator(OrtEnv* env, OrtAllocator* allocator) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(allocator);
    return env->shared->allocators.Register(allocator);
  });
}

OrtStatus* UnregisterAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(mem_info);
    return env->shared->allocators.Remove(*Unwrap(mem_info));
  });
}

OrtStatus* CreateSharedAllocator(OrtEnv* env, const OrtEpDevice* ep_device,
                                 OrtDeviceMemoryType mem_type, OrtAllocatorType allocator_type,
                                 const OrtKeyValuePairs* allocator_options,
                                 OrtAllocator** allocator) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(ep_device);
    const MemoryInfo* const memory = MemoryOf(*ep_device, mem_type);
    if (memory == nullptr) {
      return InvalidArgument("the device has no memory of type {}", static_cast<int>(mem_type));
    }
    const int type = allocator_type;
    if (type != OrtArenaAllocator && type != OrtDeviceAllocator) {
      return InvalidArgument("a shared allocator is a device's own or an arena, got type {}", type);
    }
    std::shared_ptr<Allocator> created = SharedCpuAllocator();
    if (ep_device->source != nullptr) {
      TENON_ASSIGN_OR_RETURN(created, ep_device->source->MakeAllocator(*memory, allocator_options));
    } else {
      TENON_RETURN_IF_ERROR(CheckCpu(*memory));
    }
    if (type == OrtArenaAllocator) {
      TENON_ASSIGN_OR_RETURN(
          const ArenaConfig config,
          ArenaConfigOf(allocator_options == nullptr ? StringMap() : allocator_options->entries()));
      created = std::make_shared<BestFitArena>(std::move(created), config);
    }
    TENON_ASSIGN_OR_RETURN(
        OrtAllocator* const handle,
        env->shared->allocators.Create(std::move(created), true, ep_device->source));
    if (allocator != nullptr) *allocator = handle;
    return OkStatus();
  });
}

OrtStatus* GetSharedAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info,
                              OrtAllocator** allocator) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(mem_info);
    TENON_RETURN_IF_NULL(allocator);
    *allocator = env->shared->allocators.Find(*Unwrap(mem_info));
    if (*allocator != nullptr || !Unwrap(mem_info)->SameDevice(CpuMemory())) return OkStatus();
    return TakeOrtStatus(GetAllocatorWithDefaultOptions(allocator));
  });
}

OrtStatus* ReleaseSharedAllocator(OrtEnv* env, const OrtEpDevice* ep_device,
                                  OrtDeviceMemoryType mem_type) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(ep_device);
    const MemoryInfo* const memory = MemoryOf(*ep_device, mem_type);
    if (memory == nullptr) {
      return InvalidArgument("the device has no memory of type {}", static_cast<int>(mem_type));
    }
    // Nothing registered is as good.
    if (env->shared->allocators.Find(*memory) == nullptr) return OkStatus();
    return env->shared->allocators.Remove(*memory);
  });
}

}  // namespace tenon::capi
