// MaxPoolGrad and AveragePoolGrad, which ONNX Runtime has in the standard's domain. The inputs do
// not tell the size of dX: the model declares it. Its batch size is that of dY.
#include <algorithm>
#include <array>
#include <atomic>

#include "ops/conv/pool.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/stateful_kernel.h"

namespace tenon {
namespace {

// Static inference leaves the declared shape as it is.
template <class Attrs>
Status KeepDeclaredShape(const Attrs&, ShapeContext&) {
  return UnknownShape();
}

template <class Attrs>
class PoolGradient : public StatefulKernel<KeepDeclaredShape<Attrs>> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(this->Bind(info));
    const ValueType& type = info.OutputType(0);
    if (!type.shape || type.shape->rank() < 3) {
      return InvalidArgument("output 0: expected a declared shape [N, C, spatial...]");
    }
    for (size_t i = 1; i < type.shape->rank(); ++i) {
      if ((*type.shape)[i].is_number()) continue;
      return InvalidArgument("output 0: expected declared sizes, got {}", *type.shape);
    }
    declared_ = *type.shape;
    return OkStatus();
  }

 protected:
  // The shape of dX for this dY.
  Result<SymbolicShape> ShapeFor(const SymbolicShape& dy) const {
    if (dy.rank() != declared_.rank() || !MayEqual(dy[1], declared_[1]) ||
        !MayEqual(dy[0], declared_[0])) {
      return InvalidArgument("input 0: expected batch and channels of output 0 {}, got {}",
                             declared_, dy);
    }
    SymbolicShape dx = declared_;
    dx[0] = dy[0];
    return dx;
  }

 private:
  SymbolicShape declared_;
};

// MaxPoolGrad-9: adds dY to dX at the positions in all of dX that MaxPool gave.
class MaxPoolGradient final : public PoolGradient<NoAttrs> {
 public:
  Status InferShapes(ShapeContext& context) const override {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape dy, context.Input(0));
    TENON_ASSIGN_OR_RETURN(SymbolicShape dx, ShapeFor(dy));
    TENON_RETURN_IF_ERROR(CheckInputShape(context, 1, dy));
    return context.SetOutput(0, std::move(dx));
  }

  Status Run(KernelContext& context) const override {
    const Tensor& dy = context.Input(0);
    const int64_t* indices = context.Input(1).data<int64_t>();
    Tensor& dx = context.Output(0);
    float* to = dx.data<float>();
    const int64_t size = dx.size();
    for (int64_t i = 0; i < dy.size(); ++i) {
      if (indices[i] >= 0 && indices[i] < size) continue;
      return InvalidArgument("input 1: expected indices in [0, {}), got {}", size, indices[i]);
    }
    if (size == 0) return OkStatus();
    const auto planes = static_cast<size_t>(dx.shape()[0] * dx.shape()[1]);
    const size_t in = static_cast<size_t>(size) / planes;
    const size_t out = static_cast<size_t>(dy.size()) / planes;
    // Those of a plane lie in that plane, unless the indices come from elsewhere.
    std::atomic<bool> stay_inside = true;
    const float* from = dy.data<float>();
    context.threads().ParallelFor(planes, 1 + 8192 / in, [&](size_t begin, size_t end) {
      std::fill(to + begin * in, to + end * in, 0.0f);
      for (size_t i = begin * out; i < end * out; ++i) {
        const auto at = static_cast<size_t>(indices[i]);
        if (at / in == i / out) {
          to[at] += from[i];
        } else {
          stay_inside = false;
        }
      }
    });
    if (stay_inside) return OkStatus();
    std::fill_n(to, size, 0.0f);
    for (int64_t i = 0; i < dy.size(); ++i) to[indices[i]] += from[i];
    return OkStatus();
  }
};

// AveragePoolGrad-9: adds to the elements of each window their shares of dY.
struct AverageAttrs : WindowAttrs {
  bool count_include_pad = false;
  static constexpr auto Fields() {
    return std::tuple_cat(WindowAttrs::Fields(),
                          std::tuple(Field("count_include_pad", &AverageAttrs::count_include_pad)));
  }
};

// Along one axis: the window of an output element, cut off at the ends of the input.
struct Axis {
  int64_t in = 1, out = 1;
  WindowDim window = kOneElement;
  int64_t first(int64_t step) const {
    return std::max<int64_t>(0, step * window.stride - window.pad_begin);
  }
  int64_t last(int64_t step) const {
    return std::min(in, step * window.stride - window.pad_begin + window.kernel);
  }
};
using Axes = std::array<Axis, kMaxWindowRank>;

void AddShares(const Axes& axes, bool counts_pads, const float* dy, float* dx) {
  const auto& [depth, height, width] = axes;
  const int64_t taps = depth.window.kernel * height.window.kernel * width.window.kernel;
  for (int64_t z = 0; z < depth.out; ++z) {
    for (int64_t y = 0; y < height.out; ++y) {
      for (int64_t x = 0; x < width.out; ++x, ++dy) {
        const int64_t left = width.first(x), right = width.last(x);
        const int64_t inside =
            (depth.last(z) - depth.first(z)) * (height.last(y) - height.first(y)) * (right - left);
        const float share = *dy / static_cast<float>(counts_pads ? taps : inside);
        for (int64_t d = depth.first(z); d < depth.last(z); ++d) {
          for (int64_t h = height.first(y); h < height.last(y); ++h) {
            float* const row = dx + (d * height.in + h) * width.in;
            for (int64_t w = left; w < right; ++w) row[w] += share;
          }
        }
      }
    }
  }
}

class AveragePoolGradient final : public PoolGradient<AverageAttrs> {
 public:
  Status InferShapes(ShapeContext& context) const override {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape dy, context.Input(0));
    TENON_ASSIGN_OR_RETURN(SymbolicShape dx, ShapeFor(dy));
    TENON_ASSIGN_OR_RETURN(const SymbolicShape expected, PoolOutput(attrs_, false, dx));
    TENON_RETURN_IF_ERROR(CheckInputShape(context, 0, expected));
    return context.SetOutput(0, std::move(dx));
  }

  Status Run(KernelContext& context) const override {
    const Shape& y = context.Input(0).shape();
    const Shape& x = context.Output(0).shape();
    TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs_, attrs_.kernel_shape));
    Axes axes;
    for (size_t i = 0; i < window.rank; ++i) {
      axes[kMaxWindowRank - window.rank + i] = {x[i + 2], y[i + 2], PaddedDim(window, i, x[i + 2])};
    }
    const auto in = static_cast<size_t>(x.Product(2, x.rank()));
    const auto out = static_cast<size_t>(y.Product(2, y.rank()));
    const float* dy = context.Input(0).data<float>();
    float* dx = context.Output(0).data<float>();
    const auto planes = static_cast<size_t>(x[0] * x[1]);
    context.threads().ParallelFor(planes, 1 + 4096 / (in + 1), [&](size_t begin, size_t end) {
      std::fill(dx + begin * in, dx + end * in, 0.0f);
      for (size_t plane = begin; plane < end; ++plane) {
        AddShares(axes, attrs_.count_include_pad, dy + plane * out, dx + plane * in);
      }
    });
    return OkStatus();
  }
};

constexpr OpRow kRows[] = {
    OpClass<MaxPoolGradient>("MaxPoolGrad", {.since = 9, .types = kFloat32Only}),
    OpClass<AveragePoolGradient>("AveragePoolGrad", {.since = 9, .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(PoolGradient, kRows);

}  // namespace tenon
