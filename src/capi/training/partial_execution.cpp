// Partial execution of training graphs, for clients.
#include "capi/training/partial_execution.h"

#include <tenon_training_c_api.h>

#include <memory>
#include <utility>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/experimental.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/status.h"
#include "capi/options/run_options.h"
#include "capi/session/fetched_values.h"
#include "capi/session/session_handle.h"
#include "capi/value/allocator.h"
#include "training/training_agent.h"

struct TenonPartialState {
  tenon::PartialGraphExecutionState state;
};

struct TenonValueCache {
  tenon::ValueCache cache;
};

struct TenonTrainingAgent {
  std::shared_ptr<OrtSession> session;
  std::unique_ptr<tenon::TrainingAgent> agent;
};

namespace tenon::capi {
namespace {

template <class Object>
OrtStatus* Create(Object** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    *out = new Object;
    return OkStatus();
  });
}

template <class Object>
void Release(Object* object) noexcept {
  delete object;
}

OrtStatus* CacheInsert(TenonValueCache* cache, const char* name, const OrtValue* value) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(cache);
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(value);
    return cache->cache.Insert(name, *Unwrap(value));
  });
}

OrtStatus* CacheRemove(TenonValueCache* cache, const char* name) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(cache);
    TENON_RETURN_IF_NULL(name);
    return cache->cache.Remove(name);
  });
}

OrtStatus* CacheCount(const TenonValueCache* cache, const char* name, size_t* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(cache);
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(out);
    *out = cache->cache.Contains(name) ? 1 : 0;
    return OkStatus();
  });
}

OrtStatus* CacheKeys(const TenonValueCache* cache, OrtAllocator* allocator, char*** names,
                     size_t* count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(cache);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(names);
    TENON_RETURN_IF_NULL(count);
    const std::vector<std::string> keys = cache->cache.Keys();
    const std::vector<std::string_view> texts(keys.begin(), keys.end());
    TENON_ASSIGN_OR_RETURN(*names, CopyStrings(allocator, texts));
    *count = keys.size();
    return OkStatus();
  });
}

OrtStatus* CacheClear(TenonValueCache* cache) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(cache);
    cache->cache.Clear();
    return OkStatus();
  });
}

Result<std::vector<std::string>> CopyNames(const char* const* names, size_t count,
                                           const char* what) {
  std::vector<std::string> copies;
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) return InvalidArgument("{}[{}] must not be null", what, i);
    copies.emplace_back(names[i]);
  }
  return copies;
}

Result<TrainingAgentParts> PartsOf(const TenonTrainingAgentInfo& info) {
  TENON_RETURN_IF_NULL_ARRAY(info.feed_names, info.feed_count);
  TENON_RETURN_IF_NULL_ARRAY(info.fetch_names, info.fetch_count);
  TENON_RETURN_IF_NULL_ARRAY(info.stage_fetch_counts, info.stage_count);
  TrainingAgentParts parts;
  TENON_ASSIGN_OR_RETURN(parts.feed_names,
                         CopyNames(info.feed_names, info.feed_count, "feed_names"));
  TENON_ASSIGN_OR_RETURN(parts.fetch_names,
                         CopyNames(info.fetch_names, info.fetch_count, "fetch_names"));
  size_t next = 0;
  for (size_t stage = 0; stage < info.stage_count; ++stage) {
    TENON_RETURN_IF_NULL_ARRAY(info.fetch_memory, info.stage_fetch_counts[stage]);
    std::vector<const MemoryInfo*>& memory = parts.fetch_memory.emplace_back();
    for (size_t i = 0; i < info.stage_fetch_counts[stage]; ++i, ++next) {
      const OrtMemoryInfo* const wanted = info.fetch_memory[next];
      memory.push_back(wanted == nullptr ? &CpuMemory() : Unwrap(wanted));
    }
  }
  return parts;
}

OrtStatus* CreateAgent(OrtSession* session, const TenonTrainingAgentInfo* info,
                       TenonTrainingAgent** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckReady(session));
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(TrainingAgentParts parts, PartsOf(*info));
    auto made = std::make_unique<TenonTrainingAgent>();
    made->session = Hold(session);
    std::shared_ptr<Session> inner(made->session, &session->session->current());
    TENON_ASSIGN_OR_RETURN(made->agent, TrainingAgent::Create(std::move(inner), std::move(parts)));
    *out = made.release();
    return OkStatus();
  });
}

void ReleaseAgent(TenonTrainingAgent* agent) noexcept {
  if (agent == nullptr) return;
  const std::shared_ptr<OrtSession> session = std::move(agent->session);
  delete agent;
  if (session->holders == 1) {
    session->session->current().set_end_reason(SessionEndReason::kAgentClosed);
  }
}

OrtStatus* SetLocalRank(TenonTrainingAgent* agent, int32_t rank) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(agent);
    agent->agent->SetLocalRank(rank);
    return OkStatus();
  });
}

OrtStatus* StageCounts(const TenonTrainingAgent* agent, size_t stage, size_t* feeds,
                       size_t* fetches) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(agent);
    TENON_RETURN_IF_NULL(feeds);
    TENON_RETURN_IF_NULL(fetches);
    TENON_RETURN_IF_ERROR(CheckIndex(stage, agent->agent->stage_count(), "stages"));
    *feeds = agent->agent->feed_names(stage).size();
    *fetches = agent->agent->fetch_names(stage).size();
    return OkStatus();
  });
}

