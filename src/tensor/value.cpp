#include "tensor/value.h"

namespace tenon {

std::string_view ValueKindName(Value::Kind kind) {
  constexpr std::string_view kNames[] = {"nothing", "tensor",   "sequence",
                                         "map",     "optional", "sparse tensor"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace tenon
