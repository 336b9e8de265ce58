#include "runtime/kernel_creation.h"

#include <algorithm>

#include "base/exception_barrier.h"
#include "base/json_writer.h"

namespace tenon {

void KernelCreation::End(const Node& node) {
  constexpr size_t kMost = 5;
  if (!is_on_) return;
  ++kernels_;
  const Entry entry = {std::chrono::duration_cast<std::chrono::microseconds>(
                           std::chrono::steady_clock::now() - begin_),
                       &node};
  const auto place =
      std::upper_bound(slowest_.begin(), slowest_.end(), entry,
                       [](const Entry& a, const Entry& b) { return a.time > b.time; });
  if (place == slowest_.end() && slowest_.size() == kMost) return;
  slowest_.insert(place, entry);
  if (slowest_.size() > kMost) slowest_.pop_back();
}

KernelCreation::~KernelCreation() {
  if (is_on_) (void)HasMemoryFor([this] { Describe(); });
}

void KernelCreation::Describe() {
  JsonWriter json;
  json.BeginArray();
  for (const Entry& entry : slowest_) {
    json.BeginObject();
    json.Key("node").Text(entry.node->name);
    json.Key("op_name").Text(entry.node->op_type);
    json.Key("us").Integer(entry.time.count());
    json.EndObject();
  }
  json.EndArray();
  span_.AddArg("kernels", std::to_string(kernels_));
  span_.AddArg("slowest", json.text());
}

}  // namespace tenon
