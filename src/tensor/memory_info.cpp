#include "tensor/memory_info.h"

#include <algorithm>
#include <forward_list>

#include "base/mutex.h"

namespace tenon {

const MemoryInfo& CpuMemory() {
  // Never destroyed, like the list below: tensors may outlive every other object of the library.
  static const MemoryInfo* const info = new MemoryInfo();
  return *info;
}

const MemoryInfo& InternMemoryInfo(const MemoryInfo& info) {
  if (info == CpuMemory()) return CpuMemory();
  static Mutex mutex;
  static auto* const infos = new std::forward_list<MemoryInfo>();
  const MutexLock lock(mutex);
  const auto found = std::find(infos->begin(), infos->end(), info);
  return found != infos->end() ? *found : infos->emplace_front(info);
}

}  // namespace tenon
