#include "ir/tensor_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/proto_message.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

Result<Tensor> Read(const Message& message) {
  return ReadTensor(std::as_bytes(std::span(message.bytes())));
}

std::string TensorErrorOf(const Message& message) {
  const Result<Tensor> tensor = Read(message);
  return tensor ? "" : tensor.error().message();
}

Message TensorOf(DataType type, const std::vector<int64_t>& dims) {
  return Message()
      .Ints(TensorField::kDims, dims)
      .Int(TensorField::kDataType, static_cast<int64_t>(type))
      .Bytes(TensorField::kName, "t");
}

struct TypedCase {
  DataType type;
  TensorField field;
  std::vector<int64_t> dims;
  std::vector<int64_t> entries;
  std::vector<uint8_t> bytes;  // what the tensor then holds, little-endian
};

const std::vector<TypedCase>& TypedCases() {
  static const std::vector<TypedCase> cases = {
      {DataType::kInt32, TensorField::kInt32Data, {2}, {-1, 258}, {255, 255, 255, 255, 2, 1, 0, 0}},
      {DataType::kInt16, TensorField::kInt32Data, {2}, {-2, 258}, {254, 255, 2, 1}},
      {DataType::kUint16, TensorField::kInt32Data, {1}, {65535}, {255, 255}},
      {DataType::kInt8, TensorField::kInt32Data, {2}, {-1, 7}, {255, 7}},
      {DataType::kUint8, TensorField::kInt32Data, {1, 1}, {200}, {200}},
      {DataType::kBool, TensorField::kInt32Data, {3}, {0, 1, 2}, {0, 1, 1}},
      {DataType::kFloat16, TensorField::kInt32Data, {1}, {0x3c00}, {0x00, 0x3c}},
      {DataType::kBfloat16, TensorField::kInt32Data, {1}, {0x3f80}, {0x80, 0x3f}},
      {DataType::kFloat8e4m3fn, TensorField::kInt32Data, {1}, {0x38}, {0x38}},
      {DataType::kFloat8e8m0, TensorField::kInt32Data, {1}, {0x7f}, {0x7f}},
      {DataType::kInt4, TensorField::kInt32Data, {3}, {0x21, 0x0f}, {0x21, 0x0f}},
      {DataType::kUint4, TensorField::kInt32Data, {2}, {0xf0}, {0xf0}},
      {DataType::kFloat4e2m1, TensorField::kInt32Data, {1}, {0x05}, {0x05}},
      {DataType::kInt2, TensorField::kInt32Data, {5}, {0xe4, 0x02}, {0xe4, 0x02}},
      {DataType::kUint2, TensorField::kInt32Data, {4}, {0x1b}, {0x1b}},
      {DataType::kFloat6e2m3,
       TensorField::kInt32Data,
       {5},
       {0x3f, 0x01, 0x20, 0x15, 0x0a},
       {0x7f, 0x00, 0x56, 0x0a}},
      {DataType::kFloat6e3m2, TensorField::kInt32Data, {0}, {}, {}},
      {DataType::kInt64,
       TensorField::kInt64Data,
       {1},
       {-3},
       {253, 255, 255, 255, 255, 255, 255, 255}},
      {DataType::kUint32, TensorField::kUint64Data, {1}, {0xfffffffe}, {254, 255, 255, 255}},
      {DataType::kUint64,
       TensorField::kUint64Data,
       {1},
       {-1},
       {255, 255, 255, 255, 255, 255, 255, 255}},
      {DataType::kInt64, TensorField::kInt64Data, {2, 0}, {}, {}},
      {DataType::kInt64, TensorField::kInt64Data, {}, {1}, {1, 0, 0, 0, 0, 0, 0, 0}},
  };
  return cases;
}

void ExpectBytes(const Result<Tensor>& tensor, const TypedCase& c) {
  ASSERT_TRUE(tensor) << tensor.error().message();
  EXPECT_EQ(tensor->type(), c.type);
  EXPECT_EQ(tensor->shape(), Shape{std::span<const int64_t>(c.dims)});
  ASSERT_EQ(tensor->bytes(), c.bytes.size());
  const auto* bytes = static_cast<const uint8_t*>(tensor->raw());
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + tensor->bytes()), c.bytes);
}

TEST(TensorReaderTest, ReadsNumbersOfEveryTypedField) {
  for (const TypedCase& c : TypedCases()) {
    SCOPED_TRACE(DataTypeName(c.type));
    ExpectBytes(Read(TensorOf(c.type, c.dims).Ints(c.field, c.entries)), c);
    Message unpacked = TensorOf(c.type, c.dims);
    for (const int64_t entry : c.entries) unpacked.Int(c.field, entry);
    ExpectBytes(Read(unpacked), c);
  }
}

