// A step of a plan that is no generated kernel: a function of a library, or a kernel that is
// written by hand. Providers derive from it.
#pragma once

#include <memory>
#include <vector>

#include "tensor.h"

namespace codegen {

struct Call {
  explicit Call(std::vector<TensorRef> read) : operands(std::move(read)) {}
  virtual ~Call() = default;
  Call(const Call&) = default;
  Call& operator=(const Call&) = delete;

  // What it is called in traces.
  virtual const char* name() const = 0;
  // Called once, when the step joins a plan, and before anything else is asked: may set
  // workspace_bytes.
  virtual Status Prepare() { return Status(); }

  std::vector<TensorRef> operands;  // what it reads, in memory when it runs
  // Memory that it writes besides its result (Planner::Allocate): store the result before others
  // read it.
  std::vector<TensorRef> also_writes;
  Shape strides;               // of the result; empty: row-major
  size_t workspace_bytes = 0;  // of memory for itself, aligned to 256 bytes
};

}  // namespace codegen
