#include "runtime/io_binding.h"

#include <utility>

namespace tenon {
namespace {

template <class T>
void InsertAt(std::vector<T>& list, size_t index, T value) {
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(index), std::move(value));
}

}  // namespace

size_t IoBinding::Bindings::IndexOf(size_t place) const {
  const auto at = std::lower_bound(places.begin(), places.end(), place);
  return static_cast<size_t>(at - places.begin());
}

void IoBinding::Bindings::Insert(size_t index, size_t place, std::string_view name) {
  InsertAt(places, index, place);
  InsertAt(names, index, name);
  InsertAt(values, index, Value());
}

void IoBinding::Bindings::Clear() {
  places.clear();
  names.clear();
  values.clear();
}

Status IoBinding::BindInput(std::string_view name, Value value) {
  const SessionInterface& interface = session_.interface();
  TENON_ASSIGN_OR_RETURN(const size_t place, interface.FindInput(name, inputs_.names.size()));
  const size_t index = inputs_.IndexOf(place);
  if (!inputs_.Has(index, place)) {
    inputs_.Insert(index, place, interface.graph_inputs()[place].name);
  }
  inputs_.values[index] = std::move(value);
  return OkStatus();
}

Status IoBinding::BindOutputTo(std::string_view name, const MemoryInfo& memory, Value value) {
  const SessionInterface& interface = session_.interface();
  TENON_ASSIGN_OR_RETURN(const size_t place, interface.FindOutput(name, outputs_.names.size()));
  const size_t index = outputs_.IndexOf(place);
  if (!outputs_.Has(index, place)) {
    outputs_.Insert(index, place, interface.outputs()[place].name);
    InsertAt<const MemoryInfo*>(output_memory_, index, nullptr);
    InsertAt(results_, index, Value());
    output_order_.push_back(place);
  }
  outputs_.values[index] = std::move(value);
  output_memory_[index] = &memory;
  results_[index] = Value();
  return OkStatus();
}

void IoBinding::ClearOutputs() {
  outputs_.Clear();
  output_memory_.clear();
  results_.clear();
  output_order_.clear();
}

std::vector<std::string_view> IoBinding::output_names() const {
  std::vector<std::string_view> names;
  for (const size_t place : output_order_) names.push_back(session_.outputs()[place].name);
  return names;
}

std::vector<Value> IoBinding::results() const {
  std::vector<Value> results;
  for (const size_t place : output_order_) results.push_back(results_[outputs_.IndexOf(place)]);
  return results;
}

}  // namespace tenon
