// What a provider runs for a node.
#pragma once

#include "base/status.h"
#include "ir/shape_context.h"
#include "runtime/kernel_context.h"
#include "runtime/kernel_traits.h"

namespace tenon {

// Where a kernel wants an input or leaves an output.
enum class Residence : uint8_t {
  kProvider,  // the memory of the provider that owns the node
  kHost,      // the CPU's memory: shapes, axes, conditions
};

// Run may be called any number of times, from several threads at once; it changes nothing in the
// kernel.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual KernelTraits traits() const { return {}; }
  virtual Residence InputResidence(size_t i) const {
    (void)i;
    return Residence::kProvider;
  }
  virtual Residence OutputResidence(size_t i) const {
    (void)i;
    return Residence::kProvider;
  }
  // For kernels with traits().allocates_outputs: the input over which output `i` may be written, if
  // both have the same size in bytes and nothing else reads the input afterwards; -1: none.
  virtual int InputToOverwrite(size_t i) const {
    (void)i;
    return -1;
  }
  // Shapes of the outputs; not called if traits().allocates_outputs.
  virtual Status InferShapes(ShapeContext& context) const = 0;
  // Errors describe the cause; the executor adds node, operator and value names.
  virtual Status Run(KernelContext& context) const = 0;
};

}  // namespace tenon
