// Text by text, for options and metadata; look-ups by any kind of string allocate nothing.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace tenon {

using StringMap = std::map<std::string, std::string, std::less<>>;

}  // namespace tenon
