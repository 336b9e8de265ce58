// What plugins see of graphs, and of the client's functions for the data of compiled models.
#include <onnxruntime_experimental_cxx_api.h>

#include <array>

#include "base/temporary_folder.h"
#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
constexpr auto kBool = ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;

using Values = std::vector<const OrtValueInfo*>;

std::string NameOf(const OrtValueInfo* value) {
  const char* name = nullptr;
  EXPECT_EQ(Outcome(Api().GetValueInfoName(value, &name)), "");
  return name;
}

Values InputsOf(const OrtGraph* graph) {
  size_t count = 0;
  EXPECT_EQ(Outcome(Api().Graph_GetNumInputs(graph, &count)), "");
  Values values(count);
  EXPECT_EQ(Outcome(Api().Graph_GetInputs(graph, values.data(), count)), "");
  return values;
}

Values OutputsOf(const OrtGraph* graph) {
  size_t count = 0;
  EXPECT_EQ(Outcome(Api().Graph_GetNumOutputs(graph, &count)), "");
  Values values(count);
  EXPECT_EQ(Outcome(Api().Graph_GetOutputs(graph, values.data(), count)), "");
  return values;
}

std::vector<const OrtNode*> NodesOf(const OrtGraph* graph) {
  size_t count = 0;
  EXPECT_EQ(Outcome(Api().Graph_GetNumNodes(graph, &count)), "");
  std::vector<const OrtNode*> nodes(count);
  EXPECT_EQ(Outcome(Api().Graph_GetNodes(graph, nodes.data(), count)), "");
  return nodes;
}

std::string OperatorOf(const OrtNode* node) {
  const char* op_type = nullptr;
  EXPECT_EQ(Outcome(Api().Node_GetOperatorType(node, &op_type)), "");
  return op_type;
}

using Query = OrtStatusPtr (*)(const OrtValueInfo*, bool*);
bool Is(Query query, const OrtValueInfo* value) {
  bool answer = false;
  EXPECT_EQ(Outcome(query(value, &answer)), "");
  return answer;
}

class PluginGraphTest : public MockTest {
 protected:
  // Calls `look` for every graph that the mock may claim from. It takes no product.
  void LookAt(const std::string& model, std::function<void(const OrtGraph*)> look) {
    ASSERT_EQ(Register(), "");
    Mock().claims = MockClaims::kNothing;
    Mock().on_graph = std::move(look);
    Ort::SessionOptions options = OptionsForMock();
    options.SetGraphOptimizationLevel(ORT_DISABLE_ALL);
    Ort::Session(Env(), model.data(), model.size(), options);
  }
};

TEST_F(PluginGraphTest, MetadataIsThatOfTheModel) {
  const std::string model = ModelBuilder()
                                .Input("x", TensorType(kFloat, {"n"}))
                                .Node("Relu", {"x"}, {"y"})
                                .Output("y", TensorType(kFloat, {"n"}))
                                .Metadata("author", "somebody")
                                .Bytes();
  std::string author;
  LookAt(model, [&](const OrtGraph* graph) {
    OrtModelMetadata* raw = nullptr;
    ASSERT_EQ(Outcome(Api().Graph_GetModelMetadata(graph, &raw)), "");
    const Ort::ModelMetadata metadata(raw);
    Ort::AllocatorWithDefaultOptions allocator;
    author = metadata.LookupCustomMetadataMapAllocated("author", allocator).get();
    EXPECT_NE(metadata.GetGraphNameAllocated(allocator), nullptr);
  });
  EXPECT_EQ(author, "somebody");
}

// y = if b { x * w } else { x + w }, with w of the outer graph.
std::string BranchModel() {
  const std::string type = TensorType(kFloat, {2});
  const ModelBuilder then = ModelBuilder().Node("Mul", {"x", "w"}, {"t"}).Output("t", type);
  const ModelBuilder otherwise = ModelBuilder().Node("Add", {"x", "w"}, {"e"}).Output("e", type);
  return ModelBuilder()
      .Input("b", TensorType(kBool, {}))
      .Input("x", type)
      .Initializer("w", {3, 5})
      .ControlNode("If", {"b"}, {"y"}, {{"then_branch", then}, {"else_branch", otherwise}})
      .Output("y", type)
      .Bytes();
}

