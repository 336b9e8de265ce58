#include "ir/external_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ir/proto_message.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

class ExternalDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    Write("data.bin", "0123456789abcdef");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  static Message External(std::initializer_list<Message> entries, std::string_view raw = "") {
    Message tensor = Message()
                         .Ints(TensorField::kDims, {4})
                         .Int(TensorField::kDataType, static_cast<int64_t>(DataType::kUint8))
                         .Bytes(TensorField::kName, "w")
                         .Int(TensorField::kDataLocation, 1);
    if (!raw.empty()) tensor.Bytes(TensorField::kRawData, raw);
    for (const Message& entry : entries) tensor.Add(TensorField::kExternalData, entry);
    return ModelMessage(Message().Add(GraphField::kInitializer, tensor));
  }

  // The elements of 'w', or the error.
  std::string Load(const Message& model) {
    const Result<Model> read = ReadModel(Write("model.onnx", model.bytes()));
    if (!read) return read.error().message();
    const Tensor& w = *read->graph->ConstantOf(read->graph->FindValue("w"));
    return std::string(static_cast<const char*>(w.raw()), w.bytes());
  }

  const std::string folder_ = ::testing::TempDir() + "tenon_external_data_" +
                              ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ExternalDataTest, MapsTheRegionThatAModelNames) {
  EXPECT_EQ(Load(External({Entry("location", "data.bin"), Entry("offset", "4"),
                           Entry("length", "4"), Entry("checksum", "?")})),
            "4567");
  EXPECT_EQ(Load(External({Entry("location", "data.bin")})), "0123");
  EXPECT_EQ(Load(External({Entry("location", "./data.bin"), Entry("offset", "12")})), "cdef");
}

TEST_F(ExternalDataTest, RefusesWhatIsNotInTheFile) {
  const auto with = [&](std::string_view key, std::string_view value) {
    return Load(External({Entry("location", "data.bin"), Entry(key, value)}));
  };
  EXPECT_THAT(with("offset", "13"), HasSubstr("4 bytes at offset 13 exceed the file's 16 bytes"));
  EXPECT_THAT(with("offset", "18446744073709551615"), HasSubstr("exceed the file's 16 bytes"));
  EXPECT_THAT(with("offset", "-1"), HasSubstr("expected a number of bytes for 'offset', got '-1'"));
  EXPECT_THAT(with("length", "3"), HasSubstr("the tensor has 4 bytes, got a length of 3"));
  EXPECT_THAT(Load(External({Entry("offset", "1")})), HasSubstr("has no 'location'"));
  EXPECT_THAT(Load(External({Entry("location", "missing.bin")})), HasSubstr("missing.bin"));
}

TEST_F(ExternalDataTest, StaysInTheFolderOfTheModel) {
  Write("../tenon_outside.bin", "0123456789abcdef");
  for (const char* name : {"../tenon_outside.bin", "/etc/passwd", "a/../../tenon_outside.bin"}) {
    EXPECT_THAT(Load(External({Entry("location", name)})), HasSubstr("tensor 'w'")) << name;
  }
  std::filesystem::remove(folder_ + "/../tenon_outside.bin");
}

TEST_F(ExternalDataTest, HostileNamesAreReportedBeforeOtherErrors) {
  const Message model = External({Entry("location", "../../etc/passwd")}, std::string(4, 'r'));
  EXPECT_THAT(Load(model), HasSubstr("'../../etc/passwd' escapes model directory"));
  EXPECT_THAT(Load(External({Entry("location", "data.bin")}, std::string(4, 'r'))),
              HasSubstr("the elements are given more than once"));
}

TEST_F(ExternalDataTest, ModelsInMemoryNeedAFolder) {
  const Message model = External({Entry("location", "data.bin")});
  const auto bytes = std::as_bytes(std::span(model.bytes()));
  const Result<Model> refused = ReadModel(bytes, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("a model in memory has no folder"));
  EXPECT_TRUE(ReadModel(bytes, nullptr, {.external_data_folder = folder_}));
}

}  // namespace
}  // namespace tenon
