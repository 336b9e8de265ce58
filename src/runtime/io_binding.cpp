#include "runtime/io_binding.h"

#include <algorithm>
#include <utility>

namespace tenon {

void IoBinding::Bindings::Set(std::string_view name, Value value) {
  const auto bound = std::find(names.begin(), names.end(), name);
  if (bound != names.end()) {
    values[bound - names.begin()] = std::move(value);
    return;
  }
  names.push_back(name);
  values.push_back(std::move(value));
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

Status IoBinding::BindOutput(std::string_view name, Value value) {
  TENON_ASSIGN_OR_RETURN(const std::string_view own_name, session_.FindOutputName(name));
  outputs_.Set(own_name, std::move(value));
  results_.assign(outputs_.values.size(), Value());
  return OkStatus();
}

void IoBinding::ClearOutputs() {
  outputs_.Clear();
  results_.clear();
}

Status IoBinding::Run(const RunOptions& options) {
  std::copy(outputs_.values.begin(), outputs_.values.end(), results_.begin());
  return session_.Run(options, inputs_.names, inputs_.values, outputs_.names, results_);
}

}  // namespace tenon
