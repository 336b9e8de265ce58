#include "report.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "report_page.h"

namespace tenon::cli {
namespace {

// Within <script>, no text may look like markup. In JSON, "<" occurs only in strings.
std::string ForScript(const std::string& json) {
  std::string text;
  for (const char c : json) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

void Replace(std::string& page, std::string_view mark, std::string_view text) {
  page.replace(page.find(mark), mark.size(), text);
}

}  // namespace

std::string ReportPage(const nlohmann::ordered_json& profile) {
  using Json = nlohmann::ordered_json;
  std::string page = kReportPage;
  Replace(page, "/* style */", kReportStyle);
  Replace(page, "/* script */", std::string(kReportTimeline) + kReportScript);
  Replace(page, "/* profile */",
          ForScript(profile.dump(-1, ' ', true, Json::error_handler_t::replace)));
  return page;
}

}  // namespace tenon::cli
