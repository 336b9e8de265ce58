// Custom operators: the information for their kernels and shape functions, and their errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <stdexcept>

#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kAny = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
constexpr const char* kDomain = "test.ops";

// y = x + bias * b, on the session's threads; keeps the values from its info.
struct ScaledAddKernel {
  explicit ScaledAddKernel(const OrtKernelInfo* info) : copy(Ort::ConstKernelInfo(info).Copy()) {
    bias = copy.GetAttribute<int64_t>("bias");
    copy.GetTensorConstantInput(1, &is_constant);
  }
  void Compute(OrtKernelContext* raw) {
    const Ort::KernelContext context(raw);
    const Ort::ConstValue x = context.GetInput(0), b = context.GetInput(1);
    const std::vector<int64_t> shape = x.GetTensorTypeAndShapeInfo().GetShape();
    Ort::UnownedValue y = context.GetOutput(0, shape);
    struct Task {
      const float *x, *b;
      float* y;
      float bias;
    } task = {x.GetTensorData<float>(), b.GetTensorData<float>(), y.GetTensorMutableData<float>(),
              static_cast<float>(bias)};
    const auto add = [](void* data, size_t i) {
      const Task& t = *static_cast<Task*>(data);
      t.y[i] = t.x[i] + t.bias * t.b[i];
    };
    context.ParallelFor(add, x.GetTensorTypeAndShapeInfo().GetElementCount(), 0, &task);
  }
  Ort::KernelInfo copy;
  int64_t bias = 0;
  int is_constant = 0;
};

struct ScaledAdd : Ort::CustomOpBase<ScaledAdd, ScaledAddKernel> {
  void* CreateKernel(const OrtApi&, const OrtKernelInfo* info) const {
    auto* kernel = new ScaledAddKernel(info);
    last_kernel = kernel;
    return kernel;
  }
  const char* GetName() const { return "ScaledAdd"; }
  size_t GetInputTypeCount() const { return 2; }
  ONNXTensorElementDataType GetInputType(size_t) const { return kFloat; }
  size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(size_t) const { return kFloat; }
  static Ort::Status InferOutputShape(Ort::ShapeInferContext& context) {
    context.SetOutputShape(0, context.GetInputShape(0));
    return Ort::Status();
  }
  mutable ScaledAddKernel* last_kernel = nullptr;
};

std::string ScaledAddModel() {
  return ModelBuilder()
      .Input("x", TensorType(kFloat, {"n"}))
      .Initializer("w", {1, 2, 3})
      .CustomNode(kDomain, "ScaledAdd", {"x", "w"}, {"y"}, {{"bias", 10}})
      .Node("Relu", {"y"}, {"z"})
      .Output("z", TensorTypeWithoutShape(kFloat))
      .Bytes();
}

Ort::SessionOptions OptionsWith(Ort::CustomOpDomain& domain) {
  Ort::SessionOptions options;
  options.Add(domain);
  return options;
}

// The session's only output for one input.
template <class T>
std::vector<T> RunWith(Ort::Session& session, std::vector<float> x) {
  const std::vector<int64_t> shape = {static_cast<int64_t>(x.size())};
  const Ort::Value input = TensorOver(x, shape);
  const char* const inputs[] = {"x"};
  const char* const outputs[] = {"z"};
  std::vector<Ort::Value> results = session.Run(Ort::RunOptions(), inputs, &input, 1, outputs, 1);
  return ElementsOf<T>(results[0]);
}

TEST(CustomOpTest, RunsBetweenOtherOperatorsAndInfersShapes) {
  const ScaledAdd op;
  Ort::CustomOpDomain domain(kDomain);
  domain.Add(&op);
  Ort::Session session = Open(ScaledAddModel(), OptionsWith(domain));
  for (int run = 0; run < 3; ++run) {
    EXPECT_THAT(RunWith<float>(session, {1, -100, 3}), ElementsAre(11, 0, 33));
  }
  // ParallelFor calls nothing, or once.
  EXPECT_THAT(RunWith<float>(session, {}), ElementsAre());
  EXPECT_THAT(RunWith<float>(session, {1}), ElementsAre(11));
  EXPECT_THAT(session.GetOutputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape(), ElementsAre(-1));
}

