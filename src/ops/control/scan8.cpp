// Scan-8, which runs over batches of sequences of different lengths.
#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/control/subgraphs.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/stateful_kernel.h"

namespace tenon {
namespace {

// A direction of 1 runs from the end of a sequence to its begin. Input 0, the lengths, may be
// absent. The others and the outputs have the axes batch and, if they are scanned, sequence.
struct Scan8Attrs {
  int64_t num_scan_inputs = 0;
  std::vector<int64_t> directions;
  static constexpr auto Fields() {
    return std::tuple(Field("num_scan_inputs", &Scan8Attrs::num_scan_inputs),
                      Field("directions", &Scan8Attrs::directions));
  }
};

// How many of the inputs after the first are states.
Result<size_t> StatesOf(const Scan8Attrs& attrs, size_t inputs, size_t outputs) {
  if (inputs < 2 || attrs.num_scan_inputs < 1 ||
      static_cast<uint64_t>(attrs.num_scan_inputs) > inputs - 1) {
    return InvalidArgument("attribute 'num_scan_inputs': expected 1 to the inputs, got {}",
                           attrs.num_scan_inputs);
  }
  const size_t states = inputs - 1 - static_cast<size_t>(attrs.num_scan_inputs);
  if (outputs < states) {
    return InvalidArgument("expected at least {} outputs, one for each state, got {}", states,
                           outputs);
  }
  if (!attrs.directions.empty() &&
      attrs.directions.size() != static_cast<size_t>(attrs.num_scan_inputs)) {
    return InvalidArgument("attribute 'directions': expected {} entries, got {}",
                           attrs.num_scan_inputs, attrs.directions.size());
  }
  return states;
}

// The type of the elements along the first `axes` axes.
Result<ValueType> ElementType(const ValueType& type, size_t axes, size_t input) {
  if (!type.shape) return type;
  if (type.shape->rank() < axes) {
    return InvalidArgument("input {}: expected at least rank {}, got shape {}", input, axes,
                           *type.shape);
  }
  SymbolicShape shape;
  for (size_t i = axes; i < type.shape->rank(); ++i) shape.Append((*type.shape)[i]);
  return ValueType::Tensor(type.element_type, std::move(shape));
}

ValueType WithAxes(const ValueType& type, std::initializer_list<Dim> axes) {
  if (!type.shape) return type;
  SymbolicShape shape(axes);
  for (const Dim& dim : *type.shape) shape.Append(dim);
  return ValueType::Tensor(type.element_type, std::move(shape));
}

Status InferScan8(const Scan8Attrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const size_t states,
                         StatesOf(attrs, context.input_count(), context.output_count()));
  TENON_RETURN_IF_ERROR(CheckInputsAreThere(context, 1));
  std::vector<ValueType> inputs;
  Dim batch = Dim::Unknown(), length = Dim::Unknown();
  for (size_t i = 1; i < context.input_count(); ++i) {
    const ValueType type = context.InputType(i);
    const bool is_state = i <= states;
    TENON_ASSIGN_OR_RETURN(ValueType element, ElementType(type, is_state ? 1 : 2, i));
    inputs.push_back(std::move(element));
    if (type.shape) batch = (*type.shape)[0];
    if (type.shape && !is_state) length = (*type.shape)[1];
  }
  TENON_ASSIGN_OR_RETURN(const std::vector<ValueType> outputs,
                         context.InferSubgraph("body", std::move(inputs)));
  if (outputs.size() < context.output_count()) {
    return InvalidArgument("expected {} outputs of the body, got {}", context.output_count(),
                           outputs.size());
  }
  for (size_t i = 0; i < context.output_count(); ++i) {
    if (i < states) TENON_RETURN_IF_ERROR(JoinTypes(context.InputType(i + 1), outputs[i], i));
    TENON_RETURN_IF_ERROR(context.SetOutputType(
        i, i < states ? WithAxes(outputs[i], {batch}) : WithAxes(outputs[i], {batch, length})));
  }
  return OkStatus();
}

// Element `index` along the first `axes` axes, which are counted as one.
Result<Tensor> ElementOf(const Tensor& tensor, size_t axes, int64_t index) {
  Shape shape;
  for (size_t i = axes; i < tensor.rank(); ++i) shape.Append(tensor.shape()[i]);
  return ElementsFrom(tensor, index * shape.NumElements(), shape);
}

class Scan8Kernel final : public StatefulKernel<InferScan8> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_ASSIGN_OR_RETURN(body_, SubgraphIndex(info.node(), "body"));
    TENON_ASSIGN_OR_RETURN(states_, StatesOf(attrs_, info.input_count(), info.output_count()));
    for (size_t i = 0; i < info.output_count(); ++i) output_types_.push_back(info.OutputType(i));
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    TENON_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(context));
    PooledVector<Tensor*> outputs(context.output_count());
    for (int64_t batch = 0; batch < sizes.batch; ++batch) {
      TENON_RETURN_IF_ERROR(RunSequence(sizes, batch, outputs, context));
    }
    // The shape of an output without any iteration.
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] != nullptr || !context.HasOutput(i)) continue;
      Shape shape = EmptyShape(output_types_[i], 0);
      shape[0] = sizes.batch;
      if (i >= states_ && shape.rank() > 1) shape[1] = sizes.longest;
      TENON_RETURN_IF_ERROR(MakeCleared(i, output_types_[i].element_type, shape, context));
    }
    return OkStatus();
  }

 private:
  struct Sizes {
    int64_t batch = 0, longest = 0;
    Shape lengths;
  };

  Result<Sizes> SizesOf(KernelContext& context) const {
    Sizes sizes;
    const Tensor& first = context.Input(states_ + 1);
    if (first.rank() < 2) {
      return InvalidArgument("input {}: expected axes batch and sequence, got shape {}",
                             states_ + 1, first.shape());
    }
    sizes.batch = first.shape()[0];
    sizes.longest = first.shape()[1];
    for (size_t i = 1; i < context.input_count(); ++i) {
      const Shape& shape = context.Input(i).shape();
      const bool fits =
          i <= states_ ? shape.rank() >= 1 && shape[0] == sizes.batch
                       : shape.rank() >= 2 && shape[0] == sizes.batch && shape[1] == sizes.longest;
      if (!fits) {
        return InvalidArgument("input {}: expected {} sequences of {} as of input {}, got shape {}",
                               i, sizes.batch, sizes.longest, states_ + 1, shape);
      }
    }
    sizes.lengths = Shape(static_cast<size_t>(sizes.batch), sizes.longest);
    if (context.HasInput(0)) {
      TENON_ASSIGN_OR_RETURN(sizes.lengths, IntegersOf(context.Input(0)));
      const bool fits = static_cast<int64_t>(sizes.lengths.rank()) == sizes.batch &&
                        std::all_of(sizes.lengths.begin(), sizes.lengths.end(),
                                    [&](int64_t n) { return n >= 0 && n <= sizes.longest; });
      if (!fits) {
        return InvalidArgument("input 0: expected {} lengths in [0, {}], got {}", sizes.batch,
                               sizes.longest, sizes.lengths);
      }
    }
    return sizes;
  }

  Status RunSequence(const Sizes& sizes, int64_t batch, PooledVector<Tensor*>& outputs,
                     KernelContext& context) const {
    const auto scanned = static_cast<size_t>(attrs_.num_scan_inputs);
    const int64_t length = sizes.lengths[static_cast<size_t>(batch)];
    RunValues inputs(states_ + scanned), results(states_);
    for (size_t i = 0; i < states_; ++i) {
      TENON_ASSIGN_OR_RETURN(results[i], ElementOf(context.Input(i + 1), 1, batch));
    }
    SubgraphRunner& body = context.Subgraph(body_);
    for (int64_t t = 0; t < length; ++t) {
      for (size_t i = 0; i < states_; ++i) inputs[i] = std::move(results[i]);
      for (size_t i = 0; i < scanned; ++i) {
        const bool backwards = !attrs_.directions.empty() && attrs_.directions[i] == 1;
        const int64_t at = batch * sizes.longest + (backwards ? length - 1 - t : t);
        TENON_ASSIGN_OR_RETURN(inputs[states_ + i],
                               ElementOf(context.Input(states_ + 1 + i), 2, at));
      }
      TENON_RETURN_IF_ERROR(body.Run(inputs, results));
      if (results.size() != context.output_count()) {
        return InvalidArgument("expected {} outputs of the body, got {}", context.output_count(),
                               results.size());
      }
      for (size_t i = states_; i < results.size(); ++i) {
        TENON_RETURN_IF_ERROR(Store(results[i], i, {sizes.batch, sizes.longest},
                                    batch * sizes.longest + t, outputs, context));
      }
    }
    for (size_t i = 0; i < states_; ++i) {
      TENON_RETURN_IF_ERROR(Store(results[i], i, {sizes.batch}, batch, outputs, context));
    }
    return OkStatus();
  }

  static Result<Tensor*> MakeCleared(size_t i, DataType type, const Shape& shape,
                                     KernelContext& context) {
    TENON_ASSIGN_OR_RETURN(Tensor * output, context.AllocateOutput(i, type, shape));
    if (type != DataType::kString && output->bytes() > 0) {
      std::memset(output->raw(), 0, output->bytes());
    }
    return output;
  }

  // Stores a result in output `i`, which the first one allocates and clears.
  static Status Store(const Value& result, size_t i, std::initializer_list<int64_t> axes,
                      int64_t position, PooledVector<Tensor*>& outputs, KernelContext& context) {
    if (!context.HasOutput(i)) return OkStatus();
    if (!result.is_tensor()) return InvalidArgument("output {}: expected tensors", i);
    const Tensor& tensor = result.tensor();
    Shape expected(axes);
    for (const int64_t dim : tensor.shape()) expected.Append(dim);
    if (outputs[i] == nullptr) {
      TENON_ASSIGN_OR_RETURN(outputs[i], MakeCleared(i, tensor.type(), expected, context));
    }
    if (tensor.type() != outputs[i]->type() || !(outputs[i]->shape() == expected)) {
      return InvalidArgument("output {}: expected {} {} after each iteration, got {} {}", i,
                             DataTypeName(outputs[i]->type()), outputs[i]->shape(),
                             DataTypeName(tensor.type()), expected);
    }
    CopyElements(tensor, position * tensor.size(), *outputs[i]);
    return OkStatus();
  }

  size_t body_ = 0, states_ = 0;
  std::vector<ValueType> output_types_;
};

constexpr OpRow kRows[] = {
    OpClass<Scan8Kernel>("Scan", {.since = 8, .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(Scan8, kRows);

}  // namespace tenon
