// The experimental functions for model packages.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/experimental.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/ep_device.h"
#include "capi/env/ep_source.h"
#include "capi/options/built_in_providers.h"
#include "capi/options/session_options.h"
#include "capi/session/model_package.h"
#include "capi/session/select_devices.h"

// The provider for which a variant is chosen; without devices it is the CPU's.
struct OrtModelPackageOptions {
  tenon::capi::ProviderChoice choice;
};

struct OrtModelPackageContext {
  explicit OrtModelPackageContext(tenon::capi::ModelPackage read) : package(std::move(read)) {
    for (const auto& component : package.components()) {
      components.push_back(component.name.c_str());
      std::vector<const char*>& list = variants[component.name];
      for (const auto& variant : component.variants) list.push_back(variant.name.c_str());
    }
  }

  const tenon::capi::ModelPackage package;
  // Names for clients; those of variants by component.
  std::vector<const char*> components;
  std::map<std::string, std::vector<const char*>> variants;
  mutable std::string resolved;
};

struct OrtModelPackageComponentContext {
  tenon::capi::PackageVariant variant;
  tenon::capi::ProviderChoice choice;
};

namespace tenon::capi {
namespace {

Result<ProviderChoice> ChoiceOf(const OrtEnv& env, const OrtSessionOptions& options) {
  if (!options.providers.empty()) return options.providers.front();
  Model model;
  model.graph = std::make_unique<Graph>();
  TENON_ASSIGN_OR_RETURN(const std::vector<ProviderChoice> selected,
                         SelectDevices(options, model, *env.shared));
  if (!selected.empty()) return selected.front();
  return ProviderChoice{std::string(kCpuProviderName), {}, {}};
}

bool IsOfType(const OrtEpDevice& device, std::string_view type) {
  switch (device.device->type) {
    case OrtHardwareDeviceType_CPU:
      return type == "cpu";
    case OrtHardwareDeviceType_GPU:
      return type == "gpu";
    case OrtHardwareDeviceType_NPU:
      return type == "npu";
  }
  return false;
}

// How well the variant suits the provider; nothing if not at all.
Result<std::optional<int>> ScoreOf(const PackageVariant& variant, const ProviderChoice& choice) {
  if (variant.provider != choice.name) return std::optional<int>();
  std::string type = variant.device;
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  });
  std::vector<const OrtEpDevice*> devices = choice.devices;
  if (devices.empty()) return type.empty() || type == "cpu" ? std::optional(0) : std::nullopt;
  if (!type.empty()) {
    const auto fits = [&](const OrtEpDevice* device) { return IsOfType(*device, type); };
    const auto first = std::find_if(devices.begin(), devices.end(), fits);
    if (first == devices.end()) return std::optional<int>();
    devices = {*first};
  }
  if (variant.compatibility.empty()) return std::optional(0);
  TENON_ASSIGN_OR_RETURN(
      const OrtCompiledModelCompatibility fits,
      devices.front()->source->CheckCompatibility(devices, variant.compatibility.c_str()));
  switch (fits) {
    case OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL:
      return std::optional(2);
    case OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION:
      return std::optional(1);
    case OrtCompiledModelCompatibility_EP_NOT_APPLICABLE:
      return std::optional(0);
    default:
      return std::optional<int>();
  }
}

Result<const PackageVariant*> FindVariant(const PackageComponent& component,
                                          std::string_view name) {
  for (const PackageVariant& variant : component.variants) {
    if (variant.name == name) return &variant;
  }
  return InvalidArgument("component '{}' has no variant '{}'", component.name, name);
}

// Of equally good variants the first.
Result<const PackageVariant*> Choose(const PackageComponent& component,
                                     const ProviderChoice& choice) {
  const PackageVariant* best = nullptr;
  int best_score = -1;
  for (const PackageVariant& variant : component.variants) {
    TENON_ASSIGN_OR_RETURN(const std::optional<int> score, ScoreOf(variant, choice));
    if (!score || *score <= best_score) continue;
    best = &variant;
    best_score = *score;
  }
  if (best != nullptr) return best;
  return Fail("no variant of component '{}' suits {}", component.name, choice.name);
}