// Ends its run, and then counts the calls of a loop.
struct StoppingKernel {
  void Compute(OrtKernelContext* raw) {
    const Ort::KernelContext context(raw);
    context.GetOutput(0, context.GetInput(0).GetTensorTypeAndShapeInfo().GetShape());
    run->SetTerminate();
    const auto count = [](void* calls, size_t) { ++*static_cast<std::atomic<int>*>(calls); };
    context.ParallelFor(count, 1000, 0, &calls);
  }
  static inline Ort::RunOptions* run = nullptr;
  static inline std::atomic<int> calls = 0;
};

struct Stopping : Ort::CustomOpBase<Stopping, StoppingKernel> {
  void* CreateKernel(const OrtApi&, const OrtKernelInfo*) const { return new StoppingKernel; }
  const char* GetName() const { return "Stopping"; }
  size_t GetInputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(size_t) const { return kFloat; }
  size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(size_t) const { return kFloat; }
};

// A kernel of the library may leave out a part of its work when a run is to end early. A client's
// kernel need not expect that.
TEST(CustomOpTest, LoopsOfClientsAreWholeInARunThatIsToEnd) {
  const Stopping op;
  Ort::CustomOpDomain domain(kDomain);
  domain.Add(&op);
  Ort::Session session = Open(ModelBuilder()
                                  .Input("x", TensorType(kFloat, {"n"}))
                                  .CustomNode(kDomain, "Stopping", {"x"}, {"y"})
                                  .Output("y", TensorTypeWithoutShape(kFloat))
                                  .Bytes(),
                              OptionsWith(domain));
  std::vector<float> x = {1};
  const Ort::Value input = TensorOver(x, {1});
  const char* const input_name = "x";
  const char* const output_name = "y";
  Ort::RunOptions run;
  StoppingKernel::run = &run;
  session.Run(run, &input_name, &input, 1, &output_name, 1);
  EXPECT_EQ(StoppingKernel::calls, 1000);
}

TEST(CustomOpTest, InputsThatAnOperatorDoesNotHaveAreErrors) {
  const ScaledAdd op;
  Ort::CustomOpDomain domain(kDomain);
  domain.Add(&op);
  const std::string model =
      ModelBuilder()
          .Input("x", TensorType(kFloat, {"n"}))
          .CustomNode(kDomain, "ScaledAdd", {"x", "x", "x"}, {"y"}, {{"bias", 10}})
          .Output("y", TensorTypeWithoutShape(kFloat))
          .Bytes();
  EXPECT_THAT(ErrorOf([&] { Open(model, OptionsWith(domain)); }),
              HasSubstr("has input size 3 not in range [min=0, max=2]"));
}

TEST(CustomOpTest, KernelInfoDescribesTheNode) {
  const ScaledAdd op;
  Ort::CustomOpDomain domain(kDomain);
  domain.Add(&op);
  Ort::SessionOptions options = OptionsWith(domain);
  options.AddConfigEntry("test.key", "value");
  const Ort::Session session = Open(ScaledAddModel(), options);
  const Ort::KernelInfo& info = op.last_kernel->copy;
  EXPECT_EQ(info.GetInputCount(), 2u);
  EXPECT_EQ(info.GetOutputCount(), 1u);
  EXPECT_EQ(info.GetInputName(0), "x");
  EXPECT_EQ(info.GetOutputName(0), "y");
  EXPECT_EQ(info.GetOperatorType(), "ScaledAdd");
  EXPECT_EQ(info.GetOperatorDomain(), kDomain);
  EXPECT_EQ(info.GetOperatorSinceVersion(), 1);
  EXPECT_EQ(info.GetInputTypeInfo(1).GetTensorTypeAndShapeInfo().GetShape(),
            std::vector<int64_t>{3});
  EXPECT_EQ(op.last_kernel->is_constant, 1);
  EXPECT_STREQ(info.GetConfigEntries().GetValue("test.key"), "value");
  EXPECT_THAT(ErrorOf([&] { info.GetAttribute<float>("bias"); }),
              HasSubstr("'bias' is of type int, not float"));
  EXPECT_THAT(ErrorOf([&] { info.GetAttribute<float>("none"); }), HasSubstr("'none'"));
  EXPECT_THAT(ErrorOf([&] { info.GetInputName(2); }), HasSubstr("2"));
}

