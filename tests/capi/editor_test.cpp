// Models from scratch, sessions that are changed before they run, views of graphs, and compiling.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "base/temporary_folder.h"
#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const OrtApi& Api() { return Ort::GetApi(); }
const OrtModelEditorApi& Editor() { return *Api().GetModelEditorApi(); }
const OrtCompileApi& Compiler() { return *Api().GetCompileApi(); }

struct Release {
  void operator()(OrtGraph* graph) const { Api().ReleaseGraph(graph); }
  void operator()(OrtModel* model) const { Api().ReleaseModel(model); }
  void operator()(OrtNode* node) const { Api().ReleaseNode(node); }
  void operator()(OrtModelCompilationOptions* options) const {
    Compiler().ReleaseModelCompilationOptions(options);
  }
};
template <class T>
using Owned = std::unique_ptr<T, Release>;

// A float value of a shape; -1 for any size.
OrtValueInfo* NewValue(const char* name, const std::vector<int64_t>& shape) {
  OrtTensorTypeAndShapeInfo* tensor = nullptr;
  OrtTypeInfo* type = nullptr;
  OrtValueInfo* value = nullptr;
  Ort::ThrowOnError(Api().CreateTensorTypeAndShapeInfo(&tensor));
  Ort::ThrowOnError(Api().SetTensorElementType(tensor, kFloat));
  Ort::ThrowOnError(Api().SetDimensions(tensor, shape.data(), shape.size()));
  Ort::ThrowOnError(Editor().CreateTensorTypeInfo(tensor, &type));
  Ort::ThrowOnError(Editor().CreateValueInfo(name, type, &value));
  Api().ReleaseTypeInfo(type);
  Api().ReleaseTensorTypeAndShapeInfo(tensor);
  return value;
}

OrtNode* NewNode(const char* op_type, const char* name, const std::vector<const char*>& inputs,
                 const std::vector<const char*>& outputs, std::vector<OrtOpAttr*> attributes = {}) {
  OrtNode* node = nullptr;
  Ort::ThrowOnError(Editor().CreateNode(op_type, "", name, inputs.data(), inputs.size(),
                                        outputs.data(), outputs.size(), attributes.data(),
                                        attributes.size(), &node));
  return node;
}

OrtOpAttr* NewInt(const char* name, int64_t value) {
  OrtOpAttr* attribute = nullptr;
  Ort::ThrowOnError(Api().CreateOpAttr(name, &value, 1, ORT_OP_ATTR_INT, &attribute));
  return attribute;
}

void Add(const Owned<OrtGraph>& graph, OrtNode* node) {
  Ort::ThrowOnError(Editor().AddNodeToGraph(graph.get(), node));
}

void SetInterface(const Owned<OrtGraph>& graph, std::vector<OrtValueInfo*> inputs,
                  std::vector<OrtValueInfo*> outputs) {
  if (!inputs.empty()) {
    Ort::ThrowOnError(Editor().SetGraphInputs(graph.get(), inputs.data(), inputs.size()));
  }
  if (!outputs.empty()) {
    Ort::ThrowOnError(Editor().SetGraphOutputs(graph.get(), outputs.data(), outputs.size()));
  }
}

Owned<OrtGraph> NewGraph() {
  OrtGraph* graph = nullptr;
  Ort::ThrowOnError(Editor().CreateGraph(&graph));
  return Owned<OrtGraph>(graph);
}

// Softmax(x + w) over axis 0, the nodes in the wrong order; w lies in `weights`.
Owned<OrtGraph> SoftmaxGraph(std::vector<float>& weights) {
  Owned<OrtGraph> graph = NewGraph();
  SetInterface(graph, {NewValue("x", {-1})}, {NewValue("y", {-1})});
  Add(graph, NewNode("Softmax", "softmax", {"sum"}, {"y"}, {NewInt("axis", 0)}));
  Add(graph, NewNode("Add", "add", {"x", "w"}, {"sum"}));
  Ort::Value w = TensorOver(weights, {static_cast<int64_t>(weights.size())});
  Ort::ThrowOnError(Editor().AddInitializerToGraph(graph.get(), "w", w.release(), false));
  return graph;
}

Owned<OrtModel> ModelOf(Owned<OrtGraph> graph, int opset = 18) {
  const char* const domains[] = {""};
  OrtModel* model = nullptr;
  Ort::ThrowOnError(Editor().CreateModel(domains, &opset, 1, &model));
  if (graph) Ort::ThrowOnError(Editor().AddGraphToModel(model, graph.release()));
  return Owned<OrtModel>(model);
}

Ort::Session SessionOf(const Owned<OrtModel>& model) {
  OrtSession* session = nullptr;
  Ort::ThrowOnError(Editor().CreateSessionFromModel(Env(), model.get(), nullptr, &session));
  return Ort::Session(session);
}

