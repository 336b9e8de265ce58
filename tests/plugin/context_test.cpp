// Compiled models: how EPContext nodes are made and run (plugin-ep, section 5).
#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "base/temporary_folder.h"
#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const OrtCompileApi& Compiler() { return *Api().GetCompileApi(); }

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool Exists(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0;
}

struct ReleaseCompilation {
  void operator()(OrtModelCompilationOptions* options) const {
    Compiler().ReleaseModelCompilationOptions(options);
  }
};
using Compilation = std::unique_ptr<OrtModelCompilationOptions, ReleaseCompilation>;

class ContextTest : public MockTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(Register(), "");
    std::ofstream(model_path_, std::ios::binary) << SquareModel();
  }

  static Ort::SessionOptions OptionsWith(
      std::initializer_list<std::pair<const char*, const char*>> entries) {
    Ort::SessionOptions options = OptionsForMock();
    for (const auto& [key, value] : entries) options.AddConfigEntry(key, value);
    return options;
  }

  Ort::Session OpenFile(const std::string& path, const Ort::SessionOptions& options) const {
    return Ort::Session(Env(), path.c_str(), options);
  }
  // The error of opening and running the model, or "".
  std::string TryFile(const std::string& path, const Ort::SessionOptions& options) const {
    return ErrorOf([&] {
      Ort::Session session = OpenFile(path, options);
      EXPECT_THAT(Run(session, {1, -2, 3}), ElementsAre(1, 4, 9));
    });
  }

  Compilation NewCompilation(const Ort::SessionOptions& session_options) const {
    OrtModelCompilationOptions* options = nullptr;
    EXPECT_EQ(Outcome(Compiler().CreateModelCompilationOptionsFromSessionOptions(
                  Env(), session_options, &options)),
              "");
    EXPECT_EQ(
        Outcome(Compiler().ModelCompilationOptions_SetInputModelPath(options, model_path_.c_str())),
        "");
    return Compilation(options);
  }
  static std::string Compile(const Compilation& options) {
    return Outcome(Compiler().CompileModel(Env(), options.get()));
  }

  const TemporaryFolder folder_;
  const std::string model_path_ = folder_.path() + "/model.onnx";
  const std::string compiled_path_ = folder_.path() + "/model_ctx.onnx";
};

// PE-56, PE-57, PE-58
TEST_F(ContextTest, SessionEntriesMakeACompiledModel) {
  for (const char* const embed_mode : {"0", "1"}) {
    ASSERT_EQ(TryFile(model_path_, OptionsWith({{"ep.context_enable", "1"},
                                                {"ep.context_embed_mode", embed_mode},
                                                {"ep.context_node_name_prefix", "mine_"},
                                                {"ep.share_ep_contexts", "1"},
                                                {"ep.stop_share_ep_contexts", "1"}})),
              "")
        << "the session that compiles runs, too";
    EXPECT_EQ(Mock().entries["ep.context_file_path"], compiled_path_) << "beside the model";
    EXPECT_EQ(Mock().entries["ep.share_ep_contexts"], "1");
    EXPECT_EQ(Mock().entries["ep.stop_share_ep_contexts"], "1");
    EXPECT_EQ(Mock().context_read, "") << "there was none to read";
    const std::string compiled = Content(compiled_path_);
    EXPECT_THAT(compiled, AllOf(HasSubstr("EPContext"), HasSubstr("com.microsoft"),
                                HasSubstr("Relu"), Not(HasSubstr("Mul"))));

    // Its own provider takes the node and reads the compiled data.
    ASSERT_EQ(TryFile(compiled_path_, OptionsForMock()), "");
    EXPECT_THAT(Mock().context_read, StartsWith("mine_MockProvider_"));
    EXPECT_THAT(Mock().context_read,
                EndsWith(embed_mode == std::string("1") ? " embedded" : " beside"));
    // No other provider can run it.
    EXPECT_THAT(TryFile(compiled_path_, Ort::SessionOptions()),
                AllOf(StartsWith("9: "), HasSubstr("EPContext")));
    Mock().context_read.clear();
    ASSERT_EQ(std::remove(compiled_path_.c_str()), 0);
  }
  // Without the entries, nothing is written.
  Mock().entries.clear();
  ASSERT_EQ(TryFile(model_path_, OptionsForMock()), "");
  EXPECT_EQ(Mock().entries["ep.context_enable"], "");
  EXPECT_FALSE(Exists(compiled_path_));
}

