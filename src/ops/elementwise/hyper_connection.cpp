// Operators of com.microsoft on hidden states of several streams, or branches: [..., branches,
// size], or flattened to [..., branches * size]. They compute in float, whatever the type.
#include <algorithm>
#include <optional>

#include "kernels/normalization.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/float_rows.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

// The dimensions of a tensor that holds streams.
struct Streams {
  Dims lead;
  Dim branches, size;
  bool is_flat;

  // `lead`, then these dimensions.
  SymbolicShape With(std::initializer_list<Dim> last) const {
    Dims dims = lead;
    dims.insert(dims.end(), last);
    return SymbolicShape(std::move(dims));
  }
};

// `branches` is the attribute: 0 if the streams are not flattened.
Result<Streams> StreamsOf(const SymbolicShape& x, int64_t branches) {
  if (branches < 0) return InvalidArgument("expected num_branches >= 0, got {}", branches);
  const size_t last = branches > 0 ? 1 : 2;
  if (x.rank() < last) return InvalidArgument("input 0: expected rank >= {}, got {}", last, x);
  Streams streams = {{x.begin(), x.begin() + static_cast<ptrdiff_t>(x.rank() - last)},
                     branches > 0 ? Dim(branches) : x[x.rank() - 2],
                     x[x.rank() - 1],
                     branches > 0};
  if (branches == 0) return streams;
  if (streams.size.is_number() && streams.size.value() % branches != 0) {
    return InvalidArgument("input 0: expected {} branches of one size, got {}", branches, x);
  }
  streams.size = FloorDiv(streams.size, Dim(branches));
  return streams;
}

// Checks that input `i` has a gate for each branch, [..., branches] or [..., branches, 1], or for
// each element, [..., branches, size] or, if the streams are flattened, [..., branches * size].
Status CheckGates(const ShapeContext& context, size_t i, const Streams& streams, bool may_be_flat) {
  const Result<SymbolicShape> gates = context.Input(i);
  if (!gates) return IsUnknownShape(gates.error()) ? OkStatus() : gates.error();
  const auto is = [&](std::initializer_list<Dim> last) {
    return MayEqual(*gates, streams.With(last));
  };
  const bool fits = is({streams.branches}) || is({streams.branches, Dim(1)}) ||
                    is({streams.branches, streams.size}) ||
                    (may_be_flat && streams.is_flat && is({streams.branches * streams.size}));
  if (fits) return OkStatus();
  return InvalidArgument("input {}: expected gates for {} branches of {} elements of {}, got {}", i,
                         streams.branches, streams.size, streams.With({}), *gates);
}

// The number of positions in the leading dimensions, of streams, and of elements in a stream.
struct StreamSizes {
  size_t places, branches, size;
};

StreamSizes SizesOf(const Tensor& x, int64_t branches) {
  const Shape& shape = x.shape();
  const auto last = static_cast<size_t>(shape.back());
  StreamSizes sizes = {};
  sizes.branches = static_cast<size_t>(branches > 0 ? branches : shape[shape.rank() - 2]);
  sizes.size = branches > 0 ? last / sizes.branches : last;
  if (x.size() > 0) sizes.places = static_cast<size_t>(x.size()) / (sizes.branches * sizes.size);
  return sizes;
}

// y += gate x, where the gate is one number or one for each element.
void AddGated(const float* x, const float* gates, bool per_element, size_t n, float* y) {
  if (per_element) {
    for (size_t i = 0; i < n; ++i) y[i] += gates[i] * x[i];
  } else {
    for (size_t i = 0; i < n; ++i) y[i] += *gates * x[i];
  }
}

// --- BranchwiseRMSNorm-1 ---

struct BranchNormAttrs {
  float epsilon = 1e-5f;
  int64_t branches = 0;
  static constexpr auto Fields() {
    return std::tuple(Field("epsilon", &BranchNormAttrs::epsilon),
                      Field("num_branches", &BranchNormAttrs::branches));
  }
};

[[gnu::cold]] Status InferBranchNorm(const BranchNormAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Streams streams, StreamsOf(x, attrs.branches));
  TENON_RETURN_IF_ERROR(context.SetOutput(0, std::move(x)));
  if (!context.HasInput(1)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const SymbolicShape scale, context.Input(1));
  const bool fits = MayEqual(scale, SymbolicShape{streams.size}) ||
                    MayEqual(scale, SymbolicShape{streams.branches * streams.size}) ||
                    MayEqual(scale, SymbolicShape{streams.branches, streams.size});
  if (fits) return OkStatus();
  return InvalidArgument("input 1: expected scales for {} branches of {} elements, got {}",
                         streams.branches, streams.size, scale);
}

Status RunBranchNorm(const BranchNormAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const StreamSizes sizes = SizesOf(x, attrs.branches);
  const size_t n = sizes.size;
  const size_t rows = sizes.places * sizes.branches;
  return context.ForEachTask(rows, 2 * n * sizeof(float), [&](size_t row, std::byte* scratch) {
    auto* y = reinterpret_cast<float*>(scratch);
    const float* scale = nullptr;
    if (context.HasInput(1)) {
      const auto count = static_cast<size_t>(context.Input(1).size());
      scale = FloatRow(context.Input(1), row * n % count, n, y + n);
    }
    kernels::RmsNorm({FloatRow(x, row * n, n, y)}, y, 1, n, {attrs.epsilon, scale});
    StoreFloatRow(y, n, row * n, context.Output(0));
  });
}