// `stage` selects an agent's stage.
template <class Stage>
OrtStatus* Run(const TenonTrainingAgent* agent, Stage stage, const OrtRunOptions* options,
               const OrtValue* const* feeds, size_t feed_count, OrtValue** fetches,
               size_t fetch_count, TenonPartialState* state,
               const TenonValueCache* cache) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(agent);
    TENON_RETURN_IF_NULL(state);
    TENON_RETURN_IF_NULL_ARRAY(feeds, feed_count);
    TENON_RETURN_IF_NULL_ARRAY(fetches, fetch_count);
    const size_t index = stage(*agent->agent);
    TENON_RETURN_IF_ERROR(CheckIndex(index, agent->agent->stage_count(), "stages"));
    const size_t expected = agent->agent->fetch_names(index).size();
    if (fetch_count != expected) {
      return InvalidArgument("stage {}: expected {} fetches, got {}", index, expected, fetch_count);
    }
    std::vector<Value> fed(feed_count), fetched(fetch_count);
    for (size_t i = 0; i < feed_count; ++i) {
      if (feeds[i] != nullptr) fed[i] = *Unwrap(feeds[i]);
    }
    for (size_t i = 0; i < fetch_count; ++i) {
      if (fetches[i] != nullptr) fetched[i] = *Unwrap(fetches[i]);
    }
    const RunOptions defaults;
    TENON_RETURN_IF_ERROR(
        agent->agent->RunStage(index, options == nullptr ? defaults : options->run, fed, fetched,
                               state->state, cache == nullptr ? nullptr : &cache->cache));
    HandOver(fetched, fetches);
    return OkStatus();
  });
}

OrtStatus* RunStage(const TenonTrainingAgent* agent, size_t stage, const OrtRunOptions* options,
                    const OrtValue* const* feeds, size_t feed_count, OrtValue** fetches,
                    size_t fetch_count, TenonPartialState* state,
                    const TenonValueCache* cache) noexcept {
  const auto that = [stage](const TrainingAgent&) { return stage; };
  return Run(agent, that, options, feeds, feed_count, fetches, fetch_count, state, cache);
}

OrtStatus* RunForward(const TenonTrainingAgent* agent, const OrtRunOptions* options,
                      const OrtValue* const* feeds, size_t feed_count, OrtValue** fetches,
                      size_t fetch_count, TenonPartialState* state,
                      const TenonValueCache* cache) noexcept {
  const auto first = [](const TrainingAgent&) { return size_t{0}; };
  return Run(agent, first, options, feeds, feed_count, fetches, fetch_count, state, cache);
}

OrtStatus* RunBackward(const TenonTrainingAgent* agent, const OrtRunOptions* options,
                       const OrtValue* const* feeds, size_t feed_count, OrtValue** fetches,
                       size_t fetch_count, TenonPartialState* state) noexcept {
  const auto last = [](const TrainingAgent& all) { return all.stage_count() - 1; };
  return Run(agent, last, options, feeds, feed_count, fetches, fetch_count, state, nullptr);
}

}  // namespace

OrtExperimentalFnPtr FindPartialExecutionFunction(std::string_view name) {
  if (name == TENON_CREATE_PARTIAL_STATE) {
    return Untyped<TenonCreatePartialState>(&Create<TenonPartialState>);
  }
  if (name == TENON_RELEASE_PARTIAL_STATE) {
    return Untyped<TenonReleasePartialState>(&Release<TenonPartialState>);
  }
  if (name == TENON_CREATE_VALUE_CACHE) {
    return Untyped<TenonCreateValueCache>(&Create<TenonValueCache>);
  }
  if (name == TENON_RELEASE_VALUE_CACHE) {
    return Untyped<TenonReleaseValueCache>(&Release<TenonValueCache>);
  }
  if (name == TENON_VALUE_CACHE_INSERT) return Untyped<TenonValueCacheInsert>(&CacheInsert);
  if (name == TENON_VALUE_CACHE_REMOVE) return Untyped<TenonValueCacheRemove>(&CacheRemove);
  if (name == TENON_VALUE_CACHE_COUNT) return Untyped<TenonValueCacheCount>(&CacheCount);
  if (name == TENON_VALUE_CACHE_KEYS) return Untyped<TenonValueCacheKeys>(&CacheKeys);
  if (name == TENON_VALUE_CACHE_CLEAR) return Untyped<TenonValueCacheClear>(&CacheClear);
  if (name == TENON_CREATE_TRAINING_AGENT) return Untyped<TenonCreateTrainingAgent>(&CreateAgent);
  if (name == TENON_RELEASE_TRAINING_AGENT) {
    return Untyped<TenonReleaseTrainingAgent>(&ReleaseAgent);
  }
  if (name == TENON_TRAINING_AGENT_STAGE_COUNTS) {
    return Untyped<TenonTrainingAgentStageCounts>(&StageCounts);
  }
  if (name == TENON_TRAINING_AGENT_SET_LOCAL_RANK) {
    return Untyped<TenonTrainingAgentSetLocalRank>(&SetLocalRank);
  }
  if (name == TENON_RUN_STAGE) return Untyped<TenonRunStage>(&RunStage);
  if (name == TENON_RUN_FORWARD) return Untyped<TenonRunForward>(&RunForward);
  if (name == TENON_RUN_BACKWARD) return Untyped<TenonRunBackward>(&RunBackward);
  return nullptr;
}

}  // namespace tenon::capi
