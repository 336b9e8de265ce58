// The report of a profile: one HTML file that needs nothing else.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tenon::cli {

// A page that shows `profile`, what `tenon profile` knows; see report/script.js for what it reads.
std::string ReportPage(const nlohmann::ordered_json& profile);

}  // namespace tenon::cli
