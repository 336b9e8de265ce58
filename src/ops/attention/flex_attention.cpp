// FlexAttention: attention whose scores and probabilities a model's subgraphs may change.
#include <algorithm>
#include <cmath>

#include "base/arithmetic.h"
#include "kernels/gemm/gemm.h"
#include "kernels/softmax.h"
#include "ops/framework/element_conversion.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/linear/scalar_matmul.h"

namespace tenon {
namespace {

enum Input : size_t { kQ, kK, kV };

// ai.onnx.preview FlexAttention-1.
struct FlexAttrs {
  std::optional<float> scale;
  DataType softmax_precision = DataType::kUndefined;
  static constexpr auto Fields() {
    return std::tuple(Field("scale", &FlexAttrs::scale),
                      Field("softmax_precision", &FlexAttrs::softmax_precision));
  }
};

// The index in Node::Subgraphs() of the attribute's graph; nothing if it is absent.
std::optional<size_t> SubgraphIndex(const Node& node, std::string_view attribute) {
  size_t index = 0;
  for (const Attribute& held : node.attributes) {
    if (held.type() != AttributeType::kGraph) continue;
    if (held.name == attribute) return index;
    ++index;
  }
  return std::nullopt;
}

// The type of the subgraphs' inputs for scores and probabilities.
DataType Precision(const FlexAttrs& attrs, DataType inputs) {
  if (attrs.softmax_precision != DataType::kUndefined) return attrs.softmax_precision;
  return inputs == DataType::kDouble ? DataType::kDouble : DataType::kFloat;
}

// The output of a subgraph must have the shape of its input tensor.
Status InferModifier(std::string_view attribute, const ValueType& type, ShapeContext& context) {
  if (!SubgraphIndex(context.node(), attribute)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const std::vector<ValueType> outputs,
                         context.InferSubgraph(attribute, {type}));
  if (outputs.size() == 1) return OkStatus();
  return InvalidArgument("attribute '{}': expected one output, got {}", attribute, outputs.size());
}

Status CheckFit(const SymbolicShape& q, const SymbolicShape& k, const SymbolicShape& v) {
  const bool are_heads = q.rank() == 4 && k.rank() == 4 && v.rank() == 4;
  if (!are_heads || !MayEqual(q[0], k[0]) || !MayEqual(q[0], v[0]) || !MayEqual(k[1], v[1]) ||
      !MayEqual(k[2], v[2]) || !MayEqual(q[3], k[3])) {
    return InvalidArgument("shapes of Q {}, K {} and V {} do not fit together", q, k, v);
  }
  if (q[1].is_number() && k[1].is_number() &&
      (k[1].value() == 0 ? q[1].value() != 0 : q[1].value() % k[1].value() != 0)) {
    return InvalidArgument("expected a multiple of {} query heads, got {}", k[1], q[1]);
  }
  return OkStatus();
}

[[gnu::cold]] Status InferFlexAttention(const FlexAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape q, context.InputOfRank(kQ, 4));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape k, context.InputOfRank(kK, 4));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape v, context.InputOfRank(kV, 4));
  TENON_RETURN_IF_ERROR(CheckFit(q, k, v));
  const DataType precision = Precision(attrs, context.ElementType(kQ));
  if (!kFloats.Contains(precision)) {
    return InvalidArgument("attribute 'softmax_precision': expected a float type, got {}",
                           DataTypeName(precision));
  }
  const ValueType scores = ValueType::Tensor(precision, SymbolicShape({q[0], q[1], q[2], k[2]}));
  TENON_RETURN_IF_ERROR(InferModifier("score_mod", scores, context));
  TENON_RETURN_IF_ERROR(InferModifier("prob_mod", scores, context));
  return context.SetOutput(0, {q[0], q[1], q[2], v[3]});
}

// y = alpha a b for one pair of matrices of each head, on the threads.
struct HeadProduct {
  size_t heads, group;  // query heads in all, and how many share a key head
  size_t m, n, k;
  size_t b_row_stride, b_column_stride;
};

Status MultiplyHeads(const HeadProduct& p, const float* a, const float* b, float alpha, float* y,
                     KernelContext& context) {
  kernels::GemmArgs args;
  args.sizes = {p.m, p.n, p.k};
  args.alpha = alpha;
  args.ldc = p.n;
  const size_t tasks = kernels::GemmTaskCount(args.sizes, false);
  return context.ForEachTask(
      p.heads * tasks, kernels::GemmScratchSize(args.sizes, false),
      [&](size_t index, std::byte* scratch) {
        const size_t head = index / tasks;
        kernels::GemmArgs own = args;
        own.a = kernels::RowMajor(a + head * p.m * p.k, p.k);
        own.b = {b + head / p.group * p.k * p.n, p.b_row_stride, p.b_column_stride};
        own.c = y + head * p.m * p.n;
        kernels::RunGemmTask(own, index % tasks, reinterpret_cast<float*>(scratch));
      });
}

Status MultiplyHeads(const HeadProduct& p, const double* a, const double* b, double alpha,
                     double* y, KernelContext& context) {
  return context.ForEachTask(p.heads, 0, [&](size_t head, std::byte*) {
    double* into = y + head * p.m * p.n;
    ScalarProductRows<double>({a + head * p.m * p.k, p.k, 1},
                              {b + head / p.group * p.k * p.n, p.b_row_stride, p.b_column_stride},
                              p.m, p.n, p.k, into);
    for (size_t i = 0; i < p.m * p.n; ++i) into[i] *= alpha;
  });
}

