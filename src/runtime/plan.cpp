#include "runtime/plan.h"

#include <algorithm>

#include "runtime/kernel.h"

namespace tenon {

Step::Step() = default;
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&&) noexcept = default;
Step::~Step() = default;

bool Plan::IsDefaultInput(Slot slot) const {
  return std::any_of(default_inputs.begin(), default_inputs.end(),
                     [&](const auto& entry) { return entry.first == slot; });
}

Result<Slot> Plan::FindSlot(std::string_view name) const {
  const ValueId id = graph->FindValue(name);
  for (size_t i = 0; id != ValueId::kNone && i < value_of.size(); ++i) {
    if (value_of[i] == id) return static_cast<Slot>(i);
  }
  for (const PlanOutput& output : outputs) {
    if (output.name == name) return output.slot;
  }
  return InvalidArgument("no step of graph '{}' makes or reads a value '{}'", graph->name, name);
}

}  // namespace tenon
