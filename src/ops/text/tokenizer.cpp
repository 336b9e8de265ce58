// com.microsoft Tokenizer-1: strings split into tokens.
#include <algorithm>
#include <string>
#include <string_view>

#include "ops/framework/stateful_kernel.h"
#include "ops/text/regex.h"
#include "ops/text/unicode.h"

namespace tenon {
namespace {

constexpr char kTextBegins = '\x02';
constexpr char kTextEnds = '\x03';

struct TokenizerAttrs {
  bool mark = false;
  int64_t mincharnum = 1;
  std::string pad_value;
  std::vector<std::string> separators;
  std::string tokenexp;
  static constexpr auto Fields() {
    return std::tuple(Field("mark", &TokenizerAttrs::mark),
                      Field("mincharnum", &TokenizerAttrs::mincharnum),
                      Field("pad_value", &TokenizerAttrs::pad_value),
                      Field("separators", &TokenizerAttrs::separators),
                      Field("tokenexp", &TokenizerAttrs::tokenexp));
  }
};

Status InferTokenizer(const TokenizerAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  if (shape.rank() != 1 && shape.rank() != 2) {
    return InvalidArgument("input 0: expected shape [C] or [N, C], got {}", shape);
  }
  const bool is_empty = std::any_of(shape.begin(), shape.end(), [](const Dim& dim) {
    return dim.is_number() && dim.value() == 0;
  });
  if (is_empty) {
    shape[shape.rank() - 1] = 0;
  } else {
    shape.Append(Dim::Unknown());
  }
  return context.SetOutput(0, std::move(shape), DataType::kString);
}

// [C, tokens] or [N, C, tokens]; without any string [0] or [N, 0], as onnxruntime has it.
Shape OutputShape(Shape input, size_t tokens) {
  if (std::count(input.begin(), input.end(), 0) > 0) {
    input[input.rank() - 1] = 0;
  } else {
    input.Append(static_cast<int64_t>(tokens));
  }
  return input;
}

// For text that may have invalid UTF-8 bytes.
Result<int64_t> CodePointCount(std::string_view text) {
  int64_t count = 0;
  for (; !text.empty(); ++count) {
    const CodePoint next = DecodeUtf8(text);
    if (next.value >= kInvalidByte) return InvalidArgument("input 0: expected UTF-8");
    text.remove_prefix(next.bytes);
  }
  return count;
}

// The end of the code point at `at`, which may be the end of the text.
size_t Next(std::string_view text, size_t at) {
  return at == text.size() ? at + 1 : at + DecodeUtf8(text.substr(at)).bytes;
}

class TokenizerKernel final : public StatefulKernel<InferTokenizer> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    if (attrs_.mincharnum < 1) {
      return InvalidArgument("attribute 'mincharnum': expected at least 1, got {}",
                             attrs_.mincharnum);
    }
    // The pattern '.' means single characters too, newlines among them.
    splits_letters_ = attrs_.separators.empty()
                          ? attrs_.tokenexp == "."
                          : attrs_.separators.size() == 1 && attrs_.separators[0].empty();
    if (splits_letters_) {
      if (attrs_.mincharnum == 1) return OkStatus();
      return InvalidArgument("attribute 'mincharnum': expected 1 for tokens of one letter, got {}",
                             attrs_.mincharnum);
    }
    if (attrs_.separators.empty() && attrs_.tokenexp.empty()) {
      return InvalidArgument("expected attribute 'separators' or 'tokenexp', got neither");
    }
    for (const std::string& separator : attrs_.separators) {
      TENON_ASSIGN_OR_RETURN(Regex regex, Regex::Compile(separator));
      separators_.push_back(std::move(regex));
    }
    if (attrs_.separators.empty()) {
      TENON_ASSIGN_OR_RETURN(tokens_, Regex::Compile(attrs_.tokenexp));
    }
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Tensor& x = context.Input(0);
    if (x.rank() != 1 && x.rank() != 2) {
      return InvalidArgument("input 0: expected shape [C] or [N, C], got {}", x.shape());
    }
    std::vector<std::string_view> all;
    std::vector<size_t> ends;  // in `all`, of each string's tokens
    size_t most = 0;
    for (const std::string& text : x.values<std::string>()) {
      const size_t begin = all.size();
      TENON_RETURN_IF_ERROR(Split(text, all));
      most = std::max(most, all.size() - begin);
      ends.push_back(all.size());
    }
    const bool has_marks = attrs_.mark && most > 0;
    const size_t row = most + (has_marks ? 2 : 0);
    TENON_ASSIGN_OR_RETURN(
        Tensor * y, context.AllocateOutput(0, DataType::kString, OutputShape(x.shape(), row)));
    auto* out = y->data<std::string>();
    size_t next = 0;
    for (const size_t end : ends) {
      std::string* const row_end = out + row;
      if (has_marks) *out++ = kTextBegins;
      for (; next < end; ++next) *out++ = all[next];
      if (has_marks) *out++ = kTextEnds;
      while (out < row_end) *out++ = attrs_.pad_value;
    }
    return OkStatus();
  }

