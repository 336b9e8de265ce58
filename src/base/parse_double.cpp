#include "base/parse_double.h"

#include <charconv>
#include <system_error>

namespace tenon {

bool ParseDouble(std::string_view text, double* value) {
  return std::from_chars(text.data(), text.data() + text.size(), *value).ec == std::errc();
}

}  // namespace tenon
