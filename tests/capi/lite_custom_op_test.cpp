// onnxruntime_lite_custom_op.h: operators from functions and structs, by every kind of parameter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxruntime_lite_custom_op.h>

#include <stdexcept>

#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using Ort::Custom::CreateLiteCustomOp;
using Ort::Custom::OrtLiteCustomOp;
using Ort::Custom::Span;
using Ort::Custom::Tensor;
using Ort::Custom::TensorArray;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kString = ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
constexpr auto kAny = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
constexpr const char* kDomain = "test.lite";
constexpr const char* kCpu = "CPUExecutionProvider";

// A session of one operator, with its domain.
struct Model {
  Model(OrtLiteCustomOp* made, const ModelBuilder& builder) : op(made) {
    domain.Add(op.get());
    Ort::SessionOptions options;
    options.Add(domain);
    session = Open(builder.Bytes(), options);
  }
  std::vector<Ort::Value> Run(std::vector<const char*> names, const std::vector<Ort::Value>& feeds,
                              std::vector<const char*> outputs = {"y"}) {
    return session.Run(Ort::RunOptions(), names.data(), feeds.data(), feeds.size(), outputs.data(),
                       outputs.size());
  }
  std::unique_ptr<OrtLiteCustomOp> op;
  Ort::CustomOpDomain domain{kDomain};
  Ort::Session session{nullptr};
};

template <class T>
Ort::Value ValueOf(const std::vector<int64_t>& shape, const std::vector<T>& elements) {
  const Ort::AllocatorWithDefaultOptions allocator;
  Ort::Value value = Ort::Value::CreateTensor<T>(allocator, shape.data(), shape.size());
  std::copy(elements.begin(), elements.end(), value.GetTensorMutableData<T>());
  return value;
}

Ort::Value TextOf(const std::vector<int64_t>& shape, const std::vector<const char*>& texts) {
  const Ort::AllocatorWithDefaultOptions allocator;
  Ort::Value value = Ort::Value::CreateTensor(allocator, shape.data(), shape.size(), kString);
  value.FillStringTensor(texts.data(), texts.size());
  return value;
}

// y = factor * x + w[0] + w[1] + ...; the shape of x as text.
void Affine(const Tensor<float>& x, float factor, const Span<int64_t>& w, Tensor<float>& y,
            Tensor<std::string>* shape) {
  float sum = 0;
  for (size_t i = 0; i < w.size(); ++i) sum += static_cast<float>(w[i]);
  float* const to = y.Allocate(x.Shape());
  for (int64_t i = 0; i < x.NumberOfElement(); ++i) to[i] = factor * x.Data()[i] + sum;
  EXPECT_EQ(y.Data(), to);
  EXPECT_EQ(x.SizeInBytes(), sizeof(float) * static_cast<size_t>(x.NumberOfElement()));
  EXPECT_TRUE(x.IsCpuTensor());
  EXPECT_EQ(x.Type(), kFloat);
  shape->SetStringOutput({x.Shape2Str()}, {1});
}

TEST(LiteCustomOpTest, FunctionsTakeTensorsSpansAndNumbers) {
  const std::string any = TensorTypeWithoutShape(kFloat);
  Model model(CreateLiteCustomOp("Affine", kCpu, Affine),
              ModelBuilder()
                  .Input("x", any)
                  .Input("factor", any)
                  .Input("w", TensorTypeWithoutShape(kInt64))
                  .CustomNode(kDomain, "Affine", {"x", "factor", "w"}, {"y", "shape"})
                  .Output("y", any)
                  .Output("shape", TensorTypeWithoutShape(kString)));
  std::vector<Ort::Value> feeds;
  feeds.push_back(ValueOf<float>({2, 1}, {1, 2}));
  feeds.push_back(ValueOf<float>({1}, {10}));
  feeds.push_back(ValueOf<int64_t>({3}, {1, 2, 4}));
  const auto results = model.Run({"x", "factor", "w"}, feeds, {"y", "shape"});
  EXPECT_THAT(ElementsOf<float>(results[0]), ElementsAre(17, 27));
  EXPECT_EQ(results[1].GetStringTensorElement(0), "2, 1, ");
  feeds[2] = ValueOf<int64_t>({1, 1}, {1});
  EXPECT_THAT(ErrorOf([&] {
                model.Run({"x", "factor", "w"}, feeds);
              }),
              HasSubstr("expected a tensor of rank 1, got shape 1, 1, "));
}

