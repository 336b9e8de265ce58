// StringNormalizer: words removed from a list, the rest in one case.
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/utf8.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/text/unicode.h"

namespace tenon {
namespace {

struct NormalizerAttrs {
  std::string case_change_action = "NONE";
  bool is_case_sensitive = false;
  std::vector<std::string> stopwords;
  std::string locale = "en_US";
  static constexpr auto Fields() {
    return std::tuple(Field("case_change_action", &NormalizerAttrs::case_change_action),
                      Field("is_case_sensitive", &NormalizerAttrs::is_case_sensitive),
                      Field("stopwords", &NormalizerAttrs::stopwords),
                      Field("locale", &NormalizerAttrs::locale));
  }
};

// Whether this looks like the name of a locale: a language with, perhaps, a country, an encoding
// and a modifier, as in "de_DE.UTF-8@euro"; on Windows "de-DE".
bool IsLocaleName(std::string_view name) {
  name = name.substr(0, name.find_first_of(".@"));
  if (name.empty() || name == "C" || name == "POSIX") return true;
  const size_t language = std::min(name.find_first_of("_-"), name.size());
  const size_t country = language < name.size() ? name.size() - language - 1 : 2;
  return (language == 2 || language == 3) && (country == 2 || country == 3);
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint next = DecodeUtf8(text);
    if (next.value >= kInvalidByte) return false;
    text.remove_prefix(next.bytes);
  }
  return true;
}

Status InferNormalizer(const NormalizerAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, context.Input(0));
  const bool is_row = shape.rank() == 2 && (!shape[0].is_number() || shape[0].value() == 1);
  if (shape.rank() != 1 && !is_row) {
    return InvalidArgument("input 0: expected shape [C] or [1, C], got {}", shape);
  }
  SymbolicShape output = shape;
  output[shape.rank() - 1] = Dim::Unknown();
  return context.SetOutput(0, std::move(output), DataType::kString);
}

// StringNormalizer-10. The locale is only checked: case mapping is Unicode's.
class NormalizerKernel final : public StatefulKernel<InferNormalizer> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    const std::string& action = attrs_.case_change_action;
    if (action != "NONE" && action != "LOWER" && action != "UPPER") {
      return InvalidArgument(
          "attribute 'case_change_action': expected NONE, LOWER or UPPER, got '{}'", action);
    }
    const bool changes_case =
        action != "NONE" || (!attrs_.is_case_sensitive && !attrs_.stopwords.empty());
    if (changes_case && !IsLocaleName(attrs_.locale)) {
      return InvalidArgument("attribute 'locale': expected a name like en_US, got '{}'",
                             attrs_.locale);
    }
    for (const std::string& word : attrs_.stopwords) {
      stopwords_.insert(attrs_.is_case_sensitive ? word : ToLower(word));
    }
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Tensor& x = context.Input(0);
    if (x.rank() != 1 && !(x.rank() == 2 && x.shape()[0] == 1)) {
      return InvalidArgument("input 0: expected shape [C] or [1, C], got {}", x.shape());
    }
    std::vector<const std::string*> kept;
    for (const std::string& word : x.values<std::string>()) {
      if (!IsUtf8(word)) return InvalidArgument("input 0: expected UTF-8, got other bytes");
      const bool is_dropped = !stopwords_.empty() &&
                              stopwords_.count(attrs_.is_case_sensitive ? word : ToLower(word)) > 0;
      if (!is_dropped) kept.push_back(&word);
    }
    const auto count = static_cast<int64_t>(kept.empty() ? 1 : kept.size());
    const Shape shape = x.rank() == 1 ? Shape({count}) : Shape({1, count});
    TENON_ASSIGN_OR_RETURN(Tensor * output, context.AllocateOutput(0, DataType::kString, shape));
    for (size_t i = 0; i < kept.size(); ++i) output->data<std::string>()[i] = Changed(*kept[i]);
    return OkStatus();
  }

 private:
  std::string Changed(const std::string& word) const {
    if (attrs_.case_change_action == "LOWER") return ToLower(word);
    return attrs_.case_change_action == "UPPER" ? ToUpper(word) : word;
  }

  std::unordered_set<std::string> stopwords_;
};

constexpr OpRow kRows[] = {
    OpClass<NormalizerKernel>(
        "StringNormalizer",
        {.since = 10, .types = {DataType::kString}, .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(StringNormalizer, kRows);

}  // namespace tenon
