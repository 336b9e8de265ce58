// Numbers for platforms where std::from_chars reads only integers, such as WebAssembly. The C
// library there has only the C locale.
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/parse_double.h"

namespace tenon {

bool ParseDouble(std::string_view text, double* value) {
  // strtod accepts more: leading white space, a plus sign, and hexadecimal digits, of which
  // std::from_chars reads only the leading zero.
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) || text[0] == '+') {
    return false;
  }
  const size_t x = text[0] == '-' ? 2 : 1;
  if (text.size() > x && text[x - 1] == '0' && (text[x] == 'x' || text[x] == 'X')) {
    text = text.substr(0, x);
  }
  const std::string terminated(text);
  char* end = nullptr;
  const double parsed = std::strtod(terminated.c_str(), &end);
  if (end == terminated.c_str()) return false;
  // Numbers that are too large became infinity, and those that are too small zero.
  const std::string_view digits(terminated.c_str(), static_cast<size_t>(end - terminated.c_str()));
  if (std::isinf(parsed) && digits.find_first_of("0123456789") != std::string_view::npos) {
    return false;
  }
  const std::string_view mantissa = digits.substr(0, digits.find_first_of("eE"));
  if (parsed == 0 && mantissa.find_first_of("123456789") != std::string_view::npos) return false;
  *value = parsed;
  return true;
}

}  // namespace tenon
