// Products with weights of 4 or 8 bits that have a scale for each block of a column:
//
//   MatMul(a, DequantizeLinear(w, scales, zero_points))  becomes  MatMulNBits
//
// so that the weights stay small and are read as they are stored. w is [K, N] with blocks along its
// first axis, or is stored transposed.
#include <optional>

#include "base/arithmetic.h"
#include "ir/graph.h"
#include "ops/fusion/fusion.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

// The weights of a match, as columns of a product.
class BlockWeights {
 public:
  // Nothing if MatMulNBits cannot have them.
  static std::optional<BlockWeights> Of(const Match& match) {
    BlockWeights w;
    w.integers_ = match.graph().StoredConstantOf(match["w"]);
    w.scales_ = match.graph().StoredConstantOf(match["scales"]);
    w.zeros_ = match.graph().StoredConstantOf(match["zeros"]);
    const Node& node = match.node("dequantize");
    w.block_size_ = node.GetInt("block_size", 0);
    w.is_transposed_ = match.FindNode("transpose") != nullptr;
    return w.IsSupported(match, node) ? std::optional(w) : std::nullopt;
  }

  int64_t bits() const {
    const DataType type = integers_->type();
    return type == DataType::kInt4 || type == DataType::kUint4 ? 4 : 8;
  }
  int64_t block_size() const { return block_size_; }
  int64_t k() const { return integers_->shape()[is_transposed_ ? 1 : 0]; }
  int64_t n() const { return integers_->shape()[is_transposed_ ? 0 : 1]; }
  int64_t blocks() const { return CeilDiv(k(), block_size_); }
  // MatMulNBits without zero points has those in the middle.
  bool needs_zeros() const { return zeros_ != nullptr || !is_signed(); }

  // [N, blocks, block_size * bits / 8].
  Result<Tensor> Packed() const {
    TENON_ASSIGN_OR_RETURN(
        Tensor packed,
        Tensor::Allocate(DataType::kUint8, Shape({n(), blocks(), block_size_ * bits() / 8})));
    auto* into = static_cast<uint8_t*>(packed.raw());
    std::fill_n(into, packed.size(), uint8_t{0});
    const int64_t row_bytes = blocks() * block_size_ * bits() / 8;
    for (int64_t j = 0; j < n(); ++j, into += row_bytes) {
      for (int64_t i = 0; i < k(); ++i) Put(ElementAt(*integers_, At(i, j, k())), i, into);
    }
    return packed;
  }

  // [N, bytes of all blocks].
  Result<Tensor> Zeros() const {
    const int64_t row_bytes = CeilDiv(blocks() * bits(), int64_t{8});
    TENON_ASSIGN_OR_RETURN(Tensor zeros,
                           Tensor::Allocate(DataType::kUint8, Shape({n(), row_bytes})));
    auto* into = static_cast<uint8_t*>(zeros.raw());
    std::fill_n(into, zeros.size(), uint8_t{0});
    for (int64_t j = 0; j < n() && zeros_; ++j, into += row_bytes) {
      for (int64_t i = 0; i < blocks(); ++i) Put(ElementAt(*zeros_, At(i, j, blocks())), i, into);
    }
    return zeros;
  }

  // [N, blocks].
  Result<Tensor> Scales() const {
    TENON_ASSIGN_OR_RETURN(Tensor scales,
                           Tensor::Allocate(DataType::kFloat, Shape({n(), blocks()})));
    for (int64_t j = 0; j < n(); ++j) {
      for (int64_t i = 0; i < blocks(); ++i) {
        scales.data<float>()[j * blocks() + i] = scales_->data<float>()[At(i, j, blocks())];
      }
    }
    return scales;
  }

 private:
  bool is_signed() const {
    return integers_->type() == DataType::kInt4 || integers_->type() == DataType::kInt8;
  }