// Sum of any number of inputs, of any type: y has the type of the inputs.
struct SumKernel {
  void Compute(OrtKernelContext* raw) {
    const Ort::KernelContext context(raw);
    const std::vector<int64_t> shape = context.GetInput(0).GetTensorTypeAndShapeInfo().GetShape();
    Ort::UnownedValue y = context.GetOutput(0, shape);
    float* const out = y.GetTensorMutableData<float>();
    for (int64_t i = 0; i < shape[0]; ++i) {
      out[i] = 0;
      for (size_t k = 0; k < context.GetInputCount(); ++k) {
        out[i] += context.GetInput(k).GetTensorData<float>()[i];
      }
    }
  }
};

struct VariadicSum : Ort::CustomOpBase<VariadicSum, SumKernel> {
  void* CreateKernel(const OrtApi&, const OrtKernelInfo*) const { return new SumKernel(); }
  const char* GetName() const { return "VariadicSum"; }
  size_t GetInputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(size_t) const { return kAny; }
  OrtCustomOpInputOutputCharacteristic GetInputCharacteristic(size_t) const {
    return INPUT_OUTPUT_VARIADIC;
  }
  int GetVariadicInputMinArity() const { return 2; }
  size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(size_t) const { return kAny; }
};

std::string VariadicModel(std::initializer_list<std::string_view> inputs) {
  return ModelBuilder()
      .Input("x", TensorType(kFloat, {"n"}))
      .CustomNode(kDomain, "VariadicSum", inputs, {"z"})
      .Output("z", TensorTypeWithoutShape(kFloat))
      .Bytes();
}

TEST(CustomOpTest, TakesVariadicInputsAndTheirType) {
  const VariadicSum op;
  Ort::CustomOpDomain domain(kDomain);
  domain.Add(&op);
  Ort::Session session = Open(VariadicModel({"x", "x", "x"}), OptionsWith(domain));
  EXPECT_THAT(RunWith<float>(session, {1, 2}), ElementsAre(3, 6));
  EXPECT_THAT(ErrorOf([&] { Open(VariadicModel({"x"}), OptionsWith(domain)); }),
              HasSubstr("has input size 1 not in range [min=2"));
}

// An operator made of functions, with the slots that a test needs.
struct RawOp : OrtCustomOp {
  RawOp() : OrtCustomOp{} {
    version = ORT_API_VERSION;
    GetName = [](const OrtCustomOp*) -> const char* { return "Raw"; };
    GetInputTypeCount = GetOutputTypeCount = [](const OrtCustomOp*) -> size_t { return 1; };
    GetInputType = [](const OrtCustomOp*, size_t) { return kFloat; };
    GetOutputType = [](const OrtCustomOp*, size_t) { return kFloat; };
    CreateKernel = [](const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*) -> void* {
      return nullptr;
    };
    KernelDestroy = [](void*) {};
    KernelCompute = [](void*, OrtKernelContext*) {};
  }
};

std::string RawModel() {
  return ModelBuilder()
      .Input("x", TensorType(kFloat, {"n"}))
      .CustomNode(kDomain, "Raw", {"x"}, {"z"})
      .Output("z", TensorTypeWithoutShape(kFloat))
      .Bytes();
}

// The error of running a model of that one operator.
std::string OutcomeOf(const RawOp& op) {
  return ErrorOf([&] {
    Ort::CustomOpDomain domain(kDomain);
    domain.Add(&op);
    Ort::Session session = Open(RawModel(), OptionsWith(domain));
    RunWith<float>(session, {1, 2});
  });
}

TEST(CustomOpTest, FailuresOfKernelsAreFailuresOfRuns) {
  RawOp throws;
  throws.KernelCompute = [](void*, OrtKernelContext*) { throw std::runtime_error("kernel threw"); };
  EXPECT_THAT(OutcomeOf(throws), HasSubstr("kernel threw"));
  RawOp reports;
  reports.KernelComputeV2 = [](void*, OrtKernelContext*) -> OrtStatus* {
    return Ort::GetApi().CreateStatus(ORT_FAIL, "kernel failed");
  };
  EXPECT_THAT(OutcomeOf(reports), HasSubstr("kernel failed"));
  RawOp in_creation;
  in_creation.CreateKernelV2 = [](const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*,
                                  void**) -> OrtStatus* {
    return Ort::GetApi().CreateStatus(ORT_FAIL, "no kernel");
  };
  EXPECT_THAT(OutcomeOf(in_creation), HasSubstr("no kernel"));
}

