// The host's functions for plugins about operators, kernels and events, called as a client.
#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const OrtEpApi& EpApi() { return *Api().GetEpApi(); }

TEST(OpSchemaTest, DescribesAnOperator) {
  OrtOpSchema* schema = nullptr;
  ASSERT_EQ(Outcome(EpApi().GetOpSchema("Gather", 12, "", &schema)), "");
  ASSERT_NE(schema, nullptr);
  int since = 0;
  size_t inputs = 0, outputs = 0, constraints = 0;
  EXPECT_EQ(Outcome(EpApi().OpSchema_GetSinceVersion(schema, &since)), "");
  EXPECT_EQ(Outcome(EpApi().OpSchema_GetNumInputs(schema, &inputs)), "");
  EXPECT_EQ(Outcome(EpApi().OpSchema_GetNumOutputs(schema, &outputs)), "");
  EXPECT_EQ(Outcome(EpApi().OpSchema_GetTypeConstraintCount(schema, &constraints)), "");
  EXPECT_EQ(std::tuple(since, inputs, outputs, constraints), std::tuple(11, 2u, 1u, 2u));
  const char* name = nullptr;
  EXPECT_EQ(Outcome(EpApi().OpSchema_GetInputName(schema, 1, &name)), "");
  EXPECT_STREQ(name, "indices");
  EXPECT_EQ(Outcome(EpApi().OpSchema_GetOutputName(schema, 0, &name)), "");
  EXPECT_STREQ(name, "output");
  EXPECT_THAT(Outcome(EpApi().OpSchema_GetInputName(schema, 2, &name)),
              AllOf(StartsWith("2: "), HasSubstr("2 inputs")));
  const OrtOpSchemaTypeConstraint* constraint = nullptr;
  EXPECT_EQ(Outcome(EpApi().OpSchema_GetInputTypeConstraint(schema, 1, &constraint)), "");
  EXPECT_EQ(Outcome(EpApi().OpSchemaTypeConstraint_GetTypeParamName(constraint, &name)), "");
  EXPECT_STREQ(name, "Tind");
  const char* const* types = nullptr;
  size_t count = 0;
  EXPECT_EQ(Outcome(EpApi().OpSchemaTypeConstraint_GetAllowedTypes(constraint, &types, &count)),
            "");
  EXPECT_THAT(std::vector<std::string>(types, types + count),
              ElementsAre("tensor(int32)", "tensor(int64)"));
  const size_t* indices = nullptr;
  EXPECT_EQ(Outcome(EpApi().OpSchemaTypeConstraint_GetInputIndices(constraint, &indices, &count)),
            "");
  EXPECT_THAT(std::vector<size_t>(indices, indices + count), ElementsAre(1u));
  EXPECT_EQ(Outcome(EpApi().OpSchemaTypeConstraint_GetOutputIndices(constraint, &indices, &count)),
            "");
  EXPECT_EQ(count, 0u);
  const OrtOpSchemaTypeConstraint *of_output = nullptr, *of_input = nullptr, *first = nullptr;
  EXPECT_EQ(Outcome(EpApi().OpSchema_GetOutputTypeConstraint(schema, 0, &of_output)), "");
  EXPECT_EQ(Outcome(EpApi().OpSchema_GetInputTypeConstraint(schema, 0, &of_input)), "");
  EXPECT_EQ(of_output, of_input);
  EXPECT_EQ(Outcome(EpApi().OpSchemaTypeConstraint_GetOutputIndices(of_output, &indices, &count)),
            "");
  EXPECT_THAT(std::vector<size_t>(indices, indices + count), ElementsAre(0u));
  EXPECT_EQ(Outcome(EpApi().OpSchema_GetTypeConstraint(schema, 0, &first)), "");
  EXPECT_TRUE(first == of_output || first == constraint);
  EXPECT_THAT(Outcome(EpApi().OpSchema_GetTypeConstraint(schema, 2, &first)), StartsWith("2: "));
  EpApi().ReleaseOpSchema(schema);
}

TEST(EpDeviceTest, FactoriesWithoutANameHaveNone) {
  OrtEpFactory factory = {};
  factory.ort_version_supported = ORT_API_VERSION;
  OrtHardwareDevice* hardware = nullptr;
  ASSERT_EQ(Outcome(EpApi().CreateHardwareDevice(OrtHardwareDeviceType_CPU, 1, 2, "maker", nullptr,
                                                 &hardware)),
            "");
  OrtEpDevice* device = nullptr;
  EXPECT_THAT(Outcome(EpApi().CreateEpDevice(&factory, hardware, nullptr, nullptr, &device)),
              HasSubstr("no name"));
  factory.GetName = [](const OrtEpFactory*) noexcept { return "Named"; };
  EXPECT_EQ(Outcome(EpApi().CreateEpDevice(&factory, hardware, nullptr, nullptr, &device)), "");
  ASSERT_NE(device, nullptr);
  EXPECT_STREQ(Api().EpDevice_EpName(device), "Named");
  EpApi().ReleaseEpDevice(device);

  Ort::ConstHardwareDevice of_hardware(hardware);
  Ort::KeyValuePairs options;
  options.Add("key", "value");
  const Ort::EpDevice owner(factory, of_hardware, {}, options.GetConst());
  EXPECT_STREQ(owner.EpName(), "Named");
  EXPECT_EQ(owner.Device().VendorId(), 1u);
  EXPECT_STREQ(owner.EpOptions().GetValue("key"), "value");
  EpApi().ReleaseHardwareDevice(hardware);
}

