// Runs passes by name: users can leave one out, and a trace shows what each did.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/function_ref.h"
#include "base/status.h"

namespace tenon {

class Graph;

class PassRunner {
 public:
  // Changes a graph and returns the number of changes.
  using Pass = FunctionRef<Result<size_t>()>;

  virtual ~PassRunner() = default;
  // Calls `pass`, which changes `graph`, unless the user left out passes of this name: then it
  // returns 0. Names are in CamelCase, as those of ONNX Runtime's.
  virtual Result<size_t> Run(std::string_view name, const Graph& graph, Pass pass) = 0;
  // Calls what cannot be left out. Names are in snake_case.
  virtual Status RunRequired(std::string_view name, const Graph& graph,
                             FunctionRef<Status()> pass) = 0;
};

// Calls every pass and does nothing else.
class PlainPassRunner final : public PassRunner {
 public:
  Result<size_t> Run(std::string_view, const Graph&, Pass pass) override { return pass(); }
  Status RunRequired(std::string_view, const Graph&, FunctionRef<Status()> pass) override {
    return pass();
  }
};

}  // namespace tenon
