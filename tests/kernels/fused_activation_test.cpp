// Wherever a kernel applies a function to its results, it gives the bits of the function alone: for
// every function of base/unary_functions.inc, on every target.
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <string>

#include "conv_reference.h"
#include "kernels/conv/conv_blocked.h"
#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_general.h"
#include "kernels/conv/conv_grouped.h"
#include "kernels/conv/conv_planar.h"
#include "kernels/conv/conv_stem.h"
#include "kernels/conv/conv_weights.h"
#include "kernels/conv/conv_winograd.h"
#include "kernels/elementwise/recurrent_cell.h"
#include "kernels/gemm/gemm.h"
#include "kernels/target_test.h"
#include "kernels/unary_cases.h"

namespace tenon::kernels {
namespace {

// Numbers of both signs up to some 16, small ones, and those that are special.
std::vector<float> Operands(size_t n, uint32_t seed, float largest) {
  std::vector<float> values = RandomFloats(n, seed);
  for (float& v : values) v *= v * v * largest;
  return values;
}
std::vector<float> Bias(size_t n) {
  constexpr float kSpecial[] = {0.0f, -0.0f, kNan, 4, kInf, -5.5f, -kInf, 40, -40, 1e30f, -1e30f};
  std::vector<float> bias = Operands(n, 9, 8);
  for (size_t i = 0; i < std::min(n, std::size(kSpecial)); ++i) bias[i] = kSpecial[i];
  return bias;
}

// A kernel that ends in an activation, on operands that are always the same.
struct Place {
  std::string name;
  std::function<std::vector<float>(const ActivationSpec& activation)> run;
  size_t channels = 0, pixels = 0;  // of one image in NCHW16c, whose idle lanes stay 0; else 0
};

std::vector<float> RunGemm(const GemmSizes& s, bool packed, const ActivationSpec& activation) {
  const std::vector<float> a = Operands(s.m * s.k, 1, 3), b = Operands(s.k * s.n, 2, 3);
  const std::vector<float> bias = Bias(s.n);
  std::vector<float> c(s.m * s.n);
  GemmArgs args = {.sizes = s,
                   .a = RowMajor(a.data(), s.k),
                   .b = RowMajor(b.data(), s.n),
                   .c = c.data(),
                   .ldc = s.n};
  args.epilogue.bias_columns = bias.data();
  args.epilogue.activation = activation;
  GuardedBuffer packed_b(packed ? PackedGemmBSize(s.n, s.k) / sizeof(float) : 0, true);
  if (packed) {
    PackGemmB(args.b, s.n, s.k, packed_b.data());
    args.packed_b = packed_b.data();
  }
  GuardedBuffer scratch(GemmScratchSize(s, packed) / sizeof(float), true);
  Gemm(args, scratch.data());
  return c;
}

Place GemmPlace(const char* name, const GemmSizes& sizes, bool packed) {
  return {name, [=](const ActivationSpec& a) { return RunGemm(sizes, packed, a); }};
}

size_t Product(const ConvGeneralShape& shape, size_t ConvDim::*size) {
  return shape.dims[0].*size * shape.dims[1].*size * shape.dims[2].*size;
}

std::vector<float> RunGeneral(const ConvGeneralShape& s, bool transposed,
                              const ActivationSpec& activation) {
  const std::vector<float> in = Operands(s.batch * s.in_channels * Product(s, &ConvDim::in), 1, 3);
  const std::vector<float> weights =
      Operands(s.in_channels / s.groups * s.out_channels * Product(s, &ConvDim::kernel), 2, 3);
  const std::vector<float> bias = Bias(s.out_channels);
  std::vector<float> out(s.batch * s.out_channels * Product(s, &ConvDim::out));
  const ConvGeneralArgs args = {
      s, in.data(), weights.data(), out.data(), {bias.data(), nullptr, activation}};
  const size_t bytes = transposed ? ConvTransposeScratchSize(s) : ConvGeneralScratchSize(s);
  GuardedBuffer scratch(bytes / sizeof(float), true);
  const size_t tasks = transposed ? ConvTransposeTaskCount(s) : ConvGeneralTaskCount(s);
  for (size_t t = 0; t < tasks; ++t) {
    transposed ? RunConvTransposeTask(args, t, scratch.data())
               : RunConvGeneralTask(args, t, scratch.data());
  }
  return out;
}

Place GeneralPlace(const char* name, const ConvGeneralShape& shape, bool transposed = false) {
  return {name, [=](const ActivationSpec& a) { return RunGeneral(shape, transposed, a); }};
}

// Operands of a convolution in NCHW16c.
struct BlockedOperands {
  BlockedOperands(const Conv2dShape& s, const ActivationSpec& activation)
      : plain(Operands(s.batch * s.in_channels * s.in_height * s.in_width, 1, 3)),
        in(ToBlocked(plain, s.batch, s.in_channels, s.in_height * s.in_width, 0)),
        weights(Operands(
            s.out_channels * (s.in_channels / s.groups) * s.kernel_height * s.kernel_width, 2, 3)),
        bias(Bias(s.out_channels)),
        out(BlockedSize(s.batch, s.out_channels, s.out_height * s.out_width)),
        epilogue{bias.data(), nullptr, activation} {}

