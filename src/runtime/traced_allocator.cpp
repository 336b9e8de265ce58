#include "runtime/traced_allocator.h"

#include <utility>

#include "base/exception_barrier.h"
#include "runtime/run_meter.h"

namespace tenon {
namespace {

const char* DeviceTypeName(DeviceType type) {
  switch (type) {
    case DeviceType::kCpu:
      return "CPU";
    case DeviceType::kGpu:
      return "GPU";
    case DeviceType::kFpga:
      return "FPGA";
    case DeviceType::kNpu:
      return "NPU";
  }
  return "CPU";
}

constexpr int32_t kReadOnlyAllocator = 2;  // OrtReadOnlyAllocator

const char* MemoryTypeName(const MemoryInfo& info) {
  if (info.memory_type == MemoryType::kHostAccessible) return "host_accessible";
  return info.allocator_type == kReadOnlyAllocator ? "read_only" : "default";
}

}  // namespace

TracedAllocator::TracedAllocator(std::shared_ptr<Allocator> base, std::string provider,
                                 MemoryEvents level, bool feeds_arena,
                                 std::shared_ptr<Profiler> profiler)
    : base_(std::move(base)),
      base_on_streams_(dynamic_cast<StreamAllocator*>(base_.get())),
      provider_(std::move(provider)),
      level_(level),
      feeds_arena_(feeds_arena),
      profiler_(std::move(profiler)) {}

Profiler* TracedAllocator::FindProfiler() const {
  const TraceContext* context = TraceContext::Current();
  Profiler* profiler = context ? context->profiler : profiler_.get();
  return profiler && profiler->memory_events() >= level_ ? profiler : nullptr;
}

// The meter of the calling thread's run. An arena's regions do not count as the run's memory.
RunMeter* TracedAllocator::FindMeter() const {
  const TraceContext* context = feeds_arena_ ? nullptr : TraceContext::Current();
  return context ? context->meter : nullptr;
}

void* TracedAllocator::Allocate(size_t bytes) { return TakeBlock(bytes, nullptr); }

void* TracedAllocator::AllocateOn(size_t bytes, StreamOrder& stream) {
  return TakeBlock(bytes, &stream);
}

void TracedAllocator::ReleaseStream(const StreamOrder& stream) {
  if (base_on_streams_ != nullptr) base_on_streams_->ReleaseStream(stream);
}

void* TracedAllocator::TakeBlock(size_t bytes, StreamOrder* stream) {
  void* block = TakeTraced(bytes, stream);
  RunMeter* const meter = block ? FindMeter() : nullptr;
  if (meter != nullptr) meter->Take(info(), block, bytes);
  return block;
}

void* TracedAllocator::TakeTraced(size_t bytes, StreamOrder* stream) {
  const auto allocate = [&] {
    return stream != nullptr && base_on_streams_ != nullptr
               ? base_on_streams_->AllocateOn(bytes, *stream)
               : base_->Allocate(bytes);
  };
  Profiler* profiler = FindProfiler();
  if (profiler == nullptr) return allocate();
  const int64_t start = profiler->Now();
  void* block = allocate();
  if (block == nullptr) return nullptr;
  const bool is_noted = HasMemoryFor([&] {
    const MutexLock lock(mutex_);
    sizes_[block] = bytes;
    known_ = sizes_.size();
  });
  if (!is_noted) {
    base_->Free(block);
    return nullptr;
  }
  in_use_ += bytes;
  total_ += bytes;
  TryRecord(*profiler, feeds_arena_ ? "arena_extend" : "alloc", start, block, bytes);
  return block;
}

void TracedAllocator::Free(void* block) {
  if (RunMeter* const meter = block ? FindMeter() : nullptr) meter->Give(info(), block);
  Profiler* profiler = block ? FindProfiler() : nullptr;
  if (profiler == nullptr && known_ == 0) return base_->Free(block);
  size_t bytes = 0;
  {
    const MutexLock lock(mutex_);
    if (const auto known = sizes_.extract(block)) bytes = known.mapped();
    known_ = sizes_.size();
  }
  in_use_ -= bytes;
  if (profiler == nullptr) return base_->Free(block);
  const int64_t start = profiler->Now();
  base_->Free(block);
  TryRecord(*profiler, feeds_arena_ ? "arena_shrink" : "free", start, block, bytes);
}

void TracedAllocator::TryRecord(Profiler& profiler, const char* action, int64_t start,
                                const void* block, size_t bytes) {
  (void)HasMemoryFor([&] { Record(profiler, action, start, block, bytes); });
}

void TracedAllocator::Record(Profiler& profiler, const char* action, int64_t start,
                             const void* block, size_t bytes) {
  const MemoryInfo& memory = info();
  const TraceContext* context = TraceContext::Current();
  TraceEvent event;
  event.category = TraceCategory::kMemory;
  event.name = action;
  event.start = start;
  event.duration = profiler.Now() - start;
  event.args = {{"allocator", memory.name},
                {"device", Format("{}:{}", DeviceTypeName(memory.device_type), memory.device_id)},
                {"memory_type", MemoryTypeName(memory)},
                {"provider", provider_},
                {"ptr", Format("{:#x}", reinterpret_cast<uintptr_t>(block))},
                {"bytes", std::to_string(bytes)},
                {"in_use", std::to_string(in_use_.load())},
                {"total", std::to_string(total_.load())},
                {"phase", context ? context->phase : "idle"}};
  if (context && context->node) event.args.push_back({"node", *context->node});
  if (context && context->run_id) {
    event.args.push_back({"run_id", std::to_string(context->run_id)});
  }
  if (profiler.has_memory_counters()) {
    TraceEvent counter;
    counter.category = TraceCategory::kMemory;
    counter.name = memory.name + " bytes";
    counter.start = start + event.duration;
    counter.is_counter = true;
    counter.args = {{"in_use", std::to_string(in_use_.load()), true}};
    profiler.Add(std::move(counter));
  }
  profiler.Add(std::move(event));
}

}  // namespace tenon
