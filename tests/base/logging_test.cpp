#include "base/logging.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace tenon {
namespace {

struct Entry {
  Severity severity;
  std::string category, log_id, code_location, message;
};

struct Recorder {
  std::vector<Entry> entries;
  LogSink sink() { return {.write = &Write, .param = this}; }
  static void Write(void* param, Severity severity, const char* category, const char* log_id,
                    const char* code_location, const char* message) {
    static_cast<Recorder*>(param)->entries.push_back(
        {severity, category, log_id, code_location, message});
  }
};

// The text with '#' for every run of digits.
std::string WithoutNumbers(const std::string& text) {
  std::string masked;
  for (char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) masked += c;
    if (digit && !masked.ends_with('#')) masked += '#';
  }
  return masked;
}

TEST(LoggingTest, TheSinkGetsTheWholeMessage) {
  Recorder recorder;
  const Logger logger("session-1", Severity::kInfo, 0, recorder.sink());
  TENON_LOG(logger, kWarning, "{} of {}", 1, "two");
  ASSERT_EQ(recorder.entries.size(), 1u);
  const Entry& entry = recorder.entries[0];
  EXPECT_EQ(entry.severity, Severity::kWarning);
  EXPECT_EQ(entry.category, "tenon");
  EXPECT_EQ(entry.log_id, "session-1");
  EXPECT_EQ(entry.message, "1 of two");
  EXPECT_EQ(WithoutNumbers(entry.code_location), "logging_test.cpp:# TestBody");
}

TEST(LoggingTest, BelowTheLevelNothingIsEvaluated) {
  Recorder recorder;
  Logger logger("", Severity::kWarning, 0, recorder.sink());
  int evaluations = 0;
  TENON_LOG(logger, kInfo, "{}", ++evaluations);
  EXPECT_EQ(evaluations, 0);
  logger.Log(Severity::kInfo, "c", "l", "m");
  EXPECT_EQ(recorder.entries.size(), 0u);
  logger.set_severity(Severity::kInfo);
  TENON_LOG(logger, kInfo, "{}", ++evaluations);
  EXPECT_EQ(evaluations, 1);
  EXPECT_EQ(recorder.entries.size(), 1u);
}

TEST(LoggingTest, VerbosityLimitsDetails) {
  struct Case {
    Severity severity;
    int verbosity, level;
    bool written;
  };
  for (const Case& c : {Case{Severity::kVerbose, 0, 0, true}, Case{Severity::kVerbose, 0, 1, false},
                        Case{Severity::kVerbose, 2, 2, true}, Case{Severity::kInfo, 2, 0, false}}) {
    Recorder recorder;
    const Logger logger("", c.severity, c.verbosity, recorder.sink());
    TENON_VLOG(logger, c.level, "detail");
    EXPECT_EQ(recorder.entries.size(), c.written ? 1u : 0u) << c.verbosity << " " << c.level;
  }
}

TEST(LoggingTest, StandardErrorGetsOneLineWithTheTime) {
  const Logger logger("id");
  testing::internal::CaptureStderr();
  logger.Log(Severity::kError, "category", "file.cpp:7 F", "what happened");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(WithoutNumbers(text), "#-#-# #:#:#.# [E:category:id, file.cpp:# F] what happened\n");
  EXPECT_EQ(text.find(" ["), std::string_view("2025-01-31 12:34:56.123456").size());
}

TEST(LoggingTest, LinesOfSeveralThreadsStayWhole) {
  constexpr size_t kThreads = 4;
  constexpr size_t kLines = 100;
  const Logger logger("id");
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (size_t j = 0; j < kLines; ++j) TENON_LOG(logger, kError, "abcdefghijklmnopqrstuvwxyz");
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = testing::internal::GetCapturedStderr();
  size_t whole = 0;
  for (size_t at = 0; (at = text.find("] abcdefghijklmnopqrstuvwxyz\n20", at)) != text.npos; ++at) {
    ++whole;
  }
  EXPECT_EQ(whole, kThreads * kLines - 1) << "the last line has no successor";
}

TEST(LoggingTest, AThrowingSinkDoesNoHarm) {
  const Logger logger("id", Severity::kVerbose, 0,
                      {.write = [](void*, Severity, const char*, const char*, const char*,
                                   const char*) { throw std::runtime_error("sink"); }});
  TENON_LOG(logger, kError, "text");
  const Logger silent("id", Severity::kVerbose, 0, LogSink{});
  TENON_LOG(silent, kError, "text");
}

}  // namespace
}  // namespace tenon
