// The kernel of all matrix products, also of those that convolutions are.
#pragma once

#include <functional>
#include <string>

#include "kernel_writer.h"

namespace codegen {

// C[batch] = A[batch] x B[batch]; A is [m, k], B is [k, n].
struct Product {
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  // Write what finds an element: expressions of the names `batch`, `row`, `col` and `depth`, where
  // row < m, col < n and depth < k. `prepare` may declare what depends on `batch` alone.
  struct Access {
    std::string prepare;
    std::string element;
  };
  std::function<Access(KernelWriter&)> a;
  std::function<Access(KernelWriter&)> b;
};

// Row-major [batch, m, n]. `group_size` limits the items of a work group.
KernelBody WriteProduct(KernelWriter& writer, const Product& product, size_t group_size);

}  // namespace codegen
