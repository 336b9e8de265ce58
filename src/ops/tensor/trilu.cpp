// Trilu: a triangle of each matrix.
#include <algorithm>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Trilu-14: keeps the triangle above or below diagonal k, and clears the rest.
struct TriluAttrs {
  bool upper = true;
  static constexpr auto Fields() { return std::tuple(Field("upper", &TriluAttrs::upper)); }
};

Status InferTrilu(const TriluAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape input, context.Input(0));
  if (input.rank() < 2) return InvalidArgument("input 0: expected rank >= 2, got {}", input);
  return context.SetOutput(0, std::move(input));
}

Status RunTrilu(const TriluAttrs& attrs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  int64_t diagonal = 0;
  if (context.HasInput(1)) {
    TENON_ASSIGN_OR_RETURN(const Shape k, IntegersOf(context.Input(1)));
    if (k.rank() != 1) return InvalidArgument("input 1: expected one number");
    diagonal = k[0];
  }
  const Shape& shape = input.shape();
  const int64_t rows = shape[shape.rank() - 2];
  const int64_t columns = shape.back();
  // Beyond the corners the result is the same, and sums stay small.
  diagonal = std::clamp(diagonal, -rows, columns);
  VisitElement(input.type(), [&](auto element) {
    using T = decltype(element);
    const T* x = input.data<T>();
    T* y = context.Output(0).data<T>();
    const auto lines = static_cast<size_t>(columns == 0 ? 0 : input.size() / columns);
    context.threads().ParallelFor(
        lines, CopyGrain(static_cast<size_t>(columns) * sizeof(T)), [&](size_t begin, size_t end) {
          for (auto line = static_cast<int64_t>(begin); line < static_cast<int64_t>(end); ++line) {
            const int64_t row = line % rows;
            // Columns before `middle` are below the diagonal, or with `upper` unset on it too.
            const int64_t middle =
                std::clamp<int64_t>(row + diagonal + (attrs.upper ? 0 : 1), 0, columns);
            const T* from = x + line * columns;
            T* to = y + line * columns;
            const int64_t kept = attrs.upper ? middle : 0;
            const int64_t cleared = attrs.upper ? 0 : middle;
            const int64_t kept_count = attrs.upper ? columns - middle : middle;
            if (from != to) std::copy_n(from + kept, kept_count, to + kept);
            std::fill_n(to + cleared, columns - kept_count, T());
          }
        });
  });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferTrilu, RunTrilu>(
        "Trilu", {.since = 14, .types = kWholeByteTypes, .traits = {.in_place_input = 0}}),
    Op<InferTrilu, RunTrilu>(
        "Trilu",
        {.domain = "com.microsoft", .types = kWholeByteTypes, .traits = {.in_place_input = 0}}),
};

}  // namespace

TENON_OP_FAMILY(Trilu, kRows);

}  // namespace tenon
