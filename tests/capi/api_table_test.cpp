// The tables as a client sees them: versions, status slots, slots that are not implemented.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxruntime_c_api.h>
#include <onnxruntime_training_c_api.h>
#include <tenon_c_api.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

using testing::HasSubstr;

const OrtApi& Api() { return *OrtGetApiBase()->GetApi(ORT_API_VERSION); }

// Code and text of a status, which is released here.
struct Outcome {
  explicit Outcome(OrtStatus* status) {
    if (status == nullptr) return;
    code = Api().GetErrorCode(status);
    text = Api().GetErrorMessage(status);
    Api().ReleaseStatus(status);
  }
  OrtErrorCode code = ORT_OK;
  std::string text;
};

// PE-5: the order of the tables' functions is that of the headers (abi_layout_test.cpp).
TEST(ApiTableTest, EveryKnownVersionGetsTheTable) {
  ASSERT_EQ(ORT_API_VERSION, 30);
  for (uint32_t version = 1; version <= ORT_API_VERSION; ++version) {
    EXPECT_EQ(OrtGetApiBase()->GetApi(version), &Api()) << version;
  }
}

// PE-5
TEST(ApiTableTest, UnknownVersionsGetNull) {
  for (const uint32_t version : {0u, ORT_API_VERSION + 1u, 1000u, UINT32_MAX}) {
    EXPECT_EQ(OrtGetApiBase()->GetApi(version), nullptr) << version;
  }
}

TEST(ApiTableTest, VersionStringNamesTheTable) {
  EXPECT_STREQ(OrtGetApiBase()->GetVersionString(), "1.30.0");
  EXPECT_THAT(Api().GetBuildInfoString(), HasSubstr("Tenon"));
}

TEST(ApiTableTest, TenonTableHasItsOwnVersions) {
  ASSERT_NE(TenonGetApi(1), nullptr);
  EXPECT_GT(std::strlen(TenonGetApi(1)->GetVersionString()), 0u);
  EXPECT_EQ(TenonGetApi(0), nullptr);
  EXPECT_EQ(TenonGetApi(TENON_API_VERSION + 1), nullptr);
}

// A table as raw pointers, as far as `count` says.
std::vector<void*> Slots(const void* table, size_t count) {
  std::vector<void*> slots(count);
  std::memcpy(slots.data(), table, count * sizeof(void*));
  return slots;
}

TEST(ApiTableTest, NoSlotOfAnyTableIsNull) {
  constexpr size_t kPadding = 32;
  const struct {
    const char* name;
    const void* table;
    size_t size;
  } kTables[] = {
      {"OrtApi", &Api(), sizeof(OrtApi)},
      {"OrtModelEditorApi", Api().GetModelEditorApi(), sizeof(OrtModelEditorApi)},
      {"OrtCompileApi", Api().GetCompileApi(), sizeof(OrtCompileApi)},
      {"OrtInteropApi", Api().GetInteropApi(), sizeof(OrtInteropApi)},
      {"OrtEpApi", Api().GetEpApi(), sizeof(OrtEpApi)},
      {"OrtTrainingApi", Api().GetTrainingApi(ORT_API_VERSION), sizeof(OrtTrainingApi)},
  };
  for (const auto& [name, table, size] : kTables) {
    ASSERT_NE(table, nullptr) << name;
    const std::vector<void*> slots = Slots(table, size / sizeof(void*) + kPadding);
    for (size_t i = 0; i < slots.size(); ++i) EXPECT_NE(slots[i], nullptr) << name << " slot " << i;
  }
}

TEST(ApiTableTest, SlotAfterTheEndAnswersNotImplemented) {
  OrtStatus* (*after)() = nullptr;
  std::memcpy(&after, reinterpret_cast<const char*>(&Api()) + sizeof(OrtApi), sizeof(after));
  EXPECT_EQ(Outcome(after()).code, ORT_NOT_IMPLEMENTED);
}

TEST(ApiTableTest, AbsentFeaturesAreNull) {
  EXPECT_EQ(Api().GetTrainingApi(ORT_API_VERSION + 1), nullptr);
  EXPECT_EQ(Api().GetExperimentalFunction("none"), nullptr);
  Api().ReleaseOp(nullptr);
}

TEST(ApiTableTest, MissingProvidersAreNamed) {
  const struct {
    const char* name;
    OrtStatusPtr (*append)(OrtSessionOptions*, int) noexcept;
  } kProviders[] = {
      {"CUDA", OrtSessionOptionsAppendExecutionProvider_CUDA},
      {"ROCM", OrtSessionOptionsAppendExecutionProvider_ROCM},
      {"MIGraphX", OrtSessionOptionsAppendExecutionProvider_MIGraphX},
      {"Dnnl", OrtSessionOptionsAppendExecutionProvider_Dnnl},
      {"Tensorrt", OrtSessionOptionsAppendExecutionProvider_Tensorrt},
  };
  for (const auto& [name, append] : kProviders) {
    const Outcome outcome(append(nullptr, 0));
    EXPECT_EQ(outcome.code, ORT_FAIL) << name;
    EXPECT_THAT(outcome.text, HasSubstr(name));
  }
}

TEST(StatusSlotsTest, StatusKeepsCodeAndACopyOfTheText) {
  std::string text = "expected rank 4, got 3";
  OrtStatus* status = Api().CreateStatus(ORT_INVALID_GRAPH, text.c_str());
  text.assign(text.size(), '?');
  EXPECT_EQ(Api().GetErrorCode(status), ORT_INVALID_GRAPH);
  EXPECT_STREQ(Api().GetErrorMessage(status), "expected rank 4, got 3");
  Api().ReleaseStatus(status);
}

TEST(StatusSlotsTest, EveryCodeSurvives) {
  for (int code = ORT_OK; code <= ORT_DEVICE_RESET; ++code) {
    OrtStatus* status = Api().CreateStatus(static_cast<OrtErrorCode>(code), "");
    ASSERT_NE(status, nullptr);
    EXPECT_EQ(Api().GetErrorCode(status), code);
    EXPECT_STREQ(Api().GetErrorMessage(status), "");
    Api().ReleaseStatus(status);
  }
}

TEST(StatusSlotsTest, NullTextIsEmptyAndNullStatusMayBeReleased) {
  const Outcome outcome(Api().CreateStatus(ORT_FAIL, nullptr));
  EXPECT_EQ(outcome.text, "");
  Api().ReleaseStatus(nullptr);
}

}  // namespace
