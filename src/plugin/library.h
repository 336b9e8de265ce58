// A loaded library with factories of execution providers.
#pragma once

#include <onnxruntime_ep_c_api.h>
#include <tenon_c_api.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/dynamic_library.h"
#include "base/logging.h"
#include "capi/env/library_uses.h"

namespace tenon::plugin {

// Each user of something from the library holds a reference; the last one releases the factories
// and unloads the code.
class EpLibrary {
 public:
  // Loads the library and lets it make its factories. A relative path begins at the folder of this
  // library. `logger` is the environment's. Errors: kFail with the path and the loader's text, the
  // missing symbol, or the plugin's text.
  static Result<std::shared_ptr<EpLibrary>> Open(const std::string& registered_name,
                                                 const std::string& path, const Logger& logger);
  ~EpLibrary();
  EpLibrary(const EpLibrary&) = delete;
  EpLibrary& operator=(const EpLibrary&) = delete;

  const std::string& path() const { return library_.path(); }
  const std::vector<OrtEpFactory*>& factories() const { return factories_; }
  // Counts the objects that were made by the library.
  const std::shared_ptr<capi::LibraryUses>& uses() const { return uses_; }
  // While it lives, this thread tells a provider of the library that its session ends; the provider
  // must not unregister the library then.
  class Notification {
   public:
    explicit Notification(const EpLibrary& library);
    ~Notification();
    Notification(const Notification&) = delete;
    Notification& operator=(const Notification&) = delete;
    // The library of the innermost one of this thread; null if there is none.
    static const EpLibrary* Current();

   private:
    const EpLibrary* const outer_;
  };

  // The extension that the library exports for a factory; null if there is none.
  const TenonEpExtension* FindExtension(OrtEpFactory* factory, const Logger& logger) const;

 private:
  explicit EpLibrary(DynamicLibrary library) : library_(std::move(library)) {}

  DynamicLibrary library_;
  const std::shared_ptr<capi::LibraryUses> uses_ = std::make_shared<capi::LibraryUses>();
  ReleaseEpApiFactoryFn release_ = nullptr;
  std::vector<OrtEpFactory*> factories_;
};

}  // namespace tenon::plugin
