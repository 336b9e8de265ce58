// Traces of sessions and of single runs, through the ABI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/temporary_folder.h"
#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string TextOf(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void RunAddRelu(Ort::Session& session, const Ort::RunOptions& options) {
  std::vector<float> x = {-5, 1, 2}, y = {1, 1, 1};
  const Ort::Value inputs[] = {TensorOver(x, {1, 3}), TensorOver(y, {3})};
  const char* const input_names[] = {"x", "y"};
  const char* const output_names[] = {"z"};
  session.Run(options, input_names, inputs, 2, output_names, 1);
}

TEST(ProfilingTest, EndingGivesTheFileOnce) {
  const tenon::TemporaryFolder folder;
  Ort::SessionOptions options;
  options.EnableProfiling((folder / "trace").c_str());
  Ort::Session session = Open(AddReluModel(), options);
  EXPECT_GT(session.GetProfilingStartTimeNs(), 0u);
  RunAddRelu(session, Ort::RunOptions());
  Ort::AllocatorWithDefaultOptions allocator;
  const std::string path = session.EndProfilingAllocated(allocator).get();
  EXPECT_THAT(path, StartsWith(folder / "trace"));
  EXPECT_THAT(TextOf(path), HasSubstr("model_run"));
  EXPECT_EQ(std::string(session.EndProfilingAllocated(allocator).get()), "");
}

// PR-5: the path is in memory of the allocator that the caller gives.
TEST(ProfilingTest, ThePathIsOfTheCallersAllocator) {
  struct Counting : OrtAllocator {
    Counting() : OrtAllocator{} {
      version = ORT_API_VERSION;
      Alloc = [](OrtAllocator* self, size_t size) {
        static_cast<Counting*>(self)->sizes.push_back(size);
        return std::malloc(size);
      };
      Free = [](OrtAllocator*, void* block) { std::free(block); };
      Info = [](const OrtAllocator*) -> const OrtMemoryInfo* {
        static const auto cpu = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
        return cpu;
      };
    }
    std::vector<size_t> sizes;
  };
  const tenon::TemporaryFolder folder;
  Ort::SessionOptions options;
  options.EnableProfiling((folder / "trace").c_str());
  Ort::Session session = Open(AddReluModel(), options);
  Counting allocator;
  char* path = nullptr;
  ASSERT_EQ(Outcome(Ort::GetApi().SessionEndProfiling(session, &allocator, &path)), "");
  EXPECT_EQ(allocator.sizes, std::vector<size_t>{std::string(path).size() + 1});
  const std::string text = TextOf(path);
  EXPECT_THAT(text, StartsWith("[\n"));
  EXPECT_THAT(text, testing::EndsWith("\n]\n"));
  allocator.Free(&allocator, path);
  RunAddRelu(session, Ort::RunOptions());
  EXPECT_EQ(TextOf(std::filesystem::directory_iterator(folder.path())->path()), text)
      << "profiling is off";
}

// PR-1: enabling may be taken back before the session is made.
TEST(ProfilingTest, DisablingLeavesNoFile) {
  const tenon::TemporaryFolder folder;
  Ort::SessionOptions options;
  options.EnableProfiling((folder / "trace").c_str());
  options.DisableProfiling();
  Ort::Session session = Open(AddReluModel(), options);
  RunAddRelu(session, Ort::RunOptions());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ProfilingTest, SessionsWithoutATraceHaveNone) {
  Ort::Session session = Open(AddReluModel());
  EXPECT_EQ(session.GetProfilingStartTimeNs(), 0u);
  Ort::AllocatorWithDefaultOptions allocator;
  EXPECT_EQ(std::string(session.EndProfilingAllocated(allocator).get()), "");
  char* path = nullptr;
  EXPECT_NE(Outcome(Ort::GetApi().SessionEndProfiling(nullptr, allocator, &path)), "");
}

TEST(ProfilingTest, SingleRunsAreTraced) {
  const tenon::TemporaryFolder folder;
  Ort::Session session = Open(AddReluModel());
  Ort::RunOptions options;
  ASSERT_EQ(Outcome(Ort::GetApi().RunOptionsEnableProfiling(options, (folder / "run").c_str())),
            "");
  RunAddRelu(session, options);
  ASSERT_EQ(Outcome(Ort::GetApi().RunOptionsDisableProfiling(options)), "");
  RunAddRelu(session, options);
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

}  // namespace
}  // namespace tenon::test
