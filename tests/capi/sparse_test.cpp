// Sparse tensors and opaque values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capi/client.h"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;

class SparseTest : public testing::Test {
 protected:
  Ort::Value NewFloat(std::vector<int64_t> dense, ONNXTensorElementDataType type = kFloat) {
    OrtValue* value = nullptr;
    Ort::ThrowOnError(
        api_.CreateSparseTensorAsOrtValue(allocator_, dense.data(), dense.size(), type, &value));
    return Ort::Value(value);
  }
  std::string FillCoo(Ort::Value& value, const std::vector<int64_t>& indices, int64_t count = 3) {
    return Outcome(api_.FillSparseTensorCoo(value, cpu_, &count, 1, values_.data(), indices.data(),
                                            indices.size()));
  }
  std::string FillCsr(Ort::Value& value, const std::vector<int64_t>& inner,
                      const std::vector<int64_t>& outer) {
    const int64_t count = 3;
    return Outcome(api_.FillSparseTensorCsr(value, cpu_, &count, 1, values_.data(), inner.data(),
                                            inner.size(), outer.data(), outer.size()));
  }

  const OrtApi& api_ = Ort::GetApi();
  Ort::AllocatorWithDefaultOptions allocator_;
  const Ort::MemoryInfo cpu_ = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  std::vector<float> values_ = {1, 2, 3};
};

template <class T>
std::vector<T> IndicesOf(const Ort::Value& value, OrtSparseIndicesFormat format) {
  size_t count = 0;
  const T* const indices = value.GetSparseTensorIndicesData<T>(format, count);
  return {indices, indices + count};
}

TEST_F(SparseTest, HoldsCoordinates) {
  Ort::Value value = NewFloat({3, 4});
  EXPECT_EQ(value.GetSparseFormat(), ORT_SPARSE_UNDEFINED);
  ASSERT_EQ(FillCoo(value, {0, 0, 1, 2, 2, 3}), "");
  EXPECT_TRUE(value.IsSparseTensor());
  EXPECT_EQ(value.GetSparseFormat(), ORT_SPARSE_COO);
  EXPECT_THAT(value.GetTensorTypeAndShapeInfo().GetShape(), ElementsAre(3, 4));
  EXPECT_THAT(value.GetSparseTensorValuesTypeAndShapeInfo().GetShape(), ElementsAre(3));
  EXPECT_THAT(value.GetSparseTensorIndicesTypeShapeInfo(ORT_SPARSE_COO_INDICES).GetShape(),
              ElementsAre(3, 2));
  EXPECT_THAT(IndicesOf<int64_t>(value, ORT_SPARSE_COO_INDICES), ElementsAre(0, 0, 1, 2, 2, 3));
  const float* const elements = value.GetSparseTensorValues<float>();
  EXPECT_THAT(std::vector<float>(elements, elements + 3), ElementsAre(1, 2, 3));
  EXPECT_NE(elements, values_.data());
  EXPECT_THAT(FillCoo(value, {0, 1, 2}), HasSubstr("already"));
}

