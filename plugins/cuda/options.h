// Options of the provider for one session, under onnxruntime's names for its CUDA provider.
#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "api.h"
#include "device.h"

namespace cuda {

struct Options {
  bool use_tf32 = true;            // float32 products and convolutions may round their inputs
  bool enable_cuda_graph = false;  // whole runs are recorded, for replays
  std::filesystem::path kernel_cache_folder;  // of compiled kernels; empty: none

  // Reads the session's configuration, "ep.cudaexecutionprovider.<name>". Error: a value that is
  // none of the option's. onnxruntime's options that have no meaning here are accepted.
  static Result<Options> Read(const OrtSessionOptions* session_options);
};

class RunRecorder;

// What lowerings and calls know of the session that they are for.
struct Context {
  Device& device;
  Options options;
  const OrtLogger* logger;
  RunRecorder* recorder = nullptr;  // null: runs are not recorded
  // What cuDNN chose for convolutions, by what they are; guarded by the device's dnn_mutex().
  struct ChosenConvolution {
    int algorithm = 0;
    size_t workspace_bytes = 0;
  };
  std::map<std::vector<int64_t>, ChosenConvolution> convolutions = {};

  // Whether a library is there; says once what its absence costs.
  bool HasBlas();
  bool HasDnn();
};

}  // namespace cuda
