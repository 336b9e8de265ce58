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

  std::vector<TensorRef> operands;     // what it reads, in memory when it runs
  std::vector<TensorRef> also_writes;  // in memory; its result comes on top
  Shape strides;                       // of the result; empty: row-major
  size_t workspace_bytes = 0;          // of memory for itself
};

}  // namespace codegen
