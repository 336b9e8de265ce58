// Compilation of models ahead of time.
#pragma once

#include "api.h"

namespace tenon::python {

void BindCompile(nb::module_& module);

}  // namespace tenon::python