Ort::Status Join(const std::string& separator, const Tensor<std::string_view>& texts,
                 std::optional<std::string_view> end, Tensor<std::string>& y) {
  if (separator.empty()) return Ort::Status("the separator is empty", ORT_INVALID_ARGUMENT);
  std::string joined;
  for (const std::string_view text : texts.Data()) joined.append(text).append(separator);
  y.SetStringOutput({joined + std::string(end.value_or("-"))}, {1});
  return Ort::Status();
}

TEST(LiteCustomOpTest, FunctionsTakeStringsAndReturnStatuses) {
  const std::string text = TensorTypeWithoutShape(kString);
  Model model(CreateLiteCustomOp("Join", kCpu, Join),
              ModelBuilder()
                  .Input("s", text)
                  .Input("t", text)
                  .CustomNode(kDomain, "Join", {"s", "t"}, {"y"})
                  .Output("y", text));
  std::vector<Ort::Value> feeds;
  feeds.push_back(TextOf({1}, {"+"}));
  feeds.push_back(TextOf({3}, {"a", "", "bc"}));
  EXPECT_EQ(model.Run({"s", "t"}, feeds)[0].GetStringTensorElement(0), "a++bc+-");
  feeds[1] = TextOf({0}, {});
  EXPECT_EQ(model.Run({"s", "t"}, feeds)[0].GetStringTensorElement(0), "-");
  feeds[0] = TextOf({1}, {""});
  EXPECT_THAT(ErrorOf([&] { model.Run({"s", "t"}, feeds); }), HasSubstr("the separator is empty"));
}

// y = x + a + b, where a and b may be left out; the number of them.
void AddThose(const Tensor<float>* x, std::optional<const Tensor<float>*> a, std::optional<float> b,
              Tensor<float>* y, std::optional<Tensor<int64_t>*> count) {
  float* const to = y->Allocate(x->Shape());
  for (int64_t i = 0; i < x->NumberOfElement(); ++i) {
    to[i] = x->Data()[i] + (a ? (*a)->Data()[i] : 0) + b.value_or(0);
  }
  if (count) *(*count)->Allocate({1}) = a.has_value() + b.has_value();
}

TEST(LiteCustomOpTest, WhatANodeLeavesOutIsEmpty) {
  const std::string any = TensorTypeWithoutShape(kFloat);
  const auto run = [&](std::initializer_list<std::string_view> inputs,
                       std::initializer_list<std::string_view> outputs) {
    ModelBuilder builder;
    builder.Input("x", any).CustomNode(kDomain, "AddThose", inputs, outputs).Output("y", any);
    std::vector<const char*> names = {"y"};
    if (outputs.size() == 2) {
      builder.Output("count", TensorTypeWithoutShape(kInt64));
      names.push_back("count");
    }
    Model model(CreateLiteCustomOp("AddThose", kCpu, AddThose), builder);
    std::vector<Ort::Value> feeds;
    feeds.push_back(ValueOf<float>({1}, {3}));
    const auto results = model.Run({"x"}, feeds, names);
    return std::pair(ElementsOf<float>(results[0])[0],
                     results.size() == 1 ? -1 : ElementsOf<int64_t>(results[1])[0]);
  };
  EXPECT_EQ(run({"x", "x", "x"}, {"y", "count"}), std::pair(9.f, int64_t{2}));
  EXPECT_EQ(run({"x", "x"}, {"y", "count"}), std::pair(6.f, int64_t{1}));
  EXPECT_EQ(run({"x", "", "x"}, {"y", "count"}), std::pair(6.f, int64_t{1}));
  EXPECT_EQ(run({"x"}, {"y"}), std::pair(3.f, int64_t{-1}));
}

// Copies each input to the output of its index.
void CopyAll(const TensorArray& inputs, TensorArray& outputs) {
  for (size_t i = 0; i < inputs.Size(); ++i) {
    if (inputs[i]->Type() == kString) {
      const auto& text = static_cast<const Tensor<std::string>&>(*inputs[i]);
      outputs.AllocateStringTensor(i).SetStringOutput(text.Data(), text.Shape());
      EXPECT_EQ(std::string_view(static_cast<const char*>(text.DataRaw()), text.SizeInBytes()),
                text.AsScalar());
    } else {
      const auto& x = static_cast<const Tensor<float>&>(*inputs[i]);
      float* const to = outputs.AllocateOutput<float>(i, x.Shape());
      std::copy(x.Data(), x.Data() + x.NumberOfElement(), to);
    }
  }
  EXPECT_EQ(outputs.Size(), inputs.Size());
}

