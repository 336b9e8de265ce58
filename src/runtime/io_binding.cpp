#include "runtime/io_binding.h"

#include <algorithm>
#include <utility>

namespace tenon {

size_t IoBinding::Bindings::Set(std::string_view name, Value value) {
  const auto bound = std::find(names.begin(), names.end(), name);
  const auto index = static_cast<size_t>(bound - names.begin());
  if (bound != names.end()) {
    values[index] = std::move(value);
  } else {
    names.push_back(name);
    values.push_back(std::move(value));
  }
  return index;
}

void IoBinding::Bindings::Clear() {
  names.clear();
  values.clear();
}

Status IoBinding::BindInput(std::string_view name, Value value) {
  TENON_ASSIGN_OR_RETURN(const std::string_view own_name, session_.FindInputName(name));
  inputs_.Set(own_name, std::move(value));
  return OkStatus();
}

Status IoBinding::BindOutputTo(std::string_view name, const MemoryInfo& memory, Value value) {
  TENON_ASSIGN_OR_RETURN(const std::string_view own_name, session_.FindOutputName(name));
  const size_t index = outputs_.Set(own_name, std::move(value));
  output_memory_.resize(outputs_.values.size());
  output_memory_[index] = &memory;
  results_.assign(outputs_.values.size(), Value());
  return OkStatus();
}

void IoBinding::ClearOutputs() {
  outputs_.Clear();
  output_memory_.clear();
  results_.clear();
}

}  // namespace tenon
