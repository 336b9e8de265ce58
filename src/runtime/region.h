// A part of a plan: which steps, and which values cross its borders.
#pragma once

#include <span>
#include <vector>

#include "runtime/plan.h"

namespace tenon {

// Resolved once, run any number of times.
struct Region {
  uint32_t begin = 0, end = 0;
  // Made by WholePlan. A part takes some feeds and leaves values to later parts.
  bool is_whole = false;
  // Indices of the steps of [begin, end) to run.
  std::vector<uint32_t> steps;
  // Those whose outputs are all fed, so that their results are there already (cached values).
  std::vector<uint32_t> given;
  // What the caller sets before the steps run and gets after them.
  std::vector<Slot> feeds;
  std::vector<Slot> fetches;
  std::vector<bool> is_fetched;  // by slot
  // What earlier regions left in the frame and this one or a later one reads.
  std::vector<Slot> live_in;
  // What they left and only yields at the region's begin took: free before the first step.
  std::vector<Slot> taken;
  // What stays in the frame for later regions, besides constants.
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
