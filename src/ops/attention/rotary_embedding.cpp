// RotaryEmbedding and MRotaryEmbedding: rotate pairs of elements of each head by angles of the
// position.
#include "base/arithmetic.h"
#include "ops/attention/head_rows.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// RotaryEmbedding-23 and com.microsoft RotaryEmbedding-1, whose inputs are in different orders.
struct InputOrder {
  size_t cos, sin, positions;
};
constexpr InputOrder kStandardOrder = {1, 2, 3};
constexpr InputOrder kMicrosoftOrder = {2, 3, 1};

struct RotaryAttrs {
  bool interleaved = false;
  int64_t heads = 0;
  int64_t rotated = 0;  // elements of a head; 0: all
  float scale = 1;
  static constexpr auto Fields() {
    using A = RotaryAttrs;
    return std::tuple(Field("interleaved", &A::interleaved), Field("num_heads", &A::heads),
                      Field("rotary_embedding_dim", &A::rotated), Field("scale", &A::scale));
  }
};

// The layout of heads in x.
struct Layout {
  Dim batch, heads, length, size;
};

template <const InputOrder& order>
Result<Layout> LayoutOf(const RotaryAttrs& attrs, const SymbolicShape& x,
                        const ShapeContext& context) {
  if (x.rank() == 4) return Layout{x[0], x[1], x[2], x[3]};
  if (x.rank() != 3) return InvalidArgument("input 0: expected rank 3 or 4, got {}", x);
  if (attrs.heads < 0) return InvalidArgument("expected num_heads >= 0, got {}", attrs.heads);
  Dim heads(attrs.heads);
  if (attrs.heads == 0) {
    // The angles are then of whole heads.
    TENON_ASSIGN_OR_RETURN(const SymbolicShape cos, context.Input(order.cos));
    const Dim half = cos.rank() > 0 ? cos[cos.rank() - 1] : Dim(0);
    if (!half.is_number() || !x[2].is_number()) return Error(UnknownShape());
    if (half.value() <= 0 || attrs.rotated > 0) {
      return InvalidArgument("input 0 {} of rank 3 needs num_heads, got 0", x);
    }
    heads = FloorDiv(x[2], half * Dim(2));
  }
  const bool divides = !x[2].is_number() || !heads.is_number() ||
                       (heads.value() > 0 && x[2].value() % heads.value() == 0);
  if (!divides) return InvalidArgument("input 0: expected {} heads of one size, got {}", heads, x);
  return Layout{x[0], heads, x[1], FloorDiv(x[2], heads)};
}

// Checks that there are angles for half of the elements that are rotated.
Status CheckTables(const RotaryAttrs& attrs, const Layout& layout, const ShapeContext& context,
                   const InputOrder& order) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape cos, context.Input(order.cos));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape sin, context.Input(order.sin));
  const bool has_positions = context.HasInput(order.positions);
  const size_t rank = has_positions ? 2 : 3;
  bool fits = cos.rank() == rank && sin.rank() == rank;
  for (size_t axis = 0; fits && axis < rank; ++axis) fits = MayEqual(cos[axis], sin[axis]);
  if (fits && !has_positions) {
    fits = MayEqual(cos[0], layout.batch) && MayEqual(cos[1], layout.length);
  }
  const Dim rotated = attrs.rotated > 0 ? Dim(attrs.rotated) : layout.size;
  if (fits && rotated.is_number()) fits = MayEqual(cos[rank - 1], Dim(rotated.value() / 2));
  if (fits && rotated.is_number() && layout.size.is_number()) {
    fits = rotated.value() % 2 == 0 && rotated.value() <= layout.size.value();
  }
  if (fits) return OkStatus();
  return InvalidArgument("cos_cache {} and sin_cache {} do not fit to {} of {} elements", cos, sin,
                         rotated, layout.size);
}

template <const InputOrder& order>
Status InferRotary(const RotaryAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_RETURN_IF_ERROR(context.SetOutput(0, x));
  TENON_ASSIGN_OR_RETURN(const Layout layout, LayoutOf<order>(attrs, x, context));
  TENON_RETURN_IF_ERROR(CheckTables(attrs, layout, context, order));
  if (!context.HasInput(order.positions)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const SymbolicShape positions, context.Input(order.positions));
  const bool is_offset = positions.NumElements() == Dim(1) && positions.rank() <= 1;
  const bool fits = is_offset ||
                    (positions.rank() == 2 && MayEqual(positions[0], layout.batch) &&
                     MayEqual(positions[1], layout.length)) ||
                    (positions.rank() == 1 && !positions[0].is_number());
  if (fits) return OkStatus();
  return InvalidArgument("position_ids: expected [1] or [{}, {}], got {}", layout.batch,
                         layout.length, positions);
}