// --- HyperConnectionPreMix-1: the streams' weighted sum ---

struct PreMixAttrs {
  int64_t branches = 0;
  float reduction_scale = 1;
  static constexpr auto Fields() {
    return std::tuple(Field("num_branches", &PreMixAttrs::branches),
                      Field("reduction_scale", &PreMixAttrs::reduction_scale));
  }
};

Status InferPreMix(const PreMixAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Streams streams, StreamsOf(x, attrs.branches));
  TENON_RETURN_IF_ERROR(CheckGates(context, 1, streams, true));
  return context.SetOutput(0, streams.With({streams.size}));
}

Status RunPreMix(const PreMixAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& gates = context.Input(1);
  const StreamSizes sizes = SizesOf(x, attrs.branches);
  const size_t places = sizes.places, branches = sizes.branches, n = sizes.size;
  if (x.size() == 0) {
    // Without branches the sums are empty.
    Tensor& y = context.Output(0);
    std::fill_n(static_cast<std::byte*>(y.raw()), y.bytes(), std::byte(0));
    return OkStatus();
  }
  const bool per_element = gates.size() == x.size();
  const size_t gates_each = per_element ? n : 1;
  return context.ForEachTask(places, 3 * n * sizeof(float), [&](size_t place, std::byte* scratch) {
    auto* y = reinterpret_cast<float*>(scratch);
    std::fill_n(y, n, 0.0f);
    for (size_t c = 0; c < branches; ++c) {
      const size_t branch = place * branches + c;
      AddGated(FloatRow(x, branch * n, n, y + n),
               FloatRow(gates, branch * gates_each, gates_each, y + 2 * n), per_element, n, y);
    }
    for (size_t i = 0; i < n; ++i) y[i] *= attrs.reduction_scale;
    StoreFloatRow(y, n, place * n, context.Output(0));
  });
}

// --- HyperConnectionPostMix-1: streams mixed with each other, plus a block's output ---

enum PostMixInput : size_t { kStreams, kBlock, kPostMix, kStreamMix };

struct PostMixAttrs {
  int64_t branches = 0;
  static constexpr auto Fields() {
    return std::tuple(Field("num_branches", &PostMixAttrs::branches));
  }
};

Status InferPostMix(const PostMixAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(kStreams));
  TENON_ASSIGN_OR_RETURN(const Streams streams, StreamsOf(x, attrs.branches));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kBlock, streams.With({streams.size})));
  TENON_RETURN_IF_ERROR(CheckGates(context, kPostMix, streams, false));
  TENON_RETURN_IF_ERROR(
      CheckInputShape(context, kStreamMix, streams.With({streams.branches, streams.branches})));
  return context.SetOutput(0, std::move(x));
}

Status RunPostMix(const PostMixAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(kStreams);
  const Tensor& post = context.Input(kPostMix);
  const StreamSizes sizes = SizesOf(x, attrs.branches);
  const size_t n = sizes.size, branches = sizes.branches;
  const bool per_element = post.size() == x.size();
  const size_t gates_each = per_element ? n : 1;
  const size_t floats = 3 * n + branches * (n + branches);
  return context.ForEachTask(
      sizes.places, floats * sizeof(float), [&](size_t place, std::byte* scratch) {
        auto* y = reinterpret_cast<float*>(scratch);
        float *block_buffer = y + n, *gate_buffer = y + 2 * n, *stream_buffer = y + 3 * n;
        const size_t first = place * branches * n;
        const float* streams = FloatRow(x, first, branches * n, stream_buffer);
        const float* block = FloatRow(context.Input(kBlock), place * n, n, block_buffer);
        const float* mix = nullptr;  // [from, to]
        if (context.HasInput(kStreamMix)) {
          mix = FloatRow(context.Input(kStreamMix), place * branches * branches,
                         branches * branches, stream_buffer + branches * n);
        }
        for (size_t k = 0; k < branches; ++k) {
          if (mix) {
            std::fill_n(y, n, 0.0f);
            for (size_t c = 0; c < branches; ++c) {
              AddGated(streams + c * n, mix + c * branches + k, false, n, y);
            }
          } else {
            std::copy_n(streams + k * n, n, y);
          }
          const float* gates =
              FloatRow(post, (place * branches + k) * gates_each, gates_each, gate_buffer);
          AddGated(block, gates, per_element, n, y);
          StoreFloatRow(y, n, first + k * n, context.Output(0));
        }
      });
}

constexpr OpRow kRows[] = {
    Op<InferBranchNorm, RunBranchNorm>("BranchwiseRMSNorm",
                                       {.domain = kMicrosoft, .types = kFloatRowTypes}),
    Op<InferPreMix, RunPreMix>("HyperConnectionPreMix",
                               {.domain = kMicrosoft, .types = kFloatRowTypes}),
    Op<InferPostMix, RunPostMix>("HyperConnectionPostMix",
                                 {.domain = kMicrosoft, .types = kFloatRowTypes}),
};

}  // namespace

TENON_OP_FAMILY(HyperConnection, kRows);

}  // namespace tenon
