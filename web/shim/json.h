// Texts in JSON.
#pragma once

#include <string>
#include <string_view>

namespace tenon::web {

// `text`, which is UTF-8, with the quotes and escapes of a JSON string.
std::string Quoted(std::string_view text);

}  // namespace tenon::web