TEST(CustomOpTest, OutputsOutOfRangeAndOfBadShapesAreErrors) {
  RawOp op;
  op.KernelComputeV2 = [](void*, OrtKernelContext* context) -> OrtStatus* {
    const OrtApi& api = Ort::GetApi();
    OrtValue* out = nullptr;
    const int64_t negative[] = {-1}, two[] = {2}, three[] = {3};
    EXPECT_THAT(Outcome(api.KernelContext_GetOutput(context, 1, two, 1, &out)), HasSubstr("1"));
    EXPECT_THAT(Outcome(api.KernelContext_GetOutput(context, 0, negative, 1, &out)),
                HasSubstr("-1"));
    EXPECT_EQ(Outcome(api.KernelContext_GetOutput(context, 0, two, 1, &out)), "");
    EXPECT_THAT(Outcome(api.KernelContext_GetOutput(context, 0, three, 1, &out)),
                HasSubstr("has shape"));
    const OrtValue* in = nullptr;
    EXPECT_EQ(Outcome(api.KernelContext_GetInput(context, 7, &in)), "");
    EXPECT_EQ(in, nullptr);
    void* scratch = nullptr;
    const auto cpu = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
    EXPECT_EQ(Outcome(api.KernelContext_GetScratchBuffer(context, cpu, 100, &scratch)), "");
    EXPECT_NE(scratch, nullptr);
    void* stream = &scratch;
    EXPECT_EQ(Outcome(api.KernelContext_GetGPUComputeStream(context, &stream)), "");
    EXPECT_EQ(stream, nullptr);
    EXPECT_NE(Outcome(api.KernelContext_GetResource(context, 1, 2, &stream)), "");
    const OrtLogger* logger = nullptr;
    EXPECT_EQ(Outcome(api.KernelContext_GetLogger(context, &logger)), "");
    EXPECT_EQ(Outcome(api.Logger_LogMessage(logger, ORT_LOGGING_LEVEL_WARNING, "text", "file.cpp",
                                            1, "Function")),
              "");
    return nullptr;
  };
  EXPECT_EQ(OutcomeOf(op), "");
}

TEST(CustomOpTest, ARunsTagAndSeverityReachTheLogOfItsKernels) {
  RawOp op;
  op.KernelCompute = [](void*, OrtKernelContext* raw) {
    const Ort::KernelContext context(raw);
    context.GetOutput(0, {3});
    const OrtLogger* logger = nullptr;
    Ort::ThrowOnError(Ort::GetApi().KernelContext_GetLogger(raw, &logger));
    for (const auto& [level, text] :
         {std::pair(ORT_LOGGING_LEVEL_INFO, "info"), std::pair(ORT_LOGGING_LEVEL_ERROR, "error")}) {
      Ort::ThrowOnError(Ort::GetApi().Logger_LogMessage(logger, level, text, "f", 1, "F"));
    }
  };
  Ort::CustomOpDomain domain(kDomain);
  domain.Add(&op);
  Ort::SessionOptions options = OptionsWith(domain);
  std::vector<std::string> lines;
  const auto keep = [](void* param, OrtLoggingLevel, const char*, const char* id, const char*,
                       const char* message) {
    static_cast<std::vector<std::string>*>(param)->push_back(std::string(id) + " " + message);
  };
  Ort::ThrowOnError(Ort::GetApi().SetUserLoggingFunction(options, keep, &lines));
  options.SetLogId("mine").SetLogSeverityLevel(ORT_LOGGING_LEVEL_ERROR);
  Ort::Session session = Open(RawModel(), options);
  const auto lines_of = [&](const Ort::RunOptions& run) {
    lines.clear();
    std::vector<float> x = {1, 2, 3};
    const std::vector<int64_t> shape = {3};
    const Ort::Value input = TensorOver(x, shape);
    const char *const in = "x", *const out = "z";
    session.Run(run, &in, &input, 1, &out, 1);
    return lines;
  };
  Ort::RunOptions run;
  EXPECT_THAT(lines_of(run), ElementsAre("mine error"));
  run.SetRunTag("tag").SetRunLogSeverityLevel(ORT_LOGGING_LEVEL_INFO);
  EXPECT_THAT(lines_of(run), ElementsAre("mine:tag info", "mine:tag error"));
  run.SetRunLogSeverityLevel(ORT_LOGGING_LEVEL_FATAL);
  EXPECT_THAT(lines_of(run), ElementsAre());
  EXPECT_THAT(ErrorOf([&] { run.SetRunLogSeverityLevel(9); }), HasSubstr("9"));
  EXPECT_EQ(run.GetRunLogSeverityLevel(), ORT_LOGGING_LEVEL_FATAL);
}

