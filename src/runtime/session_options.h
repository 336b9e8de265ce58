// The options of a session that its user sets.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/logging.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/string_map.h"
#include "base/thread_pool_options.h"

namespace tenon {

struct Model;

// Numbers of GraphOptimizationLevel.
enum class OptimizationLevel : int32_t {
  kNone = 0,
  kBasic = 1,
  kExtended = 2,
  kLayout = 3,
  kAll = 99
};

struct SessionOptions {
  // 0: the environment's threads; else a pool of this session's own.
  int intra_op_threads = 0;
  // How the session's own threads are made. With callbacks it always has its own threads.
  ThreadCallbacks thread_callbacks;
  // Called around the work of the session's threads. With callbacks it always has its own threads.
  WorkCallbacks work_callbacks;
  OptimizationLevel optimization_level = OptimizationLevel::kAll;
  // Sizes for symbolic dimensions of inputs, by name and by denotation.
  std::map<std::string, int64_t> free_dimensions;
  std::map<std::string, int64_t> free_dimensions_by_denotation;
  // Whether axes of inputs whose sizes have the same name are taken to have the same size. A run
  // that feeds them otherwise fails.
  bool equal_names_are_equal_sizes = true;
  // Where to write the model as the general passes leave it, before any provider's fusions and
  // layouts; "": nowhere.
  std::string optimized_model_path;
  // Receives that model; may be null. Its failure fails the session's creation.
  std::function<Status(const Model&)> on_optimized_model = {};
  // Receives the model when providers have claimed and fused nodes and have not yet rewritten it;
  // may be null. Its failure fails the session's creation.
  std::function<Status(const Model&)> on_partitioned_model = {};
  // Receives what the config entry tenon.rewrite_limit allowed, in order; may be null.
  std::vector<std::string>* rewrites = nullptr;
  // Whether memory is planned for feed shapes that were seen before.
  bool plans_memory = true;
  // The user asked for branches of the graph to run in parallel. This has no effect, except that
  // partial runs refuse such a session.
  bool is_parallel = false;
  std::string log_id;
  std::optional<Severity> severity;  // the environment's if absent
  int log_verbosity = 0;
  std::optional<LogSink> log_sink;  // the environment's if absent; outlives the session
  // Called as the session is made; an answer of 0 ends that with kModelLoadCanceled.
  Progress progress;
  // Session config entries by key, e.g. "session.intra_op.allow_spinning".
  StringMap config;
};

}  // namespace tenon
