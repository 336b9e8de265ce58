#include "ops/linear/float_gemm.h"

#include "base/arithmetic.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_bf16.h"
#include "ops/framework/widen_narrow.h"
#include "ops/linear/bf16_product.h"

namespace tenon {
namespace {

using kernels::GemmArgs;
using kernels::GemmSizes;

constexpr auto kParts = kernels::Bf16Parts::kOne;

size_t ThreadsOf(const KernelContext& context) {
  return static_cast<size_t>(context.threads().threads());
}

}  // namespace

FloatGemm::FloatGemm(const KernelInfo& info) {
  const bool may_round = info.weights().precision == MatmulPrecision::kMedium ||
                         info.node().GetInt(kFromBfloat16, 0) != 0;
  rounds_ = may_round && kernels::IsBf16GemmFast(kParts);
}

size_t FloatGemm::PackedFloats(size_t n, size_t k) const {
  const size_t bytes =
      rounds_ ? kernels::PackedBf16GemmBSize(n, k, kParts) : kernels::PackedGemmBSize(n, k);
  return bytes / sizeof(float);
}

void FloatGemm::Pack(const kernels::GemmMatrix& b, size_t n, size_t k, float* packed) const {
  if (!rounds_) return kernels::PackGemmB(b, n, k, packed);
  for (size_t task = 0; task < kernels::PackBf16GemmBTaskCount(n); ++task) {
    kernels::RunPackBf16GemmBTask(b, n, k, kParts, task, packed);
  }
}

size_t FloatGemm::TaskBytes(const KernelContext& context, const GemmSizes& sizes,
                            bool is_packed) const {
  if (rounds_) {
    const size_t packed = is_packed ? 0 : kernels::PackedBf16GemmBSize(sizes.n, sizes.k, kParts);
    return kernels::Bf16GemmRowsSize(sizes, kParts) + packed;
  }
  const size_t tasks = kernels::GemmTaskCount(sizes, is_packed, ThreadsOf(context));
  return RoundUp<size_t>(
      context.TaskScratchBytes(tasks, kernels::GemmScratchSize(sizes, is_packed)), 64);
}

void FloatGemm::Run(KernelContext& context, GemmArgs args, std::byte* memory,
                    bool is_backward) const {
  const GemmSizes& sizes = args.sizes;
  const bool is_packed = args.packed_b != nullptr;
  args.threads = ThreadsOf(context);
  args.is_backward = is_backward;
  const auto for_each = [&](size_t tasks, size_t scratch_bytes, auto&& run) {
    context.ForEachTaskIn(memory, tasks, scratch_bytes, [&](size_t i, std::byte* scratch) {
      run(is_backward ? tasks - 1 - i : i, scratch);
    });
  };
  if (!rounds_) {
    return for_each(kernels::GemmTaskCount(sizes, is_packed, args.threads),
                    kernels::GemmScratchSize(sizes, is_packed),
                    [&](size_t task, std::byte* scratch) {
                      kernels::RunGemmTask(args, task, reinterpret_cast<float*>(scratch));
                    });
  }
  const void* packed = args.packed_b;
  if (!is_packed) {
    std::byte* const own = memory + kernels::Bf16GemmRowsSize(sizes, kParts);
    PackBf16B(context.threads(), args.b, sizes.n, sizes.k, kParts, own);
    packed = own;
  }
  for_each(kernels::Bf16GemmRowsTaskCount(sizes), 0, [&](size_t task, std::byte*) {
    kernels::RunBf16GemmRowsTask(args.a, sizes, kParts, task, memory);
  });
  for_each(kernels::Bf16GemmTaskCount(sizes), 0, [&](size_t task, std::byte*) {
    kernels::RunBf16GemmTask(args, kParts, memory, packed, task);
  });
}

}  // namespace tenon
