// tenon run: makes one run, and shows and saves its outputs.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "file.h"
#include "npy.h"
#include "progress.h"
#include "summary.h"
#include "text.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFirstElements = 6;
constexpr size_t kShownRows = 10;
constexpr int kDefaultTopK = 5;

struct Output {
  std::string name;
  bool is_tensor = false;
  Array array;       // of a tensor
  std::string text;  // of anything else
};

struct Ranking {
  size_t k = 0;  // 0: none
  std::vector<std::string> labels;

  bool AppliesTo(const Output& output) const {
    if (k == 0 || !output.is_tensor || !IsNumber(output.array.type)) return false;
    const size_t length = RowLength(output.array);
    return labels.empty() ? length > 1 : length == labels.size();
  }
};

std::vector<Output> TakeOutputs(const Model& model, const std::vector<Ort::Value>& values) {
  std::vector<Output> outputs;
  for (size_t i = 0; i < values.size(); ++i) {
    Output output{model.outputs[i].name, values[i].IsTensor(), {}, {}};
    if (output.is_tensor) {
      output.array = ToArray(values[i]);
    } else {
      output.text = ValueText(values[i]);
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Ranking MakeRanking(const RunCommand& command) {
  Ranking ranking;
  ranking.k = static_cast<size_t>(command.top_k);
  if (command.labels.empty()) return ranking;
  ranking.labels = ReadLines(command.labels);
  if (ranking.labels.empty()) Fail("'{}': expected a label per line, got none", command.labels);
  if (ranking.k == 0) ranking.k = kDefaultTopK;
  return ranking;
}

void CheckRanking(const Ranking& ranking, const std::vector<Output>& outputs,
                  const std::string& labels_path) {
  if (ranking.k == 0) return;
  const auto applies = [&](const Output& output) { return ranking.AppliesTo(output); };
  if (std::any_of(outputs.begin(), outputs.end(), applies)) return;
  std::vector<std::string> texts;
  for (const Output& output : outputs) {
    texts.push_back(Format("'{}' {}", output.name,
                           output.is_tensor ? ShapeText(output.array.shape) : output.text));
  }
  if (ranking.labels.empty()) Fail("--top-k: no output has a last axis to rank");
  Fail("'{}': expected as many labels as the last axis of an output is long, got {}; outputs: {}",
       labels_path, ranking.labels.size(), Join(texts, ", "));
}

// The destinations of outputs. They are checked before the run, so that a mistake does not waste
// it.
class Saver {
 public:
  Saver(const Model& model, const std::vector<std::string>& targets) {
    for (const std::string& target : targets) Add(model, target);
  }

  // Returns the paths written.
  std::vector<std::string> Save(const std::vector<Output>& outputs) const {
    std::vector<std::string> paths;
    for (const std::string& folder : folders_) SaveFolder(folder, outputs, paths);
    for (const std::string& path : archives_) {
      std::map<std::string, Array> arrays;
      for (const Output& output : outputs) {
        if (CanSave(output)) arrays.emplace(output.name, output.array);
      }
      WriteFile(path, WriteNpz(arrays));
      paths.push_back(path);
    }
    for (const auto& [index, path] : files_) {
      const Output& output = outputs[index];
      if (!output.is_tensor) Fail("--output: '{}' is no tensor: {}", output.name, output.text);
      WriteFile(path, path.ends_with(".npz") ? WriteNpz({{output.name, output.array}})
                                             : WriteNpy(output.array));
      paths.push_back(path);
    }
    return paths;
  }

 private:
  void Add(const Model& model, const std::string& target) {
    std::vector<std::string> names;
    for (size_t i = 0; i < model.outputs.size(); ++i) {
      const std::string& name = names.emplace_back(model.outputs[i].name);
      if (!target.starts_with(name + "=")) continue;
      files_.emplace_back(i, target.substr(name.size() + 1));
      return;
    }
    if (const size_t split = target.find('='); split != target.npos) {
      const std::string name = target.substr(0, split);
      FailUsage("--output: '{}' has no output '{}'{}; its outputs are: {}", model.path, name,
                DidYouMean(name, names), Join(names, ", "));
    }
    if (target.ends_with(".npy")) {
      if (names.size() != 1) {
        FailUsage("--output: which of {} goes to '{}'? Give NAME=FILE", Join(names, ", "), target);
      }
      files_.emplace_back(0, target);
    } else {
      (target.ends_with(".npz") ? archives_ : folders_).push_back(target);
    }
  }

  static bool CanSave(const Output& output) {
    if (!output.is_tensor) Note(Format("'{}' is not saved, it is no tensor", output.name));
    return output.is_tensor;
  }

  static void SaveFolder(const std::string& folder, const std::vector<Output>& outputs,
                         std::vector<std::string>& paths) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) Fail("'{}': {}", folder, error.message());
    for (const Output& output : outputs) {
      if (!CanSave(output)) continue;
      // Names of values are often paths, such as "encoder/output:0".
      std::string name = output.name;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == '/' || c == '\\' || c == ':'; }, '_');
      if (name.starts_with('.')) name[0] = '_';
      paths.push_back(std::filesystem::path(folder) / (name + ".npy"));
      WriteFile(paths.back(), WriteNpy(output.array));
    }
  }

  std::vector<std::string> folders_;
  std::vector<std::string> archives_;
  std::vector<std::pair<size_t, std::string>> files_;  // {index of the output, path}
};

