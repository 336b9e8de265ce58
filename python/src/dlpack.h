// Tensors from and to other libraries without a copy, by DLPack (version 0 of its ABI).
#pragma once

#include "value.h"

namespace tenon::python {

// A capsule "dltensor" over the memory of `value`, which `owner` keeps. Error: TypeError for types
// that DLPack lacks, and as DlpackDevice.
nb::object ToDlpack(nb::handle owner, const Value& value);

// DLPack's kind and number of the device that a value lies on. Error: TypeError for memory that
// only its provider can read.
nb::tuple DlpackDevice(const Value& value);

// A value over the memory that `data` lends: a capsule "dltensor", or an object with __dlpack__.
// With `is_bool`, uint8 elements are booleans. What the lender's device has queued must be done.
// Error: ValueError for other devices than the CPU and those of CUDA, and for memory that is not
// row-major; RuntimeError if no provider has the device.
Value FromDlpack(nb::handle data, bool is_bool);

// The same for a capsule alone. The value itself owns the memory, and gives it back, on any thread,
// when nothing native uses it any more.
ValueHandle TakeDlpack(nb::handle capsule);

// Whether the elements of a capsule "dltensor" are uint8, the type that booleans once had.
bool IsDlpackOfBytes(nb::handle capsule);

}  // namespace tenon::python