Status AddEntry(OrtSessionOptions& options, const std::string& key, const std::string& value) {
  return TakeOrtStatus(AddSessionConfigEntry(&options, key.c_str(), value.c_str()));
}

// The package's options for the chosen provider.
Result<OrtSessionOptions> OptionsOf(const OrtModelPackageComponentContext& context) {
  OrtSessionOptions options;
  for (const auto& [key, value] : context.variant.session_options) {
    TENON_RETURN_IF_ERROR(AddEntry(options, key, value));
  }
  if (context.choice.devices.empty()) return options;
  for (const OrtEpDevice* const device : context.choice.devices) {
    AddDeviceOptions(*device, true, options.session.config);
  }
  const std::string prefix = EpOptionPrefix(context.choice.name);
  for (const auto& [key, value] : context.variant.provider_options) {
    options.session.config.insert_or_assign(prefix + key, value);
  }
  TENON_RETURN_IF_ERROR(AddCustomOpDomains(*context.choice.devices.front(), options));
  options.providers.push_back({context.choice.name, {}, context.choice.devices});
  return options;
}

// The client's options, with those paths of the package that it did not set.
Result<OrtSessionOptions> OptionsOf(const OrtModelPackageComponentContext& context,
                                    const OrtSessionOptions& given) {
  OrtSessionOptions options = given;
  for (const auto& [key, value] : context.variant.session_options) {
    if (!IsPackagePath(key) || options.session.config.contains(key)) continue;
    TENON_RETURN_IF_ERROR(AddEntry(options, key, value));
  }
  return options;
}

}  // namespace

OrtStatus* OrtModelPackageApi_CreateModelPackageOptionsFromSessionOptions(
    const OrtEnv* env, const OrtSessionOptions* session_options,
    OrtModelPackageOptions** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(session_options);
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(ProviderChoice choice, ChoiceOf(*env, *session_options));
    *out = new OrtModelPackageOptions{std::move(choice)};
    return OkStatus();
  });
}

void OrtModelPackageApi_ReleaseModelPackageOptions(OrtModelPackageOptions* options) noexcept {
  delete options;
}

OrtStatus* OrtModelPackageApi_CreateModelPackageContext(const ORTCHAR_T* package_root,
                                                        OrtModelPackageContext** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(package_root);
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(ModelPackage package, ModelPackage::Read(package_root));
    *out = new OrtModelPackageContext(std::move(package));
    return OkStatus();
  });
}

void OrtModelPackageApi_ReleaseModelPackageContext(OrtModelPackageContext* ctx) noexcept {
  delete ctx;
}

OrtStatus* OrtModelPackageApi_ModelPackage_GetSchemaVersion(const OrtModelPackageContext* ctx,
                                                            int64_t* out_version) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ctx);
    TENON_RETURN_IF_NULL(out_version);
    *out_version = ctx->package.version();
    return OkStatus();
  });
}

OrtStatus* OrtModelPackageApi_ModelPackage_GetComponentCount(const OrtModelPackageContext* ctx,
                                                             size_t* out_count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ctx);
    TENON_RETURN_IF_NULL(out_count);
    *out_count = ctx->components.size();
    return OkStatus();
  });
}

OrtStatus* OrtModelPackageApi_ModelPackage_GetComponentNames(const OrtModelPackageContext* ctx,
                                                             const char* const** out_names,
                                                             size_t* out_count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ctx);
    TENON_RETURN_IF_NULL(out_names);
    TENON_RETURN_IF_NULL(out_count);
    *out_names = ctx->components.data();
    *out_count = ctx->components.size();
    return OkStatus();
  });
}

OrtStatus* OrtModelPackageApi_ModelPackage_GetVariantCount(const OrtModelPackageContext* ctx,
                                                           const char* component_name,
                                                           size_t* out_count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ctx);
    TENON_RETURN_IF_NULL(component_name);
    TENON_RETURN_IF_NULL(out_count);
    TENON_ASSIGN_OR_RETURN(const PackageComponent* const component,
                           ctx->package.Find(component_name));
    *out_count = component->variants.size();
    return OkStatus();
  });
}