std::vector<float> RunOne(Ort::Session& session, const char* input, std::vector<float> x,
                          const char* output) {
  const Ort::Value feed = TensorOver(x, {static_cast<int64_t>(x.size())});
  return ElementsOf<float>(session.Run(Ort::RunOptions(), &input, &feed, 1, &output, 1)[0]);
}

TEST(ModelEditorTest, RunsAModelMadeFromScratch) {
  std::vector<float> weights = {0, 0, 0};
  const Owned<OrtModel> model = ModelOf(SoftmaxGraph(weights));
  for (int made = 0; made < 2; ++made) {
    Ort::Session session = SessionOf(model);
    EXPECT_THAT(session.GetInputNames(), ElementsAre("x"));
    const std::vector<float> y = RunOne(session, "x", {0, 1, 2}, "y");
    EXPECT_NEAR(y[0] + y[1] + y[2], 1, 1e-6);
    EXPECT_NEAR(y[2] / y[1], std::exp(1.0), 1e-5);
    int opset = 0;
    EXPECT_EQ(Outcome(Editor().SessionGetOpsetForDomain(session, "ai.onnx", &opset)), "");
    EXPECT_EQ(opset, 18);
  }
}

TEST(ModelEditorTest, WrongModelsAreErrors) {
  const auto error_of = [](Owned<OrtGraph> graph) {
    return ErrorOf([&] { SessionOf(ModelOf(std::move(graph))); });
  };
  EXPECT_THAT(error_of(nullptr), HasSubstr("no graph"));
  Owned<OrtGraph> undefined = NewGraph();
  SetInterface(undefined, {NewValue("x", {1})}, {NewValue("y", {1})});
  Add(undefined, NewNode("Relu", "relu", {"z"}, {"y"}));
  EXPECT_THAT(error_of(std::move(undefined)), HasSubstr("Relu node 'relu': Node input 'z' is not"));
  Owned<OrtGraph> twice = NewGraph();
  SetInterface(twice, {NewValue("x", {1})}, {NewValue("y", {1})});
  Add(twice, NewNode("Relu", "a", {"x"}, {"y"}));
  Add(twice, NewNode("Relu", "b", {"x"}, {"y"}));
  EXPECT_THAT(error_of(std::move(twice)), HasSubstr("'y' is defined more than once"));
  Owned<OrtGraph> cycle = NewGraph();
  SetInterface(cycle, {}, {NewValue("y", {1})});
  Add(cycle, NewNode("Relu", "a", {"y"}, {"z"}));
  Add(cycle, NewNode("Relu", "b", {"z"}, {"y"}));
  EXPECT_NE(error_of(std::move(cycle)), "");
}

// What is taken over is neither taken twice nor left to the caller, who may release it again.
TEST(ModelEditorTest, NothingIsTakenOverTwice) {
  OrtGraph* graph = nullptr;
  Ort::ThrowOnError(Editor().CreateGraph(&graph));
  const Owned<OrtGraph> owner(graph);
  OrtValueInfo* const x = NewValue("x", {2});
  OrtValueInfo* values[] = {x, x};
  EXPECT_THAT(Outcome(Editor().SetGraphInputs(graph, values, 2)), HasSubstr("Duplicate value 'x'"));
  EXPECT_EQ(values[0], x) << "an error takes nothing";
  EXPECT_EQ(Outcome(Editor().SetGraphInputs(graph, values, 1)), "");
  EXPECT_THAT(values, ElementsAre(nullptr, x));
  OrtValueInfo* again[] = {x};
  EXPECT_THAT(Outcome(Editor().SetGraphInputs(graph, again, 1)),
              HasSubstr("'x' has already been added"));
  EXPECT_THAT(Outcome(Editor().SetGraphOutputs(graph, again, 1)),
              HasSubstr("'x' has already been added"));

  OrtOpAttr* attributes[] = {NewInt("axis", 0), nullptr};
  attributes[1] = attributes[0];
  const char *in[] = {"x"}, *out[] = {"y"};
  OrtNode* node = nullptr;
  const auto create = [&](size_t count) {
    return Outcome(Editor().CreateNode("Concat", "", "c", in, 1, out, 1, attributes, count, &node));
  };
  EXPECT_THAT(create(2), HasSubstr("Duplicate attributes[1]"));
  EXPECT_EQ(create(1), "");
  EXPECT_EQ(attributes[0], nullptr);
  EXPECT_EQ(Outcome(Editor().AddNodeToGraph(graph, node)), "");
  EXPECT_THAT(Outcome(Editor().AddNodeToGraph(graph, node)), HasSubstr("already been added"));

  OrtGraph* second = nullptr;
  Ort::ThrowOnError(Editor().CreateGraph(&second));
  const Owned<OrtGraph> second_owner(second);
  EXPECT_THAT(Outcome(Editor().AddNodeToGraph(second, node)),
              HasSubstr("node 'c' has already been added to a graph"));
  EXPECT_THAT(Outcome(Editor().SetGraphInputs(second, again, 1)),
              HasSubstr("value 'x' has already been added to a graph"));
  OrtGraph* taken = nullptr;
  Ort::ThrowOnError(Editor().CreateGraph(&taken));
  const Owned<OrtModel> model = ModelOf(Owned<OrtGraph>(taken)), other_model = ModelOf(nullptr);
  EXPECT_THAT(Outcome(Editor().AddGraphToModel(other_model.get(), taken)),
              HasSubstr("the graph has already been added to a model"));

  const Ort::MemoryInfo cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  float number = 1;
  const int64_t shape[] = {1};
  const auto initializer = [&] {
    return Ort::Value::CreateTensor<float>(cpu, &number, 1, shape, 1).release();
  };
  EXPECT_EQ(Outcome(Editor().AddInitializerToGraph(graph, "w", initializer(), false)), "");
  OrtValue* const other = initializer();
  EXPECT_THAT(Outcome(Editor().AddInitializerToGraph(graph, "w", other, false)),
              HasSubstr("an initializer of the name 'w'"));
  Api().ReleaseValue(other);
}