TEST(TensorReaderTest, ReadsRawDataOfEveryType) {
  for (const TypedCase& c : TypedCases()) {
    SCOPED_TRACE(DataTypeName(c.type));
    const std::string raw(c.bytes.begin(), c.bytes.end());
    ExpectBytes(Read(TensorOf(c.type, c.dims).Bytes(TensorField::kRawData, raw)), c);
  }
}

TEST(TensorReaderTest, ReadsFloatsAndComplexNumbers) {
  const Result<Tensor> floats =
      Read(TensorOf(DataType::kFloat, {2, 1}).Floats(TensorField::kFloatData, {1.5f, -2}));
  ASSERT_TRUE(floats) << floats.error().message();
  EXPECT_EQ(floats->data<float>()[1], -2);
  const Result<Tensor> complex = Read(TensorOf(DataType::kComplex64, {2})
                                          .Floats(TensorField::kFloatData, {1, 2, 3})
                                          .Float(TensorField::kFloatData, 4));
  ASSERT_TRUE(complex) << complex.error().message();
  EXPECT_EQ(static_cast<const float*>(complex->raw())[3], 4);
}

TEST(TensorReaderTest, ReadsStrings) {
  const Result<Tensor> tensor = Read(TensorOf(DataType::kString, {2})
                                         .Bytes(TensorField::kStringData, "")
                                         .Bytes(TensorField::kStringData, std::string("a\0b", 3)));
  ASSERT_TRUE(tensor) << tensor.error().message();
  EXPECT_EQ(tensor->data<std::string>()[0], "");
  EXPECT_EQ(tensor->data<std::string>()[1], std::string("a\0b", 3));
}

TEST(TensorReaderTest, BooleansOfRawDataAreZeroOrOne) {
  const auto bytes =
      std::make_shared<std::string>(TensorOf(DataType::kBool, {3})
                                        .Bytes(TensorField::kRawData, std::string("\0\1\7", 3))
                                        .bytes());
  ReadContext context{WireErrors(bytes->data()), bytes, ExternalData({}), 10};
  const Result<NamedTensor> named = ReadTensorProto(*bytes, context);
  ASSERT_TRUE(named) << named.error().message();
  EXPECT_EQ(static_cast<const uint8_t*>(named->tensor.raw())[2], 1);
}

