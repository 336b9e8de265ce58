// Shows what nodes read and make while they run: partial-execution TX-72 to TX-77.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "runtime/frame.h"
#include "runtime/node_dump_settings.h"
#include "runtime/plan.h"

namespace tenon {

// Gets text in pieces that belong together: what a node reads, then what it makes. Thread-safe.
class NodeDump {
 public:
  using Print = std::function<void(std::string_view text)>;

  // Writes to standard output without `print`, which may be called from several threads, one after
  // the other.
  explicit NodeDump(NodeDumpSettings settings, Print print = nullptr);

  // What the environment of the process asked for when it was first read; null: nothing. Error:
  // that of NodeDumpSettings::Read.
  static Result<NodeDump*> OfProcess();

  const NodeDumpSettings& settings() const { return settings_; }

 private:
  friend class StepDump;

  // `header` comes first unless the last piece was of the same number.
  void Write(uint64_t number, const std::string& header, const std::string& text);

  const NodeDumpSettings settings_;
  const Print print_;
  Mutex mutex_;
  uint64_t last_number_ = 0;  // given to a run of a node
  uint64_t last_written_ = 0;
};

// One run of one step. What it reads must be done when Inputs is called, and what it makes when
// Outputs is. Errors: kFail naming a file that could not be written.
class StepDump {
 public:
  // `execution` counts the runs of the plan from 1 on.
  StepDump(NodeDump& dump, const Plan& plan, const Step& step, uint64_t execution);

  // Whether anything of the node is to be shown; nothing else is called if not.
  bool is_wanted() const;
  Status Inputs(const Frame& frame);
  Status Outputs(const Frame& frame);

 private:
  // One of the step's inputs or outputs; null: left out.
  Status Show(std::string_view what, size_t i, Slot slot, const Value* value, bool shows_data,
              std::string& text) const;
  Status ShowTensor(const std::string& name, const Tensor& tensor, bool shows_data,
                    std::string& text) const;
  Status ShowData(const std::string& name, const Tensor& tensor, std::string& text) const;
  Result<Tensor> OnHost(const Tensor& tensor) const;
  std::string Header() const;

  NodeDump& dump_;
  const NodeDumpSettings& settings_;
  const Plan& plan_;
  const Step& step_;
  const uint64_t execution_;
  uint64_t number_ = 0;
};

}  // namespace tenon
