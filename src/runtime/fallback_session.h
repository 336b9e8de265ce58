// A session that is made anew, once, without a provider that failed: python-fallback, section 3.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "runtime/fallback_report.h"
#include "runtime/session.h"

namespace tenon {

class RunMeter;
struct RunReport;

struct FallbackOptions {
  bool is_on = false;
  // What the second session is made with; empty: the providers that ran and did not fail, then the
  // last one. A provider that failed is left out of it.
  std::vector<std::string> providers;
  // Domains of nodes that must not run twice.
  std::set<std::string, std::less<>> blocked_domains;
  // Whether the model can be had again.
  bool has_model = true;

  // Of the config entries that begin with "tenon.ep_fail_fallback".
  static FallbackOptions From(const StringMap& config);
};

// What a session is to be made with.
struct SessionRequest {
  std::vector<std::string> providers;  // names, most preferred first
  std::shared_ptr<Profiler> profiler;  // of the session before it; null: as its options say
  FailedNode* failed;                  // SessionParts::failed
};

// Makes the first session, and the second.
using SessionBuilder = std::function<Result<std::unique_ptr<Session>>(const SessionRequest&)>;

// Queries give the same answers before and after a fallback. Run may be called from several threads
// at once; it costs nothing more than the session's own if the fallback is off.
class FallbackSession {
 public:
  // A first session of these providers, or of the fallback's if one of them fails to compile nodes
  // or to make their kernels with kEpFail.
  static Result<std::unique_ptr<FallbackSession>> Create(FallbackOptions options,
                                                         std::vector<std::string> providers,
                                                         SessionBuilder build);
  ~FallbackSession();
  FallbackSession(const FallbackSession&) = delete;
  FallbackSession& operator=(const FallbackSession&) = delete;

  // As Session::Run. If a node fails with kEpFail, the run is repeated on a session without its
  // provider; if that is not possible, the failure is returned as it is.
  Status Run(const RunOptions& options, std::span<const std::string_view> feed_names,
             std::span<const Value> feeds, std::span<const std::string_view> fetch_names,
             std::span<Value> fetches, std::span<const MemoryInfo* const> fetch_memory = {});

  // Lives as long as this. Its names and types are those of all sessions.
  Session& first() const { return *first_; }
  // The session that runs use. Lives as long as this.
  Session& current() const { return *newest_.load(); }
  const std::vector<SessionValue>& inputs() const { return first_->inputs(); }
  const std::vector<SessionValue>& outputs() const { return first_->outputs(); }
  const std::vector<SessionValue>& overridable_initializers() const {
    return first_->overridable_initializers();
  }
  const Model& model() const { return current().model(); }
  std::span<const std::unique_ptr<ExecutionProvider>> providers() const {
    return current().providers();
  }

  // What became of the fallback; while it is off, the last failure of a provider.
  FallbackReport report() const;

 private:
  // Held by the runs of a session; the last one that goes ends a session that was replaced.
  struct Lease;
  // The arguments of Run.
  struct Arguments;

  FallbackSession(FallbackOptions options, std::vector<std::string> providers,
                  SessionBuilder build);
  Status CreateFirst();
  std::shared_ptr<Lease> TakeLease() const;
  Status RunWatched(const Arguments& arguments);
  Status RunWatched(const Arguments& arguments, RunReport& report, RunMeter* meter);
  // Why the run is not to be repeated; null: it may be.
  const char* WhyNotRepeated(const Arguments& arguments, const Session& session,
                             const FailedNode& failed) const;
  bool ReachesMemory(const Session& session, const FailedNode& failed,
                     const MemoryInfo& memory) const;
  // The session that the run is to be repeated on. Null, with the reason in `*why_not`, if there is
  // none. Waits for a thread that is at it already.
  std::shared_ptr<Lease> Replace(const Status& cause, const FailedNode& failed,
                                 const char** why_not);
  Result<std::unique_ptr<Session>> BuildSecond(const std::vector<std::string>& providers);
  std::vector<std::string> ChooseProviders(const FailedNode& failed, const Session* session) const;
  // Tells log and trace.
  static void Announce(const FallbackReport& report, const Session& session, int64_t begin);
  // For those who fall back by other means.
  void NoteFailure(const Status& cause, const FailedNode& failed);
  void NoteNotReplayed(uint64_t run_id, const char* reason);

  const FallbackOptions options_;
  const std::vector<std::string> providers_;
  SessionBuilder build_;      // null once it will not be called any more
  bool may_replace_ = false;  // whether the first session may be replaced
  std::atomic<uint64_t> runs_ = 0;
  std::unique_ptr<Session> first_, second_;
  std::atomic<Session*> newest_ = nullptr;
  Mutex replacing_;  // held while the second session is made
  mutable Mutex mutex_;
  std::shared_ptr<Lease> lease_;  // of the newest session; null while there is none
  FallbackReport report_;
};

}  // namespace tenon