TEST(CustomOpTest, AliasedOutputBeginsAsItsInput) {
  RawOp op;
  op.GetAliasMap = [](int** inputs, int** outputs) -> size_t {
    *inputs = new int(0);
    *outputs = new int(0);
    return 1;
  };
  op.ReleaseAliasMap = [](int* inputs, int* outputs) {
    delete inputs;
    delete outputs;
  };
  op.KernelCompute = [](void*, OrtKernelContext* raw) {
    // Changes one element of its input.
    Ort::UnownedValue y = Ort::KernelContext(raw).GetOutput(0, {3});
    y.GetTensorMutableData<float>()[1] = 20;
  };
  Ort::CustomOpDomain domain(kDomain);
  domain.Add(&op);
  Ort::Session session = Open(RawModel(), OptionsWith(domain));
  EXPECT_THAT(RunWith<float>(session, {1, 2, 3}), ElementsAre(1, 20, 3));
}

// Doubles its input, and counts how often its output was written over it.
struct DoublingOp : RawOp {
  static inline int runs = 0, in_place = 0, maps = 0;

  explicit DoublingOp(bool may_be_in_place) {
    runs = in_place = maps = 0;
    KernelCompute = [](void*, OrtKernelContext* raw) {
      const Ort::KernelContext context(raw);
      const Ort::ConstValue x = context.GetInput(0);
      const Ort::TensorTypeAndShapeInfo info = x.GetTensorTypeAndShapeInfo();
      Ort::UnownedValue y = context.GetOutput(0, info.GetShape());
      const float* const from = x.GetTensorData<float>();
      float* const to = y.GetTensorMutableData<float>();
      for (size_t i = 0; i < info.GetElementCount(); ++i) to[i] = 2 * from[i];
      ++runs;
      in_place += from == to;
    };
    if (!may_be_in_place) return;
    GetMayInplace = [](int** inputs, int** outputs) -> size_t {
      ++maps;
      *inputs = new int(0);
      *outputs = new int(0);
      return 1;
    };
    ReleaseMayInplace = [](int* inputs, int* outputs) {
      --maps;
      delete inputs;
      delete outputs;
    };
  }
};

// z = Neg(2 Exp(x)) if the operator's input has no other reader, else Exp(x) - 2 Exp(x).
std::string DoublingModel(bool has_other_reader) {
  ModelBuilder builder;
  builder.Input("x", TensorType(kFloat, {"n"})).Node("Exp", {"x"}, {"a"});
  builder.CustomNode(kDomain, "Raw", {"a"}, {"b"});
  if (has_other_reader) {
    builder.Node("Sub", {"a", "b"}, {"z"});
  } else {
    builder.Node("Neg", {"b"}, {"z"});
  }
  return builder.Output("z", TensorTypeWithoutShape(kFloat)).Bytes();
}

TEST(CustomOpTest, OutputsTakeTheMemoryOfInputsWhereTheyMay) {
  const struct {
    bool may_be_in_place, has_other_reader;
    bool is_in_place;
  } kCases[] = {{true, false, true}, {false, false, false}, {true, true, false}};
  for (const auto& c : kCases) {
    const DoublingOp op(c.may_be_in_place);
    Ort::CustomOpDomain domain(kDomain);
    domain.Add(&op);
    Ort::Session session = Open(DoublingModel(c.has_other_reader), OptionsWith(domain));
    // The first run with a shape allocates its memory; later runs have a plan.
    for (int run = 0; run < 3; ++run) {
      const float factor = c.has_other_reader ? -1 : -2;
      EXPECT_THAT(RunWith<float>(session, {0, 0, 1}),
                  ElementsAre(factor, factor, testing::FloatNear(factor * std::exp(1.f), 1e-5f)));
    }
    EXPECT_EQ(op.runs, 3);
    EXPECT_EQ(op.in_place, c.is_in_place ? 3 : 0);
    EXPECT_EQ(op.maps, 0) << "every map is released";
  }
}

