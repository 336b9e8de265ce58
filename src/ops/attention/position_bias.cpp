// RelativePositionBias and GatedRelativePositionBias of com.microsoft: addends for the scores of
// attention that depend on the distance of query and key.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// --- RelativePositionBias-1, of T5: distances fall into buckets, wide ones far away ---

struct PositionAttrs {
  int64_t max_distance = 0;
  bool is_bidirectional = false;
  static constexpr auto Fields() {
    return std::tuple(Field("max_distance", &PositionAttrs::max_distance),
                      Field("is_bidirectional", &PositionAttrs::is_bidirectional));
  }
};

Result<Dim> LengthOf(const ShapeContext& context, size_t i) {
  const Tensor* data = context.InputData(i);
  if (data == nullptr) return Dim::Unknown();
  if (data->size() != 1) {
    return InvalidArgument("input {}: expected one element, got {}", i, data->shape());
  }
  const int64_t length = data->data<int64_t>()[0];
  if (length < 0) return InvalidArgument("input {}: expected a length, got {}", i, length);
  return Dim(length);
}

Status InferPosition(const PositionAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape table, context.InputOfRank(0, 2));
  const int64_t least = attrs.is_bidirectional ? 4 : 2;
  if (table[0].is_number() && table[0].value() < least) {
    return InvalidArgument("input 0: expected at least {} buckets, got {}", least, table);
  }
  if (attrs.max_distance <= 0) {
    return InvalidArgument("expected max_distance > 0, got {}", attrs.max_distance);
  }
  TENON_ASSIGN_OR_RETURN(const Dim queries, LengthOf(context, 1));
  TENON_ASSIGN_OR_RETURN(const Dim keys, LengthOf(context, 2));
  return context.SetOutput(0, {Dim(1), table[1], queries, keys});
}

// `distance`: key less query.
int64_t BucketOf(int64_t distance, int64_t buckets, const PositionAttrs& attrs) {
  int64_t bucket = 0;
  int64_t far = -distance;
  if (attrs.is_bidirectional) {
    buckets /= 2;
    if (far < 0) bucket = buckets;
    far = std::abs(far);
  } else {
    far = std::max<int64_t>(far, 0);
  }
  // The first half of the buckets are single distances.
  const int64_t exact = buckets / 2;
  if (far < exact) return bucket + far;
  const float octaves =
      std::log(static_cast<float>(far) / static_cast<float>(exact)) /
      std::log(static_cast<float>(attrs.max_distance) / static_cast<float>(exact));
  const float step = octaves * static_cast<float>(buckets - exact);
  // A maximal distance within the single ones would make this infinite or NaN.
  const int64_t steps =
      step >= 0 && step < static_cast<float>(buckets) ? static_cast<int64_t>(step) : buckets;
  return bucket + std::min(exact + steps, buckets - 1);
}

Status RunPosition(const PositionAttrs& attrs, KernelContext& context) {
  const Tensor& table = context.Input(0);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  const int64_t buckets = table.shape()[0];
  const auto heads = static_cast<size_t>(table.shape()[1]);
  const auto queries = y.shape()[2], keys = y.shape()[3];
  auto* bucket_of =
      static_cast<int64_t*>(context.Scratch(static_cast<size_t>(queries + keys) * sizeof(int64_t)));
  if (bucket_of == nullptr) return RuntimeException("out of memory for {} keys", keys);
  // Entry d + queries is of distance d.
  for (int64_t d = -queries; d < keys; ++d) bucket_of[d + queries] = BucketOf(d, buckets, attrs);
  context.threads().ParallelFor(heads, 1, [&](size_t begin, size_t end) {
    for (size_t h = begin; h < end; ++h) {
      float* into = y.data<float>() + static_cast<int64_t>(h) * queries * keys;
      for (int64_t i = 0; i < queries; ++i) {
        for (int64_t j = 0; j < keys; ++j) {
          const int64_t bucket = bucket_of[j - i + queries];
          *into++ = table.data<float>()[static_cast<size_t>(bucket) * heads + h];
        }
      }
    }
  });
  return OkStatus();
}

// --- GatedRelativePositionBias-1 ---

enum GatedInput : size_t { kQuery, kQueryBias, kPosition, kWeight, kBias, kEco, kTokenOffset };

struct HeadsAttrs {
  int64_t heads = 1;
  static constexpr auto Fields() { return std::tuple(Field("num_heads", &HeadsAttrs::heads)); }
};