OrtStatus* OrtModelPackageApi_ModelPackage_GetVariantNames(const OrtModelPackageContext* ctx,
                                                           const char* component_name,
                                                           const char* const** out_variant_names,
                                                           size_t* out_count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ctx);
    TENON_RETURN_IF_NULL(component_name);
    TENON_RETURN_IF_NULL(out_variant_names);
    TENON_RETURN_IF_NULL(out_count);
    TENON_RETURN_IF_ERROR(ctx->package.Find(component_name));
    const std::vector<const char*>& names = ctx->variants.at(component_name);
    *out_variant_names = names.data();
    *out_count = names.size();
    return OkStatus();
  });
}

OrtStatus* OrtModelPackageApi_ModelPackage_GetVariantEpName(const OrtModelPackageContext* ctx,
                                                            const char* component_name,
                                                            const char* variant_name,
                                                            const char** out_ep) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ctx);
    TENON_RETURN_IF_NULL(component_name);
    TENON_RETURN_IF_NULL(variant_name);
    TENON_ASSIGN_OR_RETURN(const PackageComponent* const component,
                           ctx->package.Find(component_name));
    TENON_ASSIGN_OR_RETURN(const PackageVariant* const variant,
                           FindVariant(*component, variant_name));
    if (out_ep != nullptr) *out_ep = variant->provider ? variant->provider->c_str() : nullptr;
    return OkStatus();
  });
}

OrtStatus* OrtModelPackageApi_ModelPackage_ResolveStringRef(const OrtModelPackageContext* ctx,
                                                            const char* base_dir, const char* input,
                                                            int must_exist,
                                                            const char** out_path) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ctx);
    TENON_RETURN_IF_NULL(input);
    TENON_RETURN_IF_NULL(out_path);
    TENON_ASSIGN_OR_RETURN(ctx->resolved, ctx->package.Resolve(base_dir == nullptr ? "" : base_dir,
                                                               input, must_exist != 0));
    *out_path = ctx->resolved.c_str();
    return OkStatus();
  });
}

OrtStatus* OrtModelPackageApi_SelectComponent(const OrtModelPackageContext* context,
                                              const char* component_name,
                                              const OrtModelPackageOptions* options,
                                              OrtModelPackageComponentContext** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(component_name);
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(const PackageComponent* const component,
                           context->package.Find(component_name));
    TENON_ASSIGN_OR_RETURN(const PackageVariant* const variant,
                           Choose(*component, options->choice));
    *out = new OrtModelPackageComponentContext{*variant, options->choice};
    return OkStatus();
  });
}

void OrtModelPackageApi_ReleaseModelPackageComponentContext(
    OrtModelPackageComponentContext* ctx) noexcept {
  delete ctx;
}

OrtStatus* OrtModelPackageApi_ModelPackageComponent_GetSelectedVariantName(
    const OrtModelPackageComponentContext* ctx, const char** out_name) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ctx);
    TENON_RETURN_IF_NULL(out_name);
    *out_name = ctx->variant.name.c_str();
    return OkStatus();
  });
}

OrtStatus* OrtModelPackageApi_ModelPackageComponent_GetSelectedVariantFolderPath(
    const OrtModelPackageComponentContext* ctx, const ORTCHAR_T** folder_path) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ctx);
    TENON_RETURN_IF_NULL(folder_path);
    *folder_path = ctx->variant.folder.c_str();
    return OkStatus();
  });
}

OrtStatus* OrtModelPackageApi_CreateSession(const OrtEnv* env,
                                            OrtModelPackageComponentContext* context,
                                            const OrtSessionOptions* session_options,
                                            OrtSession** session) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(context);
    TENON_RETURN_IF_NULL(session);
    if (context->variant.model_file.empty()) {
      return Fail("variant '{}' of the model package names no model_file", context->variant.name);
    }
    TENON_ASSIGN_OR_RETURN(
        const OrtSessionOptions options,
        session_options == nullptr ? OptionsOf(*context) : OptionsOf(*context, *session_options));
    return TakeOrtStatus(
        CreateSession(env, context->variant.model_file.c_str(), &options, session));
  });
}

}  // namespace tenon::capi
