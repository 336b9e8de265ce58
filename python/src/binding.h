// Inputs and outputs that are set once, for the Python class SessionIOBinding.
#pragma once

#include "api.h"

namespace tenon::python {

void BindBinding(nb::module_& module);

}  // namespace tenon::python
