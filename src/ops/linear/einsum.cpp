// Einsum: sums of products over labelled axes, two operands at a time, as matrix products.
#include <algorithm>

#include "base/arithmetic.h"
#include "kernels/gemm/gemm.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/framework/strided_copy.h"
#include "ops/linear/einsum_equation.h"
#include "ops/linear/scalar_matmul.h"

namespace tenon {
namespace {

// Einsum-28.
struct EinsumAttrs {
  std::string equation;
  static constexpr auto Fields() { return std::tuple(Field("equation", &EinsumAttrs::equation)); }
};

Status InferOutput(const EinsumAttrs& attrs, const EinsumEquation& equation,
                   ShapeContext& context) {
  if (equation.operand_count() != context.input_count()) {
    return InvalidArgument("equation '{}': expected {} inputs, got {}", attrs.equation,
                           equation.operand_count(), context.input_count());
  }
  PooledVector<SymbolicShape> operands;
  for (size_t i = 0; i < context.input_count(); ++i) {
    TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(i));
    operands.push_back(std::move(shape));
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, equation.OutputShape(operands));
  return context.SetOutput(0, std::move(y));
}

Status InferEinsum(const EinsumAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const EinsumEquation equation, EinsumEquation::Parse(attrs.equation));
  return InferOutput(attrs, equation, context);
}

uint64_t MaskOf(const Labels& labels) {
  uint64_t mask = 0;
  for (const uint8_t label : labels) mask |= uint64_t{1} << label;
  return mask;
}

// Elements by labels: a label that the term lacks, or along which it is repeated, has stride 0.
struct Term {
  uint64_t labels = 0;
  std::array<size_t, kMostLabels> strides{};
  Tensor memory;

  bool Has(uint8_t label) const { return labels >> label & 1; }
};

using Sizes = std::array<size_t, kMostLabels>;

size_t Product(const Labels& labels, const Sizes& sizes) {
  size_t product = 1;
  for (const uint8_t label : labels) product *= sizes[label];
  return product;
}

// The one stride for all of `labels`, the last being the fastest; nothing if there is none.
std::optional<size_t> MergedStride(const Term& term, const Labels& labels, const Sizes& sizes) {
  std::optional<size_t> stride, expected;
  for (size_t i = labels.size(); i-- > 0;) {
    const uint8_t label = labels[i];
    if (sizes[label] == 1) continue;
    if (!stride) {
      stride = term.strides[label];
    } else if (term.strides[label] != *expected) {
      return std::nullopt;
    }
    expected = term.strides[label] * sizes[label];
  }
  return stride.value_or(1);
}

// The roles of two terms' labels in their product.
struct Roles {
  Labels batch, rows, columns, depth;
};

// The elements, also those of a signed type as unsigned ones.
template <class T>
const T* ElementsOf(const Tensor& x) {
  return static_cast<const T*>(x.raw());
}
template <class T>
T* ElementsOf(Tensor& x) {
  return static_cast<T*>(x.raw());
}

// T is float, double, or an unsigned type for integers of its size.
template <class T>
class Einsum {
 public:
  Einsum(const EinsumEquation& equation, KernelContext& context)
      : equation_(equation), context_(context) {}

  Status Run() {
    TENON_RETURN_IF_ERROR(BindOperands());
    Term result = std::move(terms_[0]);
    for (size_t i = 1; i < terms_.size(); ++i) {
      uint64_t later = MaskOf(output_);
      for (size_t j = i + 1; j < terms_.size(); ++j) later |= terms_[j].labels;
      TENON_ASSIGN_OR_RETURN(
          result, Contract(std::move(result), std::move(terms_[i]), later, i + 1 == terms_.size()));
    }
    if (written_) return OkStatus();
    TENON_ASSIGN_OR_RETURN(result, SumOut(std::move(result), MaskOf(output_)));
    return Copy(result, output_, context_.Output(0));
  }

 private:
  Status BindOperands() {
    sizes_.fill(1);
    PooledVector<size_t> ranks;
    for (size_t i = 0; i < context_.input_count(); ++i) {
      const Tensor& x = context_.Input(i);
      ranks.push_back(x.rank());
      TENON_ASSIGN_OR_RETURN(const Labels labels, equation_.LabelsOf(i, x.rank()));
      Term term;
      term.memory = x;
      term.labels = MaskOf(labels);
      size_t stride = 1;
      for (size_t axis = x.rank(); axis-- > 0;) {
        const auto dim = static_cast<size_t>(x.shape()[axis]);
        if (dim != 1) {
          // A repeated label selects the diagonal.
          term.strides[labels[axis]] += stride;
          sizes_[labels[axis]] = dim;
        }
        stride *= dim;
      }
      terms_.push_back(std::move(term));
    }
    output_ = equation_.OutputLabels(equation_.EllipsisRank(ranks));
    return OkStatus();
  }

