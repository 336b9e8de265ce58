// Finds names by hash, or at once where the caller's order is known.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon {

// The places of names in a list. Of equal names the first is found.
class NameIndex {
 public:
  // The text of `name` outlives the index.
  void Add(std::string_view name) {
    is_unique_ = places_.emplace(name, names_.size()).second && is_unique_;
    names_.push_back(name);
  }
  // Callers often follow the list's order, so that the name lies at `likely`.
  std::optional<size_t> Find(std::string_view name, size_t likely) const {
    if (is_unique_ && likely < names_.size() && names_[likely] == name) return likely;
    const auto found = places_.find(name);
    return found == places_.end() ? std::nullopt : std::optional<size_t>(found->second);
  }

 private:
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, size_t> places_;
  bool is_unique_ = true;
};

}  // namespace tenon
