// GroupedMatMul of com.microsoft: products of consecutive groups of rows, as those of the tokens of
// each expert, and their gradients.
#include <algorithm>
#include <utility>

#include "kernels/gemm/gemm.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/indices.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

using kernels::GemmArgs;
using kernels::GemmMatrix;

enum Input : size_t { kA, kB, kEnds };

struct GroupedAttrs {
  bool transpose_b = false;
  static constexpr auto Fields() { return std::tuple(Field("transB", &GroupedAttrs::transpose_b)); }
};

Status InferGroupedMatMul(const GroupedAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.InputOfRank(kA, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(kB));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape ends, context.InputOfRank(kEnds, 1));
  if (b.rank() == 2 && !attrs.transpose_b) {
    TENON_RETURN_IF_ERROR(CheckInputShape(context, kB, {a[0], b[1]}));
    return context.SetOutput(0, {ends[0], a[1], b[1]});
  }
  if (b.rank() != 3) {
    return InvalidArgument("input 1: expected rank 3, or 2 without transB, got {}", b);
  }
  const Dim& n = attrs.transpose_b ? b[1] : b[2];
  const SymbolicShape expected =
      attrs.transpose_b ? SymbolicShape{ends[0], n, a[1]} : SymbolicShape{ends[0], a[1], n};
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kB, expected));
  return context.SetOutput(0, {a[0], n});
}

// The product of one group, and the number of its first task.
struct Group {
  GemmArgs args;
  size_t first_task;
};

class GroupedProducts {
 public:
  GroupedProducts(bool transpose_b, KernelContext& context)
      : transpose_b_(transpose_b),
        context_(context),
        a_(context.Input(kA)),
        b_(context.Input(kB)),
        y_(context.Output(0)),
        rows_(static_cast<size_t>(a_.shape()[0])) {}

  Status Run() {
    TENON_RETURN_IF_ERROR(MakeGroups());
    if (y_.rank() == 2) {
      const auto columns = static_cast<size_t>(y_.shape()[1]);
      std::fill(y_.data<float>() + end_ * columns, y_.data<float>() + rows_ * columns, 0.0f);
    }
    return context_.ForEachTask(tasks_, scratch_bytes_, [&](size_t task, std::byte* scratch) {
      const auto after =
          std::upper_bound(groups_.begin(), groups_.end(), task,
                           [](size_t t, const Group& group) { return t < group.first_task; });
      const Group& group = *(after - 1);
      kernels::RunGemmTask(group.args, task - group.first_task, reinterpret_cast<float*>(scratch));
    });
  }

 private:
  Status MakeGroups() {
    const Tensor& ends = context_.Input(kEnds);
    groups_.reserve(static_cast<size_t>(ends.size()));
    Status status = OkStatus();
    VisitIndices(ends, [&](const auto* end) {
      for (size_t i = 0; i < static_cast<size_t>(ends.size()); ++i) {
        const auto next = static_cast<int64_t>(end[i]);
        if (next < static_cast<int64_t>(end_) || next > static_cast<int64_t>(rows_)) {
          status = InvalidArgument("input 2: expected ascending ends in [0, {}], got {} after {}",
                                   rows_, next, end_);
          return;
        }
        AddGroup(i, static_cast<size_t>(next));
      }
    });
    return status;
  }

  void AddGroup(size_t i, size_t end) {
    const size_t begin = std::exchange(end_, end), rows = end - begin;
    const auto depth = static_cast<size_t>(a_.shape()[1]);
    const float* const a = a_.data<float>() + begin * depth;
    GemmArgs args;
    if (b_.rank() == 2) {
      const auto n = static_cast<size_t>(b_.shape()[1]);
      args.sizes = {depth, n, rows};
      args.a = kernels::Transposed(a, depth);
      args.b = kernels::RowMajor(b_.data<float>() + begin * n, n);
      args.c = y_.data<float>() + i * depth * n;
    } else {
      const auto n = static_cast<size_t>(y_.shape()[1]);
      const float* const b = b_.data<float>() + i * depth * n;
      args.sizes = {rows, n, depth};
      args.a = kernels::RowMajor(a, depth);
      args.b = transpose_b_ ? kernels::Transposed(b, depth) : kernels::RowMajor(b, n);
      args.c = y_.data<float>() + begin * n;
    }
    args.ldc = args.sizes.n;
    // Small groups are one task each, so that nothing is copied twice.
    const auto threads = static_cast<size_t>(context_.threads().threads());
    args.threads = std::clamp<size_t>(2 * threads * rows / std::max<size_t>(1, rows_), 1, threads);
    const size_t tasks = kernels::GemmTaskCount(args.sizes, false, args.threads);
    if (tasks == 0) return;
    groups_.push_back({args, tasks_});
    tasks_ += tasks;
    scratch_bytes_ = std::max(scratch_bytes_, kernels::GemmScratchSize(args.sizes, false));
  }

  const bool transpose_b_;
  KernelContext& context_;
  const Tensor& a_;
  const Tensor& b_;
  Tensor& y_;
  const size_t rows_;
  size_t end_ = 0;  // of the last group
  PooledVector<Group> groups_;
  size_t tasks_ = 0;
  size_t scratch_bytes_ = 0;
};

Status RunGroupedMatMul(const GroupedAttrs& attrs, KernelContext& context) {
  return GroupedProducts(attrs.transpose_b, context).Run();
}

constexpr OpRow kRows[] = {
    Op<InferGroupedMatMul, RunGroupedMatMul>("GroupedMatMul",
                                             {.domain = "com.microsoft", .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(GroupedMatMul, kRows);

}  // namespace tenon
