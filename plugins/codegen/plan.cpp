#include "plan.h"

#include <algorithm>

namespace codegen {
namespace {

constexpr size_t kAlignment = 256;  // no vector type needs more

bool Overlap(const Storage& a, const Storage& b) {
  return a.first_use <= b.last_use && b.first_use <= a.last_use;
}

void FindUses(Plan& plan) {
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    for (const Argument& argument : plan.launches[i].arguments) {
      if (argument.kind != Argument::kBuffer) continue;
      Storage& storage = plan.storages[static_cast<size_t>(argument.storage)];
      if (storage.first_use < 0) storage.first_use = static_cast<int>(i);
      storage.last_use = static_cast<int>(i);
    }
  }
}

}  // namespace

void PlaceScratch(Plan& plan) {
  FindUses(plan);
  std::vector<Storage*> wanted;
  for (Storage& storage : plan.storages) {
    if (storage.kind == Storage::kScratch && storage.first_use >= 0) wanted.push_back(&storage);
  }
  // Large ones first: small ones fit into the gaps between them.
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const Storage* a, const Storage* b) { return a->bytes > b->bytes; });
  std::vector<Storage*> placed;  // by offset
  for (Storage* storage : wanted) {
    const size_t size = (storage->bytes + kAlignment - 1) / kAlignment * kAlignment;
    size_t offset = 0;
    for (const Storage* other : placed) {
      if (!Overlap(*storage, *other)) continue;
      if (other->slab_offset >= offset + size) break;
      const size_t end =
          other->slab_offset + (other->bytes + kAlignment - 1) / kAlignment * kAlignment;
      offset = std::max(offset, end);
    }
    storage->slab_offset = offset;
    plan.slab_bytes = std::max(plan.slab_bytes, offset + size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), storage,
                                   [](const Storage* a, const Storage* b) {
                                     return a->slab_offset < b->slab_offset;
                                   }),
                  storage);
  }
}

}  // namespace codegen
