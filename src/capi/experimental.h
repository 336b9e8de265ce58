// Functions outside the tables that other rooms implement.
#pragma once

#include <tenon_c_api.h>

namespace tenon::capi {

// TENON_SET_EP_EXTENSION.
OrtStatus* SetEpExtension(OrtEpFactory* factory, const TenonEpExtension* extension) noexcept;

}  // namespace tenon::capi
