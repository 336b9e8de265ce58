// The command `tenon`: its options, and its exit codes.
#include <tenon_c_api.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>

#include "commands.h"
#include "text.h"

namespace tenon::cli {
namespace {

void AddModel(CLI::App& app, std::string& model) {
  app.add_option("MODEL", model, "ONNX model file")->required();
}

void AddJson(CLI::App& app, bool& json) {
  app.add_flag("--json", json, "Print one JSON object instead of text");
}

void AddDims(CLI::App& app, std::vector<std::string>& dims) {
  app.add_option("--dim", dims, "Size of a free dimension; one without a name is called INPUT.AXIS")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
}

void AddPlugins(CLI::App& app, std::vector<std::string>& plugins) {
  app.add_option("--ep", plugins, "Library with execution providers, to be preferred to the CPU")
      ->type_name("LIBRARY")
      ->allow_extra_args(false);
}

void AddSession(CLI::App& app, SessionSettings& settings) {
  AddModel(app, settings.model);
  AddDims(app, settings.dims);
  app.add_option("--threads", settings.threads, "Threads to compute with; 0: as many as cores")
      ->check(CLI::Range(0, 1024));
  AddPlugins(app, settings.plugins);
  app.add_option("--ep-device", settings.plugin_device,
                 "Which of its devices a provider of --ep uses, counted from 0 as `tenon eps` "
                 "lists them; else a GPU, else an NPU, else the first")
      ->type_name("N")
      ->check(CLI::Range(0, 1024))
      ->needs("--ep");
}

void AddFeeds(CLI::App& app, FeedSettings& settings) {
  app.add_option("--input", settings.inputs,
                 "Value of an input. SOURCE: .npy, .npz, PNG, JPEG or WAV file, 'random', 'zeros' "
                 "or a number. NAME= may be left out for an only input, for an .npz with the "
                 "inputs' names, and to mean all other inputs with 'random' or 'zeros'")
      ->type_name("[NAME=]SOURCE")
      ->allow_extra_args(false);
  app.add_option("--seed", settings.seed, "Of 'random'")->capture_default_str();
  const auto picture = [&](const char* name, auto& value, const char* what) {
    return app.add_option(name, value, what)->group("Pictures");
  };
  ImageSettings& image = settings.image;
  picture("--resize", image.resize, "Size; else what the input fixes, else the picture's own")
      ->type_name("WxH");
  picture("--scale", image.scale,
          "Factor of pixels in [0, 255]; else 1/255 for floating point and 1 for integers")
      ->type_name("NUMBER");
  picture("--mean", image.mean, "Taken off after scaling: one number or one per channel")
      ->type_name("A,B,C")
      ->delimiter(',')
      ->allow_extra_args(false);
  picture("--std", image.stddev, "Divided by last: one number or one per channel")
      ->type_name("A,B,C")
      ->delimiter(',')
      ->allow_extra_args(false);
  picture("--layout", image.layout, "Order of the axes; else by which one holds 1 or 3")
      ->check(CLI::IsMember({"nchw", "nhwc"}));
  picture("--color", image.color, "Channels; else by their number")
      ->check(CLI::IsMember({"rgb", "bgr", "gray"}));
}

void AddRun(CLI::App& app, RunCommand& command) {
  AddSession(app, command.session);
  AddFeeds(app, command.feeds);
  app.add_option("--output", command.outputs,
                 "Save outputs: each as DIR/NAME.npy, all in one .npz, or one as NAME=FILE.npy")
      ->type_name("DIR|FILE.npz|NAME=FILE")
      ->allow_extra_args(false);
  app.add_option("--top-k", command.top_k, "Show the K largest elements along the last axis")
      ->type_name("K")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--labels", command.labels, "Text file with a label per line; implies --top-k 5")
      ->type_name("FILE");
  AddJson(app, command.json);
}

void AddCheck(CLI::App& app, CheckCommand& command) {
  app.add_option("MODEL", command.models, "ONNX model files")->required();
  app.add_flag("--bisect", command.bisects,
               "Also run the model, and name the first optimization that changes its outputs");
  app.add_option("--tolerance", command.bisect.tolerance,
                 "Of --bisect: how far outputs may differ, as part of the greatest element")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  AddDims(app, command.bisect.session.dims);
  AddFeeds(app, command.bisect.feeds);
  AddJson(app, command.json);
}

void AddBench(CLI::App& app, BenchCommand& command) {
  AddSession(app, command.session);
  AddFeeds(app, command.feeds);
  CLI::Option* const runs =
      app.add_option("--runs", command.runs, "How many runs")->check(CLI::Range(1, 1 << 30));
  app.add_option("--seconds", command.seconds, "As many runs as fit into this time")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str()
      ->excludes(runs);
  app.add_option("--warmup", command.warmup, "Runs before those that count, beside the first")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  AddJson(app, command.json);
}

void AddProfile(CLI::App& app, ProfileCommand& command) {
  AddSession(app, command.session);
  AddFeeds(app, command.feeds);
  app.add_option("--runs", command.runs, "How many runs; averages are without the first")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--trace", command.trace, "Trace to write; else NAME.trace.json, here")
      ->type_name("FILE");
  app.add_option("--report", command.report, "Report to write; else NAME.profile.html, here")
      ->type_name("FILE");
  AddJson(app, command.json);
}

void AddTrain(CLI::App& app, TrainCommand& command) {
  app.footer(
      "The first axis of each array counts samples. The checkpoint is saved after each epoch and\n"
      "at Ctrl+C; with --resume the training goes on as if it had not been interrupted.\n"
      "Example:\n"
      "  tenon train artifacts --data train.npz --validation test.npz --epochs 10 \\\n"
      "    --export model.onnx --export-output scores");
  ArtifactPaths& paths = command.artifacts;
  app.add_option("ARTIFACTS", paths.folder,
                 "Folder that tenon.training.artifacts wrote: training_model.onnx, "
                 "optimizer_model.onnx, checkpoint and, for --validation and --export, "
                 "eval_model.onnx");
  const auto artifact = [&](const char* name, std::string& path, const char* what) {
    app.add_option(name, path, what)
        ->type_name("FILE")
        ->group("Artifacts, instead of the folder's");
  };
  artifact("--training-model", paths.training_model, "Training model");
  artifact("--eval-model", paths.eval_model, "Evaluation model");
  artifact("--optimizer-model", paths.optimizer_model, "Optimizer model");
  artifact("--start", paths.checkpoint, "Checkpoint to start from");
  const auto samples = [&](const char* name, std::vector<std::string>& sources, const char* what) {
    return app.add_option(name, sources, what)
        ->type_name("FILE.npz|NAME=FILE")
        ->allow_extra_args(false);
  };
  samples("--data", command.data,
          "Samples: .npz files with entries named like the training model's inputs, or .npy files")
      ->required();
  samples("--validation", command.validation,
          "Samples whose mean loss is computed after each epoch");

  TrainingOptions& options = command.options;
  const CLI::Range positive(1, 1 << 30);
  app.add_option("--epochs", options.epochs, "How often each sample is seen; else 1")
      ->check(positive);
  app.add_option("--batch-size", options.batch_size,
                 "Samples at a time; else what the model fixes, else 32")
      ->check(positive);
  app.add_option("--accumulate", options.accumulate,
                 "So many batches add up their gradients before a step; else 1")
      ->check(positive);
  app.add_option("--learning-rate", options.learning_rate, "Else 0.001")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--schedule", options.schedule,
                 "Of the learning rate: 'constant', or 'linear' to fall to 0 at the end")
      ->check(CLI::IsMember({"constant", kLinear}));
  app.add_option("--warmup", options.warmup,
                 "Of the linear schedule: steps in which the rate rises from 0")
      ->type_name("STEPS")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("--seed", options.seed, "Of the order of samples and of random operators; else 0");
  app.add_flag_callback(
      "--no-shuffle", [&shuffle = options.shuffle] { shuffle = 0; },
      "Keep the order of the samples; else each epoch has another one");
  app.add_option("--threads", command.threads, "Threads to compute with; 0: as many as cores")
      ->check(CLI::Range(0, 1024));

