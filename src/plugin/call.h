// Calls into plugins: which slots they have, and their results.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/exception_barrier.h"
#include "capi/boundary/status.h"

namespace tenon::plugin {

// The part of a plugin's table, in bytes, that is read if the plugin is older than a version.
struct Extent {
  uint32_t first_version;
  size_t bytes;
};

// A copy of a plugin's table in which slots of later versions are null. The memory after the
// plugin's slots is not read.
template <class Table>
Table Supported(const Table& given, std::span<const Extent> extents) {
  size_t bytes = sizeof(Table);
  for (const Extent& extent : extents) {
    if (given.ort_version_supported < extent.first_version && extent.bytes < bytes) {
      bytes = extent.bytes;
    }
  }
  Table supported = {};
  std::memcpy(static_cast<void*>(&supported), static_cast<const void*>(&given), bytes);
  return supported;
}

OrtEp Supported(const OrtEp& ep);
OrtEpFactory Supported(const OrtEpFactory& factory);

// A slot that a table must have.
struct Slot {
  const char* name;
  bool is_there;
};
#define TENON_SLOT(table, slot) \
  ::tenon::plugin::Slot { #slot, (table)->slot != nullptr }

// Error: kFail that names the provider, the object that it made, and the first slot that is
// missing.
Status CheckSlots(std::string_view provider, std::string_view made,
                  std::initializer_list<Slot> slots);

// The result of body(), a call into a plugin that returns an OrtStatus*. Exceptions of the plugin
// become failures.
template <class Body>
Status Call(Body&& body) {
  return CatchExceptions([&] { return capi::TakeOrtStatus(body()); });
}

}  // namespace tenon::plugin
