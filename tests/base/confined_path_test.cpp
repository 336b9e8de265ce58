#include "base/confined_path.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/temporary_folder.h"

namespace tenon {
namespace {

// The result of MapConfined for a name: "text: CONTENT" or "CODE: MESSAGE".
std::string Open(const std::vector<std::string>& folders, std::string_view name) {
  const auto file = MapConfined(folders, name);
  if (!file) {
    return Format("{}: {}", static_cast<int>(file.error().code()), file.error().message());
  }
  return "text: " +
         std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
}

class ConfinedPathTest : public testing::Test {
 protected:
  void SetUp() override {
    root_.Write("secret", "secret");
    root_.Write("other/secret", "secret");
    root_.Write("model/data", "data");
    root_.Write("model/sub/data", "sub data");
    root_.Write("model/empty", "");
    root_.Write("model2/data", "neighbour");
  }
  std::string OpenInModel(std::string_view name) const { return Open({root_ / "model"}, name); }
  TemporaryFolder root_;
};

TEST_F(ConfinedPathTest, FilesInAndBelowTheFolderOpen) {
  EXPECT_EQ(OpenInModel("data"), "text: data");
  EXPECT_EQ(OpenInModel("./data"), "text: data");
  EXPECT_EQ(OpenInModel("sub/data"), "text: sub data");
  EXPECT_EQ(OpenInModel("sub//.././sub/../data"), "text: data");
  EXPECT_EQ(OpenInModel("empty"), "text: ");
}

TEST_F(ConfinedPathTest, NamesThatLeaveAreRefusedUnread) {
  const std::string_view names[] = {"../secret",       "..",        "sub/../../secret",
                                    "./../model/data", "a/../../b", "../model/data"};
  for (std::string_view name : names) {
    EXPECT_EQ(
        OpenInModel(name),
        Format("2: External data path validation failed: '{}' escapes model directory", name));
  }
  EXPECT_EQ(Open({"."}, "../secret"),
            "2: External data path validation failed: '../secret' escapes working directory");
  EXPECT_EQ(
      OpenInModel(root_ / "model/data"),
      Format("2: External data path validation failed: '{}' is absolute", root_ / "model/data"));
  EXPECT_EQ(OpenInModel("/etc/passwd"),
            "2: External data path validation failed: '/etc/passwd' is absolute");
  EXPECT_EQ(OpenInModel(""), "2: External data path validation failed: '' is empty");
  EXPECT_EQ(OpenInModel("."), "2: External data path validation failed: '.' names a folder");
  EXPECT_EQ(OpenInModel("C:data"),
            "2: External data path validation failed: 'C:data' begins with a drive letter");
  EXPECT_EQ(
      OpenInModel("..\\secret"),
      "2: External data path validation failed: '..\\secret' has a backslash; folders end in '/'");
  EXPECT_EQ(OpenInModel(std::string_view("data\0x", 6)),
            Format("2: External data path validation failed: '{}' has a NUL byte",
                   std::string_view("data\0x", 6)));
}

TEST(PlainPathTest, LeavesOutWhatNamesNoPart) {
  const struct {
    const char *path, *plain;
  } kCases[] = {
      {"", ""},
      {".", ""},
      {"a", "a"},
      {"./a//b/", "a/b"},
      {"a/../b", "b"},
      {"a/b/..", "a"},
      {"a/b/../../c", "c"},
      {"..", ".."},
      {"a/../..", ".."},
      {"../a/..", ".."},
      {"../../a", "../../a"},
      {"../a/../../b", "../../b"},
      {"/a", "/a"},
      {"//a/./b", "/a/b"},
      {"/a/..", "/"},
      {"/a/../b", "/b"},
  };
  for (const auto& [path, plain] : kCases) EXPECT_EQ(PlainPath(path), plain) << path;
}

TEST_F(ConfinedPathTest, LinksMayNotLeave) {
  root_.Link("model/link", "../secret");
  root_.Link("model/absolute", root_ / "secret");
  root_.Link("model/chain", "link");
  root_.Link("model/parent", "../other");
  root_.Link("model/neighbour", "../model2/data");
  root_.Link("model/up", "..");
  for (const char* name : {"link", "absolute", "chain", "parent/secret", "neighbour", "up/secret",
                           "up/model2/data", "parent/../secret"}) {
    EXPECT_EQ(OpenInModel(name), Format("2: External data path validation failed: '{}' escapes "
                                        "model directory through a symbolic link",
                                        name));
  }
}

TEST_F(ConfinedPathTest, LinksMayStay) {
  root_.Link("model/link", "sub/data");
  root_.Link("model/folder", "sub");
  root_.Link("model/round", "../model/data");
  EXPECT_EQ(OpenInModel("link"), "text: sub data");
  EXPECT_EQ(OpenInModel("folder/data"), "text: sub data");
  EXPECT_EQ(OpenInModel("round"), "text: data");
  root_.Link("alias", "model");
  EXPECT_EQ(Open({root_ / "alias"}, "data"), "text: data") << "the folder itself may be a link";
}

TEST_F(ConfinedPathTest, OnlyRegularFilesOpen) {
  ASSERT_EQ(mkfifo((root_ / "model/pipe").c_str(), 0600), 0);
  EXPECT_EQ(OpenInModel("pipe"), Format("2: '{}': expected a regular file, got a pipe",
                                        std::filesystem::canonical(root_ / "model/pipe").string()));
  EXPECT_EQ(OpenInModel("sub"), Format("2: '{}': expected a regular file, got a folder",
                                       std::filesystem::canonical(root_ / "model/sub").string()));
}

TEST_F(ConfinedPathTest, MissingFilesNameEveryFolder) {
  root_.Link("model/dangling", "nothing");
  for (const char* name : {"none", "none/data", "data/none", "dangling"}) {
    EXPECT_EQ(
        Open({root_ / "model", root_ / "model2"}, name),
        Format("3: external data '{}' is not in {}, {}", name, root_ / "model", root_ / "model2"));
  }
  EXPECT_EQ(Open({}, "data"), "3: external data 'data' is not in ");
  EXPECT_EQ(Open({root_ / "nowhere"}, "data").substr(0, 2), "3:");
}

TEST_F(ConfinedPathTest, FoldersAreTriedInOrder) {
  root_.Write("model2/more", "more");
  EXPECT_EQ(Open({root_ / "model", root_ / "model2"}, "data"), "text: data");
  EXPECT_EQ(Open({root_ / "model2", root_ / "model"}, "data"), "text: neighbour");
  EXPECT_EQ(Open({root_ / "model", root_ / "model2"}, "more"), "text: more");
}

TEST_F(ConfinedPathTest, HuggingFaceCacheLoads) {
  root_.Write("hub/blobs/aaaa", "model");
  root_.Write("hub/blobs/bbbb", "weights");
  root_.Link("hub/snapshots/1234/onnx/model.onnx", "../../../blobs/aaaa");
  root_.Link("hub/snapshots/1234/onnx/model.onnx_data", "../../../blobs/bbbb");
  root_.Link("hub/snapshots/1234/onnx/evil", "../../../../secret");
  const std::vector<std::string> folders =
      ExternalDataFolders(root_ / "hub/snapshots/1234/onnx/model.onnx");
  EXPECT_EQ(folders.size(), 2u);
  EXPECT_EQ(Open(folders, "model.onnx_data"), "text: weights");
  EXPECT_EQ(Open(folders, "bbbb"), "text: weights");
  EXPECT_NE(Open(folders, "evil").find("through a symbolic link"), std::string::npos);
}

TEST_F(ConfinedPathTest, AModelThatIsNoLinkHasOneFolder) {
  EXPECT_EQ(ExternalDataFolders(root_ / "model/data"), std::vector{root_ / "model"});
  EXPECT_EQ(ExternalDataFolders("model.onnx"), std::vector<std::string>{"."});
  EXPECT_EQ(ExternalDataFolders("/model.onnx"), std::vector<std::string>{"/"});
  root_.Link("alias", "model");
  EXPECT_EQ(ExternalDataFolders(root_ / "alias/data"), std::vector{root_ / "alias"});
}

TEST_F(ConfinedPathTest, OpeningBeneathFollowsNoLinkByEitherMethod) {
  root_.Link("model/link", "data");
  root_.Link("model/folder", "sub");
  const FileDescriptor folder(open((root_ / "model").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(folder.valid());
  for (auto* method : {&OpenBeneath, &OpenBeneathStepwise}) {
    EXPECT_TRUE(method(folder, "data").has_value());
    EXPECT_TRUE(method(folder, "sub/data").has_value());
    for (const char* path : {"link", "folder/data", "../secret", "sub/../../secret", "none",
                             "none/data", "data/none"}) {
      EXPECT_FALSE(method(folder, path).has_value()) << path;
    }
    EXPECT_EQ(method(folder, "none").error().code(), StatusCode::kNoSuchFile);
  }
}

}  // namespace
}  // namespace tenon
