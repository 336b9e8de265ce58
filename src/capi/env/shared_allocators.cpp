#include "capi/env/shared_allocators.h"

#include <algorithm>
#include <utility>

#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/ep_source.h"
#include "capi/value/allocator.h"

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
  if (known != entries_.end()) {
    if (known->is_of_plugin) displaced_.push_back({known->memory, known->source});
    Erase(known);
  }
  // Alignment needs a write in front of a block, which is only possible in the host's memory.
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
  entries_.reserve(entries_.size() + 1);
  entries_.push_back({&memory, NewSharedAllocator(std::move(allocator), is_stream_aware), source,
                      nullptr, source != nullptr});
}

void SharedAllocators::AddDefault(std::shared_ptr<Allocator> allocator,
                                  const std::shared_ptr<EpSource>& source) {
  const MemoryInfo& memory = InternMemoryInfo(allocator->info());
  const MutexLock lock(mutex_);
  if (FindEntry(memory) != entries_.end()) return;
  Add(memory, std::move(allocator), source);
  entries_.back().is_default = true;
}

void SharedAllocators::ReleaseDefault(const MemoryInfo& memory) {
  const MutexLock lock(mutex_);
  const auto known = FindEntry(memory);
  if (known == entries_.end() || !known->is_default) return;
  displaced_.push_back({known->memory, known->source});
  Erase(known);
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
  // Kept, not leaked: it is freed when the process ends.
  static auto* const kept = new std::vector<Entry>();
  const MutexLock lock(mutex_);
  for (Entry& entry : entries_) kept->push_back(std::move(entry));
  entries_.clear();
}

OrtAllocator* SharedAllocators::Create(std::shared_ptr<Allocator> allocator,
                                       const std::shared_ptr<EpSource>& source) {
  const MemoryInfo& memory = InternMemoryInfo(allocator->info());
  const MutexLock lock(mutex_);
  const auto known = FindEntry(memory);
  if (known != entries_.end()) Erase(known);
  std::erase_if(displaced_, [&](const Displaced& one) { return one.memory->SameDevice(memory); });
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

// Makes the default allocator of the memory again if a client's replaced it and has been removed.
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
  // It was not requested by name, so a failure only means that there is none.
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

}  // namespace tenon::capi
