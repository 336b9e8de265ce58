#include "runtime/io_binding.h"

#include <utility>

namespace tenon {

size_t IoBinding::Bindings::Set(const std::vector<SessionValue>& all, size_t place, Value value) {
  bound.resize(all.size());
  if (!bound[place]) {
    bound[place] = names.size();
    names.push_back(all[place].name);
    values.emplace_back();
  }
  values[*bound[place]] = std::move(value);
  return *bound[place];
}

void IoBinding::Bindings::Clear() {
  names.clear();
  values.clear();
  bound.clear();
}

Status IoBinding::BindInput(std::string_view name, Value value) {
  const SessionInterface& interface = session_.interface();
  TENON_ASSIGN_OR_RETURN(const size_t place, interface.FindInput(name, inputs_.names.size()));
  inputs_.Set(interface.graph_inputs(), place, std::move(value));
  return OkStatus();
}

Status IoBinding::BindOutputTo(std::string_view name, const MemoryInfo& memory, Value value) {
  const SessionInterface& interface = session_.interface();
  TENON_ASSIGN_OR_RETURN(const size_t place, interface.FindOutput(name, outputs_.names.size()));
  const size_t index = outputs_.Set(interface.outputs(), place, std::move(value));
  output_memory_.resize(outputs_.values.size());
  output_memory_[index] = &memory;
  results_.resize(outputs_.values.size());
  results_[index] = Value();
  return OkStatus();
}

void IoBinding::ClearOutputs() {
  outputs_.Clear();
  output_memory_.clear();
  results_.clear();
}

}  // namespace tenon
