// The second way for a plugin to register its extension: a function of the host, for plugins that
// cannot export one.
#pragma once

#include <tenon_c_api.h>

#include "base/status.h"

namespace tenon::capi {

class Extensions {
 public:
  // While it lives, the plugin may register the extension of `factory`. Made by the registering
  // thread.
  class Registration {
   public:
    explicit Registration(OrtEpFactory* factory);
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

    const TenonEpExtension* given() const { return given_; }

   private:
    friend class Extensions;
    OrtEpFactory* const factory_;
    const TenonEpExtension* given_ = nullptr;
    Registration* const previous_;
  };

  // Error: kFail if the factory is not being registered, or the extension's version is 0.
  static Status Set(OrtEpFactory* factory, const TenonEpExtension* extension);
};

// TENON_SET_EP_EXTENSION.
OrtStatus* SetEpExtension(OrtEpFactory* factory, const TenonEpExtension* extension) noexcept;

}  // namespace tenon::capi
