// UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <string_view>

namespace tenon {

// Length of the sequence at the start of `text`, which is not empty; 0 if there is no valid one:
// overlong forms, surrogates and what lies beyond U+10FFFF are none.
size_t Utf8Length(std::string_view text);

}  // namespace tenon