TEST(ModelEditorTest, NullPointersAreErrors) {
  OrtTypeInfo* type = nullptr;
  OrtValueInfo* value = nullptr;
  OrtNode* node = nullptr;
  OrtModel* model = nullptr;
  EXPECT_NE(Outcome(Editor().CreateTensorTypeInfo(nullptr, &type)), "");
  EXPECT_NE(Outcome(Editor().CreateValueInfo("x", nullptr, &value)), "");
  EXPECT_NE(
      Outcome(Editor().CreateNode(nullptr, "", "", nullptr, 0, nullptr, 0, nullptr, 0, &node)), "");
  EXPECT_NE(Outcome(Editor().CreateNode("Relu", "", "", nullptr, 1, nullptr, 0, nullptr, 0, &node)),
            "");
  EXPECT_NE(Outcome(Editor().AddNodeToGraph(nullptr, nullptr)), "");
  EXPECT_NE(Outcome(Editor().AddGraphToModel(nullptr, nullptr)), "");
  const char* const domains[] = {""};
  const int opsets[] = {0};
  EXPECT_NE(Outcome(Editor().CreateModel(domains, opsets, 1, &model)), "");
  EXPECT_NE(Outcome(Editor().CreateSessionFromModel(Env(), nullptr, nullptr, nullptr)), "");
}

// z = Relu(x + y) with x and y of 3 elements.
Ort::Session EditedSession() {
  const std::string bytes = AddReluModel();
  OrtSession* session = nullptr;
  Ort::ThrowOnError(Editor().CreateModelEditorSessionFromArray(Env(), bytes.data(), bytes.size(),
                                                               nullptr, &session));
  return Ort::Session(session);
}

TEST(ModelEditorTest, ChangesTheModelOfASession) {
  Ort::Session session = EditedSession();
  EXPECT_THAT(session.GetInputNames(), ElementsAre("x", "y"));
  const char* const names[] = {"x"};
  EXPECT_THAT(ErrorOf([&] { session.Run(Ort::RunOptions(), names, nullptr, 0, names, 1); }),
              HasSubstr("FinalizeModelEditorSession"));
  // `y` is computed from a new input, and the former output is an intermediate value.
  Owned<OrtGraph> graph = NewGraph();
  SetInterface(graph, {NewValue("v", {3})}, {NewValue("w", {-1, 3})});
  Add(graph, NewNode("Neg", "before", {"v"}, {"y"}));
  Add(graph, NewNode("Identity", "constant", {"c"}, {"x"}));
  Add(graph, NewNode("Neg", "after", {"z"}, {"w"}));
  std::vector<float> constant = {10, 20, 30};
  Ort::ThrowOnError(Editor().AddInitializerToGraph(graph.get(), "c",
                                                   TensorOver(constant, {1, 3}).release(), false));
  const Owned<OrtModel> model = ModelOf(std::move(graph), 17);
  ASSERT_EQ(Outcome(Editor().ApplyModelToModelEditorSession(session, model.get())), "");
  EXPECT_THAT(session.GetInputNames(), ElementsAre("v"));
  EXPECT_THAT(session.GetOutputNames(), ElementsAre("w"));
  ASSERT_EQ(Outcome(Editor().FinalizeModelEditorSession(session, nullptr, nullptr)), "");
  EXPECT_THAT(RunOne(session, "v", {1, 25, 3}, "w"), ElementsAre(-9, 0, -27));
  EXPECT_NE(Outcome(Editor().FinalizeModelEditorSession(session, nullptr, nullptr)), "");
  EXPECT_NE(Outcome(Editor().ApplyModelToModelEditorSession(session, model.get())), "");
}

