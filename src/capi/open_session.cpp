#include "capi/open_session.h"

#include <utility>

#include "ir/onnx_reader.h"
#include "ops/cpu_provider.h"
#include "ops/registry.h"

namespace tenon::capi {
namespace {

ReadOptions ReadOptionsOf(const SessionOptions& options) {
  const auto folder = options.config.find("session.model_external_initializers_file_folder_path");
  return {.external_data_folder = folder == options.config.end() ? "" : folder->second};
}

Result<std::unique_ptr<Session>> OpenSession(Environment& environment, Model model,
                                             SessionOptions options) {
  SessionParts parts;
  parts.providers.push_back(MakeCpuProvider());
  parts.shape_functions = &OpShapeFunctions();
  return Session::Create(environment, std::move(model), std::move(options), std::move(parts));
}

}  // namespace

Result<std::unique_ptr<Session>> OpenSession(Environment& environment, const std::string& path,
                                             SessionOptions options) {
  TENON_ASSIGN_OR_RETURN(Model model, ReadModel(path, ReadOptionsOf(options)));
  return OpenSession(environment, std::move(model), std::move(options));
}

Result<std::unique_ptr<Session>> OpenSession(Environment& environment,
                                             std::span<const std::byte> bytes,
                                             SessionOptions options) {
  TENON_ASSIGN_OR_RETURN(Model model, ReadModel(bytes, nullptr, ReadOptionsOf(options)));
  return OpenSession(environment, std::move(model), std::move(options));
}

}  // namespace tenon::capi
