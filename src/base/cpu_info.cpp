#include "base/cpu_info.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/text.h"

namespace tenon {
namespace {

constexpr size_t kSmallFile = 64 * 1024;

// The start of a small file of /proc or /sys, or "" if it cannot be read.
std::string ReadSmallFile(const std::string& path, size_t limit = kSmallFile) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  std::string text;
  if (!file) return text;
  char part[1024];
  // Without a buffer of its own, so that the system formats no more of the text than is read.
  std::setvbuf(file.get(), nullptr, _IONBF, 0);
  while (text.size() < limit) {
    const size_t count = std::fread(part, 1, sizeof(part), file.get());
    if (count == 0) break;
    text.append(part, count);
  }
  return text;
}

// Removes the text before the first `separator` from `rest`, and the separator too.
std::string_view TakeUntil(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<double> Ratio(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// Version 2: the file cpu.max holds "QUOTA PERIOD" or "max PERIOD".
std::optional<double> QuotaV2(const std::string& folder) {
  const std::string text = ReadSmallFile(folder + "/cpu.max");
  std::string_view rest = text;
  const std::string_view quota = TakeUntil(rest, ' ');
  return Ratio(ParseInteger(quota), ParseInteger(rest));
}

// Version 1: one file for each number; a quota of -1 means no limit.
std::optional<double> QuotaV1(const std::string& folder) {
  const auto quota = ParseInteger(ReadSmallFile(folder + "/cpu.cfs_quota_us"));
  if (!quota || *quota <= 0) return std::nullopt;
  return Ratio(quota, ParseInteger(ReadSmallFile(folder + "/cpu.cfs_period_us")));
}

void Tighten(std::optional<double>& limit, std::optional<double> candidate) {
  if (candidate) limit = limit ? std::min(*limit, *candidate) : *candidate;
}

// Reads the group `path` and its ancestors up to the mount point. In a container the path may be
// the host's and not exist; then only the existing ancestors count.
void TightenAlong(std::optional<double>& limit, const std::string& mount, std::string_view path,
                  std::optional<double> (*quota)(const std::string&)) {
  while (!path.empty() && path != "/") {
    Tighten(limit, quota(mount + std::string(path)));
    path = path.substr(0, path.rfind('/'));
  }
  Tighten(limit, quota(mount));
}

bool HasController(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    if (TakeUntil(controllers, ',') == wanted) return true;
  }
  return false;
}

#if defined(CPU_ALLOC_SIZE)

int AffinityCount() {
  // On machines with more CPUs than cpu_set_t has bits, the call is repeated with a larger set.
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 16); cpus *= 2) {
    const size_t size_bytes = CPU_ALLOC_SIZE(cpus);
    std::vector<cpu_set_t> set((size_bytes + sizeof(cpu_set_t) - 1) / sizeof(cpu_set_t));
    if (sched_getaffinity(0, size_bytes, set.data()) == 0) {
      return CPU_COUNT_S(size_bytes, set.data());
    }
  }
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

#else

int AffinityCount() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

#endif

// The value of the first "key: value" line of /proc text whose key is `key`.
std::string_view ProcField(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view value = TakeUntil(text, '\n');
    std::string_view name = TakeUntil(value, ':');
    while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
    if (name != key) continue;
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) {
      value.remove_prefix(1);
    }
    return value;
  }
  return "";
}

// Linux lists the caches of CPU 0 as index0, index1, ...: level, type, and a size such as "512K".
size_t CacheSize(std::string_view level, std::string_view other_type) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = Format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    const std::string found_level = ReadSmallFile(folder + "level");
    if (found_level.empty()) break;
    const std::string type = ReadSmallFile(folder + "type");
    if (!found_level.starts_with(level) || type.starts_with(other_type)) continue;
    const std::string size = ReadSmallFile(folder + "size");
    const int64_t number = ParseInteger(size).value_or(0);
    const size_t unit = size.find('M') != std::string::npos   ? size_t{1} << 20
                        : size.find('K') != std::string::npos ? size_t{1} << 10
                                                              : 1;
    return number > 0 ? static_cast<size_t>(number) * unit : 0;
  }
  return 0;
}

}  // namespace

std::optional<double> CgroupCpuQuota(std::string_view proc_self_cgroup,
                                     const std::string& cgroup_root) {
  std::optional<double> limit;
  while (!proc_self_cgroup.empty()) {  // lines "ID:CONTROLLERS:PATH"; version 2 has ID 0 and none
    std::string_view path = TakeUntil(proc_self_cgroup, '\n');
    const std::string_view id = TakeUntil(path, ':');
    const std::string_view controllers = TakeUntil(path, ':');
    if (id == "0" && controllers.empty()) {
      TightenAlong(limit, cgroup_root, path, &QuotaV2);
    } else if (HasController(controllers, "cpu")) {
      TightenAlong(limit, cgroup_root + "/cpu", path, &QuotaV1);
      if (controllers == "cpu") continue;
      TightenAlong(limit, cgroup_root + "/" + std::string(controllers), path, &QuotaV1);
    }
  }
  return limit;
}

int UsableCpuCount() {
  int count = AffinityCount();
  if (const auto quota = CgroupCpuQuota(ReadSmallFile("/proc/self/cgroup"), "/sys/fs/cgroup")) {
    if (*quota < count) count = static_cast<int>(std::ceil(*quota));
  }
  return std::max(count, 1);
}

std::string CpuModelName() {
  // The first processor stands for all of them.
  return std::string(ProcField(ReadSmallFile("/proc/cpuinfo", 2048), "model name"));
}

CacheSizes CpuCacheSizes() {
  return {.l1_data = CacheSize("1", "Instruction"),
          .l2 = CacheSize("2", "Instruction"),
          .l3 = CacheSize("3", "Instruction")};
}

size_t CurrentResidentBytes() {
  const std::string text = ReadSmallFile("/proc/self/statm");  // pages: total resident ...
  std::string_view rest = text;
  TakeUntil(rest, ' ');
  const int64_t pages = ParseInteger(rest).value_or(0);
  return static_cast<size_t>(pages) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t PeakResidentBytes() {
  // getrusage's figure would include the memory of the process before exec.
  const std::string text = ReadSmallFile("/proc/self/status");
  return static_cast<size_t>(ParseInteger(ProcField(text, "VmHWM")).value_or(0)) * 1024;
}

}  // namespace tenon
