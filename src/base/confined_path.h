// Opens files that a model names, which may be hostile, only inside the model's folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/mapped_file.h"
#include "base/status.h"

namespace tenon {

// The folders in which the external data of the model at `model_path` may be: the model's own and,
// if the model is a symbolic link, the folder of the file to which it finally leads. The Hugging
// Face cache stores models in this way: snapshots/ID/model.onnx -> ../../blobs/HASH.
std::vector<std::string> ExternalDataFolders(const std::string& model_path);

// Maps, or copies, the external-data file that a model calls `name` (ONNX:
// TensorProto.external_data, key "location"): a path relative to its folder, separated by '/'. The
// name is tried in each folder in turn. The file that it leads to, after all symbolic links, must
// lie in or below one of the folders. That holds also against links that change while it is opened.
// errors  kInvalidArgument  the name is empty, absolute, has a NUL, a backslash or a drive letter,
//                           leaves its folder by ".." or through a link, or leads to anything but a
//                           regular file
//         kNoSuchFile       no folder has it
//         kFail             the system refused
Result<MappedFile> MapConfined(const std::vector<std::string>& allowed_folders,
                               std::string_view name, FileAccess access = FileAccess::kMap);

// The path without empty parts, "." and, after another part, "..": "./a//b/../c" is "a/c". Asks no
// file system, so a part may be a link.
std::string PlainPath(std::string_view path);

// The absolute path without links, or nullopt with errno set.
std::optional<std::string> RealPath(const std::string& path);

// Opens `path`, relative and without links, below an open folder, following no symbolic link at
// any component. OpenBeneath asks the kernel to do so in one call where it can;
// OpenBeneathStepwise opens one component after the other.
Result<FileDescriptor> OpenBeneath(const FileDescriptor& folder, const std::string& path);
Result<FileDescriptor> OpenBeneathStepwise(const FileDescriptor& folder, const std::string& path);

}  // namespace tenon
