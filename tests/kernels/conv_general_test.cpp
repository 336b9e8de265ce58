#include "kernels/conv/conv_general.h"

#include "conv_reference.h"
#include "kernels/unary_cases.h"

namespace tenon::kernels {
namespace {

struct GeneralCase {
  std::string name;
  ConvGeneralShape shape;
  UnaryOp activation = UnaryOp::kIdentity;
  bool residual = false;
};

void PrintTo(const GeneralCase& c, std::ostream* os) { *os << c.name; }
std::string GeneralCaseName(const testing::TestParamInfo<GeneralCase>& info) {
  return info.param.name;
}

size_t In(const ConvGeneralShape& s) { return s.dims[0].in * s.dims[1].in * s.dims[2].in; }
size_t Out(const ConvGeneralShape& s) { return s.dims[0].out * s.dims[1].out * s.dims[2].out; }
size_t Taps(const ConvGeneralShape& s) {
  return s.dims[0].kernel * s.dims[1].kernel * s.dims[2].kernel;
}

// Splits an index into coordinates, last fastest.
struct Coordinates {
  size_t at[3];
};
Coordinates Split(size_t index, size_t b, size_t c) {
  return {{index / (b * c), index / c % b, index % c}};
}

// Calls body(small index, tap, large index) for every pair that a convolution connects: `small`
// coordinates times the stride plus the tap make `large` ones.
template <class Body>
void ForEachConnection(const ConvGeneralShape& s, bool transposed, Body body) {
  const auto size = [&](size_t i, bool large) {
    return large == transposed ? s.dims[i].out : s.dims[i].in;
  };
  const size_t smalls = size(0, false) * size(1, false) * size(2, false);
  for (size_t i = 0; i < smalls; ++i) {
    const Coordinates small = Split(i, size(1, false), size(2, false));
    for (size_t t = 0; t < Taps(s); ++t) {
      const Coordinates tap = Split(t, s.dims[1].kernel, s.dims[2].kernel);
      size_t large = 0;
      bool inside = true;
      for (size_t d = 0; d < 3; ++d) {
        const long at =
            static_cast<long>(small.at[d] * s.dims[d].stride + tap.at[d] * s.dims[d].dilation) -
            static_cast<long>(s.dims[d].pad_begin);
        inside = inside && at >= 0 && at < static_cast<long>(size(d, true));
        large = large * size(d, true) + static_cast<size_t>(at);
      }
      if (inside) body(i, t, large);
    }
  }
}

// The roles of small and large are those of the output and the input of Conv.
std::vector<double> ReferenceGeneral(const ConvGeneralShape& s, bool transposed,
                                     const std::vector<float>& in,
                                     const std::vector<float>& weights) {
  const size_t group_in = s.in_channels / s.groups;
  const size_t group_out = s.out_channels / s.groups;
  std::vector<double> out(s.batch * s.out_channels * Out(s), 0.0);
  for (size_t n = 0; n < s.batch; ++n) {
    for (size_t o = 0; o < s.out_channels; ++o) {
      for (size_t i = 0; i < group_in; ++i) {
        const size_t channel = o / group_out * group_in + i;
        const float* x = in.data() + (n * s.in_channels + channel) * In(s);
        const float* w =
            weights.data() +
            (transposed ? channel * group_out + o % group_out : o * group_in + i) * Taps(s);
        double* y = out.data() + (n * s.out_channels + o) * Out(s);
        ForEachConnection(s, transposed, [&](size_t small, size_t tap, size_t large) {
          const size_t from = transposed ? small : large;
          const size_t to = transposed ? large : small;
          y[to] += static_cast<double>(x[from]) * w[tap];
        });
      }
    }
  }
  return out;
}

void CheckGeneral(const GeneralCase& c, bool transposed) {
  const ConvGeneralShape& s = c.shape;
  const std::vector<float> in = RandomFloats(s.batch * s.in_channels * In(s), 1);
  const std::vector<float> weights =
      RandomFloats(s.in_channels / s.groups * s.out_channels * Taps(s), 2);
  const std::vector<float> bias = RandomFloats(s.out_channels, 3);
  const std::vector<float> residual =
      RandomFloats(c.residual ? s.batch * s.out_channels * Out(s) : 0, 4);
  std::vector<double> expected = ReferenceGeneral(s, transposed, in, weights);
  for (size_t i = 0; i < expected.size(); ++i) {
    const double sum = expected[i] + bias[i / Out(s) % s.out_channels];
    expected[i] = static_cast<double>(
        CaseOf(c.activation).reference(c.residual ? sum + residual[i] : sum, 0, 0));
  }
  const double depth = static_cast<double>(s.in_channels / s.groups * Taps(s));
  ForEveryTarget([&] {
    GuardedBuffer x(in), w(weights), b(bias), r(residual), y(expected.size());
    const size_t bytes = transposed ? ConvTransposeScratchSize(s) : ConvGeneralScratchSize(s);
    GuardedBuffer scratch(bytes / sizeof(float), true);
    const ConvGeneralArgs args = {
        s,
        x.data(),
        w.data(),
        y.data(),
        {b.data(), c.residual ? r.data() : nullptr, {.op = c.activation}}};
    const size_t tasks = transposed ? ConvTransposeTaskCount(s) : ConvGeneralTaskCount(s);
    for (size_t t = 0; t < tasks; ++t) {
      if (transposed) {
        RunConvTransposeTask(args, t, scratch.data());
      } else {
        RunConvGeneralTask(args, t, scratch.data());
      }
    }
    const std::vector<float> got = y.values();
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected[i], 1e-6 * (1 + depth / 8)) << i;
    }
  });
}

