// Shows what nodes read and make while they run: partial-execution, TX-72 to TX-77.
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

// Writes text in pieces: what a node reads, then what it makes. Thread-safe.
class NodeDump {
 public:
  using Print = std::function<void(std::string_view text)>;

  // Calls `print`, from several threads but one at a time; without it, writes to standard output.
  explicit NodeDump(NodeDumpSettings settings, Print print = nullptr);

  // The dump that the process's environment asked for when it was first read; null: none. Error:
  // that of NodeDumpSettings::Read.
  static Result<NodeDump*> OfProcess();

  const NodeDumpSettings& settings() const { return settings_; }

 private:
  friend class StepDump;

  // Writes `header` first unless the last piece had the same number.
  void Write(uint64_t number, const std::string& header, const std::string& text);

  const NodeDumpSettings settings_;
  const Print print_;
  Mutex mutex_;
  uint64_t last_number_ = 0;  // the last one given to a node's run
  uint64_t last_written_ = 0;
};

// Dumps one run of one step. What the step reads must be complete when Inputs is called, and what
// it makes when Outputs is called. Errors: kFail naming a file that could not be written.
class StepDump {
 public:
  // `execution` counts the runs of the plan from 1 on.
  StepDump(NodeDump& dump, const Plan& plan, const Step& step, uint64_t execution);

  // Whether anything of the node is to be shown. If not, nothing else is called.
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