TEST_F(PluginGraphTest, BodiesKnowTheirNodeAndTheConstantsOfOuterGraphs) {
  int bodies = 0;
  LookAt(BranchModel(), [&](const OrtGraph* graph) {
    const std::vector<const OrtNode*> nodes = NodesOf(graph);
    ASSERT_FALSE(nodes.empty());
    const OrtNode* parent = nullptr;
    ASSERT_EQ(Outcome(Api().Graph_GetParentNode(graph, &parent)), "");
    if (OperatorOf(nodes[0]) == "If") {
      EXPECT_EQ(parent, nullptr);
      return;
    }
    ++bodies;
    ASSERT_NE(parent, nullptr);
    EXPECT_EQ(OperatorOf(parent), "If");
    std::array<const OrtValueInfo*, 2> inputs = {};
    ASSERT_EQ(Outcome(Api().Node_GetInputs(nodes[0], inputs.data(), inputs.size())), "");
    EXPECT_TRUE(Is(Api().ValueInfo_IsFromOuterScope, inputs[0]));
    EXPECT_FALSE(Is(Api().ValueInfo_IsConstantInitializer, inputs[0]));
    EXPECT_TRUE(Is(Api().ValueInfo_IsFromOuterScope, inputs[1]));
    EXPECT_TRUE(Is(Api().ValueInfo_IsConstantInitializer, inputs[1]));
    const OrtValue* constant = nullptr;
    ASSERT_EQ(Outcome(Api().ValueInfo_GetInitializerValue(inputs[1], &constant)), "");
    ASSERT_NE(constant, nullptr);
    const float* const elements = Ort::ConstValue(constant).GetTensorData<float>();
    EXPECT_THAT(std::vector<float>(elements, elements + 2), ElementsAre(3, 5));
  });
  EXPECT_EQ(bodies, 2);
}

TEST_F(PluginGraphTest, ANodeThatReadsAValueInItsBodiesIsOneMoreUse) {
  LookAt(BranchModel(), [&](const OrtGraph* graph) {
    if (OperatorOf(NodesOf(graph)[0]) != "If") return;
    for (const OrtValueInfo* const input : InputsOf(graph)) {
      size_t count = 0;
      ASSERT_EQ(Outcome(Api().ValueInfo_GetValueNumConsumers(input, &count)), "");
      ASSERT_EQ(count, 1u);
      const OrtNode* node = nullptr;
      int64_t place = 0;
      ASSERT_EQ(Outcome(Api().ValueInfo_GetValueConsumers(input, &node, &place, 1)), "");
      EXPECT_EQ(place, NameOf(input) == "b" ? 0 : -1);
    }
  });
}

TEST_F(PluginGraphTest, UnsetAttributesAreThereWithTheirDefaults) {
  const std::string type = TensorType(kFloat, {2, 2});
  const std::string model = ModelBuilder()
                                .Input("x", type)
                                .Initializer("w", {1, 2, 3, 4}, 2)
                                .Node("Gemm", {"x", "w"}, {"y"})
                                .Output("y", type)
                                .Bytes();
  bool was_seen = false;
  LookAt(model, [&](const OrtGraph* graph) {
    was_seen = true;
    const OrtNode* const gemm = NodesOf(graph).at(0);
    size_t count = 0;
    ASSERT_EQ(Outcome(Api().Node_GetNumAttributes(gemm, &count)), "");
    std::vector<const OrtOpAttr*> attributes(count);
    ASSERT_EQ(Outcome(Api().Node_GetAttributes(gemm, attributes.data(), count)), "");
    std::vector<std::string> names;
    for (const OrtOpAttr* const attribute : attributes) {
      const char* name = nullptr;
      ASSERT_EQ(Outcome(Api().OpAttr_GetName(attribute, &name)), "");
      names.emplace_back(name);
    }
    EXPECT_THAT(names, UnorderedElementsAre("alpha", "beta", "transA", "transB"));
    const OrtOpAttr* alpha = nullptr;
    ASSERT_EQ(Outcome(Api().Node_GetAttributeByName(gemm, "alpha", &alpha)), "");
    ASSERT_NE(alpha, nullptr);
    float value = 0;
    size_t size = 0;
    ASSERT_EQ(Outcome(Api().ReadOpAttr(alpha, ORT_OP_ATTR_FLOAT, &value, sizeof(value), &size)),
              "");
    EXPECT_EQ(value, 1);
  });
  EXPECT_TRUE(was_seen);
}

