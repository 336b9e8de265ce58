// The options of a run that its caller sets.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "base/logging.h"
#include "base/progress.h"
#include "base/string_map.h"
#include "tensor/value.h"

namespace tenon {

class RunReports;
class Stream;

struct RunOptions {
  // Providers see these two as well.
  std::string tag;
  StringMap config;
  // Of what kernels log in the run; the session's if absent.
  std::optional<Severity> severity;
  int log_verbosity = 0;
  // Set from any thread to end the run early; may be null.
  const std::atomic<bool>* terminate = nullptr;
  std::optional<std::chrono::steady_clock::duration> timeout;
  // Prefix of the file name for a trace of this run alone. No trace is written without it, nor
  // while the session has a trace of its own.
  std::optional<std::string> profile_prefix;
  // The reason why the run must not be repeated on another session; null: it may be.
  const char* not_repeatable = nullptr;
  // Called before each step, and at the end; an answer of 0 ends the run with kFail.
  Progress progress;
  // Receives a report of the run; may be null.
  RunReports* reports = nullptr;
  // Replaces the stream of its device; outlives the run. May be null.
  Stream* stream = nullptr;
  // The run's feeds again, in the order of the graph's inputs, if the caller gives them away: each
  // is emptied after its last reader. Must not be repeatable.
  std::span<Value> given = {};

  // Whether the run's log differs from the session's.
  bool HasLog() const { return severity || log_verbosity != 0 || !tag.empty(); }
};

}  // namespace tenon
