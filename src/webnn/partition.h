// A partition: nodes of a model that become one graph of WebNN, for each set of input shapes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "runtime/kernel.h"
#include "webnn/emission.h"
#include "webnn/limits.h"

namespace tenon::webnn {

// Shared by all partitions of a session.
struct Context {
  explicit Context(Limits of_context) : limits(std::move(of_context)) {}

  const Limits limits;
  Folder folder;
};

// Not thread-safe.
class Partition {
 public:
  // `body` has the inferred types. `parameters`: its inputs whose elements follow from shapes, and
  // which are constants in programs. `node` names the first node.
  Partition(std::shared_ptr<Context> context, std::unique_ptr<Graph> body,
            std::vector<bool> parameters, std::string node);

  // Whether all shapes are known without a run: then it is bound already.
  bool is_static() const { return is_static_; }
  const std::string& first_node() const { return first_node_; }
  size_t node_count() const { return node_count_; }
  const std::vector<std::string>& input_names() const { return input_names_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  bool is_parameter(size_t input) const { return parameters_[input]; }
  // The nodes; null after ReleaseConstants.
  const Graph* body() const { return body_.get(); }

  // The state that depends on the shapes of the inputs.
  struct Binding {
    std::vector<Shape> inputs;
    std::vector<Tensor> parameters;  // in the order of the inputs
    std::vector<Descriptor> outputs;
    // Of MakeProgram; its builder keeps the constants.
    std::string program;
    std::unique_ptr<ProgramBuilder> builder;
  };

  // Binds a static partition and writes its program. Error: the part that cannot be written.
  Status BindStatic();
  // The binding for inputs of these types and shapes; only parameters need elements. It lives until
  // others have been requested, at most kMostBindings. A known shape allocates nothing. Errors:
  // those of inference; kNotImplemented for outputs of unknown shape.
  Result<Binding*> Bind(std::span<const Value* const> inputs);
  // The text of the program, made once for each binding. Error: kNotImplemented if WebNN or the
  // context does not support it with these shapes; kFail after ReleaseConstants.
  Result<const std::string*> Program(Binding& binding);
  // The binding of a static partition.
  Binding& static_binding() { return *bindings_.front(); }

  // Releases constants that no further program needs: those of static partitions.
  void ReleaseConstants();

  static constexpr size_t kMostBindings = 64;

 private:
  bool Matches(const Binding& binding, std::span<const Value* const> inputs) const;
  Result<std::unique_ptr<Graph>> BodyFor(const Binding& binding);
  Status InferOutputs(const Graph& body, Binding& binding) const;

  const std::shared_ptr<Context> context_;
  std::unique_ptr<Graph> body_;  // null after ReleaseConstants
  const std::vector<bool> parameters_;
  const std::string first_node_;
  const size_t node_count_;
  std::vector<std::string> input_names_, output_names_;
  bool is_static_ = true;
  std::vector<std::unique_ptr<Binding>> bindings_;  // most recent first
};

// Represents a partition in a plan, which yields at it.
class PartitionKernel final : public Kernel {
 public:
  explicit PartitionKernel(std::shared_ptr<Partition> partition)
      : partition_(std::move(partition)) {}

  Partition& partition() const { return *partition_; }

  KernelTraits traits() const override {
    KernelTraits traits;
    traits.is_stateful = true;
    traits.yields = true;
    return traits;
  }
  Status InferShapes(ShapeContext&) const override { return NotRunHere(); }
  Status Run(KernelContext&) const override { return NotRunHere(); }

 private:
  static Status NotRunHere() { return Fail("a partition is run by WebNN"); }

  const std::shared_ptr<Partition> partition_;
};

}  // namespace tenon::webnn
