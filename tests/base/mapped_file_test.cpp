#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/temporary_folder.h"

namespace tenon {
namespace {

std::string Text(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(MappedFileTest, ShowsTheWholeFile) {
  const TemporaryFolder folder;
  for (size_t size : {0, 1, 4095, 4096, 4097, 100000}) {
    const std::string text(size, 'x');
    const std::string path = folder.Write("file", text);
    const auto file = MappedFile::Open(path);
    ASSERT_TRUE(file.has_value()) << file.error().message();
    EXPECT_EQ(Text(file->bytes()), text);
    EXPECT_EQ(file->path(), path);
    const auto bytes = ReadFile(path);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().message();
    EXPECT_EQ(Text(*bytes), text);
  }
}

TEST(MappedFileTest, SharedFilesAreMappedOnce) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("file", "text");
  const auto open = [](const std::string& name) {
    return MappedFile::Share(MappedFile::Open(name).value());
  };
  const auto first = open(path);
  EXPECT_EQ(open(path), first);
  EXPECT_NE(open(folder.Write("other", "text")), first);
  EXPECT_TRUE(MappedFile::IsShared(first));
  EXPECT_FALSE(MappedFile::IsShared(std::make_shared<int>(1)));
  EXPECT_FALSE(MappedFile::IsShared(nullptr));
  const std::span<const std::byte> text = Bytes("TEXT");
  ASSERT_TRUE(WriteFileAtomically(path, {&text, 1}).ok());
  const auto second = open(path);
  EXPECT_EQ(Text(second->bytes()), "TEXT");
  EXPECT_EQ(Text(first->bytes()), "text");
}

TEST(MappedFileTest, CopiesOutlastTheContent) {
  const TemporaryFolder folder;
  for (size_t size : {0, 1, 4096, 100000}) {
    const std::string text(size, 'x');
    const std::string path = folder.Write("file", text);
    const auto open = [&] {
      return MappedFile::Share(MappedFile::Open(path, FileAccess::kCopy).value());
    };
    const auto first = open();
    EXPECT_NE(open(), first);
    EXPECT_FALSE(MappedFile::IsShared(first)) << "their pages cannot be read again";
    MappedFile::ReleasePages(first, first->bytes());
    std::filesystem::resize_file(path, 0);
    EXPECT_EQ(Text(first->bytes()), text);
    EXPECT_EQ(first->path(), path);
  }
  EXPECT_EQ(MappedFile::Open(folder / "none", FileAccess::kCopy).error().code(),
            StatusCode::kNoSuchFile);
}

// A program that overwrites a file, as cp -p does, may give it its former time.
TEST(MappedFileTest, OverwrittenFilesAreOthers) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("file", "text");
  const auto time = std::filesystem::last_write_time(path);
  const auto first = MappedFile::Share(MappedFile::Open(path).value());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a tick of the system's clock
  folder.Write("file", "TEXT");
  std::filesystem::last_write_time(path, time);
  const auto second = MappedFile::Share(MappedFile::Open(path).value());
  EXPECT_NE(first, second);
}

TEST(MappedFileTest, MovesWithoutMoving) {
  const TemporaryFolder folder;
  MappedFile first = MappedFile::Open(folder.Write("1", "first")).value();
  const std::byte* const address = first.bytes().data();
  MappedFile second = std::move(first);
  EXPECT_EQ(second.bytes().data(), address);
  EXPECT_EQ(Text(second.bytes()), "first");
  second = MappedFile::Open(folder.Write("2", "second")).value();
  EXPECT_EQ(Text(second.bytes()), "second");
}

TEST(MappedFileTest, OutlivesItsName) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("file", "text");
  const MappedFile file = MappedFile::Open(path).value();
  std::filesystem::remove(path);
  EXPECT_EQ(Text(file.bytes()), "text");
}

TEST(MappedFileTest, ReleasedPagesAreReadAgain) {
  const TemporaryFolder folder;
  const std::string text(100000, 'x');
  const auto file = MappedFile::Share(MappedFile::Open(folder.Write("file", text)).value());
  for (const size_t begin : {0, 1, 4096}) {
    for (const size_t size : {0, 1, 4096, 90000}) {
      MappedFile::ReleasePages(file, file->bytes().subspan(begin, size));
      EXPECT_EQ(Text(file->bytes()), text);
    }
  }
}

