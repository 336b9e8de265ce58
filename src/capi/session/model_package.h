// Model packages: folders with a manifest.json that offer one model in several variants.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "base/status.h"
#include "base/string_map.h"

namespace tenon::capi {

struct PackageVariant {
  std::string name;
  std::string folder;  // "": there is none
  std::optional<std::string> provider;
  std::string device;         // "cpu", "gpu", "npu"; "": any
  std::string compatibility;  // text for the provider; "": none
  // What onnxruntime needs to run it; paths are resolved.
  std::string model_file;  // "": the variant is not for onnxruntime
  StringMap session_options;
  StringMap provider_options;
};

struct PackageComponent {
  std::string name;
  std::vector<PackageVariant> variants;
};

// A package that was read. Nothing outside its folder is used, unless the manifest says that the
// package is installed (layout).
class ModelPackage {
 public:
  // Errors: kNoSuchFile and kInvalidArgument for a folder without a manifest, for one that breaks
  // the rules of the format, and for paths that leave the package.
  static Result<ModelPackage> Read(const std::string& folder);

  int64_t version() const { return version_; }
  const std::vector<PackageComponent>& components() const { return components_; }
  // Error: kInvalidArgument with the existing names.
  Result<const PackageComponent*> Find(std::string_view component) const;

  // The path that `reference` means: "sha256:<hex>", "sha256:<hex>/<rest>", or a path relative to
  // `base` ("": the package's folder).
  Result<std::string> Resolve(const std::string& base, const std::string& reference,
                              bool must_exist) const;

 private:
  Status ReadManifest(const JsonValue& manifest);
  Status ReadVersion(const JsonValue& manifest);
  Status ReadAssets(const JsonValue& manifest);
  Result<PackageComponent> ReadComponent(const std::string& name, const JsonValue& entry) const;
  Result<PackageVariant> ReadVariant(const std::string& name, const JsonValue& entry,
                                     const std::string& base) const;
  Status ReadExecutor(const JsonValue& entry, PackageVariant& variant) const;
  Result<std::string> ResolvePath(const std::string& base, const std::string& path,
                                  const std::string& root, bool may_leave, bool must_exist) const;

  std::string root_;
  int64_t version_ = 0;
  bool is_installed_ = false;
  std::map<std::string, std::string> assets_;  // paths that the manifest gives, by reference
  std::vector<PackageComponent> components_;
};

// Whether the session option's value is a path in the package.
bool IsPackagePath(std::string_view option);

}  // namespace tenon::capi
