#include "plugin/library.h"

#include <algorithm>
#include <utility>

#include "base/process_end.h"
#include "capi/boundary/client_api.h"
#include "capi/boundary/handles.h"
#include "plugin/call.h"

namespace tenon::plugin {
namespace {

constexpr size_t kMostFactories = 4;

constinit thread_local const EpLibrary* notifying = nullptr;

template <class Function>
Result<Function> Export(const DynamicLibrary& library, const char* name) {
  const Result<void*> symbol = library.Symbol(name);
  if (symbol) return reinterpret_cast<Function>(*symbol);
  return Fail("'{}' is no library of execution providers: it does not export {}", library.path(),
              name);
}

}  // namespace

Result<std::shared_ptr<EpLibrary>> EpLibrary::Open(const std::string& registered_name,
                                                   const std::string& path, const Logger& logger) {
  TENON_ASSIGN_OR_RETURN(DynamicLibrary loaded, DynamicLibrary::Load(DynamicLibrary::Beside(path)));
  WatchForProcessEnd();
  std::shared_ptr<EpLibrary> library(new EpLibrary(std::move(loaded)));
  TENON_ASSIGN_OR_RETURN(const auto create,
                         Export<CreateEpApiFactoriesFn>(library->library_, "CreateEpFactories"));
  TENON_ASSIGN_OR_RETURN(library->release_,
                         Export<ReleaseEpApiFactoryFn>(library->library_, "ReleaseEpFactory"));
  library->factories_.reserve(kMostFactories);  // what is made can be kept
  OrtEpFactory* made[kMostFactories] = {};
  size_t count = 0;
  TENON_RETURN_IF_ERROR(Call([&] {
    return create(registered_name.c_str(), &capi::ClientApi(), capi::Wrap<OrtLogger>(&logger), made,
                  kMostFactories, &count);
  }));
  // The factories are released whatever other errors there are.
  for (size_t i = 0; i < std::min(count, kMostFactories); ++i) {
    if (made[i] != nullptr) library->factories_.push_back(made[i]);
  }
  if (count == 0 || count > kMostFactories || library->factories_.size() != count) {
    return Fail("'{}' made {} factories of execution providers, {} of them null; expected 1 to {}",
                library->path(), count,
                std::min(count, kMostFactories) - library->factories_.size(), kMostFactories);
  }
  return library;
}

EpLibrary::Notification::Notification(const EpLibrary& library)
    : outer_(std::exchange(notifying, &library)) {}

EpLibrary::Notification::~Notification() { notifying = outer_; }

const EpLibrary* EpLibrary::Notification::Current() { return notifying; }

EpLibrary::~EpLibrary() {
  for (OrtEpFactory* const factory : factories_) {
    // A factory that fails to be released counts as released, and there is no logger left for a
    // message.
    (void)Call([&] { return release_(factory); });
  }
}

const TenonEpExtension* EpLibrary::FindExtension(OrtEpFactory* factory,
                                                 const Logger& logger) const {
  const Result<void*> symbol = library_.Symbol("TenonGetEpExtension");
  if (!symbol) return nullptr;
  const auto get = reinterpret_cast<TenonGetEpExtensionFn>(*symbol);
  const TenonEpExtension* extension = nullptr;
  const Status status = Call([&] { return get(factory, TENON_EP_EXTENSION_VERSION, &extension); });
  if (!status.ok()) {
    TENON_LOG(logger, kWarning, "'{}' gave no extension: {}", path(), status.message());
    return nullptr;
  }
  if (extension != nullptr && extension->extension_version == 0) {
    TENON_LOG(logger, kWarning, "'{}' gave an extension of version 0, which is none", path());
    return nullptr;
  }
  return extension;
}

}  // namespace tenon::plugin
