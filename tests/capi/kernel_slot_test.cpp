// What kernels of custom operators query of their node and of their call, attribute by attribute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const OrtApi& Api() { return Ort::GetApi(); }
const OrtModelEditorApi& Editor() { return *Api().GetModelEditorApi(); }

// The values that the operator below read when it was created, when its shape was inferred, and
// when it ran.
struct Found {
  std::string text, name, missing;
  std::vector<std::string> texts;
  std::vector<float> floats, tensor;
  std::vector<int64_t> integers, output_shape;
  std::string inferred_attribute;
  int64_t severity = -1;
  size_t outputs = 0;
};

std::string TextOf(const OrtKernelInfo* info,
                   OrtStatus*(ORT_API_CALL* slot)(const OrtKernelInfo*, char*, size_t*) noexcept) {
  size_t size = 0;
  EXPECT_EQ(Outcome(slot(info, nullptr, &size)), "");
  std::string text(size, '?');
  EXPECT_EQ(Outcome(slot(info, text.data(), &size)), "");
  text.resize(size - 1);
  return text;
}

void AskForTexts(const OrtKernelInfo* info, Found& found) {
  size_t size = 0;
  EXPECT_EQ(Outcome(Api().KernelInfoGetAttribute_string(info, "text", nullptr, &size)), "");
  found.text.resize(size);
  EXPECT_EQ(Outcome(Api().KernelInfoGetAttribute_string(info, "text", found.text.data(), &size)),
            "");
  found.text.resize(size - 1);
  size_t too_small = 1;
  EXPECT_NE(
      Outcome(Api().KernelInfoGetAttribute_string(info, "text", found.text.data(), &too_small)),
      "");
  found.name = TextOf(info, Api().KernelInfo_GetNodeName);
  Ort::AllocatorWithDefaultOptions allocator;
  char** texts = nullptr;
  size_t count = 0;
  EXPECT_EQ(
      Outcome(Api().KernelInfoGetAttributeArray_string(info, "texts", allocator, &texts, &count)),
      "");
  found.texts.assign(texts, texts + count);
  for (size_t i = 0; i < count; ++i) allocator.Free(texts[i]);
  allocator.Free(texts);
  found.missing =
      Outcome(Api().KernelInfoGetAttributeArray_string(info, "none", allocator, &texts, &count));
}

template <class T>
std::vector<T> ListOf(const OrtKernelInfo* info, const char* name,
                      OrtStatus*(ORT_API_CALL* slot)(const OrtKernelInfo*, const char*, T*,
                                                     size_t*) noexcept) {
  size_t count = 0;
  EXPECT_EQ(Outcome(slot(info, name, nullptr, &count)), "");
  std::vector<T> list(count);
  EXPECT_EQ(Outcome(slot(info, name, list.data(), &count)), "");
  return list;
}

void AskForTheRest(const OrtKernelInfo* info, Found& found) {
  found.floats = ListOf<float>(info, "floats", Api().KernelInfoGetAttributeArray_float);
  found.integers = ListOf<int64_t>(info, "integers", Api().KernelInfoGetAttributeArray_int64);
  Ort::AllocatorWithDefaultOptions allocator;
  OrtValue* tensor = nullptr;
  EXPECT_EQ(Outcome(Api().KernelInfoGetAttribute_tensor(info, "tensor", allocator, &tensor)), "");
  if (tensor != nullptr) found.tensor = ElementsOf<float>(Ort::Value(tensor));
  OrtTypeInfo* type = nullptr;
  EXPECT_EQ(Outcome(Api().KernelInfo_GetOutputTypeInfo(info, 0, &type)), "");
  found.output_shape = Ort::TypeInfo(type).GetTensorTypeAndShapeInfo().GetShape();
  EXPECT_THAT(Outcome(Api().KernelInfo_GetOutputTypeInfo(info, 1, &type)), HasSubstr("1"));
  const OrtLogger* logger = nullptr;
  OrtLoggingLevel severity = ORT_LOGGING_LEVEL_VERBOSE;
  EXPECT_EQ(Outcome(Api().KernelInfo_GetLogger(info, &logger)), "");
  EXPECT_EQ(Outcome(Api().Logger_GetLoggingSeverityLevel(logger, &severity)), "");
  found.severity = severity;
  OrtAllocator* memory = nullptr;
  EXPECT_EQ(Outcome(Api().KernelInfoGetAllocator(info, OrtMemTypeDefault, &memory)), "");
  void* const block = memory->Alloc(memory, 64);
  EXPECT_NE(block, nullptr);
  memory->Free(memory, block);
  Api().ReleaseAllocator(memory);
}

