// JSON text from other programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tenon {

// One object or array without the space between its parts, so on one line. Returns nothing for any
// other text, one that breaks a rule of RFC 8259, or one that nests deeper than 64.
std::optional<std::string> CompactJson(std::string_view text);

}  // namespace tenon
