#include "runtime/kernel_context.h"

#include <algorithm>
#include <array>

#include "base/arithmetic.h"

namespace tenon {
namespace {

// Pieces of scratch memory. Each is used by one task at a time, and there are as many as threads,
// so a task always finds a free one.
class ScratchPieces {
 public:
  static constexpr size_t kMost = 64;

  ScratchPieces(std::byte* memory, size_t piece_bytes, size_t count)
      : memory_(memory), piece_bytes_(piece_bytes), count_(count) {}

  size_t Take() {
    for (size_t i = 0;; i = (i + 1) % count_) {
      if (!taken_[i].exchange(true, std::memory_order_acquire)) return i;
    }
  }
  void GiveBack(size_t piece) { taken_[piece].store(false, std::memory_order_release); }
  std::byte* At(size_t piece) const { return memory_ + piece * piece_bytes_; }

 private:
  std::byte* const memory_;
  const size_t piece_bytes_;
  const size_t count_;
  std::array<std::atomic<bool>, kMost> taken_ = {};
};

size_t PieceCount(const ThreadPool& threads, size_t tasks) {
  const auto thread_count = static_cast<size_t>(threads.threads());
  return std::min({thread_count, std::max<size_t>(tasks, 1), ScratchPieces::kMost});
}

}  // namespace

Result<Tensor> KernelContext::AllocateTensor(DataType type, const Shape& shape) const {
  return Tensor::Allocate(type, shape, host_memory_ ? *host_memory_ : SharedCpuAllocator());
}

size_t KernelContext::TaskScratchBytes(size_t count, size_t scratch_bytes) const {
  const std::optional<size_t> piece = CheckedRoundUp<size_t>(scratch_bytes, 64);
  const std::optional<size_t> bytes =
      piece ? CheckedMul<size_t>(*piece, PieceCount(*threads_, count)) : std::nullopt;
  return bytes.value_or(SIZE_MAX);
}

void KernelContext::ForEachTaskIn(std::byte* memory, size_t count, size_t scratch_bytes,
                                  FunctionRef<void(size_t task, std::byte* scratch)> body) {
  if (scratch_bytes == 0 || count == 1) {
    threads().ParallelFor(count, 1, [&](size_t begin, size_t end) {
      for (size_t task = begin; task < end; ++task) body(task, memory);
    });
    return;
  }
  ScratchPieces scratch(memory, RoundUp<size_t>(scratch_bytes, 64), PieceCount(*threads_, count));
  threads().ParallelFor(count, 1, [&](size_t begin, size_t end) {
    const size_t piece = scratch.Take();
    for (size_t task = begin; task < end; ++task) body(task, scratch.At(piece));
    scratch.GiveBack(piece);
  });
}

Status KernelContext::ForEachTask(size_t count, size_t scratch_bytes,
                                  FunctionRef<void(size_t task, std::byte* scratch)> body) {
  std::byte* memory = nullptr;
  if (scratch_bytes > 0) {
    memory = static_cast<std::byte*>(Scratch(TaskScratchBytes(count, scratch_bytes)));
    if (memory == nullptr) {
      return RuntimeException("out of memory: {} bytes of scratch for {} tasks", scratch_bytes,
                              PieceCount(*threads_, count));
    }
  }
  ForEachTaskIn(memory, count, scratch_bytes, body);
  return OkStatus();
}

}  // namespace tenon
