#include "product.h"

#include <fmt/format.h>

namespace codegen {
namespace {

// Each work group computes a tile of 4 * SIDE rows and columns, each of its SIDE x SIDE items 16
// elements of that, a SIDE apart so that neighbours touch neighbouring memory. The tiles of A and
// B are staged in local memory, DEPTH deep; the odd row length keeps columns of A in different
// banks.
constexpr const char* kTiledProduct = R"(
  const int row0 = get_group_id(1) * (4 * SIDE);
  const int col0 = get_group_id(0) * (4 * SIDE);
  const int batch = get_group_id(2);
  const int lx = get_local_id(0);
  const int ly = get_local_id(1);
  LOCAL float as[DEPTH][4 * SIDE + 1];
  LOCAL float bs[DEPTH][4 * SIDE];
  PREPARE
  float sums[4][4];
  for (int u = 0; u < 4; ++u)
    for (int v = 0; v < 4; ++v) sums[u][v] = 0.0f;
  for (int depth0 = 0; depth0 < K; depth0 += DEPTH) {
    for (int t = ly * SIDE + lx; t < DEPTH * 4 * SIDE; t += SIDE * SIDE) {
      {
        const int row = row0 + t / DEPTH, depth = depth0 + t % DEPTH;
        as[t % DEPTH][t / DEPTH] = row < M && depth < K ? (ELEMENT_A) : 0.0f;
      }
      {
        const int col = col0 + t % (4 * SIDE), depth = depth0 + t / (4 * SIDE);
        float element = 0.0f;
        if (col < N && depth < K) element = (ELEMENT_B);
        bs[t / (4 * SIDE)][t % (4 * SIDE)] = element;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 0; d < DEPTH; ++d) {
      float a[4], b[4];
      for (int u = 0; u < 4; ++u) a[u] = as[d][ly + u * SIDE];
      for (int v = 0; v < 4; ++v) b[v] = bs[d][lx + v * SIDE];
      for (int u = 0; u < 4; ++u)
        for (int v = 0; v < 4; ++v) sums[u][v] = fma(a[u], b[v], sums[u][v]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int u = 0; u < 4; ++u)
    for (int v = 0; v < 4; ++v) {
      const int row = row0 + ly + u * SIDE, col = col0 + lx + v * SIDE;
      if (row < M && col < N) STORE((batch * M + row) * N + col, sums[u][v]);
    }
)";

}  // namespace

KernelBody WriteProduct(KernelWriter& writer, const Product& product, size_t group_size) {
  const size_t side = group_size >= 256 ? 16 : 8;
  const Product::Access a = product.a(writer);
  const Product::Access b = product.b(writer);
  std::string code = fmt::format(
      "#define SIDE {}\n#define DEPTH 16\n#define M {}\n#define N {}\n#define K {}\n"
      "#define PREPARE {}{}\n#define ELEMENT_A {}\n#define ELEMENT_B {}\n",
      side, writer.Int(product.m), writer.Int(product.n), writer.Int(product.k), a.prepare,
      b.prepare, a.element, b.element);
  const auto tiles = [side](int64_t size) {
    const size_t tile = 4 * side;
    return (static_cast<size_t>(size) + tile - 1) / tile * side;
  };
  return {.name = "product",
          .code = code + kTiledProduct,
          .global = {tiles(product.n), tiles(product.m), static_cast<size_t>(product.batch)},
          .local = {side, side, 1}};
}

}  // namespace codegen