TEST(CustomOpTest, FedValuesAreNeverWrittenOver) {
  const DoublingOp op(true);
  Ort::CustomOpDomain domain(kDomain);
  domain.Add(&op);
  Ort::Session session = Open(RawModel(), OptionsWith(domain));
  std::vector<float> fed = {1, 2, 3};
  const Ort::Value x = TensorOver(fed, {3});
  const char* const inputs[] = {"x"};
  const char* const outputs[] = {"z"};
  for (int run = 0; run < 3; ++run) {
    const auto results = session.Run(Ort::RunOptions(), inputs, &x, 1, outputs, 1);
    EXPECT_THAT(ElementsOf<float>(results[0]), ElementsAre(2, 4, 6));
    EXPECT_THAT(fed, ElementsAre(1, 2, 3));
  }
}

TEST(CustomOpTest, OperatorsOfOldVersionsAreReadAsFarAsTheyGo) {
  RawOp op;
  op.version = 7;
  op.KernelCompute = [](void*, OrtKernelContext* raw) {
    Ort::KernelContext(raw).GetOutput(0, {1}).GetTensorMutableData<float>()[0] = 7;
  };
  // After the end of version 7.
  op.GetInputCharacteristic = [](const OrtCustomOp*, size_t) {
    ADD_FAILURE() << "read a slot that the version does not have";
    return INPUT_OUTPUT_REQUIRED;
  };
  op.InferOutputShapeFn = [](const OrtCustomOp*, OrtShapeInferContext*) -> OrtStatus* {
    ADD_FAILURE() << "read a slot that the version does not have";
    return nullptr;
  };
  Ort::CustomOpDomain domain(kDomain);
  domain.Add(&op);
  Ort::Session session = Open(RawModel(), OptionsWith(domain));
  EXPECT_THAT(RunWith<float>(session, {1}), ElementsAre(7));
}

TEST(CustomOpTest, VersionsAndTypesChooseAmongOperatorsOfOneName) {
  RawOp later;
  later.GetStartVersion = [](const OrtCustomOp*) { return 2; };
  EXPECT_THAT(OutcomeOf(later), HasSubstr("test.ops:Raw(-1) is not a registered function"));
  RawOp integers;
  integers.GetInputType = [](const OrtCustomOp*, size_t) { return kInt64; };
  EXPECT_THAT(OutcomeOf(integers), HasSubstr("expected tensor(int64), got tensor(float)"));
  RawOp floats;
  floats.KernelCompute = [](void*, OrtKernelContext* raw) {
    Ort::KernelContext(raw).GetOutput(0, {1}).GetTensorMutableData<float>()[0] = 1;
  };
  Ort::CustomOpDomain domain(kDomain);
  domain.Add(&integers);
  domain.Add(&floats);
  Ort::Session session = Open(RawModel(), OptionsWith(domain));
  EXPECT_THAT(RunWith<float>(session, {1}), ElementsAre(1));
}

