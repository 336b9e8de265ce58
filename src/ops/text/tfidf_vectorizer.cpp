// TfIdfVectorizer: how often each of a pool of n-grams occurs in rows of tokens.
#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>

#include "base/arithmetic.h"
#include "ops/framework/element.h"
#include "ops/framework/stateful_kernel.h"

namespace tenon {
namespace {

struct VectorizerAttrs {
  int64_t min_length = 1, max_length = 1, max_skip = 0;
  std::string mode;
  std::vector<int64_t> counts, indexes, pool_ints;
  std::vector<std::string> pool_strings;
  std::vector<float> weights;
  static constexpr auto Fields() {
    return std::tuple(Field("min_gram_length", &VectorizerAttrs::min_length),
                      Field("max_gram_length", &VectorizerAttrs::max_length),
                      Field("max_skip_count", &VectorizerAttrs::max_skip),
                      Field("mode", &VectorizerAttrs::mode),
                      Field("ngram_counts", &VectorizerAttrs::counts),
                      Field("ngram_indexes", &VectorizerAttrs::indexes),
                      Field("pool_int64s", &VectorizerAttrs::pool_ints),
                      Field("pool_strings", &VectorizerAttrs::pool_strings),
                      Field("weights", &VectorizerAttrs::weights));
  }
};

// One more than the greatest output coordinate.
Result<int64_t> WidthOf(const VectorizerAttrs& attrs) {
  int64_t width = 0;
  for (const int64_t index : attrs.indexes) {
    constexpr int64_t kMost = INT32_MAX;
    if (index < 0 || index >= kMost) {
      return InvalidArgument("attribute 'ngram_indexes': expected entries in [0, {}), got {}",
                             kMost, index);
    }
    width = std::max(width, index + 1);
  }
  return width;
}

Status InferVectorizer(const VectorizerAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const int64_t width, WidthOf(attrs));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, context.Input(0));
  if (shape.rank() > 2) {
    return InvalidArgument("input 0: expected shape [C] or [N, C], got {}", shape);
  }
  SymbolicShape output;
  if (shape.rank() == 2) output.Append(shape[0]);
  output.Append(Dim(width));
  return context.SetOutput(0, std::move(output), DataType::kFloat);
}

// Numbers for the tokens of the pool.
class Vocabulary {
 public:
  static constexpr uint32_t kUnknown = UINT32_MAX;

  uint32_t Add(int64_t token) { return ints_.try_emplace(token, Next()).first->second; }
  uint32_t Add(const std::string& token) {
    return strings_.try_emplace(token, Next()).first->second;
  }
  uint32_t Find(int64_t token) const {
    const auto found = ints_.find(token);
    return found == ints_.end() ? kUnknown : found->second;
  }
  uint32_t Find(const std::string& token) const {
    const auto found = strings_.find(token);
    return found == strings_.end() ? kUnknown : found->second;
  }

 private:
  uint32_t Next() const { return static_cast<uint32_t>(ints_.size() + strings_.size()); }

  std::unordered_map<int64_t, uint32_t> ints_;
  std::unordered_map<std::string, uint32_t> strings_;
};

