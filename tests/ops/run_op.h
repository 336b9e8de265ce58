// Runs one operator by itself, as the executor does.
#pragma once

#include <string>
#include <vector>

#include "ir/make_attributes.h"
#include "ops/framework/registry.h"

namespace tenon {

struct OpCall {
  std::string op_type;
  int32_t opset = 0;          // 0: the newest
  std::vector<Value> inputs;  // kNone: left out
  std::vector<Attribute> attributes = {};
  size_t output_count = 1;
  std::string domain = "";
  // Inputs from this index on are constants of the graph when the kernel is made.
  size_t first_constant = SIZE_MAX;
};

// The outputs, or the failure of the shape function or kernel. A wrong operator name is a failure
// kNotImplemented.
Result<std::vector<Value>> RunOp(OpCall call, int threads = 2);

// Same with one tensor output, which a test can use at once; a failure is reported to GoogleTest
// and gives an undefined tensor.
Tensor RunTensorOp(OpCall call);

}  // namespace tenon
