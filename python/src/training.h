// Partial execution of training graphs: TrainingAgent and what it works on.
#pragma once

#include "api.h"

namespace tenon::python {

void BindTraining(nb::module_& module);

}  // namespace tenon::python
