#include "runtime/fallback_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/sleep.h"
#include "runtime/config.h"
#include "runtime/profiler.h"
#include "runtime/run_attempt.h"
#include "runtime/run_options.h"
#include "runtime/run_report.h"
#include "runtime/run_verifier.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostNotReplayed = 100;  // in one report

int64_t Milliseconds(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

std::vector<std::string> SplitNames(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view name = text.substr(0, comma);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) names.emplace_back(name);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return names;
}

std::string TextOf(const StringMap& config, std::string_view key) {
  const auto entry = config.find(key);
  return entry == config.end() ? std::string() : entry->second;
}

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool IsOutOfMemory(const Status& status) {
  return status.message().find("out of memory") != std::string::npos ||
         status.message().find("bad_alloc") != std::string::npos;
}

bool Overlap(const Value& a, const Value& b) {
  if (!a.is_tensor() || !b.is_tensor()) return false;
  const auto begin = [](const Value& value) {
    return reinterpret_cast<uintptr_t>(value.tensor().raw());
  };
  const auto end = [&](const Value& value) { return begin(value) + value.tensor().bytes(); };
  return begin(a) < end(b) && begin(b) < end(a);
}

// Which providers own nodes of `graph` or its subgraphs.
void MarkOwners(const Graph& graph, std::vector<bool>& owns) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* const node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    if (node->provider >= 0) owns[static_cast<size_t>(node->provider)] = true;
    for (const Graph* const subgraph : node->Subgraphs()) MarkOwners(*subgraph, owns);
  }
}

}  // namespace

struct FallbackSession::Lease {
  Lease(Session& leased, std::vector<std::string> names)
      : session(leased), providers(std::move(names)) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    if (nameless != nullptr) nameless->End(SessionEndReason::kReleased, true);
    if (is_replaced) session.End(SessionEndReason::kReplacedByFallback, true);
  }

  Session& session;
  const std::vector<std::string> providers;
  bool is_replaced = false;           // set before another lease becomes the newest
  std::unique_ptr<Session> nameless;  // does not trust names of dimensions; guarded by replacing_
};

struct FallbackSession::Arguments {
  Status RunOn(Session& session, RunAttempt& attempt) const {
    return session.Run(options, feed_names, feeds, fetch_names, fetches, fetch_memory, &attempt);
  }

  const RunOptions& options;
  std::span<const std::string_view> feed_names;
  std::span<const Value> feeds;
  std::span<const std::string_view> fetch_names;
  std::span<Value> fetches;
  std::span<const MemoryInfo* const> fetch_memory;
};

FallbackOptions FallbackOptions::From(const StringMap& config) {
  FallbackOptions options;
  options.is_on = ConfigFlag(config, "tenon.ep_fail_fallback", false);
  const std::string providers = TextOf(config, "tenon.ep_fail_fallback.providers");
  if (providers != "auto") options.providers = SplitNames(providers);
  for (std::string& domain : SplitNames(TextOf(config, "tenon.ep_fail_fallback.block_domains"))) {
    options.blocked_domains.insert(std::move(domain));
  }
  return options;
}

FallbackSession::FallbackSession(FallbackOptions options, std::vector<std::string> providers,
                                 SessionBuilder build)
    : options_(std::move(options)), providers_(std::move(providers)), build_(std::move(build)) {
  report_.state = options_.is_on ? FallbackState::kArmed : FallbackState::kOff;
  report_.from = providers_;
}

FallbackSession::~FallbackSession() {
  // The second session is ended first: it may go on with the trace of the first.
  lease_.reset();
  second_.reset();
}

Result<std::unique_ptr<FallbackSession>> FallbackSession::Create(FallbackOptions options,
                                                                 std::vector<std::string> providers,
                                                                 SessionBuilder build) {
  std::unique_ptr<FallbackSession> session(
      new FallbackSession(std::move(options), std::move(providers), std::move(build)));
  TENON_RETURN_IF_ERROR(session->CreateFirst());
  session->newest_ = session->first_.get();
  const FallbackReport& report = session->report_;
  session->lease_ = std::make_shared<Lease>(
      *session->first_, report.state == FallbackState::kUsed ? report.to : session->providers_);
  session->may_replace_ = session->report_.state == FallbackState::kArmed;
  const bool may_follow = session->may_replace_ || !session->options_.trusts_dim_names;
  if (!may_follow) session->build_ = nullptr;
  return session;
}

