#include "ops/attention/input_projection.h"

#include "base/arithmetic.h"
#include "runtime/kernel_info.h"

namespace tenon {

void InputProjection::Prepare(KernelInfo& info) {
  const Tensor* weights = info.Constant(1);
  if (!weights || weights->type() != DataType::kFloat || weights->rank() != 2) return;
  if (weights->size() == 0) return;
  packed_.Keep(*weights, "input projection", info.weights());
  info.ReleaseConstant(1);
}

Result<kernels::GemmArgs> InputProjection::Product(KernelContext& context, float* output) const {
  const Tensor& x = context.Input(0);
  const Shape& w = context.Input(1).shape();
  const auto k = static_cast<size_t>(w[0]), n = static_cast<size_t>(w[1]);
  kernels::GemmArgs args;
  args.sizes = {static_cast<size_t>(x.shape().Product(0, x.rank() - 1)), n, k};
  args.a = kernels::RowMajor(x.data<float>(), k);
  args.c = output;
  args.ldc = n;
  if (context.HasInput(2)) args.epilogue.bias_columns = context.Input(2).data<float>();
  if (!packed_.is_kept()) {
    args.b = kernels::RowMajor(context.Input(1).data<float>(), n);
    return args;
  }
  const auto pack = [&](const Tensor& weights, float* packed) {
    const size_t tasks = kernels::PackGemmBTaskCount(n, k);
    context.threads().ParallelFor(tasks, 1, [&](size_t begin, size_t end) {
      for (size_t task = begin; task < end; ++task) {
        kernels::RunPackGemmBTask(kernels::RowMajor(weights.data<float>(), n), n, k, task, packed);
      }
    });
  };
  const size_t floats = kernels::PackedGemmBSize(n, k) / sizeof(float);
  TENON_ASSIGN_OR_RETURN(args.packed_b, packed_.Get(floats, pack));
  return args;
}

Result<QkvColumns> SplitColumns(const std::vector<int64_t>& hidden, int64_t columns,
                                int64_t heads) {
  if (heads < 1) return InvalidArgument("expected num_heads >= 1, got {}", heads);
  QkvColumns parts = {columns / 3, columns / 3, columns / 3};
  bool fits = hidden.empty() || hidden.size() == 3;
  if (hidden.size() == 3) parts = {hidden[0], hidden[1], hidden[2]};
  for (const int64_t part : {parts.query, parts.key, parts.value}) {
    fits = fits && part >= 0 && part <= columns && part % heads == 0;
  }
  fits = fits && parts.query == parts.key && parts.query + parts.key + parts.value == columns;
  if (fits) return parts;
  return InvalidArgument(
      "input 1: expected queries, keys and values of {} heads in its columns, got "
      "{} columns and {} qkv_hidden_sizes",
      heads, columns, hidden.size());
}

Result<std::optional<QkvColumns>> CheckProjection(const ShapeContext& context, const Dim& row_size,
                                                  const std::vector<int64_t>& hidden,
                                                  int64_t heads) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape weights, context.InputOfRank(1, 2));
  const auto may_equal = [](const Dim& a, const Dim& b) {
    return !a.is_number() || !b.is_number() || a == b;
  };
  if (!may_equal(weights[0], row_size)) {
    return InvalidArgument("input 1: expected {} rows, got {}", row_size, weights);
  }
  if (context.HasInput(2)) {
    const Result<SymbolicShape> bias = context.InputOfRank(2, 1);
    if (!bias && !IsUnknownShape(bias.error())) return Error(Status(bias.error()));
    if (bias && !may_equal((*bias)[0], weights[1])) {
      return InvalidArgument("input 2: expected [{}], got {}", weights[1], *bias);
    }
  }
  if (!weights[1].is_number()) return std::optional<QkvColumns>();
  TENON_ASSIGN_OR_RETURN(const QkvColumns columns, SplitColumns(hidden, weights[1].value(), heads));
  return std::optional<QkvColumns>(columns);
}

}  // namespace tenon
