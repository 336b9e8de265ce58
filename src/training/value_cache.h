// Values that need not be computed again in every run: those that depend only on parameters, while
// gradients are accumulated.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/value.h"

namespace tenon {

// Values by their names in the graph; shared, not copied. Not thread-safe.
class ValueCache {
 public:
  // Replaces the value of that name, if there is one. Error: kInvalidArgument for an empty value.
  Status Insert(std::string_view name, Value value);
  // Error: kInvalidArgument naming the value if it is not there.
  Status Remove(std::string_view name);
  bool Contains(std::string_view name) const { return Find(name) != nullptr; }
  // Null if it is not there.
  const Value* Find(std::string_view name) const;
  // In alphabetical order.
  std::vector<std::string> Keys() const;
  void Clear() { values_.clear(); }

  const auto& values() const { return values_; }

 private:
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace tenon
