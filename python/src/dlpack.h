// Tensors from and to other libraries without a copy, by DLPack (version 0 of its ABI).
#pragma once

#include "value.h"

namespace tenon::python {

// A capsule "dltensor" over the memory of `value`, which `owner` keeps. Error: TypeError for types
// that DLPack lacks.
nb::object ToDlpack(nb::handle owner, const Value& value);

// A value over the memory that `data` lends: a capsule "dltensor", or an object with __dlpack__.
// With `is_bool`, uint8 elements are booleans. Error: ValueError for other devices than the CPU and
// for memory that is not row-major.
Value FromDlpack(nb::handle data, bool is_bool);

// Whether the elements of a capsule "dltensor" are uint8, the type that booleans once had.
bool IsDlpackOfBytes(nb::handle capsule);

}  // namespace tenon::python
