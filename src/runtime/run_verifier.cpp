#include "runtime/run_verifier.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/parse_double.h"
#include "runtime/config.h"
#include "runtime/run_options.h"
#include "runtime/tensor_text.h"

namespace tenon {
namespace {

constexpr std::string_view kToleranceKey = "tenon.verify.tolerance";
constexpr double kIncomparable = std::numeric_limits<double>::infinity();

// How far an element may be off, as a part of the greatest one: sums in another order, and values
// that are rounded once instead of often.
double ToleranceOfType(DataType type) {
  switch (type) {
    case DataType::kDouble:
      return 1e-9;
    case DataType::kFloat:
      return 1e-4;
    case DataType::kFloat16:
      return 1e-2;
    case DataType::kBfloat16:
      return 5e-2;
    default:
      return 0;
  }
}

bool IsByte(DataType type) { return type == DataType::kInt8 || type == DataType::kUint8; }

double NumbersDiffer(const Tensor& expected, const Tensor& got) {
  double greatest = 0, difference = 0;
  const auto count = static_cast<size_t>(expected.size());
  for (size_t i = 0; i < count; ++i) {
    const double a = *NumberAt(expected, i), b = *NumberAt(got, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (std::isfinite(a)) greatest = std::max(greatest, std::abs(a));
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(b)) return kIncomparable;
    greatest = std::max({greatest, std::abs(a), std::abs(b)});
    difference = std::max(difference, std::abs(a - b));
  }
  // One step of a quantized value is a rounding.
  if (IsByte(expected.type()) && difference <= 1) return 0;
  return difference == 0 ? 0 : difference / greatest;
}

bool IsComparable(const Value& value) {
  return value.has_value() && value.is_tensor() && value.tensor().memory().IsHostAccessible();
}

double TensorsDiffer(const Tensor& expected, const Tensor& got) {
  if (expected.type() != got.type() || !(expected.shape() == got.shape())) return kIncomparable;
  if (expected.type() == DataType::kString) {
    const std::span<const std::string> a = expected.values<std::string>();
    const std::span<const std::string> b = got.values<std::string>();
    return std::equal(a.begin(), a.end(), b.begin()) ? 0 : kIncomparable;
  }
  const size_t bytes = expected.bytes();
  if (bytes == 0 || std::memcmp(expected.raw(), got.raw(), bytes) == 0) return 0;
  return NumberAt(expected, 0) ? NumbersDiffer(expected, got) : kIncomparable;
}

}  // namespace

struct RunVerifier::Arguments {
  const RunOptions& options;
  std::span<const std::string_view> feed_names;
  std::span<const Value> feeds;
  std::span<const std::string_view> fetch_names;
};

Result<std::unique_ptr<RunVerifier>> RunVerifier::Make(const StringMap& config,
                                                       std::vector<std::string> providers,
                                                       SessionBuilder build) {
  if (!ConfigFlag(config, "tenon.verify", false)) return nullptr;
  std::optional<double> tolerance;
  const auto entry = config.find(kToleranceKey);
  if (entry != config.end()) {
    double number = -1;
    if (!ParseDouble(entry->second, &number) || !(number >= 0)) {
      return InvalidArgument("config entry '{}': expected a number of at least 0, got '{}'",
                             kToleranceKey, entry->second);
    }
    tolerance = number;
  }
  std::unique_ptr<RunVerifier> verifier(
      new RunVerifier(tolerance, std::move(providers), std::move(build)));
  TENON_ASSIGN_OR_RETURN(verifier->reference_, verifier->Build(0, nullptr));
  return verifier;
}

Result<std::unique_ptr<Session>> RunVerifier::Build(size_t most_rewrites,
                                                    std::vector<std::string>* rewrites) const {
  SessionRequest request{providers_, nullptr, nullptr};
  // The session without rewrites also takes feeds that the first one refuses.
  request.equal_names_are_equal_sizes = most_rewrites > 0;
  request.most_rewrites = most_rewrites;
  request.rewrites = rewrites;
  return build_(request);
}

Result<std::vector<Value>> RunVerifier::OutputsWith(size_t most_rewrites,
                                                    const Arguments& arguments,
                                                    std::vector<std::string>* rewrites) const {
  std::unique_ptr<Session> made;
  if (most_rewrites > 0) {
    TENON_ASSIGN_OR_RETURN(made, Build(most_rewrites, rewrites));
  }
  RunOptions options;
  options.terminate = arguments.options.terminate;
  options.timeout = arguments.options.timeout;
  std::vector<Value> outputs(arguments.fetch_names.size());
  TENON_RETURN_IF_ERROR(
      (made ? *made : *reference_)
          .Run(options, arguments.feed_names, arguments.feeds, arguments.fetch_names, outputs));
  return outputs;
}

double RunVerifier::ToleranceOf(const Value& value) const {
  return tolerance_.value_or(ToleranceOfType(value.tensor().type()));
}

std::optional<RunVerifier::Difference> RunVerifier::FirstDifference(
    std::span<const Value> expected, std::span<const Value> got) const {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!IsComparable(expected[i]) || !IsComparable(got[i])) continue;
    const double size = TensorsDiffer(expected[i].tensor(), got[i].tensor());
    if (size > ToleranceOf(expected[i])) return Difference{i, size};
  }
  return std::nullopt;
}

