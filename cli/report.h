// The report of a profile: one HTML file without dependencies.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tenon::cli {

// A page that shows `profile`, the results of `tenon profile`; report/script.js shows which of them
// it reads.
std::string ReportPage(const nlohmann::ordered_json& profile);

}  // namespace tenon::cli
