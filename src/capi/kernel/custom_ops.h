// Operators that clients implement (OrtCustomOp), as a provider of sessions.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dynamic_library.h"
#include "base/function_ref.h"
#include "base/logging.h"
#include "base/string_map.h"
#include "capi/kernel/custom_op.h"
#include "ir/other_shapes.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"
#include "runtime/session_options.h"

struct OrtSessionOptions;

struct OrtCustomOpDomain {
  std::string name;  // "" for ai.onnx
  std::vector<const OrtCustomOp*> ops;
};

namespace tenon {
class Environment;
class ExecutionProvider;
}  // namespace tenon

namespace tenon::capi {

// The custom operators of one session. Outlives it.
class CustomOps final : public OtherShapes {
 public:
  // Null if the options have none. Error: kInvalidArgument for an operator that breaks the rules.
  static Result<std::unique_ptr<CustomOps>> For(const OrtSessionOptions& options,
                                                const SessionOptions& session_options,
                                                Environment& environment);

  // Of the operators that the CPU runs.
  std::unique_ptr<ExecutionProvider> MakeProvider() const;
  // The operator's kernel for a single node that a plugin claimed. Null if the operator is not one
  // of these, or is another provider's.
  Result<std::unique_ptr<Kernel>> MakeKernel(KernelInfo& info, const std::string& provider) const;
  // The operator for a node: of those that take the types of its inputs the one with the newest
  // version, and of these the first. Null if there is none.
  const CustomOp* Find(const Node& node, FunctionRef<DataType(size_t input)> type_of_input) const;
  const Logger& logger() const { return logger_; }
  const StringMap& config() const { return config_; }

  ShapeFunction Find(const Node& node) const override;
  Status InferOther(const Node& node, ShapeContext& context) const override;

 private:
  CustomOps(const SessionOptions& options, const Logger& fallback);

  // Destroyed last, after the kernels of their operators.
  std::vector<std::shared_ptr<DynamicLibrary>> libraries_;
  std::vector<CustomOp> ops_;
  const Logger logger_;
  const StringMap config_;
};

}  // namespace tenon::capi