// The query's shape with padding, [batch, length, heads * size].
Result<SymbolicShape> GatedQuery(const ShapeContext& context) {
  if (!context.HasInput(kTokenOffset)) return context.InputOfRank(kQuery, 3);
  TENON_ASSIGN_OR_RETURN(const SymbolicShape tokens, context.InputOfRank(kQuery, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape places, context.InputOfRank(kTokenOffset, 2));
  return SymbolicShape({places[0], places[1], tokens[1]});
}

[[gnu::cold]] Status InferGated(const HeadsAttrs& attrs, ShapeContext& context) {
  if (attrs.heads < 1) return InvalidArgument("expected num_heads >= 1, got {}", attrs.heads);
  TENON_ASSIGN_OR_RETURN(const SymbolicShape q, GatedQuery(context));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape position, context.InputOfRank(kPosition, 4));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape weight, context.InputOfRank(kWeight, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape query_bias, context.InputOfRank(kQueryBias, 1));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape bias, context.InputOfRank(kBias, 1));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape eco, context.Input(kEco));
  const Dim heads(attrs.heads);
  const bool is_even = !weight[1].is_number() || weight[1].value() % 2 == 0;
  const bool fits = MayEqual(q[2], heads * weight[0]) && MayEqual(query_bias[0], q[2]) &&
                    MayEqual(bias[0], weight[1]) && is_even && MayEqual(position[0], Dim(1)) &&
                    MayEqual(position[1], heads) && MayEqual(position[2], q[1]) &&
                    MayEqual(position[3], q[1]) && MayEqual(eco.NumElements(), heads);
  if (!fits) {
    return InvalidArgument(
        "query_layer {}, query_bias {}, rel_pos {}, weight {}, bias {} and eco_a "
        "{} do not fit to {} heads",
        q, query_bias, position, weight, bias, eco, attrs.heads);
  }
  return context.SetOutput(0, {q[0], heads, q[1], q[1]});
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The gate of a head's query q, [size].
double GateOf(const KernelContext& context, const float* q, const float* q_bias, size_t h) {
  const Tensor& weight = context.Input(kWeight);
  const auto size = static_cast<size_t>(weight.shape()[0]);
  const auto columns = static_cast<size_t>(weight.shape()[1]);
  double sums[2] = {0, 0};  // over the halves of the columns
  for (size_t c = 0; c < columns; ++c) {
    double sum = context.Input(kBias).data<float>()[c];
    for (size_t p = 0; p < size; ++p) {
      sum += (double{q[p]} + q_bias[p]) * weight.data<float>()[p * columns + c];
    }
    sums[c < columns / 2 ? 0 : 1] += sum;
  }
  const double eco = context.Input(kEco).data<float>()[h];
  return Sigmoid(sums[0]) * (Sigmoid(sums[1]) * eco - 1) + 2;
}

// The token at each of `places` places; token_offset has the places of the tokens. -1: padding,
// whose query is 0.
Result<PooledVector<int64_t>> TokensByPlace(const KernelContext& context, size_t places) {
  PooledVector<int64_t> tokens(places, -1);
  if (!context.HasInput(kTokenOffset)) {
    std::iota(tokens.begin(), tokens.end(), 0);
    return tokens;
  }
  const int64_t count = context.Input(kQuery).shape()[0];
  const Tensor& offsets = context.Input(kTokenOffset);
  if (count > offsets.size()) {
    return InvalidArgument("input 0: expected at most {} tokens, got {}", offsets.size(), count);
  }
  for (int64_t token = 0; token < count; ++token) {
    const int32_t place = offsets.data<int32_t>()[token];
    if (place < 0 || static_cast<size_t>(place) >= places) {
      return InvalidArgument("input {}: expected places in [0, {}), got {}", size_t{kTokenOffset},
                             places, place);
    }
    tokens[static_cast<size_t>(place)] = token;
  }
  return tokens;
}

Status RunGated(const HeadsAttrs& attrs, KernelContext& context) {
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  const auto heads = static_cast<size_t>(attrs.heads);
  const auto length = static_cast<size_t>(y.shape()[2]);
  const auto rows = static_cast<size_t>(y.shape()[0]) * heads * length;
  const auto size = static_cast<size_t>(context.Input(kWeight).shape()[0]);
  TENON_ASSIGN_OR_RETURN(const PooledVector<int64_t> tokens,
                         TokensByPlace(context, static_cast<size_t>(y.shape()[0]) * length));
  const PooledVector<float> padding(size);
  context.threads().ParallelFor(rows, 16, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const size_t i = row % length, h = row / length % heads, b = row / length / heads;
      const int64_t token = tokens[b * length + i];
      const float* q = token < 0 ? padding.data()
                                 : context.Input(kQuery).data<float>() +
                                       (static_cast<size_t>(token) * heads + h) * size;
      const auto gate = static_cast<float>(
          GateOf(context, q, context.Input(kQueryBias).data<float>() + h * size, h));
      const float* position = context.Input(kPosition).data<float>() + (h * length + i) * length;
      float* into = y.data<float>() + row * length;
      for (size_t j = 0; j < length; ++j) into[j] = gate * position[j];
    }
  });
  return OkStatus();
}

constexpr const char* kMicrosoft = "com.microsoft";

constexpr OpRow kRows[] = {
    Op<InferPosition, RunPosition>("RelativePositionBias",
                                   {.domain = kMicrosoft, .types = kFloat32Only}),
    Op<InferGated, RunGated>("GatedRelativePositionBias",
                             {.domain = kMicrosoft, .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(PositionBias, kRows);

}  // namespace tenon
