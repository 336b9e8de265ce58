// Operators that clients implement (OrtCustomOp), as a provider of sessions.
#pragma once

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dynamic_library.h"
#include "base/logging.h"
#include "base/string_map.h"
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

// A client's operator with the slots that its version has; those of later versions read as null.
class CustomOp {
 public:
  CustomOp(std::string domain, const OrtCustomOp& op, std::string provider);

  const OrtCustomOp& table() const { return op_; }
  // What the table's functions get.
  const OrtCustomOp* client() const { return client_; }
  const std::string& domain() const { return domain_; }
  const std::string& name() const { return name_; }
  // The plugin whose provider runs it; "" for the CPU.
  const std::string& provider() const { return provider_; }
  int start_version() const { return start_version_; }
  // Whether nodes of this name, domain and opset version mean the operator.
  bool Implements(const Node& node) const;
  // Error: kInvalidGraph for a node with other numbers or types of inputs and outputs.
  // `type_of_input` gives kUndefined for what is not known.
  Status CheckNode(const Node& node, FunctionRef<DataType(size_t input)> type_of_input) const;
  // The element type of an output, kUndefined if the operator leaves it open and no input says.
  DataType OutputType(size_t output, size_t output_count,
                      FunctionRef<DataType(size_t input)> type_of_input) const;
  size_t input_count() const { return inputs_.size(); }
  // Where the i-th input of a node is to lie.
  Residence InputResidence(size_t i) const {
    return inputs_.empty() ? Residence::kProvider
                           : inputs_[std::min(i, inputs_.size() - 1)].residence;
  }

 private:
  struct Formal {
    DataType type = DataType::kUndefined;  // any
    OrtCustomOpInputOutputCharacteristic kind = INPUT_OUTPUT_REQUIRED;
    Residence residence = Residence::kProvider;
  };
  static Status CheckCount(std::span<const Formal> formals, int min_variadic,
                           const std::vector<ValueId>& values, std::string_view word);

  OrtCustomOp op_;
  const OrtCustomOp* client_;
  std::string domain_;
  std::string name_;
  std::string provider_;
  std::vector<Formal> inputs_, outputs_;
  int min_variadic_inputs_ = 1, min_variadic_outputs_ = 1;
  bool variadic_inputs_are_alike_ = true, variadic_outputs_are_alike_ = true;
  int start_version_ = 1, end_version_ = INT32_MAX;
};

// The custom operators of one session. Outlives it.
class CustomOps final : public OtherShapes {
 public:
  // Null if the options have none.
  static std::unique_ptr<CustomOps> For(const OrtSessionOptions& options,
                                        const SessionOptions& session_options,
                                        Environment& environment);

  // Of the operators that the CPU runs.
  std::unique_ptr<ExecutionProvider> MakeProvider() const;
  // The operator's kernel for a node that a plugin claimed alone. Null if the operator is none of
  // these, or another provider's.
  Result<std::unique_ptr<Kernel>> MakeKernel(KernelInfo& info, const std::string& provider) const;
  // The operator that nodes like this one mean; of several, the first that takes the types of its
  // inputs. Null if there is none.
  const CustomOp* Find(const Node& node, FunctionRef<DataType(size_t input)> type_of_input) const;
  const Logger& logger() const { return logger_; }
  const StringMap& config() const { return config_; }

  ShapeFunction Find(const Node& node) const override;
  Status InferOther(const Node& node, ShapeContext& context) const override;

 private:
  CustomOps(const SessionOptions& options, const Logger& fallback);

  // Go last, after the kernels that are in them.
  std::vector<std::shared_ptr<DynamicLibrary>> libraries_;
  std::vector<CustomOp> ops_;
  const Logger logger_;
  const StringMap config_;
};

}  // namespace tenon::capi
