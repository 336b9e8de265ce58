#include "training/memory_profile.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/json_writer.h"
#include "base/mapped_file.h"

namespace tenon {
namespace {

constexpr size_t kMostText = size_t{256} << 20;
// Of the trace viewer's palette.
constexpr std::array<std::string_view, 8> kColors = {
    "thread_state_running", "thread_state_iowait", "rail_response",
    "rail_animation",       "rail_load",           "startup",
    "cq_build_passed",      "generic_work"};

uint32_t NextNumber() {
  static std::atomic<uint32_t> next = 0;
  return next.fetch_add(1);
}

}  // namespace

MemoryProfile::MemoryProfile(std::string folder, const Plan& plan, const Logger& logger)
    : folder_(std::move(folder)), plan_(plan), logger_(logger), number_(NextNumber()) {}

MemoryProfile::~MemoryProfile() {
  const MutexLock lock(mutex_);
  const std::string path = Format("{}/memory_profile_{}_{}.json", folder_, local_rank_, number_);
  const std::string text = Format("[\n{}\n]\n", lines_);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  const Status written = WriteFileAtomically(path, {&bytes, 1});
  if (written.ok()) return;
  TENON_LOG(logger_, kError, "the memory profile is lost: {}", written.message());
}

void MemoryProfile::Add(uint64_t iteration, std::span<const Placement> placements) {
  const MutexLock lock(mutex_);
  if (lines_.size() > kMostText) {
    TENON_LOG(logger_, kWarning, "the memory profile is full and leaves out iteration {}",
              iteration);
    return;
  }
  if (groups_ == 0) AddInitializers();
  // Of each location, the lowest address of its dynamic tensors.
  std::map<uint8_t, uintptr_t> bases;
  const auto location_of = [&](const Placement& placement) {
    return plan_.location_of[static_cast<size_t>(placement.slot)];
  };
  for (const Placement& placement : placements) {
    if (placement.planned_offset) continue;
    const auto address = reinterpret_cast<uintptr_t>(placement.address);
    const auto [base, is_new] = bases.emplace(location_of(placement), address);
    base->second = std::min(base->second, address);
  }
  std::vector<Block> planned, dynamic;
  for (const Placement& placement : placements) {
    const size_t slot = static_cast<size_t>(placement.slot);
    // What no step reads is an output, which stays until the end.
    const int32_t last = plan_.last_memory_use[slot];
    Block block = {NameOf(placement.slot), placement.step,
                   last < 0 ? static_cast<uint32_t>(plan_.steps.size())
                            : std::max(placement.step, static_cast<uint32_t>(last)),
                   placement.planned_offset.value_or(0), placement.bytes};
    if (!placement.planned_offset) {
      block.offset =
          reinterpret_cast<uintptr_t>(placement.address) - bases.at(location_of(placement));
    }
    (placement.planned_offset ? planned : dynamic).push_back(block);
  }
  if (!planned.empty()) AddGroup(Format("static activations_{}", iteration), planned);
  AddGroup(Format("dynamic activations_{}", iteration), dynamic);
}

void MemoryProfile::AddInitializers() {
  std::vector<Block> blocks;
  size_t offset = 0;
  for (const auto& [slot, value] : plan_.constants) {
    if (!value.is_tensor() || value.tensor().bytes() == 0) continue;
    blocks.push_back({NameOf(slot), 0, 0, offset, value.tensor().bytes()});
    offset += value.tensor().bytes();
  }
  AddGroup("initializers", blocks);
}

void MemoryProfile::AddGroup(const std::string& name, std::span<const Block> blocks) {
  ++groups_;
  AddMetadata("process_name", "name", name);
  AddMetadata("process_sort_index", "sort_index", std::to_string(groups_));
  std::set<uint32_t> steps;  // where something begins or ends
  for (const Block& block : blocks) {
    steps.insert(block.first);
    steps.insert(block.last);
  }
  for (const uint32_t step : steps) {
    std::vector<const Block*> live;
    for (const Block& block : blocks) {
      if (block.first <= step && step <= block.last) live.push_back(&block);
    }
    for (const Block* const block : live) AddTensor(step, *block);
    AddSummary(step, live);
  }
}

void MemoryProfile::AddMetadata(std::string_view kind, std::string_view key,
                                std::string_view value) {
  JsonWriter json;
  json.BeginObject();
  json.Key("ph").Text("M");
  json.Key("name").Text(kind);
  json.Key("pid").Integer(groups_);
  json.Key("args").BeginObject();
  json.Key(key).Text(value);
  json.EndObject();
  json.EndObject();
  AddLine(json.text());
}

void MemoryProfile::AddTensor(uint32_t step, const Block& block) {
  JsonWriter json;
  json.BeginObject();
  json.Key("ph").Text("X");
  json.Key("pid").Integer(groups_);
  json.Key("tid").Integer(step);
  json.Key("ts").Integer(block.offset);
  json.Key("dur").Integer(block.bytes);
  json.Key("name").Text(block.name);
  json.Key("cname").Text(kColors[std::hash<std::string_view>()(block.name) % kColors.size()]);
  json.Key("args").BeginObject();
  json.Key("name").Text(block.name);
  json.Key("offset").Integer(block.offset);
  json.Key("size").Integer(block.bytes);
  json.EndObject();
  json.EndObject();
  AddLine(json.text());
}

void MemoryProfile::AddSummary(uint32_t step, std::span<const Block* const> live) {
  size_t total = 0, used = 0;
  for (const Block* const block : live) {
    total = std::max(total, block->offset + block->bytes);
    used += block->bytes;
  }
  total = std::max(total, used);  // blocks of several locations have the same offsets
  const auto whole = static_cast<double>(std::max<size_t>(1, total));
  // Left of the tensors.
  const auto width = static_cast<int64_t>(std::max<size_t>(10, total / 10));
  JsonWriter json;
  json.BeginObject();
  json.Key("ph").Text("X");
  json.Key("pid").Integer(groups_);
  json.Key("tid").Integer(step);
  json.Key("ts").Integer(-width);
  json.Key("dur").Integer(width);
  json.Key("name").Text("Summary");
  json.Key("cname").Text("black");
  json.Key("args").BeginObject();
  json.Key("total_bytes").Integer(total);
  json.Key("used_bytes").Integer(used);
  json.Key("free_bytes").Integer(total - used);
  json.Key("used_percent").Number(100 * static_cast<double>(used) / whole);
  json.Key("free_percent").Number(100 * static_cast<double>(total - used) / whole);
  json.Key("bytes for pattern").Integer(used);
  json.EndObject();
  json.EndObject();
  AddLine(json.text());
}

void MemoryProfile::AddLine(const std::string& line) {
  if (!lines_.empty()) lines_ += ",\n";
  lines_ += line;
}

std::string_view MemoryProfile::NameOf(Slot slot) const {
  return plan_.graph->value(plan_.value_of[static_cast<size_t>(slot)]).name;
}

}  // namespace tenon
