#include "plugin/call.h"

namespace tenon::plugin {

OrtEp Supported(const OrtEp& ep) {
  static constexpr Extent kExtents[] = {
      {23, offsetof(OrtEp, GetCapability)},
      {24, offsetof(OrtEp, GetKernelRegistry)},
      {25, offsetof(OrtEp, Sync)},
      {26, offsetof(OrtEp, IsGraphCaptureEnabled)},
      {27, offsetof(OrtEp, OnSessionInitializationEnd)},
      {29, offsetof(OrtEp, GetWeightlessSupport)},
  };
  return Supported(ep, kExtents);
}

OrtEpFactory Supported(const OrtEpFactory& factory) {
  static constexpr Extent kExtents[] = {
      {23, offsetof(OrtEpFactory, GetVendorId)},
      {24, offsetof(OrtEpFactory, GetHardwareDeviceIncompatibilityDetails)},
      {25, offsetof(OrtEpFactory, InitGraphicsInterop)},
      {28, offsetof(OrtEpFactory, SelectBestModelCandidate)},
  };
  return Supported(factory, kExtents);
}

Status CheckSlots(std::string_view provider, std::string_view made,
                  std::initializer_list<Slot> slots) {
  for (const Slot& slot : slots) {
    if (!slot.is_there) return Fail("{}: its {} lacks {}", provider, made, slot.name);
  }
  return OkStatus();
}

}  // namespace tenon::plugin