TEST(ModelEditorTest, OperatorSetsMustAgree) {
  Ort::Session session = EditedSession();
  Owned<OrtGraph> graph = NewGraph();
  Add(graph, NewNode("Neg", "after", {"z"}, {"w"}));
  EXPECT_THAT(Outcome(Editor().ApplyModelToModelEditorSession(session,
                                                              ModelOf(std::move(graph), 18).get())),
              HasSubstr("version 17"));
}

TEST(GraphViewTest, TellsNodesValuesAndAttributes) {
  std::vector<float> weights = {1, 2, 3};
  const Owned<OrtGraph> graph = SoftmaxGraph(weights);
  size_t count = 0;
  ASSERT_EQ(Outcome(Api().Graph_GetNumNodes(graph.get(), &count)), "");
  ASSERT_EQ(count, 2u);
  const OrtNode* nodes[2] = {};
  ASSERT_EQ(Outcome(Api().Graph_GetNodes(graph.get(), nodes, 2)), "");
  EXPECT_NE(Outcome(Api().Graph_GetNodes(graph.get(), nodes, 1)), "");
  const char* text = nullptr;
  ASSERT_EQ(Outcome(Api().Node_GetOperatorType(nodes[0], &text)), "");
  EXPECT_STREQ(text, "Add");  // topological order
  ASSERT_EQ(Outcome(Api().Node_GetName(nodes[1], &text)), "");
  EXPECT_STREQ(text, "softmax");
  const OrtValueInfo* inputs[2] = {};
  ASSERT_EQ(Outcome(Api().Node_GetInputs(nodes[0], inputs, 2)), "");
  bool flag = false;
  EXPECT_EQ(Outcome(Api().ValueInfo_IsRequiredGraphInput(inputs[0], &flag)), "");
  EXPECT_TRUE(flag);
  EXPECT_EQ(Outcome(Api().ValueInfo_IsConstantInitializer(inputs[1], &flag)), "");
  EXPECT_TRUE(flag);
  EXPECT_EQ(Outcome(Api().ValueInfo_IsGraphOutput(inputs[1], &flag)), "");
  EXPECT_FALSE(flag);
  const OrtValue* initializer = nullptr;
  ASSERT_EQ(Outcome(Api().ValueInfo_GetInitializerValue(inputs[1], &initializer)), "");
  const void* data = nullptr;
  EXPECT_EQ(Outcome(Api().GetTensorData(initializer, &data)), "");
  EXPECT_EQ(data, weights.data());
  const OrtValueInfo* sum[1] = {};
  ASSERT_EQ(Outcome(Api().Node_GetOutputs(nodes[0], sum, 1)), "");
  const OrtNode* producer = nullptr;
  size_t index = 7;
  EXPECT_EQ(Outcome(Api().ValueInfo_GetValueProducer(sum[0], &producer, &index)), "");
  EXPECT_EQ(producer, nodes[0]);
  EXPECT_EQ(index, 0u);
  const OrtNode* consumer = nullptr;
  int64_t input = 7;
  ASSERT_EQ(Outcome(Api().ValueInfo_GetValueConsumers(sum[0], &consumer, &input, 1)), "");
  EXPECT_EQ(consumer, nodes[1]);
  EXPECT_EQ(input, 0);
  const OrtOpAttr* attribute = nullptr;
  ASSERT_EQ(Outcome(Api().Node_GetAttributeByName(nodes[1], "axis", &attribute)), "");
  int64_t axis = 7;
  size_t bytes = 0;
  EXPECT_EQ(Outcome(Api().ReadOpAttr(attribute, ORT_OP_ATTR_INT, &axis, sizeof(axis), &bytes)), "");
  EXPECT_EQ(axis, 0);
  EXPECT_THAT(Outcome(Api().Node_GetAttributeByName(nodes[1], "axes", &attribute)),
              HasSubstr("'axes'"));
  EXPECT_EQ(Outcome(Api().Node_GetNumSubgraphs(nodes[1], &count)), "");
  EXPECT_EQ(count, 0u);
}

TEST(GraphViewTest, PartsHaveInputsAndOutputsOfTheirOwn) {
  std::vector<float> weights = {1, 2, 3};
  const Owned<OrtGraph> graph = SoftmaxGraph(weights);
  const OrtNode* nodes[2] = {};
  ASSERT_EQ(Outcome(Api().Graph_GetNodes(graph.get(), nodes, 2)), "");
  OrtGraph* raw = nullptr;
  ASSERT_EQ(Outcome(Api().Graph_GetGraphView(graph.get(), nodes, 1, &raw)), "");
  const Owned<OrtGraph> part(raw);
  const OrtValueInfo* value = nullptr;
  const char* name = nullptr;
  ASSERT_EQ(Outcome(Api().Graph_GetInputs(part.get(), &value, 1)), "");
  EXPECT_EQ(Outcome(Api().GetValueInfoName(value, &name)), "");
  EXPECT_STREQ(name, "x");
  ASSERT_EQ(Outcome(Api().Graph_GetInitializers(part.get(), &value, 1)), "");
  EXPECT_EQ(Outcome(Api().GetValueInfoName(value, &name)), "");
  EXPECT_STREQ(name, "w");
  ASSERT_EQ(Outcome(Api().Graph_GetOutputs(part.get(), &value, 1)), "");
  EXPECT_EQ(Outcome(Api().GetValueInfoName(value, &name)), "");
  EXPECT_STREQ(name, "sum");
  EXPECT_NE(Outcome(Editor().AddNodeToGraph(part.get(), nullptr)), "");
}

