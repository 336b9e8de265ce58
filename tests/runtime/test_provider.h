// A provider with a few simple operators of domain "test", and a builder for models that use them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/environment.h"
#include "runtime/session.h"

namespace tenon {

// How often kernels ran, by operator, since the last reset. Counts runs, not plans.
int RunsOf(const std::string& op_type);
void ResetRuns();

// Operators, all on float tensors:
//   Add(a, b)       a + b, same shapes; may work over either input
//   Scale(x)        2 * x; works in place
//   Borrow(x)       2 * x, with as much scratch memory
//   Reuse(x)        2 * x, in memory that it asks for, which may be that of x
//   Positive(x)     the elements > 0, in order: the size depends on the data
//   Fold(x, z)      x backwards + z; may work over z while it reads x
//   Repeat(x, n)    the elements of x n times over; n is one int64
//   Fail(x)         fails with "wanted to"
//   Throw(x)        throws a std::runtime_error
//   Wait(x)         copies x once the run is cancelled
//   Spread(x)       2 * x, an element a block; all threads of the pool take part
//   Watch(x)        1 for each element if the loops of this thread are recorded, else 0
//   Joined(a, b)    a + b, if b lies right behind a
//   Yield(x)        is never run: the caller, who runs the plan in parts, supplies its output
std::unique_ptr<ExecutionProvider> MakeTestProvider();
const ShapeFunctionTable& TestShapeFunctions();

// Builds a model by names: values come into being where they are first named.
class ModelBuilder {
 public:
  ModelBuilder();
  ModelBuilder& Input(const std::string& name, Dims shape, DataType type = DataType::kFloat);
  ModelBuilder& Constant(const std::string& name, Tensor tensor);
  ModelBuilder& Node(const std::string& op_type, std::vector<std::string> inputs,
                     std::vector<std::string> outputs, const std::string& domain = "test",
                     int opset = 1);
  ModelBuilder& Output(const std::string& name);
  Graph& graph() { return *model_.graph; }
  Model Build() { return std::move(model_); }

 private:
  ValueId ValueOf(const std::string& name);
  Model model_;
};

// A session of the `preferred` providers, the test provider and the CPU provider.
Result<std::unique_ptr<Session>> MakeSession(
    Environment& environment, Model model, SessionOptions options = {},
    std::vector<std::unique_ptr<ExecutionProvider>> preferred = {});

}  // namespace tenon
