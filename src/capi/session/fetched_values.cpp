#include "capi/session/fetched_values.h"

#include <memory>
#include <utility>

#include "base/inline_array.h"
#include "capi/boundary/handles.h"

namespace tenon::capi {
namespace {

// An optional with a value is returned as that value.
Value Unpacked(Value value) {
  while (value.kind() == Value::Kind::kOptional && value.optional().value.has_value()) {
    value = Value(value.optional().value);
  }
  return value;
}

}  // namespace

void HandOver(std::span<Value> fetches, OrtValue** outputs) {
  InlineArray<std::unique_ptr<Value>, kInlineValues> created(fetches.size());
  for (size_t i = 0; i < fetches.size(); ++i) {
    if (outputs[i] == nullptr) created[i] = std::make_unique<Value>();
  }
  for (size_t i = 0; i < fetches.size(); ++i) {
    if (outputs[i] == nullptr) outputs[i] = Wrap<OrtValue>(created[i].release());
    *Unwrap(outputs[i]) = Unpacked(std::move(fetches[i]));
  }
}

}  // namespace tenon::capi