void AskTheCall(OrtKernelContext* context, Found& found) {
  EXPECT_EQ(Outcome(Api().KernelContext_GetOutputCount(context, &found.outputs)), "");
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  OrtAllocator* memory = nullptr;
  EXPECT_EQ(Outcome(Api().KernelContext_GetAllocator(context, cpu, &memory)), "");
  void* const block = memory->Alloc(memory, 64);
  EXPECT_NE(block, nullptr);
  memory->Free(memory, block);
  Api().ReleaseAllocator(memory);
  const Ort::MemoryInfo gpu("Cuda", OrtDeviceAllocator, 0, OrtMemTypeDefault);
  EXPECT_THAT(Outcome(Api().KernelContext_GetAllocator(context, gpu, &memory)), HasSubstr("Cuda"));
  OrtSyncStream* stream = nullptr;
  const std::string outcome = Outcome(Api().KernelContext_GetSyncStream(context, &stream));
  EXPECT_TRUE(outcome.empty() || stream == nullptr) << outcome;
  EXPECT_EQ(stream, nullptr);  // the CPU has none
  OrtValue* given = nullptr;
  EXPECT_THAT(Outcome(Api().KernelContext_GetPreallocatedOutput(context, 1, &given)),
              HasSubstr("outputs"));
  EXPECT_EQ(Outcome(Api().KernelContext_GetPreallocatedOutput(context, 0, &given)), "");
  EXPECT_EQ(given, nullptr);  // the caller bound none
}

// y = x; records the values that it queries.
struct Asking : OrtCustomOp {
  explicit Asking(Found& found) : OrtCustomOp{}, found(&found) {
    version = ORT_API_VERSION;
    GetName = [](const OrtCustomOp*) -> const char* { return "Asking"; };
    GetInputTypeCount = GetOutputTypeCount = [](const OrtCustomOp*) -> size_t { return 1; };
    GetInputType = GetOutputType = [](const OrtCustomOp*, size_t) { return kFloat; };
    CreateKernelV2 = [](const OrtCustomOp* self, const OrtApi*, const OrtKernelInfo* info,
                        void** kernel) -> OrtStatus* {
      AskForTexts(info, FoundBy(self));
      AskForTheRest(info, FoundBy(self));
      *kernel = &FoundBy(self);
      return nullptr;
    };
    KernelDestroy = [](void*) {};
    KernelComputeV2 = [](void* kernel, OrtKernelContext* context) -> OrtStatus* {
      AskTheCall(context, *static_cast<Found*>(kernel));
      const Ort::ConstValue x = Ort::KernelContext(context).GetInput(0);
      Ort::KernelContext(context)
          .GetOutput(0, x.GetTensorTypeAndShapeInfo().GetShape())
          .GetTensorMutableData<float>()[0] = x.GetTensorData<float>()[0];
      return nullptr;
    };
    InferOutputShapeFn = [](const OrtCustomOp* self, OrtShapeInferContext* context) -> OrtStatus* {
      const OrtOpAttr* attribute = nullptr;
      EXPECT_EQ(Outcome(Api().ShapeInferContext_GetAttribute(context, "text", &attribute)), "");
      const char* name = "";
      EXPECT_EQ(Outcome(Api().OpAttr_GetName(attribute, &name)), "");
      FoundBy(self).inferred_attribute = name;
      EXPECT_NE(Outcome(Api().ShapeInferContext_GetAttribute(context, "none", &attribute)), "");
      OrtTensorTypeAndShapeInfo* info = nullptr;
      EXPECT_EQ(Outcome(Api().ShapeInferContext_GetInputTypeShape(context, 0, &info)), "");
      return Api().ShapeInferContext_SetOutputTypeShape(context, 0, info);
    };
  }
  static Found& FoundBy(const OrtCustomOp* self) {
    return *static_cast<const Asking*>(self)->found;
  }
  Found* found;
};

OrtOpAttr* NewAttribute(const char* name, const void* data, int count, OrtOpAttrType type) {
  OrtOpAttr* attribute = nullptr;
  Ort::ThrowOnError(Api().CreateOpAttr(name, data, count, type, &attribute));
  return attribute;
}

OrtValueInfo* NewVector(const char* name, int64_t size) {
  OrtTensorTypeAndShapeInfo* tensor = nullptr;
  OrtTypeInfo* type = nullptr;
  OrtValueInfo* value = nullptr;
  Ort::ThrowOnError(Api().CreateTensorTypeAndShapeInfo(&tensor));
  Ort::ThrowOnError(Api().SetTensorElementType(tensor, kFloat));
  Ort::ThrowOnError(Api().SetDimensions(tensor, &size, 1));
  Ort::ThrowOnError(Editor().CreateTensorTypeInfo(tensor, &type));
  Ort::ThrowOnError(Editor().CreateValueInfo(name, type, &value));
  Api().ReleaseTypeInfo(type);
  Api().ReleaseTensorTypeAndShapeInfo(tensor);
  return value;
}