TEST(GraphViewTest, TellsTheModelsPropertiesAndTheNodesPlaces) {
  std::vector<float> weights = {1, 2, 3};
  const Owned<OrtGraph> graph = SoftmaxGraph(weights);
  size_t count = 0;
  EXPECT_EQ(Outcome(Api().Graph_GetNumOutputs(graph.get(), &count)), "");
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(Outcome(Api().Graph_GetNumInitializers(graph.get(), &count)), "");
  EXPECT_EQ(count, 1u);
  int64_t version = 0;
  EXPECT_EQ(Outcome(Api().Graph_GetOnnxIRVersion(graph.get(), &version)), "");
  EXPECT_GT(version, 0);
  ASSERT_EQ(Outcome(Api().Graph_GetNumOperatorSets(graph.get(), &count)), "");
  std::vector<const char*> domains(count);
  std::vector<int64_t> versions(count);
  EXPECT_EQ(
      Outcome(Api().Graph_GetOperatorSets(graph.get(), domains.data(), versions.data(), count)),
      "");
  EXPECT_NE(
      Outcome(Api().Graph_GetOperatorSets(graph.get(), domains.data(), versions.data(), count + 1)),
      "");
  const ORTCHAR_T* path = nullptr;
  EXPECT_EQ(Outcome(Api().Graph_GetModelPath(graph.get(), &path)), "");
  EXPECT_STREQ(path, "");  // made, not read
  OrtModelMetadata* metadata = nullptr;
  ASSERT_EQ(Outcome(Api().Graph_GetModelMetadata(graph.get(), &metadata)), "");
  EXPECT_EQ(Ort::ModelMetadata(metadata).GetVersion(), INT64_MAX);  // none
  const OrtNode* parent = reinterpret_cast<const OrtNode*>(&version);
  EXPECT_EQ(Outcome(Api().Graph_GetParentNode(graph.get(), &parent)), "");
  EXPECT_EQ(parent, nullptr);

  const OrtNode* nodes[2] = {};
  ASSERT_EQ(Outcome(Api().Graph_GetNodes(graph.get(), nodes, 2)), "");
  size_t ids[2] = {};
  EXPECT_EQ(Outcome(Api().Node_GetId(nodes[0], &ids[0])), "");
  EXPECT_EQ(Outcome(Api().Node_GetId(nodes[1], &ids[1])), "");
  EXPECT_NE(ids[0], ids[1]);
  const char* text = nullptr;
  EXPECT_EQ(Outcome(Api().Node_GetDomain(nodes[0], &text)), "");
  EXPECT_STREQ(text, "");
  EXPECT_EQ(Outcome(Api().Node_GetEpName(nodes[0], &text)), "");
  EXPECT_STREQ(text, "");
  int since = 7;
  EXPECT_EQ(Outcome(Api().Node_GetSinceVersion(nodes[1], &since)), "");
  EXPECT_EQ(since, 0);  // unknown until a model says which opset it imports
  EXPECT_EQ(Outcome(Api().Node_GetNumOutputs(nodes[1], &count)), "");
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(Outcome(Api().Node_GetNumImplicitInputs(nodes[1], &count)), "");
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(Outcome(Api().Node_GetImplicitInputs(nodes[1], nullptr, 0)), "");
  EXPECT_EQ(Outcome(Api().Node_GetSubgraphs(nodes[1], nullptr, 0, nullptr)), "");
  ASSERT_EQ(Outcome(Api().Node_GetNumAttributes(nodes[1], &count)), "");
  ASSERT_EQ(count, 1u);
  const OrtOpAttr* attribute = nullptr;
  EXPECT_EQ(Outcome(Api().Node_GetAttributes(nodes[1], &attribute, 1)), "");
  EXPECT_EQ(Outcome(Api().OpAttr_GetName(attribute, &text)), "");
  EXPECT_STREQ(text, "axis");
  const OrtGraph* holder = nullptr;
  EXPECT_EQ(Outcome(Api().Node_GetGraph(nodes[0], &holder)), "");
  EXPECT_EQ(Outcome(Api().Graph_GetNumNodes(holder, &count)), "");
  EXPECT_EQ(count, 2u);
}

