// Initializers from clients, external data, free dimensions, and the destination of optimized
// models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <optional>

#include "base/temporary_folder.h"
#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// z = x + w; w is {10, 20, 30}, or lies in a file.
std::string AddModel(bool is_external) {
  ModelBuilder builder;
  builder.Input("x", TensorType(kFloat, {DeclaredDim("n", "DATA_BATCH"), 3}));
  if (is_external) {
    builder.ExternalInitializer("w", 3, "weights.bin", 4);
  } else {
    builder.Initializer("w", {10, 20, 30});
  }
  return builder.Node("Add", {"x", "w"}, {"z"}).Output("z", TensorTypeWithoutShape(kFloat)).Bytes();
}

std::vector<float> RunOnOnes(Ort::Session& session) {
  std::vector<float> ones = {1, 1, 1};
  const Ort::Value x = TensorOver(ones, {1, 3});
  const char* const inputs[] = {"x"};
  const char* const outputs[] = {"z"};
  return ElementsOf<float>(session.Run(Ort::RunOptions(), inputs, &x, 1, outputs, 1)[0]);
}

TEST(InitializerTest, AddedOnesReplaceThoseOfTheModel) {
  std::vector<float> weights = {1, 2, 3};
  const Ort::Value w = TensorOver(weights, {3});
  Ort::SessionOptions options;
  options.AddInitializer("w", w);
  options.AddInitializer("unknown", w);
  Ort::Session session = Open(AddModel(false), options);
  EXPECT_THAT(RunOnOnes(session), ElementsAre(2, 3, 4));
  EXPECT_THAT(ErrorOf([&] { options.AddInitializer("w", w); }), HasSubstr("already"));
  EXPECT_THAT(ErrorOf([&] { options.AddInitializer("v", nullptr); }), HasSubstr("null"));
}

TEST(InitializerTest, TypeAndShapeMustBeTheModels) {
  std::vector<float> weights = {1, 2};
  const Ort::Value w = TensorOver(weights, {2});
  Ort::SessionOptions options;
  options.AddInitializer("w", w);
  EXPECT_THAT(ErrorOf([&] { Open(AddModel(false), options); }),
              HasSubstr("initializer 'w': the model has float of shape [3], got float of shape"));
}

// z of z = x * w for x = {1, 1, 1}, in a session of its own with the client's w.
struct ProductSession {
  ProductSession(std::vector<float>& weights, OrtPrepackedWeightsContainer* container) {
    static const std::string model = ModelBuilder()
                                         .Input("x", TensorType(kFloat, {1, 3}))
                                         .Initializer("w", std::vector<float>(6), 2)
                                         .Node("MatMul", {"x", "w"}, {"z"})
                                         .Output("z", TensorTypeWithoutShape(kFloat))
                                         .Bytes();
    const Ort::Value w = TensorOver(weights, {3, 2});
    Ort::SessionOptions options;
    options.AddInitializer("w", w);
    session = container == nullptr
                  ? Ort::Session(Env(), model.data(), model.size(), options)
                  : Ort::Session(Env(), model.data(), model.size(), options, container);
    z = RunOnOnes(session);
  }
  Ort::Session session{nullptr};
  std::vector<float> z;
};

TEST(InitializerTest, SessionsOfOneContainerShareWhatTheFirstPacked) {
  std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  OrtPrepackedWeightsContainer* container = nullptr;
  Ort::ThrowOnError(Ort::GetApi().CreatePrepackedWeightsContainer(&container));
  std::optional<ProductSession> first(std::in_place, weights, container);
  EXPECT_THAT(first->z, ElementsAre(9, 12));
  // Clients may not do so; here it shows which session packed the weights again.
  weights = {1, 1, 1, 1, 1, 1};
  EXPECT_THAT(ProductSession(weights, container).z, ElementsAre(9, 12));
  EXPECT_THAT(ProductSession(weights, nullptr).z, ElementsAre(3, 3));
  first.reset();
  EXPECT_THAT(ProductSession(weights, container).z, ElementsAre(3, 3));
  Ort::GetApi().ReleasePrepackedWeightsContainer(container);
}

TEST(InitializerTest, ExternalOnesComeFromTheCaller) {
  const OrtApi& api = Ort::GetApi();
  EXPECT_THAT(ErrorOf([&] { Open(AddModel(true)); }), HasSubstr("weights.bin"));
  std::vector<float> weights = {4, 5, 6};
  const Ort::Value w = TensorOver(weights, {3});
  const OrtValue* const values[] = {w};
  const char* const names[] = {"w"};
  Ort::SessionOptions options;
  ASSERT_EQ(Outcome(api.AddExternalInitializers(options, names, values, 1)), "");
  Ort::Session session = Open(AddModel(true), options);
  EXPECT_THAT(RunOnOnes(session), ElementsAre(5, 6, 7));
  const char* const unknown[] = {"unknown"};
  ASSERT_EQ(Outcome(api.AddExternalInitializers(options, unknown, values, 1)), "");
  EXPECT_THAT(ErrorOf([&] { Open(AddModel(true), options); }), HasSubstr("'unknown'"));
}