std::string RunVerifier::Blame(const Arguments& arguments, std::span<const Value> expected) const {
  // Whether outputs with so many rewrites differ; they do if there are none.
  const auto differs = [&](size_t rewrites, std::vector<std::string>* names) {
    const Result<std::vector<Value>> outputs = OutputsWith(rewrites, arguments, names);
    return !outputs || FirstDifference(expected, *outputs);
  };
  if (differs(0, nullptr)) return "the model's outputs differ from run to run";
  std::vector<std::string> rewrites;
  if (!differs(std::numeric_limits<size_t>::max(), &rewrites)) {
    return "the next session did not differ";
  }
  size_t good = 0, bad = rewrites.size();
  while (bad - good > 1) {
    const size_t middle = good + (bad - good) / 2;
    (differs(middle, nullptr) ? bad : good) = middle;
  }
  if (bad == 0) return "it does so without any optimization, too";
  return Format("the first optimization with which it differs is {} of {}: {}", bad,
                rewrites.size(), rewrites[bad - 1]);
}

Status RunVerifier::Run(const RunOptions& options, std::span<const std::string_view> feed_names,
                        std::span<const Value> feeds, std::span<const std::string_view> fetch_names,
                        std::span<Value> fetches, FunctionRef<Status()> run) {
  // The run may write outputs over its feeds.
  std::vector<Value> copies(feeds.begin(), feeds.end());
  for (Value& copy : copies) {
    if (!IsComparable(copy)) continue;
    TENON_ASSIGN_OR_RETURN(copy, copy.tensor().Clone());
  }
  const Arguments arguments{options, feed_names, copies, fetch_names};
  const Result<std::vector<Value>> expected = OutputsWith(0, arguments);
  TENON_RETURN_IF_ERROR(run());
  if (!expected) {
    return Fail("tenon.verify: the model runs, but not without optimizations: {}",
                expected.error().message());
  }
  const std::optional<Difference> found = FirstDifference(*expected, fetches);
  if (!found) return OkStatus();
  const Value& output = (*expected)[found->output];
  const std::string size =
      std::isinf(found->size)
          ? std::string("in its type, its shape, or its elements that are no numbers")
          : Format("by {:.2g} of its greatest element, which {} may by {:.2g}", found->size,
                   DataTypeName(output.tensor().type()), ToleranceOf(output));
  return Fail("tenon.verify: output '{}' differs from that without optimizations {}; {}",
              fetch_names[found->output], size, Blame(arguments, *expected));
}

}  // namespace tenon
