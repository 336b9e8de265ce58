// The C++ classes over the C tables, as far as they need no session.
#include <gtest/gtest.h>
#include <onnxruntime_cxx_api.h>

#include <cmath>
#include <limits>

#include "capi/client.h"

// Every method compiles, not only those that are called below.
template struct Ort::detail::AllocatorImpl<OrtAllocator>;
template struct Ort::detail::EpDeviceImpl<Ort::detail::Unowned<const OrtEpDevice>>;
template struct Ort::detail::IoBindingImpl<OrtIoBinding>;
template struct Ort::detail::KernelInfoImpl<OrtKernelInfo>;
template struct Ort::detail::KeyValuePairsImpl<Ort::detail::Unowned<const OrtKeyValuePairs>>;
template struct Ort::detail::MapTypeInfoImpl<OrtMapTypeInfo>;
template struct Ort::detail::MemoryInfoImpl<Ort::detail::Unowned<const OrtMemoryInfo>>;
template struct Ort::detail::SequenceTypeInfoImpl<OrtSequenceTypeInfo>;
template struct Ort::detail::SessionImpl<OrtSession>;
template struct Ort::detail::SessionOptionsImpl<OrtSessionOptions>;
template struct Ort::detail::TensorTypeAndShapeInfoImpl<OrtTensorTypeAndShapeInfo>;
template struct Ort::detail::TypeInfoImpl<Ort::detail::Unowned<const OrtTypeInfo>>;
template struct Ort::detail::ValueImpl<OrtValue>;

namespace {

TEST(CxxStatusTest, EmptyIsSuccess) {
  const Ort::Status status;
  EXPECT_TRUE(status.IsOK());
  EXPECT_EQ(status.GetErrorCode(), ORT_OK);
  EXPECT_EQ(status.GetErrorMessage(), "");
  EXPECT_NO_THROW(Ort::ThrowOnError(status));
}

TEST(CxxStatusTest, FailureIsThrownWithCodeAndText) {
  tenon::test::NeedExceptions();
  try {
    Ort::ThrowOnError(Ort::GetApi().CreateStatus(ORT_NO_SUCHFILE, "no file 'a.onnx'"));
    FAIL() << "nothing was thrown";
  } catch (const Ort::Exception& exception) {
    EXPECT_EQ(exception.GetOrtErrorCode(), ORT_NO_SUCHFILE);
    EXPECT_STREQ(exception.what(), "no file 'a.onnx'");
    const Ort::Status back(exception);
    EXPECT_EQ(back.GetErrorCode(), ORT_NO_SUCHFILE);
    EXPECT_EQ(back.GetErrorMessage(), "no file 'a.onnx'");
  }
}

TEST(CxxStatusTest, MovedFromIsEmptyAndReleaseGivesTheObjectUp) {
  Ort::Status first("text", ORT_FAIL);
  Ort::Status second(std::move(first));
  EXPECT_EQ(static_cast<OrtStatus*>(first), nullptr);
  EXPECT_EQ(second.GetErrorMessage(), "text");
  OrtStatus* raw = second.release();
  EXPECT_TRUE(second.IsOK());
  second = Ort::Status(raw);
  EXPECT_EQ(second.GetErrorCode(), ORT_FAIL);
}

TEST(CxxTableTest, VersionsAreThoseOfTheLibrary) {
  EXPECT_EQ(Ort::GetVersionString(), "1.30.0");
  EXPECT_NE(&Ort::GetModelEditorApi(), nullptr);
  EXPECT_NE(&Ort::GetCompileApi(), nullptr);
}

TEST(CxxTableTest, InitApiChoosesTheTable) {
  const OrtApi* const own = &Ort::GetApi();
  OrtApi other = *own;
  Ort::InitApi(&other);
  EXPECT_EQ(&Ort::GetApi(), &other);
  Ort::InitApi();
  EXPECT_EQ(&Ort::GetApi(), own);
}

// float16 and bfloat16 against scaling by powers of two in double.
double Reference(uint16_t bits, int exponent_bits, int fraction_bits) {
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = std::ldexp(bits & ((1 << fraction_bits) - 1), -fraction_bits);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  if (exponent == (1 << exponent_bits) - 1) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <class Type>
void CheckEveryPattern(int exponent_bits, int fraction_bits) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto value = Type::FromBits(static_cast<uint16_t>(bits));
    const double expected = Reference(value.val, exponent_bits, fraction_bits);
    ASSERT_EQ(value.IsNaN(), std::isnan(expected)) << bits;
    if (value.IsNaN()) {
      ASSERT_TRUE(std::isnan(value.ToFloat())) << bits;
      ASSERT_TRUE(Type(value.ToFloat()).IsNaN()) << bits;
      continue;
    }
    ASSERT_EQ(value.ToFloat(), expected) << bits;
    ASSERT_EQ(std::signbit(value.ToFloat()), value.IsNegative()) << bits;
    ASSERT_EQ(Type(value.ToFloat()).val, value.val) << bits;
    ASSERT_EQ(value.IsFinite(), std::isfinite(expected)) << bits;
  }
}

// Halfway between neighbours the even one is taken, beside it the nearer one.
template <class Type>
void CheckRounding(uint16_t last_finite) {
  for (uint32_t bits = 0; bits < last_finite; ++bits) {
    const float low = Type::FromBits(static_cast<uint16_t>(bits)).ToFloat();
    const float high = Type::FromBits(static_cast<uint16_t>(bits + 1)).ToFloat();
    const auto middle = static_cast<float>((static_cast<double>(low) + high) / 2);
    ASSERT_EQ(Type(middle).val, bits + (bits & 1)) << bits;
    ASSERT_EQ(Type(std::nextafter(middle, low)).val, bits) << bits;
    ASSERT_EQ(Type(std::nextafter(middle, high)).val, bits + 1) << bits;
  }
}

