// On-device training, for tenon.training.api.
#pragma once

#include "api.h"

namespace tenon::python {

void BindOnDeviceTraining(nb::module_& module);

}  // namespace tenon::python
