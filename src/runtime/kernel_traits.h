// What the planner must know about a kernel.
#pragma once

#include <cstdint>

namespace tenon {

// How a kernel treats its outputs; the planner relies on it.
struct KernelTraits {
  // Output 0 has the elements of input 0 with another shape: the executor shares the memory and
  // never calls Run.
  bool is_view = false;
  // Run reads input `unaligned_input` bytewise, so a constant there need not be aligned; -1: none.
  int8_t unaligned_input = -1;
  // Output 0 may be written over input `in_place_input` if both have the same size in bytes and
  // nothing else reads the input afterwards; -1: none. `in_place_also` is a second candidate.
  int8_t in_place_input = -1;
  int8_t in_place_also = -1;
  // Output 0 has the elements of all inputs, joined along one axis. Run leaves an input alone that
  // lies where the output has its elements.
  bool joins_inputs = false;
  // The kernel finds the output shapes itself and calls AllocateOutput or SetOutput for each.
  bool allocates_outputs = false;
  // An output that the caller binds to the memory of a feed is written there while the kernel runs:
  // the caller knows that the kernel works so, as with the caches of a decoder.
  bool may_write_feeds = false;
  // The elements of the outputs depend on the shapes of the inputs alone (Shape, Size).
  bool reads_shapes_only = false;
  // All elements of the only output are equal, and Run fills a tensor of any size: a large constant
  // is made by repeating a part.
  bool fills_evenly = false;
  // Equal inputs may give different outputs (random numbers), or Run has side effects: the node is
  // never folded or cached.
  bool is_stateful = false;
  // The executor does not run the node. The code that runs the plan in parts takes its inputs and
  // supplies its outputs between two parts.
  bool yields = false;
  // The kernel needs the memory of its inputs, which are tensors, side by side in their order, as
  // collective communication does. A run where that is not so fails.
  bool contiguous_inputs = false;
};

}  // namespace tenon
