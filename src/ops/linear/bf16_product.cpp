#include "ops/linear/bf16_product.h"

#include <optional>

#include "base/arithmetic.h"

namespace tenon {
namespace {

using kernels::Bf16Matrix;
using kernels::GemmSizes;

Bf16Matrix MatrixAt(const Bf16Matrix& first, size_t elements) {
  Bf16Matrix matrix = first;
  const size_t bytes = elements * (first.is_bf16 ? sizeof(uint16_t) : sizeof(float));
  matrix.data = static_cast<const std::byte*>(first.data) + bytes;
  return matrix;
}

// One product of the stacks.
struct One {
  Bf16Products product;

  One(const Bf16Products& products, size_t index, size_t a_elements, size_t b_elements)
      : product(products) {
    product.a = MatrixAt(products.a, a_elements);
    product.b = MatrixAt(products.b, b_elements);
    const size_t c_elements = index * products.args.sizes.m * products.args.sizes.n;
    if (product.output.c != nullptr) {
      product.output.c += c_elements;
    } else {
      product.args.c += c_elements;
    }
    if (product.args.epilogue.residual) product.args.epilogue.residual += c_elements;
    for (kernels::Bf16Addend& addend : product.output.addends) {
      if (addend.data) addend.data += index * products.args.sizes.m * addend.row_stride;
    }
  }

  void Multiply(const void* rows, const void* packed_b, size_t task) const {
    kernels::RunBf16GemmTask(product.args, product.parts, rows, packed_b, task,
                             product.output.c ? &product.output : nullptr);
  }
};

// All of it by one thread.
void RunWhole(const One& one, std::byte* rows, std::byte* packed_b) {
  const Bf16Products& p = one.product;
  const GemmSizes& sizes = p.args.sizes;
  for (size_t i = 0; i < kernels::PackBf16GemmBTaskCount(sizes.n); ++i) {
    kernels::RunPackBf16GemmBTask(p.b, sizes.n, sizes.k, p.parts, i, packed_b);
  }
  for (size_t i = 0; i < kernels::Bf16GemmRowsTaskCount(sizes); ++i) {
    kernels::RunBf16GemmRowsTask(p.a, sizes, p.parts, i, rows);
  }
  for (size_t i = 0; i < kernels::Bf16GemmTaskCount(sizes); ++i) one.Multiply(rows, packed_b, i);
}

}  // namespace

void PackBf16B(ThreadPool& threads, const Bf16Matrix& b, size_t columns, size_t depth,
               kernels::Bf16Parts parts, void* packed) {
  threads.ParallelFor(kernels::PackBf16GemmBTaskCount(columns), 1, [&](size_t begin, size_t end) {
    for (size_t task = begin; task < end; ++task) {
      kernels::RunPackBf16GemmBTask(b, columns, depth, parts, task, packed);
    }
  });
}

Status RunBf16Products(KernelContext& context, const Bf16Products& products, const MatrixStack& a,
                       const MatrixStack& b) {
  const GemmSizes& sizes = products.args.sizes;
  const BatchPairs pairs(a.batch, b.batch);
  const auto one_at = [&](size_t index) {
    const BatchPairs::Pair pair = pairs.At(index);
    return One(products, index, pair.a * a.matrix_stride, pair.b * b.matrix_stride);
  };
  const size_t rows_bytes = kernels::Bf16GemmRowsSize(sizes, products.parts);
  const size_t packed_bytes =
      products.packed_b ? 0 : kernels::PackedBf16GemmBSize(sizes.n, sizes.k, products.parts);
  const std::optional<size_t> bytes = CheckedAdd(rows_bytes, packed_bytes);
  if (!bytes) return RuntimeException("out of memory for the operands in bfloat16");
  const size_t count = pairs.count();
  const auto threads = static_cast<size_t>(context.threads().threads());
  if (packed_bytes != 0 && count > 1 && count >= threads) {
    return context.ForEachTask(count, *bytes, [&](size_t index, std::byte* scratch) {
      RunWhole(one_at(index), scratch, scratch + rows_bytes);
    });
  }
  auto* const rows = static_cast<std::byte*>(context.Scratch(*bytes));
  if (rows == nullptr) return RuntimeException("out of memory for {} bytes of operands", *bytes);
  for (size_t i = 0; i < count; ++i) {
    const One one = one_at(i);
    const void* packed_b = products.packed_b;
    if (packed_bytes != 0) {
      PackBf16B(context.threads(), one.product.b, sizes.n, sizes.k, products.parts,
                rows + rows_bytes);
      packed_b = rows + rows_bytes;
    }
    context.ForEachTaskIn(
        nullptr, kernels::Bf16GemmRowsTaskCount(sizes), 0, [&](size_t task, std::byte*) {
          kernels::RunBf16GemmRowsTask(one.product.a, sizes, products.parts, task, rows);
        });
    context.ForEachTaskIn(nullptr, kernels::Bf16GemmTaskCount(sizes), 0,
                          [&](size_t task, std::byte*) { one.Multiply(rows, packed_b, task); });
  }
  return OkStatus();
}

}  // namespace tenon
