// Scan: a subgraph run over the slices of tensors, with values carried from slice to slice.
#include <algorithm>
#include <utility>

#include "ops/control/subgraphs.h"
#include "ops/framework/element.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/framework/strided_copy.h"

namespace tenon {
namespace {

// Scan-9. Absent lists are all 0; a direction of 1 runs backwards.
struct ScanAttrs {
  int64_t num_scan_inputs = 0;
  std::vector<int64_t> input_axes, output_axes, input_directions, output_directions;
  static constexpr auto Fields() {
    return std::tuple(Field("num_scan_inputs", &ScanAttrs::num_scan_inputs),
                      Field("scan_input_axes", &ScanAttrs::input_axes),
                      Field("scan_output_axes", &ScanAttrs::output_axes),
                      Field("scan_input_directions", &ScanAttrs::input_directions),
                      Field("scan_output_directions", &ScanAttrs::output_directions));
  }
};

// Which of the node's inputs and outputs are carried and which are sliced.
struct ScanCounts {
  size_t states, inputs, outputs;
};

Status CheckList(const std::vector<int64_t>& list, size_t count, std::string_view attribute) {
  if (list.empty() || list.size() == count) return OkStatus();
  return InvalidArgument("attribute '{}': expected {} entries, got {}", attribute, count,
                         list.size());
}

Status CheckDirections(const std::vector<int64_t>& list, std::string_view attribute) {
  for (const int64_t direction : list) {
    if (direction != 0 && direction != 1) {
      return InvalidArgument("attribute '{}': expected 0 or 1, got {}", attribute, direction);
    }
  }
  return OkStatus();
}

Result<ScanCounts> CountsOf(const ScanAttrs& attrs, size_t inputs, size_t outputs) {
  if (attrs.num_scan_inputs < 1 || static_cast<uint64_t>(attrs.num_scan_inputs) > inputs) {
    return InvalidArgument("attribute 'num_scan_inputs': expected 1 to {}, the inputs, got {}",
                           inputs, attrs.num_scan_inputs);
  }
  const auto sliced = static_cast<size_t>(attrs.num_scan_inputs);
  const size_t states = inputs - sliced;
  if (outputs < states) {
    return InvalidArgument("expected at least {} outputs, one for each state, got {}", states,
                           outputs);
  }
  const ScanCounts counts = {states, sliced, outputs - states};
  TENON_RETURN_IF_ERROR(CheckList(attrs.input_axes, counts.inputs, "scan_input_axes"));
  TENON_RETURN_IF_ERROR(CheckList(attrs.output_axes, counts.outputs, "scan_output_axes"));
  TENON_RETURN_IF_ERROR(CheckList(attrs.input_directions, counts.inputs, "scan_input_directions"));
  TENON_RETURN_IF_ERROR(
      CheckList(attrs.output_directions, counts.outputs, "scan_output_directions"));
  TENON_RETURN_IF_ERROR(CheckDirections(attrs.input_directions, "scan_input_directions"));
  TENON_RETURN_IF_ERROR(CheckDirections(attrs.output_directions, "scan_output_directions"));
  return counts;
}

int64_t EntryOf(const std::vector<int64_t>& list, size_t i) { return list.empty() ? 0 : list[i]; }

SymbolicShape WithoutAxis(const SymbolicShape& shape, size_t axis) {
  SymbolicShape rest;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (i != axis) rest.Append(shape[i]);
  }
  return rest;
}

Status SetScanOutput(size_t output, ValueType type, int64_t requested_axis, const Dim& length,
                     ShapeContext& context) {
  if (type.is_tensor() && type.shape) {
    Dims dims = type.shape->dims();
    TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(requested_axis, dims.size() + 1));
    dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), length);
    type.shape = SymbolicShape(std::move(dims));
  }
  return context.SetOutputType(output, std::move(type));
}

Status InferScan(const ScanAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const ScanCounts counts,
                         CountsOf(attrs, context.input_count(), context.output_count()));
  TENON_RETURN_IF_ERROR(CheckInputsAreThere(context, 0));
  std::vector<ValueType> inputs;
  Dim length = Dim::Unknown();
  for (size_t i = 0; i < counts.states + counts.inputs; ++i) {
    ValueType type = context.InputType(i);
    if (i >= counts.states && type.shape) {
      TENON_ASSIGN_OR_RETURN(
          const size_t axis,
          NormalizeAxis(EntryOf(attrs.input_axes, i - counts.states), type.shape->rank()));
      if (!length.is_number()) length = (*type.shape)[axis];
      type.shape = WithoutAxis(*type.shape, axis);
    }
    inputs.push_back(std::move(type));
  }
  TENON_ASSIGN_OR_RETURN(std::vector<ValueType> outputs,
                         context.InferSubgraph("body", std::move(inputs)));
  if (outputs.size() < context.output_count()) {
    return InvalidArgument("expected {} outputs of the body, got {}", context.output_count(),
                           outputs.size());
  }
  for (size_t i = 0; i < counts.states; ++i) {
    TENON_ASSIGN_OR_RETURN(ValueType type, JoinTypes(context.InputType(i), outputs[i], i));
    TENON_RETURN_IF_ERROR(context.SetOutputType(i, std::move(type)));
  }
  for (size_t i = 0; i < counts.outputs; ++i) {
    TENON_RETURN_IF_ERROR(SetScanOutput(counts.states + i, std::move(outputs[counts.states + i]),
                                        EntryOf(attrs.output_axes, i), length, context));
  }
  return OkStatus();
}

