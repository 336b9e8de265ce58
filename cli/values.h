// Values for a model's inputs, from files, numbers or chance, and as the library takes them.
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
  // NAME=SOURCE or SOURCE. A source is a file, "random", "zeros" or a number, which every element
  // then is. Without a name: an .npz archive gives the inputs that its entries are named after,
  // "random" and "zeros" all inputs that nothing else is given for, a file the only input.
  std::vector<std::string> inputs;
  uint64_t seed = 0;  // of "random"
  ImageSettings image;
};

// One array per input of the model, checked against what the model declares; `otherwise` is the
// source of inputs that have none ("" : that is an error). Random floating-point numbers are
// uniform in [0, 1), integers and booleans 0 or 1: valid indices into nearly anything. Free
// dimensions of random and constant arrays are what --dim says, else 1. Throws Error.
std::vector<Array> MakeFeeds(const Model& model, const FeedSettings& settings,
                             const std::string& otherwise);

// Tensors over the arrays, which must outlive them.
std::vector<Ort::Value> ToValues(std::vector<Array>& arrays);

// [{name, type, shape}] of the arrays that MakeFeeds made.
nlohmann::ordered_json DescribeFeeds(const Model& model, const std::vector<Array>& feeds);

// A copy of a tensor. Its bytes are empty if it holds types that are packed or not known.
Array ToArray(const Ort::Value& tensor);

}  // namespace tenon::cli
