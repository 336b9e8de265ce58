// tenon bench: measures the speed of a model and the memory that it takes.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "commands.h"
#include "progress.h"
#include "text.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Figures {
  double session_ms = 0;
  double first_run_ms = 0;
  std::vector<double> sorted_ms;  // of the runs that count
  size_t peak_bytes = 0;          // of the process

  // The smallest latency such that `share` of the runs do not exceed it (nearest rank).
  double Percentile(double share) const {
    const double rank = std::ceil(share * static_cast<double>(sorted_ms.size()));
    return sorted_ms[static_cast<size_t>(std::max(rank, 1.0)) - 1];
  }
  double Mean() const {
    return std::accumulate(sorted_ms.begin(), sorted_ms.end(), 0.0) /
           static_cast<double>(sorted_ms.size());
  }
};

size_t PeakBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

double TimeOfRun(Model& model, const std::vector<Ort::Value>& inputs) {
  const double start = NowMs();
  const std::vector<Ort::Value> outputs = RunOnce(model, inputs);
  return NowMs() - start;
}

Figures Measure(const BenchCommand& command, Model& model, const std::vector<Ort::Value>& inputs) {
  Figures figures;
  figures.session_ms = model.load_ms;
  Progress progress("measuring " + model.path);
  figures.first_run_ms = TimeOfRun(model, inputs);
  for (int i = 0; i < command.warmup; ++i) TimeOfRun(model, inputs);
  const double start = NowMs();
  const auto done = [&] {
    const double count = static_cast<double>(figures.sorted_ms.size());
    return command.runs > 0 ? count / command.runs
                            : (NowMs() - start) / std::max(command.seconds * 1e3, 1e-3);
  };
  double fraction = 0;
  do {
    progress.Set(fraction);
    figures.sorted_ms.push_back(TimeOfRun(model, inputs));
    fraction = done();
  } while (fraction < 1);
  std::sort(figures.sorted_ms.begin(), figures.sorted_ms.end());
  figures.peak_bytes = PeakBytes();
  return figures;
}

Json ToJson(const BenchCommand& command, const Model& model, const std::vector<Array>& feeds,
            const Figures& figures) {
  return {{"model", model.path},
          {"threads", command.session.threads},
          {"inputs", DescribeFeeds(model, feeds)},
          {"session_ms", figures.session_ms},
          {"first_run_ms", figures.first_run_ms},
          {"warmup", command.warmup},
          {"runs", figures.sorted_ms.size()},
          {"latency_ms",
           {{"min", figures.sorted_ms.front()},
            {"p50", figures.Percentile(0.5)},
            {"p90", figures.Percentile(0.9)},
            {"p99", figures.Percentile(0.99)},
            {"max", figures.sorted_ms.back()},
            {"mean", figures.Mean()}}},
          {"runs_per_second", 1e3 / figures.Mean()},
          {"peak_memory_bytes", figures.peak_bytes}};
}

void PrintText(const Model& model, const std::vector<Array>& feeds, const Figures& figures) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    Print("input '{}': {} {}\n", model.inputs[i].name, ElementTypeOf(feeds[i].type).name,
          ShapeText(feeds[i].shape));
  }
  const auto row = [](const char* name, double milliseconds) {
    return std::vector<std::string>{name, DurationText(milliseconds)};
  };
  Print("{}", TableText({row("session created", figures.session_ms),
                         row("first run", figures.first_run_ms),
                         row("latency min", figures.sorted_ms.front()),
                         row("        p50", figures.Percentile(0.5)),
                         row("        p90", figures.Percentile(0.9)),
                         row("        p99", figures.Percentile(0.99)),
                         {"throughput", Format("{:.1f} runs/s", 1e3 / figures.Mean())},
                         {"peak memory", BytesText(static_cast<double>(figures.peak_bytes))},
                         {"runs", std::to_string(figures.sorted_ms.size())}},
                        ""));
}

}  // namespace

int Bench(const BenchCommand& command) {
  Model model(command.session);
  std::vector<Array> feeds = MakeFeeds(model, command.feeds, "random");
  const std::vector<Ort::Value> inputs = ToValues(feeds);
  const Figures figures = Measure(command, model, inputs);
  if (command.json) {
    const Json json = ToJson(command, model, feeds, figures);
    Print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    PrintText(model, feeds, figures);
  }
  return 0;
}

}  // namespace tenon::cli