// y = Relu(a * b), z = Neg(a * b)
TEST_F(PluginGraphTest, AViewHasTheInputsAndOutputsOfItsNodes) {
  const std::string type = TensorType(kFloat, {2});
  const std::string model = ModelBuilder()
                                .Input("a", type)
                                .Input("b", type)
                                .Node("Mul", {"b", "a"}, {"m"})
                                .Node("Relu", {"m"}, {"y"})
                                .Node("Neg", {"m"}, {"z"})
                                .Output("y", type)
                                .Output("z", type)
                                .Bytes();
  bool was_seen = false;
  LookAt(model, [&](const OrtGraph* graph) {
    was_seen = true;
    const OrtNode* product = NodesOf(graph).at(0);
    OrtGraph* view = nullptr;
    ASSERT_EQ(Outcome(Api().Graph_GetGraphView(graph, &product, 1, &view)), "");
    const Values inputs = InputsOf(view), outputs = OutputsOf(view);
    // In the order of the graph's own inputs, not of their uses.
    ASSERT_EQ(inputs.size(), 2u);
    EXPECT_EQ(NameOf(inputs[0]), "a");
    EXPECT_EQ(NameOf(inputs[1]), "b");
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(NameOf(outputs[0]), "m");
    EXPECT_TRUE(Is(Api().ValueInfo_IsGraphOutput, outputs[0]));
    Api().ReleaseGraph(view);
    EXPECT_THAT(Outcome(Api().Graph_GetGraphView(graph, &product, 0, &view)),
                HasSubstr("needs a node"));
    // More room than there are entries is no error.
    std::array<const OrtValueInfo*, 5> room = {};
    EXPECT_EQ(Outcome(Api().Graph_GetOutputs(graph, room.data(), room.size())), "");
    EXPECT_NE(room[1], nullptr);
    EXPECT_EQ(room[2], nullptr);
  });
  EXPECT_TRUE(was_seen);
}

TEST_F(PluginGraphTest, FusedNodesHaveTheNameOfTheirProvider) {
  ASSERT_EQ(Register(), "");
  std::vector<std::string> owners;
  Mock().on_fused = [&](const OrtNode* node) {
    const char* owner = nullptr;
    ASSERT_EQ(Outcome(Api().Node_GetEpName(node, &owner)), "");
    owners.emplace_back(owner);
  };
  Mock().on_graph = [&](const OrtGraph* graph) {
    for (const OrtNode* const node : NodesOf(graph)) {
      const char* owner = nullptr;
      ASSERT_EQ(Outcome(Api().Node_GetEpName(node, &owner)), "");
      EXPECT_STREQ(owner, "");
    }
  };
  Ort::SessionOptions options = OptionsForMock();
  const std::string model = SquareModel();
  const Ort::Session session(Env(), model.data(), model.size(), options);
  EXPECT_THAT(owners, ElementsAre(kMock));
}

TEST_F(PluginGraphTest, EachNodeOfTheCpuIsASubgraphOfItsOwn) {
  ASSERT_EQ(Register(), "");
  Ort::SessionOptions options = OptionsForMock();
  options.SetGraphOptimizationLevel(ORT_DISABLE_ALL);
  const std::string type = TensorType(kFloat, {"n"});
  const std::string model = ModelBuilder()
                                .Input("x", type)
                                .Node("Neg", {"x"}, {"a"})
                                .Node("Mul", {"a", "a"}, {"m"})
                                .Node("Abs", {"m"}, {"y"})
                                .Output("y", type)
                                .Bytes();
  const Ort::Session session(Env(), model.data(), model.size(), options);
  const OrtEpAssignedSubgraph* const* subgraphs = nullptr;
  size_t count = 0;
  ASSERT_EQ(Outcome(Api().Session_GetEpGraphAssignmentInfo(session, &subgraphs, &count)), "");
  EXPECT_EQ(count, 3u);
}

