// Where a tensor lies that a node of a run made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/plan.h"

namespace tenon {

struct Placement {
  uint32_t step = 0;  // that made it
  Slot slot = kNoSlot;
  const void* address = nullptr;
  size_t bytes = 0;
  // Its place in the slab of its location, if the memory plan gave it one.
  std::optional<size_t> planned_offset;
};

}  // namespace tenon
