// Tensors from and to other libraries without a copy, by DLPack (version 0 of its ABI).
#pragma once

#include "value.h"

namespace tenon::python {

// A capsule "dltensor" over the memory of `value`, which `owner` holds. Error: TypeError for types
// that DLPack lacks.
nb::object ToDlpack(nb::handle owner, const Value& value);

// A value over the memory that `data` lends: a capsule "dltensor", or what has __dlpack__. With
// `is_bool`, bytes are truth values. Error: ValueError for other devices than the CPU and for
// memory that is not row-major.
Value FromDlpack(nb::handle data, bool is_bool);

// Whether a capsule "dltensor" holds bytes, as truth values once did.
bool IsDlpackOfBytes(nb::handle capsule);

}  // namespace tenon::python