// --- functions for the data of compiled models ---

OrtStatus* ORT_API_CALL ReadNothing(void*, const char*, OrtAllocator*, void**, size_t*) {
  return nullptr;
}
OrtStatus* ORT_API_CALL WriteNothing(void*, const char*, const void*, size_t) { return nullptr; }

TEST_F(PluginGraphTest, ProvidersGetTheClientsFunctionsForContextData) {
  namespace experimental = Ort::Experimental;
  ASSERT_EQ(Register(), "");
  int state = 0;
  OrtReadNamedBufferFunc read = nullptr;
  OrtWriteNamedBufferFunc write = nullptr;
  void *read_state = nullptr, *write_state = nullptr;
  Mock().on_create = [&](const OrtSessionOptions* options) {
    const experimental::EpContextConfig config{Ort::ConstSessionOptions(options)};
    config.GetReadFunc(read, read_state);
    config.GetWriteFunc(write, write_state);
  };
  Ort::SessionOptions options = OptionsForMock();
  const auto set =
      experimental::Get_OrtApi_SessionOptions_SetEpContextDataReadFunc_SinceV28_FnOrThrow(&Api());
  ASSERT_EQ(Outcome(set(options, ReadNothing, &state)), "");
  const std::string model = SquareModel();
  Ort::Session(Env(), model.data(), model.size(), options);
  EXPECT_EQ(read, &ReadNothing);
  EXPECT_EQ(read_state, &state);
  EXPECT_EQ(write, nullptr);
  EXPECT_EQ(write_state, nullptr);

  const TemporaryFolder folder;
  const std::string path = folder / "compiled.onnx";
  Ort::ModelCompilationOptions compile(Env(), options);
  compile.SetInputModelFromBuffer(model.data(), model.size());
  compile.SetOutputModelPath(path.c_str());
  const auto set_write = experimental::
      Get_OrtCompileApi_ModelCompilationOptions_SetEpContextDataWriteFunc_SinceV28_FnOrThrow(
          &Api());
  ASSERT_EQ(Outcome(set_write(compile, WriteNothing, &state)), "");
  ASSERT_TRUE(Ort::CompileModel(Env(), compile).IsOK());
  EXPECT_EQ(read, &ReadNothing);
  EXPECT_EQ(write, &WriteNothing);
  EXPECT_EQ(write_state, &state);

  // A null function takes its state with it.
  ASSERT_EQ(Outcome(set(options, nullptr, &state)), "");
  Ort::Session(Env(), model.data(), model.size(), options);
  EXPECT_EQ(read, nullptr);
  EXPECT_EQ(read_state, nullptr);
}

// --- registration ---

TEST_F(PluginGraphTest, NamesThatEndInVirtualPermitVirtualDevices) {
  constexpr const char* kKey = "allow_virtual_devices";
  const auto entry = [&] {
    const Ort::KeyValuePairs entries = Ort::GetEnvConfigEntries();
    const char* const value = entries.GetValue(kKey);
    return std::string(value == nullptr ? "" : value);
  };
  Mock().is_virtual = true;
  ASSERT_EQ(Register(), "");
  EXPECT_THAT(MockDevices(), IsEmpty());
  ASSERT_EQ(Unregister(), "");
  EXPECT_EQ(entry(), "");
  ASSERT_EQ(Register(MOCK_PLUGIN, "mock.virtual"), "");
  EXPECT_THAT(MockDevices(), Not(IsEmpty()));
  EXPECT_EQ(entry(), "1");
  ASSERT_EQ(Unregister("mock.virtual"), "");
  EXPECT_EQ(entry(), "");
}

}  // namespace
}  // namespace tenon::test
