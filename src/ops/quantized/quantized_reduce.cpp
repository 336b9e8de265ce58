// Reductions of int8 and uint8 of com.microsoft: QLinearReduceMean, ReduceSumInteger.
#include <vector>

#include "ops/framework/op_row.h"
#include "ops/framework/quantized_int8.h"
#include "ops/linear/int8_product.h"

namespace tenon {
namespace {

struct ReduceAttrs {
  bool keepdims = true;
  std::vector<int64_t> axes;
  static constexpr auto Fields() {
    return std::tuple(Field("keepdims", &ReduceAttrs::keepdims), Field("axes", &ReduceAttrs::axes));
  }
};

// No axes means all of them.
Result<PooledVector<bool>> ReducedAxes(const ReduceAttrs& attrs, size_t rank) {
  PooledVector<bool> reduced(rank, attrs.axes.empty());
  for (const int64_t axis : attrs.axes) {
    TENON_ASSIGN_OR_RETURN(const size_t normalized, NormalizeAxis(axis, rank));
    if (reduced[normalized]) return InvalidArgument("axis {} is given twice", axis);
    reduced[normalized] = true;
  }
  return reduced;
}

Result<SymbolicShape> ReducedShape(const ReduceAttrs& attrs, const ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const PooledVector<bool> reduced, ReducedAxes(attrs, x.rank()));
  SymbolicShape y;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (!reduced[i]) {
      y.Append(x[i]);
    } else if (attrs.keepdims) {
      y.Append(Dim(1));
    }
  }
  return y;
}

Status InferMean(const ReduceAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckOneElementEach(context, {1, 2, 3, 4}));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, ReducedShape(attrs, context));
  return context.SetOutput(0, std::move(y));
}

Status InferSum(const ReduceAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, ReducedShape(attrs, context));
  const bool is_signed = context.ElementType(0) == DataType::kInt8;
  return context.SetOutput(0, std::move(y), is_signed ? DataType::kInt32 : DataType::kUint32);
}

// Some axes of a tensor, treated as one.
class AxisGroup {
 public:
  AxisGroup(const Shape& x, const PooledVector<bool>& reduced, bool wanted) {
    size_t stride = 1;
    for (size_t axis = x.rank(); axis-- > 0;) {
      const auto size = static_cast<size_t>(x[axis]);
      if (reduced[axis] == wanted) {
        axes_.push_back({size, stride});
        count_ *= size;
      }
      stride *= size;
    }
  }

  size_t count() const { return count_; }
  // The offset of the group's element `index`.
  size_t OffsetOf(size_t index) const {
    size_t offset = 0;
    for (const Axis& axis : axes_) {
      offset += index % axis.size * axis.stride;
      index /= axis.size;
    }
    return offset;
  }
  // The number of elements with a distance of `step` that follow each other before a larger jump.
  size_t run() const { return axes_.empty() ? 1 : axes_.front().size; }
  size_t step() const { return axes_.empty() ? 1 : axes_.front().stride; }

 private:
  struct Axis {
    size_t size, stride;
  };
  PooledVector<Axis> axes_;  // the last first
  size_t count_ = 1;
};

// Calls store(i, sum) for each element of the output.
template <class T, class Store>
Status SumEach(const ReduceAttrs& attrs, KernelContext& context, Store&& store) {
  const Tensor& x = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const PooledVector<bool> reduced, ReducedAxes(attrs, x.rank()));
  const AxisGroup kept(x.shape(), reduced, false), summed(x.shape(), reduced, true);
  constexpr size_t kTaskElements = 65536;
  const size_t grain = kTaskElements / (summed.count() + 1) + 1;
  context.threads().ParallelFor(kept.count(), grain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const T* first = static_cast<const T*>(x.raw()) + kept.OffsetOf(i);
      int64_t sum = 0;
      for (size_t done = 0; done < summed.count(); done += summed.run()) {
        const T* from = first + summed.OffsetOf(done);
        for (size_t k = 0; k < summed.run(); ++k) sum += from[k * summed.step()];
      }
      store(i, sum, summed.count());
    }
  });
  return OkStatus();
}

template <class Store>
Status SumBytes(const ReduceAttrs& attrs, KernelContext& context, Store&& store) {
  return context.Input(0).type() == DataType::kInt8 ? SumEach<int8_t>(attrs, context, store)
                                                    : SumEach<uint8_t>(attrs, context, store);
}

// QLinearReduceMean-1. The mean of nothing is NaN, which becomes the least element.
Status RunMean(const ReduceAttrs& attrs, KernelContext& context) {
  Tensor& y = context.Output(0);
  const Int8Quantization of_x = QuantizationIn(context, 1, 2, context.Input(0).type());
  const Int8Quantization of_y = QuantizationIn(context, 3, 4, y.type());
  auto* into = static_cast<uint8_t*>(y.raw());
  return SumBytes(attrs, context, [&](size_t i, int64_t sum, size_t count) {
    const int64_t shift = static_cast<int64_t>(count) * of_x.zero_point;
    const double mean = static_cast<double>(sum - shift) / static_cast<double>(count);
    into[i] = of_y.ByteOf(static_cast<float>(mean) * of_x.scale);
  });
}

// ReduceSumInteger-1, modulo 2^32.
Status RunSum(const ReduceAttrs& attrs, KernelContext& context) {
  auto* into = static_cast<uint32_t*>(context.Output(0).raw());
  return SumBytes(attrs, context,
                  [&](size_t i, int64_t sum, size_t) { into[i] = static_cast<uint32_t>(sum); });
}

constexpr OpOptions kBytes = {.domain = "com.microsoft", .types = kByteTypes};

constexpr OpRow kRows[] = {
    Op<InferMean, RunMean>("QLinearReduceMean", kBytes),
    Op<InferSum, RunSum>("ReduceSumInteger", kBytes),
};

}  // namespace

TENON_OP_FAMILY(QuantizedReduce, kRows);

}  // namespace tenon