// PE-56: the paths of the model and of its weights.
TEST_F(ContextTest, TheEntriesSayWhereItGoes) {
  const std::string path = folder_.path() + "/other.onnx";
  const auto options = OptionsWith({{"ep.context_enable", "1"},
                                    {"ep.context_embed_mode", "1"},
                                    {"ep.context_file_path", path.c_str()}});
  const std::string bytes = SquareModel();
  EXPECT_EQ(ErrorOf([&] { Open(bytes, options); }), "") << "a model in memory has a path then";
  EXPECT_EQ(TryFile(path, OptionsForMock()), "");
  EXPECT_THAT(ErrorOf([&] {
                Open(bytes, OptionsWith({{"ep.context_enable", "1"}}));
              }),
              AllOf(StartsWith("1: "), HasSubstr("ep.context_file_path")));

  // y = x * x + w: the CPU adds.
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {3});
  const std::string weighted = ModelBuilder()
                                   .Input("x", type)
                                   .Initializer("w", {10, 20, 30})
                                   .Node("Mul", {"x", "x"}, {"square"})
                                   .Node("Add", {"square", "w"}, {"y"})
                                   .Output("y", type)
                                   .Bytes();
  std::ofstream(model_path_, std::ios::binary) << weighted;
  OpenFile(model_path_,
           OptionsWith({{"ep.context_enable", "1"},
                        {"ep.context_embed_mode", "1"},
                        {"ep.context_model_external_initializers_file_name", "weights.bin"}}));
  EXPECT_GE(Content(folder_.path() + "/weights.bin").size(), 12u);
  Ort::Session session = OpenFile(compiled_path_, OptionsForMock());
  EXPECT_THAT(Run(session, {1, 2, 3}), ElementsAre(11, 24, 39));
}

// PE-57: null, nodes of other operators, and nodes that do not fit.
TEST_F(ContextTest, CompileMustMakeAContextNodeForEachGraph) {
  const struct {
    MockContextNodes nodes;
    const char* text;
  } cases[] = {
      {MockContextNodes::kNone, "made no EPContext node"},
      {MockContextNodes::kForeign, "OrtModelEditorApi"},
      {MockContextNodes::kOtherOperator, "Identity"},
      {MockContextNodes::kOtherValues, "'nothing'"},
      {MockContextNodes::kOtherInputs, "'nothing'"},
  };
  for (const auto& c : cases) {
    Mock().context_nodes = c.nodes;
    const auto options = OptionsWith({{"ep.context_enable", "1"}, {"ep.context_embed_mode", "1"}});
    EXPECT_THAT(TryFile(model_path_, options), AllOf(StartsWith("1: "), HasSubstr(c.text)));
    EXPECT_FALSE(Exists(compiled_path_));
  }
}

// PE-59: through session options.
TEST_F(ContextTest, SessionsOverwriteNoCompiledModel) {
  std::ofstream(compiled_path_) << "kept";
  EXPECT_THAT(TryFile(model_path_, OptionsWith({{"ep.context_enable", "1"}})),
              AllOf(StartsWith("1: "), HasSubstr("exists already")));
  EXPECT_EQ(Content(compiled_path_), "kept");
  ASSERT_EQ(std::remove(compiled_path_.c_str()), 0);
  Mock().claims = MockClaims::kNothing;
  EXPECT_EQ(TryFile(model_path_, OptionsWith({{"ep.context_enable", "1"}})), "");
  EXPECT_FALSE(Exists(compiled_path_)) << "nothing was compiled";
}

