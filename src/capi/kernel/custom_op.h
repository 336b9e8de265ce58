// One operator that a client implements (OrtCustomOp).
#pragma once

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "ir/graph.h"
#include "runtime/kernel.h"
#include "tensor/data_type.h"

namespace tenon::capi {

// A client's operator with the slots of its version; those of later versions read as null.
class CustomOp {
 public:
  CustomOp(std::string domain, const OrtCustomOp& op, std::string provider);

  const OrtCustomOp& table() const { return op_; }
  // The argument of the table's functions.
  const OrtCustomOp* client() const { return client_; }
  const std::string& domain() const { return domain_; }
  const std::string& name() const { return name_; }
  // The plugin whose provider runs it; "" for the CPU.
  const std::string& provider() const { return provider_; }
  int start_version() const { return start_version_; }
  // Whether nodes of this name, domain and opset version use the operator. Its last version is, as
  // with onnxruntime, no bound: a model that imports a later one uses the newest operator there is.
  bool Implements(const Node& node) const;
  // Error: kInvalidGraph for a node with other numbers or types of inputs and outputs.
  // `type_of_input` returns kUndefined for unknown types.
  Status CheckNode(const Node& node, FunctionRef<DataType(size_t input)> type_of_input) const;
  // The element type of an output, kUndefined if the operator leaves it open and no input says.
  DataType OutputType(size_t output, size_t output_count,
                      FunctionRef<DataType(size_t input)> type_of_input) const;
  // Error: kInvalidArgument if it has a variadic input or output before the last one.
  Status CheckVariadics() const;
  size_t input_count() const { return inputs_.size(); }
  // The memory location of the i-th input of a node.
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
  Status CheckCount(std::span<const Formal> formals, int min_variadic, const Node& node,
                    const std::vector<ValueId>& values, std::string_view word) const;

  OrtCustomOp op_;
  const OrtCustomOp* client_;
  std::string domain_;
  std::string name_;
  std::string provider_;
  std::vector<Formal> inputs_, outputs_;
  int min_variadic_inputs_ = 1, min_variadic_outputs_ = 1;
  bool variadic_inputs_are_alike_ = true, variadic_outputs_are_alike_ = true;
  int start_version_ = 1;
};

}  // namespace tenon::capi