Status FallbackSession::CreateFirst() {
  FailedNode failed;
  Result<std::unique_ptr<Session>> session = build_({providers_, nullptr, &failed});
  if (session) {
    first_ = std::move(*session);
    return OkStatus();
  }
  const bool may_fall_back = options_.is_on && options_.has_model && failed.provider >= 0 &&
                             session.error().code() == StatusCode::kEpFail;
  std::vector<std::string> others = ChooseProviders(failed, nullptr);
  if (!may_fall_back || others == providers_) return std::move(session.error());
  const Clock::time_point begin = Clock::now();
  Result<std::unique_ptr<Session>> second = build_({others, nullptr, nullptr});
  if (!second) return std::move(session.error());
  first_ = std::move(*second);
  report_.state = FallbackState::kUsed;
  report_.to = std::move(others);
  report_.failed = std::move(failed);
  report_.cause = std::move(session.error());
  report_.rebuild_ms = Milliseconds(Clock::now() - begin);
  const Profiler* const profiler = first_->profiler().get();
  Announce(report_, *first_, profiler == nullptr ? 0 : profiler->Now());
  return OkStatus();
}

Status FallbackSession::Run(const RunOptions& options, std::span<const std::string_view> feed_names,
                            std::span<const Value> feeds,
                            std::span<const std::string_view> fetch_names, std::span<Value> fetches,
                            std::span<const MemoryInfo* const> fetch_memory) {
  const Arguments arguments{options, feed_names, feeds, fetch_names, fetches, fetch_memory};
  if (verifier_ == nullptr) return RunAny(arguments);
  return verifier_->Run(options, feed_names, feeds, fetch_names, fetches,
                        [&] { return RunAny(arguments); });
}

void FallbackSession::SetVerifier(std::unique_ptr<RunVerifier> verifier) {
  verifier_ = std::move(verifier);
}

Status FallbackSession::RunAny(const Arguments& arguments) {
  if (!options_.is_on && arguments.options.reports == nullptr) {
    RunAttempt attempt;
    Status status = arguments.RunOn(*first_, attempt);
    if (status.code() == StatusCode::kEpFail) NoteFailure(status, attempt.failed);
    if (!attempt.has_unequal_names || options_.trusts_dim_names) return status;
  }
  return RunWatched(arguments);
}

std::shared_ptr<FallbackSession::Lease> FallbackSession::TakeLease() const {
  const MutexLock lock(mutex_);
  return lease_;
}

Status FallbackSession::RunWatched(const Arguments& arguments) {
  RunReport report;
  report.run_id = runs_.fetch_add(1) + 1;
  const Clock::time_point begin = Clock::now();
  RunMeter meter;
  const bool is_reported = arguments.options.reports != nullptr;
  Status status = RunWatched(arguments, report, is_reported ? &meter : nullptr);
  report.duration = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  if (!is_reported) return status;
  report.SetMeasured(meter);
  arguments.options.reports->Set(std::move(report));
  return status;
}

Status FallbackSession::RunWatched(const Arguments& arguments, RunReport& report, RunMeter* meter) {
  std::shared_ptr<Lease> lease = TakeLease();
  if (lease == nullptr) {
    const MutexLock wait(replacing_);
    lease = TakeLease();
    if (lease == nullptr) return Fail("the session could not be made anew after a provider failed");
  }
  RunAttempt attempt;
  attempt.meter = meter;
  attempt.may_be_repeated = may_replace_ && &lease->session == first_.get();
  report.attempts = 1;
  Session* ran = nullptr;
  Status status = RunOn(*lease, arguments, attempt, &ran);
  const bool has_provider_failed =
      status.code() == StatusCode::kEpFail && attempt.failed.provider >= 0;
  if (has_provider_failed && !options_.is_on) NoteFailure(status, attempt.failed);
  if (!attempt.may_be_repeated || !has_provider_failed) return status;

  const char* why_not = WhyNotRepeated(arguments, *ran, attempt.failed);
  // Let go of the session: it may have to end before there is memory for the second one.
  lease.reset();
  std::shared_ptr<Lease> next;
  if (why_not == nullptr) next = Replace(status, attempt.failed, &why_not);
  if (next == nullptr) {
    report.reason = why_not;
    NoteNotReplayed(report.run_id, why_not);
    const std::shared_ptr<Profiler>& profiler = first_->profiler();
    if (profiler && attempt.trace_start) {
      TraceSpan span(profiler.get(), TraceCategory::kSession, "model_run");
      span.set_start(*attempt.trace_start);
      span.AddArg("status", std::to_string(static_cast<int>(status.code())));
      span.AddArg("attempts", "1");
    }
    return status;
  }
  report.attempts = 2;
  report.used_fallback = true;
  attempt.number = 2;
  attempt.may_be_repeated = false;
  attempt.failed = {};
  if (meter != nullptr) meter->Clear();
  return RunOn(*next, arguments, attempt, &ran);
}