  // Packs the weights with pack(block, packed).
  template <class F>
  const float* Packed(const Conv2dShape& s, size_t size, F&& pack) {
    packed = PackBlocks(s.out_channels, size, pack);
    return packed.data();
  }

  std::vector<float> plain, in, weights, bias, packed, out;
  ConvEpilogue epilogue;
};

using RunBlocked = void (*)(const Conv2dShape& s, BlockedOperands& o);

void RunDirect(const Conv2dShape& s, BlockedOperands& o) {
  const float* packed = o.Packed(s, PackedConvWeightsSize(s), [&](size_t block, float* to) {
    PackConvWeights(s, o.weights.data(), block, to);
  });
  GuardedBuffer scratch(ConvBlockedScratchSize(s, true) / 4, true);
  const ConvBlockedArgs args = {s, o.in.data(), packed, o.out.data(), o.epilogue};
  for (size_t t = 0; t < ConvBlockedTaskCount(s, true); ++t)
    RunConvBlockedTask(args, t, scratch.data());
}

void RunStem(const Conv2dShape& s, BlockedOperands& o) {
  const float* packed = o.Packed(s, PackedStemWeightsSize(s), [&](size_t block, float* to) {
    PackStemWeights(s, o.weights.data(), block, to);
  });
  GuardedBuffer scratch(ConvStemScratchSize(s) / 4, true);
  const ConvStemArgs args = {s, o.plain.data(), packed, o.out.data(), o.epilogue};
  for (size_t t = 0; t < ConvStemTaskCount(s); ++t) RunConvStemTask(args, t, scratch.data());
}

void RunDepthwise(const Conv2dShape& s, BlockedOperands& o) {
  const float* packed = o.Packed(s, PackedDepthwiseWeightsSize(s), [&](size_t block, float* to) {
    PackDepthwiseWeights(s, o.weights.data(), block, to);
  });
  const ConvDepthwiseArgs args = {s, o.in.data(), packed, o.out.data(), o.epilogue};
  for (size_t t = 0; t < ConvDepthwiseTaskCount(s); ++t) RunConvDepthwiseTask(args, t);
}

void RunGrouped(const Conv2dShape& s, BlockedOperands& o) {
  const float* packed = o.Packed(s, PackedGroupedWeightsSize(s), [&](size_t block, float* to) {
    PackGroupedWeights(s, o.weights.data(), block, to);
  });
  GuardedBuffer scratch(ConvGroupedScratchSize(s) / 4, true);
  const ConvGroupedArgs args = {s, o.in.data(), packed, o.out.data(), o.epilogue};
  for (size_t t = 0; t < ConvGroupedTaskCount(s); ++t) RunConvGroupedTask(args, t, scratch.data());
}

template <WinogradTile tile>
void RunWinograd(const Conv2dShape& s, BlockedOperands& o) {
  const float* packed = o.Packed(
      s, PackedWinogradWeightsSize(s, tile),
      [&](size_t block, float* to) { PackWinogradWeights(s, tile, o.weights.data(), block, to); });
  GuardedBuffer scratch(ConvWinogradScratchSize(s, tile, true, 1) / 4, true);
  const ConvWinogradArgs args = {s, tile, o.in.data(), packed, o.out.data(), o.epilogue};
  for (size_t t = 0; t < ConvWinogradTaskCount(s, tile, true, 1); ++t) {
    RunConvWinogradTask(args, t, scratch.data());
  }
}

Place BlockedPlace(const char* name, const Conv2dShape& shape, RunBlocked run) {
  const auto place = [=](const ActivationSpec& activation) {
    BlockedOperands operands(shape, activation);
    run(shape, operands);
    return operands.out;
  };
  return {name, place, shape.out_channels, shape.out_height * shape.out_width};
}

// batch, in c h w, out c h w, groups, kernel, stride, dilation, pads top left
const Conv2dShape k3x3 = {1, 20, 7, 17, 21, 7, 17, 1, 3, 3, 1, 1, 1, 1, 1, 1};
const Conv2dShape kManyBlocks = {1, 600, 3, 3, 32, 3, 3, 1, 3, 3, 1, 1, 1, 1, 1, 1};
const Conv2dShape kImage = {1, 3, 9, 20, 37, 9, 20, 1, 3, 3, 1, 1, 1, 1, 1, 1};
const Conv2dShape kPerChannel = {1, 19, 9, 23, 19, 9, 23, 19, 3, 3, 1, 1, 1, 1, 1, 1};
const Conv2dShape kGroups = {1, 36, 9, 15, 36, 9, 15, 9, 3, 3, 1, 1, 1, 1, 1, 1};
const ConvGeneralShape kRows = {1, 3, 13, 1, {{}, {9, 9, 3, 1, 1, 1}, {67, 67, 3, 1, 1, 1}}};
const ConvGeneralShape kVolume = {1, 4, 13, 1, {{5, 3, 3}, {5, 5, 3, 1, 1, 1}, {6, 6, 3, 1, 1, 1}}};
const ConvGeneralShape kPoint = {2, 20, 13, 1, {{}, {5, 5}, {7, 7}}};
const ConvGeneralShape kUpwards = {1, 6, 13, 1, {{}, {3, 5, 3, 2, 1, 1}, {5, 9, 3, 2, 1, 1}}};

const std::vector<Place>& Places() {
  static const auto* const places = new std::vector<Place>{
      GemmPlace("a packed product", {20, 67, 33}, true),
      GemmPlace("a plain product", {20, 67, 33}, false),
      GemmPlace("a product of few rows", {2, 130, 33}, false),
      GemmPlace("a product in blocks of depth", {20, 35, 2100}, true),
      GeneralPlace("rows of a convolution", kRows),
      GeneralPlace("a convolution as a product", kVolume),
      GeneralPlace("a pointwise convolution", kPoint),
      GeneralPlace("a transposed convolution", kUpwards, true),
      BlockedPlace("a blocked convolution", k3x3, RunDirect),
      BlockedPlace("a blocked convolution in parts", kManyBlocks, RunDirect),
      BlockedPlace("the first convolution", kImage, RunStem),
      BlockedPlace("a depthwise convolution", kPerChannel, RunDepthwise),
      BlockedPlace("a grouped convolution", kGroups, RunGrouped),
      BlockedPlace("Winograd's F(2x2)", k3x3, RunWinograd<WinogradTile::k2x2>),
      BlockedPlace("Winograd's F(4x4)", k3x3, RunWinograd<WinogradTile::k4x4>),
  };
  return *places;
}

bool AreSame(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (a != a && b != b);
}

// Whether an element of a result is none of a channel.
bool IsIdle(const Place& place, size_t i) {
  if (place.pixels == 0) return false;
  const size_t block = i / (place.pixels * kChannelBlock);
  return block * kChannelBlock + i % kChannelBlock >= place.channels;
}

void Check(const Place& place, const UnaryCase& test, const std::vector<float>& sums) {
  const std::vector<float> fused = place.run({test.op, test.a, test.b});
  std::vector<float> alone = sums;
  FindUnary(test.op)(alone.data(), alone.data(), alone.size(), test.a, test.b);
  ASSERT_EQ(fused.size(), alone.size());
  for (size_t i = 0; i < fused.size(); ++i) {
    if (IsIdle(place, i)) alone[i] = 0;
    ASSERT_TRUE(AreSame(fused[i], alone[i]))
        << InfoOf(test.op).name << "(" << sums[i] << ") at " << i << ": alone " << alone[i]
        << ", fused " << fused[i];
  }
}

TEST(FusedActivationTest, GivesTheBitsOfTheFunctionAloneInEveryPlace) {
  ASSERT_TRUE(ConvPlanarSupports(kRows));
  ASSERT_FALSE(ConvPlanarSupports(kVolume));
  for (const Place& place : Places()) {
    SCOPED_TRACE(place.name);
    ForEveryTarget([&] {
      const std::vector<float> sums = place.run({});
      EXPECT_LT(*std::min_element(sums.begin(), sums.end()), -4);
      for (const UnaryCase& test : kUnaryCases) ASSERT_NO_FATAL_FAILURE(Check(place, test, sums));
    });
  }
}

// --- Recurrent cells ---

constexpr size_t kHidden = 67;

// What the cells make of `gate`: f(gate), in every role that an activation has.
std::vector<std::vector<float>> CellResults(const CellActivation& f,
                                            const std::vector<float>& gate) {
  const CellActivation one = {UnaryOp::kAffine, 0, 1}, same = {UnaryOp::kAffine, 1, 0};
  const std::vector<float> zeros(kHidden);
  std::vector<std::vector<float>> results;
  std::vector<float> h(kHidden), c(kHidden);
  RnnCell(f, kHidden, gate.data(), h.data());
  results.push_back(h);

  std::vector<float> all_gates, z_r;
  for (int i = 0; i < 4; ++i) all_gates.insert(all_gates.end(), gate.begin(), gate.end());
  // The candidate; then the output of the state, which is the candidate; then the gates.
  LstmCell({one, f, same}, kHidden, all_gates.data(), nullptr, c.data(), h.data());
  results.push_back(c);
  results.push_back(h);
  c.assign(kHidden, 0);
  LstmCell({one, same, f}, kHidden, all_gates.data(), nullptr, c.data(), h.data());
  results.push_back(h);
  c.assign(kHidden, 0);
  LstmCell({f, one, one}, kHidden, all_gates.data(), nullptr, c.data(), h.data());
  results.push_back(c);
  results.push_back(h);

  z_r.assign(all_gates.begin(), all_gates.begin() + 2 * kHidden);
  const std::vector<float> ones(kHidden, 1);
  std::vector<float> reset(kHidden);
  GruCellGates({f, same}, kHidden, z_r.data(), ones.data(), reset.data());
  results.emplace_back(z_r.begin(), z_r.begin() + kHidden);
  results.push_back(reset);
  h.assign(kHidden, 0);
  GruCellOutput({same, f}, kHidden, zeros.data(), gate.data(), h.data());
  results.push_back(h);
  // The gate z is 0 and the candidate the input.
  std::vector<float> inputs(3 * kHidden), recurrences(3 * kHidden);
  std::copy(gate.begin(), gate.end(), inputs.begin() + 2 * kHidden);
  h.assign(kHidden, 0);
  GruCellLinear({{UnaryOp::kAffine, 0, 0}, f}, kHidden, inputs.data(), recurrences.data(),
                h.data());
  results.push_back(h);
  return results;
}

TEST(FusedActivationTest, GivesTheBitsOfTheFunctionAloneInRecurrentCells) {
  const std::vector<float> gate = Operands(kHidden, 3, 12);
  ForEveryTarget([&] {
    for (const UnaryCase& test : kUnaryCases) {
      if (!InfoOf(test.op).Has(kCell)) continue;
      std::vector<float> alone(kHidden);
      FindUnary(test.op)(gate.data(), alone.data(), kHidden, test.a, test.b);
      const auto results = CellResults({test.op, test.a, test.b}, gate);
      for (size_t role = 0; role < results.size(); ++role) {
        for (size_t i = 0; i < kHidden; ++i) {
          ASSERT_EQ(results[role][i], alone[i])
              << InfoOf(test.op).name << "(" << gate[i] << ") in role " << role;
        }
      }
      const std::vector<float> special = {kInf, -kInf, kNan, 0.0f, -0.0f, 1e30f, -1e30f};
      std::vector<float> fused(special.size());
      alone.resize(special.size());
      RnnCell({test.op, test.a, test.b}, special.size(), special.data(), fused.data());
      FindUnary(test.op)(special.data(), alone.data(), special.size(), test.a, test.b);
      for (size_t i = 0; i < special.size(); ++i) {
        EXPECT_TRUE(AreSame(fused[i], alone[i]))
            << InfoOf(test.op).name << "(" << special[i] << ")";
      }
    }
  });
}

}  // namespace
}  // namespace tenon::kernels