TEST(CxxHalfTest, Float16ConvertsEveryPattern) { CheckEveryPattern<Ort::Float16_t>(5, 10); }
TEST(CxxHalfTest, BFloat16ConvertsEveryPattern) { CheckEveryPattern<Ort::BFloat16_t>(8, 7); }
TEST(CxxHalfTest, Float16RoundsToNearestEven) { CheckRounding<Ort::Float16_t>(0x7BFF); }
TEST(CxxHalfTest, BFloat16RoundsToNearestEven) { CheckRounding<Ort::BFloat16_t>(0x7F7F); }

TEST(CxxHalfTest, Float16OverflowsToInfinity) {
  EXPECT_EQ(Ort::Float16_t(65519.0f).val, 0x7BFF);
  EXPECT_TRUE(Ort::Float16_t(65520.0f).IsPositiveInfinity());
  EXPECT_TRUE(Ort::Float16_t(-1e30f).IsNegativeInfinity());
}

TEST(CxxHalfTest, ComparesAsNumbers) {
  const Ort::Float16_t nan = Ort::Float16_t::FromBits(0x7E00);
  EXPECT_TRUE(Ort::Float16_t(0.0f) == Ort::Float16_t(-0.0f));
  EXPECT_TRUE(nan != nan);
  EXPECT_FALSE(nan < Ort::Float16_t(1.0f));
  EXPECT_TRUE(Ort::Float16_t(-2.0f) < Ort::Float16_t(-1.0f));
  EXPECT_TRUE(Ort::Float16_t(-1.0f) < Ort::Float16_t(1.0f));
  EXPECT_TRUE(Ort::Float16_t(1.0f) < Ort::Float16_t(2.0f));
}

struct Kernel {
  void Compute(OrtKernelContext*) { ++calls; }
  static int calls;
};
int Kernel::calls = 0;

struct Operator : Ort::CustomOpBase<Operator, Kernel> {
  void* CreateKernel(const OrtApi&, const OrtKernelInfo*) const { return new Kernel(); }
  const char* GetName() const { return "Operator"; }
  size_t GetInputTypeCount() const { return 2; }
  ONNXTensorElementDataType GetInputType(size_t index) const {
    return index == 0 ? ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT : ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  }
  size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
};

struct FailingKernel {
  OrtStatusPtr ComputeV2(OrtKernelContext*) { return Ort::Status("no luck", ORT_FAIL).release(); }
};

struct OperatorWithStatus : Ort::CustomOpBase<OperatorWithStatus, FailingKernel, true> {
  OrtStatusPtr CreateKernelV2(const OrtApi&, const OrtKernelInfo*, void** kernel) const {
    *kernel = new FailingKernel();
    return nullptr;
  }
  const char* GetName() const { return "OperatorWithStatus"; }
  size_t GetInputTypeCount() const { return 0; }
  ONNXTensorElementDataType GetInputType(size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  }
  size_t GetOutputTypeCount() const { return 0; }
  ONNXTensorElementDataType GetOutputType(size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  }
  static Ort::Status InferOutputShape(Ort::ShapeInferContext&) { return Ort::Status(); }
};

TEST(CxxCustomOpTest, TableCallsTheMethods) {
  const Operator op;
  EXPECT_EQ(op.version, static_cast<uint32_t>(ORT_API_VERSION));
  const OrtCustomOp& table = op;
  EXPECT_STREQ(table.GetName(&table), "Operator");
  EXPECT_EQ(table.GetInputTypeCount(&table), 2u);
  EXPECT_EQ(table.GetInputType(&table, 1), ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  EXPECT_EQ(table.GetExecutionProviderType(&table), nullptr);
  EXPECT_EQ(table.GetStartVersion(&table), 1);
  EXPECT_EQ(table.GetVariadicInputHomogeneity(&table), 1);
  EXPECT_EQ(table.CreateKernelV2, nullptr);
  EXPECT_EQ(table.InferOutputShapeFn, nullptr);
  void* const kernel = table.CreateKernel(&table, &Ort::GetApi(), nullptr);
  table.KernelCompute(kernel, nullptr);
  table.KernelDestroy(kernel);
  EXPECT_EQ(Kernel::calls, 1);
}

TEST(CxxCustomOpTest, TableWithStatusReturnsIt) {
  const OperatorWithStatus op;
  const OrtCustomOp& table = op;
  EXPECT_EQ(table.CreateKernel, nullptr);
  EXPECT_NE(table.InferOutputShapeFn, nullptr);
  void* kernel = nullptr;
  ASSERT_EQ(table.CreateKernelV2(&table, &Ort::GetApi(), nullptr, &kernel), nullptr);
  const Ort::Status status(table.KernelComputeV2(kernel, nullptr));
  EXPECT_EQ(status.GetErrorMessage(), "no luck");
  table.KernelDestroy(kernel);
}

TEST(CxxCustomOpTest, ConfigKeysNameTheOperator) {
  Ort::CustomOpConfigs configs;
  configs.AddConfig("Operator", "threads", "2");
  EXPECT_EQ(configs.GetFlattenedConfigs().at("custom_op.Operator.threads"), "2");
  EXPECT_EQ(Ort::detail::MakeCustomOpConfigEntryKey("Operator", "threads"),
            "custom_op.Operator.threads");
}

}  // namespace
