// Operators on tokens of text in com.microsoft: hashes, repeated n-grams, embeddings of words from
// their characters.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// --- MurmurHash3-1: Austin Appleby's MurmurHash3 for 32 bits ---

struct HashAttrs {
  int64_t seed = 0;
  bool is_positive = true;
  static constexpr auto Fields() {
    return std::tuple(Field("seed", &HashAttrs::seed), Field("positive", &HashAttrs::is_positive));
  }
};

uint32_t MixBlock(uint32_t block) { return std::rotl(block * 0xcc9e2d51u, 15) * 0x1b873593u; }

uint32_t MurmurHash(const void* data, size_t size, uint32_t seed) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  uint32_t hash = seed;
  const size_t blocks = size / 4;
  for (size_t i = 0; i < blocks; ++i) {
    uint32_t block = 0;
    for (size_t k = 0; k < 4; ++k) block |= uint32_t{bytes[4 * i + k]} << (8 * k);
    hash = std::rotl(hash ^ MixBlock(block), 13) * 5 + 0xe6546b64u;
  }
  uint32_t rest = 0;
  for (size_t k = 0; k < size % 4; ++k) rest |= uint32_t{bytes[4 * blocks + k]} << (8 * k);
  if (size % 4 != 0) hash ^= MixBlock(rest);
  hash ^= static_cast<uint32_t>(size);
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

Status InferHash(const HashAttrs& attrs, ShapeContext& context) {
  if (attrs.seed < 0 || attrs.seed > std::numeric_limits<uint32_t>::max()) {
    return InvalidArgument("expected a seed of 32 bits, got {}", attrs.seed);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x),
                           attrs.is_positive ? DataType::kUint32 : DataType::kInt32);
}

Status RunHash(const HashAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  auto* y = static_cast<uint32_t*>(context.Output(0).raw());
  const auto seed = static_cast<uint32_t>(attrs.seed);
  if (x.type() == DataType::kString) {
    for (int64_t i = 0; i < x.size(); ++i) {
      const std::string& text = x.data<std::string>()[i];
      y[i] = MurmurHash(text.data(), text.size(), seed);
    }
    return OkStatus();
  }
  const size_t size = DataTypeBits(x.type()) / 8;
  const auto* bytes = static_cast<const std::byte*>(x.raw());
  for (int64_t i = 0; i < x.size(); ++i, bytes += size) y[i] = MurmurHash(bytes, size, seed);
  return OkStatus();
}

// --- NGramRepeatBlock-1 ---

struct NGramAttrs {
  int64_t size = 0;
  static constexpr auto Fields() { return std::tuple(Field("ngram_size", &NGramAttrs::size)); }
};

Status InferNGram(const NGramAttrs& attrs, ShapeContext& context) {
  if (attrs.size < 1) return InvalidArgument("expected ngram_size >= 1, got {}", attrs.size);
  TENON_RETURN_IF_ERROR(CheckElementType(context, 1, DataType::kFloat));
  TENON_ASSIGN_OR_RETURN(SymbolicShape scores, context.InputOfRank(1, 2));
  const Result<SymbolicShape> ids = context.InputOfRank(0, 2);
  if (!ids && !IsUnknownShape(ids.error())) return ids.error();
  if (ids && (*ids)[0].is_number() && scores[0].is_number() && !((*ids)[0] == scores[0])) {
    return InvalidArgument("input 0: expected {} rows as in scores, got {}", scores[0], *ids);
  }
  return context.SetOutput(0, std::move(scores), DataType::kFloat);
}

Status RunNGram(const NGramAttrs& attrs, KernelContext& context) {
  const Tensor& ids = context.Input(0);
  const Tensor& scores = context.Input(1);
  Tensor& y = context.Output(0);
  if (y.raw() != scores.raw()) std::copy_n(scores.data<float>(), scores.size(), y.data<float>());
  const int64_t length = ids.shape()[1], vocabulary = scores.shape()[1];
  if (length < attrs.size) return OkStatus();
  const int64_t prefix = attrs.size - 1;
  for (int64_t b = 0; b < ids.shape()[0]; ++b) {
    const int64_t* row = ids.data<int64_t>() + b * length;
    const int64_t* last = row + length - prefix;
    for (int64_t i = 0; i + prefix < length; ++i) {
      if (!std::equal(row + i, row + i + prefix, last)) continue;
      const int64_t token = row[i + prefix];
      if (token < 0 || token >= vocabulary) {
        return InvalidArgument("input 0: expected tokens in [0, {}), got {}", vocabulary, token);
      }
      y.data<float>()[b * vocabulary + token] = -std::numeric_limits<float>::infinity();
    }
  }
  return OkStatus();
}

// --- WordConvEmbedding-1: the most that a convolution over a word's characters finds ---

enum WordInput : size_t { kWords, kFilters, kBias, kCharacters };