class ConvGeneralTest : public testing::TestWithParam<GeneralCase> {};
TEST_P(ConvGeneralTest, MatchesReferenceOnEveryTarget) { CheckGeneral(GetParam(), false); }

class ConvTransposeTest : public testing::TestWithParam<GeneralCase> {};
TEST_P(ConvTransposeTest, MatchesReferenceOnEveryTarget) { CheckGeneral(GetParam(), true); }

// batch, in and out channels, groups, {in, out, kernel, stride, dilation, pad_begin} each
const GeneralCase kConvCases[] = {
    {"one_element", {1, 1, 1, 1, {}}},
    {"pointwise", {2, 20, 9, 1, {{}, {5, 5}, {7, 7}}}, UnaryOp::kRelu, true},
    {"3x3", {2, 5, 7, 1, {{}, {9, 9, 3, 1, 1, 1}, {11, 11, 3, 1, 1, 1}}}, UnaryOp::kTanh, true},
    {"strided", {1, 5, 7, 1, {{}, {9, 5, 3, 2, 1, 1}, {40, 14, 3, 3, 1, 1}}}},
    {"dilated", {1, 3, 4, 1, {{}, {9, 5, 3, 1, 2, 0}, {12, 9, 2, 1, 3, 0}}}, UnaryOp::kRelu},
    {"groups", {2, 12, 18, 3, {{}, {6, 6, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}}}, UnaryOp::kRelu, true},
    {"depthwise_multiplier", {1, 4, 12, 4, {{}, {6, 6, 3, 1, 1, 1}, {9, 9, 3, 1, 1, 1}}}},
    {"one_dimension", {2, 10, 6, 1, {{}, {}, {200, 196, 5}}}, UnaryOp::kRelu},
    {"one_dimension_dilated", {1, 8, 8, 2, {{}, {}, {100, 100, 3, 1, 5, 5}}}},
    {"three_dimensions",
     {1, 3, 5, 1, {{5, 5, 3, 1, 1, 1}, {6, 3, 3, 2, 1, 1}, {7, 7, 3, 1, 1, 1}}},
     UnaryOp::kIdentity,
     true},
    // KRN-1: frames whose rows are read in place.
    {"frames",
     {2, 4, 6, 2, {{7, 4, 3, 2, 1, 1}, {6, 6, 3, 1, 1, 1}, {14, 14, 3, 1, 1, 1}}},
     UnaryOp::kRelu,
     true},
    {"frames_of_each_channel",
     {1, 3, 3, 3, {{5, 5, 3, 1, 2, 2}, {6, 3, 3, 2, 1, 1}, {30, 15, 3, 2, 1, 1}}}},
    {"frames_alone", {1, 2, 3, 1, {{9, 7, 3}, {4, 4}, {16, 16}}}},
    {"pads_beyond_the_kernel", {1, 2, 3, 1, {{}, {3, 11, 3, 1, 1, 5}, {3, 11, 3, 1, 1, 5}}}},
    {"many_tasks", {1, 64, 40, 1, {{}, {40, 40, 3, 1, 1, 1}, {40, 40, 3, 1, 1, 1}}}},
    {"one_column", {1, 6, 11, 1, {{}, {60, 58, 3}, {1, 1}}}, UnaryOp::kTanh, true},
    {"depth_of_pads", {1, 2, 3, 1, {{1, 1, 1, 2, 1, 1}, {}, {60, 58, 3}}}},
    {"channels_of_every_tile", {1, 3, 15, 1, {{}, {5, 5, 3, 1, 1, 1}, {47, 47, 3, 1, 1, 1}}}},
    {"wide_kernel", {1, 4, 8, 1, {{}, {6, 6, 3, 1, 1, 1}, {90, 90, 39, 1, 1, 19}}}},
    {"stride_3", {2, 1, 5, 1, {{}, {20, 20, 7, 1, 1, 3}, {99, 33, 7, 3, 1, 2}}}, UnaryOp::kRelu},
    {"stride_and_dilation", {1, 2, 3, 1, {{}, {9, 4, 2, 2, 3}, {80, 24, 3, 3, 4, 2}}}},
    {"stride_beyond_the_kernel", {1, 1, 4, 1, {{}, {}, {400, 40, 4, 10}}}},
    {"long_row", {1, 1, 1, 1, {{}, {}, {5000, 2373, 256, 2}}}},
    {"long_windows", {2, 3, 39, 3, {{}, {}, {2000, 51, 130, 37}}}, UnaryOp::kRelu, true},
    {"long_windows_to_the_end", {1, 1, 17, 1, {{}, {}, {2048, 31, 128, 64}}}, UnaryOp::kTanh},
    {"parts_of_channels", {1, 20, 130, 1, {{}, {}, {960, 958, 3}}}, UnaryOp::kIdentity, true},
    {"one_pixel", {3, 50, 37, 1, {}}, UnaryOp::kRelu, true},
    {"one_pixel_of_groups", {2, 12, 40, 2, {{}, {3, 1, 3}, {5, 1, 5}}}, UnaryOp::kTanh, true},
    {"few_pixels", {2, 20, 37, 1, {{}, {}, {64, 4, 20, 15, 1, 1}}}, UnaryOp::kRelu, true},
    {"few_pixels_of_volumes",
     {1, 3, 70, 1, {{2, 2, 3, 1, 1, 1}, {3, 1, 3}, {5, 2, 3, 2, 2, 2}}},
     UnaryOp::kTanh},
    {"few_pixels_in_groups", {2, 12, 8, 4, {{}, {2, 2}, {2, 2}}}, UnaryOp::kIdentity, true},
    {"few_pixels_many_weights", {1, 300, 260, 1, {{}, {}, {5, 2, 3, 2}}}},
    {"no_images", {0, 3, 3, 1, {{}, {4, 4}, {4, 4}}}},
    {"no_pixels", {1, 3, 3, 1, {{}, {0, 0}, {4, 4}}}},
};
INSTANTIATE_TEST_SUITE_P(Shapes, ConvGeneralTest, testing::ValuesIn(kConvCases), GeneralCaseName);

