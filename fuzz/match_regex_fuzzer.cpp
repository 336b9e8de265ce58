// Takes the first line as a pattern and the rest as a text, and matches them.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "ops/text/regex.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(all.find('\n'), size);
  const std::string_view text = all.substr(std::min(line + 1, size));
  const Result<Regex> regex = Regex::Compile(all.substr(0, line));
  if (!regex) return 0;
  RegexMatcher matcher(*regex);
  const bool is_full = matcher.FullMatch(text);
  const std::optional<RegexMatch> longest = matcher.FindLongest(text);
  if (longest && (longest->begin > longest->end || longest->end > text.size())) __builtin_trap();
  // A text that matches as a whole is also found.
  if (is_full && (!longest || longest->end - longest->begin != text.size())) __builtin_trap();
  return 0;
}
