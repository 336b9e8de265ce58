// Values for a model's inputs, from files, constants or random numbers.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "array.h"
#include "image.h"
#include "model.h"

namespace tenon::cli {

struct FeedSettings {
  // NAME=SOURCE or SOURCE. A source is a file, "random", "zeros" or a number, which is then the
  // value of every element. Without a name, an .npz archive provides the inputs that its entries
  // are named after, "random" and "zeros" all inputs that are not given otherwise, and a file the
  // only input.
  std::vector<std::string> inputs;
  uint64_t seed = 0;  // of "random"
  ImageSettings image;
};

// One array per input of the model, checked against the model's declaration. `otherwise` is the
// source of inputs that are not given ("": that is an error). Random floating-point numbers are
// uniform in [0, 1), integers and booleans are 0 or 1, which are nearly always valid indices. Free
// dimensions of random and constant arrays have the size from --dim, or 1. Throws Error.
std::vector<Array> MakeFeeds(const Model& model, const FeedSettings& settings,
                             const std::string& otherwise);

// Throws Error unless the array, which `source` has, is what the input declares. Gives it the type.
void CheckArray(const ValueSpec& input, Array& array, const std::string& source);

// Tensors over the arrays, which must outlive them.
std::vector<Ort::Value> ToValues(std::vector<Array>& arrays);

// [{name, type, shape}] of the arrays that MakeFeeds made.
nlohmann::ordered_json DescribeFeeds(const Model& model, const std::vector<Array>& feeds);

// A copy of a tensor. It has no bytes if its type is packed or unknown.
Array ToArray(const Ort::Value& tensor);

}  // namespace tenon::cli
