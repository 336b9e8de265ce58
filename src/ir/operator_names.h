// The operators of a domain by name, for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// The names of the operators of `domain` that the schema table knows, sorted.
std::vector<std::string> OperatorNames(std::string_view domain);

}  // namespace tenon