Status FallbackSession::RunOn(Lease& lease, const Arguments& arguments, RunAttempt& attempt,
                              Session** ran) {
  *ran = &lease.session;
  Status status = arguments.RunOn(lease.session, attempt);
  if (!attempt.has_unequal_names || options_.trusts_dim_names) return status;
  TENON_ASSIGN_OR_RETURN(*ran, NamelessTwin(lease, status));
  return arguments.RunOn(**ran, attempt);
}

Result<Session*> FallbackSession::NamelessTwin(Lease& lease, const Status& cause) {
  const MutexLock lock(replacing_);
  if (lease.nameless == nullptr) {
    TENON_LOG(first_->logger(), kWarning,
              "{}: equal names of dimensions do not mean equal sizes in this model, so the session "
              "is made a second time without them",
              cause.message());
    TENON_ASSIGN_OR_RETURN(lease.nameless,
                           build_({lease.providers, first_->profiler(), nullptr, false}));
  }
  return lease.nameless.get();
}

const char* FallbackSession::WhyNotRepeated(const Arguments& arguments, const Session& session,
                                            const FailedNode& failed) const {
  const RunOptions& options = arguments.options;
  if (options.terminate != nullptr && *options.terminate) return "terminate";
  if (options.not_repeatable != nullptr) return options.not_repeatable;
  if (!options_.has_model) return "no_model";
  const auto is_reached = [&](const Value& value) {
    return !value.is_tensor() || ReachesMemory(session, failed, value.tensor().memory());
  };
  for (const Value& feed : arguments.feeds) {
    if (!is_reached(feed)) return "binding";
  }
  for (const Value& fetch : arguments.fetches) {
    if (!is_reached(fetch)) return "binding";
    for (const Value& feed : arguments.feeds) {
      if (Overlap(fetch, feed)) return "alias";
    }
  }
  for (const MemoryInfo* const memory : arguments.fetch_memory) {
    if (memory != nullptr && !ReachesMemory(session, failed, *memory)) return "binding";
  }
  if (session.HasRunBefore(failed.step, options_.blocked_domains)) return "stateful";
  return nullptr;
}

bool FallbackSession::ReachesMemory(const Session& session, const FailedNode& failed,
                                    const MemoryInfo& memory) const {
  if (memory.IsHostAccessible()) return true;
  const std::vector<std::string> kept = ChooseProviders(failed, &session);
  return std::any_of(session.providers().begin(), session.providers().end(),
                     [&](const auto& provider) {
                       return std::find(kept.begin(), kept.end(), provider->name()) != kept.end() &&
                              provider->memory().SameDevice(memory);
                     });
}

std::vector<std::string> FallbackSession::ChooseProviders(const FailedNode& failed,
                                                          const Session* session) const {
  std::vector<std::string> chosen;
  const auto add = [&](const std::string& name) {
    const bool is_there = std::find(chosen.begin(), chosen.end(), name) != chosen.end();
    if (!is_there && name != failed.provider_name) chosen.push_back(name);
  };
  if (!options_.providers.empty()) {
    for (const std::string& name : options_.providers) add(name);
  } else if (session != nullptr) {
    std::vector<bool> owns(session->providers().size());
    MarkOwners(*session->model().graph, owns);
    for (size_t i = 0; i < owns.size(); ++i) {
      const std::string& name = session->providers()[i]->name();
      const bool has_name =
          std::find(providers_.begin(), providers_.end(), name) != providers_.end();
      if (owns[i] && has_name) add(name);
    }
  } else {
    for (const std::string& name : providers_) add(name);
  }
  // The last provider takes the nodes that the others leave, so it is always used.
  const std::string& last = providers_.back();
  if (std::find(chosen.begin(), chosen.end(), last) == chosen.end()) chosen.push_back(last);
  return chosen;
}

