// Semantic Versioning 2.0.
#pragma once

#include <string_view>

namespace tenon::plugin {

// Whether the text is a version such as "1.2.3-rc.1+build.5".
bool IsSemanticVersion(std::string_view text);

}  // namespace tenon::plugin
