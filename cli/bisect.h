// Finds the optimization that changes a model's outputs.
#pragma once

#include <string>

#include "model.h"
#include "values.h"

namespace tenon::cli {

struct BisectSettings {
  SessionSettings session;
  FeedSettings feeds;
  // How far outputs may differ from those without optimizations, as part of the greatest element.
  double tolerance = 1e-4;
};

struct Bisection {
  size_t rewrites = 0;    // that optimizing consists of
  double difference = 0;  // of the outputs, with all of them, as part of the greatest element
  size_t first_bad = 0;   // the first one with which the outputs differ too much; 0: none
  double difference_there = 0;
  std::string description;  // of that rewrite: "'RULE' at Conv-11 node 'NAME'"
};

// Runs the model without optimizations, with all of them, and, if the outputs differ by more than
// the tolerance, with some of them. Throws Error.
Bisection Bisect(const BisectSettings& settings);

}  // namespace tenon::cli