  // A dense term whose axes are `labels`.
  Result<Term> Allocate(const Labels& labels) const {
    Term term;
    term.labels = MaskOf(labels);
    size_t stride = 1;
    for (size_t i = labels.size(); i-- > 0;) {
      term.strides[labels[i]] = sizes_[labels[i]] == 1 ? 0 : stride;
      const auto next = CheckedMul(stride, sizes_[labels[i]]);
      if (!next) return RuntimeException("out of memory: an intermediate product is too large");
      stride = *next;
    }
    TENON_ASSIGN_OR_RETURN(
        term.memory,
        context_.AllocateTensor(DataTypeOf<T>(), Shape({static_cast<int64_t>(stride)})));
    return term;
  }

  Status Copy(const Term& term, const Labels& order, Tensor& into) const {
    if (into.size() == 0) return OkStatus();
    StridedCopy copy(into.type());
    size_t stride = Product(order, sizes_);
    for (const uint8_t label : order) {
      stride /= sizes_[label];
      TENON_RETURN_IF_ERROR(copy.AddAxis(static_cast<int64_t>(sizes_[label]),
                                         static_cast<int64_t>(term.strides[label]),
                                         static_cast<int64_t>(stride)));
    }
    return copy.Run(term.memory.raw(), into.raw(), context_.threads());
  }

  // Sums over the labels that are not in `keep`.
  Result<Term> SumOut(Term term, uint64_t keep) const {
    if ((term.labels & ~keep) == 0) return term;
    Labels kept, summed;
    for (uint8_t label = 0; label < kMostLabels; ++label) {
      if (term.Has(label)) (keep >> label & 1 ? kept : summed).push_back(label);
    }
    TENON_ASSIGN_OR_RETURN(Term result, Allocate(kept));
    const T* from = ElementsOf<T>(term.memory);
    T* into = ElementsOf<T>(result.memory);
    const size_t terms = Product(summed, sizes_);
    constexpr size_t kTaskSums = 16384;
    context_.threads().ParallelFor(static_cast<size_t>(result.memory.size()),
                                   kTaskSums / (terms + 1) + 1, [&](size_t begin, size_t end) {
                                     for (size_t i = begin; i < end; ++i) {
                                       into[i] = SumAlong(term, summed,
                                                          from + OffsetOf(term, kept, i), 0);
                                     }
                                   });
    return result;
  }

  // The position of element `i` of the axes `labels`.
  size_t OffsetOf(const Term& term, const Labels& labels, size_t i) const {
    size_t offset = 0;
    for (size_t k = labels.size(); k-- > 0; i /= sizes_[labels[k]]) {
      offset += i % sizes_[labels[k]] * term.strides[labels[k]];
    }
    return offset;
  }

  T SumAlong(const Term& term, const Labels& labels, const T* from, size_t depth) const {
    using Sum = typename ScalarSum<T>::Type;
    const size_t size = sizes_[labels[depth]], stride = term.strides[labels[depth]];
    Sum sum = 0;
    if (depth + 1 == labels.size()) {
      for (size_t i = 0; i < size; ++i) sum += static_cast<Sum>(from[i * stride]);
    } else {
      for (size_t i = 0; i < size; ++i) {
        sum += static_cast<Sum>(SumAlong(term, labels, from + i * stride, depth + 1));
      }
    }
    return static_cast<T>(sum);
  }

  // The sums over labels that neither `later` nor the other term needs, as a product of matrices.
  Result<Term> Contract(Term left, Term right, uint64_t later, bool is_last) {
    TENON_ASSIGN_OR_RETURN(left, SumOut(std::move(left), later | right.labels));
    TENON_ASSIGN_OR_RETURN(right, SumOut(std::move(right), later | left.labels));
    Roles roles = RolesOf(left, right, later);
    Labels order = roles.batch;
    order.insert(order.end(), roles.rows.begin(), roles.rows.end());
    order.insert(order.end(), roles.columns.begin(), roles.columns.end());
    TENON_RETURN_IF_ERROR(MakeMatrices(&left, roles.batch, roles.rows, roles.depth));
    TENON_RETURN_IF_ERROR(MakeMatrices(&right, roles.batch, roles.depth, roles.columns));
    if (is_last && order == output_) {
      written_ = true;
      TENON_RETURN_IF_ERROR(Multiply(left, right, roles, ElementsOf<T>(context_.Output(0))));
      return Term();
    }
    TENON_ASSIGN_OR_RETURN(Term result, Allocate(order));
    TENON_RETURN_IF_ERROR(Multiply(left, right, roles, ElementsOf<T>(result.memory)));
    return result;
  }

  // Labels in the order of the output as far as they are in it.
  Roles RolesOf(const Term& left, const Term& right, uint64_t later) const {
    Roles roles;
    const auto add = [&](uint8_t label) {
      const bool in_left = left.Has(label), in_right = right.Has(label);
      if (in_left && in_right) {
        (later >> label & 1 ? roles.batch : roles.depth).push_back(label);
      } else if (in_left) {
        roles.rows.push_back(label);
      } else if (in_right) {
        roles.columns.push_back(label);
      }
    };
    for (const uint8_t label : output_) add(label);
    const uint64_t done = MaskOf(output_);
    for (uint8_t label = 0; label < kMostLabels; ++label) {
      if (!(done >> label & 1)) add(label);
    }
    return roles;
  }