std::shared_ptr<FallbackSession::Lease> FallbackSession::Replace(const Status& cause,
                                                                 const FailedNode& failed,
                                                                 const char** why_not) {
  std::shared_ptr<Lease> old;  // released after the lock: that may end its session
  const MutexLock lock(replacing_);
  if (second_ != nullptr) {
    const MutexLock counted(mutex_);
    ++report_.replays;
    return lease_;
  }
  *why_not = "not_rebuilt";
  if (build_ == nullptr) return nullptr;
  std::vector<std::string> providers = ChooseProviders(failed, first_.get());
  if (providers == providers_) {
    *why_not = "same_providers";
    return nullptr;
  }
  const Profiler* const profiler = first_->profiler().get();
  const int64_t trace_begin = profiler == nullptr ? 0 : profiler->Now();
  const Clock::time_point begin = Clock::now();
  Result<std::unique_ptr<Session>> second = BuildSecond(providers);
  if (options_.trusts_dim_names) build_ = nullptr;
  FallbackReport report;
  {
    const MutexLock changed(mutex_);
    report_.state = second ? FallbackState::kUsed : FallbackState::kFailed;
    report_.to = std::move(providers);
    report_.failed = failed;
    report_.cause = cause;
    report_.rebuild_ms = Milliseconds(Clock::now() - begin);
    if (second) {
      second_ = std::move(*second);
      newest_ = second_.get();
      if (lease_ != nullptr) lease_->is_replaced = true;
      old = std::exchange(lease_, std::make_shared<Lease>(*second_, report_.to));
      ++report_.replays;
    }
    report = report_;
  }
  if (second_ == nullptr) return nullptr;
  Announce(report, *second_, trace_begin);
  return TakeLease();
}

// Builds the second session beside the first if there is memory for both, else after its end.
Result<std::unique_ptr<Session>> FallbackSession::BuildSecond(
    const std::vector<std::string>& providers) {
  const SessionRequest request{providers, first_->profiler(), nullptr};
  Result<std::unique_ptr<Session>> second = build_(request);
  if (second || !IsOutOfMemory(second.error())) return second;
  std::shared_ptr<Lease> old;
  {
    const MutexLock lock(mutex_);
    lease_->is_replaced = true;
    old = std::move(lease_);
  }
  old.reset();  // may end the session, which calls its providers
  while (!first_->has_ended()) SleepFor(std::chrono::microseconds(50));
  return build_(request);
}

void FallbackSession::Announce(const FallbackReport& report, const Session& session,
                               int64_t begin) {
  const std::string code = std::to_string(static_cast<int>(report.cause.code()));
  TENON_LOG(session.logger(), kWarning,
            "{} failed at {} node '{}' (code {}): {}; the session goes on with {}",
            report.failed.provider_name, report.failed.op_type, report.failed.node, code,
            report.cause.message(), Join(report.to));
  TraceSpan span(session.profiler().get(), TraceCategory::kSession, "ep_fallback");
  span.set_start(begin);
  span.AddArg("provider", report.failed.provider_name);
  span.AddArg("node", report.failed.node);
  span.AddArg("code", code);
  span.AddArg("to", Join(report.to));
}

void FallbackSession::NoteFailure(const Status& cause, const FailedNode& failed) {
  const MutexLock lock(mutex_);
  report_.failed = failed;
  report_.cause = cause;
}

void FallbackSession::NoteNotReplayed(uint64_t run_id, const char* reason) {
  const MutexLock lock(mutex_);
  if (report_.not_replayed.size() < kMostNotReplayed) {
    report_.not_replayed.push_back({run_id, reason});
  }
}

FallbackReport FallbackSession::report() const {
  const MutexLock lock(mutex_);
  return report_;
}

}  // namespace tenon
