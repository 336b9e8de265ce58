// The C++ classes over what plugin libraries use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(CxxPluginTest, KernelsAreDescribedAndRegistered) {
  const OrtDataType* type = nullptr;
  Ort::ThrowOnError(Ort::GetEpApi().GetTensorDataType(kFloat, &type));
  Ort::KernelDefBuilder builder;
  const Ort::KernelDef kernel_def = builder.SetOperatorType("Relu")
                                        .SetDomain("")
                                        .SetSinceVersion(13, 14)
                                        .SetExecutionProvider("maker")
                                        .SetInputMemType(0, OrtMemTypeCPUInput)
                                        .AddTypeConstraint("T", type)
                                        .AddInputOutputMutableAlias(0, 0)
                                        .Build();
  EXPECT_STREQ(kernel_def.GetOperatorType(), "Relu");
  EXPECT_STREQ(kernel_def.GetExecutionProvider(), "maker");
  EXPECT_THAT(kernel_def.GetSinceVersion(), Pair(13, 14));
  EXPECT_EQ(kernel_def.GetConst().GetInputMemType(0), OrtMemTypeCPUInput);
  EXPECT_EQ(kernel_def.GetOutputMemType(0), OrtMemTypeDefault);
  EXPECT_THAT(ErrorOf([&] {
                builder.AddInputOutputAliases({0, 1}, {0});
              }),
              HasSubstr("differ in number"));
  Ort::KernelRegistry registry;
  const auto create = [](void*, const OrtKernelInfo*, OrtKernelImpl**) noexcept -> OrtStatus* {
    return nullptr;
  };
  EXPECT_TRUE(registry.AddKernel(kernel_def, create, nullptr).IsOK());
  EXPECT_FALSE(registry.AddKernel(nullptr, create, nullptr).IsOK());
}

TEST(CxxPluginTest, SchemasTellTypes) {
  const Ort::OpSchema schema = Ort::GetOpSchema("Where", 20, "");
  EXPECT_EQ(schema.GetSinceVersion(), 16);
  EXPECT_EQ(schema.GetNumInputs(), 3u);
  EXPECT_EQ(schema.GetInputName(1), "X");
  EXPECT_EQ(schema.GetNumOutputs(), 1u);
  EXPECT_EQ(schema.GetOutputName(0), "output");
  EXPECT_EQ(schema.GetTypeConstraintCount(), 2u);
  const Ort::ConstOpSchemaTypeConstraint type = schema.GetInputTypeConstraint(2);
  EXPECT_EQ(type.GetTypeParamName(), "T");
  EXPECT_THAT(type.GetInputIndices(), ElementsAre(1, 2));
  EXPECT_THAT(type.GetOutputIndices(), ElementsAre(0));
  EXPECT_THAT(type.GetAllowedTypes(), Contains("tensor(string)"));
  EXPECT_THAT(schema.GetInputTypeConstraint(0).GetAllowedTypes(), ElementsAre("tensor(bool)"));
  EXPECT_EQ(Ort::GetOpSchema("NoSuch", 20, ""), nullptr);
}

TEST(CxxPluginTest, EventsKeepTheirArguments) {
  const Ort::ProfilingEvent event(OrtProfilingEventCategory_KERNEL, 1, 2, "matmul", 30, 4,
                                  {{"stream", "7"}});
  EXPECT_EQ(event.GetCategory(), OrtProfilingEventCategory_KERNEL);
  EXPECT_STREQ(event.GetName(), "matmul");
  EXPECT_EQ(event.GetTimestampUs(), 30);
  EXPECT_EQ(event.GetDurationUs(), 4);
  EXPECT_STREQ(event.GetConst().GetArgValue("stream"), "7");
  EXPECT_EQ(event.GetArgValue("device"), nullptr);
}

TEST(CxxPluginTest, AttributesHaveValues) {
  const int64_t axes[] = {1, -2};
  const Ort::OpAttr ints("axes", axes, 2, ORT_OP_ATTR_INTS);
  std::vector<int64_t> numbers;
  EXPECT_TRUE(ints.GetConst().GetValueArray(numbers).IsOK());
  EXPECT_THAT(numbers, ElementsAre(1, -2));
  const float alpha = 0.5f;
  float number = 0;
  EXPECT_TRUE(Ort::OpAttr("alpha", &alpha, 1, ORT_OP_ATTR_FLOAT).GetValue(number).IsOK());
  EXPECT_EQ(number, 0.5f);
  std::string text;
  EXPECT_TRUE(Ort::OpAttr("mode", "linear", 6, ORT_OP_ATTR_STRING).GetValue(text).IsOK());
  EXPECT_EQ(text, "linear");
  const char* const modes[] = {"a", "", "bcd"};
  std::vector<std::string> texts;
  const Ort::OpAttr strings("modes", modes, 3, ORT_OP_ATTR_STRINGS);
  EXPECT_TRUE(strings.GetValueArray(texts).IsOK());
  EXPECT_THAT(texts, ElementsAre("a", "", "bcd"));
  EXPECT_FALSE(ints.GetValue(text).IsOK()) << "it is no string";
}

TEST(CxxPluginTest, SessionsTellWhoRunsWhat) {
  const std::string type = TensorType(kFloat, {"n"});
  const std::string model =
      ModelBuilder().Input("x", type).Node("Erf", {"x"}, {"y"}).Output("y", type).Bytes();
  Ort::SessionOptions options;
  options.AddConfigEntry("session.record_ep_graph_assignment_info", "1");
  const Ort::Session session = Open(model, options);
  const std::vector<Ort::ConstEpAssignedSubgraph> parts = session.GetEpGraphAssignmentInfo();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].GetEpName(), "CPUExecutionProvider");
  ASSERT_EQ(parts[0].GetNodes().size(), 1u);
  EXPECT_EQ(parts[0].GetNodes()[0].GetOperatorType(), "Erf");
  EXPECT_EQ(parts[0].GetNodes()[0].GetDomain(), "");
}

TEST(CxxPluginTest, EnvironmentsTellTheirHardware) {
  Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "hardware");
  const std::vector<Ort::ConstHardwareDevice> devices = env.GetHardwareDevices();
  ASSERT_EQ(devices.size(), env.GetNumHardwareDevices());
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].Type(), OrtHardwareDeviceType_CPU);
}

// An allocator of an older version has no slots for these.
TEST(CxxPluginTest, AllocatorsReserveAndShrinkIfTheyCan) {
  struct Client : OrtAllocator {
    int allocated = 0, reserved = 0, shrunk = 0;
  } client;
  client.Alloc = [](OrtAllocator* self, size_t) -> void* {
    ++static_cast<Client*>(self)->allocated;
    return self;
  };
  client.Reserve = [](OrtAllocator* self, size_t) -> void* {
    ++static_cast<Client*>(self)->reserved;
    return self;
  };
  client.Shrink = [](OrtAllocator* self) noexcept -> OrtStatus* {
    ++static_cast<Client*>(self)->shrunk;
    return nullptr;
  };
  Ort::UnownedAllocator allocator(&client);
  for (const uint32_t version : {17u, 24u, 25u}) {
    client.version = version;
    EXPECT_EQ(allocator.Reserve(8), &client);
    allocator.Shrink();
  }
  EXPECT_EQ(client.allocated, 1);
  EXPECT_EQ(client.reserved, 2);
  EXPECT_EQ(client.shrunk, 1);
}

}  // namespace
}  // namespace tenon::test
