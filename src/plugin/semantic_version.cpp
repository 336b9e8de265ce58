#include "plugin/semantic_version.h"

#include <algorithm>

namespace tenon::plugin {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsIdentifierCharacter(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit) &&
         (text.size() == 1 || text[0] != '0');
}

// The text before the next `separator`. Both are removed from the input.
std::string_view TakePart(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// Identifiers with dots between them; numbers among them have no leading zeros if `strict`.
bool AreIdentifiers(std::string_view text, bool strict) {
  if (text.empty() || text.back() == '.') return false;
  while (!text.empty()) {
    const std::string_view part = TakePart(text, '.');
    const bool is_number = std::all_of(part.begin(), part.end(), IsDigit);
    if (part.empty() || !std::all_of(part.begin(), part.end(), IsIdentifierCharacter)) return false;
    if (strict && is_number && !IsNumber(part)) return false;
  }
  return true;
}

}  // namespace

bool IsSemanticVersion(std::string_view text) {
  const size_t plus = text.find('+');
  if (plus != std::string_view::npos && !AreIdentifiers(text.substr(plus + 1), false)) return false;
  std::string_view core = text.substr(0, plus);
  const size_t dash = core.find('-');
  if (dash != std::string_view::npos && !AreIdentifiers(core.substr(dash + 1), true)) return false;
  core = core.substr(0, dash);
  if (std::count(core.begin(), core.end(), '.') != 2) return false;
  const std::string_view major = TakePart(core, '.'), minor = TakePart(core, '.');
  return IsNumber(major) && IsNumber(minor) && IsNumber(core);
}

}  // namespace tenon::plugin