// The slices of a tensor along an axis.
class Slices {
 public:
  // `tensor` must outlive the slices.
  static Result<Slices> Of(const Tensor& tensor, int64_t requested_axis, size_t input) {
    const Result<size_t> axis = NormalizeAxis(requested_axis, tensor.rank());
    if (!axis) return InvalidArgument("input {}: {}", input, axis.error().message());
    Slices slices;
    slices.tensor_ = &tensor;
    slices.length_ = tensor.shape()[*axis];
    slices.outer_ = tensor.shape().Product(0, *axis);
    slices.inner_ = tensor.shape().Product(*axis + 1, tensor.rank());
    for (size_t i = 0; i < tensor.rank(); ++i) {
      if (i != *axis) slices.shape_.Append(tensor.shape()[i]);
    }
    return slices;
  }

  int64_t length() const { return length_; }

  // Slice `i`: a view if its elements are contiguous, else a copy.
  Result<Tensor> At(int64_t i, const KernelContext& context) const {
    if (outer_ == 1) return ElementsFrom(*tensor_, i * inner_, shape_);
    const DataType type = tensor_->type();
    TENON_ASSIGN_OR_RETURN(Tensor slice, context.AllocateTensor(type, shape_));
    if (IsSubByte(type)) {
      for (int64_t o = 0; o < outer_; ++o) {
        CopyElements(*tensor_, (o * length_ + i) * inner_, inner_, slice, o * inner_);
      }
      return slice;
    }
    const size_t offset = static_cast<size_t>(i * inner_) * (DataTypeBits(type) / 8);
    StridedCopy copy(type);
    TENON_RETURN_IF_ERROR(copy.AddAxis(outer_, length_ * inner_, inner_));
    TENON_RETURN_IF_ERROR(copy.AddAxis(inner_, 1, 1));
    TENON_RETURN_IF_ERROR(copy.Run(static_cast<const char*>(tensor_->raw()) + offset, slice.raw(),
                                   context.threads()));
    return slice;
  }

 private:
  const Tensor* tensor_ = nullptr;
  Shape shape_;
  int64_t length_ = 0, outer_ = 1, inner_ = 1;
};

// Collects slices into an output, which is allocated when the first slice has its shape.
class Collector {
 public:
  Collector(size_t output, int64_t axis, int64_t length)
      : output_(output), axis_(axis), length_(length) {}

  Status Add(int64_t position, const Value& part, KernelContext& context) {
    if (!part.is_tensor()) {
      return InvalidArgument("output {}: expected a tensor, got a {}", output_,
                             ValueKindName(part.kind()));
    }
    const Tensor& slice = part.tensor();
    if (whole_ == nullptr) {
      TENON_RETURN_IF_ERROR(Begin(slice, context));
    } else {
      TENON_RETURN_IF_ERROR(CheckSameAs(first_, part, output_));
    }
    if (outer_ == 1) {
      CopyElements(slice, position * inner_, *whole_);
      return OkStatus();
    }
    if (IsSubByte(slice.type())) {
      for (int64_t o = 0; o < outer_; ++o) {
        CopyElements(slice, o * inner_, inner_, *whole_, (o * length_ + position) * inner_);
      }
      return OkStatus();
    }
    const size_t offset = static_cast<size_t>(position * inner_) * (DataTypeBits(slice.type()) / 8);
    StridedCopy copy(slice.type());
    TENON_RETURN_IF_ERROR(copy.AddAxis(outer_, inner_, length_ * inner_));
    TENON_RETURN_IF_ERROR(copy.AddAxis(inner_, 1, 1));
    return copy.Run(slice.raw(), static_cast<char*>(whole_->raw()) + offset, context.threads());
  }

