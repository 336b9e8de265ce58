#include "ops/recurrent/byte_recurrence.h"

#include <algorithm>

#include "ops/quantized/quantization.h"

namespace tenon {
namespace {

constexpr size_t kGates = 4;

// The state before a step, in the parts of `work`: its floats, its bytes, and products with R'.
struct State {
  explicit State(const RecurrentStep& step)
      : size(step.sizes.batch * step.sizes.hidden),
        floats(step.work),
        bytes(reinterpret_cast<uint8_t*>(step.work + size)),
        products(step.work + 2 * size) {}
  size_t size;
  float* floats;
  uint8_t* bytes;
  float* products;
};

// Rounds the state as DynamicQuantizeLinear does. A row whose outputs have all been made counts as
// 0 from the second step after them, as in onnxruntime.
DynamicQuantization Quantize(const RecurrentStep& step, const State& state) {
  const size_t hidden = step.sizes.hidden;
  std::copy_n(step.h, state.size, state.floats);
  for (size_t row = 0; row < step.sizes.batch && step.sequence_lens; ++row) {
    if (static_cast<int64_t>(step.time) <= step.sequence_lens[row]) continue;
    std::fill_n(state.floats + row * hidden, hidden, 0.0f);
  }
  const DynamicQuantization found =
      QuantizationOfRange(kernels::RangeWithZero(state.floats, state.size));
  const int32_t zero_point = found.zero_point;
  kernels::Quantize(state.floats, state.size, {&found.scale, &zero_point, false},
                    kernels::QuantizedType::kUint8, state.bytes);
  return found;
}

bool IsOfBytes(const Tensor* tensor) {
  return tensor && (tensor->type() == DataType::kInt8 || tensor->type() == DataType::kUint8);
}

}  // namespace

Status ByteRecurrence::Prepare(KernelInfo& info) {
  const Tensor* r = info.StoredConstant(kInputR);
  if (!IsOfBytes(r)) return OkStatus();
  const Tensor *scale = info.Constant(kInputRScale), *zero = info.Constant(kInputRZero);
  if (r->rank() != 3 || r->size() == 0) {
    return InvalidArgument("R: expected [directions, {} * hidden, hidden] bytes, got {}", kGates,
                           r->shape());
  }
  const int64_t directions = r->shape()[0], rows = r->shape()[1], hidden = r->shape()[2];
  const auto fits = [&](const Tensor* values) {
    return values && (values->size() == directions || values->size() == directions * rows);
  };
  if (!fits(scale) || scale->type() != DataType::kFloat || !fits(zero) || !IsOfBytes(zero)) {
    // Inputs 10 and 11 of DynamicQuantizeLSTM, of which this node was made.
    return InvalidArgument(
        "R_scale and R_zero_point: expected one for each of {} directions, or for each of {} rows",
        directions, directions * rows);
  }
  is_signed_ = r->type() == DataType::kInt8;
  for (int64_t i = 0; i < directions * rows; ++i) {
    const auto of = [&](const Tensor& values) {
      return static_cast<size_t>(values.size() == directions ? i / rows : i);
    };
    scales_.push_back(scale->data<float>()[of(*scale)]);
    zeros_.push_back(zero->type() == DataType::kInt8 ? int32_t{zero->data<int8_t>()[of(*zero)]}
                                                     : int32_t{zero->data<uint8_t>()[of(*zero)]});
  }
  packed_bytes_ =
      kernels::PackedInt8GemmBSize(static_cast<size_t>(rows), static_cast<size_t>(hidden));
  packed_.Keep(*r, "recurrent bytes", info.weights());
  TENON_RETURN_IF_ERROR(
      packed_.Reserve(static_cast<size_t>(directions) * packed_bytes_ / sizeof(float)));
  info.ReleaseConstant(kInputR);
  return OkStatus();
}

// Into memory that is reserved, so it cannot fail.
const uint8_t* ByteRecurrence::Packed(const RecurrentSizes& sizes, size_t direction) const {
  const kernels::Int8GemmArgs args = Product(sizes);
  const auto pack = [&](const Tensor& r, float* packed) {
    const auto* from = static_cast<const uint8_t*>(r.raw());
    auto* to = reinterpret_cast<uint8_t*>(packed);
    for (size_t d = 0; d < sizes.directions; ++d, from += args.n * args.k, to += packed_bytes_) {
      kernels::PackInt8GemmPanels({from, is_signed_, 1, args.k}, args.n, args.k, 0,
                                  kernels::Int8GemmPanelCount(args.n), to);
    }
  };
  const size_t floats = sizes.directions * packed_bytes_ / sizeof(float);
  return reinterpret_cast<const uint8_t*>(*packed_.Get(floats, pack)) + direction * packed_bytes_;
}

// With the sizes alone.
kernels::Int8GemmArgs ByteRecurrence::Product(const RecurrentSizes& sizes) const {
  static constexpr uint8_t kPacked = 0;
  kernels::Int8GemmArgs args;
  args.m = sizes.batch, args.n = kGates * sizes.hidden, args.k = sizes.hidden;
  args.b.is_signed = is_signed_;
  args.packed_b = &kPacked;
  args.epilogue.type = kernels::Int8Output::kFloat;
  return args;
}

size_t ByteRecurrence::WorkFloats(const RecurrentSizes& sizes) {
  return (2 + kGates) * sizes.batch * sizes.hidden;
}

size_t ByteRecurrence::TaskBytes(const KernelContext& context, const RecurrentSizes& sizes) const {
  const kernels::Int8GemmArgs args = Product(sizes);
  return context.TaskScratchBytes(kernels::Int8GemmTaskCount(args),
                                  kernels::Int8GemmScratchSize(args));
}

void ByteRecurrence::AddTo(const RecurrentStep& step) const {
  const State state(step);
  const DynamicQuantization found = Quantize(step, state);
  const int32_t zero_point = found.zero_point;
  kernels::Int8GemmArgs args = Product(step.sizes);
  args.a = {state.bytes, false, args.k, 1};
  args.a_zero = &zero_point;
  args.packed_b = Packed(step.sizes, step.direction);
  args.b_zero = zeros_.data() + step.direction * args.n;
  args.b_zero_per_column = true;
  args.c = state.products;
  args.ldc = args.n;
  args.epilogue.scale = found.scale;
  args.epilogue.scale_columns = scales_.data() + step.direction * args.n;
  step.context.ForEachTaskIn(
      step.task_memory, kernels::Int8GemmTaskCount(args), kernels::Int8GemmScratchSize(args),
      [&](size_t task, std::byte* scratch) { kernels::RunInt8GemmTask(args, task, scratch); });
  for (size_t row = 0; row < args.m; ++row) {
    float* const gates = step.gates + row * step.gates_stride;
    const float* const products = state.products + row * args.n;
    for (size_t i = 0; i < args.n; ++i) gates[i] += products[i];
  }
}

const float* ByteRecurrence::RoundedState(const RecurrentStep& step) {
  const State state(step);
  const DynamicQuantization found = Quantize(step, state);
  const int32_t zero_point = found.zero_point;
  kernels::Dequantize(state.bytes, state.size, {&found.scale, &zero_point, false},
                      kernels::QuantizedType::kUint8, state.floats);
  return state.floats;
}

}  // namespace tenon
