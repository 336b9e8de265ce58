// Inputs and outputs that are set once and used by many runs.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/config.h"
#include "runtime/run_options.h"
#include "runtime/session.h"

namespace tenon {

// Belongs to one session, which must outlive it. Not thread-safe; no run with it may be in flight
// when it changes.
class IoBinding {
 public:
  explicit IoBinding(Session& session) : session_(session) {}

  // Names are bound anew or get another value. Errors: kInvalidArgument for a name that the session
  // does not have.
  Status BindInput(std::string_view name, Value value);
  // The value is written in place if it is a tensor; kNone: every run makes a new value.
  Status BindOutput(std::string_view name, Value value) {
    return BindOutputTo(name, CpuMemory(), std::move(value));
  }
  // The same, but a new value is made in `memory`, which lives as long as the binding.
  Status BindOutputTo(std::string_view name, const MemoryInfo& memory, Value value = {});
  void ClearInputs() { inputs_.Clear(); }
  void ClearOutputs();

  // Names of the bound inputs.
  std::span<const std::string_view> input_names() const { return inputs_.names; }
  // Names of the bound outputs in the order of their binding, and what the last run put there:
  // kNone before the first.
  std::vector<std::string_view> output_names() const;
  std::vector<Value> results() const;

  // Runs the session; errors are those of Session::Run. Allocates nothing of its own after the
  // first run. With the config entry "tenon.takes_bound_inputs" set to "1", the run takes the
  // inputs out of the binding, drops each after its last reader, and is not repeated on another
  // session.
  Status Run(const RunOptions& options) { return RunOn(session_, options); }
  // The same on what stands for the session, such as a FallbackSession.
  template <class AnySession>
  Status RunOn(AnySession& session, const RunOptions& options) {
    std::copy(outputs_.values.begin(), outputs_.values.end(), results_.begin());
    const auto run = [&](const RunOptions& with) {
      return session.Run(with, inputs_.names, inputs_.values, outputs_.names, results_,
                         output_memory_);
    };
    if (!ConfigFlag(options.config, "tenon.takes_bound_inputs", false)) return run(options);
    RunOptions taking = options;
    taking.given = inputs_.values;
    taking.not_repeatable = "inputs_taken";
    Status status = run(taking);
    ClearInputs();
    return status;
  }

 private:
  // What is bound, in the session's order, in which runs need not look for names.
  struct Bindings {
    std::vector<size_t> places;           // in the session
    std::vector<std::string_view> names;  // the session's own texts
    std::vector<Value> values;

    // Where the place is, or is to be inserted.
    size_t IndexOf(size_t place) const;
    bool Has(size_t index, size_t place) const {
      return index < places.size() && places[index] == place;
    }
    void Insert(size_t index, size_t place, std::string_view name);
    void Clear();
  };

  Session& session_;
  Bindings inputs_;
  Bindings outputs_;
  std::vector<const MemoryInfo*> output_memory_;
  std::vector<Value> results_;
  std::vector<size_t> output_order_;  // places in the order of their binding
};

}  // namespace tenon