TEST(MemoryDeviceTest, ValuesLieWhereTheirMemoryInfoSays) {
  std::vector<float> data = {1, 2};
  const Ort::Value value = TensorOver(data, {2});
  const OrtMemoryDevice* const device = EpApi().Value_GetMemoryDevice(value);
  ASSERT_NE(device, nullptr);
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  EXPECT_TRUE(EpApi().MemoryDevice_AreEqual(device, EpApi().MemoryInfo_GetMemoryDevice(cpu)));
  const Ort::MemoryInfo other("Cuda", OrtDeviceAllocator, 3, OrtMemTypeDefault);
  EXPECT_FALSE(EpApi().MemoryDevice_AreEqual(device, EpApi().MemoryInfo_GetMemoryDevice(other)));
}

TEST(EnvConfigTest, EntriesAreThoseOfTheEnvironment) {
  (void)Env();
  OrtKeyValuePairs* entries = nullptr;
  ASSERT_EQ(Outcome(EpApi().GetEnvConfigEntries(&entries)), "");
  ASSERT_NE(entries, nullptr);
  EXPECT_EQ(Api().GetKeyValue(entries, "no.such.key"), nullptr);
  Api().ReleaseKeyValuePairs(entries);
}

TEST(OpSchemaTest, UnknownOperatorsHaveNone) {
  auto* schema = reinterpret_cast<OrtOpSchema*>(&Api);
  EXPECT_EQ(Outcome(EpApi().GetOpSchema("Gather", 12, "no.such.domain", &schema)), "");
  EXPECT_EQ(schema, nullptr);
}

// PE-51
TEST(KernelDefTest, SaysWhatIsMissing) {
  OrtKernelDefBuilder* builder = nullptr;
  ASSERT_EQ(Outcome(EpApi().CreateKernelDefBuilder(&builder)), "");
  OrtKernelDef* def = nullptr;
  EXPECT_THAT(Outcome(EpApi().KernelDefBuilder_Build(builder, &def)),
              AllOf(StartsWith("2: "), HasSubstr("operator type")));
  EXPECT_EQ(Outcome(EpApi().KernelDefBuilder_SetOperatorType(builder, "Mul")), "");
  EXPECT_THAT(Outcome(EpApi().KernelDefBuilder_Build(builder, &def)), HasSubstr("provider"));
  EXPECT_EQ(Outcome(EpApi().KernelDefBuilder_SetExecutionProvider(builder, "Mine")), "");
  EXPECT_THAT(Outcome(EpApi().KernelDefBuilder_Build(builder, &def)), HasSubstr("versions"));
  for (const auto& [first, last] : {std::pair(0, 3), std::pair(5, 4), std::pair(-1, 1)}) {
    EXPECT_THAT(Outcome(EpApi().KernelDefBuilder_SetSinceVersion(builder, first, last)),
                StartsWith("2: "));
  }
  EXPECT_EQ(Outcome(EpApi().KernelDefBuilder_SetSinceVersion(builder, 7, 12)), "");
  EXPECT_THAT(Outcome(EpApi().KernelDefBuilder_AddTypeConstraint(builder, "T", nullptr, 0)),
              StartsWith("2: "));
  const int index = 0;
  EXPECT_THAT(Outcome(EpApi().KernelDefBuilder_AddInputOutputAliases(builder, &index, &index, 0)),
              StartsWith("2: "));
  EXPECT_EQ(Outcome(EpApi().KernelDefBuilder_SetInputMemType(builder, 1, OrtMemTypeCPUInput)), "");
  EXPECT_EQ(Outcome(EpApi().KernelDefBuilder_SetOutputMemType(builder, 0, OrtMemTypeCPUOutput)),
            "");
  EXPECT_EQ(
      Outcome(EpApi().KernelDefBuilder_AddInputOutputMutableAliases(builder, &index, &index, 1)),
      "");
  EXPECT_EQ(Outcome(EpApi().KernelDefBuilder_SetDomain(builder, "mine.ops")), "");
  ASSERT_EQ(Outcome(EpApi().KernelDefBuilder_Build(builder, &def)), "");
  EXPECT_STREQ(EpApi().KernelDef_GetOperatorType(def), "Mul");
  EXPECT_STREQ(EpApi().KernelDef_GetExecutionProvider(def), "Mine");
  int first = 0, last = 0;
  EXPECT_EQ(Outcome(EpApi().KernelDef_GetSinceVersion(def, &first, &last)), "");
  EXPECT_EQ(std::pair(first, last), std::pair(7, 12));
  OrtMemType memory = OrtMemTypeDefault;
  EXPECT_EQ(Outcome(EpApi().KernelDef_GetInputMemType(def, 1, &memory)), "");
  EXPECT_EQ(memory, OrtMemTypeCPUInput);
  EXPECT_EQ(Outcome(EpApi().KernelDef_GetOutputMemType(def, 0, &memory)), "");
  EXPECT_EQ(memory, OrtMemTypeCPUOutput);
  EXPECT_STREQ(EpApi().KernelDef_GetDomain(def), "mine.ops");
  OrtKernelRegistry* registry = nullptr;
  ASSERT_EQ(Outcome(EpApi().CreateKernelRegistry(&registry)), "");
  const OrtKernelCreateFunc create = [](void*, const OrtKernelInfo*,
                                        OrtKernelImpl**) -> OrtStatus* { return nullptr; };
  EXPECT_THAT(Outcome(EpApi().KernelRegistry_AddKernel(registry, def, nullptr, nullptr)),
              StartsWith("2: "));
  EXPECT_EQ(Outcome(EpApi().KernelRegistry_AddKernel(registry, def, create, nullptr)), "");
  EXPECT_THAT(Outcome(EpApi().KernelRegistry_AddKernel(registry, def, create, nullptr)),
              AllOf(StartsWith("1: "), HasSubstr("already")));
  EpApi().ReleaseKernelRegistry(registry);
  EpApi().ReleaseKernelDef(def);
  EpApi().ReleaseKernelDefBuilder(builder);
}

