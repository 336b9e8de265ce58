// LinearAttention and CausalConvWithState of com.microsoft: recurrences whose state goes from run
// to run.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/arithmetic.h"
#include "ops/expected_shape.h"
#include "ops/op_row.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

constexpr int64_t kMostWindow = 8;

// A state, behind an axis of the last `window` states if that is above 0.
Status CheckState(const ShapeContext& context, size_t i, int64_t window,
                  const SymbolicShape& state) {
  if (window < 0 || window > kMostWindow) {
    return InvalidArgument("expected state_window in [0, {}], got {}", kMostWindow, window);
  }
  if (!context.HasInput(i)) return OkStatus();
  const Result<SymbolicShape> past = context.Input(i);
  if (!past) return IsUnknownShape(past.error()) ? OkStatus() : past.error();
  const size_t extra = window > 0 ? 1 : 0;
  bool fits = past->rank() == state.rank() + extra;
  if (fits && window > 0) fits = MayEqual((*past)[0], Dim(window));
  for (size_t axis = 0; fits && axis < state.rank(); ++axis) {
    fits = MayEqual((*past)[axis + extra], state[axis]);
  }
  if (fits) return OkStatus();
  return InvalidArgument("input {}: expected a state {} with a window of {}, got {}", i, state,
                         window, *past);
}

SymbolicShape WithWindow(int64_t window, const SymbolicShape& state) {
  if (window == 0) return state;
  std::vector<Dim> dims = state.dims();
  dims.insert(dims.begin(), Dim(window));
  return SymbolicShape(std::move(dims));
}

// --- LinearAttention-1 ---

enum LinearInput : size_t { kQuery, kKey, kValue, kPastState, kDecay, kBeta };
enum LinearOutput : size_t { kY, kPresentState };

struct LinearAttrs {
  int64_t q_heads = 0, kv_heads = 0;
  float scale = 0;
  int64_t window = 0;
  std::string rule = "gated_delta";
  static constexpr auto Fields() {
    using A = LinearAttrs;
    return std::tuple(Field("q_num_heads", &A::q_heads), Field("kv_num_heads", &A::kv_heads),
                      Field("scale", &A::scale), Field("state_window", &A::window),
                      Field("update_rule", &A::rule));
  }
  bool has_decay() const { return rule == "gated" || rule == "gated_delta"; }
  bool has_delta() const { return rule == "delta" || rule == "gated_delta"; }
};

Status CheckLinear(const LinearAttrs& attrs, const ShapeContext& context) {
  if (!attrs.has_decay() && !attrs.has_delta() && attrs.rule != "linear") {
    return InvalidArgument(
        "expected update_rule 'linear', 'gated', 'delta' or 'gated_delta', got '{}'", attrs.rule);
  }
  const int64_t most = std::max(attrs.q_heads, attrs.kv_heads);
  const int64_t least = std::min(attrs.q_heads, attrs.kv_heads);
  if (least < 1 || most % least != 0) {
    return InvalidArgument("expected heads of queries and keys that divide, got {} and {}",
                           attrs.q_heads, attrs.kv_heads);
  }
  if (attrs.has_decay() && !context.HasInput(kDecay)) {
    return InvalidArgument("update_rule '{}' needs the input decay", attrs.rule);
  }
  if (attrs.has_delta() && !context.HasInput(kBeta)) {
    return InvalidArgument("update_rule '{}' needs the input beta", attrs.rule);
  }
  return OkStatus();
}