TEST(LiteCustomOpTest, VariadicParametersTakeTheRest) {
  const std::string any = TensorTypeWithoutShape(kFloat), text = TensorTypeWithoutShape(kString);
  Model model(CreateLiteCustomOp("CopyAll", kCpu, CopyAll),
              ModelBuilder()
                  .Input("a", any)
                  .Input("b", text)
                  .CustomNode(kDomain, "CopyAll", {"a", "b"}, {"y", "z"})
                  .Output("y", any)
                  .Output("z", text));
  EXPECT_EQ(model.op->GetInputType(model.op.get(), 0), kAny);
  EXPECT_EQ(model.op->GetInputCharacteristic(model.op.get(), 0), INPUT_OUTPUT_VARIADIC);
  std::vector<Ort::Value> feeds;
  feeds.push_back(ValueOf<float>({2}, {1, 2}));
  feeds.push_back(TextOf({1}, {"two"}));
  const auto results = model.Run({"a", "b"}, feeds, {"y", "z"});
  EXPECT_THAT(ElementsOf<float>(results[0]), ElementsAre(1, 2));
  EXPECT_EQ(results[1].GetStringTensorElement(0), "two");
}

// y = step * x, with an attribute; its output has the shape of its input.
struct Step {
  Step(const OrtApi*, const OrtKernelInfo* info)
      : step(Ort::ConstKernelInfo(info).GetAttribute<int64_t>("step")) {
    if (step == 0) throw std::runtime_error("a step of 0");
  }
  Ort::Status Compute(OrtKernelContext* context, const Tensor<float>& x, Tensor<float>& y) const {
    EXPECT_EQ(Ort::KernelContext(context).GetInputCount(), 1u);
    float* const to = y.Allocate(x.Shape());
    for (int64_t i = 0; i < x.NumberOfElement(); ++i) {
      to[i] = static_cast<float>(step) * x.Data()[i];
    }
    return Ort::Status();
  }
  static Ort::Status InferOutputShape(Ort::ShapeInferContext& context) {
    return context.SetOutputShape(0, context.GetInputShape(0));
  }
  int64_t step;
};

TEST(LiteCustomOpTest, StructsKeepAttributesAndInferShapes) {
  const auto model_of = [](int64_t step) {
    return ModelBuilder()
        .Input("x", TensorType(kFloat, {"n", 2}))
        .CustomNode(kDomain, "Step", {"x"}, {"y"}, {{"step", step}})
        .Output("y", TensorTypeWithoutShape(kFloat));
  };
  Model model(CreateLiteCustomOp<Step>("Step", kCpu, 1, 3), model_of(3));
  EXPECT_EQ(model.op->GetStartVersion(model.op.get()), 1);
  EXPECT_EQ(model.op->GetEndVersion(model.op.get()), 3);
  EXPECT_THAT(model.session.GetOutputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape(),
              ElementsAre(-1, 2));
  std::vector<Ort::Value> feeds;
  feeds.push_back(ValueOf<float>({1, 2}, {1, 5}));
  EXPECT_THAT(ElementsOf<float>(model.Run({"x"}, feeds)[0]), ElementsAre(3, 15));
  EXPECT_THAT(
      ErrorOf([&] { const Model fails(CreateLiteCustomOp<Step>("Step", kCpu), model_of(0)); }),
      HasSubstr("a step of 0"));
}

Ort::Status OneElement(Ort::ShapeInferContext& context) {
  return context.SetOutputShape(0, {int64_t{1}}, kInt64);
}
void CountOf(const Tensor<float>& x, Tensor<int64_t>& y) {
  if (x.NumberOfElement() == 7) ORT_CXX_API_THROW("seven", ORT_FAIL);
  *y.Allocate({1}) = x.NumberOfElement();
}

TEST(LiteCustomOpTest, FunctionsMayHaveAShapeFunctionAndThrow) {
  Model model(CreateLiteCustomOp("CountOf", kCpu, CountOf, OneElement),
              ModelBuilder()
                  .Input("x", TensorTypeWithoutShape(kFloat))
                  .CustomNode(kDomain, "CountOf", {"x"}, {"y"})
                  .Output("y", TensorTypeWithoutShape(kInt64)));
  EXPECT_THAT(model.session.GetOutputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape(),
              ElementsAre(1));
  std::vector<Ort::Value> feeds;
  feeds.push_back(ValueOf<float>({2, 3}, std::vector<float>(6)));
  EXPECT_THAT(ElementsOf<int64_t>(model.Run({"x"}, feeds)[0]), ElementsAre(6));
  feeds[0] = ValueOf<float>({7}, std::vector<float>(7));
  EXPECT_THAT(ErrorOf([&] { model.Run({"x"}, feeds); }), HasSubstr("seven"));
}

}  // namespace
}  // namespace tenon::test
