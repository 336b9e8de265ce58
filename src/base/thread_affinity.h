// Parses text that says which CPUs each thread may use.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"

namespace tenon {

// ThreadPoolOptions::affinities from "1,2;3-4": one set per worker between semicolons, each a list
// of CPUs or ranges of them. The text counts CPUs from 1, as the C ABI does; the result from 0.
// Error: kInvalidArgument that quotes the set.
Result<std::vector<std::vector<int>>> ParseThreadAffinities(std::string_view text);

}  // namespace tenon
