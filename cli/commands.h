// The subcommands; each returns the exit code, or throws Error or Ort::Exception.
#pragma once

#include <string>
#include <vector>

#include "bisect.h"
#include "model.h"
#include "trainer.h"
#include "training_plan.h"
#include "values.h"

namespace tenon::cli {

struct RunCommand {
  SessionSettings session;
  FeedSettings feeds;
  std::vector<std::string> outputs;  // folder, archive .npz, or NAME=FILE.npy
  int top_k = 0;                     // 0: no ranking, unless labels are given
  std::string labels;                // file with one label per line
  bool json = false;
};
int Run(const RunCommand& command);

struct InspectCommand {
  std::string model;
  std::vector<std::string> dims;
  bool quantization = false;  // says instead which quantized operators do not run in integers
  bool json = false;
};
int Inspect(const InspectCommand& command);

// Exit code 1 if one of the models is not valid, or if optimizations change its outputs too much.
struct CheckCommand {
  std::vector<std::string> models;
  bool bisects = false;   // also looks for the optimization that changes outputs
  BisectSettings bisect;  // but for the model
  bool json = false;
};
int Check(const CheckCommand& command);

struct BenchCommand {
  SessionSettings session;
  FeedSettings feeds;
  int runs = 0;  // 0: as many as fit into `seconds`
  double seconds = 2;
  int warmup = 3;  // runs after the first one that do not count
  bool json = false;
};
int Bench(const BenchCommand& command);

struct ProfileCommand {
  SessionSettings session;
  FeedSettings feeds;
  int runs = 5;
  std::string trace;   // file; "": <name of the model>.trace.json in the current folder
  std::string report;  // file; "": <name of the model>.profile.html
  bool json = false;
};
int Profile(const ProfileCommand& command);

// Exit code 130 after SIGINT.
struct TrainCommand {
  ArtifactPaths artifacts;
  int threads = 0;
  std::vector<std::string> data, validation;  // sources of samples
  TrainingOptions options;
  std::string checkpoint = "trained_checkpoint";  // to be written
  int64_t save_every = 1;                         // epochs
  bool resume = false;                            // continues from `checkpoint`
  std::string export_path;                        // "": no model for inference is written
  std::vector<std::string> export_outputs;
  bool json = false;
};
int Train(const TrainCommand& command);

struct EpsCommand {
  std::vector<std::string> plugins;
  bool json = false;
};
int Eps(const EpsCommand& command);

struct PlacementCommand {
  SessionSettings session;
  bool json = false;
};
int Placement(const PlacementCommand& command);

}  // namespace tenon::cli