  app.add_option("--checkpoint", command.checkpoint, "Checkpoint to write")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("--save-every", command.save_every, "Epochs from checkpoint to checkpoint")
      ->check(positive)
      ->capture_default_str();
  app.add_flag("--resume", command.resume,
               "Continue from the file of --checkpoint, with its options unless others are given");
  app.add_option("--export", command.export_path, "Model for inference to write at the end")
      ->type_name("FILE.onnx");
  app.add_option("--export-output", command.export_outputs,
                 "Value that is an output of that model; else those of the evaluation model")
      ->type_name("NAME")
      ->allow_extra_args(false);
  AddJson(app, command.json);
}

// CLI11 would only say that a subcommand is required.
void CheckSubcommand(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) {
    names.push_back(subcommand->get_name());
  }
  if (name.starts_with('-') || std::find(names.begin(), names.end(), name) != names.end()) return;
  FailUsage("there is no command '{}'{}; the commands are: {}", name, DidYouMean(name, names),
            Join(names, ", "));
}

int Main(int argc, char** argv) {
  CLI::App app("Runs, inspects, checks, measures and trains ONNX models.", "tenon");
  app.set_version_flag("--version",
                       Format("tenon {}", TenonGetApi(TENON_API_VERSION)->GetVersionString()));
  app.require_subcommand(1);
  std::function<int()> chosen;

  RunCommand run;
  CLI::App* const run_app = app.add_subcommand("run", "Run a model once and show its outputs");
  AddRun(*run_app, run);
  run_app->final_callback([&] { chosen = [&] { return Run(run); }; });

  InspectCommand inspect;
  CLI::App* const inspect_app =
      app.add_subcommand("inspect", "Show operators, shapes, parameters and memory of a model");
  AddModel(*inspect_app, inspect.model);
  AddDims(*inspect_app, inspect.dims);
  inspect_app->add_flag("--quantization", inspect.quantization,
                        "Say instead which QuantizeLinear and DequantizeLinear nodes do not "
                        "become operators on integers, and why");
  AddJson(*inspect_app, inspect.json);
  inspect_app->final_callback([&] { chosen = [&] { return Inspect(inspect); }; });

  CheckCommand check;
  CLI::App* const check_app = app.add_subcommand("check", "Say whether models can be run");
  AddCheck(*check_app, check);
  check_app->final_callback([&] { chosen = [&] { return Check(check); }; });

  BenchCommand bench;
  CLI::App* const bench_app =
      app.add_subcommand("bench", "Measure latency, throughput and memory of a model");
  AddBench(*bench_app, bench);
  bench_app->final_callback([&] { chosen = [&] { return Bench(bench); }; });

  ProfileCommand profile;
  CLI::App* const profile_app =
      app.add_subcommand("profile", "Record where a model's time and memory go");
  AddProfile(*profile_app, profile);
  profile_app->final_callback([&] { chosen = [&] { return Profile(profile); }; });

  TrainCommand train;
  CLI::App* const train_app =
      app.add_subcommand("train", "Train a model from its training artifacts");
  AddTrain(*train_app, train);
  train_app->final_callback([&] { chosen = [&] { return Train(train); }; });

  EpsCommand eps;
  CLI::App* const eps_app =
      app.add_subcommand("eps", "List execution providers and the devices that they use");
  AddPlugins(*eps_app, eps.plugins);
  AddJson(*eps_app, eps.json);
  eps_app->final_callback([&] { chosen = [&] { return Eps(eps); }; });

  PlacementCommand placement;
  CLI::App* const placement_app =
      app.add_subcommand("placement", "Say which execution provider takes which nodes of a model");
  AddSession(*placement_app, placement.session);
  AddJson(*placement_app, placement.json);
  placement_app->final_callback([&] { chosen = [&] { return Placement(placement); }; });

  if (argc > 1) CheckSubcommand(app, argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return chosen();
}

}  // namespace
}  // namespace tenon::cli

int main(int argc, char** argv) {
  try {
    return tenon::cli::Main(argc, argv);
  } catch (const tenon::cli::Error& error) {
    std::fprintf(stderr, "tenon: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon: %s\n", error.what());
    return tenon::cli::kExitFailure;
  }
}