TEST_F(SparseTest, HoldsRowsAndBlocks) {
  Ort::Value rows = NewFloat({2, 4});
  ASSERT_EQ(FillCsr(rows, {0, 3, 1}, {0, 2, 3}), "");
  EXPECT_EQ(rows.GetSparseFormat(), ORT_SPARSE_CSRC);
  EXPECT_THAT(IndicesOf<int64_t>(rows, ORT_SPARSE_CSR_INNER_INDICES), ElementsAre(0, 3, 1));
  EXPECT_THAT(IndicesOf<int64_t>(rows, ORT_SPARSE_CSR_OUTER_INDICES), ElementsAre(0, 2, 3));
  EXPECT_THAT(ErrorOf([&] { IndicesOf<int64_t>(rows, ORT_SPARSE_COO_INDICES); }),
              HasSubstr("another format"));

  Ort::Value blocks = NewFloat({4, 4});
  const int64_t values_shape[] = {1, 1, 3}, indices_shape[] = {2, 1};
  const int32_t indices[] = {0, 1};
  EXPECT_THAT(Outcome(api_.FillSparseTensorBlockSparse(blocks, cpu_, values_shape, 3,
                                                       values_.data(), nullptr, 2, indices)),
              HasSubstr("indices_shape_data"));
  EXPECT_THAT(Outcome(api_.FillSparseTensorBlockSparse(blocks, cpu_, values_shape, 3,
                                                       values_.data(), indices_shape, 2, nullptr)),
              HasSubstr("indices_data"));
  ASSERT_EQ(Outcome(api_.FillSparseTensorBlockSparse(blocks, cpu_, values_shape, 3, values_.data(),
                                                     indices_shape, 2, indices)),
            "");
  EXPECT_EQ(blocks.GetSparseFormat(), ORT_SPARSE_BLOCK_SPARSE);
  EXPECT_THAT(IndicesOf<int32_t>(blocks, ORT_SPARSE_BLOCK_SPARSE_INDICES), ElementsAre(0, 1));
}

TEST_F(SparseTest, LiesInTheCallersMemory) {
  const int64_t dense[] = {3, 4}, count[] = {3};
  OrtValue* raw = nullptr;
  ASSERT_EQ(Outcome(api_.CreateSparseTensorWithValuesAsOrtValue(cpu_, values_.data(), dense, 2,
                                                                count, 1, kFloat, &raw)),
            "");
  const Ort::Value value(raw);
  int64_t indices[] = {0, 5, 11};
  ASSERT_EQ(Outcome(api_.UseCooIndices(raw, indices, 3)), "");
  EXPECT_EQ(value.GetSparseTensorValues<float>(), values_.data());
  size_t index_count = 0;
  EXPECT_EQ(value.GetSparseTensorIndicesData<int64_t>(ORT_SPARSE_COO_INDICES, index_count),
            indices);
  EXPECT_THAT(Outcome(api_.UseCooIndices(raw, indices, 3)), HasSubstr("already"));
}

TEST_F(SparseTest, RowsAndBlocksLieInTheCallersMemory) {
  const int64_t dense[] = {2, 4}, count[] = {3};
  OrtValue* raw = nullptr;
  ASSERT_EQ(Outcome(api_.CreateSparseTensorWithValuesAsOrtValue(cpu_, values_.data(), dense, 2,
                                                                count, 1, kFloat, &raw)),
            "");
  const Ort::Value rows(raw);
  int64_t inner[] = {0, 3, 1}, outer[] = {0, 2, 3};
  EXPECT_NE(Outcome(api_.UseCsrIndices(raw, inner, 2, outer, 3)), "");
  ASSERT_EQ(Outcome(api_.UseCsrIndices(raw, inner, 3, outer, 3)), "");
  size_t indices = 0;
  EXPECT_EQ(rows.GetSparseTensorIndicesData<int64_t>(ORT_SPARSE_CSR_INNER_INDICES, indices), inner);

  const int64_t square[] = {4, 4}, blocks_shape[] = {1, 1, 3}, places_shape[] = {2, 1};
  ASSERT_EQ(Outcome(api_.CreateSparseTensorWithValuesAsOrtValue(cpu_, values_.data(), square, 2,
                                                                blocks_shape, 3, kFloat, &raw)),
            "");
  const Ort::Value blocks(raw);
  int32_t places[] = {0, 1};
  ASSERT_EQ(Outcome(api_.UseBlockSparseIndices(raw, places_shape, 2, places)), "");
  EXPECT_EQ(blocks.GetSparseTensorIndicesData<int32_t>(ORT_SPARSE_BLOCK_SPARSE_INDICES, indices),
            places);
}

