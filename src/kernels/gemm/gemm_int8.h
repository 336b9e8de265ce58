// Products of int8 and uint8 matrices with 32-bit sums: the core of MatMulInteger-10,
// QLinearMatMul-21, QLinearConv-10 and similar operators.
//
//   S = (A - a_zero) x (B - b_zero) + bias, modulo 2^32
//
// A is [m, k], B is [k, n]; a_zero is one number for each row of A, b_zero one for each column of
// B. Any size may be 0. S is stored unchanged, scaled to floats, or requantized to int8 or uint8.
//
// A product is divided into tasks by shape alone. They write disjoint parts of the output and may
// run in any order and on any threads. No function here allocates, locks, or starts a thread; all
// are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/gemm_int8_args.h"

namespace tenon::kernels {

// Bytes of a packed [k, n] matrix; a multiple of 64.
size_t PackedInt8GemmBSize(size_t n, size_t k);
// The panels of columns that it consists of.
size_t Int8GemmPanelCount(size_t n);
// Packs the panels [first, last). packed: PackedInt8GemmBSize(n, k) bytes, aligned to 64.
void PackInt8GemmPanels(const Int8Matrix& b, size_t n, size_t k, size_t first, size_t last,
                        uint8_t* packed);

// The rows of A may be packed once for all tasks. 0 bytes if no two tasks read the same rows.
size_t PackedInt8GemmRowsSize(const Int8GemmArgs& args);
size_t PackInt8GemmRowsTaskCount(const Int8GemmArgs& args);
// packed: PackedInt8GemmRowsSize(args) bytes, aligned to 64, to be args.packed_a.
void RunPackInt8GemmRowsTask(const Int8GemmArgs& args, size_t task, std::byte* packed);

// 0 when the output is empty.
size_t Int8GemmTaskCount(const Int8GemmArgs& args);
// Bytes of scratch memory that every running task needs for itself; a multiple of 64.
size_t Int8GemmScratchSize(const Int8GemmArgs& args);
// scratch: aligned to 64, with any content.
void RunInt8GemmTask(const Int8GemmArgs& args, size_t task, std::byte* scratch);

// For tests: whether the machine's instructions for int8 dot products are used. Not thread-safe;
// changes the layout of packed matrices.
void UseInt8DotProducts(bool use);

}  // namespace tenon::kernels
