#include "device_trace.h"

#include <algorithm>

namespace cuda {
namespace {

// Events hold driver objects: their times are read when this many wait.
constexpr size_t kMaxPending = 4096;

CUevent RecordEvent(CUstream stream) {
  CUevent event = nullptr;
  if (Cu().cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return nullptr;
  if (Cu().cuEventRecord(event, stream) == CUDA_SUCCESS) return event;
  Cu().cuEventDestroy(event);
  return nullptr;
}

std::chrono::nanoseconds Between(CUevent from, CUevent to) {
  float milliseconds = 0;
  Cu().cuEventElapsedTime(&milliseconds, from, to);
  return std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6));
}

}  // namespace

DeviceTrace::~DeviceTrace() {
  if (!device_.MakeCurrent().ok()) return;
  for (const Pending& pending : pending_) {
    Cu().cuEventDestroy(pending.begin);
    Cu().cuEventDestroy(pending.end);
  }
  if (origin_) Cu().cuEventDestroy(origin_);
}

// An event that has just happened on an idle stream: the quickest of several is nearest to the
// truth.
Status DeviceTrace::Calibrate() {
  constexpr int kEvents = 8;
  PLUGIN_RETURN_IF_ERROR(device_.MakeCurrent());
  ReadTimes();
  auto least = std::chrono::nanoseconds::max();
  for (int i = 0; i < kEvents; ++i) {
    const auto before = Now();
    CUevent event = RecordEvent(device_.transfer_stream());
    if (!event) return Failure("expected an event of the device's clock");
    const Status status = CU_CHECK(cuEventSynchronize, event);
    const auto after = Now();
    const bool is_better = status.ok() && after - before < least;
    if (is_better) {
      least = after - before;
      origin_time_ = before + (after - before) / 2;
      std::swap(origin_, event);
    }
    if (event) Cu().cuEventDestroy(event);
    PLUGIN_RETURN_IF_ERROR(status);
  }
  return Status();
}

CUevent DeviceTrace::Begin(CUstream stream) { return is_active() ? RecordEvent(stream) : nullptr; }

void DeviceTrace::End(std::string name, CUevent begin, CUstream stream) {
  if (!begin) return;
  const CUevent end = RecordEvent(stream);
  if (!end) {
    Cu().cuEventDestroy(begin);
    return;
  }
  const std::lock_guard lock(mutex());
  pending_.push_back({std::move(name), begin, end, CurrentCause()});
  if (pending_.size() >= kMaxPending) ReadTimes();
}

void DeviceTrace::ReadTimes() {
  if (pending_.empty() || !device_.MakeCurrent().ok()) return;
  for (const Pending& pending : pending_) {
    if (Cu().cuEventSynchronize(pending.end) == CUDA_SUCCESS) {
      AddRecord({pending.name, origin_time_ + Between(origin_, pending.begin),
                 Between(pending.begin, pending.end), pending.cause});
    }
    Cu().cuEventDestroy(pending.begin);
    Cu().cuEventDestroy(pending.end);
  }
  pending_.clear();
}

}  // namespace cuda