  bool IsSupported(const Match& match, const Node& node) const {
    constexpr int64_t kLeastBlock = 16;
    if (!integers_ || integers_->rank() != 2 || !scales_ || scales_->type() != DataType::kFloat ||
        scales_->rank() != 2 || block_size_ < kLeastBlock ||
        (block_size_ & (block_size_ - 1)) != 0) {
      return false;
    }
    const DataType type = integers_->type();
    if (type != DataType::kInt4 && type != DataType::kUint4 && type != DataType::kInt8 &&
        type != DataType::kUint8) {
      return false;
    }
    const int64_t axis = node.GetInt("axis", 1);
    if ((axis < 0 ? axis + 2 : axis) != (is_transposed_ ? 1 : 0)) return false;
    const Shape expected = is_transposed_ ? Shape({n(), blocks()}) : Shape({blocks(), n()});
    const bool has_zeros = match["zeros"] != ValueId::kNone;
    if (has_zeros && (!zeros_ || zeros_->type() != type || !(zeros_->shape() == expected))) {
      return false;
    }
    return scales_->shape() == expected && k() > 0 && n() > 0;
  }

  // The position of the i-th of `count` elements of column j.
  int64_t At(int64_t i, int64_t j, int64_t count) const {
    return is_transposed_ ? j * count + i : i * n() + j;
  }

  // Brought to integers without a sign, which are in the order of the signed ones.
  uint8_t ElementAt(const Tensor& tensor, int64_t at) const {
    const auto* bytes = static_cast<const uint8_t*>(tensor.raw());
    if (bits() == 8) return static_cast<uint8_t>(bytes[at] ^ (is_signed() ? 0x80 : 0));
    const int nibble = bytes[at / 2] >> (at % 2 * 4) & 0xF;
    return static_cast<uint8_t>(nibble ^ (is_signed() ? 8 : 0));
  }

  // Writes element i of a row of zeros.
  void Put(uint8_t element, int64_t i, uint8_t* row) const {
    if (bits() == 8) {
      row[i] = element;
    } else {
      row[i / 2] = static_cast<uint8_t>(row[i / 2] | element << (i % 2 * 4));
    }
  }

  const Tensor* integers_ = nullptr;
  const Tensor* scales_ = nullptr;
  const Tensor* zeros_ = nullptr;
  int64_t block_size_ = 0;
  bool is_transposed_ = false;
};

bool HasBlockWeights(const Match& match) {
  const SymbolicShape* a = match.shape("a");
  const Node* transpose = match.FindNode("transpose");
  if (!a || a->rank() < 2) return false;
  if (transpose) {
    const std::vector<int64_t> order = transpose->GetInts("perm");
    if (!order.empty() && order != std::vector<int64_t>{1, 0}) return false;
  }
  return BlockWeights::Of(match).has_value();
}

ValueId MakeMatMulNBits(Replacement& r) {
  const BlockWeights w = *BlockWeights::Of(r);
  Result<Tensor> packed = w.Packed(), scales = w.Scales(), zeros = w.Zeros();
  if (!packed || !scales || !zeros) return ValueId::kNone;  // the nodes report it when they run
  std::vector<Attribute> attributes;
  attributes.emplace_back("K", w.k());
  attributes.emplace_back("N", w.n());
  attributes.emplace_back("bits", w.bits());
  attributes.emplace_back("block_size", w.block_size());
  std::vector<ValueId> inputs = {r["a"], r.Constant("packed", std::move(*packed)),
                                 r.Constant("scales", std::move(*scales))};
  if (w.needs_zeros()) inputs.push_back(r.Constant("zero_points", std::move(*zeros)));
  return r.Op("MatMulNBits", std::move(inputs), std::move(attributes), kMicrosoft);
}

}  // namespace

std::vector<Fusion> BlockQuantizedFusions() {
  const Pattern w =
      Op("DequantizeLinear", {Any("w"), Any("scales"), Maybe("zeros")}).As("dequantize").Shared();
  std::vector<Fusion> fusions;
  for (const Pattern& right : {w, Op("Transpose", {w}).As("transpose").Shared()}) {
    fusions.push_back({kMicrosoft,
                       "MatMulNBits",
                       {.name = "matmul of blocks",
                        .pattern = Op("MatMul", {Any("a"), right}),
                        .when = HasBlockWeights,
                        .replace = MakeMatMulNBits}});
  }
  return fusions;
}

}  // namespace tenon