  // Copies a term unless its rows, columns and batches can be read in place.
  Status MakeMatrices(Term* term, const Labels& batch, const Labels& rows,
                      const Labels& columns) const {
    if (MergedStride(*term, rows, sizes_) && MergedStride(*term, columns, sizes_)) {
      return OkStatus();
    }
    Labels order = batch;
    order.insert(order.end(), rows.begin(), rows.end());
    order.insert(order.end(), columns.begin(), columns.end());
    TENON_ASSIGN_OR_RETURN(Term dense, Allocate(order));
    TENON_RETURN_IF_ERROR(Copy(*term, order, dense.memory));
    *term = std::move(dense);
    return OkStatus();
  }

  Status Multiply(const Term& left, const Term& right, const Roles& roles, T* y) const {
    const size_t m = Product(roles.rows, sizes_), n = Product(roles.columns, sizes_);
    const size_t k = Product(roles.depth, sizes_), count = Product(roles.batch, sizes_);
    if (m * n * count == 0) return OkStatus();
    const ScalarMatrix<T> a = {ElementsOf<T>(left.memory), *MergedStride(left, roles.rows, sizes_),
                               *MergedStride(left, roles.depth, sizes_)};
    const ScalarMatrix<T> b = {ElementsOf<T>(right.memory),
                               *MergedStride(right, roles.depth, sizes_),
                               *MergedStride(right, roles.columns, sizes_)};
    const auto operands = [&](size_t index) {
      ScalarMatrix<T> own_a = a, own_b = b;
      own_a.data += OffsetOf(left, roles.batch, index);
      own_b.data += OffsetOf(right, roles.batch, index);
      return std::pair(own_a, own_b);
    };
    if constexpr (std::is_same_v<T, float>) {
      kernels::GemmArgs args;
      args.sizes = {m, n, k};
      args.ldc = n;
      const size_t tasks = kernels::GemmTaskCount(args.sizes, false);
      return context_.ForEachTask(tasks * count, kernels::GemmScratchSize(args.sizes, false),
                                  [&](size_t task, std::byte* scratch) {
                                    const auto [own_a, own_b] = operands(task / tasks);
                                    kernels::GemmArgs own = args;
                                    own.a = {own_a.data, own_a.row_stride, own_a.column_stride};
                                    own.b = {own_b.data, own_b.row_stride, own_b.column_stride};
                                    own.c = y + task / tasks * m * n;
                                    kernels::RunGemmTask(own, task % tasks,
                                                         reinterpret_cast<float*>(scratch));
                                  });
    } else {
      constexpr size_t kRowsPerTask = 16;
      const size_t tasks = CeilDiv(m, kRowsPerTask);
      return context_.ForEachTask(tasks * count, 0, [&](size_t task, std::byte*) {
        auto [own_a, own_b] = operands(task / tasks);
        const size_t row = task % tasks * kRowsPerTask;
        own_a.data += row * own_a.row_stride;
        ScalarProductRows(own_a, own_b, std::min(kRowsPerTask, m - row), n, k,
                          y + (task / tasks * m + row) * n);
      });
    }
  }

  const EinsumEquation& equation_;
  KernelContext& context_;
  PooledVector<Term> terms_;
  Labels output_;
  Sizes sizes_{};
  bool written_ = false;
};

Status RunEinsum(const EinsumEquation& equation, KernelContext& context) {
  const DataType type = context.Output(0).type();
  if (context.Output(0).size() == 0) return OkStatus();
  if (type == DataType::kFloat) return Einsum<float>(equation, context).Run();
  if (type == DataType::kDouble) return Einsum<double>(equation, context).Run();
  // Sums and products wrap around, so that the sign does not matter.
  switch (DataTypeBits(type)) {
    case 8:
      return Einsum<uint8_t>(equation, context).Run();
    case 16:
      return Einsum<uint16_t>(equation, context).Run();
    case 32:
      return Einsum<uint32_t>(equation, context).Run();
    default:
      return Einsum<uint64_t>(equation, context).Run();
  }
}

class EinsumKernel final : public StatefulKernel<InferEinsum> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_ASSIGN_OR_RETURN(equation_, EinsumEquation::Parse(attrs_.equation));
    return OkStatus();
  }
  Status InferShapes(ShapeContext& context) const override {
    return InferOutput(attrs_, equation_, context);
  }
  Status Run(KernelContext& context) const override { return RunEinsum(equation_, context); }

 private:
  EinsumEquation equation_;
};

constexpr OpRow kRows[] = {
    OpClass<EinsumKernel>(
        "Einsum", {.since = 12, .types = kInts | TypeSet{DataType::kFloat, DataType::kDouble}}),
};

}  // namespace

TENON_OP_FAMILY(Einsum, kRows);

}  // namespace tenon