TEST(MappedFileTest, PagesOfOtherOwnersStay) {
  const auto text = std::make_shared<std::string>(100000, 'x');
  MappedFile::ReleasePages(text, Bytes(*text));
  MappedFile::ReleasePages(nullptr, Bytes(*text));
  EXPECT_EQ(*text, std::string(100000, 'x'));
}

TEST(MappedFileTest, OnlyRegularFilesAreOpened) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  folder.Write("file", "");
  folder.Link("loop", "loop");
  struct Case {
    std::string path;
    StatusCode code;
    std::string message;
  };
  const Case cases[] = {
      {folder / "none", StatusCode::kNoSuchFile,
       Format("cannot open '{}': No such file or directory", folder / "none")},
      {folder / "file/none", StatusCode::kNoSuchFile,
       Format("cannot open '{}': Not a directory", folder / "file/none")},
      {"", StatusCode::kNoSuchFile, "cannot open '': No such file or directory"},
      {folder.path(), StatusCode::kInvalidArgument,
       Format("'{}': expected a regular file, got a folder", folder.path())},
      {folder / "pipe", StatusCode::kInvalidArgument,
       Format("'{}': expected a regular file, got a pipe", folder / "pipe")},
      {"/dev/zero", StatusCode::kInvalidArgument,
       "'/dev/zero': expected a regular file, got a device"},
      {folder / "loop", StatusCode::kFail,
       Format("cannot open '{}': Too many levels of symbolic links", folder / "loop")},
      {std::string("a\0b", 3), StatusCode::kInvalidArgument,
       "a file name of 3 bytes holds a NUL byte"},
  };
  for (const Case& c : cases) {
    const auto mapped = MappedFile::Open(c.path);
    const auto read = ReadFile(c.path);
    ASSERT_FALSE(mapped.has_value()) << c.path;
    ASSERT_FALSE(read.has_value()) << c.path;
    EXPECT_EQ(mapped.error().code(), c.code) << c.path;
    EXPECT_EQ(mapped.error().message(), c.message);
    EXPECT_EQ(read.error().message(), c.message);
  }
}

size_t CountFiles(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

TEST(WriteFileTest, ReplacesTheFileByAllParts) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("file", "something longer than what follows");
  const std::span<const std::byte> parts[] = {Bytes("one "), Bytes(""), Bytes("two")};
  const Status status = WriteFileAtomically(path, parts);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(Text(ReadFile(path).value()), "one two");
  EXPECT_TRUE(WriteFileAtomically(path, {}).ok());
  EXPECT_EQ(Text(ReadFile(path).value()), "");
  EXPECT_EQ(CountFiles(folder.path()), 1u) << "nothing temporary stays";
}

TEST(WriteFileTest, ReadersKeepTheOldContent) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("file", "old");
  const MappedFile old = MappedFile::Open(path).value();
  const std::span<const std::byte> parts[] = {Bytes("new")};
  ASSERT_TRUE(WriteFileAtomically(path, parts).ok());
  EXPECT_EQ(Text(old.bytes()), "old");
  EXPECT_EQ(Text(ReadFile(path).value()), "new");
}

TEST(WriteFileTest, FailuresLeaveNoFiles) {
  const TemporaryFolder folder;
  folder.Write("folder/file", "");
  const std::span<const std::byte> parts[] = {Bytes("text")};
  EXPECT_EQ(WriteFileAtomically(folder / "none/file", parts).code(), StatusCode::kNoSuchFile);
  const Status status = WriteFileAtomically(folder / "folder", parts);
  EXPECT_EQ(status.message(), Format("cannot replace '{}': Is a directory", folder / "folder"));
  EXPECT_EQ(WriteFileAtomically(std::string("a\0b", 3), parts).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(CountFiles(folder.path()), 1u);
}

}  // namespace
}  // namespace tenon
