// Reads a decimal number, on platforms whose C++ library cannot too.
#pragma once

#include <string_view>

namespace tenon {

// The number that `text` begins with, as std::from_chars reads it: in the C locale, neither white
// space nor a plus sign in front, "inf" and "nan" included. False, with `value` as it was, if there
// is none or a double cannot hold it.
bool ParseDouble(std::string_view text, double* value);

}  // namespace tenon