Status InferLinear(const LinearAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckLinear(attrs, context));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape q, context.InputOfRank(kQuery, 3));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape k, context.InputOfRank(kKey, 3));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape v, context.InputOfRank(kValue, 3));
  const Dim heads(attrs.kv_heads);
  const auto divides = [](const Dim& dim, int64_t by) {
    return !dim.is_number() || dim.value() % by == 0;
  };
  const Dim key_size = FloorDiv(k[2], heads), value_size = FloorDiv(v[2], heads);
  const bool fits = MayEqual(q[0], k[0]) && MayEqual(q[0], v[0]) && MayEqual(q[1], k[1]) &&
                    MayEqual(q[1], v[1]) && divides(k[2], attrs.kv_heads) &&
                    divides(v[2], attrs.kv_heads) && MayEqual(q[2], Dim(attrs.q_heads) * key_size);
  if (!fits) {
    return InvalidArgument("query {}, key {} and value {} do not fit to {} and {} heads", q, k, v,
                           attrs.q_heads, attrs.kv_heads);
  }
  const SymbolicShape state = {q[0], heads, key_size, value_size};
  TENON_RETURN_IF_ERROR(CheckState(context, kPastState, attrs.window, state));
  for (const size_t i : {kDecay, kBeta}) {
    if (!context.HasInput(i)) continue;
    const Result<SymbolicShape> gate = context.InputOfRank(i, 3);
    if (!gate && IsUnknownShape(gate.error())) continue;
    if (!gate) return gate.error();
    const Dim wide = i == kDecay ? k[2] : Dim(1);
    const bool is_wide = MayEqual((*gate)[2], heads) || MayEqual((*gate)[2], wide);
    if (MayEqual((*gate)[0], q[0]) && MayEqual((*gate)[1], q[1]) && is_wide) continue;
    return InvalidArgument("input {}: expected [{}, {}, {} or {}], got {}", i, q[0], q[1], heads,
                           wide, *gate);
  }
  const DataType type = context.ElementType(context.HasInput(kPastState) ? kPastState : kQuery);
  TENON_RETURN_IF_ERROR(context.SetOutput(kPresentState, WithWindow(attrs.window, state), type));
  return context.SetOutput(kY,
                           {q[0], q[1], Dim(std::max(attrs.q_heads, attrs.kv_heads)) * value_size});
}

class LinearRun {
 public:
  LinearRun(const LinearAttrs& attrs, KernelContext& context) : attrs_(attrs), context_(context) {
    const Shape& k = context.Input(kKey).shape();
    const auto heads = static_cast<size_t>(attrs.kv_heads);
    batch_ = static_cast<size_t>(k[0]);
    length_ = static_cast<size_t>(k[1]);
    key_size_ = static_cast<size_t>(k[2]) / heads;
    value_size_ = static_cast<size_t>(context.Input(kValue).shape()[2]) / heads;
    scale_ = attrs.scale != 0 ? attrs.scale : 1 / std::sqrt(static_cast<float>(key_size_));
  }

  Status Run() {
    const auto heads = static_cast<size_t>(attrs_.kv_heads);
    const size_t state = key_size_ * value_size_;
    return context_.ForEachTask(batch_ * heads, (state + value_size_) * sizeof(float),
                                [&](size_t task, std::byte* scratch) {
                                  RunHead(task / heads, task % heads,
                                          reinterpret_cast<float*>(scratch));
                                });
  }

 private:
  void RunHead(size_t b, size_t h, float* state) {
    const auto heads = static_cast<size_t>(attrs_.kv_heads);
    const size_t elements = key_size_ * value_size_;
    float* change = state + elements;
    const size_t at = (b * heads + h) * elements, block = batch_ * heads * elements;
    const auto window = static_cast<size_t>(std::max<int64_t>(attrs_.window, 1));
    if (context_.HasInput(kPastState)) {
      const float* past = context_.Input(kPastState).data<float>() + (window - 1) * block + at;
      std::copy_n(past, elements, state);
    } else {
      std::fill_n(state, elements, 0.0f);
    }
    float* present = context_.HasOutput(kPresentState)
                         ? context_.Output(kPresentState).data<float>() + at
                         : nullptr;
    for (size_t slot = 0; present && slot + length_ < window; ++slot) {
      std::fill_n(present + slot * block, elements, 0.0f);
    }
    for (size_t t = 0; t < length_; ++t) {
      Update(b, h, t, state, change);
      Emit(b, h, t, state);
      const size_t behind = length_ - 1 - t;
      if (present && behind < window) {
        std::copy_n(state, elements, present + (window - 1 - behind) * block);
      }
    }
    if (present && length_ == 0) std::copy_n(state, elements, present + (window - 1) * block);
  }

  void Decay(size_t b, size_t h, size_t t, float* state) const {
    if (!attrs_.has_decay()) return;
    const Tensor& decay = context_.Input(kDecay);
    const auto width = static_cast<size_t>(decay.shape()[2]);
    const float* row = decay.data<float>() + (b * length_ + t) * width;
    const bool is_per_head = width == static_cast<size_t>(attrs_.kv_heads) && key_size_ != 1;
    for (size_t i = 0; i < key_size_; ++i) {
      const float factor = std::exp(is_per_head ? row[h] : row[h * key_size_ + i]);
      for (size_t j = 0; j < value_size_; ++j) state[i * value_size_ + j] *= factor;
    }
  }