// y = Asking(x), with an attribute of every kind.
OrtModel* NewAskingModel(std::vector<float>& tensor) {
  const char* const texts[] = {"a", "bc"};
  const float floats[] = {1.5F, -2};
  const int64_t integers[] = {3, 4, 5};
  const Ort::Value value = TensorOver(tensor, {static_cast<int64_t>(tensor.size())});
  const OrtValue* const raw = value;
  std::vector<OrtOpAttr*> attributes = {
      NewAttribute("text", "a text", 6, ORT_OP_ATTR_STRING),
      NewAttribute("texts", texts, 2, ORT_OP_ATTR_STRINGS),
      NewAttribute("floats", floats, 2, ORT_OP_ATTR_FLOATS),
      NewAttribute("integers", integers, 3, ORT_OP_ATTR_INTS),
      NewAttribute("tensor", raw, 1, ORT_OP_ATTR_TENSOR),
  };
  const char *const input = "x", *const output = "y";
  OrtNode* node = nullptr;
  Ort::ThrowOnError(Editor().CreateNode("Asking", "test.ops", "asker", &input, 1, &output, 1,
                                        attributes.data(), attributes.size(), &node));
  OrtGraph* graph = nullptr;
  Ort::ThrowOnError(Editor().CreateGraph(&graph));
  OrtValueInfo *inputs[] = {NewVector("x", 1)}, *outputs[] = {NewVector("y", 1)};
  Ort::ThrowOnError(Editor().SetGraphInputs(graph, inputs, 1));
  Ort::ThrowOnError(Editor().SetGraphOutputs(graph, outputs, 1));
  Ort::ThrowOnError(Editor().AddNodeToGraph(graph, node));
  const char* const domains[] = {"", "test.ops"};
  const int versions[] = {18, 1};
  OrtModel* model = nullptr;
  Ort::ThrowOnError(Editor().CreateModel(domains, versions, 2, &model));
  Ort::ThrowOnError(Editor().AddGraphToModel(model, graph));
  return model;
}

TEST(KernelSlotTest, KernelsLearnEverythingOfTheirNode) {
  Found found;
  const Asking op(found);
  Ort::CustomOpDomain domain("test.ops");
  domain.Add(&op);
  Ort::SessionOptions options;
  options.Add(domain);
  options.SetLogSeverityLevel(ORT_LOGGING_LEVEL_ERROR);
  std::vector<float> tensor = {7, 8}, x = {5};
  OrtModel* const model = NewAskingModel(tensor);
  OrtSession* raw = nullptr;
  Ort::ThrowOnError(Editor().CreateSessionFromModel(Env(), model, options, &raw));
  Api().ReleaseModel(model);
  Ort::Session session(raw);
  const Ort::Value feed = TensorOver(x, {1});
  const char *const input = "x", *const output = "y";
  EXPECT_THAT(ElementsOf<float>(session.Run({}, &input, &feed, 1, &output, 1)[0]), ElementsAre(5));
  EXPECT_EQ(found.text, "a text");
  EXPECT_EQ(found.name, "asker");
  EXPECT_THAT(found.missing, HasSubstr("'none'"));
  EXPECT_THAT(found.texts, ElementsAre("a", "bc"));
  EXPECT_THAT(found.floats, ElementsAre(1.5F, -2));
  EXPECT_THAT(found.integers, ElementsAre(3, 4, 5));
  EXPECT_THAT(found.tensor, ElementsAre(7, 8));
  EXPECT_THAT(found.output_shape, ElementsAre(1));
  EXPECT_EQ(found.inferred_attribute, "text");
  EXPECT_EQ(found.severity, ORT_LOGGING_LEVEL_ERROR);
  EXPECT_EQ(found.outputs, 1u);
}

TEST(KernelSlotTest, TensorAttributesAreValues) {
  std::vector<float> elements = {1, 2};
  const Ort::Value value = TensorOver(elements, {2});
  const OrtValue* const raw = value;
  OrtOpAttr* const attribute = NewAttribute("tensor", raw, 1, ORT_OP_ATTR_TENSOR);
  OrtValue* copy = nullptr;
  ASSERT_EQ(Outcome(Api().OpAttr_GetTensorAttributeAsOrtValue(attribute, &copy)), "");
  EXPECT_THAT(ElementsOf<float>(Ort::Value(copy)), ElementsAre(1, 2));
  Api().ReleaseOpAttr(attribute);
  const int64_t number = 1;
  OrtOpAttr* const other = NewAttribute("number", &number, 1, ORT_OP_ATTR_INT);
  EXPECT_NE(Outcome(Api().OpAttr_GetTensorAttributeAsOrtValue(other, &copy)), "");
  Api().ReleaseOpAttr(other);
}

}  // namespace
}  // namespace tenon::test