void SoftmaxInPlace(float* x, size_t rows, size_t n, ThreadPool& threads) {
  threads.ParallelFor(rows, kernels::SoftmaxGrain(n), [&](size_t begin, size_t end) {
    kernels::SoftmaxRows(x + begin * n, x + begin * n, end - begin, n, false);
  });
}

void SoftmaxInPlace(double* x, size_t rows, size_t n, ThreadPool& threads) {
  threads.ParallelFor(rows, 16, [&](size_t begin, size_t end) {
    for (double* row = x + begin * n; row < x + end * n; row += n) {
      const double greatest = *std::max_element(row, row + n);
      double sum = 0;
      for (size_t i = 0; i < n; ++i) sum += row[i] = std::exp(row[i] - greatest);
      for (size_t i = 0; i < n; ++i) row[i] /= sum;
    }
  });
}

class FlexAttention final : public StatefulKernel<InferFlexAttention> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    score_mod_ = SubgraphIndex(info.node(), "score_mod");
    prob_mod_ = SubgraphIndex(info.node(), "prob_mod");
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    return context.Input(kQ).type() == DataType::kDouble ? RunOf<double>(context)
                                                         : RunOf<float>(context);
  }

 private:
  template <class T>
  Status RunOf(KernelContext& context) const {
    const Shape& q = context.Input(kQ).shape();
    const Shape& k = context.Input(kK).shape();
    const Shape& v = context.Input(kV).shape();
    TENON_RETURN_IF_ERROR(CheckFit(SymbolicShape(q), SymbolicShape(k), SymbolicShape(v)));
    TENON_ASSIGN_OR_RETURN(
        Tensor* const y,
        context.AllocateOutput(0, DataTypeOf<T>(), Shape({q[0], q[1], q[2], v[3]})));
    if (y->size() == 0) return OkStatus();
    const auto size = [](int64_t dim) { return static_cast<size_t>(dim); };
    const T scale =
        attrs_.scale ? static_cast<T>(*attrs_.scale) : 1 / std::sqrt(static_cast<T>(q[3]));
    HeadProduct product = {
        size(q[0] * q[1]), size(q[1] / k[1]), size(q[2]), size(k[2]), size(q[3]), 1, size(q[3])};
    TENON_ASSIGN_OR_RETURN(Tensor scores,
                           context.AllocateTensor(DataTypeOf<T>(), {q[0], q[1], q[2], k[2]}));
    TENON_RETURN_IF_ERROR(MultiplyHeads(product, context.Input(kQ).data<T>(),
                                        context.Input(kK).data<T>(), scale, scores.data<T>(),
                                        context));
    TENON_RETURN_IF_ERROR(Modify(score_mod_, "score_mod", context, &scores));
    if (scores.size() > 0) {
      SoftmaxInPlace(scores.data<T>(), product.heads * product.m, product.n, context.threads());
    }
    TENON_RETURN_IF_ERROR(Modify(prob_mod_, "prob_mod", context, &scores));
    product.k = product.n;
    product.n = size(v[3]);
    product.b_row_stride = product.n;
    product.b_column_stride = 1;
    return MultiplyHeads(product, scores.data<T>(), context.Input(kV).data<T>(), T{1}, y->data<T>(),
                         context);
  }

  // Replaces a tensor by the subgraph's output, in the precision that the model requests.
  Status Modify(std::optional<size_t> subgraph, std::string_view attribute, KernelContext& context,
                Tensor* tensor) const {
    const DataType own = tensor->type();
    const DataType precision = Precision(attrs_, own);
    const Shape shape = tensor->shape();
    TENON_RETURN_IF_ERROR(ConvertTo(precision, context, tensor));
    if (subgraph) {
      Value input = std::move(*tensor);
      RunValues outputs;
      TENON_RETURN_IF_ERROR(context.Subgraph(*subgraph).Run({&input, 1}, outputs));
      if (outputs.size() != 1 || !outputs[0].is_tensor() ||
          outputs[0].tensor().type() != precision || !(outputs[0].tensor().shape() == shape)) {
        return InvalidArgument("attribute '{}': expected one output of type {} and shape {}",
                               attribute, DataTypeName(precision), shape);
      }
      // The output may be the input itself or a constant, which must not change.
      TENON_ASSIGN_OR_RETURN(*tensor, outputs[0].tensor().Clone());
    }
    return ConvertTo(own, context, tensor);
  }

  static Status ConvertTo(DataType type, KernelContext& context, Tensor* tensor) {
    if (tensor->type() == type) return OkStatus();
    TENON_ASSIGN_OR_RETURN(Tensor converted, context.AllocateTensor(type, tensor->shape()));
    TENON_RETURN_IF_ERROR(ConvertElements(*tensor, converted, {}, context.threads()));
    *tensor = std::move(converted);
    return OkStatus();
  }

  std::optional<size_t> score_mod_, prob_mod_;
};

constexpr OpRow kRows[] = {
    OpClass<FlexAttention>("FlexAttention", {.domain = "ai.onnx.preview",
                                             .since = 1,
                                             .types = {DataType::kFloat, DataType::kDouble},
                                             .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(FlexAttention, kRows);

}  // namespace tenon