TEST_F(SparseTest, WrongIndicesAreErrors) {
  const struct {
    std::vector<int64_t> indices;
    const char* text;
  } kCases[] = {
      {{0, 1}, "3 values need 3 linear indices or 6 coordinates, got 2"},
      {{0, 1, 12}, "index 12 is outside [0, 12)"},
      {{0, -1, 2}, "index -1"},
      {{0, 0, 1, 2, 3, 3}, "index 3 is outside [0, 3)"},
  };
  for (const auto& [indices, text] : kCases) {
    Ort::Value value = NewFloat({3, 4});
    EXPECT_THAT(FillCoo(value, indices), HasSubstr(text));
  }
  Ort::Value rows = NewFloat({2, 4});
  EXPECT_THAT(FillCsr(rows, {0, 3}, {0, 2, 3}), HasSubstr("inner"));
  EXPECT_THAT(FillCsr(rows, {0, 3, 1}, {0, 3}), HasSubstr("outer"));
  EXPECT_THAT(FillCsr(rows, {0, 3, 1}, {0, 4, 3}), HasSubstr("ascend"));
  EXPECT_THAT(FillCsr(rows, {0, 4, 1}, {0, 2, 3}), HasSubstr("outside"));
  Ort::Value cube = NewFloat({2, 2, 2});
  EXPECT_THAT(FillCsr(cube, {0, 1, 1}, {0, 2, 3}), HasSubstr("matrix"));
  EXPECT_THAT(FillCoo(cube, {0, 1, 2}, -3), HasSubstr("-3"));
}

TEST_F(SparseTest, HoldsStringsAndNothing) {
  Ort::Value strings = NewFloat({4}, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  const char* const texts[] = {"a", "b"};
  const int64_t count = 2, indices[] = {1, 3};
  ASSERT_EQ(Outcome(api_.FillSparseTensorCoo(strings, cpu_, &count, 1, texts, indices, 2)), "");
  const void* raw = nullptr;
  EXPECT_THAT(Outcome(api_.GetSparseTensorValues(strings, &raw)), HasSubstr("strings"));
  Ort::Value empty = NewFloat({3, 4});
  EXPECT_EQ(FillCoo(empty, {}, 0), "");
  EXPECT_EQ(empty.GetSparseFormat(), ORT_SPARSE_COO);
}

TEST_F(SparseTest, DenseTensorsAndNullAreErrors) {
  std::vector<float> dense = {1};
  Ort::Value value = TensorOver(dense, {1});
  OrtSparseFormat format;
  EXPECT_THAT(Outcome(api_.GetSparseTensorFormat(value, &format)), HasSubstr("sparse"));
  EXPECT_THAT(Outcome(api_.GetSparseTensorFormat(nullptr, &format)), HasSubstr("null"));
  EXPECT_THAT(FillCoo(value, {0, 1, 2}), HasSubstr("sparse"));
}

TEST(OpaqueTest, GivesBackItsBytes) {
  const OrtApi& api = Ort::GetApi();
  const double data = 2.5;
  OrtValue* raw = nullptr;
  ASSERT_EQ(Outcome(api.CreateOpaqueValue("domain", "Type", &data, sizeof(data), &raw)), "");
  const Ort::Value value(raw);
  double read = 0;
  EXPECT_EQ(Outcome(api.GetOpaqueValue("domain", "Type", raw, &read, sizeof(read))), "");
  EXPECT_EQ(read, data);
  ONNXType kind;
  EXPECT_EQ(Outcome(api.GetValueType(raw, &kind)), "");
  EXPECT_EQ(kind, ONNX_TYPE_OPAQUE);
  EXPECT_EQ(value.GetTypeInfo().GetONNXType(), ONNX_TYPE_OPAQUE);
  EXPECT_THAT(Outcome(api.GetOpaqueValue("domain", "Other", raw, &read, sizeof(read))),
              HasSubstr("domain.Other"));
  EXPECT_THAT(Outcome(api.GetOpaqueValue("domain", "Type", raw, &read, 4)), HasSubstr("8"));
  std::vector<float> dense = {1};
  EXPECT_THAT(Outcome(api.GetOpaqueValue("domain", "Type", TensorOver(dense, {1}), &read, 8)),
              HasSubstr("opaque"));
}

}  // namespace
}  // namespace tenon::test
