// Sessions through the C++ classes: creating them, querying them, and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class ModelFile {
 public:
  explicit ModelFile(const std::string& bytes) : path_(folder_.Write("model.onnx", bytes)) {}
  const std::string& path() const { return path_; }

 private:
  const tenon::TemporaryFolder folder_;
  const std::string path_;
};

TEST(SessionTest, DescribesInputsAndOutputs) {
  const Ort::Session session = Open(AddReluModel());
  EXPECT_THAT(session.GetInputNames(), ElementsAre("x", "y"));
  EXPECT_THAT(session.GetOutputNames(), ElementsAre("z"));
  const Ort::TypeInfo type = session.GetInputTypeInfo(0);
  EXPECT_EQ(type.GetONNXType(), ONNX_TYPE_TENSOR);
  const auto tensor = type.GetTensorTypeAndShapeInfo();
  EXPECT_EQ(tensor.GetElementType(), kFloat);
  EXPECT_TRUE(tensor.HasShape());
  EXPECT_THAT(tensor.GetShape(), ElementsAre(-1, 3));
  const std::vector<const char*> symbols = tensor.GetSymbolicDimensions();
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_STREQ(symbols[0], "n");
  EXPECT_STREQ(symbols[1], "");
  EXPECT_THAT(ErrorOf([&] { tensor.GetElementCount(); }), StartsWith("1: "));
  EXPECT_THAT(session.GetOutputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape(),
              ElementsAre(-1, 3));
}

TEST(SessionTest, DescribesSequencesAndUnknownShapes) {
  const std::string tensor = TensorTypeWithoutShape(kFloat);
  const Ort::Session session = Open(ModelBuilder()
                                        .Input("s", SequenceType(tensor))
                                        .Input("t", tensor)
                                        .Node("Identity", {"s"}, {"u"})
                                        .Node("Identity", {"t"}, {"v"})
                                        .Output("u", SequenceType(tensor))
                                        .Output("v", tensor)
                                        .Bytes());
  const Ort::TypeInfo type = session.GetInputTypeInfo(0);
  EXPECT_EQ(type.GetONNXType(), ONNX_TYPE_SEQUENCE);
  const Ort::TypeInfo element = type.GetSequenceTypeInfo().GetSequenceElementType();
  EXPECT_EQ(element.GetONNXType(), ONNX_TYPE_TENSOR);
  EXPECT_EQ(element.GetTensorTypeAndShapeInfo().GetElementType(), kFloat);
  const OrtTensorTypeAndShapeInfo* none = nullptr;
  Ort::ThrowOnError(Ort::GetApi().CastTypeInfoToTensorInfo(type, &none));
  EXPECT_EQ(none, nullptr);
  const Ort::TypeInfo unknown = session.GetInputTypeInfo(1);
  EXPECT_FALSE(unknown.GetTensorTypeAndShapeInfo().HasShape());
  EXPECT_EQ(unknown.GetTensorTypeAndShapeInfo().GetDimensionsCount(), 0u);
}

TEST(SessionTest, OutputsAreDescribedInTheModelsOwnNames) {
  const Ort::Session session = Open(ModelBuilder()
                                        .Input("x", TensorType(kFloat, {"", "n", "", 4}))
                                        .Node("Relu", {"x"}, {"y"})
                                        .Output("y", TensorTypeWithoutShape(kFloat))
                                        .Bytes());
  const Ort::TypeInfo type = session.GetOutputTypeInfo(0);
  const auto tensor = type.GetTensorTypeAndShapeInfo();
  EXPECT_THAT(tensor.GetShape(), ElementsAre(-1, -1, -1, 4));
  const std::vector<const char*> symbols = tensor.GetSymbolicDimensions();
  EXPECT_STREQ(symbols[0], "");
  EXPECT_STREQ(symbols[1], "n");
  EXPECT_STREQ(symbols[2], "");
}

TEST(SessionTest, OverridableInitializersAreNoInputs) {
  const std::string vector = TensorType(kFloat, {2});
  Ort::Session session = Open(ModelBuilder()
                                  .Input("x", vector)
                                  .Input("w", vector)
                                  .Initializer("w", {10, 20})
                                  .Node("Add", {"x", "w"}, {"y"})
                                  .Output("y", vector)
                                  .Bytes());
  EXPECT_THAT(session.GetInputNames(), ElementsAre("x"));
  EXPECT_THAT(session.GetOverridableInitializerNames(), ElementsAre("w"));
  EXPECT_THAT(session.GetOverridableInitializerTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape(),
              ElementsAre(2));
  std::vector<float> x = {1, 2}, w = {5, 5};
  const Ort::Value feeds[] = {TensorOver(x, {2}), TensorOver(w, {2})};
  const char* const names[] = {"x", "w"};
  const char* const output = "y";
  EXPECT_THAT(ElementsOf<float>(session.Run({}, names, feeds, 1, &output, 1)[0]),
              ElementsAre(11, 22));
  EXPECT_THAT(ElementsOf<float>(session.Run({}, names, feeds, 2, &output, 1)[0]),
              ElementsAre(6, 7));
}

TEST(SessionTest, ReadsFilesAndReleasesTheBytesItWasGiven) {
  const ModelFile file(AddReluModel());
  EXPECT_EQ(Ort::Session(Env(), file.path().c_str(), Ort::SessionOptions()).GetInputCount(), 2u);
  const std::string vector = TensorType(kFloat, {2});
  auto bytes = std::make_unique<std::string>(ModelBuilder()
                                                 .Input("x", vector)
                                                 .Initializer("w", {10, 20})
                                                 .Node("Add", {"x", "w"}, {"y"})
                                                 .Output("y", vector)
                                                 .Bytes());
  Ort::Session session = Open(*bytes);
  bytes->assign(bytes->size(), '\xff');
  bytes.reset();
  std::vector<float> x = {1, 2};
  const Ort::Value feed = TensorOver(x, {2});
  const char* const input = "x";
  const char* const output = "y";
  EXPECT_THAT(ElementsOf<float>(session.Run({}, &input, &feed, 1, &output, 1)[0]),
              ElementsAre(11, 22));
}

