// Values, memory infos and allocators through the C++ classes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon_c_api.h>

#include <map>

#include "capi/client.h"
#include "capi/counting_allocator.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ValueTest, TensorLiesInTheAllocatorsMemory) {
  CountingAllocator allocator;
  const int64_t shape[] = {2, 3};
  {
    Ort::Value value = Ort::Value::CreateTensor<float>(&allocator, shape, 2);
    EXPECT_EQ(allocator.blocks, 1);
    EXPECT_TRUE(value.IsTensor());
    EXPECT_TRUE(value.HasValue());
    EXPECT_EQ(value.GetTensorTypeAndShapeInfo().GetElementCount(), 6u);
    EXPECT_EQ(value.GetTensorSizeInBytes(), 24u);
    value.At<float>({1, 2}) = 7;
    EXPECT_EQ(value.GetTensorData<float>()[5], 7);
    EXPECT_THAT(ErrorOf([&] { value.At<float>({2, 0}); }), StartsWith("2: "));
  }
  EXPECT_EQ(allocator.blocks, 0);
}

TEST(ValueTest, ElementTypesKeepTheirNumbers) {
  const Ort::AllocatorWithDefaultOptions allocator;
  const int64_t shape[] = {4};
  for (int number = 1; number <= ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0; ++number) {
    const auto type = static_cast<ONNXTensorElementDataType>(number);
    const Ort::Value value = Ort::Value::CreateTensor(allocator, shape, 1, type);
    EXPECT_EQ(value.GetTensorTypeAndShapeInfo().GetElementType(), type);
  }
  const std::map<ONNXTensorElementDataType, size_t> kBytes = {
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2, 1},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2, 1},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0, 4},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4, 2},
      {ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128, 64}};
  for (const auto& [type, bytes] : kBytes) {
    EXPECT_EQ(Ort::Value::CreateTensor(allocator, shape, 1, type).GetTensorSizeInBytes(), bytes);
  }
  EXPECT_THAT(ErrorOf([&] {
                Ort::Value::CreateTensor(allocator, shape, 1,
                                         static_cast<ONNXTensorElementDataType>(29));
              }),
              AllOf(StartsWith("2: "), HasSubstr("29")));
}

TEST(ValueTest, ViewsMustFit) {
  std::vector<float> data(6);
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const struct {
    std::vector<int64_t> shape;
    const char* text;  // "": fits
  } kCases[] = {
      {{2, 3}, ""},
      {{5}, ""},
      {{}, ""},
      {{0, 100}, ""},
      {{7}, "28 bytes"},
      {{-1, 3}, "2: "},
      {{int64_t{1} << 40, int64_t{1} << 40}, "2: "},
  };
  for (const auto& tried : kCases) {
    const std::string error = ErrorOf([&] {
      Ort::Value::CreateTensor<float>(cpu, data.data(), data.size(), tried.shape.data(),
                                      tried.shape.size());
    });
    EXPECT_EQ(error.empty(), *tried.text == '\0') << error;
    EXPECT_THAT(error, HasSubstr(tried.text));
  }
  OrtValue* out = nullptr;
  const int64_t dim = 1;
  EXPECT_THAT(Outcome(Ort::GetApi().CreateTensorWithDataAsOrtValue(
                  cpu, data.data(), 24, &dim, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &out)),
              HasSubstr("string"));
}

TEST(ValueTest, MemoryInfoMayGoBeforeTheTensor) {
  std::vector<float> data = {1, 2};
  const Ort::Value value = TensorOver(data, {2});
  EXPECT_EQ(value.GetTensorMemoryInfo().GetAllocatorName(), "Cpu");
  EXPECT_EQ(value.GetTensorMemoryInfo().GetAllocatorType(), OrtArenaAllocator);
}

TEST(ValueTest, DeleterFreesTheMemoryOnceAndOnlyOnSuccess) {
  CountingAllocator allocator;
  void* data = allocator.Alloc(&allocator, 8);
  const int64_t shape[] = {2}, too_large[] = {3};
  OrtValue* out = nullptr;
  const OrtApi& api = Ort::GetApi();
  EXPECT_NE(Outcome(api.CreateTensorWithDataAndDeleterAsOrtValue(
                &allocator, data, 8, too_large, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &out)),
            "");
  EXPECT_EQ(allocator.blocks, 1);
  EXPECT_EQ(Outcome(api.CreateTensorWithDataAndDeleterAsOrtValue(
                &allocator, data, 8, shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &out)),
            "");
  EXPECT_EQ(allocator.blocks, 1);
  api.ReleaseValue(out);
  EXPECT_EQ(allocator.blocks, 0);
}

