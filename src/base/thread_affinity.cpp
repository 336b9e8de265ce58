#include "base/thread_affinity.h"

#include <charconv>
#include <utility>

namespace tenon {
namespace {

constexpr int kMostCpus = 1 << 16;

// Calls `body` with each part of `text` between separators, until it fails.
template <class Body>
Status ForEachPart(std::string_view text, char separator, Body&& body) {
  for (;;) {
    const size_t end = text.find(separator);
    TENON_RETURN_IF_ERROR(body(text.substr(0, end)));
    if (end == std::string_view::npos) return OkStatus();
    text.remove_prefix(end + 1);
  }
}

Result<int> ParseCpu(std::string_view text) {
  int cpu = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  if (error != std::errc() || end != text.data() + text.size() || cpu < 1 || cpu > kMostCpus) {
    return InvalidArgument("expected a CPU number from 1, got '{}'", text);
  }
  return cpu - 1;
}

// "3" or "3-5".
Status AppendRange(std::string_view text, std::vector<int>& cpus) {
  const size_t dash = text.find('-');
  TENON_ASSIGN_OR_RETURN(const int first, ParseCpu(text.substr(0, dash)));
  int last = first;
  if (dash != std::string_view::npos) {
    TENON_ASSIGN_OR_RETURN(last, ParseCpu(text.substr(dash + 1)));
  }
  if (last < first) return InvalidArgument("the range '{}' runs backwards", text);
  for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  return OkStatus();
}

}  // namespace

Result<std::vector<std::vector<int>>> ParseThreadAffinities(std::string_view text) {
  std::vector<std::vector<int>> sets;
  TENON_RETURN_IF_ERROR(ForEachPart(text, ';', [&](std::string_view set) -> Status {
    std::vector<int> cpus;
    TENON_RETURN_IF_ERROR(ForEachPart(set, ',', [&](std::string_view part) {
                            return AppendRange(part, cpus);
                          }).WithContext(Format("thread affinities '{}'", set)));
    sets.push_back(std::move(cpus));
    return OkStatus();
  }));
  return sets;
}

}  // namespace tenon
