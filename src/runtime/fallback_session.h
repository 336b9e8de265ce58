// A session that is made a second time: without a provider that failed (python-fallback, section
// 3), or without trust in the names of dimensions.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "runtime/fallback_report.h"
#include "runtime/session.h"
#include "runtime/session_builder.h"

namespace tenon {

class RunMeter;
struct RunReport;
class RunVerifier;

struct FallbackOptions {
  bool is_on = false;
  // The providers of the second session; empty: those that ran and did not fail, then the last one.
  // A provider that failed is always left out.
  std::vector<std::string> providers;
  // Domains of nodes that must not run twice.
  std::set<std::string, std::less<>> blocked_domains;
  // Whether the model can be read again.
  bool has_model = true;
  // Whether a run whose feeds have different sizes where axes have equal names is refused.
  bool trusts_dim_names = true;

  // Reads the config entries that begin with "tenon.ep_fail_fallback".
  static FallbackOptions From(const StringMap& config);
};

// Queries give the same answers before and after a fallback. Run may be called from several threads
// at once. While the fallback is off, Run costs no more than Session::Run.
class FallbackSession {
 public:
  // Makes the first session with these providers, or with the fallback's providers if one of them
  // fails with kEpFail to compile nodes or to make their kernels.
  static Result<std::unique_ptr<FallbackSession>> Create(FallbackOptions options,
                                                         std::vector<std::string> providers,
                                                         SessionBuilder build);
  ~FallbackSession();
  FallbackSession(const FallbackSession&) = delete;
  FallbackSession& operator=(const FallbackSession&) = delete;

  // Like Session::Run. If a node fails with kEpFail, the run is repeated on a session without the
  // node's provider; if that is not possible, the failure is returned as it is. Feeds with
  // different sizes where axes have equal names run on a session that does not take these as equal.
  Status Run(const RunOptions& options, std::span<const std::string_view> feed_names,
             std::span<const Value> feeds, std::span<const std::string_view> fetch_names,
             std::span<Value> fetches, std::span<const MemoryInfo* const> fetch_memory = {});

  // Lets every later run be compared with one without optimizations; null: none is.
  void SetVerifier(std::unique_ptr<RunVerifier> verifier);

  // The first session lives as long as this object. Its names and types are those of both sessions.
  Session& first() const { return *first_; }
  // The session that runs use. It lives as long as this object.
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

  // The state of the fallback; while it is off, the last failure of a provider.
  FallbackReport report() const;

 private:
  // Held by the runs of a session. When the last holder of a replaced session releases it, that
  // session ends.
  struct Lease;
  // The arguments of Run.
  struct Arguments;

  FallbackSession(FallbackOptions options, std::vector<std::string> providers,
                  SessionBuilder build);
  Status CreateFirst();
  std::shared_ptr<Lease> TakeLease() const;
  Status RunAny(const Arguments& arguments);
  Status RunWatched(const Arguments& arguments);
  Status RunWatched(const Arguments& arguments, RunReport& report, RunMeter* meter);
  // The reason why the run must not be repeated; null: it may be.
  const char* WhyNotRepeated(const Arguments& arguments, const Session& session,
                             const FailedNode& failed) const;
  bool ReachesMemory(const Session& session, const FailedNode& failed,
                     const MemoryInfo& memory) const;
  // Runs on the session of `lease`, or on its twin where axes of one name have different sizes.
  // `*ran` is the session that ran.
  Status RunOn(Lease& lease, const Arguments& arguments, RunAttempt& attempt, Session** ran);
  // The twin of the session, which is made for the first feeds that need it, with a warning that
  // tells `cause`.
  Result<Session*> NamelessTwin(Lease& lease, const Status& cause);
  // The session that repeats the run. Null, with the reason in `*why_not`, if there is none. Waits
  // while another thread makes that session.
  std::shared_ptr<Lease> Replace(const Status& cause, const FailedNode& failed,
                                 const char** why_not);
  Result<std::unique_ptr<Session>> BuildSecond(const std::vector<std::string>& providers);
  std::vector<std::string> ChooseProviders(const FailedNode& failed, const Session* session) const;
  // Reports the fallback in the log and in the trace.
  static void Announce(const FallbackReport& report, const Session& session, int64_t begin);
  // Records the failure for callers that fall back by other means.
  void NoteFailure(const Status& cause, const FailedNode& failed);
  void NoteNotReplayed(uint64_t run_id, const char* reason);

  const FallbackOptions options_;
  const std::vector<std::string> providers_;
  SessionBuilder build_;      // null once no call can follow
  bool may_replace_ = false;  // whether the first session may be replaced
  std::atomic<uint64_t> runs_ = 0;
  std::unique_ptr<Session> first_, second_;
  std::atomic<Session*> newest_ = nullptr;
  std::unique_ptr<RunVerifier> verifier_;
  Mutex replacing_;  // held while the second session is made
  mutable Mutex mutex_;
  std::shared_ptr<Lease> lease_;  // of the newest session; may be null
  FallbackReport report_;
};

}  // namespace tenon
