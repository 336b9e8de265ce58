#include "runtime/shared_weights.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/mapped_file.h"
#include "base/temporary_folder.h"

namespace tenon {
namespace {

Result<Tensor> Copy(const Tensor& from) { return from.Clone(); }

// The first two floats of a file that is shared.
Tensor FloatsOf(const std::string& path) {
  const auto file = MappedFile::Share(MappedFile::Open(path).value());
  auto* const floats = const_cast<std::byte*>(file->bytes().data());
  return Tensor::View(DataType::kFloat, Shape({2}), floats, file);
}

TEST(SharedWeightsTest, SharesFormsOfOneFileWhileTheyAreHeld) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("weights", "12345678");
  SharedWeights weights;
  int made = 0;
  const auto count = [&](const Tensor& from) {
    ++made;
    return Copy(from);
  };
  {
    const auto first = weights.Get(FloatsOf(path), "form", count).value();
    // The first view is destroyed, but its mapping is not: no other mapping can take its address.
    const auto second = weights.Get(FloatsOf(path), "form", count).value();
    EXPECT_EQ(first->raw(), second->raw());
    EXPECT_EQ(made, 1);
    EXPECT_NE(weights.Get(FloatsOf(path), "another form", count).value()->raw(), first->raw());
    EXPECT_EQ(made, 2);
  }
  ASSERT_TRUE(weights.Get(FloatsOf(path), "form", count));
  EXPECT_EQ(made, 3);
}

// The packed form is found again after the original has been freed.
TEST(SharedWeightsTest, SharesFormsOfForms) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("weights", "12345678");
  SharedWeights weights;
  int made = 0;
  const auto count = [&](const Tensor& from) {
    ++made;
    return Copy(from);
  };
  const auto derive = [&] {
    const std::shared_ptr<const Tensor> wide = weights.Get(FloatsOf(path), "wide", count).value();
    const Tensor constant = Tensor::ReadOnlyView(wide->type(), wide->shape(), wide->raw(),
                                                 std::const_pointer_cast<Tensor>(wide));
    return weights.Get(constant, "packed", count).value();
  };
  const auto first = derive();
  EXPECT_EQ(made, 2);
  EXPECT_EQ(derive()->raw(), first->raw());
  EXPECT_EQ(made, 3) << "the wide form alone is made again";
  EXPECT_NE(weights.Get(FloatsOf(path), "packed", count).value()->raw(), first->raw());
}

TEST(SharedWeightsTest, AChangedFileHasOtherWeights) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("weights", "12345678");
  SharedWeights weights;
  const auto old = weights.Get(FloatsOf(path), "form", Copy).value();
  const std::string_view text = "abcdefgh";
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  ASSERT_TRUE(WriteFileAtomically(path, {&bytes, 1}).ok());
  const auto now = weights.Get(FloatsOf(path), "form", Copy).value();
  EXPECT_EQ(std::memcmp(now->raw(), "abcdefgh", 8), 0);
  EXPECT_EQ(std::memcmp(old->raw(), "12345678", 8), 0);
}

TEST(SharedWeightsTest, MemoryOfCallersIsSharedOnlyIfTheySaySo) {
  float memory[] = {1, 2};
  const Tensor constant = Tensor::View(DataType::kFloat, Shape({2}), memory, nullptr);
  SharedWeights files;
  const auto first = files.Get(constant, "form", Copy).value();
  EXPECT_NE(files.Get(constant, "form", Copy).value()->raw(), first->raw());
  SharedWeights all(SharedWeights::Memory::kFilesAndCallers);
  const auto second = all.Get(constant, "form", Copy).value();
  EXPECT_EQ(all.Get(constant, "form", Copy).value()->raw(), second->raw());
  // A tensor with its own memory may be freed, and another may get its address.
  const Tensor own = constant.Clone().value();
  const auto third = all.Get(own, "form", Copy).value();
  EXPECT_NE(all.Get(own, "form", Copy).value()->raw(), third->raw());
}

TEST(SharedWeightsTest, AFailureIsTriedAgain) {
  float memory[] = {1, 2};
  const Tensor constant = Tensor::View(DataType::kFloat, Shape({2}), memory, nullptr);
  SharedWeights weights(SharedWeights::Memory::kFilesAndCallers);
  EXPECT_FALSE(weights.Get(constant, "form",
                           [](const Tensor&) -> Result<Tensor> { return Fail("no room"); }));
  EXPECT_TRUE(weights.Get(constant, "form", Copy));
}

}  // namespace
}  // namespace tenon