TEST(InitializerTest, ExternalFilesComeFromMemory) {
  float file[] = {0, 7, 8, 9};
  const char* const names[] = {"weights.bin"};
  char* const buffers[] = {reinterpret_cast<char*>(file)};
  const size_t sizes[] = {sizeof(file)};
  Ort::SessionOptions options;
  ASSERT_EQ(Outcome(Ort::GetApi().AddExternalInitializersFromFilesInMemory(options, names, buffers,
                                                                           sizes, 1)),
            "");
  Ort::Session session = Open(AddModel(true), options);
  std::fill(std::begin(file), std::end(file), 0.f);
  EXPECT_THAT(RunOnOnes(session), ElementsAre(8, 9, 10));
  const size_t too_short[] = {8};
  ASSERT_EQ(Outcome(Ort::GetApi().AddExternalInitializersFromFilesInMemory(options, names, buffers,
                                                                           too_short, 1)),
            "");
  EXPECT_THAT(ErrorOf([&] { Open(AddModel(true), options); }), HasSubstr("exceed"));
}

// As WB-33 needs it.
TEST(InitializerTest, FilesInMemoryAreUsedWhereTheyAreIfTheyOutliveTheSession) {
  for (const char* outlives : {"0", "1"}) {
    float file[] = {0, 7, 8, 9};
    const char* const names[] = {"weights.bin"};
    char* const buffers[] = {reinterpret_cast<char*>(file)};
    const size_t sizes[] = {sizeof(file)};
    Ort::SessionOptions options;
    options.SetGraphOptimizationLevel(ORT_DISABLE_ALL);
    options.AddConfigEntry("tenon.model_bytes_outlive_session", outlives);
    ASSERT_EQ(Outcome(Ort::GetApi().AddExternalInitializersFromFilesInMemory(options, names,
                                                                             buffers, sizes, 1)),
              "");
    Ort::Session session = Open(AddModel(true), options);
    file[1] = 100;  // a client may not do so; it shows who reads the file
    EXPECT_THAT(RunOnOnes(session), ElementsAre(*outlives == '1' ? 101 : 8, 9, 10));
  }
}

// As in ONNX Runtime.
TEST(InitializerTest, FilesOfAModelInMemoryAreInTheWorkingDirectory) {
  const std::string name = "initializer_test_weights.bin";
  const auto model = [](const std::string& file) {
    ModelBuilder builder;
    builder.Input("x", TensorType(kFloat, {1, 3})).ExternalInitializer("w", 3, file, 0);
    return builder.Node("Add", {"x", "w"}, {"z"})
        .Output("z", TensorTypeWithoutShape(kFloat))
        .Bytes();
  };
  const std::vector<float> weights = {1, 2, 3};
  WriteFile(name, {reinterpret_cast<const char*>(weights.data()), 3 * sizeof(float)});
  Ort::Session session = Open(model(name));
  EXPECT_THAT(RunOnOnes(session), ElementsAre(2, 3, 4));
  ASSERT_EQ(std::remove(name.c_str()), 0);
  EXPECT_THAT(ErrorOf([&] { Open(model(name)); }), HasSubstr("'" + name + "' is not in ."));
  EXPECT_THAT(ErrorOf([&] { Open(model("../" + name)); }),
              AllOf(HasSubstr("External data path"), HasSubstr("escapes working directory")));
}

TEST(InitializerTest, OptimizedModelsKeepLargeOnesBesideThem) {
  const tenon::TemporaryFolder folder;
  const std::string path = folder.path() + "/optimized.onnx";
  Ort::SessionOptions options;
  options.SetOptimizedModelFilePath(path.c_str());
  options.AddConfigEntry("session.optimized_model_external_initializers_file_name", "side.bin");
  options.AddConfigEntry("session.optimized_model_external_initializers_min_size_in_bytes", "12");
  Open(AddModel(false), options);
  EXPECT_EQ(folder.SizeOf("side.bin"), 12);
  Ort::Session session(Env(), path.c_str(), Ort::SessionOptions());
  EXPECT_THAT(RunOnOnes(session), ElementsAre(11, 21, 31));
}

TEST(FreeDimensionTest, IsFixedByNameAndByDenotation) {
  const struct {
    const char* denotation;
    const char* name;
    int64_t expected;
  } kCases[] = {{"DATA_BATCH", nullptr, 5}, {nullptr, "n", 5}, {"OTHER", "other", -1}};
  for (const auto& [denotation, name, expected] : kCases) {
    Ort::SessionOptions options;
    if (denotation != nullptr) {
      Ort::ThrowOnError(Ort::GetApi().AddFreeDimensionOverride(options, denotation, 5));
    }
    if (name != nullptr) {
      Ort::ThrowOnError(Ort::GetApi().AddFreeDimensionOverrideByName(options, name, 5));
    }
    const Ort::Session session = Open(AddModel(false), options);
    EXPECT_THAT(session.GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape(),
                ElementsAre(expected, 3));
  }
}