Json ElementJson(const Array& array, size_t i) {
  if (array.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return array.strings[i];
  if (!IsNumber(array.type)) return nullptr;
  const double number = ReadNumber(array.type, array.bytes.data(), i);
  if (!std::isfinite(number)) return ElementText(array, i);  // JSON has no such numbers
  if (IsFloatingPoint(array.type)) return number;
  return static_cast<int64_t>(number);
}

Json TopJson(const Array& array, const Ranking& ranking) {
  Json rows = Json::array();
  for (size_t row = 0; row < RowCount(array); ++row) {
    Json top = Json::array();
    for (const size_t i : Largest(array, row, ranking.k)) {
      Json entry = {{"index", i}};
      if (!ranking.labels.empty()) entry["label"] = ranking.labels[i];
      entry["value"] = ElementJson(array, row * RowLength(array) + i);
      top.push_back(std::move(entry));
    }
    rows.push_back(std::move(top));
  }
  return rows;
}

Json OutputJson(const Output& output, const Ranking& ranking) {
  Json json = {{"name", output.name}};
  if (!output.is_tensor) {
    json["text"] = output.text;
    return json;
  }
  const Array& array = output.array;
  json["type"] = ElementTypeOf(array.type).name;
  json["shape"] = array.shape;
  if (const auto statistics = StatisticsOf(array)) {
    json["min"] = statistics->min;
    json["max"] = statistics->max;
    json["mean"] = statistics->mean;
    json["nans"] = statistics->nans;
  }
  json["first"] = Json::array();
  for (size_t i = 0; i < std::min(ElementCount(array.shape), kFirstElements); ++i) {
    json["first"].push_back(ElementJson(array, i));
  }
  if (ranking.AppliesTo(output)) json["top"] = TopJson(array, ranking);
  return json;
}

void PrintTop(const Array& array, const Ranking& ranking) {
  const size_t rows = RowCount(array);
  for (size_t row = 0; row < std::min(rows, kShownRows); ++row) {
    std::vector<std::vector<std::string>> table;
    for (const size_t i : Largest(array, row, ranking.k)) {
      table.push_back(
          {std::to_string(i), Format("{:.4f}", ReadNumber(array.type, array.bytes.data(),
                                                          row * RowLength(array) + i))});
      if (!ranking.labels.empty()) table.back().push_back(ranking.labels[i]);
    }
    if (rows > 1) Print("  row {}\n", row);
    Print("{}", TableText(table, "  "));
  }
  if (rows > kShownRows) Print("  ... {} more rows\n", rows - kShownRows);
}

void PrintOutput(const Output& output, const Ranking& ranking) {
  if (!output.is_tensor) return Print("{}: {}\n", output.name, output.text);
  const Array& array = output.array;
  Print("{}: {} {}\n", output.name, ElementTypeOf(array.type).name, ShapeText(array.shape));
  if (const auto statistics = StatisticsOf(array)) {
    Print("  min {:.6g}, max {:.6g}, mean {:.6g}{}\n", statistics->min, statistics->max,
          statistics->mean, statistics->nans ? Format(", {} NaN", statistics->nans) : "");
  }
  if (ranking.AppliesTo(output)) return PrintTop(array, ranking);
  const size_t count = ElementCount(array.shape);
  if (count == 0) return;
  std::vector<std::string> first;
  for (size_t i = 0; i < std::min(count, kFirstElements); ++i) {
    first.push_back(ElementText(array, i));
  }
  Print("  {}{}\n", Join(first, " "), count > kFirstElements ? " ..." : "");
}

}  // namespace

int Run(const RunCommand& command) {
  const Ranking ranking = MakeRanking(command);
  Model model(command.session);
  const Saver saver(model, command.outputs);
  std::vector<Array> feeds = MakeFeeds(model, command.feeds, "");
  const std::vector<Ort::Value> inputs = ToValues(feeds);

  std::vector<Ort::Value> values;
  const double start = NowMs();
  {
    const Progress progress("running " + model.path);
    values = RunOnce(model, inputs);
  }
  const double run_ms = NowMs() - start;

  const std::vector<Output> outputs = TakeOutputs(model, values);
  CheckRanking(ranking, outputs, command.labels);
  const std::vector<std::string> saved = saver.Save(outputs);
  if (command.json) {
    Json json = {{"model", model.path}, {"load_ms", model.load_ms}, {"run_ms", run_ms}};
    json["outputs"] = Json::array();
    for (const Output& output : outputs) json["outputs"].push_back(OutputJson(output, ranking));
    json["saved"] = saved;
    Print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  for (const Output& output : outputs) PrintOutput(output, ranking);
  for (const std::string& path : saved) Print("saved {}\n", path);
  return 0;
}

}  // namespace tenon::cli
