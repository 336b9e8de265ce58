// Finds an element in a list of keys, for the encoders of ai.onnx.ml.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace tenon {

// K is an integer, float, double or std::string. All NaN are one key. Of equal keys the last
// counts.
template <class K>
class KeyIndex {
 public:
  KeyIndex() = default;
  explicit KeyIndex(std::span<const K> keys) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (IsNaN(keys[i])) {
        nan_ = i;
      } else {
        index_.insert_or_assign(keys[i], i);
      }
    }
    if constexpr (std::is_integral_v<K>) FillTable(keys);
  }

  // The position of `key` among the keys.
  std::optional<size_t> Find(const K& key) const {
    if (IsNaN(key)) return nan_;
    if constexpr (std::is_integral_v<K>) {
      if (!table_.empty()) {
        const uint64_t place = static_cast<uint64_t>(key) - static_cast<uint64_t>(least_);
        if (place >= table_.size() || table_[place] == 0) return std::nullopt;
        return table_[place] - 1;
      }
    }
    const auto found = index_.find(key);
    return found == index_.end() ? std::nullopt : std::optional<size_t>(found->second);
  }

 private:
  static bool IsNaN([[maybe_unused]] const K& key) {
    if constexpr (std::is_floating_point_v<K>) return std::isnan(key);
    return false;
  }

  // Integers that are close together are found in a table.
  void FillTable(std::span<const K> keys) {
    if (keys.empty()) return;
    const auto [least, most] = std::minmax_element(keys.begin(), keys.end());
    const uint64_t span = static_cast<uint64_t>(*most) - static_cast<uint64_t>(*least);
    if (span > 4 * keys.size() + 64) return;
    least_ = *least;
    table_.assign(span + 1, 0);
    for (size_t i = 0; i < keys.size(); ++i) {
      table_[static_cast<uint64_t>(keys[i]) - static_cast<uint64_t>(least_)] = i + 1;
    }
  }

  std::unordered_map<K, size_t> index_;
  std::optional<size_t> nan_;
  K least_{};
  std::vector<size_t> table_;  // of key least_ + i: its position plus 1, or 0
};

}  // namespace tenon
