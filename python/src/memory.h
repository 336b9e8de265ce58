// Where the values of the Python package lie: in the CPU's memory, or in that of a plugin's device.
#pragma once

#include <string>

#include "value.h"

namespace tenon::python {

// The memory that Python names: by a name as "cpu" or "gpu", a number and a vendor (negative: any),
// or by an OrtDevice alone. Error: RuntimeError if no provider has such memory; ValueError for a
// name that no device has.
const OrtMemoryInfo* FindMemory(nb::handle device, int number, int vendor);

// The allocator that the process shares for the memory. Error: RuntimeError if there is none.
OrtAllocator* AllocatorIn(const OrtMemoryInfo* memory);

// The memory of a tensor; the CPU's for other values.
const OrtMemoryInfo* MemoryOf(const Value& value);

// Whether the processor can read the memory.
bool IsOnHost(const OrtMemoryInfo* memory);

// As onnxruntime names the device of a value, for example "cpu".
std::string DeviceName(const OrtMemoryInfo* memory);

// Copies the elements of a tensor to another of the same type and shape.
void CopyTensor(const Value& from, Value& to);

// A new tensor in other memory with the elements of `value`, which is a tensor of numbers.
Value CopyTo(const Value& value, OrtAllocator* allocator);

}  // namespace tenon::python
