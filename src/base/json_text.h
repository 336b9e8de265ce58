// JSON text that others wrote.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tenon {

// One object or array without the space between its parts, so on one line. Nothing for text that is
// anything else, breaks a rule of RFC 8259, or nests deeper than 64.
std::optional<std::string> CompactJson(std::string_view text);

}  // namespace tenon
