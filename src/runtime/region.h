// A part of a plan: its steps, and the values that go in and come out.
#pragma once

#include <span>
#include <vector>

#include "runtime/plan.h"

namespace tenon {

// Resolved once, run any number of times.
struct Region {
  uint32_t begin = 0, end = 0;
  // Whether WholePlan made it. Other regions are parts: they leave values to later ones.
  bool is_whole = false;
  // Indices of the steps of [begin, end) to run.
  std::vector<uint32_t> steps;
  // Steps whose outputs are all fed, so that they need not run (cached values).
  std::vector<uint32_t> given;
  // The slots that the caller sets before the steps run, and gets after them.
  std::vector<Slot> feeds;
  std::vector<Slot> fetches;
  std::vector<bool> is_fetched;  // by slot
  // Values of earlier regions in the frame that this one or a later one reads.
  std::vector<Slot> live_in;
  // Values of earlier regions that only the yields at the region's begin took: freed before the
  // first step.
  std::vector<Slot> taken;
  // Values that stay in the frame for later regions, besides constants.
  std::vector<Slot> live_out;
  // Slots that the steps read and do not make, besides constants.
  std::vector<Slot> needed;

  bool IsFetched(Slot slot) const { return is_fetched[static_cast<size_t>(slot)]; }
};

// All steps; the feeds are Plan::inputs, the fetches Plan::outputs.
Region WholePlan(const Plan& plan);

// The steps [begin, end). Slots may be any of the plan's. Errors: kInvalidArgument for a range that
// is not in the plan, or a slot that is not.
Result<Region> ResolveRegion(const Plan& plan, uint32_t begin, uint32_t end,
                             std::span<const Slot> feeds, std::span<const Slot> fetches);

}  // namespace tenon