// PE-59: through the compile API.
TEST_F(ContextTest, TheCompileApiWritesFiles) {
  const Compilation options = NewCompilation(OptionsForMock());
  std::ofstream(compiled_path_) << "replaced";
  ASSERT_EQ(Compile(options), "");
  EXPECT_EQ(Mock().entries["ep.context_enable"], "1");
  EXPECT_EQ(Mock().entries["ep.context_embed_mode"], "") << "not embedded by default";
  EXPECT_EQ(TryFile(compiled_path_, OptionsForMock()), "");
  EXPECT_THAT(Mock().context_read, EndsWith(" beside"));

  ASSERT_EQ(Outcome(Compiler().ModelCompilationOptions_SetFlags(
                options.get(), OrtCompileApiFlags_ERROR_IF_OUTPUT_FILE_EXISTS |
                                   OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED)),
            "");
  EXPECT_THAT(Compile(options), AllOf(StartsWith("1: "), HasSubstr("exists already")));
  const std::string path = folder_.path() + "/new.onnx";
  ASSERT_EQ(
      Outcome(Compiler().ModelCompilationOptions_SetOutputModelPath(options.get(), path.c_str())),
      "");
  Mock().claims = MockClaims::kNothing;
  EXPECT_THAT(Compile(options), AllOf(StartsWith("1: "), HasSubstr("Unable to compile any nodes")));
  EXPECT_FALSE(Exists(path));
  Mock().claims = MockClaims::kFused;
  EXPECT_EQ(Compile(options), "");
  EXPECT_EQ(TryFile(path, OptionsForMock()), "");

  // Without the flags, a model without compiled parts is written unchanged.
  ASSERT_EQ(Outcome(Compiler().ModelCompilationOptions_SetFlags(options.get(), 0)), "");
  Mock().claims = MockClaims::kNothing;
  EXPECT_EQ(Compile(options), "");
  EXPECT_THAT(Content(path), AllOf(HasSubstr("Mul"), Not(HasSubstr("EPContext"))));
}

// PE-59: graphs are compiled unchanged, unless a level of rewriting is requested.
TEST_F(ContextTest, TheCompileApiRewritesNothingByDefault) {
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  std::ofstream(model_path_, std::ios::binary) << ModelBuilder()
                                                      .Input("x", type)
                                                      .Node("Identity", {"x"}, {"same"})
                                                      .Node("Mul", {"same", "same"}, {"square"})
                                                      .Node("Relu", {"square"}, {"y"})
                                                      .Output("y", type)
                                                      .Bytes();
  const Compilation options = NewCompilation(OptionsForMock());
  ASSERT_EQ(Compile(options), "");
  EXPECT_THAT(Content(compiled_path_), HasSubstr("Identity"));
  ASSERT_EQ(Outcome(Compiler().ModelCompilationOptions_SetGraphOptimizationLevel(options.get(),
                                                                                 ORT_ENABLE_BASIC)),
            "");
  ASSERT_EQ(Compile(options), "");
  EXPECT_THAT(Content(compiled_path_), Not(HasSubstr("Identity")));
  EXPECT_EQ(TryFile(compiled_path_, OptionsForMock()), "");
}