TEST(GraphViewTest, TellsWhereValuesComeFrom) {
  std::vector<float> weights = {1, 2, 3};
  const Owned<OrtGraph> graph = SoftmaxGraph(weights);
  const OrtValueInfo *x = nullptr, *w = nullptr;
  ASSERT_EQ(Outcome(Api().Graph_GetInputs(graph.get(), &x, 1)), "");
  ASSERT_EQ(Outcome(Api().Graph_GetInitializers(graph.get(), &w, 1)), "");
  const OrtTypeInfo* type = nullptr;
  EXPECT_EQ(Outcome(Api().GetValueInfoTypeInfo(w, &type)), "");
  EXPECT_THAT(Ort::ConstTypeInfo(type).GetTensorTypeAndShapeInfo().GetShape(), ElementsAre(3));
  bool flag = true;
  EXPECT_EQ(Outcome(Api().ValueInfo_IsOptionalGraphInput(x, &flag)), "");
  EXPECT_FALSE(flag);
  flag = true;
  EXPECT_EQ(Outcome(Api().ValueInfo_IsFromOuterScope(x, &flag)), "");
  EXPECT_FALSE(flag);
  OrtExternalInitializerInfo* info = reinterpret_cast<OrtExternalInitializerInfo*>(&flag);
  EXPECT_EQ(Outcome(Api().ValueInfo_GetExternalInitializerInfo(w, &info)), "");
  EXPECT_EQ(info, nullptr);  // it lies in memory
  OrtValueInfo* const value = NewValue("alone", {1});
  EXPECT_THAT(Outcome(Api().ValueInfo_IsFromOuterScope(value, &flag)), HasSubstr("no graph"));
  Api().ReleaseValueInfo(value);
}

TEST(ExternalInitializerTest, SaysWhereItIs) {
  OrtExternalInitializerInfo* info = nullptr;
  ASSERT_EQ(Outcome(Api().CreateExternalInitializerInfo("weights.bin", 64, 12, &info)), "");
  EXPECT_STREQ(Api().ExternalInitializerInfo_GetFilePath(info), "weights.bin");
  EXPECT_EQ(Api().ExternalInitializerInfo_GetFileOffset(info), 64);
  EXPECT_EQ(Api().ExternalInitializerInfo_GetByteSize(info), 12u);
  Api().ReleaseExternalInitializerInfo(info);
  EXPECT_NE(Outcome(Api().CreateExternalInitializerInfo("weights.bin", -1, 12, &info)), "");
  EXPECT_NE(Outcome(Api().CreateExternalInitializerInfo("", 64, 12, &info)), "");
}

TEST(GraphViewTest, MadeNodesKnowNoGraph) {
  const Owned<OrtNode> node(NewNode("Relu", "relu", {"x"}, {"y"}));
  size_t count = 0;
  EXPECT_EQ(Outcome(Api().Node_GetNumInputs(node.get(), &count)), "");
  EXPECT_EQ(count, 1u);
  const OrtValueInfo* input = nullptr;
  EXPECT_THAT(Outcome(Api().Node_GetInputs(node.get(), &input, 1)), HasSubstr("no graph"));
  EXPECT_NE(Outcome(Api().Graph_GetName(nullptr, nullptr)), "");
  EXPECT_NE(Outcome(Api().Node_GetName(nullptr, nullptr)), "");
  EXPECT_NE(Outcome(Api().ValueInfo_IsGraphOutput(nullptr, nullptr)), "");
}

// The same in C++: Neg(x) in front of AddReluModel, seen and run.
TEST(ModelEditorTest, HasCxxClasses) {
  const std::string bytes = AddReluModel();
  const Ort::SessionOptions options;
  Ort::Session session =
      Ort::Session::CreateModelEditorSession(Env(), bytes.data(), bytes.size(), options);
  EXPECT_EQ(session.GetOpset(""), 17);
  Ort::Graph graph;
  std::vector<Ort::ValueInfo> inputs;
  inputs.emplace_back("v", session.GetInputTypeInfo(0).GetConst());
  inputs.emplace_back("y", session.GetInputTypeInfo(1).GetConst());
  graph.SetInputs(inputs);
  Ort::Node node("Neg", "", "front", {"v"}, {"x"});
  EXPECT_EQ(node.GetOperatorType(), "Neg");
  graph.AddNode(node);
  EXPECT_THAT(graph.GetNodes()[0].GetInputs()[0].GetName(), "v");
  EXPECT_EQ(graph.GetInputs()[0].GetConsumers()[0].GetNode().GetName(), "front");
  Ort::Model model({{"", 17}});
  model.AddGraph(graph);
  session.FinalizeModelEditorSession(model, options);
  std::vector<float> v = {5, -1, -2}, y = {1, 1, 1};
  const Ort::Value feeds[] = {TensorOver(v, {1, 3}), TensorOver(y, {3})};
  const char* const input_names[] = {"v", "y"};
  const char* const output_names[] = {"z"};
  EXPECT_THAT(
      ElementsOf<float>(session.Run(Ort::RunOptions(), input_names, feeds, 2, output_names, 1)[0]),
      ElementsAre(0, 2, 3));
  Ort::ModelCompilationOptions compilation(Env(), options);
  compilation.SetInputModelFromBuffer(bytes.data(), bytes.size());
  EXPECT_FALSE(Ort::CompileModel(Env(), compilation).IsOK());
}

