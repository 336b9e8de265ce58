// Builder programs: the calls of an MLGraphBuilder for a partition.
#pragma once

#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"
#include "webnn/limits.h"

namespace tenon::webnn {

// An operand of one program.
struct Operand {
  int32_t index = -1;

  bool operator==(const Operand&) const = default;
};
using Operands = std::vector<Operand>;

using Numbers = std::vector<int64_t>;

// An argument value of a call.
using Argument = std::variant<Operand, Operands, bool, int64_t, double, std::string_view, Numbers,
                              std::vector<double>, std::vector<std::string>>;

// An argument or an option. Its name is the option's, or that of the operand in opSupportLimits();
// an argument that is not an operand has none.
struct Parameter {
  std::string_view name;
  Argument value;
};
using Parameters = std::vector<Parameter>;

// Type and shape of an operand.
struct Descriptor {
  DataType type = DataType::kUndefined;
  Shape shape;
};

// Writes one program, and checks each call against the limits of the context. Errors of all
// functions: kNotImplemented for unsupported calls, with the reason.
class ProgramBuilder {
 public:
  // The limits outlive the builder.
  explicit ProgramBuilder(const Limits& limits) : limits_(limits) {}

  const Limits& limits() const { return limits_; }
  DataType TypeOf(Operand operand) const { return At(operand).is.type; }
  const Shape& ShapeOf(Operand operand) const { return At(operand).is.shape; }
  size_t RankOf(Operand operand) const { return ShapeOf(operand).rank(); }

  // An input of the graph, of a type of the model. If the context has no inputs of rank 0, it is
  // bound as [1].
  Result<Operand> Input(std::string name, DataType type, const Shape& shape);
  // A constant of a type of the model; shares the tensor's memory if the type does not change.
  // Error also for an integer that does not fit the new type.
  Result<Operand> Constant(const Tensor& tensor);
  // A constant with one element of rank 0, of a type of programs.
  Result<Operand> Scalar(DataType type, double value);
  // Integers as a constant of rank 1 and of type int32.
  Result<Operand> Integers(std::span<const int64_t> values);

  // A call with one result.
  Result<Operand> Call(std::string_view method, Parameters arguments, Parameters options,
                       Descriptor result);
  // A call with a list of them; `names` are their operands' in opSupportLimits().
  Result<Operands> CallForSeveral(std::string_view method, Parameters arguments, Parameters options,
                                  std::span<const Descriptor> results,
                                  std::span<const std::string_view> names);

  // Short forms that many operators use.
  Result<Operand> Unary(std::string_view method, Operand x, Parameters options = {});
  // With NumPy's broadcasting; the result has `type`, or that of `a`.
  Result<Operand> Binary(std::string_view method, Operand a, Operand b,
                         DataType type = DataType::kUndefined);
  // A boolean for each element, as uint8.
  Result<Operand> Truth(std::string_view method, Operand x);
  Result<Operand> Reshape(Operand x, const Shape& shape);
  Result<Operand> Transpose(Operand x, const Numbers& permutation);
  Result<Operand> Cast(Operand x, DataType type);
  Result<Operand> Reduce(std::string_view method, Operand x, const Numbers& axes, bool keeps_axes);
  Result<Operand> Slice(Operand x, const Numbers& starts, const Numbers& sizes);

  // The operand becomes an output of the graph, a value of a type of the model.
  Status Output(std::string name, DataType type, Operand operand);

  // The tensors of the constants that outputs need, in the order of the text.
  std::vector<Tensor> constants() const;
  // The calls that outputs need, as JSON; docs/web.md describes it. Inputs that no output needs are
  // left out. Addresses are those of the constants' tensors, which live as long as the builder.
  std::string ToText() const;

 private:
  enum class Kind : uint8_t { kInput, kConstant, kResult };
  struct Known {
    Kind kind;
    Descriptor is;
  };
  struct NamedOperand {
    std::string name;
    DataType type;  // of the model
    Operand operand;
  };
  struct CallRecord {
    std::string_view method;
    Parameters arguments, options;
    int32_t first_result;
    size_t results;
  };

  const Known& At(Operand operand) const { return known_[static_cast<size_t>(operand.index)]; }
  Operand Add(Kind kind, Descriptor is);
  Status CheckBound(const OperandLimits& limits, std::string_view what, const Descriptor& is) const;
  Status CheckOperand(std::string_view method, const Parameter& parameter) const;
  Status CheckResult(std::string_view method, std::string_view name, const Descriptor& is) const;
  Status CheckSize(const Descriptor& is) const;
  Result<Operand> AddConstant(Tensor tensor);
  std::vector<bool> FindNeeded(std::vector<bool>& is_call_needed) const;

  const Limits& limits_;
  std::vector<Known> known_;
  std::vector<NamedOperand> inputs_, outputs_;
  std::vector<std::pair<Operand, Tensor>> constants_;
  std::vector<CallRecord> calls_;
};

}  // namespace tenon::webnn
