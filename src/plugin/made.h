// Ownership of what plugins make.
#pragma once

#include <memory>

#include "base/exception_barrier.h"
#include "plugin/call.h"

namespace tenon::plugin {

// Calls the object's slot Release, which a table that is not checked yet may lack.
template <class Impl>
struct ReleaseMade {
  void operator()(Impl* impl) const {
    (void)CatchExceptions([&] {
      if (impl->Release != nullptr) impl->Release(impl);
      return OkStatus();
    });
  }
};

// An object that a plugin made, and that the host releases.
template <class Impl>
using Made = std::unique_ptr<Impl, ReleaseMade<Impl>>;

// What make(&object), a call into a plugin, makes; null if that is nothing. Error: the plugin's,
// after which the host owns nothing.
template <class Impl, class Body>
Result<Made<Impl>> MakeOwned(Body&& make) {
  Impl* made = nullptr;
  TENON_RETURN_IF_ERROR(Call([&] { return make(&made); }));
  return Made<Impl>(made);
}

}  // namespace tenon::plugin