 private:
  // Appends the tokens of a string.
  Status Split(std::string_view text, std::vector<std::string_view>& tokens) const {
    TENON_RETURN_IF_ERROR(CodePointCount(text));
    if (splits_letters_) {
      for (; !text.empty(); text.remove_prefix(Next(text, 0))) {
        tokens.push_back(text.substr(0, Next(text, 0)));
      }
      return OkStatus();
    }
    if (separators_.empty()) return FindTokens(text, tokens);
    // Each separator splits the results of the ones before it, as separate texts.
    std::vector<std::string_view> pieces = {text}, parts;
    for (const Regex& separator : separators_) {
      parts.clear();
      RegexMatcher matcher(separator);
      for (const std::string_view piece : pieces) {
        TENON_RETURN_IF_ERROR(SplitAt(matcher, piece, parts));
      }
      std::swap(pieces, parts);
    }
    tokens.insert(tokens.end(), pieces.begin(), pieces.end());
    return OkStatus();
  }

  Status FindTokens(std::string_view text, std::vector<std::string_view>& tokens) const {
    RegexMatcher matcher(tokens_);
    for (size_t begin = 0; begin < text.size();) {
      const auto match = matcher.FindLongest(text, begin);
      if (!match) break;
      TENON_RETURN_IF_ERROR(Keep(text.substr(match->begin, match->end - match->begin), tokens));
      begin = match->end == match->begin ? Next(text, match->end) : match->end;
    }
    return OkStatus();
  }

  // A separator that matches no character takes the character after it.
  Status SplitAt(RegexMatcher& separator, std::string_view text,
                 std::vector<std::string_view>& parts) const {
    size_t begin = 0;
    while (begin < text.size()) {
      const auto match = separator.FindLongest(text, begin);
      if (!match) break;
      TENON_RETURN_IF_ERROR(Keep(text.substr(begin, match->begin - begin), parts));
      begin = match->end == match->begin ? Next(text, match->end) : match->end;
    }
    return begin < text.size() ? Keep(text.substr(begin), parts) : OkStatus();
  }

  // Adds a token that is long enough.
  Status Keep(std::string_view token, std::vector<std::string_view>& tokens) const {
    TENON_ASSIGN_OR_RETURN(const int64_t count, CodePointCount(token));
    if (count >= attrs_.mincharnum) tokens.push_back(token);
    return OkStatus();
  }

  bool splits_letters_ = false;
  std::vector<Regex> separators_;
  Regex tokens_;
};

constexpr OpRow kRows[] = {
    OpClass<TokenizerKernel>("Tokenizer", {.domain = "com.microsoft",
                                           .types = {DataType::kString},
                                           .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(Tokenizer, kRows);

}  // namespace tenon
