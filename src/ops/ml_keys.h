// Which of a list of keys an element is: what the encoders of ai.onnx.ml look up.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>

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
  }

  // The position of `key` among the keys.
  std::optional<size_t> Find(const K& key) const {
    if (IsNaN(key)) return nan_;
    const auto found = index_.find(key);
    return found == index_.end() ? std::nullopt : std::optional<size_t>(found->second);
  }

 private:
  static bool IsNaN([[maybe_unused]] const K& key) {
    if constexpr (std::is_floating_point_v<K>) return std::isnan(key);
    return false;
  }

  std::unordered_map<K, size_t> index_;
  std::optional<size_t> nan_;
};

}  // namespace tenon
