// Samples from files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array.h"
#include "model.h"

namespace tenon::cli {

// The samples for a model's inputs. The first axis of each input counts samples.
class Dataset {
 public:
  // A source is an .npz archive, whose entries are named like inputs, or NAME=FILE with an .npy
  // file, or an .npz archive that has the name or only one entry. Each input has one. Errors name
  // the option that the sources come from. Throws Error.
  Dataset(std::string option, const std::vector<std::string>& sources, std::string model,
          std::vector<ValueSpec> inputs);

  size_t samples() const { return samples_; }
  // How many samples the model takes at a time, if it takes only so many.
  std::optional<int64_t> FixedBatch() const;
  // The inputs with these samples, in the order of the inputs.
  std::vector<Array> Batch(std::span<const size_t> samples) const;

 private:
  struct Column {
    Array array;
    std::string source;
  };

  void Take(const std::string& source);
  void TakeArchive(const std::string& path);
  void Add(const ValueSpec& input, Array array, const std::string& source);
  const ValueSpec& Find(const std::string& name, const std::string& source) const;
  void CountSamples();

  const std::string option_, model_;
  const std::vector<ValueSpec> inputs_;
  std::map<std::string, Column> columns_;
  size_t samples_ = 0;
};

}  // namespace tenon::cli