  // The state takes in token t.
  void Update(size_t b, size_t h, size_t t, float* state, float* change) const {
    const auto heads = static_cast<size_t>(attrs_.kv_heads);
    const size_t row = (b * length_ + t) * heads + h;
    const float* key = context_.Input(kKey).data<float>() + row * key_size_;
    const float* value = context_.Input(kValue).data<float>() + row * value_size_;
    Decay(b, h, t, state);
    std::copy_n(value, value_size_, change);
    if (attrs_.has_delta()) {
      const Tensor& beta = context_.Input(kBeta);
      const bool is_shared = beta.shape()[2] == 1;
      const float rate = beta.data<float>()[is_shared ? b * length_ + t : row];
      for (size_t i = 0; i < key_size_; ++i) {
        for (size_t j = 0; j < value_size_; ++j) change[j] -= state[i * value_size_ + j] * key[i];
      }
      for (size_t j = 0; j < value_size_; ++j) change[j] *= rate;
    }
    for (size_t i = 0; i < key_size_; ++i) {
      for (size_t j = 0; j < value_size_; ++j) state[i * value_size_ + j] += key[i] * change[j];
    }
  }

  // What the queries of this key head read of the state.
  void Emit(size_t b, size_t h, size_t t, const float* state) {
    const auto heads = static_cast<size_t>(attrs_.kv_heads);
    const auto q_heads = static_cast<size_t>(attrs_.q_heads);
    const size_t outputs = std::max(heads, q_heads), group = outputs / heads;
    for (size_t g = 0; g < group; ++g) {
      const size_t out = h * group + g;
      const size_t q_head = out / (outputs / q_heads);
      const float* query =
          context_.Input(kQuery).data<float>() + ((b * length_ + t) * q_heads + q_head) * key_size_;
      float* into =
          context_.Output(kY).data<float>() + ((b * length_ + t) * outputs + out) * value_size_;
      std::fill_n(into, value_size_, 0.0f);
      for (size_t i = 0; i < key_size_; ++i) {
        const float factor = scale_ * query[i];
        for (size_t j = 0; j < value_size_; ++j) into[j] += factor * state[i * value_size_ + j];
      }
    }
  }

  const LinearAttrs& attrs_;
  KernelContext& context_;
  size_t batch_, length_, key_size_, value_size_;
  float scale_;
};

Status RunLinear(const LinearAttrs& attrs, KernelContext& context) {
  return LinearRun(attrs, context).Run();
}

// --- CausalConvWithState-1, on [batch, channels, length] or with the channels last ---

enum ConvInput : size_t { kX, kFilter, kConvBias, kConvPast };

struct CausalAttrs {
  std::string activation = "none";
  bool channels_last = false;
  int64_t dilation = 1, ndim = 1, window = 0;
  static constexpr auto Fields() {
    using A = CausalAttrs;
    return std::tuple(Field("activation", &A::activation),
                      Field("channels_last", &A::channels_last), Field("dilation", &A::dilation),
                      Field("ndim", &A::ndim), Field("state_window", &A::window));
  }
};

Status InferCausal(const CausalAttrs& attrs, ShapeContext& context) {
  if (attrs.ndim != 1) return NotImplemented("attribute 'ndim': expected 1, got {}", attrs.ndim);
  if (attrs.activation != "none" && attrs.activation != "silu" && attrs.activation != "swish") {
    return InvalidArgument("expected activation 'silu', 'swish' or 'none', got '{}'",
                           attrs.activation);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(kX));
  if (x.rank() < 3 || (x.rank() > 3 && !attrs.channels_last)) {
    return InvalidArgument("input 0: expected rank 3{}, got {}",
                           attrs.channels_last ? " or more" : "", x);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape filter, context.InputOfRank(kFilter, 3));
  const Dim channels = attrs.channels_last ? x.Product(2, x.rank()) : x[1];
  if (attrs.dilation < 1) return InvalidArgument("expected dilation >= 1, got {}", attrs.dilation);
  const bool has_taps = !filter[2].is_number() || filter[2].value() >= 1;
  if (!MayEqual(filter[0], channels) || !MayEqual(filter[1], Dim(1)) || !has_taps) {
    return InvalidArgument("input 1: expected [{}, 1, taps], got {}", channels, filter);
  }
  if (context.HasInput(kConvBias)) {
    const Result<SymbolicShape> bias = context.InputOfRank(kConvBias, 1);
    if (!bias && !IsUnknownShape(bias.error())) return bias.error();
    if (bias && !MayEqual((*bias)[0], channels)) {
      return InvalidArgument("input 2: expected [{}], got {}", channels, *bias);
    }
  }
  Dim rows = Dim::Unknown();
  if (filter[2].is_number()) {
    const auto count = CheckedMul(filter[2].value() - 1, attrs.dilation);
    if (!count) return InvalidArgument("dilation {} is too large for {}", attrs.dilation, filter);
    rows = Dim(*count);
  }
  SymbolicShape state = x;
  state[attrs.channels_last ? 1 : 2] = rows;
  TENON_RETURN_IF_ERROR(CheckState(context, kConvPast, attrs.window, state));
  TENON_RETURN_IF_ERROR(context.SetOutput(1, WithWindow(attrs.window, state)));
  return context.SetOutput(0, x);
}