Owned<OrtModelCompilationOptions> NewCompilation() {
  const Ort::SessionOptions session_options;
  OrtModelCompilationOptions* options = nullptr;
  Ort::ThrowOnError(
      Compiler().CreateModelCompilationOptionsFromSessionOptions(Env(), session_options, &options));
  return Owned<OrtModelCompilationOptions>(options);
}

std::vector<float> RunAddRelu(Ort::Session& session) {
  std::vector<float> x = {-5, 1, 2}, y = {1, 1, 1};
  const Ort::Value inputs[] = {TensorOver(x, {1, 3}), TensorOver(y, {3})};
  const char* const input_names[] = {"x", "y"};
  const char* const output_names[] = {"z"};
  return ElementsOf<float>(
      session.Run(Ort::RunOptions(), input_names, inputs, 2, output_names, 1)[0]);
}

TEST(CompileTest, WritesFilesBuffersAndThroughFunctions) {
  const std::string bytes = AddReluModel();
  const tenon::TemporaryFolder folder;
  const Owned<OrtModelCompilationOptions> options = NewCompilation();
  EXPECT_THAT(Outcome(Compiler().CompileModel(Env(), options.get())), HasSubstr("no model"));
  Ort::ThrowOnError(Compiler().ModelCompilationOptions_SetInputModelFromBuffer(
      options.get(), bytes.data(), bytes.size()));
  EXPECT_THAT(Outcome(Compiler().CompileModel(Env(), options.get())),
              HasSubstr("no output path or buffer"));
  const std::string path = folder.path() + "/out.onnx";
  Ort::ThrowOnError(
      Compiler().ModelCompilationOptions_SetOutputModelPath(options.get(), path.c_str()));
  ASSERT_EQ(Outcome(Compiler().CompileModel(Env(), options.get())), "");
  Ort::Session from_file(Env(), path.c_str(), Ort::SessionOptions());
  EXPECT_THAT(RunAddRelu(from_file), ElementsAre(0, 2, 3));
  Ort::ThrowOnError(Compiler().ModelCompilationOptions_SetFlags(
      options.get(), OrtCompileApiFlags_ERROR_IF_OUTPUT_FILE_EXISTS));
  EXPECT_THAT(Outcome(Compiler().CompileModel(Env(), options.get())), HasSubstr("exists"));

  Ort::AllocatorWithDefaultOptions allocator;
  void* buffer = nullptr;
  size_t size = 0;
  Ort::ThrowOnError(Compiler().ModelCompilationOptions_SetOutputModelBuffer(
      options.get(), allocator, &buffer, &size));
  ASSERT_EQ(Outcome(Compiler().CompileModel(Env(), options.get())), "");
  Ort::Session from_buffer(Env(), buffer, size, Ort::SessionOptions());
  EXPECT_THAT(RunAddRelu(from_buffer), ElementsAre(0, 2, 3));
  allocator.Free(buffer);

  std::string written;
  const auto write = [](void* state, const void* data, size_t bytes) -> OrtStatus* {
    static_cast<std::string*>(state)->append(static_cast<const char*>(data), bytes);
    return nullptr;
  };
  Ort::ThrowOnError(
      Compiler().ModelCompilationOptions_SetOutputModelWriteFunc(options.get(), write, &written));
  ASSERT_EQ(Outcome(Compiler().CompileModel(Env(), options.get())), "");
  Ort::Session from_function = Open(written);
  EXPECT_THAT(RunAddRelu(from_function), ElementsAre(0, 2, 3));
  Ort::ThrowOnError(Compiler().ModelCompilationOptions_SetFlags(
      options.get(), OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED));
  EXPECT_THAT(Outcome(Compiler().CompileModel(Env(), options.get())), HasSubstr("any nodes"));
}