// A large float tensor as raw_data or as float_data, at every offset from an aligned address.
TEST(TensorReaderTest, LargeTensorsAreViewsAtAnyAddressIfTheReaderAllows) {
  std::vector<float> values(5000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 4;
  const std::string raw(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(float));
  size_t unaligned = 0;
  for (size_t i = 0; i < 8; ++i) {
    Message message =
        TensorOf(DataType::kFloat, {5000}).Bytes(TensorField::kDocString, std::string(i / 2, 'd'));
    message = i % 2 ? message.Bytes(TensorField::kRawData, raw)
                    : message.Bytes(TensorField::kFloatData, raw);
    const auto bytes = std::make_shared<std::string>(message.bytes());
    ReadContext context{WireErrors(bytes->data()), bytes, ExternalData({}), 10};
    const Result<NamedTensor> any = ReadTensorProto(*bytes, context, ViewAlignment::kAny);
    ASSERT_TRUE(any) << any.error().message();
    const auto* begin = static_cast<const char*>(any->tensor.raw());
    EXPECT_TRUE(begin > bytes->data() && begin < bytes->data() + bytes->size());
    EXPECT_EQ(std::string_view(begin, any->tensor.bytes()), raw);
    unaligned += any->tensor.is_aligned() ? 0 : 1;
    const Result<NamedTensor> aligned = ReadTensorProto(*bytes, context);
    ASSERT_TRUE(aligned) << aligned.error().message();
    EXPECT_TRUE(aligned->tensor.is_aligned());
    EXPECT_EQ(aligned->tensor.data<float>()[4999], values[4999]);
  }
  EXPECT_EQ(unaligned, 6u);
}

TEST(TensorReaderTest, NamesWhatDoesNotFit) {
  const int64_t huge = int64_t{1} << 62;
  EXPECT_THAT(TensorErrorOf(TensorOf(DataType::kFloat, {4})),
              HasSubstr("tensor 't': expected 4 entries in float_data for float elements of shape "
                        "[4], got 0"));
  EXPECT_THAT(TensorErrorOf(TensorOf(DataType::kFloat, {1}).Ints(TensorField::kInt64Data, {1})),
              HasSubstr("expected the elements of a float tensor in float_data, got some in "
                        "int64_data"));
  EXPECT_THAT(TensorErrorOf(TensorOf(DataType::kInt32, {2})
                                .Ints(TensorField::kInt32Data, {1})
                                .Ints(TensorField::kInt64Data, {1})),
              HasSubstr("expected the elements of a int32 tensor in int32_data"));
  EXPECT_THAT(TensorErrorOf(TensorOf(DataType::kInt32, {1})
                                .Ints(TensorField::kInt32Data, {1})
                                .Bytes(TensorField::kRawData, "abcd")),
              HasSubstr("given more than once"));
  EXPECT_THAT(TensorErrorOf(TensorOf(DataType::kFloat, {-1})),
              HasSubstr("expected dimensions >= 0"));
  EXPECT_THAT(TensorErrorOf(TensorOf(DataType::kFloat, {huge, 4})), HasSubstr("overflow"));
  EXPECT_THAT(TensorErrorOf(TensorOf(DataType::kFloat, {huge})),
              HasSubstr("do not fit into memory"));
  const auto addressable = static_cast<int64_t>(SIZE_MAX / 64);
  EXPECT_THAT(TensorErrorOf(TensorOf(DataType::kFloat, {addressable})), HasSubstr("got 0"));
  EXPECT_THAT(TensorErrorOf(TensorOf(DataType::kString, {1}).Bytes(TensorField::kRawData, "a")),
              HasSubstr("string_data, got raw bytes"));
  EXPECT_THAT(TensorErrorOf(TensorOf(DataType{29}, {1})),
              HasSubstr("29 is not the number of an element type"));
  EXPECT_THAT(TensorErrorOf(TensorOf(DataType::kFloat, {}).Bytes(TensorField::kSegment, "")),
              HasSubstr("segments"));
  EXPECT_THAT(TensorErrorOf(TensorOf(DataType::kFloat, {1}).Bytes(TensorField::kFloatData, "abc")),
              HasSubstr("ends inside a number"));
}

std::string SparseErrorOf(const std::vector<int64_t>& dims, const std::vector<int64_t>& index_dims,
                          const std::vector<int64_t>& indices, int64_t count = 2) {
  const Message values = TensorOf(DataType::kFloat, {count})
                             .Floats(TensorField::kFloatData, std::vector<float>(count, 1));
  const Message index_tensor =
      TensorOf(DataType::kInt64, index_dims).Ints(TensorField::kInt64Data, indices);
  const std::string bytes = Message()
                                .Add(SparseTensorField::kValues, values)
                                .Add(SparseTensorField::kIndices, index_tensor)
                                .Ints(SparseTensorField::kDims, dims)
                                .bytes();
  ReadContext context{WireErrors(bytes.data()), nullptr, ExternalData({}), 10};
  const auto tensor = ReadSparseTensorProto(bytes, context);
  if (!tensor) return tensor.error().message();
  EXPECT_EQ(tensor->name, "t");
  return "";
}

TEST(TensorReaderTest, ChecksSparseIndices) {
  EXPECT_EQ(SparseErrorOf({3, 4}, {2}, {0, 11}), "");
  EXPECT_EQ(SparseErrorOf({3, 4}, {2, 2}, {0, 3, 2, 0}), "");
  EXPECT_EQ(SparseErrorOf({3, 4}, {0}, {}, 0), "");
  EXPECT_THAT(SparseErrorOf({3, 4}, {2}, {0, 12}),
              HasSubstr("index 12 of value 1 is outside [0, 12)"));
  EXPECT_THAT(SparseErrorOf({3, 4}, {2}, {-1, 2}), HasSubstr("index -1 of value 0"));
  EXPECT_THAT(SparseErrorOf({3, 4}, {2}, {5, 5}), HasSubstr("do not ascend"));
  EXPECT_THAT(SparseErrorOf({3, 4}, {2, 2}, {1, 1, 1, 0}), HasSubstr("do not ascend"));
  EXPECT_THAT(SparseErrorOf({3, 4}, {2, 2}, {0, 4, 1, 0}), HasSubstr("outside [0, 4)"));
  EXPECT_THAT(SparseErrorOf({3, 4}, {3}, {1, 2, 3}),
              HasSubstr("expected int64 indices of shape [2]"));
  EXPECT_THAT(SparseErrorOf({-3, 4}, {2}, {1, 2}), HasSubstr("expected dimensions >= 0"));
}

}  // namespace
}  // namespace tenon
