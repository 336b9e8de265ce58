// Sparse tensors, as the Python class SparseTensor reads and makes them.
#pragma once

#include "api.h"

namespace tenon::python {

void BindSparse(nb::module_& module);

}  // namespace tenon::python