struct WordAttrs {
  std::optional<int64_t> filters, window, character_size;
  static constexpr auto Fields() {
    return std::tuple(Field("embedding_size", &WordAttrs::filters),
                      Field("conv_window_size", &WordAttrs::window),
                      Field("char_embedding_size", &WordAttrs::character_size));
  }
};

Status InferWord(const WordAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape words, context.Input(kWords));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape filters, context.InputOfRank(kFilters, 4));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape bias, context.InputOfRank(kBias, 1));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape characters, context.InputOfRank(kCharacters, 2));
  if (words.rank() < 1) return InvalidArgument("input 0: expected rank >= 1, got a scalar");
  const auto may_equal = [](const Dim& a, const Dim& b) {
    return !a.is_number() || !b.is_number() || a == b;
  };
  const bool fits = may_equal(filters[1], Dim(1)) && may_equal(filters[3], characters[1]) &&
                    may_equal(bias[0], filters[0]);
  const bool has_window = !words[words.rank() - 1].is_number() || !filters[2].is_number() ||
                          words[words.rank() - 1].value() >= filters[2].value();
  if (!fits || !has_window) {
    return InvalidArgument("filters {}, bias {} and characters {} do not fit to words {}", filters,
                           bias, characters, words);
  }
  const auto agrees = [&](const std::optional<int64_t>& attribute, const Dim& size) {
    return !attribute || *attribute == -1 || may_equal(Dim(*attribute), size);
  };
  if (!agrees(attrs.filters, filters[0]) || !agrees(attrs.window, filters[2]) ||
      !agrees(attrs.character_size, characters[1])) {
    return InvalidArgument(
        "embedding_size {}, conv_window_size {} or char_embedding_size {} is not that of filters "
        "{} and characters {}",
        attrs.filters.value_or(-1), attrs.window.value_or(-1), attrs.character_size.value_or(-1),
        filters, characters);
  }
  SymbolicShape y = words;
  y[y.rank() - 1] = filters[0];
  return context.SetOutput(0, std::move(y), DataType::kFloat);
}

// The result of filter f for the window that begins at a character.
float WindowValue(const KernelContext& context, const int32_t* window, size_t f) {
  const Tensor& filters = context.Input(kFilters);
  const auto width = static_cast<size_t>(filters.shape()[2]);
  const auto size = static_cast<size_t>(filters.shape()[3]);
  const float* filter = filters.data<float>() + f * width * size;
  float sum = context.Input(kBias).data<float>()[f];
  const int64_t known = context.Input(kCharacters).shape()[0];
  for (size_t i = 0; i < width; ++i) {
    if (window[i] < 0 || window[i] >= known) continue;  // unknown: zeros, as in onnxruntime
    const float* character =
        context.Input(kCharacters).data<float>() + static_cast<size_t>(window[i]) * size;
    for (size_t p = 0; p < size; ++p) sum += filter[i * size + p] * character[p];
  }
  return sum;
}

Status RunWord(const WordAttrs&, KernelContext& context) {
  const Tensor& words = context.Input(kWords);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  const auto count = static_cast<size_t>(y.shape().back());
  const auto length = static_cast<size_t>(words.shape().back());
  const auto width = static_cast<size_t>(context.Input(kFilters).shape()[2]);
  context.threads().ParallelFor(
      static_cast<size_t>(y.size()) / count, 1, [&](size_t begin, size_t end) {
        for (size_t row = begin; row < end; ++row) {
          const int32_t* word = words.data<int32_t>() + row * length;
          // A word ends at its first character 0, as in onnxruntime, and is empty if it begins with
          // 0. Windows that would cross its end do not count, except the first.
          const auto others = static_cast<size_t>(
              std::count_if(word, word + length, [](int32_t id) { return id > 0; }));
          const size_t used = others == 0 || word[0] <= 0 ? 0 : others;
          const size_t windows = std::max<size_t>(1, used >= width ? used - width + 1 : 1);
          float* into = y.data<float>() + row * count;
          for (size_t f = 0; f < count; ++f) {
            float most = -std::numeric_limits<float>::infinity();
            for (size_t i = 0; i < windows; ++i) {
              most = std::max(most, std::tanh(WindowValue(context, word + i, f)));
            }
            into[f] = used == 0 ? 0 : most;
          }
        }
      });
  return OkStatus();
}

constexpr const char* kMicrosoft = "com.microsoft";

constexpr OpRow kRows[] = {
    Op<InferHash, RunHash>("MurmurHash3", {.domain = kMicrosoft}),
    Op<InferNGram, RunNGram>(
        "NGramRepeatBlock",
        {.domain = kMicrosoft, .types = {DataType::kInt64}, .traits = {.in_place_input = 1}}),
    Op<InferWord, RunWord>("WordConvEmbedding",
                           {.domain = kMicrosoft, .types = {DataType::kInt32}}),
};

}  // namespace

TENON_OP_FAMILY(TextHash, kRows);

}  // namespace tenon