TEST(CustomOpTest, IncompleteOperatorsAreRefused) {
  Ort::CustomOpDomain domain(kDomain);
  RawOp nameless;
  nameless.GetName = nullptr;
  EXPECT_THAT(ErrorOf([&] { domain.Add(&nameless); }), HasSubstr("no name"));
  nameless.GetName = [](const OrtCustomOp*) -> const char* { return nullptr; };
  EXPECT_THAT(ErrorOf([&] { domain.Add(&nameless); }), HasSubstr("no name"));
  const std::pair<const char*, void (*)(OrtCustomOp&)> slots[] = {
      {"CreateKernel", [](OrtCustomOp& op) { op.CreateKernel = nullptr; }},
      {"KernelCompute", [](OrtCustomOp& op) { op.KernelCompute = nullptr; }},
      {"KernelDestroy", [](OrtCustomOp& op) { op.KernelDestroy = nullptr; }},
      {"GetInputType", [](OrtCustomOp& op) { op.GetInputType = nullptr; }},
      {"GetInputTypeCount", [](OrtCustomOp& op) { op.GetInputTypeCount = nullptr; }},
      {"GetOutputType", [](OrtCustomOp& op) { op.GetOutputType = nullptr; }},
      {"GetOutputTypeCount", [](OrtCustomOp& op) { op.GetOutputTypeCount = nullptr; }}};
  for (const auto& [slot, drop] : slots) {
    RawOp incomplete;
    drop(incomplete);
    const std::string text = std::string("'") + incomplete.GetName(&incomplete) + "' lacks " + slot;
    EXPECT_THAT(ErrorOf([&] { domain.Add(&incomplete); }), HasSubstr(text));
  }
  RawOp endless;
  endless.GetOutputTypeCount = [](const OrtCustomOp*) -> size_t { return SIZE_MAX; };
  EXPECT_THAT(ErrorOf([&] { domain.Add(&endless); }), HasSubstr("at most 65536 outputs"));
  RawOp unversioned;
  unversioned.version = 0;
  EXPECT_THAT(ErrorOf([&] { domain.Add(&unversioned); }), HasSubstr("version 0"));
  EXPECT_THAT(ErrorOf([&] { domain.Add(nullptr); }), HasSubstr("null"));
}

// Calls Tenon's own operators: y = TopK(x)'s values, k = 2, and Mul(x, x).
struct InvokingKernel {
  explicit InvokingKernel(const OrtKernelInfo* info) : copy(Ort::ConstKernelInfo(info).Copy()) {
    const char* const names[] = {"T"};
    const ONNXTensorElementDataType types[] = {kFloat};
    multiply = Ort::Op::Create(info, "Mul", "", 14, const_cast<const char**>(names), types, 1,
                               nullptr, 0, 2, 1);
    const int64_t axis = 0;
    const Ort::OpAttr attribute("axis", &axis, 1, ORT_OP_ATTR_INT);
    softmax = Ort::Op::Create(info, "Softmax", "", 13, const_cast<const char**>(names), types, 1,
                              &attribute, 1, 1, 1);
  }
  void Compute(OrtKernelContext* raw) {
    const Ort::KernelContext context(raw);
    const OrtValue* const x = context.GetInput(0);
    const std::vector<int64_t> shape = context.GetInput(0).GetTensorTypeAndShapeInfo().GetShape();
    OrtValue* const z = context.GetOutput(0, shape);
    Ort::AllocatorWithDefaultOptions allocator;
    Ort::Value square = Ort::Value::CreateTensor<float>(allocator, shape.data(), shape.size());
    const OrtValue* const factors[] = {x, x};
    OrtValue* squares[] = {square};
    multiply.Invoke(raw, factors, 2, squares, 1);
    const OrtValue* const logits[] = {square};
    OrtValue* outputs[] = {z};
    softmax.Invoke(raw, logits, 1, outputs, 1);
  }
  Ort::KernelInfo copy;
  Ort::Op multiply{nullptr}, softmax{nullptr};
};

struct Invoking : Ort::CustomOpBase<Invoking, InvokingKernel> {
  void* CreateKernel(const OrtApi&, const OrtKernelInfo* info) const {
    return new InvokingKernel(info);
  }
  const char* GetName() const { return "Raw"; }
  size_t GetInputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(size_t) const { return kFloat; }
  size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(size_t) const { return kFloat; }
};

TEST(CustomOpTest, KernelsCallOtherOperators) {
  const Invoking op;
  Ort::CustomOpDomain domain(kDomain);
  domain.Add(&op);
  Ort::Session session = Open(RawModel(), OptionsWith(domain));
  const std::vector<float> result = RunWith<float>(session, {0, 1, 2});
  const double sum = 1 + std::exp(1.0) + std::exp(4.0);
  EXPECT_NEAR(result[0], 1 / sum, 1e-6);
  EXPECT_NEAR(result[1], std::exp(1.0) / sum, 1e-6);
  EXPECT_NEAR(result[2], std::exp(4.0) / sum, 1e-6);
}

