// RegexFullMatch-20.
#include "ops/framework/stateful_kernel.h"
#include "ops/text/regex.h"

namespace tenon {
namespace {

struct RegexAttrs {
  std::optional<std::string> pattern;
  static constexpr auto Fields() { return std::tuple(Field("pattern", &RegexAttrs::pattern)); }
};

Status InferRegexFullMatch(const RegexAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  return context.SetOutput(0, std::move(shape), DataType::kBool);
}

class RegexKernel final : public StatefulKernel<InferRegexFullMatch> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    if (!attrs_.pattern) return InvalidArgument("attribute 'pattern' is missing");
    TENON_ASSIGN_OR_RETURN(regex_, Regex::Compile(*attrs_.pattern));
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Tensor& x = context.Input(0);
    bool* const y = context.Output(0).data<bool>();
    constexpr size_t kGrain = 64;
    context.threads().ParallelFor(static_cast<size_t>(x.size()), kGrain,
                                  [&](size_t begin, size_t end) {
                                    RegexMatcher matcher(regex_);
                                    for (size_t i = begin; i < end; ++i)
                                      y[i] = matcher.FullMatch(x.data<std::string>()[i]);
                                  });
    return OkStatus();
  }

 private:
  Regex regex_;
};

constexpr OpRow kRows[] = {
    OpClass<RegexKernel>("RegexFullMatch", {.since = 20, .types = {DataType::kString}}),
};

}  // namespace

TENON_OP_FAMILY(RegexMatch, kRows);

}  // namespace tenon
