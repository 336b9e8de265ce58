// Files of checkpoints. (tests/capi and tests/python use them through the interface.)
#include "training/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace tenon {
namespace {

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    folder_ = std::filesystem::temp_directory_path() /
              ("tenon_checkpoint_" + std::to_string(reinterpret_cast<uintptr_t>(this)) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  ~CheckpointTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const char* name) const { return (folder_ / name).string(); }

  static std::vector<char> BytesOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static Result<Checkpoint> Read(const std::vector<char>& bytes) {
    return ReadCheckpoint(std::as_bytes(std::span(bytes)));
  }

  std::filesystem::path folder_;
};

Checkpoint SomeCheckpoint() {
  Checkpoint checkpoint;
  checkpoint.parameters["w"] = {Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), true};
  checkpoint.parameters["frozen"] = {Tensor::Of<int64_t>({2}, {-1, 7}), false};
  checkpoint.parameters["scalar"] = {Tensor::Of<float>({}, {0.5f}), true};
  checkpoint.optimizer.step = 12;
  checkpoint.optimizer.initial_learning_rate = 0.25f;
  checkpoint.optimizer.moments["w"]["momentum0"] = Tensor::Of<float>({2, 3}, {0, 1, 0, 1, 0, 1});
  checkpoint.properties["epoch"] = int64_t{3};
  checkpoint.properties["loss"] = 0.125f;
  checkpoint.properties["name"] = std::string("a text");
  return checkpoint;
}

template <class T>
std::vector<T> ElementsOf(const Tensor& tensor) {
  return {tensor.values<T>().begin(), tensor.values<T>().end()};
}

void ExpectSame(const Checkpoint& read, bool has_optimizer) {
  ASSERT_EQ(read.parameters.size(), 3u);
  const Parameter& w = read.parameters.at("w");
  EXPECT_EQ(w.value.shape(), Shape({2, 3}));
  EXPECT_EQ(ElementsOf<float>(w.value), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(w.is_trained);
  EXPECT_EQ(ElementsOf<int64_t>(read.parameters.at("frozen").value), (std::vector<int64_t>{-1, 7}));
  EXPECT_FALSE(read.parameters.at("frozen").is_trained);
  EXPECT_EQ(read.parameters.at("scalar").value.rank(), 0u);
  EXPECT_EQ(std::get<int64_t>(read.properties.at("epoch")), 3);
  EXPECT_EQ(std::get<float>(read.properties.at("loss")), 0.125f);
  EXPECT_EQ(std::get<std::string>(read.properties.at("name")), "a text");
  EXPECT_EQ(read.optimizer.step, has_optimizer ? 12 : 0);
  if (!has_optimizer) {
    EXPECT_TRUE(read.optimizer.moments.empty());
    return;
  }
  EXPECT_EQ(read.optimizer.initial_learning_rate, 0.25f);
  EXPECT_EQ(read.optimizer.learning_rate, 0.25f);
  EXPECT_EQ(ElementsOf<float>(read.optimizer.moments.at("w").at("momentum0")),
            (std::vector<float>{0, 1, 0, 1, 0, 1}));
}

TEST_F(CheckpointTest, IsReadAsItWasWritten) {
  for (const bool is_external : {false, true}) {
    for (const bool has_optimizer : {false, true}) {
      SCOPED_TRACE(testing::Message() << is_external << has_optimizer);
      Checkpoint written = SomeCheckpoint();
      written.has_external_data = is_external;
      const std::string path = Path("checkpoint");
      const Status status = WriteCheckpoint(written, path, has_optimizer);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(std::filesystem::exists(path + ".data"), is_external);
      const Result<Checkpoint> read = ReadCheckpoint(path);
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_EQ(read->has_external_data, is_external);
      ExpectSame(*read, has_optimizer);
    }
  }
}

TEST_F(CheckpointTest, NominalOnesHaveNamesAlone) {
  Checkpoint written = SomeCheckpoint();
  written.is_nominal = true;
  for (auto& [name, parameter] : written.parameters) parameter.value = Tensor();
  ASSERT_TRUE(WriteCheckpoint(written, Path("nominal"), false).ok());
  const Result<Checkpoint> read = ReadCheckpoint(Path("nominal"));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_TRUE(read->is_nominal);
  EXPECT_EQ(read->parameters.size(), 3u);
  EXPECT_FALSE(read->parameters.at("w").value.defined());
  EXPECT_FALSE(read->parameters.at("frozen").is_trained);
}

TEST_F(CheckpointTest, BytesMayLieAnywhere) {
  ASSERT_TRUE(WriteCheckpoint(SomeCheckpoint(), Path("checkpoint"), true).ok());
  std::vector<char> bytes = BytesOf(Path("checkpoint"));
  bytes.insert(bytes.begin(), 'x');
  const Result<Checkpoint> read = ReadCheckpoint(std::as_bytes(std::span(bytes)).subspan(1));
  ASSERT_TRUE(read) << read.error().message();
  ExpectSame(*read, true);
}

TEST_F(CheckpointTest, DamagedFilesAreErrors) {
  ASSERT_TRUE(WriteCheckpoint(SomeCheckpoint(), Path("checkpoint"), true).ok());
  const std::vector<char> bytes = BytesOf(Path("checkpoint"));
  for (size_t size = 0; size < bytes.size() - 8; ++size) {
    const Result<Checkpoint> read = Read({bytes.begin(), bytes.begin() + static_cast<long>(size)});
    EXPECT_FALSE(read) << "the first " << size << " bytes";
  }
  size_t refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::vector<char> damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      refused += Read(damaged).has_value() ? 0 : 1;  // and never crashes
    }
  }
  EXPECT_GT(refused, bytes.size() / 4);
}

TEST_F(CheckpointTest, ErrorsNameTheCause) {
  const auto error_of = [](const Result<Checkpoint>& read) {
    return read ? std::string() : std::string(read.error().message());
  };
  EXPECT_NE(error_of(ReadCheckpoint(Path("none"))).find("none"), std::string::npos);
  EXPECT_EQ(error_of(Read({'h', 'e', 'l', 'l', 'o', ' ', 'y', 'o', 'u'})),
            "these 9 bytes are no checkpoint: they have no identifier ODTC");
  Checkpoint external = SomeCheckpoint();
  external.has_external_data = true;
  ASSERT_TRUE(WriteCheckpoint(external, Path("checkpoint"), false).ok());
  const std::vector<char> bytes = BytesOf(Path("checkpoint"));
  EXPECT_EQ(error_of(Read(bytes)),
            "tensor 'scalar' of the checkpoint: the elements are in another file");
  std::filesystem::resize_file(Path("checkpoint.data"), 8);
  EXPECT_NE(error_of(ReadCheckpoint(Path("checkpoint"))).find("beyond the end of the data file"),
            std::string::npos)
      << error_of(ReadCheckpoint(Path("checkpoint")));
}

}  // namespace
}  // namespace tenon
