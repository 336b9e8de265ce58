// Texts of opSupportLimits().
#pragma once

#include <set>
#include <string>

namespace tenon::webnn {

// How a context differs from one that supports everything in the draft of June 2026 (limits.txt).
struct LimitsChange {
  std::string without_types = "";              // letters of limits.txt
  std::set<std::string> without_methods = {};  // whose operands have no types
  size_t min_rank = 0;                         // of inputs, constants and outputs
  bool prefers_channels_last = false;
  double max_bytes = 4294967295;
};

std::string LimitsText(const LimitsChange& change = {});

}  // namespace tenon::webnn
