// Files as a whole: mapped, read and written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"

namespace tenon {

enum class FileAccess : uint8_t {
  kMap,
  kCopy,  // into memory: what happens to the file later does not matter
};

// A regular file, mapped whole and read-only, or copied. Pages are read from disk when they are
// first touched, and are shared by all mappings of one file. Immutable; distinct threads may read.
// If a process truncates the file while it is mapped, reads past the new end fail with SIGBUS.
class MappedFile {
 public:
  // errors  kNoSuchFile       nothing has that name
  //         kInvalidArgument  it is no regular file (a folder, pipe, device, ...), or the name
  //         holds
  //                           a NUL
  //         kFail             the system refused; the text has its reason
  static Result<MappedFile> Open(const std::string& path, FileAccess access = FileAccess::kMap);

  // The same for an open file. `path` is for messages only. Errors as above, except kNoSuchFile.
  static Result<MappedFile> FromDescriptor(const FileDescriptor& file, std::string path,
                                           FileAccess access = FileAccess::kMap);

  // A file for tensors to own together: an already mapped file, if a tensor shares the same content
  // of the same file. Its path may then be another one. Copies are not shared.
  static std::shared_ptr<MappedFile> Share(MappedFile file);
  // Whether `owner` is a mapped file that Share returned.
  static bool IsShared(const std::shared_ptr<void>& owner);

  // Releases the memory of the pages that lie wholly in `bytes`, if IsShared(owner); otherwise does
  // nothing. The next access to such a page reads it from the file again.
  static void ReleasePages(const std::shared_ptr<void>& owner, std::span<const std::byte> bytes);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // The content; starts at a page boundary. Valid as long as this object or the one it is moved to.
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  // Identifies one content of one file: device, inode, seconds and nanoseconds of its last change.
  // Unlike the time of the last modification, no program can set that back.
  using Identity = std::array<int64_t, 4>;

  MappedFile(std::span<const std::byte> bytes, std::string path, const Identity& identity,
             FileAccess access)
      : bytes_(bytes), path_(std::move(path)), identity_(identity), access_(access) {}
  void Unmap();

  std::span<const std::byte> bytes_;  // owned, unless empty
  std::string path_;
  Identity identity_;
  FileAccess access_;
};

// The content of a regular file. Errors as of MappedFile::Open.
Result<std::vector<std::byte>> ReadFile(const std::string& path);

// Replaces the file `path` by the concatenation of `parts`. The new content is written to the same
// folder and renamed in one step: other processes, and the next start after a crash, see the old
// file or the new one, never a mixture. A symbolic link is replaced, not followed. On failure
// (kFail with the system's reason) the old file does not change.
Status WriteFileAtomically(const std::string& path,
                           std::span<const std::span<const std::byte>> parts);

// "cannot VERB 'PATH': REASON" for a value of errno: kNoSuchFile or kFail.
Status FileError(std::string_view verb, std::string_view path, int error_number);

}  // namespace tenon
