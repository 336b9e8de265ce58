// Text output, and the error that every part of the command throws.
#pragma once

#include <fmt/core.h>

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

// fmt::vformat, compiled once.
std::string FormatV(fmt::string_view format, fmt::format_args args);

template <class... Args>
std::string Format(fmt::format_string<Args...> format, Args&&... args) {
  return FormatV(format, fmt::make_format_args(args...));
}

// Prints to stdout.
template <class... Args>
void Print(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = FormatV(format, fmt::make_format_args(args...));
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// Ends the command: main() prints the text and exits with the code. The C++ API throws
// Ort::Exception, and so the command throws too.
class Error : public std::exception {
 public:
  Error(int exit_code, std::string text) : exit_code_(exit_code), text_(std::move(text)) {}
  int exit_code() const { return exit_code_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  int exit_code_;
  std::string text_;
};

inline constexpr int kExitFailure = 1;        // a file, the model or the run
inline constexpr int kExitUsage = 2;          // the command line
inline constexpr int kExitInterrupted = 130;  // SIGINT, as shells have it

template <class... Args>
[[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kExitFailure, FormatV(format, fmt::make_format_args(args...)));
}
template <class... Args>
[[noreturn]] void FailUsage(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kExitUsage, FormatV(format, fmt::make_format_args(args...)));
}

// Prints a note on stderr that is not an error.
void Note(const std::string& text);

// "512 B", "1.5 KiB", "97.7 MiB"
std::string BytesText(double bytes);
// "3.2 us", "14.1 ms", "2.05 s"
std::string DurationText(double milliseconds);
// "[1, 3, 224]"
std::string ShapeText(const std::vector<int64_t>& shape);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
// " (did you mean 'x'?)" for the candidate nearest to `name`, or "" if none is near.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates);

// Rows of cells in columns. Each column is as wide as its widest cell; the last one is not padded.
std::string TableText(const std::vector<std::vector<std::string>>& rows, std::string_view indent);

}  // namespace tenon::cli
