#include "runtime/run_meter.h"

#include <algorithm>
#include <utility>

namespace tenon {

using Clock = std::chrono::steady_clock;

RunMeter::NodeScope::NodeScope(RunMeter* meter, const std::string& provider)
    : meter_(meter), provider_(provider) {
  if (meter_ == nullptr) return;
  outer_inner_ = std::exchange(meter_->inner_, std::chrono::nanoseconds(0));
  start_ = Clock::now();
}

RunMeter::NodeScope::~NodeScope() {
  if (meter_ == nullptr) return;
  const std::chrono::nanoseconds time = Clock::now() - start_;
  const std::chrono::nanoseconds own = time - meter_->inner_;
  meter_->inner_ = outer_inner_ + time;
  if (is_dropped_) return;
  std::vector<Provider>& providers = meter_->providers_;
  auto provider = std::find_if(providers.begin(), providers.end(),
                               [&](const Provider& known) { return known.name == provider_; });
  if (provider == providers.end()) provider = providers.insert(provider, {.name = provider_});
  ++provider->nodes;
  provider->time += own;
}

void RunMeter::Place::NotePeak() {
  total.static_bytes = std::max(total.static_bytes, planned);
  total.peak_bytes = std::max(total.peak_bytes, planned + taken);
}

RunMeter::Place& RunMeter::PlaceOf(const MemoryInfo& memory) {
  Place& place = places_[{memory.name, memory.device_id}];
  place.total.name = memory.name;
  place.total.device_id = memory.device_id;
  return place;
}

void RunMeter::HoldPlanned(const MemoryInfo& memory, size_t bytes) {
  Place& place = PlaceOf(memory);
  place.planned += bytes;
  place.NotePeak();
}

void RunMeter::ReleasePlanned(const MemoryInfo& memory, size_t bytes) {
  PlaceOf(memory).planned -= bytes;
}

void RunMeter::Take(const MemoryInfo& memory, const void* block, size_t bytes) {
  if (is_paused_) return;
  Place& place = PlaceOf(memory);
  blocks_[block] = bytes;
  place.taken += bytes;
  place.total.dynamic_bytes += bytes;
  place.NotePeak();
}

void RunMeter::Give(const MemoryInfo& memory, const void* block) {
  const auto known = blocks_.extract(block);
  if (known) PlaceOf(memory).taken -= known.mapped();
}

uint64_t RunMeter::nodes() const {
  uint64_t nodes = 0;
  for (const Provider& provider : providers_) nodes += provider.nodes;
  return nodes;
}

std::vector<RunMeter::Provider> RunMeter::providers() const { return providers_; }

std::vector<RunMeter::Location> RunMeter::locations() const {
  std::vector<Location> locations;
  for (const auto& [key, place] : places_) locations.push_back(place.total);
  return locations;
}

}  // namespace tenon
