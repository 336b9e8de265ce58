// Convolutions that are computed in steps, each of tasks that run at once.
#pragma once

#include <cstddef>

namespace tenon::kernels {

// The steps follow each other; the tasks of one may run in any order and on any threads.
struct ConvSteps {
  size_t count;          // of steps
  size_t shared_bytes;   // memory of the whole convolution, aligned to 64
  size_t scratch_bytes;  // what each running task needs for itself, aligned to 64
};

}  // namespace tenon::kernels