TEST(ProfilingEventTest, HoldsWhatItIsGiven) {
  const char* const keys[] = {"a", "b"};
  const char* const values[] = {"1", "two"};
  OrtProfilingEvent* event = nullptr;
  ASSERT_EQ(Outcome(EpApi().CreateProfilingEvent(OrtProfilingEventCategory_API, 3, 4, "copy", 10,
                                                 20, keys, values, 2, &event)),
            "");
  const char* text = nullptr;
  int64_t number = 0;
  OrtProfilingEventCategory category = OrtProfilingEventCategory_SESSION;
  EXPECT_EQ(Outcome(EpApi().ProfilingEvent_GetName(event, &text)), "");
  EXPECT_STREQ(text, "copy");
  EXPECT_EQ(Outcome(EpApi().ProfilingEvent_GetCategory(event, &category)), "");
  EXPECT_EQ(category, OrtProfilingEventCategory_API);
  EXPECT_EQ(Outcome(EpApi().ProfilingEvent_GetTimestampUs(event, &number)), "");
  EXPECT_EQ(number, 10);
  EXPECT_EQ(Outcome(EpApi().ProfilingEvent_GetDurationUs(event, &number)), "");
  EXPECT_EQ(number, 20);
  EXPECT_EQ(Outcome(EpApi().ProfilingEvent_GetArgValue(event, "b", &text)), "");
  EXPECT_STREQ(text, "two");
  EXPECT_EQ(Outcome(EpApi().ProfilingEvent_GetArgValue(event, "c", &text)), "");
  EXPECT_EQ(text, nullptr);
  EpApi().ReleaseProfilingEvent(event);
}

// PR-36
TEST(ProfilingEventTest, SaysWhatIsWrongWithIt) {
  const char* const texts[] = {"a", "b"};
  const char* const half[] = {"a", nullptr};
  OrtProfilingEvent* event = nullptr;
  const auto make = [&](int category, const char* name, const char* const* keys,
                        const char* const* values, size_t args) {
    event = nullptr;
    const std::string outcome =
        Outcome(EpApi().CreateProfilingEvent(static_cast<OrtProfilingEventCategory>(category), 0, 0,
                                             name, 0, 0, keys, values, args, &event));
    EpApi().ReleaseProfilingEvent(event);
    return outcome;
  };
  for (int category = 0; category <= 3; ++category) {
    EXPECT_EQ(make(category, "x", nullptr, nullptr, 0), "");
    EXPECT_EQ(make(category, "", texts, texts, 2), "");
  }
  for (const int category : {-1, 4, 9}) {
    EXPECT_THAT(make(category, "x", nullptr, nullptr, 0), StartsWith("2: "));
  }
  EXPECT_THAT(make(1, nullptr, nullptr, nullptr, 0), StartsWith("2: "));
  EXPECT_THAT(make(1, "x", nullptr, texts, 2), StartsWith("2: "));
  EXPECT_THAT(make(1, "x", texts, nullptr, 2), StartsWith("2: "));
  EXPECT_THAT(make(1, "x", half, texts, 2), StartsWith("2: "));
  EXPECT_THAT(make(1, "x", texts, half, 2), StartsWith("2: "));
}

}  // namespace
}  // namespace tenon::test
