// Text building blocks: formatting, joining, suggestions for misspelt names.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// fmt::vformat, compiled once. Throws nothing: format strings are checked by the compiler.
std::string FormatV(fmt::string_view format, fmt::format_args args);

template <class... Args>
std::string Format(fmt::format_string<Args...> format, Args&&... args) {
  return FormatV(format, fmt::make_format_args(args...));
}

// A base for fmt::formatter<T> of any T with ToString(): "{}" prints that text.
struct ToStringFormatter {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class T>
  auto format(const T& value, fmt::format_context& context) const {
    auto out = context.out();
    for (const char c : value.ToString()) *out++ = c;
    return out;
  }
};

// "a, b, c"; at most `limit` entries, then "... (n more)".
std::string JoinNames(const std::vector<std::string>& names, size_t limit = 10);

// " (did you mean 'x'?)" for the candidate nearest to `name` by edit distance, or "" if none is
// near enough to be a misspelling of it.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace tenon