TEST(SessionTest, TellsWhatIsWrongWithAModel) {
  const std::string vector = TensorType(kFloat, {2});
  const ModelBuilder unknown_operator =
      ModelBuilder().Input("x", vector).Node("Frobnicate", {"x"}, {"y"}).Output("y", vector);
  const ModelBuilder unknown_name =
      ModelBuilder().Input("x", vector).Node("Relu", {"nowhere"}, {"y"}).Output("y", vector);
  const struct {
    std::string bytes;
    std::vector<const char*> texts;
  } kCases[] = {
      {"no protobuf at all", {"7: "}},
      {AddReluModel().substr(0, 40), {"7: "}},
      {unknown_operator.Bytes(), {"Frobnicate"}},
      {unknown_name.Bytes(), {"10: ", "nowhere"}},
  };
  for (const auto& broken : kCases) {
    const std::string error = ErrorOf([&] { Open(broken.bytes); });
    for (const char* text : broken.texts) EXPECT_THAT(error, HasSubstr(text));
  }
  EXPECT_THAT(ErrorOf([] { Ort::Session(Env(), "no/such/file.onnx", Ort::SessionOptions()); }),
              AllOf(StartsWith("3: "), HasSubstr("no/such/file.onnx")));
}

TEST(SessionTest, NullArgumentsAreNamed) {
  const OrtApi& api = Ort::GetApi();
  OrtSession* out = nullptr;
  const std::string model = AddReluModel();
  const Ort::SessionOptions options;
  EXPECT_THAT(Outcome(api.CreateSession(nullptr, "x", options, &out)),
              AllOf(StartsWith("2: "), HasSubstr("env")));
  EXPECT_THAT(Outcome(api.CreateSession(Env(), nullptr, options, &out)), HasSubstr("model_path"));
  EXPECT_THAT(Outcome(api.CreateSession(Env(), "x", options, nullptr)), HasSubstr("out"));
  EXPECT_THAT(Outcome(api.CreateSessionFromArray(Env(), nullptr, 1, options, &out)),
              HasSubstr("model_data"));
  EXPECT_EQ(out, nullptr);
  // Options alone may be left out.
  Ort::ThrowOnError(api.CreateSessionFromArray(Env(), model.data(), model.size(), nullptr, &out));
  const Ort::Session session(out);
  size_t count = 0;
  EXPECT_THAT(Outcome(api.SessionGetInputCount(nullptr, &count)), HasSubstr("session"));
  EXPECT_THAT(Outcome(api.SessionGetInputCount(out, nullptr)), HasSubstr("out"));
  OrtTypeInfo* type = nullptr;
  EXPECT_THAT(Outcome(api.SessionGetInputTypeInfo(out, 2, &type)),
              AllOf(StartsWith("2: "), HasSubstr("2 inputs")));
}

TEST(SessionTest, MetadataOutlivesTheSession) {
  Ort::ModelMetadata metadata{nullptr};
  {
    const std::string vector = TensorType(kFloat, {2});
    const Ort::Session session = Open(ModelBuilder()
                                          .Input("x", vector)
                                          .Node("Relu", {"x"}, {"y"})
                                          .Output("y", vector)
                                          .Metadata("labels", "cat,dog")
                                          .Metadata("empty", "")
                                          .Bytes());
    metadata = session.GetModelMetadata();
  }
  const Ort::AllocatorWithDefaultOptions allocator;
  EXPECT_STREQ(metadata.GetProducerNameAllocated(allocator).get(), "tests");
  EXPECT_STREQ(metadata.GetGraphNameAllocated(allocator).get(), "small");
  EXPECT_STREQ(metadata.GetDomainAllocated(allocator).get(), "org.example");
  EXPECT_STREQ(metadata.GetDescriptionAllocated(allocator).get(), "a small model");
  EXPECT_STREQ(metadata.GetGraphDescriptionAllocated(allocator).get(), "a small graph");
  EXPECT_EQ(metadata.GetVersion(), 7);
  std::vector<std::string> keys;
  for (const auto& key : metadata.GetCustomMetadataMapKeysAllocated(allocator)) {
    keys.emplace_back(key.get());
  }
  EXPECT_THAT(keys, testing::UnorderedElementsAre("labels", "empty"));
  EXPECT_STREQ(metadata.LookupCustomMetadataMapAllocated("labels", allocator).get(), "cat,dog");
  EXPECT_EQ(metadata.LookupCustomMetadataMapAllocated("none", allocator), nullptr);
}

TEST(SessionTest, AllocatorIsThatOfTheSession) {
  const Ort::Session session = Open(AddReluModel());
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  Ort::Allocator allocator(session, cpu);
  Ort::MemoryAllocation block = allocator.GetAllocation(100);
  EXPECT_NE(block.get(), nullptr);
  EXPECT_EQ(allocator.GetInfo().GetAllocatorName(), "Cpu");
  const Ort::MemoryInfo gpu("Cuda", OrtDeviceAllocator, 0, OrtMemTypeDefault);
  EXPECT_THAT(ErrorOf([&] { Ort::Allocator(session, gpu); }), HasSubstr("Cuda"));
}

}  // namespace
}  // namespace tenon::test
