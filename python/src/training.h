// Partial execution of training graphs: TrainingAgent and its classes.
#pragma once

#include "api.h"

namespace tenon::python {

void BindTraining(nb::module_& module);

}  // namespace tenon::python