TEST(CompileTest, ReadsFilesAndModelsAndKeepsInitializersBesideThem) {
  std::vector<float> weights(64, 1);
  const tenon::TemporaryFolder folder;
  const Owned<OrtModelCompilationOptions> options = NewCompilation();
  const Owned<OrtModel> model = ModelOf(SoftmaxGraph(weights));
  Ort::ThrowOnError(Compiler().ModelCompilationOptions_SetInputModel(options.get(), model.get()));
  EXPECT_EQ(Outcome(Compiler().ModelCompilationOptions_SetGraphOptimizationLevel(options.get(),
                                                                                 ORT_ENABLE_BASIC)),
            "");
  EXPECT_NE(Outcome(Compiler().ModelCompilationOptions_SetGraphOptimizationLevel(
                options.get(), static_cast<GraphOptimizationLevel>(-5))),
            "");
  EXPECT_EQ(Outcome(Compiler().ModelCompilationOptions_SetEpContextEmbedMode(options.get(), true)),
            "");
  EXPECT_EQ(Outcome(Compiler().ModelCompilationOptions_SetWeightlessEnabled(options.get(), false)),
            "");
  EXPECT_EQ(Outcome(Compiler().ModelCompilationOptions_SetEpContextBinaryInformation(
                options.get(), folder.path().c_str(), "model")),
            "");
  EXPECT_NE(Outcome(Compiler().ModelCompilationOptions_SetEpContextBinaryInformation(
                options.get(), nullptr, "model")),
            "");
  EXPECT_NE(Outcome(Compiler().ModelCompilationOptions_SetOutputModelExternalInitializersFile(
                options.get(), "", 0)),
            "");
  Ort::ThrowOnError(Compiler().ModelCompilationOptions_SetOutputModelExternalInitializersFile(
      options.get(), "weights.bin", 16));
  const std::string first = folder.path() + "/first.onnx", second = folder.path() + "/second.onnx";
  Ort::ThrowOnError(
      Compiler().ModelCompilationOptions_SetOutputModelPath(options.get(), first.c_str()));
  ASSERT_EQ(Outcome(Compiler().CompileModel(Env(), options.get())), "");
  EXPECT_EQ(folder.SizeOf("weights.bin"), 256);

  const Owned<OrtModelCompilationOptions> again = NewCompilation();
  Ort::ThrowOnError(
      Compiler().ModelCompilationOptions_SetInputModelPath(again.get(), first.c_str()));
  Ort::ThrowOnError(
      Compiler().ModelCompilationOptions_SetOutputModelPath(again.get(), second.c_str()));
  ASSERT_EQ(Outcome(Compiler().CompileModel(Env(), again.get())), "");
  OrtSession* session = nullptr;
  ASSERT_EQ(Outcome(Editor().CreateModelEditorSession(Env(), second.c_str(), nullptr, &session)),
            "");
  int opset = 0;
  EXPECT_EQ(Outcome(Editor().SessionGetOpsetForDomain(session, "", &opset)), "");
  EXPECT_EQ(opset, 18);
  Api().ReleaseSession(session);
}

TEST(CompileTest, AsksWhereInitializersGo) {
  const std::string bytes = ModelBuilder()
                                .Input("x", TensorType(kFloat, {3}))
                                .Initializer("w", {10, 20, 30})
                                .Node("Add", {"x", "w"}, {"y"})
                                .Output("y", TensorType(kFloat, {3}))
                                .Bytes();
  const Owned<OrtModelCompilationOptions> options = NewCompilation();
  Ort::ThrowOnError(Compiler().ModelCompilationOptions_SetInputModelFromBuffer(
      options.get(), bytes.data(), bytes.size()));
  std::string written, file = "12345678";
  const auto write = [](void* state, const void* data, size_t size) -> OrtStatus* {
    static_cast<std::string*>(state)->append(static_cast<const char*>(data), size);
    return nullptr;
  };
  Ort::ThrowOnError(
      Compiler().ModelCompilationOptions_SetOutputModelWriteFunc(options.get(), write, &written));
  const auto place = [](void* state, const char*, const OrtValue* value,
                        const OrtExternalInitializerInfo* existing,
                        OrtExternalInitializerInfo** out) -> OrtStatus* {
    EXPECT_EQ(existing, nullptr);
    auto& content = *static_cast<std::string*>(state);
    const auto offset = static_cast<int64_t>(content.size());
    const void* data = nullptr;
    size_t size = 0;
    Ort::ThrowOnError(Api().GetTensorData(value, &data));
    Ort::ThrowOnError(Api().GetTensorSizeInBytes(value, &size));
    content.append(static_cast<const char*>(data), size);
    return Api().CreateExternalInitializerInfo("side.bin", offset, size, out);
  };
  Ort::ThrowOnError(Compiler().ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc(
      options.get(), place, &file));
  ASSERT_EQ(Outcome(Compiler().CompileModel(Env(), options.get())), "");
  EXPECT_EQ(file.size(), 20u);
  const char* const names[] = {"side.bin"};
  char* const buffers[] = {file.data()};
  const size_t sizes[] = {file.size()};
  Ort::SessionOptions session_options;
  Ort::ThrowOnError(
      Api().AddExternalInitializersFromFilesInMemory(session_options, names, buffers, sizes, 1));
  Ort::Session session = Open(written, session_options);
  EXPECT_THAT(RunOne(session, "x", {1, 2, 3}, "y"), ElementsAre(11, 22, 33));
}

}  // namespace
}  // namespace tenon::test