TEST(ValueTest, StringsGoThereAndBack) {
  const Ort::AllocatorWithDefaultOptions allocator;
  const int64_t shape[] = {3};
  Ort::Value value =
      Ort::Value::CreateTensor(allocator, shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  EXPECT_EQ(value.GetStringTensorDataLength(), 0u);
  const char* const texts[] = {"one", "", "drei \xc3\xa4"};
  value.FillStringTensor(texts, 3);
  EXPECT_EQ(value.GetStringTensorElement(2), "drei \xc3\xa4");
  value.FillStringTensorElement("two", 1);
  char* const buffer = value.GetResizedStringTensorElementBuffer(0, 5);
  std::copy_n("seven", 5, buffer);
  const size_t length = value.GetStringTensorDataLength();
  EXPECT_EQ(length, 5u + 3 + 7);
  std::string content(length, '?');
  std::vector<size_t> offsets(3);
  value.GetStringTensorContent(content.data(), length, offsets.data(), 3);
  EXPECT_EQ(content, "seventwodrei \xc3\xa4");
  EXPECT_THAT(offsets, ElementsAre(0, 5, 8));
  EXPECT_THAT(ErrorOf([&] { value.FillStringTensor(texts, 2); }), HasSubstr("expected 3"));
  EXPECT_THAT(ErrorOf([&] { value.GetStringTensorElement(3); }), HasSubstr("3 strings"));
  EXPECT_THAT(ErrorOf([&] { value.GetStringTensorContent(content.data(), 3, offsets.data(), 3); }),
              HasSubstr("15 bytes"));
  std::vector<float> numbers = {1};
  EXPECT_THAT(ErrorOf([&] { TensorOver(numbers, {1}).GetStringTensorDataLength(); }),
              HasSubstr("float"));
}

template <class Function>
Function TenonFunction(const char* name) {
  return reinterpret_cast<Function>(Ort::GetApi().GetExperimentalFunction(name));
}

TEST(ValueTest, ManyStringsAreSetAndGotAtOnce) {
  const auto set = TenonFunction<TenonStringTensorSet>(TENON_STRING_TENSOR_SET);
  const auto get = TenonFunction<TenonStringTensorGet>(TENON_STRING_TENSOR_GET);
  const Ort::AllocatorWithDefaultOptions allocator;
  const int64_t shape[] = {4};
  Ort::Value value =
      Ort::Value::CreateTensor(allocator, shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  const char* const texts[] = {"a\0b", nullptr, "three"};
  const size_t sizes[] = {3, 0, 5};
  Ort::ThrowOnError(set(value, 1, texts, sizes, 3));
  const char* got[2] = {};
  size_t got_sizes[2] = {};
  Ort::ThrowOnError(get(value, 0, got, got_sizes, 2));
  EXPECT_EQ(got_sizes[0], 0u);
  EXPECT_EQ(std::string(got[1], got_sizes[1]), std::string("a\0b", 3));
  Ort::ThrowOnError(get(value, 3, got, got_sizes, 1));
  EXPECT_EQ(std::string(got[0], got_sizes[0]), "three");
  Ort::ThrowOnError(set(value, 4, nullptr, nullptr, 0));  // nothing, from the end on

  EXPECT_THAT(Outcome(set(value, 2, texts, sizes, 3)), HasSubstr("4 strings, got 3 from 2 on"));
  EXPECT_THAT(Outcome(get(value, 5, got, got_sizes, 0)), HasSubstr("got 0 from 5 on"));
  EXPECT_THAT(Outcome(set(value, SIZE_MAX, texts, sizes, 3)), HasSubstr("4 strings"));
  const size_t too_many[] = {3, 1, 5};
  EXPECT_THAT(Outcome(set(value, 0, texts, too_many, 3)), HasSubstr("texts[1] must not be null"));
  EXPECT_EQ(value.GetStringTensorElement(0), "");  // and nothing was set
  EXPECT_THAT(Outcome(set(value, 0, nullptr, sizes, 1)), HasSubstr("texts"));
  EXPECT_THAT(Outcome(get(value, 0, got, nullptr, 1)), HasSubstr("sizes"));
  EXPECT_THAT(Outcome(get(nullptr, 0, got, got_sizes, 1)), HasSubstr("value"));
  std::vector<float> numbers = {1};
  EXPECT_THAT(Outcome(set(TensorOver(numbers, {1}), 0, texts, sizes, 1)), HasSubstr("float"));
}

TEST(ValueTest, SequencesGiveCopiesOfTheirElements) {
  std::vector<float> a = {1, 2}, b = {3};
  std::vector<Ort::Value> elements;
  elements.push_back(TensorOver(a, {2}));
  elements.push_back(TensorOver(b, {1, 1}));
  const Ort::Value sequence = Ort::Value::CreateSequence(elements);
  elements.clear();
  EXPECT_FALSE(sequence.IsTensor());
  EXPECT_EQ(sequence.GetTypeInfo().GetONNXType(), ONNX_TYPE_SEQUENCE);
  ASSERT_EQ(sequence.GetCount(), 2u);
  CountingAllocator allocator;
  {
    const Ort::Value second = sequence.GetValue(1, &allocator);
    EXPECT_EQ(allocator.blocks, 1);
    EXPECT_THAT(ElementsOf<float>(second), ElementsAre(3));
    EXPECT_THAT(second.GetTensorTypeAndShapeInfo().GetShape(), ElementsAre(1, 1));
  }
  EXPECT_EQ(allocator.blocks, 0);
  EXPECT_THAT(ErrorOf([&] { sequence.GetValue(2, &allocator); }), HasSubstr("2 elements"));
  EXPECT_THAT(ErrorOf([&] { sequence.GetValue(-1, &allocator); }), StartsWith("6: "));
}

TEST(ValueTest, MapsHaveKeysAndValues) {
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::vector<int64_t> keys = {3, 5};
  std::vector<float> numbers = {0.5f, 0.25f};
  const int64_t two = 2;
  const Ort::Value key_tensor = Ort::Value::CreateTensor<int64_t>(cpu, keys.data(), 2, &two, 1);
  const Ort::Value map = Ort::Value::CreateMap(key_tensor, TensorOver(numbers, {2}));
  keys = {0, 0};  // the map has a copy
  EXPECT_EQ(map.GetCount(), 2u);
  const Ort::TypeInfo type = map.GetTypeInfo();
  EXPECT_EQ(type.GetONNXType(), ONNX_TYPE_MAP);
  EXPECT_EQ(type.GetMapTypeInfo().GetMapKeyType(), ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  const Ort::TypeInfo value_type = type.GetMapTypeInfo().GetMapValueType();
  EXPECT_EQ(value_type.GetTensorTypeAndShapeInfo().GetElementType(),
            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  const Ort::AllocatorWithDefaultOptions allocator;
  EXPECT_THAT(ElementsOf<int64_t>(map.GetValue(0, allocator)), ElementsAre(3, 5));
  EXPECT_THAT(ElementsOf<float>(map.GetValue(1, allocator)), ElementsAre(0.5f, 0.25f));
  EXPECT_THAT(ErrorOf([&] { Ort::Value::CreateMap(key_tensor, TensorOver(numbers, {1})); }),
              StartsWith("2: "));
}

TEST(ValueTest, MixedSequencesAreRefused) {
  std::vector<float> floats = {1};
  const Ort::AllocatorWithDefaultOptions allocator;
  const int64_t one = 1;
  std::vector<Ort::Value> elements;
  elements.push_back(TensorOver(floats, {1}));
  elements.push_back(Ort::Value::CreateTensor<int64_t>(allocator, &one, 1));
  EXPECT_THAT(ErrorOf([&] { Ort::Value::CreateSequence(elements); }), HasSubstr("value 1"));
  EXPECT_THAT(Outcome(Ort::GetApi().CreateValue(nullptr, 0, ONNX_TYPE_SEQUENCE, nullptr)),
              StartsWith("2: "));
}

TEST(ValueTest, ElementsInAnotherMemoryAreNotCopied) {
  const Ort::MemoryInfo device("Cuda", OrtDeviceAllocator, 0, OrtMemTypeDefault);
  const int64_t one = 1;
  float number = 1;
  std::vector<Ort::Value> elements;
  elements.push_back(Ort::Value::CreateTensor<float>(device, &number, 1, &one, 1));
  const Ort::Value sequence = Ort::Value::CreateSequence(elements);
  const Ort::AllocatorWithDefaultOptions allocator;
  EXPECT_THAT(ErrorOf([&] { sequence.GetValue(0, allocator); }), HasSubstr("cannot be copied"));
}

TEST(ValueTest, OptionalsHaveOneValueOrNone) {
  const OrtApi& api = Ort::GetApi();
  std::vector<float> floats = {1};
  const Ort::Value tensor = TensorOver(floats, {1});
  const OrtValue* const values[] = {tensor, tensor};
  for (const size_t count : {0, 1}) {
    OrtValue* made = nullptr;
    ASSERT_EQ(Outcome(api.CreateValue(values, count, ONNX_TYPE_OPTIONAL, &made)), "");
    const Ort::Value optional(made);
    int has_value = -1;
    EXPECT_EQ(Outcome(api.HasValue(optional, &has_value)), "");
    EXPECT_EQ(has_value, static_cast<int>(count));
  }
  OrtValue* made = nullptr;
  EXPECT_THAT(Outcome(api.CreateValue(values, 2, ONNX_TYPE_OPTIONAL, &made)), StartsWith("2: "));
}

TEST(TypeInfoTest, DescriptionsCanBeMade) {
  const OrtApi& api = Ort::GetApi();
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  Ort::ThrowOnError(api.CreateTensorTypeAndShapeInfo(&raw));
  Ort::TensorTypeAndShapeInfo info(raw);
  EXPECT_FALSE(info.HasShape());
  EXPECT_EQ(info.GetElementType(), ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
  Ort::ThrowOnError(api.SetTensorElementType(raw, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2));
  const int64_t dims[] = {2, -1, 5};
  Ort::ThrowOnError(api.SetDimensions(raw, dims, 3));
  EXPECT_EQ(info.GetElementType(), ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2);
  EXPECT_THAT(info.GetShape(), ElementsAre(2, -1, 5));
  const char* names[] = {"", "rows", ""};
  Ort::ThrowOnError(api.SetSymbolicDimensions(raw, names, 3));
  EXPECT_STREQ(info.GetSymbolicDimensions()[1], "rows");
  EXPECT_THAT(info.GetShape(), ElementsAre(2, -1, 5));
  EXPECT_THAT(Outcome(api.SetSymbolicDimensions(raw, names, 2)), StartsWith("2: "));
  const int64_t wrong[] = {-2};
  EXPECT_THAT(Outcome(api.SetDimensions(raw, wrong, 1)), HasSubstr("dim_values must be -1"));
}

TEST(MemoryInfoTest, SaysWhatNamesAndDeviceTypesMadeItOf) {
  const Ort::MemoryInfo info("Cuda", OrtDeviceAllocator, 3, OrtMemTypeCPUInput);
  EXPECT_EQ(info.GetAllocatorName(), "Cuda");
  EXPECT_EQ(info.GetDeviceId(), 3);
  EXPECT_EQ(info.GetMemoryType(), OrtMemTypeCPUInput);
  EXPECT_EQ(info.GetAllocatorType(), OrtDeviceAllocator);
  EXPECT_EQ(info.GetDeviceType(), OrtMemoryInfoDeviceType_GPU);
  EXPECT_EQ(info.GetVendorId(), 0x10DEu);
  const Ort::MemoryInfo same("Cuda", OrtDeviceAllocator, 3, OrtMemTypeCPUInput);
  const Ort::MemoryInfo other("Cuda", OrtDeviceAllocator, 2, OrtMemTypeCPUInput);
  EXPECT_TRUE(info == same);
  EXPECT_TRUE(info != other);
  EXPECT_THAT(ErrorOf([] { Ort::MemoryInfo("Abacus", OrtDeviceAllocator, 0, OrtMemTypeDefault); }),
              AllOf(StartsWith("2: "), HasSubstr("Abacus")));
  const Ort::MemoryInfo npu("Abacus", OrtMemoryInfoDeviceType_NPU, 7, 1,
                            OrtDeviceMemoryType_HOST_ACCESSIBLE, 64, OrtDeviceAllocator);
  EXPECT_EQ(npu.GetDeviceType(), OrtMemoryInfoDeviceType_NPU);
  EXPECT_EQ(npu.GetDeviceMemoryType(), OrtDeviceMemoryType_HOST_ACCESSIBLE);
  EXPECT_EQ(npu.GetVendorId(), 7u);
}

TEST(MemoryInfoTest, TheCpuIsOneDevice) {
  const Ort::MemoryInfo first("Cpu", OrtArenaAllocator, 0, OrtMemTypeDefault);
  EXPECT_TRUE(first == Ort::MemoryInfo("Cpu", OrtArenaAllocator, 1, OrtMemTypeDefault));
  EXPECT_TRUE(first != Ort::MemoryInfo("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault));
}

TEST(AllocatorTest, DefaultIsOne) {
  OrtAllocator *first = nullptr, *second = nullptr;
  const OrtApi& api = Ort::GetApi();
  Ort::ThrowOnError(api.GetAllocatorWithDefaultOptions(&first));
  Ort::ThrowOnError(api.GetAllocatorWithDefaultOptions(&second));
  EXPECT_EQ(first, second);
  void* block = nullptr;
  Ort::ThrowOnError(api.AllocatorAlloc(first, 1000, &block));
  ASSERT_NE(block, nullptr);
  std::fill_n(static_cast<char*>(block), 1000, 'x');
  Ort::ThrowOnError(api.AllocatorFree(first, block));
  Ort::ThrowOnError(api.AllocatorFree(first, nullptr));
  EXPECT_THAT(Outcome(api.AllocatorAlloc(first, SIZE_MAX - 5, &block)), StartsWith("1: "));
  EXPECT_THAT(Outcome(api.AllocatorAlloc(nullptr, 1, &block)), HasSubstr("ort_allocator"));
}

}  // namespace
}  // namespace tenon::test
