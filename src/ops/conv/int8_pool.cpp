#include "ops/conv/int8_pool.h"

#include <algorithm>

#include "base/arithmetic.h"
#include "kernels/elementwise/quantize.h"

namespace tenon {
namespace {

using kernels::QuantizedType;

QuantizedType TypeOf(const Int8Quantization& q) {
  return q.is_signed ? QuantizedType::kInt8 : QuantizedType::kUint8;
}

}  // namespace

Status PoolBytes(const kernels::PoolPlanarArgs& args, const Int8Quantization& of_x,
                 const Int8Quantization& of_y, KernelContext& context) {
  constexpr size_t kElements = 8192;  // of a task: as floats they stay in the cache
  size_t in = 1, out = 1;
  for (const kernels::PoolDim& dim : args.dims) {
    in *= dim.in;
    out *= dim.out;
  }
  const size_t group = std::max<size_t>(1, kElements / std::max<size_t>(1, in));
  const auto* x = static_cast<const uint8_t*>(context.Input(0).raw());
  auto* y = static_cast<uint8_t*>(context.Output(0).raw());
  const kernels::QuantizationRun from = {&of_x.scale, &of_x.zero_point, false};
  const kernels::QuantizationRun to = {&of_y.scale, &of_y.zero_point, false};
  return context.ForEachTask(
      CeilDiv(args.planes, group), RoundUp<size_t>(group * (in + out) * sizeof(float), 64),
      [&](size_t task, std::byte* scratch) {
        const size_t first = task * group;
        kernels::PoolPlanarArgs some = args;
        some.planes = std::min(group, args.planes - first);
        auto* values = reinterpret_cast<float*>(scratch);
        some.in = values;
        some.out = values + group * in;
        kernels::Dequantize(x + first * in, some.planes * in, from, TypeOf(of_x), values);
        for (size_t i = 0; i < kernels::PoolPlanarTaskCount(some); ++i) {
          kernels::RunPoolPlanarTask(some, i);
        }
        kernels::Quantize(some.out, some.planes * out, to, TypeOf(of_y), y + first * out);
      });
}

}  // namespace tenon