// A file that ONNX Runtime wrote: one parameter "w" of 3 floats, {4, 5, 6}, adapter version 2 for
// model version 3. Little-endian words.
constexpr uint32_t kAdapter[] = {
    0x00000008, 0x54524f54, 0xffffffe4, 0x00000001, 0x00000002, 0x00000003, 0x00000004,
    0x00000001, 0x00000010, 0x0014000c, 0x00080004, 0x0010000c, 0x0000000c, 0x0000002c,
    0x0000001c, 0x00000001, 0x00000004, 0x0000000c, 0x40800000, 0x40a00000, 0x40c00000,
    0x00000001, 0x00000003, 0x00000000, 0x00000001, 0x00000077};

// The model, whose `w` may be fed.
std::string AdaptedModel() {
  return ModelBuilder()
      .Input("x", TensorType(kFloat, {"n", 3}))
      .Input("w", TensorType(kFloat, {3}))
      .Initializer("w", {10, 20, 30})
      .Node("Add", {"x", "w"}, {"z"})
      .Output("z", TensorTypeWithoutShape(kFloat))
      .Bytes();
}

TEST(LoraTest, AdapterFeedsItsParameters) {
  const tenon::TemporaryFolder folder;
  const std::string path = folder.Write(
      "w.onnx_adapter", std::string(reinterpret_cast<const char*>(kAdapter), sizeof(kAdapter)));
  Ort::Session session = Open(AdaptedModel());
  EXPECT_THAT(RunOnOnes(session), ElementsAre(11, 21, 31));
  const Ort::LoraAdapter adapters[] = {
      Ort::LoraAdapter::CreateLoraAdapter(path, nullptr),
      Ort::LoraAdapter::CreateLoraAdapterFromArray(kAdapter, sizeof(kAdapter),
                                                   Ort::AllocatorWithDefaultOptions())};
  for (const Ort::LoraAdapter& adapter : adapters) {
    Ort::RunOptions options;
    options.AddActiveLoraAdapter(adapter);
    std::vector<float> ones = {1, 1, 1};
    const Ort::Value x = TensorOver(ones, {1, 3});
    const char* const inputs[] = {"x"};
    const char* const outputs[] = {"z"};
    const auto results = session.Run(options, inputs, &x, 1, outputs, 1);
    EXPECT_THAT(ElementsOf<float>(results[0]), ElementsAre(5, 6, 7));
  }
}

TEST(LoraTest, DamagedAdaptersAreErrors) {
  // Every word changed in turn, and every length: an error or another adapter, never a fault.
  std::vector<uint32_t> words(std::begin(kAdapter), std::end(kAdapter));
  const auto read = [&](size_t bytes) {
    return ErrorOf(
        [&] { Ort::LoraAdapter::CreateLoraAdapterFromArray(words.data(), bytes, nullptr); });
  };
  for (size_t bytes = 0; bytes < sizeof(kAdapter) - 8; ++bytes) EXPECT_NE(read(bytes), "") << bytes;
  for (size_t i = 0; i < words.size(); ++i) {
    for (const uint32_t wrong : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu, 0xffffff00u}) {
      words[i] = wrong;
      read(sizeof(kAdapter));
    }
    words[i] = kAdapter[i];
  }
  words[3] = 2;
  EXPECT_THAT(read(sizeof(kAdapter)), HasSubstr("format version 2"));
  words[3] = kAdapter[3];
  EXPECT_EQ(read(sizeof(kAdapter)), "");
  words[11] &= ~0xffffu;  // the type of the elements is left out
  EXPECT_NE(read(sizeof(kAdapter)), "");
  EXPECT_THAT(ErrorOf([] { Ort::LoraAdapter::CreateLoraAdapter("/no/such/file", nullptr); }),
              HasSubstr("/no/such/file"));
}

// Parameters that lie in the same bytes would need more memory than the file has.
TEST(LoraTest, ParametersDoNotShareBytes) {
  constexpr size_t kListAt = 6, kVtableAt = 9, kTableAt = 12;
  const auto read = [&](uint32_t count) {
    // Another list of parameters at the end. Each of them is the one table that follows the list.
    std::vector<uint32_t> words(std::begin(kAdapter), std::end(kAdapter));
    words[kListAt] = static_cast<uint32_t>((words.size() - kListAt) * sizeof(uint32_t));
    words.push_back(count);
    const size_t table = words.size() + count + kTableAt - kVtableAt;
    for (uint32_t i = 0; i < count; ++i) {
      words.push_back(static_cast<uint32_t>((table - words.size()) * sizeof(uint32_t)));
    }
    words.insert(words.end(), std::begin(kAdapter) + kVtableAt, std::end(kAdapter));
    return ErrorOf([&] {
      Ort::LoraAdapter::CreateLoraAdapterFromArray(words.data(), words.size() * sizeof(uint32_t),
                                                   nullptr);
    });
  };
  EXPECT_EQ(read(1), "");
  EXPECT_THAT(read(1000), HasSubstr("damaged"));
}

}  // namespace
}  // namespace tenon::test
