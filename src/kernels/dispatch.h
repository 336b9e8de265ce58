// Run-time choice of the instruction set. A kernel file is compiled once per target by Highway's
// foreach_target.h; each compilation defines a constexpr-like table of functions in its
// HWY_NAMESPACE, and TENON_SELECT_TABLE picks one of these tables.
//
//   // sum.cpp
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "kernels/sum.cpp"
//   #include <hwy/foreach_target.h>
//   #include <hwy/highway.h>
//   HWY_BEFORE_NAMESPACE();
//   namespace tenon::kernels {
//   namespace HWY_NAMESPACE {
//   const SumTable kSumTable = {&SumF32};
//   }
//   #if HWY_ONCE
//   const SumTable& Sum() { return TENON_SELECT_TABLE(SumTable, kSumTable); }
//   #endif
//   }
//   HWY_AFTER_NAMESPACE();
#pragma once

#include <hwy/detect_targets.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tenon::kernels {

// Instruction sets that kernels are compiled for, those of one processor family weakest first. The
// baseline is SSE4.2 on x86-64, NEON on 64-bit ARM, SIMD128 on WebAssembly.
enum class Target : uint8_t { kBaseline, kAvx2, kAvx512, kSve };

// The targets that this machine can run, weakest first. Constant during the process.
std::span<const Target> SupportedTargets();
const char* TargetName(Target target);

// The target in use: the best supported one, unless a test selected another.
Target ActiveTarget();
// Names the forms in which the active target's kernels take packed operands: processors with the
// same name take the same ones.
std::string ActiveForm();
// Whether the active target is AVX-512 with dot products of bytes (VNNI).
bool HasByteDotProducts();
// Settles the process's target before kernels use it: `wanted`, which must be supported, or the
// active one. The first call decides. Returns whether later kernels use `wanted`. Thread-safe.
bool SettleTarget(std::optional<Target> wanted);
// For tests: makes later table look-ups use `target`, which must be supported. Not thread-safe.
void SetActiveTarget(Target target);

// Whether cores read a stream faster if no instruction prefetches it, as AMD's do: Zen 4 reads 100
// instead of 75 GB/s from its L3 cache.
bool StreamsBestAlone();

// The active target's table, or the next weaker one that is not null.
template <class Table>
const Table& SelectTable(const Table* baseline, const Table* avx2, const Table* avx512,
                         const Table* sve) {
  switch (ActiveTarget()) {
    case Target::kSve:
      return sve ? *sve : *baseline;
    case Target::kAvx512:
      if (avx512) return *avx512;
      [[fallthrough]];
    case Target::kAvx2:
      if (avx2) return *avx2;
      [[fallthrough]];
    default:
      return *baseline;
  }
}

}  // namespace tenon::kernels

#if HWY_TARGETS & HWY_AVX2
#define TENON_TABLE_AVX2(name) &N_AVX2::name
#else
#define TENON_TABLE_AVX2(name) nullptr
#endif
#if HWY_TARGETS & HWY_AVX3
#define TENON_TABLE_AVX512(name) &N_AVX3::name
#else
#define TENON_TABLE_AVX512(name) nullptr
#endif
#if HWY_TARGETS & HWY_SVE
#define TENON_TABLE_SVE(name) &N_SVE::name
#else
#define TENON_TABLE_SVE(name) nullptr
#endif

// A `const Table&`; `name` is the table's name inside every HWY_NAMESPACE.
#define TENON_SELECT_TABLE(Table, name)                                                    \
  ::tenon::kernels::SelectTable<Table>(&HWY_STATIC_DISPATCH(name), TENON_TABLE_AVX2(name), \
                                       TENON_TABLE_AVX512(name), TENON_TABLE_SVE(name))