  // Makes an empty output if there was no slice.
  Status Finish(const ValueType& type, KernelContext& context) {
    if (whole_ != nullptr || !context.HasOutput(output_)) return OkStatus();
    const size_t rank = type.shape ? type.shape->rank() : 1;
    TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(axis_, rank));
    const DataType element =
        type.element_type == DataType::kUndefined ? DataType::kFloat : type.element_type;
    TENON_RETURN_IF_ERROR(context.AllocateOutput(output_, element, EmptyShape(type, axis)));
    return OkStatus();
  }

 private:
  Status Begin(const Tensor& slice, KernelContext& context) {
    TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(axis_, slice.rank() + 1));
    Shape shape;
    for (size_t i = 0; i <= slice.rank(); ++i) {
      if (i == axis) shape.Append(length_);
      if (i < slice.rank()) shape.Append(slice.shape()[i]);
    }
    outer_ = slice.shape().Product(0, axis);
    inner_ = slice.shape().Product(axis, slice.rank());
    first_ = slice;
    TENON_ASSIGN_OR_RETURN(whole_, context.AllocateOutput(output_, slice.type(), shape));
    return OkStatus();
  }

  size_t output_;
  int64_t axis_, length_;
  int64_t outer_ = 1, inner_ = 1;
  Tensor first_;
  Tensor* whole_ = nullptr;
};

class ScanKernel final : public StatefulKernel<InferScan> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_ASSIGN_OR_RETURN(body_, SubgraphIndex(info.node(), "body"));
    TENON_ASSIGN_OR_RETURN(counts_, CountsOf(attrs_, info.input_count(), info.output_count()));
    for (size_t i = 0; i < info.output_count(); ++i) output_types_.push_back(info.OutputType(i));
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    PooledVector<Slices> slices;
    TENON_RETURN_IF_ERROR(CutInputs(context, slices));
    const int64_t length = slices[0].length();
    PooledVector<Collector> collectors;
    for (size_t i = 0; i < counts_.outputs; ++i) {
      collectors.emplace_back(counts_.states + i, EntryOf(attrs_.output_axes, i), length);
    }
    RunValues inputs(counts_.states + counts_.inputs), outputs(counts_.states);
    for (size_t i = 0; i < counts_.states; ++i) outputs[i] = context.InputValue(i);
    SubgraphRunner& body = context.Subgraph(body_);
    for (int64_t t = 0; t < length; ++t) {
      for (size_t i = 0; i < counts_.states; ++i) inputs[i] = std::move(outputs[i]);
      for (size_t i = 0; i < counts_.inputs; ++i) {
        const int64_t at = EntryOf(attrs_.input_directions, i) == 0 ? t : length - 1 - t;
        TENON_ASSIGN_OR_RETURN(inputs[counts_.states + i], slices[i].At(at, context));
      }
      TENON_RETURN_IF_ERROR(body.Run(inputs, outputs));
      if (outputs.size() != counts_.states + counts_.outputs) {
        return InvalidArgument("expected {} outputs of the body, got {}",
                               counts_.states + counts_.outputs, outputs.size());
      }
      for (size_t i = 0; i < counts_.outputs; ++i) {
        if (!context.HasOutput(counts_.states + i)) continue;
        const int64_t at = EntryOf(attrs_.output_directions, i) == 0 ? t : length - 1 - t;
        TENON_RETURN_IF_ERROR(collectors[i].Add(at, outputs[counts_.states + i], context));
      }
    }
    for (size_t i = 0; i < counts_.outputs; ++i) {
      TENON_RETURN_IF_ERROR(collectors[i].Finish(output_types_[counts_.states + i], context));
    }
    for (size_t i = 0; i < counts_.states; ++i) {
      if (!context.HasOutput(i)) continue;
      TENON_ASSIGN_OR_RETURN(Value value, Retain(outputs[i]));
      context.SetOutput(i, std::move(value));
    }
    return OkStatus();
  }

 private:
  Status CutInputs(KernelContext& context, PooledVector<Slices>& slices) const {
    for (size_t i = 0; i < counts_.inputs; ++i) {
      const size_t input = counts_.states + i;
      TENON_ASSIGN_OR_RETURN(
          Slices cut, Slices::Of(context.Input(input), EntryOf(attrs_.input_axes, i), input));
      slices.push_back(std::move(cut));
      if (slices[i].length() != slices[0].length()) {
        return InvalidArgument("input {}: expected {} slices as of input {}, got {}", input,
                               slices[0].length(), counts_.states, slices[i].length());
      }
    }
    return OkStatus();
  }

  size_t body_ = 0;
  ScanCounts counts_{};
  std::vector<ValueType> output_types_;
};

constexpr OpRow kRows[] = {
    OpClass<ScanKernel>("Scan", {.since = 9, .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(Scan, kRows);

}  // namespace tenon
