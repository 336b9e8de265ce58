#include "base/confined_path.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#if defined(__linux__)
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif
#endif

namespace tenon {
namespace {

// O_NONBLOCK: opening a pipe without a writer would otherwise block forever.
constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
constexpr int kFolderFlags = O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW;

// "escapes model directory": the words of ONNX Runtime, which programs look for.
std::string Escapes(const std::vector<std::string>& allowed_folders) {
  const bool is_working = allowed_folders == std::vector<std::string>{"."};
  return Format("escapes {} directory", is_working ? "working" : "model");
}

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Why the name is never acceptable, whatever the file system holds, or "".
std::string Objection(const std::vector<std::string>& allowed_folders, std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.find('\0') != std::string_view::npos) return "has a NUL byte";
  if (name.find('\\') != std::string_view::npos) return "has a backslash; folders end in '/'";
  if (name.front() == '/') return "is absolute";
  if (name.size() >= 2 && IsLetter(name[0]) && name[1] == ':') return "begins with a drive letter";
  const std::string plain = PlainPath(name);
  if (plain.empty()) return "names a folder";
  return plain == ".." || plain.starts_with("../") ? Escapes(allowed_folders) : "";
}

}  // namespace

#if defined(__wasi__)
// There is no realpath, and the host lets no path leave the folders that it has opened.
std::optional<std::string> RealPath(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return path;
}
#else
std::optional<std::string> RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), &free);
  if (!real) return std::nullopt;
  return std::string(real.get());
}
#endif

namespace {

// The part of `path` after `folder`, both real paths, or nullopt if path is not below folder.
std::optional<std::string> PathBelow(const std::string& folder, const std::string& path) {
  const std::string prefix = folder == "/" ? folder : folder + "/";
  if (!path.starts_with(prefix) || path.size() == prefix.size()) return std::nullopt;
  return path.substr(prefix.size());
}

Error NotConfined(std::string_view name, std::string_view objection) {
  return InvalidArgument("External data path validation failed: '{}' {}", name, objection);
}

// Maps the file at a real path that must be below one of the folders, also real paths; else gives
// `not_below`. Opening follows no link, so it fails if a link has appeared since the path was
// resolved.
Result<MappedFile> MapBelowAny(const std::vector<std::string>& real_folders,
                               const std::string& real_path, const Status& not_below,
                               FileAccess access) {
  for (const std::string& folder : real_folders) {
    const std::optional<std::string> rest = PathBelow(folder, real_path);
    if (!rest) continue;
    const FileDescriptor root(open(folder.c_str(), kFolderFlags));
    if (!root.valid()) return Failure(FileError("open", folder, errno));
    TENON_ASSIGN_OR_RETURN(const FileDescriptor file, OpenBeneath(root, *rest));
    return MappedFile::FromDescriptor(file, real_path, access);
  }
  return Failure(not_below);
}

}  // namespace

std::string PlainPath(std::string_view path) {
  std::string plain = path.starts_with('/') ? "/" : "";
  const size_t root = plain.size();
  size_t depth = 0;  // how many parts ".." can take back
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (part == ".." && depth > 0) {
      const size_t slash = plain.rfind('/');
      plain.resize(slash == plain.npos ? root : std::max(slash, root));
      --depth;
      continue;
    }
    depth += part != "..";
    if (plain.size() > root) plain += '/';
    plain += part;
  }
  return plain;
}

std::vector<std::string> ExternalDataFolders(const std::string& model_path) {
  const auto folder_of = [](const std::string& path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return std::string(".");
    return path.substr(0, std::max<size_t>(slash, 1));
  };
  std::vector<std::string> folders = {folder_of(model_path)};
  const std::optional<std::string> own = RealPath(folders[0]);
  if (const std::optional<std::string> target = RealPath(model_path)) {
    if (own != folder_of(*target)) folders.push_back(folder_of(*target));
  }
  return folders;
}

Result<MappedFile> MapConfined(const std::vector<std::string>& allowed_folders,
                               std::string_view name, FileAccess access) {
  if (const std::string objection = Objection(allowed_folders, name); !objection.empty()) {
    return NotConfined(name, objection);
  }
  std::vector<std::string> real_folders;
  for (const std::string& folder : allowed_folders) {
    if (std::optional<std::string> real = RealPath(folder)) {
      real_folders.push_back(*std::move(real));
    }
  }
  for (const std::string& folder : real_folders) {
    const std::string path = Format("{}/{}", folder, name);
    if (const std::optional<std::string> real = RealPath(path)) {
      const std::string escapes = Escapes(allowed_folders) + " through a symbolic link";
      return MapBelowAny(real_folders, *real, NotConfined(name, escapes), access);
    }
    if (errno != ENOENT && errno != ENOTDIR) return Failure(FileError("open", path, errno));
  }
  return NoSuchFile("external data '{}' is not in {}", name, JoinNames(allowed_folders));
}

#if defined(SYS_openat2) && defined(RESOLVE_BENEATH)

Result<FileDescriptor> OpenBeneath(const FileDescriptor& folder, const std::string& path) {
  open_how how = {};
  how.flags = kFileFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  FileDescriptor file(
      static_cast<int>(syscall(SYS_openat2, folder.number(), path.c_str(), &how, sizeof(how))));
  if (file.valid()) return file;
  // Kernels before 5.6 lack the call, and some sandboxes forbid it.
  if (errno == ENOSYS || errno == EPERM || errno == EAGAIN) {
    return OpenBeneathStepwise(folder, path);
  }
  return Failure(FileError("open", path, errno));
}

#else

Result<FileDescriptor> OpenBeneath(const FileDescriptor& folder, const std::string& path) {
  return OpenBeneathStepwise(folder, path);
}

#endif

Result<FileDescriptor> OpenBeneathStepwise(const FileDescriptor& folder, const std::string& path) {
  FileDescriptor current;
  int parent = folder.number();
  for (size_t begin = 0;;) {
    const size_t slash = path.find('/', begin);
    const std::string part = path.substr(begin, slash - begin);
    if (part == "..") return InvalidArgument("cannot open '{}': it leaves its folder", path);
    const bool last = slash == std::string::npos;
    FileDescriptor next(openat(parent, part.c_str(), last ? kFileFlags : kFolderFlags));
    if (!next.valid()) return Failure(FileError("open", path, errno));
    if (last) return next;
    current = std::move(next);
    parent = current.number();
    begin = slash + 1;
  }
}

}  // namespace tenon