TEST(CustomOpTest, AttributesAreReadAsTheyWereMade) {
  const OrtApi& api = Ort::GetApi();
  const int64_t integers[] = {1, 2, 3};
  const Ort::OpAttr list("list", integers, 3, ORT_OP_ATTR_INTS);
  int64_t read[3] = {};
  size_t bytes = 0;
  EXPECT_NE(Outcome(api.ReadOpAttr(list, ORT_OP_ATTR_INTS, read, 8, &bytes)), "");
  EXPECT_EQ(bytes, sizeof(integers));
  EXPECT_EQ(Outcome(api.ReadOpAttr(list, ORT_OP_ATTR_INTS, read, sizeof(read), &bytes)), "");
  EXPECT_THAT(read, ElementsAre(1, 2, 3));
  EXPECT_NE(Outcome(api.ReadOpAttr(list, ORT_OP_ATTR_FLOATS, read, sizeof(read), &bytes)), "");
  const char* const texts[] = {"a", "bc"};
  const Ort::OpAttr strings("strings", texts, 2, ORT_OP_ATTR_STRINGS);
  char text[5] = {};
  EXPECT_EQ(Outcome(api.ReadOpAttr(strings, ORT_OP_ATTR_STRINGS, text, 5, &bytes)), "");
  EXPECT_EQ(std::string(text, 5), std::string("a\0bc\0", 5));
  const Ort::OpAttr single("single", "SAME_UPPER", 10, ORT_OP_ATTR_STRING);
  char name[10] = {};
  EXPECT_NE(Outcome(api.ReadOpAttr(single, ORT_OP_ATTR_STRING, name, 9, &bytes)), "");
  EXPECT_EQ(bytes, 10u) << "without a terminator, unlike those of a list";
  EXPECT_EQ(Outcome(api.ReadOpAttr(single, ORT_OP_ATTR_STRING, name, 10, &bytes)), "");
  EXPECT_EQ(std::string(name, 10), "SAME_UPPER");
  EXPECT_EQ(list.GetName(), "list");
  EXPECT_EQ(list.GetType(), ORT_OP_ATTR_INTS);
  OrtOpAttr* attribute = nullptr;
  EXPECT_NE(Outcome(api.CreateOpAttr("a", integers, -1, ORT_OP_ATTR_INTS, &attribute)), "");
  EXPECT_NE(Outcome(api.CreateOpAttr("a", nullptr, 1, ORT_OP_ATTR_INT, &attribute)), "");
  EXPECT_NE(Outcome(api.CreateOpAttr("a", integers, 1, ORT_OP_ATTR_GRAPH, &attribute)), "");
}

TEST(CustomOpTest, MissingLibrariesAndFunctionsAreNamed) {
  Ort::SessionOptions options;
  const OrtApi& api = Ort::GetApi();
  EXPECT_THAT(Outcome(api.RegisterCustomOpsLibrary_V2(options, "/no/such/library.so")),
              HasSubstr("/no/such/library.so"));
  void* handle = nullptr;
  EXPECT_THAT(Outcome(api.RegisterCustomOpsLibrary(options, "/no/such/library.so", &handle)),
              HasSubstr("/no/such/library.so"));
  EXPECT_THAT(Outcome(api.RegisterCustomOpsUsingFunction(options, "NoSuchFunction")),
              HasSubstr("NoSuchFunction"));
  EXPECT_THAT(Outcome(api.EnableOrtCustomOps(options)), HasSubstr("onnxruntime-extensions"));
}

TEST(CustomOpTest, NullPointersAreErrors) {
  const OrtApi& api = Ort::GetApi();
  Ort::SessionOptions options;
  EXPECT_NE(Outcome(api.CreateCustomOpDomain(nullptr, nullptr)), "");
  EXPECT_NE(Outcome(api.AddCustomOpDomain(options, nullptr)), "");
  EXPECT_NE(Outcome(api.KernelContext_GetInputCount(nullptr, nullptr)), "");
  EXPECT_NE(Outcome(api.KernelInfo_GetInputCount(nullptr, nullptr)), "");
  EXPECT_NE(Outcome(api.InvokeOp(nullptr, nullptr, nullptr, -1, nullptr, -1)), "");
  EXPECT_NE(Outcome(api.ShapeInferContext_GetInputCount(nullptr, nullptr)), "");
  api.ReleaseCustomOpDomain(nullptr);
  api.ReleaseKernelInfo(nullptr);
  api.ReleaseOpAttr(nullptr);
  api.ReleaseOp(nullptr);
}

}  // namespace
}  // namespace tenon::test