const GeneralCase kTransposeCases[] = {
    {"one_element", {1, 1, 1, 1, {}}},
    {"2x2_stride_2", {2, 12, 5, 1, {{}, {5, 10, 2, 2}, {7, 14, 2, 2}}}, UnaryOp::kRelu, true},
    {"4x4_stride_2",
     {1, 9, 20, 1, {{}, {5, 10, 4, 2, 1, 1}, {7, 14, 4, 2, 1, 1}}},
     UnaryOp::kTanh,
     true},
    {"3x3_output_padding", {1, 9, 3, 1, {{}, {5, 10, 3, 2, 1, 1}, {7, 14, 3, 2, 1, 1}}}},
    {"dilated", {1, 4, 3, 1, {{}, {5, 9, 3, 1, 2, 0}, {7, 13, 4, 1, 2, 0}}}},
    {"groups", {2, 12, 18, 3, {{}, {6, 13, 3, 2}, {5, 11, 3, 2}}}, UnaryOp::kRelu},
    {"stride_beyond_the_kernel",
     {1, 3, 3, 1, {{}, {4, 12, 2, 3}, {4, 16, 2, 4}}},
     UnaryOp::kIdentity,
     true},
    {"one_dimension", {1, 20, 40, 1, {{}, {}, {50, 200, 8, 4, 1, 2}}}},
    {"three_dimensions", {1, 3, 4, 1, {{3, 6, 2, 2}, {4, 8, 4, 2, 1, 1}, {3, 5, 3, 1, 1, 0}}}},
    {"pads_that_cut_everything", {1, 2, 3, 1, {{}, {2, 1, 3, 1, 1, 8}, {2, 1, 3, 1, 1, 8}}}},
    {"many_steps", {1, 8, 33, 1, {{}, {60, 120, 4, 2, 1, 1}, {60, 120, 4, 2, 1, 1}}}},
    {"no_images", {0, 3, 3, 1, {{}, {4, 4}, {4, 4}}}},
    {"no_input_pixels", {1, 3, 3, 1, {{}, {0, 2, 3, 1, 1, 0}, {4, 6, 3, 1, 1, 0}}}},
};
INSTANTIATE_TEST_SUITE_P(Shapes, ConvTransposeTest, testing::ValuesIn(kTransposeCases),
                         GeneralCaseName);

}  // namespace
}  // namespace tenon::kernels