// The rows of the tables that the heads use.
class Angles {
 public:
  Angles(const Tensor& cos, const Tensor* positions, size_t length)
      : rows_(cos.rank() == 2 ? cos.shape()[0] : cos.shape()[0] * cos.shape()[1]),
        positions_(positions ? positions->data<int64_t>() : nullptr),
        is_offset_(positions && positions->rank() < 2),
        length_(length) {}

  int64_t RowOf(size_t b, size_t i) const {
    const size_t at = b * length_ + i;
    if (positions_ == nullptr) return static_cast<int64_t>(at);
    if (!is_offset_) return positions_[at];
    return CheckedAdd(positions_[0], static_cast<int64_t>(i)).value_or(-1);
  }
  Status Check(size_t batch) const {
    for (size_t b = 0; b < batch; ++b) {
      for (size_t i = 0; i < length_; ++i) {
        const int64_t row = RowOf(b, i);
        if (row >= 0 && row < rows_) continue;
        return InvalidArgument("position_ids: expected positions in [0, {}), got {}", rows_, row);
      }
    }
    return OkStatus();
  }

 private:
  const int64_t rows_;
  const int64_t* positions_;
  const bool is_offset_;
  const size_t length_;
};

// The heads of a tensor that has some elements.
HeadMatrices MatricesOf(const RotaryAttrs& attrs, const Tensor& x, size_t half) {
  const auto dim = [&](size_t axis) { return static_cast<size_t>(x.shape()[axis]); };
  if (x.rank() == 4) return HeadsFirst(dim(0), dim(1), dim(2), dim(3));
  const size_t heads = attrs.heads > 0 ? static_cast<size_t>(attrs.heads) : dim(2) / (2 * half);
  return HeadsLast(dim(0), dim(1), heads, dim(2) / heads);
}

// Rotates every head at (b, i) by the angles in row row_of(b, i).
void RotateHeads(KernelContext& context, const HeadMatrices& m, const Rotation& rotation,
                 FunctionRef<size_t(size_t b, size_t i)> row_of) {
  const auto edit = [&](size_t b, size_t, size_t i, float* row) {
    Rotate(rotation, row_of(b, i), row);
  };
  const RowEdit row_edit = edit;
  CopyRows(
      context.threads(), {m, context.Input(0).data<float>()}, m, context.Output(0).data<float>(),
      [](size_t) { return 0; }, &row_edit);
}

template <const InputOrder& order>
Status RunRotary(const RotaryAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  if (x.size() == 0) return OkStatus();
  const Tensor& cos = context.Input(order.cos);
  const Rotation rotation = {cos.data<float>(), context.Input(order.sin).template data<float>(),
                             static_cast<size_t>(cos.shape().back()), attrs.interleaved};
  const HeadMatrices m = MatricesOf(attrs, x, rotation.half);
  const Tensor* positions =
      context.HasInput(order.positions) ? &context.Input(order.positions) : nullptr;
  const Angles angles(cos, positions, m.length);
  TENON_RETURN_IF_ERROR(angles.Check(m.batch));
  RotateHeads(context, m, rotation,
              [&](size_t b, size_t i) { return static_cast<size_t>(angles.RowOf(b, i)); });
  return OkStatus();
}

// --- MRotaryEmbedding-1: a token has three positions, each for its own section of the angles. The
// tables are multiplied by `scale`, which onnxruntime's RotaryEmbedding only declares ---

constexpr size_t kStreams = 3;  // time, height, width

struct SectionedAttrs : RotaryAttrs {
  std::vector<int64_t> sections;
  int64_t layout = 0;
  static constexpr auto Fields() {
    return std::tuple_cat(RotaryAttrs::Fields(),
                          std::tuple(Field("mrope_section", &SectionedAttrs::sections),
                                     Field("mrope_layout", &SectionedAttrs::layout)));
  }
};

