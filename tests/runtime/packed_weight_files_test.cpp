// Files of packed weights. Sessions with them: tests/python/test_packed_weights.py.
#include "runtime/packed_weight_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "base/build_id.h"
#include "base/temporary_folder.h"

namespace tenon {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kFloats = 20'000;

class PackedWeightFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (BuildId().empty()) GTEST_SKIP() << "this program has no build id";
  }

  std::shared_ptr<PackedWeightFiles> Files() const {
    return *PackedWeightFiles::Open(folder_.path(), logger_);
  }
  std::string FileName() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      return entry.path().filename();
    }
    return "";
  }
  // Writes a byte of the file.
  void Damage(size_t at) const {
    std::fstream file(folder_ / FileName(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const auto byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }

  static Tensor Numbers(size_t count, float first) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), first);
    return Tensor::Of<float>(Shape({static_cast<int64_t>(count)}), std::span<const float>(values));
  }

  const Tensor constant_ = Numbers(kFloats, 0), packed_ = Numbers(kFloats, 1);
  const TemporaryFolder folder_;
  std::vector<std::string> logged_;
  const Logger logger_{
      "test",
      Severity::kWarning,
      0,
      {[](void* self, Severity, const char*, const char*, const char*, const char* text) {
         static_cast<std::vector<std::string>*>(self)->push_back(text);
       },
       &logged_}};
};

TEST(BuildIdTest, IsHexadecimal) {
  const std::string id = BuildId();
  EXPECT_THAT(id, testing::Not(IsEmpty())) << "the linker was not told to make one";
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), id.npos) << id;
  EXPECT_EQ(id, BuildId());
}

TEST_F(PackedWeightFilesTest, GiveWhatWasStored) {
  const auto key = Files()->KeyOf(constant_, "form", kFloats);
  ASSERT_TRUE(key);
  EXPECT_FALSE(Files()->Load(*key));
  Files()->Store(*key, packed_);
  const auto loaded = Files()->Load(*key);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->shape(), packed_.shape());
  EXPECT_TRUE(
      std::equal(loaded->data<float>(), loaded->data<float>() + kFloats, packed_.data<float>()));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded->raw()) % 4096, 0u) << "as in a page of a file";
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(PackedWeightFilesTest, TellConstantsAndFormsApart) {
  const auto key = Files()->KeyOf(constant_, "form", kFloats);
  Files()->Store(*key, packed_);
  const Tensor copy = constant_.Clone().value(), other = Numbers(kFloats, 7);
  EXPECT_TRUE(Files()->Load(*Files()->KeyOf(copy, "form", kFloats))) << "it is by content";
  EXPECT_FALSE(Files()->Load(*Files()->KeyOf(other, "form", kFloats)));
  EXPECT_FALSE(Files()->Load(*Files()->KeyOf(constant_, "another form", kFloats)));
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(PackedWeightFilesTest, SmallWeightsHaveNone) {
  EXPECT_FALSE(Files()->KeyOf(constant_, "form", 1000));
}

TEST_F(PackedWeightFilesTest, DamagedOnesAreNotUsed) {
  const auto key = Files()->KeyOf(constant_, "form", kFloats);
  const size_t size = 4096 + kFloats * sizeof(float);
  for (const size_t at : {size_t{0}, size_t{14}, size_t{20}, size_t{40}, size_t{50}, size_t{4096},
                          size_t{5000}, size - 1}) {
    Files()->Store(*key, packed_);
    ASSERT_EQ(folder_.SizeOf(FileName()), static_cast<int64_t>(size));
    ASSERT_TRUE(Files()->Load(*key)) << "it was replaced";
    Damage(at);
    logged_.clear();
    EXPECT_FALSE(Files()->Load(*key)) << at;
    ASSERT_EQ(logged_.size(), 1u) << at;
    EXPECT_THAT(logged_[0], HasSubstr(FileName()));
  }
  for (const size_t length : {size_t{0}, size_t{100}, size - 4, size + 4}) {
    Files()->Store(*key, packed_);
    std::filesystem::resize_file(folder_ / FileName(), length);
    EXPECT_FALSE(Files()->Load(*key)) << length;
  }
  // Another number of floats than is wanted, though the rest is right.
  Files()->Store(*key, packed_);
  EXPECT_FALSE(Files()->Load({key->hash, kFloats - 1}));
}

TEST_F(PackedWeightFilesTest, LinksThatLeaveTheFolderAreNotFollowed) {
  const auto key = Files()->KeyOf(constant_, "form", kFloats);
  Files()->Store(*key, packed_);
  const TemporaryFolder other;
  const std::string name = FileName();
  std::filesystem::rename(folder_ / name, other / name);
  folder_.Link(name, other / name);
  EXPECT_FALSE(Files()->Load(*key));
  ASSERT_EQ(logged_.size(), 1u);
  Files()->Store(*key, packed_);
  EXPECT_TRUE(Files()->Load(*key)) << "the link was replaced";
}

TEST_F(PackedWeightFilesTest, AFailureToWriteIsOneWarning) {
  const auto files = Files();
  std::filesystem::remove(folder_.path());
  const auto key = files->KeyOf(constant_, "form", kFloats);
  files->Store(*key, packed_);
  files->Store(*key, packed_);
  ASSERT_EQ(logged_.size(), 1u);
  EXPECT_THAT(logged_[0], HasSubstr("packed weights: cannot"));
  mkdir(folder_.path().c_str(), 0700);  // to be removed
}

TEST_F(PackedWeightFilesTest, TheFolderMustExist) {
  const auto opened = PackedWeightFiles::Open(folder_ / "absent", logger_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(opened.error().message(), HasSubstr("absent': there is no such folder"));
  EXPECT_FALSE(PackedWeightFiles::Open(folder_.Write("file", ""), logger_));
}

}  // namespace
}  // namespace tenon
