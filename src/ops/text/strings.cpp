// StringConcat and StringSplit.
#include <algorithm>
#include <string>
#include <string_view>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"
#include "ops/text/unicode.h"

namespace tenon {
namespace {

constexpr TypeSet kStrings = {DataType::kString};

// StringConcat-20, with NumPy's broadcasting.
Status InferConcat(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, BroadcastShapes(a, b));
  return context.SetOutput(0, std::move(shape));
}

// The element of `operand` that is broadcast to element `i` of a tensor of shape `whole`.
const std::string& BroadcastElement(const Tensor& operand, const Shape& whole, int64_t i) {
  const Shape& shape = operand.shape();
  int64_t position = 0, stride = 1;
  for (size_t axis = whole.rank(); axis-- > 0;) {
    const int64_t coordinate = i % whole[axis];
    i /= whole[axis];
    if (axis + shape.rank() < whole.rank()) break;
    const int64_t dim = shape[axis + shape.rank() - whole.rank()];
    if (dim != 1) position += coordinate * stride;
    stride *= dim;
  }
  return operand.data<std::string>()[position];
}

Status RunConcat(const NoAttrs&, KernelContext& context) {
  const Tensor& a = context.Input(0);
  const Tensor& b = context.Input(1);
  Tensor& y = context.Output(0);
  for (int64_t i = 0; i < y.size(); ++i) {
    const std::string& left = BroadcastElement(a, y.shape(), i);
    const std::string& right = BroadcastElement(b, y.shape(), i);
    std::string& joined = y.data<std::string>()[i];
    joined.clear();
    joined.reserve(left.size() + right.size());
    joined.append(left).append(right);
  }
  return OkStatus();
}

// StringSplit-20. Without a delimiter, words between white space.
struct SplitAttrs {
  std::string delimiter;
  std::optional<int64_t> maxsplit;
  static constexpr auto Fields() {
    return std::tuple(Field("delimiter", &SplitAttrs::delimiter),
                      Field("maxsplit", &SplitAttrs::maxsplit));
  }
  int64_t most_splits() const { return maxsplit && *maxsplit >= 0 ? *maxsplit : INT64_MAX; }
};

Status InferSplit(const SplitAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, context.Input(0));
  SymbolicShape parts = shape;
  parts.Append(Dim::Unknown());
  TENON_RETURN_IF_ERROR(context.SetOutput(0, std::move(parts), DataType::kString));
  return context.SetOutput(1, shape, DataType::kInt64);
}

// How many bytes of white space `text` begins with.
size_t LeadingSpace(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const CodePoint next = DecodeUtf8(text.substr(bytes));
    if (!IsWhiteSpace(next.value)) break;
    bytes += next.bytes;
  }
  return bytes;
}

size_t LeadingWord(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const CodePoint next = DecodeUtf8(text.substr(bytes));
    if (IsWhiteSpace(next.value)) break;
    bytes += next.bytes;
  }
  return bytes;
}

void SplitWords(std::string_view text, int64_t most, std::vector<std::string_view>& parts) {
  text.remove_prefix(LeadingSpace(text));
  for (int64_t splits = 0; !text.empty(); ++splits) {
    if (splits == most) {
      parts.push_back(text);
      return;
    }
    const size_t word = LeadingWord(text);
    parts.push_back(text.substr(0, word));
    text.remove_prefix(word);
    text.remove_prefix(LeadingSpace(text));
  }
}

void SplitAt(std::string_view delimiter, std::string_view text, int64_t most,
             std::vector<std::string_view>& parts) {
  for (int64_t splits = 0; splits < most; ++splits) {
    const size_t end = text.find(delimiter);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + delimiter.size());
  }
  parts.push_back(text);
}

Status RunSplit(const SplitAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  std::vector<std::string_view> parts;
  std::vector<size_t> ends;  // in `parts`, of each element's
  size_t most = 0;
  for (const std::string& text : x.values<std::string>()) {
    const size_t begin = parts.size();
    if (attrs.delimiter.empty()) {
      SplitWords(text, attrs.most_splits(), parts);
    } else {
      SplitAt(attrs.delimiter, text, attrs.most_splits(), parts);
    }
    ends.push_back(parts.size());
    most = std::max(most, parts.size() - begin);
  }
  if (context.HasOutput(0)) {
    Shape shape = x.shape();
    shape.Append(static_cast<int64_t>(most));
    TENON_ASSIGN_OR_RETURN(Tensor * output, context.AllocateOutput(0, DataType::kString, shape));
    size_t next = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
      std::string* row = output->data<std::string>() + i * most;
      for (; next < ends[i]; ++next) *row++ = parts[next];
    }
  }
  if (context.HasOutput(1)) {
    TENON_ASSIGN_OR_RETURN(Tensor * counts, context.AllocateOutput(1, DataType::kInt64, x.shape()));
    for (size_t i = 0; i < ends.size(); ++i) {
      counts->data<int64_t>()[i] = static_cast<int64_t>(ends[i] - (i == 0 ? 0 : ends[i - 1]));
    }
  }
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferConcat, RunConcat>("StringConcat", {.since = 20, .types = kStrings}),
    Op<InferSplit, RunSplit>(
        "StringSplit", {.since = 20, .types = kStrings, .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(Strings, kRows);

}  // namespace tenon
