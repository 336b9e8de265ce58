// The CPUs that the process may use, and the memory that it holds.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

// Number of threads that can run at the same time: the affinity mask of the calling thread, cut to
// the CPU quota of the process's control groups (v1 or v2, rounded up). At least 1. Reads several
// small files of /proc and /sys: call it once, not in a loop.
int UsableCpuCount();

// CPUs that the control groups allow, e.g. 1.5, or nullopt where there is no limit.
// proc_self_cgroup  the text of /proc/self/cgroup
// cgroup_root       where the control groups are mounted, normally /sys/fs/cgroup
// Every ancestor group is consulted and the tightest limit holds.
std::optional<double> CgroupCpuQuota(std::string_view proc_self_cgroup,
                                     const std::string& cgroup_root);

// "AMD EPYC 7B13", or "" if the system does not say.
std::string CpuModelName();

// Sizes in bytes of the caches of one core; 0 if the system does not say.
struct CacheSizes {
  size_t l1_data = 0;
  size_t l2 = 0;
  size_t l3 = 0;
};
CacheSizes CpuCacheSizes();

// Resident memory of this process in bytes, now and at its peak; 0 if the system does not say.
size_t CurrentResidentBytes();
size_t PeakResidentBytes();

}  // namespace tenon