// PE-59: buffers and functions, with what is compiled in the model or in a folder.
TEST_F(ContextTest, TheCompileApiWritesBuffersAndThroughFunctions) {
  const Compilation options = NewCompilation(OptionsForMock());
  ASSERT_EQ(Outcome(Compiler().ModelCompilationOptions_SetEpContextEmbedMode(options.get(), true)),
            "");
  Ort::AllocatorWithDefaultOptions allocator;
  void* buffer = nullptr;
  size_t size = 0;
  ASSERT_EQ(Outcome(Compiler().ModelCompilationOptions_SetOutputModelBuffer(
                options.get(), allocator, &buffer, &size)),
            "");
  ASSERT_EQ(Compile(options), "");
  const std::string compiled(static_cast<const char*>(buffer), size);
  allocator.Free(buffer);
  Ort::Session session = Open(compiled, OptionsForMock());
  EXPECT_THAT(Run(session, {2, -3}), ElementsAre(4, 9));
  EXPECT_THAT(Mock().context_read, EndsWith(" embedded"));

  std::string written;
  const auto write = [](void* state, const void* data, size_t bytes) -> OrtStatus* {
    static_cast<std::string*>(state)->append(static_cast<const char*>(data), bytes);
    return nullptr;
  };
  ASSERT_EQ(Outcome(Compiler().ModelCompilationOptions_SetOutputModelWriteFunc(options.get(), write,
                                                                               &written)),
            "");
  ASSERT_EQ(Outcome(Compiler().ModelCompilationOptions_SetEpContextEmbedMode(options.get(), false)),
            "");
  ASSERT_EQ(Outcome(Compiler().ModelCompilationOptions_SetEpContextBinaryInformation(
                options.get(), folder_.path().c_str(), "parts.onnx")),
            "");
  ASSERT_EQ(Compile(options), "");
  EXPECT_EQ(Mock().entries["ep.context_file_path"], folder_.path() + "/parts.onnx");
  std::ofstream(folder_.path() + "/moved.onnx", std::ios::binary) << written;
  EXPECT_EQ(TryFile(folder_.path() + "/moved.onnx", OptionsForMock()), "");
  EXPECT_THAT(Mock().context_read, EndsWith(" beside"));
}

// PE-60
TEST_F(ContextTest, CompiledModelsSayWhatTheyAreFor) {
  const Compilation options = NewCompilation(OptionsForMock());
  ASSERT_EQ(Compile(options), "");
  EXPECT_LT(FirstCall("GetCompiledModelCompatibilityInfo"), FirstCall("GetCapability"));
  Ort::AllocatorWithDefaultOptions allocator;
  {
    const Ort::Session session = OpenFile(compiled_path_, OptionsForMock());
    EXPECT_EQ(Mock().validated, "mock 1");
    const auto value = session.GetModelMetadata().LookupCustomMetadataMapAllocated(
        "ep_compatibility_info.MockProvider", allocator);
    ASSERT_NE(value, nullptr);
    EXPECT_STREQ(value.get(), "mock 1");
  }
  const auto outcome = [&](OrtCompiledModelCompatibility fits, const char* fails_when_suboptimal) {
    Mock().validation = fits;
    Mock().calls.clear();
    return TryFile(
        compiled_path_,
        OptionsWith({{"session.fail_on_suboptimal_compiled_model", fails_when_suboptimal}}));
  };
  EXPECT_EQ(outcome(OrtCompiledModelCompatibility_EP_NOT_APPLICABLE, "1"), "");
  EXPECT_EQ(outcome(OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL, "1"), "");
  EXPECT_EQ(outcome(OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION, "0"), "");
  EXPECT_THAT(outcome(OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION, "1"),
              AllOf(StartsWith("1: "), HasSubstr(kMock)));
  EXPECT_THAT(outcome(OrtCompiledModelCompatibility_EP_UNSUPPORTED, "0"),
              AllOf(StartsWith("1: "), HasSubstr(kMock), HasSubstr("mock 1")));
  EXPECT_EQ(Mock().Count("GetCapability"), 0) << "before nodes are assigned";
  Mock().fails = {"ValidateCompiledModelCompatibilityInfo"};
  EXPECT_THAT(outcome(OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL, "0"), StartsWith("11: "));
}

