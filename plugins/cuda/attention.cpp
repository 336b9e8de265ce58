#include "attention.h"

#include <algorithm>

#include "kernels.h"
#include "operators.h"

namespace cuda {
namespace {

// As the kernel has them.
constexpr int64_t kTile = 64;
constexpr int64_t kRowsOfWarp = 16;

struct AttentionSizes {
  int64_t batch;
  int64_t heads;
  int64_t kv_heads;
  int64_t queries;
  int64_t keys;
  int64_t depth;
};

unsigned Blocks(int64_t rows, int64_t size) {
  return static_cast<unsigned>((rows + size - 1) / size);
}

class AttentionCall : public DeviceCall {
 public:
  AttentionCall(Context& context, const AttentionInputs& inputs, const AttentionSizes& sizes,
                Shape result_strides);

  const char* name() const override { return "attention"; }
  const std::string* source() const override { return &source_; }
  Status Load() override;
  Status Run(CUstream stream, std::span<void* const> arguments) override;

 private:
  void ChooseSizes(int multiprocessors);

  Device& device_;
  AttentionSizes sizes_;
  Shape full_shape_;  // of a mask
  int64_t warps_ = 4;
  int64_t splits_ = 1;
  std::string source_;
  std::vector<Number> numbers_;
  std::vector<Number> combine_numbers_;
  unsigned shared_bytes_ = 0;
  CUfunction attend_ = nullptr;
  CUfunction combine_ = nullptr;
};

std::vector<TensorRef> Present(const AttentionInputs& inputs) {
  std::vector<TensorRef> present = {inputs.q, inputs.k, inputs.v};
  for (const TensorRef& optional : {inputs.mask, inputs.lengths}) {
    if (optional) present.push_back(optional);
  }
  return present;
}

// Large blocks share what they load; small ones and parts of the keys keep all processors busy.
void AttentionCall::ChooseSizes(int multiprocessors) {
  const int64_t rows = sizes_.heads / sizes_.kv_heads * sizes_.queries;
  const int64_t pairs = sizes_.batch * sizes_.kv_heads;
  const auto blocks = [&](int64_t warps) { return pairs * Blocks(rows, warps * kRowsOfWarp); };
  warps_ = rows > 2 * kRowsOfWarp ? 4 : rows > kRowsOfWarp ? 2 : 1;
  while (warps_ > 2 && blocks(warps_) < multiprocessors) warps_ /= 2;
  const int64_t tiles = Blocks(sizes_.keys, kTile);
  const int64_t wanted = 2 * multiprocessors / std::max<int64_t>(1, blocks(warps_));
  splits_ = std::clamp<int64_t>(std::min(wanted, tiles / 2), 1, 32);
}

AttentionCall::AttentionCall(Context& context, const AttentionInputs& inputs,
                             const AttentionSizes& sizes, Shape result_strides)
    : DeviceCall(Present(inputs)),
      device_(context.device),
      sizes_(sizes),
      full_shape_{sizes.batch, sizes.heads, sizes.queries, sizes.keys} {
  strides = std::move(result_strides);
  ChooseSizes(device_.multiprocessors());
  const DataType type = inputs.q->type;
  int mask_kind = 0;
  Shape mask_strides(4, 0);
  if (inputs.mask) {
    mask_kind = inputs.mask->type == DataType::kBool           ? 3
                : inputs.mask->stored_type == DataType::kFloat ? 2
                                                               : 1;
    mask_strides = BroadcastStrides(*inputs.mask, full_shape_);
  }
  source_ = fmt::format(
                "#define ELEMENT {}\n#define DEPTH {}\n#define WARPS {}\n#define SPLITS {}\n"
                "#define CAUSAL {}\n#define HAS_LENGTHS {}\n#define MASK {}\n",
                type == DataType::kFloat16 ? 1 : 2, sizes.depth, warps_, splits_ > 1 ? 1 : 0,
                inputs.is_causal ? 1 : 0, inputs.lengths ? 1 : 0, mask_kind) +
            kFlashAttentionSource;
  const auto rows = sizes.heads / sizes.kv_heads * sizes.queries;
  const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
  const auto group = number(sizes.heads / sizes.kv_heads);
  numbers_ = {number(sizes.queries), number(sizes.keys), group,
              inputs.scale,          inputs.masked,      number(splits_),
              inputs.length_offset,  inputs.window,      inputs.softcap};
  for (const TensorRef& tensor : {inputs.q, inputs.k, inputs.v}) {
    for (size_t axis = 0; axis < 3; ++axis) numbers_.emplace_back(tensor->strides[axis]);
  }
  const Shape out = strides.size() == 4 ? strides : Shape{strides[0], 0, strides[1], strides[2]};
  for (size_t axis = 0; axis < 3; ++axis) numbers_.emplace_back(out[axis]);
  for (const int64_t stride : mask_strides) numbers_.emplace_back(stride);
  combine_numbers_ = {number(sizes.queries), group, number(splits_), out[0], out[1], out[2]};
  const int64_t head = (sizes.depth + 15) / 16 * 16;
  shared_bytes_ = static_cast<unsigned>(4 * kTile * (head + 8) * 2);
  if (splits_ > 1) {
    workspace_bytes =
        static_cast<size_t>(sizes.batch * sizes.kv_heads * rows * splits_ * (sizes.depth + 2) * 4);
  }
}

Status AttentionCall::Load() {
  PLUGIN_ASSIGN_OR_RETURN(attend_, device_.programs().Find(source_, "flash_attention"));
  if (splits_ > 1) {
    PLUGIN_ASSIGN_OR_RETURN(combine_, device_.programs().Find(source_, "combine_attention"));
  }
  return CU_CHECK(cuFuncSetAttribute, attend_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                  static_cast<int>(shared_bytes_));
}

Status AttentionCall::Run(CUstream stream, std::span<void* const> arguments) {
  const int64_t rows = sizes_.heads / sizes_.kv_heads * sizes_.queries;
  const auto kv_heads = static_cast<unsigned>(sizes_.kv_heads);
  const auto batch = static_cast<unsigned>(sizes_.batch);
  PLUGIN_RETURN_IF_ERROR(LaunchKernel(
      attend_,
      {Blocks(rows, warps_ * kRowsOfWarp) * static_cast<unsigned>(splits_), kv_heads, batch},
      {static_cast<unsigned>(warps_) * 32, 1, 1}, shared_bytes_, stream, arguments, numbers_));
  if (splits_ == 1) return Status();
  void* const addresses[] = {arguments[arguments.size() - 1], arguments[arguments.size() - 2]};
  return LaunchKernel(combine_, {static_cast<unsigned>(rows), kv_heads, batch},
                      {static_cast<unsigned>(sizes_.depth), 1, 1}, 0, stream, addresses,
                      combine_numbers_);
}

// In memory, in its own type, with rows that 16 bytes can be read from at once.
Result<TensorRef> Readable(Planner& planner, const TensorRef& tensor) {
  PLUGIN_RETURN_IF_ERROR(planner.Store(tensor));
  constexpr int64_t kElements = 8;
  bool is_readable = tensor->stored_type == tensor->type && tensor->offset % kElements == 0 &&
                     tensor->strides.back() == 1;
  for (size_t axis = 0; axis + 1 < tensor->shape.size(); ++axis) {
    if (tensor->shape[axis] != 1 && tensor->strides[axis] % kElements != 0) is_readable = false;
  }
  if (is_readable) return tensor;
  return planner.Contiguous(planner.Expression(tensor->type, tensor->shape, "$0", {tensor}));
}

// [n, rows, columns] as [n, 1, rows, columns].
Result<TensorRef> WithHeads(Planner& planner, const TensorRef& tensor) {
  if (!tensor || tensor->shape.size() != 3) return tensor;
  PLUGIN_RETURN_IF_ERROR(planner.Store(tensor));
  const Shape& s = tensor->shape;
  const Shape& t = tensor->strides;
  return planner.View(tensor, {s[0], 1, s[1], s[2]}, {t[0], 0, t[1], t[2]}, 0);
}

Status LowerFusedAttention(Planner& planner, const Node& node) {
  AttentionInputs inputs;
  inputs.q = planner.Input(node, 0);
  inputs.v = planner.Input(node, 2);
  const TensorRef transposed = planner.Input(node, 1);
  PLUGIN_RETURN_IF_ERROR(planner.Store(transposed));
  Shape shape = transposed->shape;
  Shape strides = transposed->strides;
  const size_t rank = shape.size();
  std::swap(shape[rank - 1], shape[rank - 2]);
  std::swap(strides[rank - 1], strides[rank - 2]);
  PLUGIN_ASSIGN_OR_RETURN(inputs.k,
                          planner.View(transposed, std::move(shape), std::move(strides), 0));
  if (planner.HasInput(node, 3)) inputs.mask = planner.Input(node, 3);
  inputs.scale = node.Float("scale", 1);
  inputs.masked = node.Float("masked", 0);
  PLUGIN_ASSIGN_OR_RETURN(TensorRef result, Attend(planner, inputs));
  return planner.SetOutput(node, 0, std::move(result));
}

}  // namespace

bool CanAttend(DataType type, int64_t depth) {
  return (type == DataType::kFloat16 || type == DataType::kBFloat16) && depth > 0 &&
         depth % 8 == 0 && depth <= 256;
}

Result<TensorRef> Attend(Planner& planner, const AttentionInputs& given) {
  AttentionInputs inputs = given;
  const Shape result = given.q->shape;
  if (result.size() != given.k->shape.size() || result.size() != given.v->shape.size() ||
      result.size() < 3 || result.size() > 4) {
    return Failure("expected queries, keys and values of one rank, 3 or 4, got {}, {} and {}",
                   given.q->shape, given.k->shape, given.v->shape);
  }
  for (TensorRef* tensor : {&inputs.q, &inputs.k, &inputs.v, &inputs.mask}) {
    PLUGIN_ASSIGN_OR_RETURN(*tensor, WithHeads(planner, *tensor));
  }
  for (TensorRef* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    PLUGIN_ASSIGN_OR_RETURN(*tensor, Readable(planner, *tensor));
  }
  const Shape& q = inputs.q->shape;
  const Shape& k = inputs.k->shape;
  if (k != inputs.v->shape || k[0] != q[0] || k[1] < 1 || q[1] % k[1] != 0 || k[3] != q[3]) {
    return Failure("expected keys and values for queries {}, got {} and {}", q, k, inputs.v->shape);
  }
  if (inputs.mask) PLUGIN_RETURN_IF_ERROR(planner.Store(inputs.mask));
  if (inputs.lengths) {
    PLUGIN_ASSIGN_OR_RETURN(inputs.lengths, planner.Contiguous(inputs.lengths));
  }
  const AttentionSizes sizes{q[0], q[1], k[1], q[2], k[2], q[3]};
  Shape strides = RowMajorStrides(result);
  if (result.size() == 4) strides = {q[1] * q[2] * q[3], q[3], q[1] * q[3], 1};
  return planner.FromCall(
      inputs.q->type, result,
      std::make_shared<AttentionCall>(ContextOf(planner), inputs, sizes, std::move(strides)));
}

std::span<const Operator> AttentionOperators() {
  static constexpr Operator kRows[] = {
      {.type = "FusedAttention", .lower = LowerFusedAttention, .domain = "tenon"},
  };
  return kRows;
}

}  // namespace cuda