// The stream of each angle. Layout 0: sections one after the other. Layout 1: height and width
// alternate with time for the length of their sections. Error: sections whose sum is not `half`
// angles.
Result<PooledVector<uint8_t>> StreamsOf(const SectionedAttrs& attrs, int64_t half) {
  const auto& sections = attrs.sections;
  bool fits = sections.size() == kStreams;
  int64_t rest = half;
  for (size_t s = 0; fits && s < kStreams; ++s) {
    fits = sections[s] >= 0 && sections[s] <= rest;
    rest -= sections[s];
  }
  if (!fits || rest != 0) {
    return InvalidArgument("attribute 'mrope_section': expected 3 lengths that make up {}, got {}",
                           half, Shape(sections));
  }
  PooledVector<uint8_t> streams(static_cast<size_t>(half), 0);
  for (int64_t i = 0; i < half; ++i) {
    uint8_t& stream = streams[static_cast<size_t>(i)];
    if (attrs.layout == 0) {
      stream = i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2;
    } else if (i % 3 != 0 && i / 3 < sections[static_cast<size_t>(i % 3)]) {
      stream = static_cast<uint8_t>(i % 3);
    }
  }
  return streams;
}

Status InferSectioned(const SectionedAttrs& attrs, ShapeContext& context) {
  if (attrs.layout != 0 && attrs.layout != 1) {
    return InvalidArgument("attribute 'mrope_layout': expected 0 or 1, got {}", attrs.layout);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_RETURN_IF_ERROR(context.SetOutput(0, x));
  TENON_ASSIGN_OR_RETURN(const Layout layout, LayoutOf<kMicrosoftOrder>(attrs, x, context));
  TENON_RETURN_IF_ERROR(CheckTables(attrs, layout, context, kMicrosoftOrder));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kMicrosoftOrder.positions,
                                        {Dim(int64_t{kStreams}), layout.batch, layout.length}));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape cos, context.Input(kMicrosoftOrder.cos));
  if (!cos[1].is_number()) return OkStatus();
  const auto streams = StreamsOf(attrs, cos[1].value());
  return streams ? OkStatus() : streams.error();
}

Status RunSectioned(const SectionedAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  if (x.size() == 0) return OkStatus();
  const Tensor& cos = context.Input(kMicrosoftOrder.cos);
  const Tensor& sin = context.Input(kMicrosoftOrder.sin);
  const auto half = static_cast<size_t>(cos.shape()[1]);
  TENON_ASSIGN_OR_RETURN(const PooledVector<uint8_t> streams,
                         StreamsOf(attrs, static_cast<int64_t>(half)));
  const auto positions = context.Input(kMicrosoftOrder.positions).values<int64_t>();
  for (const int64_t position : positions) {
    if (position >= 0 && position < cos.shape()[0]) continue;
    return InvalidArgument("position_ids: expected positions in [0, {}), got {}", cos.shape()[0],
                           position);
  }
  const HeadMatrices m = MatricesOf(attrs, x, half);
  const size_t tokens = m.batch * m.length;
  auto* tables = static_cast<float*>(context.Scratch(2 * tokens * half * sizeof(float)));
  if (tables == nullptr) return RuntimeException("out of memory for {} angles", tokens * half);
  const Rotation rotation = {tables, tables + tokens * half, half, attrs.interleaved};
  for (size_t token = 0; token < tokens; ++token) {
    for (size_t i = 0; i < half; ++i) {
      const auto row = static_cast<size_t>(positions[streams[i] * tokens + token]);
      tables[token * half + i] = attrs.scale * cos.data<float>()[row * half + i];
      tables[(tokens + token) * half + i] = attrs.scale * sin.data<float>()[row * half + i];
    }
  }
  RotateHeads(context, m, rotation, [&](size_t b, size_t i) { return b * m.length + i; });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferRotary<kStandardOrder>, RunRotary<kStandardOrder>>(
        "RotaryEmbedding", {.since = 23, .types = kFloat32Only}),
    Op<InferRotary<kMicrosoftOrder>, RunRotary<kMicrosoftOrder>>(
        "RotaryEmbedding", {.domain = "com.microsoft", .types = kFloat32Only}),
    Op<InferSectioned, RunSectioned>("MRotaryEmbedding",
                                     {.domain = "com.microsoft", .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(RotaryEmbedding, kRows);

}  // namespace tenon
