#include "capi/session/model_package.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>

#include "base/confined_path.h"
#include "base/mapped_file.h"
#include "base/text.h"

namespace tenon::capi {
namespace {

using Kind = JsonValue::Kind;

constexpr std::string_view kAssetScheme = "sha256:";
constexpr size_t kDigestLength = 64;

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string Joined(const std::string& folder, const std::string& path) {
  return path.starts_with('/') ? path : folder + "/" + path;
}

// The path without links, "." and ".."; of one that does not exist, its longest part that does.
std::string FinalPath(const std::string& path) {
  if (std::optional<std::string> real = RealPath(path)) return std::move(*real);
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return path;
  const std::string name = path.substr(slash + 1);
  const std::string folder = FinalPath(path.substr(0, slash));
  return name.empty() || name == "." ? folder : folder + "/" + name;
}

bool IsIn(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

bool HasParentPart(std::string_view path) {
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (part == "..") return true;
    path.remove_prefix(std::min(part.size() + 1, path.size()));
  }
  return false;
}

// Of "sha256:<hex>": the length; 0 for anything else.
size_t AssetLength(std::string_view text) {
  constexpr size_t kLength = kAssetScheme.size() + kDigestLength;
  if (!text.starts_with(kAssetScheme) || text.size() < kLength) return 0;
  const std::string_view digest = text.substr(kAssetScheme.size(), kDigestLength);
  const bool is_digest = std::all_of(digest.begin(), digest.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  return is_digest && (text.size() == kLength || text[kLength] == '/') ? kLength : 0;
}

Result<JsonValue> ReadJson(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFile(path));
  std::optional<JsonValue> value =
      ParseJson({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!value) return InvalidArgument("'{}' is no JSON document", path);
  return std::move(*value);
}

// The member as a text; nothing without it.
Result<std::optional<std::string>> TextOf(const JsonValue& object, std::string_view name) {
  const JsonValue* const member = object.Find(name);
  if (member == nullptr) return std::optional<std::string>();
  if (member->kind != Kind::kString) return InvalidArgument("'{}' must be a text", name);
  return std::optional(member->text);
}

// The member as an object of texts; empty without it.
Result<StringMap> TextsOf(const JsonValue& object, std::string_view name) {
  StringMap texts;
  const JsonValue* const member = object.Find(name);
  if (member == nullptr) return texts;
  if (member->kind != Kind::kObject) return InvalidArgument("'{}' must be an object", name);
  for (const auto& [key, value] : member->members) {
    if (value.kind != Kind::kString) {
      return InvalidArgument("'{}': the value of '{}' must be a text", name, key);
    }
    texts.insert_or_assign(key, value.text);
  }
  return texts;
}

Status CheckMembers(const JsonValue& object, std::initializer_list<std::string_view> known) {
  if (object.kind != Kind::kObject) return InvalidArgument("expected an object");
  for (const auto& [name, value] : object.members) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return InvalidArgument("there is no member '{}'{}", name,
                           DidYouMean(name, {known.begin(), known.end()}));
  }
  return OkStatus();
}

}  // namespace

bool IsPackagePath(std::string_view option) {
  return option == "session.model_external_initializers_file_folder_path" ||
         option == "ep.context_file_path" || option == "ep.context_source_model_path";
}

Result<ModelPackage> ModelPackage::Read(const std::string& folder) {
  if (!IsFolder(folder)) return NoSuchFile("'{}' is no folder of a model package", folder);
  ModelPackage package;
  package.root_ = FinalPath(folder);
  TENON_ASSIGN_OR_RETURN(const JsonValue manifest, ReadJson(package.root_ + "/manifest.json"));
  const Status status = package.ReadManifest(manifest);
  if (!status.ok()) {
    return Failure(
        Status(status.code(), Format("model package '{}': {}", folder, status.message())));
  }
  return package;
}

Status ModelPackage::ReadManifest(const JsonValue& manifest) {
  if (manifest.kind != Kind::kObject) return InvalidArgument("the manifest must be an object");
  TENON_RETURN_IF_ERROR(ReadVersion(manifest));
  TENON_RETURN_IF_ERROR(
      CheckMembers(manifest, {"schema_version", "package_name", "package_version", "description",
                              "layout", "components", "shared_assets", "additional_metadata"}));
  TENON_ASSIGN_OR_RETURN(const std::optional<std::string> layout, TextOf(manifest, "layout"));
  is_installed_ = layout == "installed";
  if (layout && !is_installed_ && *layout != "portable") {
    return InvalidArgument("layout: expected 'portable' or 'installed', got '{}'", *layout);
  }
  TENON_RETURN_IF_ERROR(ReadAssets(manifest));
  const JsonValue* const components = manifest.Find("components");
  if (components == nullptr || components->kind != Kind::kObject) {
    return InvalidArgument("'components' must be an object");
  }
  for (const auto& [name, entry] : components->members) {
    Result<PackageComponent> component = ReadComponent(name, entry);
    if (!component) {
      return std::move(component.error()).WithContext(Format("component '{}'", name));
    }
    components_.push_back(std::move(*component));
  }
  return OkStatus();
}

// "<major>.<minor>", or the major number alone. A minor one only adds members.
Status ModelPackage::ReadVersion(const JsonValue& manifest) {
  constexpr int64_t kKnown = 1;
  const JsonValue* const version = manifest.Find("schema_version");
  if (version == nullptr) return InvalidArgument("'schema_version' is missing");
  if (version->kind == Kind::kNumber) {
    version_ = static_cast<int64_t>(version->number);
  } else {
    const char* const end = version->text.data() + version->text.size();
    const auto [stop, error] = std::from_chars(version->text.data(), end, version_);
    const bool is_number = error == std::errc() && (stop == end || *stop == '.');
    if (version->kind != Kind::kString || !is_number) {
      return InvalidArgument("schema_version: expected \"<major>.<minor>\", got '{}'",
                             version->text);
    }
  }
  if (version_ == kKnown) return OkStatus();
  return InvalidArgument("schema_version: {} is not known; the newest known one is {}", version_,
                         kKnown);
}

Status ModelPackage::ReadAssets(const JsonValue& manifest) {
  TENON_ASSIGN_OR_RETURN(const StringMap assets, TextsOf(manifest, "shared_assets"));
  for (const auto& [reference, path] : assets) {
    if (AssetLength(reference) != reference.size()) {
      return InvalidArgument("shared_assets: '{}' is not sha256: and 64 digits", reference);
    }
    TENON_ASSIGN_OR_RETURN(assets_[reference],
                           ResolvePath(root_, path, root_, is_installed_, false));
  }
  return OkStatus();
}

// An object, or the path of a file with one.
Result<PackageComponent> ModelPackage::ReadComponent(const std::string& name,
                                                     const JsonValue& entry) const {
  std::string base = root_;
  JsonValue own;
  const JsonValue* body = &entry;
  if (entry.kind == Kind::kString) {
    TENON_ASSIGN_OR_RETURN(std::string path,
                           ResolvePath(root_, entry.text, root_, is_installed_, true));
    if (IsFolder(path)) path += "/component.json";
    TENON_ASSIGN_OR_RETURN(own, ReadJson(path));
    base = path.substr(0, path.rfind('/'));
    body = &own;
  }
  TENON_RETURN_IF_ERROR(CheckMembers(*body, {"component_name", "variants", "additional_metadata"}));
  PackageComponent component;
  component.name = name;
  const JsonValue* const variants = body->Find("variants");
  if (variants == nullptr || variants->kind != Kind::kObject) {
    return InvalidArgument("'variants' must be an object");
  }
  for (const auto& [variant, value] : variants->members) {
    Result<PackageVariant> read = ReadVariant(variant, value, base);
    if (!read) return Failure(std::move(read.error()).WithContext(Format("variant '{}'", variant)));
    component.variants.push_back(std::move(*read));
  }
  return component;
}

Result<PackageVariant> ModelPackage::ReadVariant(const std::string& name, const JsonValue& entry,
                                                 const std::string& base) const {
  TENON_RETURN_IF_ERROR(
      CheckMembers(entry, {"variant_directory", "ep", "device", "compatibility_string",
                           "executor_info", "additional_metadata"}));
  PackageVariant variant;
  variant.name = name;
  TENON_ASSIGN_OR_RETURN(const auto folder, TextOf(entry, "variant_directory"));
  TENON_ASSIGN_OR_RETURN(variant.folder, ResolvePath(base, folder.value_or(name), root_,
                                                     is_installed_, folder.has_value()));
  if (!Exists(variant.folder)) variant.folder.clear();
  TENON_ASSIGN_OR_RETURN(variant.provider, TextOf(entry, "ep"));
  TENON_ASSIGN_OR_RETURN(const auto device, TextOf(entry, "device"));
  TENON_ASSIGN_OR_RETURN(const auto compatibility, TextOf(entry, "compatibility_string"));
  variant.device = device.value_or("");
  variant.compatibility = compatibility.value_or("");
  TENON_RETURN_IF_ERROR(ReadExecutor(entry, variant));
  return variant;
}

// The member "ort" of executor_info: an object, or the path of a file with one.
Status ModelPackage::ReadExecutor(const JsonValue& entry, PackageVariant& variant) const {
  const JsonValue* const executors = entry.Find("executor_info");
  const JsonValue* info = executors == nullptr ? nullptr : executors->Find("ort");
  if (info == nullptr) return OkStatus();
  JsonValue own;
  if (info->kind == Kind::kString) {
    TENON_ASSIGN_OR_RETURN(const std::string path, Resolve(variant.folder, info->text, true));
    TENON_ASSIGN_OR_RETURN(own, ReadJson(path));
    info = &own;
  }
  TENON_ASSIGN_OR_RETURN(const auto model, TextOf(*info, "model_file"));
  if (model) {
    TENON_ASSIGN_OR_RETURN(variant.model_file, Resolve(variant.folder, *model, false));
  }
  TENON_ASSIGN_OR_RETURN(variant.session_options, TextsOf(*info, "session_options"));
  TENON_ASSIGN_OR_RETURN(variant.provider_options, TextsOf(*info, "provider_options"));
  for (auto& [option, value] : variant.session_options) {
    if (!IsPackagePath(option) || value.empty()) continue;
    TENON_ASSIGN_OR_RETURN(value, Resolve(variant.folder, value, false));
  }
  return OkStatus();
}

Result<const PackageComponent*> ModelPackage::Find(std::string_view component) const {
  std::vector<std::string> names;
  for (const PackageComponent& known : components_) {
    if (known.name == component) return &known;
    names.push_back(known.name);
  }
  return InvalidArgument("the model package has no component '{}'; it has {}", component,
                         names.empty() ? "none" : JoinNames(names));
}

Result<std::string> ModelPackage::Resolve(const std::string& base, const std::string& reference,
                                          bool must_exist) const {
  const size_t length = AssetLength(reference);
  if (length == 0) {
    return ResolvePath(base.empty() ? root_ : base, reference, root_, is_installed_, must_exist);
  }
  const std::string asset = reference.substr(0, length);
  const auto given = assets_.find(asset);
  const std::string folder = given != assets_.end() ? given->second
                                                    : Format("{}/shared_assets/sha256-{}", root_,
                                                             asset.substr(kAssetScheme.size()));
  if (given == assets_.end() && !IsFolder(folder)) {
    return InvalidArgument("the model package has no shared asset '{}'", asset);
  }
  if (length == reference.size()) return folder;
  return ResolvePath(folder, reference.substr(length + 1), folder, false, must_exist);
}

Result<std::string> ModelPackage::ResolvePath(const std::string& base, const std::string& path,
                                              const std::string& root, bool may_leave,
                                              bool must_exist) const {
  if (path.empty()) return InvalidArgument("a path is empty");
  if (!may_leave && (path.starts_with('/') || HasParentPart(path))) {
    return InvalidArgument("'{}': expected a relative path without '..'", path);
  }
  const std::string joined = Joined(base, path);
  if (must_exist && !Exists(joined)) return NoSuchFile("'{}' does not exist", joined);
  std::string real = FinalPath(joined);
  if (!may_leave && !IsIn(real, FinalPath(root))) {
    return InvalidArgument("'{}' leaves the folder '{}'", path, root);
  }
  return real;
}

}  // namespace tenon::capi
