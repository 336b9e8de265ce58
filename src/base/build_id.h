// Tells builds of the library apart.
#pragma once

#include <string>

namespace tenon {

// The linker's build id of the library or program that has this function, in hexadecimal: builds
// with other code have another one. "" if it has none.
std::string BuildId();

}  // namespace tenon