// PE-60: a warning says that the model should be compiled again.
TEST_F(ContextTest, AModelThatSuitsBadlyIsWarnedOf) {
  ASSERT_EQ(Compile(NewCompilation(OptionsForMock())), "");
  Mock().validation = OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION;
  std::string log;
  const auto collect = [](void* state, OrtLoggingLevel level, const char*, const char*, const char*,
                          const char* text) {
    if (level == ORT_LOGGING_LEVEL_WARNING) static_cast<std::string*>(state)->append(text);
  };
  Ort::SessionOptions options = OptionsForMock();
  options.SetLogSeverityLevel(ORT_LOGGING_LEVEL_WARNING);
  ASSERT_EQ(Outcome(Api().SetUserLoggingFunction(options, collect, &log)), "");
  EXPECT_EQ(TryFile(compiled_path_, options), "");
  EXPECT_THAT(log, AllOf(HasSubstr(kMock), HasSubstr("compiled again")));
}

// PE-61
TEST_F(ContextTest, CompilingCanBeRuledOut) {
  const auto options = OptionsWith({{"session.disable_model_compile", "1"}});
  EXPECT_THAT(TryFile(model_path_, options), AllOf(StartsWith("13: "), HasSubstr("Mul")));
  EXPECT_EQ(Mock().Count("Compile"), 0);
  ASSERT_EQ(Compile(NewCompilation(OptionsForMock())), "");
  EXPECT_EQ(TryFile(compiled_path_, options), "") << "it is compiled already";
  Mock().claims = MockClaims::kKernels;
  EXPECT_EQ(TryFile(model_path_, options), "") << "kernels need no compiling";
}

// PE-62
TEST_F(ContextTest, ModelsWithoutWeightsNeedAProviderThatMakesThem) {
  const Compilation options = NewCompilation(OptionsForMock());
  ASSERT_EQ(Outcome(Compiler().ModelCompilationOptions_SetWeightlessEnabled(options.get(), true)),
            "");
  constexpr int kNoSlot = -1;
  for (const int support : {static_cast<int>(OrtWeightlessSupport_NONE), kNoSlot}) {
    Mock().weightless = support;
    EXPECT_THAT(Compile(options), AllOf(HasSubstr(kMock), HasSubstr("ep.enable_weightless")));
    EXPECT_FALSE(Exists(compiled_path_));
  }
  Mock().weightless = OrtWeightlessSupport_ALL;
  Mock().fails = {"GetWeightlessSupport"};
  EXPECT_THAT(Compile(options), StartsWith("11: "));
  Mock().fails.clear();
  ASSERT_EQ(Compile(options), "");
  EXPECT_EQ(Mock().entries["ep.enable_weightless"], "1");

  // The source of weights: the buffer, then the entry, then the node's attribute.
  EXPECT_EQ(TryFile(compiled_path_, OptionsWith({{"ep.enable_weightless", "1"}})), "");
  EXPECT_EQ(Mock().weight_source, "node " + model_path_);
  Ort::SessionOptions with_path = OptionsWith(
      {{"ep.enable_weightless", "1"}, {"ep.context_source_model_path", model_path_.c_str()}});
  EXPECT_EQ(TryFile(compiled_path_, with_path), "");
  EXPECT_EQ(Mock().weight_source, "entry " + model_path_);
  const std::string source = Content(model_path_);
  ASSERT_EQ(Outcome(Api().SessionOptionsSetWeightlessSourceModelBuffer(with_path, source.data(),
                                                                       source.size())),
            "");
  EXPECT_EQ(TryFile(compiled_path_, with_path), "");
  EXPECT_EQ(Mock().weight_source, "buffer");
}

// A compiled model can be compiled again, and a subgraph has its own context nodes.
TEST_F(ContextTest, CompiledModelsCompileToTheSame) {
  ASSERT_EQ(Compile(NewCompilation(OptionsForMock())), "");
  const Compilation again = NewCompilation(OptionsForMock());
  ASSERT_EQ(Outcome(Compiler().ModelCompilationOptions_SetInputModelPath(again.get(),
                                                                         compiled_path_.c_str())),
            "");
  ASSERT_EQ(Compile(again), "");
  EXPECT_EQ(TryFile(folder_.path() + "/model_ctx_ctx.onnx", OptionsForMock()), "");
}

}  // namespace
}  // namespace tenon::test