// TfIdfVectorizer-9. The n-grams are a tree: each node is a prefix, 0 the empty one.
class VectorizerKernel final : public StatefulKernel<InferVectorizer> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_RETURN_IF_ERROR(WidthOf(attrs_));
    TENON_RETURN_IF_ERROR(CheckAttributes());
    const bool has_strings = !attrs_.pool_strings.empty();
    const size_t pool = has_strings ? attrs_.pool_strings.size() : attrs_.pool_ints.size();
    for (size_t i = 0; i < pool; ++i) {
      pool_.push_back(has_strings ? vocabulary_.Add(attrs_.pool_strings[i])
                                  : vocabulary_.Add(attrs_.pool_ints[i]));
    }
    grams_.push_back(kNoGram);
    TENON_RETURN_IF_ERROR(PlaceGrams());
    if (info.InputType(0).is_tensor() &&
        (info.ElementType(0) == DataType::kString) != has_strings) {
      return InvalidArgument("expected a pool of the type of input 0, {}",
                             DataTypeName(info.ElementType(0)));
    }
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Tensor& x = context.Input(0);
    Tensor& y = context.Output(0);
    const auto width = static_cast<size_t>(y.shape().back());
    const auto rows = x.rank() == 2 ? static_cast<size_t>(x.shape()[0]) : 1;
    if (width == 0 || rows == 0) return OkStatus();
    const size_t length = static_cast<size_t>(x.size()) / rows;
    const size_t grain = CopyGrain(length * sizeof(int64_t) * 16);
    const size_t grams = attrs_.indexes.size();
    return context.ForEachTask(
        CeilDiv(rows, grain), (length + grams) * sizeof(uint32_t),
        [&](size_t task, std::byte* scratch) {
          const std::span tokens(reinterpret_cast<uint32_t*>(scratch), length);
          const std::span counts(tokens.data() + length, grams);
          for (size_t row = task * grain; row < std::min(rows, (task + 1) * grain); ++row) {
            for (size_t i = 0; i < length; ++i) tokens[i] = TokenAt(x, row * length + i);
            CountRow(tokens, counts, y.data<float>() + row * width, width);
          }
        });
  }

 private:
  static constexpr uint32_t kNoGram = UINT32_MAX;

  Status CheckAttributes() const {
    const int64_t shortest = attrs_.min_length, longest = attrs_.max_length;
    if (attrs_.mode != "TF" && attrs_.mode != "IDF" && attrs_.mode != "TFIDF") {
      return InvalidArgument("attribute 'mode': expected TF, IDF or TFIDF, got '{}'", attrs_.mode);
    }
    if (shortest < 1 || longest < shortest) {
      return InvalidArgument("expected 1 <= min_gram_length <= max_gram_length, got {} and {}",
                             shortest, longest);
    }
    if (attrs_.max_skip < 0) {
      return InvalidArgument("attribute 'max_skip_count': expected at least 0, got {}",
                             attrs_.max_skip);
    }
    if (attrs_.pool_ints.empty() == attrs_.pool_strings.empty()) {
      return InvalidArgument("expected either 'pool_int64s' or 'pool_strings'");
    }
    if (!attrs_.weights.empty() && attrs_.weights.size() != attrs_.indexes.size()) {
      return InvalidArgument("attribute 'weights': expected one for each of {} n-grams, got {}",
                             attrs_.indexes.size(), attrs_.weights.size());
    }
    if (attrs_.counts.empty() || static_cast<uint64_t>(longest) > attrs_.counts.size()) {
      return InvalidArgument("attribute 'ngram_counts': expected at least {} entries, got {}",
                             longest, attrs_.counts.size());
    }
    return OkStatus();
  }

  // Part n of the pool holds n-grams and begins at ngram_counts[n - 1].
  Status PlaceGrams() {
    uint32_t gram = 0;
    for (size_t part = 0; part < attrs_.counts.size(); ++part) {
      const size_t n = part + 1;
      const int64_t begin = attrs_.counts[part];
      const int64_t end =
          n < attrs_.counts.size() ? attrs_.counts[n] : static_cast<int64_t>(pool_.size());
      if (begin < 0 || end < begin || end > static_cast<int64_t>(pool_.size()) ||
          static_cast<size_t>(end - begin) % n != 0) {
        return InvalidArgument("attribute 'ngram_counts': the {}-grams cannot be [{}, {}) of {}", n,
                               begin, end, pool_.size());
      }
      for (auto at = static_cast<size_t>(begin); at < static_cast<size_t>(end); at += n) {
        if (gram >= attrs_.indexes.size()) {
          return InvalidArgument("attribute 'ngram_indexes': expected one for each n-gram, got {}",
                                 attrs_.indexes.size());
        }
        PlaceGram({pool_.data() + at, n}, gram++);
      }
    }
    if (gram != attrs_.indexes.size()) {
      return InvalidArgument("attribute 'ngram_indexes': expected {}, one for each n-gram, got {}",
                             gram, attrs_.indexes.size());
    }
    return OkStatus();
  }

  void PlaceGram(std::span<const uint32_t> tokens, uint32_t gram) {
    uint32_t node = 0;
    for (const uint32_t token : tokens) {
      const auto next = static_cast<uint32_t>(grams_.size());
      const auto [child, is_new] = children_.try_emplace(KeyOf(node, token), next);
      if (is_new) grams_.push_back(kNoGram);
      node = child->second;
    }
    grams_[node] = gram;
  }

  static uint64_t KeyOf(uint32_t node, uint32_t token) { return uint64_t{node} << 32 | token; }

  uint32_t TokenAt(const Tensor& x, size_t i) const {
    if (x.type() == DataType::kString) return vocabulary_.Find(x.data<std::string>()[i]);
    return vocabulary_.Find(x.type() == DataType::kInt32 ? x.data<int32_t>()[i]
                                                         : x.data<int64_t>()[i]);
  }

  void CountRow(std::span<const uint32_t> tokens, std::span<uint32_t> counts, float* y,
                size_t width) const {
    std::fill_n(y, width, 0.0f);
    std::fill(counts.begin(), counts.end(), 0);
    // A skip that leaves no room for two tokens finds nothing new.
    const auto most_skips =
        std::min<uint64_t>(static_cast<uint64_t>(attrs_.max_skip), tokens.size());
    for (size_t skip = 0; skip <= most_skips; ++skip) {
      for (size_t start = 0; start < tokens.size(); ++start) {
        CountFrom(tokens, start, skip + 1, counts);
      }
      if (attrs_.max_length == 1) break;
    }
    for (size_t gram = 0; gram < counts.size(); ++gram) {
      float value = static_cast<float>(counts[gram]);
      if (attrs_.mode == "IDF") value = std::min(value, 1.0f);
      if (attrs_.mode != "TF" && !attrs_.weights.empty()) value *= attrs_.weights[gram];
      y[attrs_.indexes[gram]] += value;
    }
  }

  // The n-grams that begin at `start` and use every `step`-th token; those of one token count once.
  void CountFrom(std::span<const uint32_t> tokens, size_t start, size_t step,
                 std::span<uint32_t> counts) const {
    uint32_t node = 0;
    int64_t n = 1;
    for (size_t at = start; at < tokens.size() && n <= attrs_.max_length; at += step, ++n) {
      const auto child = children_.find(KeyOf(node, tokens[at]));
      if (child == children_.end()) return;
      node = child->second;
      const bool counts_here = n >= attrs_.min_length && (n > 1 || step == 1);
      if (counts_here && grams_[node] != kNoGram) ++counts[grams_[node]];
    }
  }

  Vocabulary vocabulary_;
  std::vector<uint32_t> pool_;
  std::unordered_map<uint64_t, uint32_t> children_;  // by node and token
  std::vector<uint32_t> grams_;                      // by node: which n-gram ends there
};

constexpr OpRow kRows[] = {
    OpClass<VectorizerKernel>(
        "TfIdfVectorizer",
        {.since = 9, .types = {DataType::kString, DataType::kInt32, DataType::kInt64}}),
};

}  // namespace

TENON_OP_FAMILY(TfidfVectorizer, kRows);

}  // namespace tenon
