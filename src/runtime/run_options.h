// What the caller of a run sets.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "base/string_map.h"

namespace tenon {

class RunReports;
class Stream;

struct RunOptions {
  // These two, providers are told too.
  std::string tag;
  StringMap config;
  // Set from any thread to end the run early; may be null.
  const std::atomic<bool>* terminate = nullptr;
  std::optional<std::chrono::steady_clock::duration> timeout;
  // How the name of a trace of this run alone begins; none is written without it, or while the
  // session has a trace of its own.
  std::optional<std::string> profile_prefix;
  // Why the run must not be tried again on another session; null: it may be.
  const char* not_repeatable = nullptr;
  // Gets a report of the run; may be null.
  RunReports* reports = nullptr;
  // Takes the place of its device's stream; outlives the run. May be null.
  Stream* stream = nullptr;
};

}  // namespace tenon
