#include "capi/env/ep_extension.h"

#include "capi/boundary/arguments.h"
#include "capi/boundary/status.h"

namespace tenon::capi {
namespace {

// The innermost registration of this thread, which calls a plugin's GetSupportedDevices.
constinit thread_local Extensions::Registration* current = nullptr;

}  // namespace

Extensions::Registration::Registration(OrtEpFactory* factory)
    : factory_(factory), previous_(current) {
  current = this;
}

Extensions::Registration::~Registration() { current = previous_; }

Status Extensions::Set(OrtEpFactory* factory, const TenonEpExtension* extension) {
  TENON_RETURN_IF_NULL(factory);
  if (current == nullptr || current->factory_ != factory) {
    return Fail("the extension of a factory can be set until its GetSupportedDevices returns");
  }
  if (extension != nullptr && extension->extension_version == 0) {
    return Fail("an extension of version 0 is none");
  }
  current->given_ = extension;
  return OkStatus();
}

OrtStatus* SetEpExtension(OrtEpFactory* factory, const TenonEpExtension* extension) noexcept {
  return AtBoundary([&] { return Extensions::Set(factory, extension); });
}

}  // namespace tenon::capi
