// LinearAttention and CausalConvWithState of com.microsoft: recurrences whose state passes from run
// to run.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/arithmetic.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

constexpr int64_t kMostWindow = 8;

// A state, after an axis of the last `window` states if that is above 0.
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
  Dims dims = state.dims();
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

[[gnu::cold]] Status InferLinear(const LinearAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckLinear(attrs, context));
  TENON_RETURN_IF_ERROR(CheckDoubles(context, kQuery, kPastState));
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

  // The outputs at token t of the queries that share this key head.
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

// --- CausalConvWithState-1, on [batch, channels, ..., length] or with the channels last ---
//
// Axes before the last one keep their size: the kernel is centred on them, with zeros around. One
// of even length uses one more element after the centre than before it, as with SAME_UPPER of Conv.

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

[[gnu::cold]] Status InferCausal(const CausalAttrs& attrs, ShapeContext& context) {
  if (attrs.ndim < 1 || attrs.ndim > 3 || (attrs.channels_last && attrs.ndim != 1)) {
    return InvalidArgument("expected ndim in [1, 3], and 1 for channels_last, got {}", attrs.ndim);
  }
  if (attrs.activation != "none" && attrs.activation != "silu" && attrs.activation != "swish") {
    return InvalidArgument("expected activation 'silu', 'swish' or 'none', got '{}'",
                           attrs.activation);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(kX));
  const auto rank = static_cast<size_t>(attrs.ndim + 2);
  if (x.rank() < rank || (x.rank() > rank && !attrs.channels_last)) {
    return InvalidArgument("input 0: expected rank {}{}, got {}", rank,
                           attrs.channels_last ? " or more" : "", x);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape filter, context.InputOfRank(kFilter, rank));
  const Dim channels = attrs.channels_last ? x.Product(2, x.rank()) : x[1];
  if (attrs.dilation < 1) return InvalidArgument("expected dilation >= 1, got {}", attrs.dilation);
  bool fits = MayEqual(filter[0], channels) && MayEqual(filter[1], Dim(1));
  for (size_t i = 2; i < rank; ++i)
    fits = fits && (!filter[i].is_number() || filter[i].value() > 0);
  if (!fits) return InvalidArgument("input 1: expected [{}, 1, taps...], got {}", channels, filter);
  if (context.HasInput(kConvBias)) {
    const Result<SymbolicShape> bias = context.InputOfRank(kConvBias, 1);
    if (!bias && !IsUnknownShape(bias.error())) return bias.error();
    if (bias && !MayEqual((*bias)[0], channels)) {
      return InvalidArgument("input 2: expected [{}], got {}", channels, *bias);
    }
  }
  Dim rows = Dim::Unknown();
  if (const Dim& taps = filter[rank - 1]; taps.is_number()) {
    const auto count = CheckedMul(taps.value() - 1, attrs.dilation);
    if (!count) return InvalidArgument("dilation {} is too large for {}", attrs.dilation, filter);
    rows = Dim(*count);
  }
  SymbolicShape state = x;
  state[attrs.channels_last ? 1 : rank - 1] = rows;
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

// An axis before the last one.
struct GridAxis {
  size_t size = 1, taps = 1;
  // Whether a tap at `at` sees an element, and which.
  bool Sees(size_t at, size_t tap, size_t* seen) const {
    *seen = at + tap - (taps - 1) / 2;  // wraps around below 0
    return *seen < size;
  }
};

class CausalRun {
 public:
  CausalRun(const CausalAttrs& attrs, KernelContext& context)
      : context_(context),
        channels_last_(attrs.channels_last),
        has_activation_(attrs.activation != "none"),
        window_(static_cast<size_t>(std::max<int64_t>(attrs.window, 1))),
        dilation_(static_cast<size_t>(attrs.dilation)) {
    const Shape& x = context.Input(kX).shape();
    const Shape& filter = context.Input(kFilter).shape();
    const auto dim = [](const Shape& shape, size_t i) { return static_cast<size_t>(shape[i]); };
    channels_ = static_cast<size_t>(channels_last_ ? x.Product(2, x.rank()) : x[1]);
    length_ = dim(x, channels_last_ ? 1 : x.rank() - 1);
    if (attrs.ndim > 1) grid_[1] = {dim(x, x.rank() - 2), dim(filter, x.rank() - 2)};
    if (attrs.ndim > 2) grid_[0] = {dim(x, 2), dim(filter, 2)};
    lines_ = grid_[0].size * grid_[1].size;
    taps_ = dim(filter, filter.rank() - 1);
    past_ = (taps_ - 1) * dilation_;
    rows_ = dim(x, 0) * channels_;
  }

  Status Run() {
    const auto floats = CheckedMul(lines_ + 1, past_ + length_);
    const auto bytes = floats ? CheckedMul(*floats, sizeof(float)) : std::nullopt;
    return context_.ForEachTask(rows_, bytes.value_or(SIZE_MAX / 4),
                                [&](size_t row, std::byte* scratch) {
                                  auto* lines = reinterpret_cast<float*>(scratch);
                                  for (size_t i = 0; i < lines_; ++i)
                                    Load(row, i, LineOf(lines, i));
                                  for (size_t i = 0; i < lines_; ++i) Convolve(row, i, lines);
                                  if (!context_.HasOutput(1)) return;
                                  for (size_t i = 0; i < lines_; ++i)
                                    Keep(row, i, LineOf(lines, i));
                                });
  }

 private:
  float* LineOf(float* lines, size_t i) const { return lines + i * (past_ + length_); }
  ChannelLine Elements(size_t row, size_t line) const {
    return {channels_last_, channels_, row * lines_ + line, length_};
  }
  ChannelLine States(size_t row, size_t line) const {
    return {channels_last_, channels_, row * lines_ + line, past_};
  }
  size_t state_size() const { return rows_ * lines_ * past_; }

  // The past, then the new elements.
  void Load(size_t row, size_t i, float* line) const {
    if (context_.HasInput(kConvPast)) {
      const float* state = context_.Input(kConvPast).data<float>() + (window_ - 1) * state_size();
      States(row, i).Load(state, past_, line);
    } else {
      std::fill_n(line, past_, 0.0f);
    }
    Elements(row, i).Load(context_.Input(kX).data<float>(), length_, line + past_);
  }

  void Convolve(size_t row, size_t i, float* lines) {
    const size_t c = row % channels_;
    const float* filter =
        context_.Input(kFilter).data<float>() + c * grid_[0].taps * grid_[1].taps * taps_;
    const float bias =
        context_.HasInput(kConvBias) ? context_.Input(kConvBias).data<float>()[c] : 0;
    const ChannelLine elements = Elements(row, i);
    float* y = context_.Output(0).data<float>();
    // Elements that are apart are summed side by side.
    float* sums = elements.step == 1 ? y + elements.first : LineOf(lines, lines_);
    std::fill_n(sums, length_, bias);
    for (size_t a = 0; a < grid_[0].taps; ++a) {
      for (size_t b = 0; b < grid_[1].taps; ++b, filter += taps_) {
        size_t z = 0, r = 0;
        const bool is_inside =
            grid_[0].Sees(i / grid_[1].size, a, &z) && grid_[1].Sees(i % grid_[1].size, b, &r);
        if (!is_inside) continue;
        const float* line = LineOf(lines, z * grid_[1].size + r);
        for (size_t t = 0; t < length_; ++t) {
          float sum = sums[t];
          for (size_t j = 0; j < taps_; ++j) sum += filter[j] * line[t + j * dilation_];
          sums[t] = sum;
        }
      }
    }
    for (size_t t = 0; has_activation_ && t < length_; ++t) sums[t] /= 1 + std::exp(-sums[t]);
    if (elements.step != 1) elements.Store(sums, length_, y);
  }

  void Keep(size_t row, size_t i, const float* line) {
    const ChannelLine states = States(row, i);
    const std::vector<float> none(window_ > 1 ? past_ : 0);
    for (size_t slot = 0; slot < window_; ++slot) {
      // The state after element length - window + slot, if this run has it.
      const size_t behind = window_ - 1 - slot;
      const bool has_state = behind < length_ || behind == 0;
      states.Store(has_state ? line + length_ - behind : none.data(), past_,
                   context_.Output(1).data<float>() + slot * state_size());
    }
  }

  KernelContext& context_;
  const bool channels_last_, has_activation_;
  const size_t window_, dilation_;
  std::array<GridAxis, 2> grid_;
  size_t channels_, length_, lines_, taps_, past_, rows_;
};

Status RunCausal(const CausalAttrs& attrs, KernelContext& context) {
  return CausalRun(attrs, context).Run();
}

constexpr OpRow kRows[] = {
    Op<InferLinear, RunLinear>("LinearAttention", {.domain = kMicrosoft, .types = kFloat32Only}),
    Op<InferCausal, RunCausal>("CausalConvWithState",
                               {.domain = kMicrosoft, .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(ContribLinearAttention, kRows);

}  // namespace tenon
