#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/huge_pages.h"
#include "base/mutex.h"

namespace tenon {
namespace {

std::string_view KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "of an unknown kind";
}

// The status of an open file, if it is a regular one that fits into memory.
Result<struct stat> ExamineRegularFile(const FileDescriptor& file, std::string_view path) {
  struct stat info;
  if (fstat(file.number(), &info) != 0) return Failure(FileError("examine", path, errno));
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument("'{}': expected a regular file, got {}", path, KindOf(info.st_mode));
  }
  if (info.st_size < 0 || static_cast<uintmax_t>(info.st_size) > SIZE_MAX) {
    return Fail("'{}': {} bytes are more than this process can address", path, info.st_size);
  }
  return info;
}

Result<FileDescriptor> OpenForReading(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("a file name of {} bytes holds a NUL byte", path.size());
  }
  // O_NONBLOCK: opening a pipe without a writer would otherwise block forever.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return Failure(FileError("open", path, errno));
  return file;
}

// Fills `bytes`, and returns how many there were: fewer if another process shortens the file.
Result<size_t> ReadInto(const FileDescriptor& file, std::span<std::byte> bytes,
                        std::string_view path) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = read(file.number(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failure(FileError("read", path, errno));
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  return filled;
}

Status WriteAll(const FileDescriptor& file, std::span<const std::byte> bytes,
                std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError("write", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return OkStatus();
}

// Distinguishes a shared file from every other owner of memory.
struct SharedFileDeleter {
  void operator()(MappedFile* file) const { delete file; }
};

struct SharedFiles {
  Mutex mutex;
  std::vector<std::weak_ptr<MappedFile>> known;
};

// Never destroyed: sessions may outlive static objects.
SharedFiles& TheSharedFiles() {
  static auto* const files = new SharedFiles;
  return *files;
}

// A new file beside `path`; its name is stored in `name`.
FileDescriptor CreateBeside(const std::string& path, std::string& name) {
  static std::atomic<uint32_t> counter = 0;
  constexpr int kAttempts = 100;
  for (int i = 0; i < kAttempts; ++i) {
    name = Format("{}.{}-{}.tmp", path, getpid(), counter.fetch_add(1));
    FileDescriptor file(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.valid() || errno != EEXIST) return file;
  }
  return FileDescriptor();
}

Status WriteAndSync(const FileDescriptor& file, std::span<const std::span<const std::byte>> parts,
                    std::string_view path) {
  for (const std::span<const std::byte> part : parts) {
    TENON_RETURN_IF_ERROR(WriteAll(file, part, path));
  }
  if (fsync(file.number()) != 0) return FileError("write", path, errno);
  return OkStatus();
}

}  // namespace

Status FileError(std::string_view verb, std::string_view path, int error_number) {
  const std::string reason = std::generic_category().message(error_number);
  const bool missing = error_number == ENOENT || error_number == ENOTDIR;
  return Status(missing ? StatusCode::kNoSuchFile : StatusCode::kFail,
                Format("cannot {} '{}': {}", verb, path, reason));
}

Result<MappedFile> MappedFile::Open(const std::string& path, FileAccess access) {
  TENON_ASSIGN_OR_RETURN(const FileDescriptor file, OpenForReading(path));
  return FromDescriptor(file, path, access);
}

Result<MappedFile> MappedFile::FromDescriptor(const FileDescriptor& file, std::string path,
                                              FileAccess access) {
  TENON_ASSIGN_OR_RETURN(const struct stat info, ExamineRegularFile(file, path));
  const auto size_bytes = static_cast<size_t>(info.st_size);
  const Identity identity = {static_cast<int64_t>(info.st_dev), static_cast<int64_t>(info.st_ino),
                             info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
  if (size_bytes == 0)
    return MappedFile({}, std::move(path), identity, access);  // mmap needs at least one byte
  const bool is_copy = access == FileAccess::kCopy;
  void* const address =
      is_copy
          ? mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
          : mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (address == MAP_FAILED) return Failure(FileError("map", path, errno));
  const std::span bytes(static_cast<std::byte*>(address), size_bytes);
  MappedFile mapped(bytes, std::move(path), identity, access);
  if (is_copy) {
    TENON_ASSIGN_OR_RETURN(const size_t filled, ReadInto(file, bytes, mapped.path_));
    if (filled < size_bytes) {
      return Fail("'{}': read {} of {} bytes; it has been shortened meanwhile", mapped.path_,
                  filled, size_bytes);
    }
  }
  return mapped;
}

std::shared_ptr<MappedFile> MappedFile::Share(MappedFile file) {
  if (file.access_ == FileAccess::kCopy) return std::make_shared<MappedFile>(std::move(file));
  SharedFiles& files = TheSharedFiles();
  const MutexLock lock(files.mutex);
  std::erase_if(files.known, [](const auto& known) { return known.expired(); });
  for (const std::weak_ptr<MappedFile>& known : files.known) {
    std::shared_ptr<MappedFile> other = known.lock();
    const bool is_same =
        other && other->identity_ == file.identity_ && other->bytes_.size() == file.bytes_.size();
    if (is_same) return other;
  }
  std::shared_ptr<MappedFile> shared(new MappedFile(std::move(file)), SharedFileDeleter());
  files.known.push_back(shared);
  return shared;
}

bool MappedFile::IsShared(const std::shared_ptr<void>& owner) {
  return std::get_deleter<SharedFileDeleter>(owner) != nullptr;
}

void MappedFile::ReleasePages(const std::shared_ptr<void>& owner,
                              std::span<const std::byte> bytes) {
  // Only pages of a file have their content elsewhere.
  if (IsShared(owner)) ReleaseWholePages(const_cast<std::byte*>(bytes.data()), bytes.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      path_(std::move(other.path_)),
      identity_(other.identity_),
      access_(other.access_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    Unmap();
    bytes_ = std::exchange(other.bytes_, {});
    path_ = std::move(other.path_);
    identity_ = other.identity_;
    access_ = other.access_;
  }
  return *this;
}

MappedFile::~MappedFile() { Unmap(); }

void MappedFile::Unmap() {
  // munmap's parameter is not const, though it changes no byte.
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<std::vector<std::byte>> ReadFile(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(const FileDescriptor file, OpenForReading(path));
  TENON_ASSIGN_OR_RETURN(const struct stat info, ExamineRegularFile(file, path));
  const auto size_bytes = static_cast<size_t>(info.st_size);
  std::vector<std::byte> bytes(size_bytes);
  TENON_ASSIGN_OR_RETURN(const size_t filled, ReadInto(file, bytes, path));
  bytes.resize(filled);
  return bytes;
}

Status WriteFileAtomically(const std::string& path,
                           std::span<const std::span<const std::byte>> parts) {
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("a file name of {} bytes holds a NUL byte", path.size());
  }
  std::string temporary;
  const FileDescriptor file = CreateBeside(path, temporary);
  if (!file.valid()) return FileError("create", temporary, errno);
  Status status = WriteAndSync(file, parts, temporary);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = FileError("replace", path, errno);
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace tenon
