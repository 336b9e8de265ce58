// JSON texts.
#pragma once

#include <string>
#include <string_view>

namespace tenon::web {

// `text`, which is UTF-8, as a JSON string with quotes and escapes.
std::string Quoted(std::string_view text);

}  // namespace tenon::web
