// What a run fetched, on its way to the client.
#pragma once

#include <onnxruntime_c_api.h>

#include <span>

#include "tensor/value.h"

namespace tenon::capi {

// Feeds or fetches up to this number need no allocation of their own.
inline constexpr size_t kInlineValues = 8;

// Gives the fetched values to the client, one per element of `outputs`, of which those that are
// null become new values: all of them, or none if memory runs out.
void HandOver(std::span<Value> fetches, OrtValue** outputs);

}  // namespace tenon::capi
