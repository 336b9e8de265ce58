// Passes the fetches of a run to the client.
#pragma once

#include <onnxruntime_c_api.h>

#include <span>

#include "tensor/value.h"

namespace tenon::capi {

// Up to this number, feeds or fetches need no extra allocation.
inline constexpr size_t kInlineValues = 8;

// Returns the fetched values to the client, one per element of `outputs`. Null elements become new
// values: all of them, or none if memory runs out.
void HandOver(std::span<Value> fetches, OrtValue** outputs);

}  // namespace tenon::capi
