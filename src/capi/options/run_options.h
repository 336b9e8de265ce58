// OrtRunOptions: settings of one run.
#pragma once

#include <onnxruntime_c_api.h>

#include <atomic>
#include <vector>

#include "runtime/run_options.h"
#include "runtime/run_report.h"

struct OrtRunOptions {
  OrtRunOptions() { run.terminate = &terminate; }
  OrtRunOptions(const OrtRunOptions&) = delete;
  OrtRunOptions& operator=(const OrtRunOptions&) = delete;

  tenon::RunOptions run;
  std::atomic<bool> terminate = false;
  tenon::RunReports reports;  // used if the client requested them
  std::vector<const OrtLoraAdapter*> adapters;
};
