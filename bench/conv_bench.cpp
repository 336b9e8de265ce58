// GFLOP/s of the convolution kernels on one thread, and their share of the machine's peak. FLOP are
// those of the direct algorithm with all taps, including those in the padding.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/conv/conv_blocked.h"
#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_general.h"
#include "kernels/conv/conv_grouped.h"
#include "kernels/conv/conv_stem.h"
#include "kernels/conv/conv_weights.h"
#include "kernels/conv/conv_winograd.h"
#include "kernels/conv/pool_blocked.h"
#include "peak.h"

namespace tenon::bench {
namespace {

using kernels::Conv2dShape;

// Random floats at an address that is a multiple of 64.
class Buffer {
 public:
  explicit Buffer(size_t count) : storage_(count + 16) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    data_ = storage_.data() + (64 - address % 64) % 64 / sizeof(float);
    uint32_t state = 1;
    for (size_t i = 0; i < count; ++i) {
      state = state * 1664525 + 1013904223;
      data_[i] = static_cast<float>(state >> 8) / (1 << 23) - 1;
    }
  }
  float* data() { return data_; }

 private:
  std::vector<float> storage_;
  float* data_;
};

struct Layer {
  const char* name;
  Conv2dShape shape;
};

// A square layer with "same" padding.
constexpr Conv2dShape Same(size_t in, size_t out, size_t size, size_t kernel, size_t stride = 1,
                           size_t groups = 1, size_t dilation = 1) {
  const size_t out_size = kernels::CeilDiv(size, stride);
  const size_t pad = dilation * (kernel - 1) / 2;
  return {1,      in,     size,   size,   out,      out_size, out_size, groups,
          kernel, kernel, stride, stride, dilation, dilation, pad,      pad};
}

void Measure(benchmark::State& state, const Conv2dShape& s, FunctionRef<void()> convolve) {
  const double flop =
      2.0 * static_cast<double>(s.batch * s.out_channels * s.out_height * s.out_width *
                                (s.in_channels / s.groups) * s.kernel_height * s.kernel_width);
  MeasureAgainstPeak(state, flop, convolve);
}

size_t OutputSize(const Conv2dShape& s) {
  return kernels::BlockedSize(s.batch, s.out_channels, s.out_height * s.out_width);
}

void Blocked(benchmark::State& state, const Conv2dShape& s) {
  Buffer in(kernels::BlockedSize(s.batch, s.in_channels, s.in_height * s.in_width));
  Buffer weights(kernels::PackedConvWeightsSize(s));
  Buffer out(OutputSize(s));
  Buffer bias(s.out_channels);
  Buffer scratch(kernels::ConvBlockedScratchSize(s, true) / sizeof(float));
  const kernels::ConvBlockedArgs args = {s,
                                         in.data(),
                                         weights.data(),
                                         out.data(),
                                         {.bias = bias.data(), .activation = {UnaryOp::kRelu}}};
  Measure(state, s, [&] {
    for (size_t t = 0; t < kernels::ConvBlockedTaskCount(s, true); ++t) {
      kernels::RunConvBlockedTask(args, t, scratch.data());
    }
  });
}

void Stem(benchmark::State& state, const Conv2dShape& s) {
  Buffer in(s.batch * s.in_channels * s.in_height * s.in_width);
  Buffer weights(kernels::PackedStemWeightsSize(s));
  Buffer out(OutputSize(s));
  Buffer bias(s.out_channels);
  Buffer scratch(kernels::ConvStemScratchSize(s) / sizeof(float));
  const kernels::ConvStemArgs args = {s,
                                      in.data(),
                                      weights.data(),
                                      out.data(),
                                      {.bias = bias.data(), .activation = {UnaryOp::kRelu}}};
  Measure(state, s, [&] {
    for (size_t t = 0; t < kernels::ConvStemTaskCount(s); ++t) {
      kernels::RunConvStemTask(args, t, scratch.data());
    }
  });
}

template <kernels::WinogradTile kTile>
void Winograd(benchmark::State& state, const Conv2dShape& s) {
  Buffer in(kernels::BlockedSize(s.batch, s.in_channels, s.in_height * s.in_width));
  Buffer weights(kernels::PackedWinogradWeightsSize(s, kTile));
  Buffer out(OutputSize(s));
  Buffer bias(s.out_channels);
  Buffer scratch(kernels::ConvWinogradScratchSize(s, kTile, true, 1) / sizeof(float));
  const kernels::ConvWinogradArgs args = {
      s,          kTile,
      in.data(),  weights.data(),
      out.data(), {.bias = bias.data(), .activation = {UnaryOp::kRelu}}};
  Measure(state, s, [&] {
    for (size_t t = 0; t < kernels::ConvWinogradTaskCount(s, kTile, true, 1); ++t) {
      kernels::RunConvWinogradTask(args, t, scratch.data());
    }
  });
}

void Depthwise(benchmark::State& state, const Conv2dShape& s) {
  Buffer in(kernels::BlockedSize(s.batch, s.in_channels, s.in_height * s.in_width));
  Buffer weights(kernels::PackedDepthwiseWeightsSize(s));
  Buffer out(OutputSize(s));
  Buffer bias(s.out_channels);
  const kernels::ConvDepthwiseArgs args = {s,
                                           in.data(),
                                           weights.data(),
                                           out.data(),
                                           {.bias = bias.data(), .activation = {UnaryOp::kRelu}}};
  Measure(state, s, [&] {
    for (size_t t = 0; t < kernels::ConvDepthwiseTaskCount(s); ++t) {
      kernels::RunConvDepthwiseTask(args, t);
    }
  });
}

void Grouped(benchmark::State& state, const Conv2dShape& s) {
  Buffer in(kernels::BlockedSize(s.batch, s.in_channels, s.in_height * s.in_width));
  Buffer weights(kernels::PackedGroupedWeightsSize(s));
  Buffer out(OutputSize(s));
  Buffer bias(s.out_channels);
  Buffer scratch(kernels::ConvGroupedScratchSize(s) / sizeof(float));
  const kernels::ConvGroupedArgs args = {s,
                                         in.data(),
                                         weights.data(),
                                         out.data(),
                                         {.bias = bias.data(), .activation = {UnaryOp::kRelu}}};
  Measure(state, s, [&] {
    for (size_t t = 0; t < kernels::ConvGroupedTaskCount(s); ++t) {
      kernels::RunConvGroupedTask(args, t, scratch.data());
    }
  });
}

template <kernels::PoolKind kKind>
void Pool(benchmark::State& state, const Conv2dShape& s) {
  Buffer in(kernels::BlockedSize(s.batch, s.in_channels, s.in_height * s.in_width));
  Buffer out(OutputSize(s));
  const kernels::PoolBlockedArgs args = {
      .shape = s, .kind = kKind, .in = in.data(), .out = out.data()};
  Measure(state, s, [&] {
    for (size_t t = 0; t < kernels::PoolBlockedTaskCount(s); ++t) {
      kernels::RunPoolBlockedTask(args, t);
    }
  });
}

const Layer kBlockedLayers[] = {
    {"1x1_64_256_56", Same(64, 256, 56, 1)},
    {"1x1_256_64_56", Same(256, 64, 56, 1)},
    {"1x1_512_128_28", Same(512, 128, 28, 1)},
    {"1x1_1024_256_14", Same(1024, 256, 14, 1)},
    {"1x1_2048_512_7", Same(2048, 512, 7, 1)},
    {"1x1_24_144_56", Same(24, 144, 56, 1)},
    {"1x1_144_24_56", Same(144, 24, 56, 1)},
    {"1x1_16_96_112", Same(16, 96, 112, 1)},
    {"1x1s2_256_512_56", Same(256, 512, 56, 1, 2)},
    {"3x3_16_320", Same(16, 16, 320, 3)},
    {"3x3_64_56", Same(64, 64, 56, 3)},
    {"3x3_128_28", Same(128, 128, 28, 3)},
    {"3x3_256_14", Same(256, 256, 14, 3)},
    {"3x3_512_7", Same(512, 512, 7, 3)},
    {"3x3s2_128_56", Same(128, 128, 56, 3, 2)},
    {"dil2_3x3_256_28", Same(256, 256, 28, 3, 1, 1, 2)},
};
const Layer kStemLayers[] = {
    {"7x7s2_3_64_224", Same(3, 64, 224, 7, 2)},
    {"3x3s2_3_32_224", Same(3, 32, 224, 3, 2)},
    {"3x3s2_3_16_224", Same(3, 16, 224, 3, 2)},
    {"16x16s16_3_768_224", {1, 3, 224, 224, 768, 14, 14, 1, 16, 16, 16, 16}},
};

const Layer kDepthwiseLayers[] = {
    {"dw3x3_32_112", Same(32, 32, 112, 3, 1, 32)},
    {"dw3x3_144_56", Same(144, 144, 56, 3, 1, 144)},
    {"dw3x3_576_14", Same(576, 576, 14, 3, 1, 576)},
    {"dw3x3_960_7", Same(960, 960, 7, 3, 1, 960)},
    {"dw3x3s2_96_112", Same(96, 96, 112, 3, 2, 96)},
    {"dw5x5_240_28", Same(240, 240, 28, 5, 1, 240)},
    {"dw5x5s2_240_28", Same(240, 240, 28, 5, 2, 240)},
    {"dw7x7_96_56", Same(96, 96, 56, 7, 1, 96)},
    {"dw1x31_512_200", {1, 512, 1, 200, 512, 1, 200, 512, 1, 31, 1, 1, 1, 1, 0, 15}},
};

const Layer kWinogradLayers[] = {
    {"3x3_16_320", Same(16, 16, 320, 3)},  {"3x3_32_112", Same(32, 32, 112, 3)},
    {"3x3_64_56", Same(64, 64, 56, 3)},    {"3x3_128_28", Same(128, 128, 28, 3)},
    {"3x3_256_14", Same(256, 256, 14, 3)}, {"3x3_512_7", Same(512, 512, 7, 3)},
    {"3x3_64_224", Same(64, 64, 224, 3)},  {"3x3_128_32_28", Same(128, 32, 28, 3)},
    {"3x3_512_28", Same(512, 512, 28, 3)}, {"3x3_512_14", Same(512, 512, 14, 3)},
    {"3x3_64_20", Same(64, 64, 20, 3)},
};

const Layer kGroupedLayers[] = {
    {"grp32_3x3_128_56", Same(128, 128, 56, 3, 1, 32)},
    {"grp26_3x3_208_14", Same(208, 208, 14, 3, 1, 26)},
    {"grp13_3x3_104_28", Same(104, 104, 28, 3, 1, 13)},
    {"grp6_3x3s2_48_112", Same(48, 48, 112, 3, 2, 6)},
    {"grp55_3x3_440_7", Same(440, 440, 7, 3, 1, 55)},
};

const Layer kPoolLayers[] = {
    {"3x3s2_64_112", Same(64, 64, 112, 3, 2, 64)},
    {"2x2s2_64_112", Same(64, 64, 112, 2, 2, 64)},
    {"5x5_256_20", Same(256, 256, 20, 5, 1, 256)},
    {"7x7_2048_global", {1, 2048, 7, 7, 2048, 1, 1, 2048, 7, 7}},
};

struct GeneralLayer {
  const char* name;
  kernels::ConvGeneralShape shape;
};

// Each weight of a transposed convolution is used for every input pixel, each weight of others for
// every output pixel.
double GeneralFlop(const kernels::ConvGeneralShape& s, bool transposed) {
  double flop = 2.0 * static_cast<double>(s.batch * s.out_channels * (s.in_channels / s.groups));
  for (const kernels::ConvDim& dim : s.dims) {
    flop *= static_cast<double>(dim.kernel * (transposed ? dim.in : dim.out));
  }
  return flop;
}

void General(benchmark::State& state, const kernels::ConvGeneralShape& s, bool transposed) {
  size_t in_size = s.batch * s.in_channels;
  size_t out_size = s.batch * s.out_channels;
  size_t weights_size = s.in_channels / s.groups * s.out_channels;
  for (const kernels::ConvDim& dim : s.dims) {
    in_size *= dim.in;
    out_size *= dim.out;
    weights_size *= dim.kernel;
  }
  Buffer in(in_size), weights(weights_size), out(out_size), bias(s.out_channels);
  Buffer scratch(
      (transposed ? kernels::ConvTransposeScratchSize(s) : kernels::ConvGeneralScratchSize(s)) /
      sizeof(float));
  const kernels::ConvGeneralArgs args = {s,
                                         in.data(),
                                         weights.data(),
                                         out.data(),
                                         {.bias = bias.data(), .activation = {UnaryOp::kRelu}}};
  const size_t tasks =
      transposed ? kernels::ConvTransposeTaskCount(s) : kernels::ConvGeneralTaskCount(s);
  MeasureAgainstPeak(state, GeneralFlop(s, transposed), [&] {
    for (size_t t = 0; t < tasks; ++t) {
      if (transposed) {
        kernels::RunConvTransposeTask(args, t, scratch.data());
      } else {
        kernels::RunConvGeneralTask(args, t, scratch.data());
      }
    }
  });
}

const GeneralLayer kGeneralLayers[] = {
    {"1d_k7_128_4000", {1, 128, 128, 1, {{}, {}, {4000, 4000, 7, 1, 1, 3}}}},
    {"1d_k3d3_64_8000", {1, 64, 64, 1, {{}, {}, {8000, 8000, 3, 1, 3, 3}}}},
    {"3d_3x3x3_32_16",
     {1, 32, 32, 1, {{16, 16, 3, 1, 1, 1}, {32, 32, 3, 1, 1, 1}, {32, 32, 3, 1, 1, 1}}}},
    {"3x3_64_56", {1, 64, 64, 1, {{}, {56, 56, 3, 1, 1, 1}, {56, 56, 3, 1, 1, 1}}}},
    {"1x1_256_64_56", {1, 256, 64, 1, {{}, {56, 56}, {56, 56}}}},
};
const GeneralLayer kTransposeLayers[] = {
    {"2x2s2_128_64_64", {1, 128, 64, 1, {{}, {64, 128, 2, 2}, {64, 128, 2, 2}}}},
    {"4x4s2_64_32_64", {1, 64, 32, 1, {{}, {64, 128, 4, 2, 1, 1}, {64, 128, 4, 2, 1, 1}}}},
    {"1d_k16s8_128_64_400", {1, 128, 64, 1, {{}, {}, {400, 3200, 16, 8, 1, 4}}}},
    {"1d_k4s2_32_16_12800", {1, 32, 16, 1, {{}, {}, {12800, 25600, 4, 2, 1, 1}}}},
};

template <class Function>
void Register(const char* family, Function run, std::span<const Layer> layers) {
  for (const Layer& layer : layers) {
    benchmark::RegisterBenchmark(
        (std::string(family) + "/" + layer.name).c_str(),
        [run, &layer](benchmark::State& state) { run(state, layer.shape); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }
}

void RegisterGeneral(const char* family, bool transposed, std::span<const GeneralLayer> layers) {
  const auto run = [transposed](benchmark::State& state, const kernels::ConvGeneralShape& shape) {
    General(state, shape, transposed);
  };
  for (const GeneralLayer& layer : layers) {
    benchmark::RegisterBenchmark(
        (std::string(family) + "/" + layer.name).c_str(),
        [run, &layer](benchmark::State& state) { run(state, layer.shape); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }
}

const int kRegistered = [] {
  RegisterGeneral("general", false, kGeneralLayers);
  RegisterGeneral("transpose", true, kTransposeLayers);
  Register("blocked", Blocked, kBlockedLayers);
  Register("depthwise", Depthwise, kDepthwiseLayers);
  Register("grouped", Grouped, kGroupedLayers);
  Register("maxpool", Pool<kernels::PoolKind::kMax>, kPoolLayers);
  Register("averagepool", Pool<kernels::PoolKind::kAverage>, kPoolLayers);
  Register("direct", Blocked, kWinogradLayers);
  Register("winograd2", Winograd<kernels::WinogradTile::k2x2>, kWinogradLayers);
  Register("winograd4", Winograd<kernels::WinogradTile::k4x4>, kWinogradLayers);
  Register("stem", Stem, kStemLayers);
  return 0;
}();

}  // namespace
}  // namespace tenon::bench
