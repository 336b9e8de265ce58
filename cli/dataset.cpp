#include "dataset.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "file.h"
#include "npy.h"
#include "progress.h"
#include "text.h"
#include "values.h"

namespace tenon::cli {
namespace {

// The input without a limit to its samples.
ValueSpec OfSamples(ValueSpec input) {
  if (input.shape && !input.shape->empty()) input.shape->front() = {-1, "samples"};
  return input;
}

// The array of the input in the archive.
Array EntryFor(const ValueSpec& input, std::map<std::string, Array> arrays,
               const std::string& path) {
  const auto found = arrays.size() == 1 ? arrays.begin() : arrays.find(input.name);
  if (found != arrays.end()) return std::move(found->second);
  std::vector<std::string> names;
  for (const auto& entry : arrays) names.push_back(entry.first);
  Fail("'{}': no entry is named '{}'; there are: {}", path, input.name, Join(names, ", "));
}

}  // namespace

Dataset::Dataset(std::string option, const std::vector<std::string>& sources, std::string model,
                 std::vector<ValueSpec> inputs)
    : option_(std::move(option)), model_(std::move(model)), inputs_(std::move(inputs)) {
  for (const std::string& source : sources) Take(source);
  for (const ValueSpec& input : inputs_) {
    if (columns_.contains(input.name)) continue;
    FailUsage(
        "input '{}' ({}) of '{}' has no samples: give {} '{}=FILE', or an .npz file that has "
        "the name",
        input.name, input.Text(), model_, option_, input.name);
  }
  CountSamples();
}

void Dataset::Take(const std::string& source) {
  const Progress progress("reading " + source);
  for (const ValueSpec& input : inputs_) {
    if (!source.starts_with(input.name + "=")) continue;
    const std::string path = source.substr(input.name.size() + 1);
    const std::vector<std::byte> bytes = ReadFile(path);
    const std::string name = Format("'{}'", path);
    if (IsNpy(bytes)) return Add(input, ReadNpy(bytes, name), path);
    if (IsNpz(bytes)) return Add(input, EntryFor(input, ReadNpz(bytes, name), path), path);
    Fail("{}: expected an .npy or .npz file", name);
  }
  const size_t split = source.find('=');
  if (split != source.npos && !std::filesystem::exists(source)) {
    Find(source.substr(0, split), source);  // says which there are
  }
  TakeArchive(source);
}

void Dataset::TakeArchive(const std::string& path) {
  const std::vector<std::byte> bytes = ReadFile(path);
  const std::string name = Format("'{}'", path);
  if (IsNpy(bytes)) {
    if (inputs_.size() == 1) return Add(inputs_[0], ReadNpy(bytes, name), path);
    FailUsage("{}: which of the {} inputs of '{}' is '{}'? Give NAME=FILE", option_, inputs_.size(),
              model_, path);
  }
  if (!IsNpz(bytes)) Fail("{}: expected an .npz file", name);
  for (auto& [entry, array] : ReadNpz(bytes, name)) Add(Find(entry, path), std::move(array), path);
}

void Dataset::Add(const ValueSpec& input, Array array, const std::string& source) {
  if (input.kind != ONNX_TYPE_TENSOR) {
    Fail("input '{}' of '{}' is a {}; only tensors can be given", input.name, model_, input.Text());
  }
  CheckArray(OfSamples(input), array, source);
  if (array.shape.empty()) {
    Fail(
        "input '{}': expected an array whose first axis counts samples, got one without axes in "
        "'{}'",
        input.name, source);
  }
  const auto [place, is_new] = columns_.try_emplace(input.name, Column{std::move(array), source});
  if (!is_new) FailUsage("{}: input '{}' is given twice", option_, input.name);
}

const ValueSpec& Dataset::Find(const std::string& name, const std::string& source) const {
  std::vector<std::string> names;
  for (const ValueSpec& input : inputs_) {
    if (input.name == name) return input;
    names.push_back(input.name);
  }
  FailUsage("{} {}: '{}' has no input '{}'{}; its inputs are: {}", option_, source, model_, name,
            DidYouMean(name, names), Join(names, ", "));
}

void Dataset::CountSamples() {
  const Column* first = nullptr;
  for (const ValueSpec& input : inputs_) {
    const Column& column = columns_.at(input.name);
    if (first == nullptr) {
      first = &column;
      samples_ = static_cast<size_t>(column.array.shape[0]);
    } else if (column.array.shape[0] != first->array.shape[0]) {
      Fail("{}: expected {} samples for input '{}', as '{}' in '{}' has, got {} in '{}'", option_,
           first->array.shape[0], input.name, inputs_[0].name, first->source, column.array.shape[0],
           column.source);
    }
  }
  if (first == nullptr) Fail("'{}' has no inputs for samples", model_);
  if (samples_ == 0) Fail("{}: '{}' has no samples", option_, first->source);
}

std::optional<int64_t> Dataset::FixedBatch() const {
  for (const ValueSpec& input : inputs_) {
    if (input.shape && !input.shape->empty() && input.shape->front().size >= 0) {
      return input.shape->front().size;
    }
  }
  return std::nullopt;
}

std::vector<Array> Dataset::Batch(std::span<const size_t> samples) const {
  std::vector<Array> batch;
  for (const ValueSpec& input : inputs_) {
    const Array& all = columns_.at(input.name).array;
    Array& some = batch.emplace_back(Array{all.type, all.shape, {}, {}});
    some.shape[0] = static_cast<int64_t>(samples.size());
    const size_t bytes = all.bytes.size() / samples_, strings = all.strings.size() / samples_;
    some.bytes.reserve(samples.size() * bytes);
    for (const size_t sample : samples) {
      const auto from = all.bytes.begin() + static_cast<ptrdiff_t>(sample * bytes);
      some.bytes.insert(some.bytes.end(), from, from + static_cast<ptrdiff_t>(bytes));
      const auto text = all.strings.begin() + static_cast<ptrdiff_t>(sample * strings);
      some.strings.insert(some.strings.end(), text, text + static_cast<ptrdiff_t>(strings));
    }
  }
  return batch;
}

}  // namespace tenon::cli
