#include "bisect.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text.h"

namespace tenon::cli {
namespace {

constexpr double kIncomparable = std::numeric_limits<double>::infinity();

// Of numbers; infinities and NaNs must be at the same places.
double NumbersDiffer(const Array& expected, const Array& got) {
  double greatest = 0, difference = 0;
  const size_t count = ElementCount(expected.shape);
  for (size_t i = 0; i < count; ++i) {
    const double a = ReadNumber(expected.type, expected.bytes.data(), i);
    const double b = ReadNumber(got.type, got.bytes.data(), i);
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (std::isfinite(a)) greatest = std::max(greatest, std::abs(a));
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(b)) return kIncomparable;
    greatest = std::max({greatest, std::abs(a), std::abs(b)});
    difference = std::max(difference, std::abs(a - b));
  }
  return difference == 0 ? 0 : difference / greatest;
}

double Differ(const Array& expected, const Array& got) {
  if (expected.type != got.type || expected.shape != got.shape) return kIncomparable;
  if (IsNumber(expected.type)) return NumbersDiffer(expected, got);
  const bool is_same = expected.bytes == got.bytes && expected.strings == got.strings;
  return is_same ? 0 : kIncomparable;
}

class Bisector {
 public:
  explicit Bisector(const BisectSettings& settings) : settings_(settings) {
    expected_ = OutputsWith(0);
  }

  // Of the outputs with the first `rewrites` rewrites from those with none.
  double DifferenceWith(size_t rewrites) {
    const std::vector<Array> outputs = OutputsWith(rewrites);
    double difference = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      difference = std::max(difference, Differ(expected_[i], outputs[i]));
    }
    return difference;
  }

  // Of the last session.
  const std::vector<std::string>& rewrites() const { return rewrites_; }

 private:
  std::vector<Array> OutputsWith(size_t rewrites) {
    std::vector<std::string> log;
    SessionSettings session = settings_.session;
    session.config["tenon.rewrite_limit"] = std::to_string(rewrites);
    session.log = &log;
    session.log_level = ORT_LOGGING_LEVEL_INFO;
    Model model(session);
    rewrites_.clear();
    for (const std::string& line : log) {
      const size_t colon = line.find(": ");
      if (line.starts_with("rewrite ")) rewrites_.push_back(line.substr(colon + 2));
    }
    std::vector<Array> feeds = MakeFeeds(model, settings_.feeds, "random");
    std::vector<Array> outputs;
    for (const Ort::Value& value : RunOnce(model, ToValues(feeds))) {
      outputs.push_back(value.IsTensor() ? ToArray(value) : Array());
    }
    return outputs;
  }

  const BisectSettings& settings_;
  std::vector<Array> expected_;
  std::vector<std::string> rewrites_;
};

}  // namespace

Bisection Bisect(const BisectSettings& settings) {
  Bisector bisector(settings);
  Bisection result;
  result.difference = bisector.DifferenceWith(std::numeric_limits<size_t>::max());
  const std::vector<std::string> rewrites = bisector.rewrites();
  result.rewrites = rewrites.size();
  if (result.difference <= settings.tolerance) return result;
  size_t good = 0, bad = rewrites.size();
  result.difference_there = result.difference;
  while (bad - good > 1) {
    const size_t middle = good + (bad - good) / 2;
    const double difference = bisector.DifferenceWith(middle);
    if (difference <= settings.tolerance) {
      good = middle;
    } else {
      bad = middle;
      result.difference_there = difference;
    }
  }
  if (bad == 0) Fail("the outputs differ from run to run, without any optimization");
  result.first_bad = bad;
  result.description = rewrites[bad - 1];
  return result;
}

}  // namespace tenon::cli