// Where the elements of channel `row` of all batches' are in a tensor of `n` elements for each.
struct ChannelLine {
  size_t first, step;
  ChannelLine(bool is_last, size_t channels, size_t row, size_t n)
      : first(is_last ? row / channels * channels * n + row % channels : row * n),
        step(is_last ? channels : 1) {}

  [[gnu::noinline]] void Load(const float* from, size_t n, float* line) const {
    for (size_t i = 0; i < n; ++i) line[i] = from[first + i * step];
  }
  [[gnu::noinline]] void Store(const float* line, size_t n, float* into) const {
    for (size_t i = 0; i < n; ++i) into[first + i * step] = line[i];
  }
};

Status RunCausal(const CausalAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(kX);
  const auto channels =
      static_cast<size_t>(attrs.channels_last ? x.shape().Product(2, x.rank()) : x.shape()[1]);
  const auto length = static_cast<size_t>(x.shape()[attrs.channels_last ? 1 : 2]);
  const auto taps = static_cast<size_t>(context.Input(kFilter).shape()[2]);
  const auto dilation = static_cast<size_t>(attrs.dilation);
  const size_t past = (taps - 1) * dilation;
  const size_t rows = static_cast<size_t>(x.shape()[0]) * channels;
  const auto window = static_cast<size_t>(std::max<int64_t>(attrs.window, 1));
  return context.ForEachTask(
      rows, (past + length) * sizeof(float), [&](size_t row, std::byte* scratch) {
        const ChannelLine elements(attrs.channels_last, channels, row, length);
        const ChannelLine states(attrs.channels_last, channels, row, past);
        // The past, then the new elements.
        auto* line = reinterpret_cast<float*>(scratch);
        if (context.HasInput(kConvPast)) {
          const float* state = context.Input(kConvPast).data<float>();
          states.Load(state + (window - 1) * rows * past, past, line);
        } else {
          std::fill_n(line, past, 0.0f);
        }
        elements.Load(x.data<float>(), length, line + past);
        const size_t c = row % channels;
        const float* filter = context.Input(kFilter).data<float>() + c * taps;
        const float bias =
            context.HasInput(kConvBias) ? context.Input(kConvBias).data<float>()[c] : 0;
        float* y = context.Output(0).data<float>() + elements.first;
        for (size_t t = 0; t < length; ++t) {
          float sum = bias;
          for (size_t j = 0; j < taps; ++j) sum += filter[j] * line[t + j * dilation];
          y[t * elements.step] = attrs.activation == "none" ? sum : sum / (1 + std::exp(-sum));
        }
        if (!context.HasOutput(1)) return;
        float* present = context.Output(1).data<float>();
        const std::vector<float> none(window > 1 ? past : 0);
        for (size_t slot = 0; slot < window; ++slot) {
          // The state behind element length - window + slot, if this run has it.
          const size_t behind = window - 1 - slot;
          float* into = present + slot * rows * past;
          const bool has_state = behind < length || behind == 0;
          states.Store(has_state ? line + length - behind : none.data(), past, into);
        }
      });
}

constexpr OpRow kRows[] = {
    Op<InferLinear, RunLinear>("LinearAttention", {.domain = kMicrosoft, .types = kFloat32Only}),
    Op<InferCausal, RunCausal>("CausalConvWithState",
                               {.domain = kMicrosoft, .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(LinearAttention, kRows);

}  // namespace tenon
