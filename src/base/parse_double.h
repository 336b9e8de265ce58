// Reads a decimal number, also on platforms whose C++ library cannot.
#pragma once

#include <string_view>

namespace tenon {

// The number that `text` begins with, read like std::from_chars: in the C locale, without leading
// white space or a plus sign, including "inf" and "nan". False, with `value` unchanged, if there is
// none or a double cannot hold it.
bool ParseDouble(std::string_view text, double* value);

}  // namespace tenon
