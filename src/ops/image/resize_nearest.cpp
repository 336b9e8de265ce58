// Resize by picking the nearest element.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ops/framework/element.h"
#include "ops/image/resize.h"

namespace tenon {
namespace {

// For each axis, the input position of each element of the output; -1 if it is extrapolated.
struct NearestTables {
  std::array<const int32_t*, kMaxResizeRank> sources{};
  // Elements after the last axis that changes are moved together.
  size_t rank = 0;
  int64_t inner = 1;
  int64_t repeats = 0;  // r if element o of the last axis comes from o / r, else 0
};

int64_t RepeatsOf(const ResizeAxis& axis, const int32_t* sources) {
  if (axis.out % axis.in != 0) return 0;
  const int64_t repeats = axis.out / axis.in;
  for (int64_t o = 0; o < axis.out; ++o) {
    if (sources[o] != o / repeats) return 0;
  }
  return repeats;
}

NearestTables MakeTables(const ResizePlan& plan, int32_t* memory) {
  NearestTables tables;
  for (size_t i = 0; i < plan.rank; ++i) {
    const ResizeAxis& axis = plan.axes[i];
    tables.sources[i] = memory;
    if (axis.is_identity()) {
      std::iota(memory, memory + axis.out, 0);
      memory += axis.out;
      continue;
    }
    for (int64_t o = 0; o < axis.out; ++o) {
      const double position = SourcePosition(axis, plan.interpolation.coordinates, o);
      const bool outside = IsExtrapolated(axis, plan.interpolation.coordinates, position);
      *memory++ = outside ? -1 : static_cast<int32_t>(NearestElement(axis, plan.nearest, position));
    }
  }
  tables.rank = plan.rank;
  while (tables.rank > 0 && plan.axes[tables.rank - 1].is_identity()) {
    tables.inner *= plan.axes[--tables.rank].in;
  }
  if (tables.rank > 0) {
    tables.repeats = RepeatsOf(plan.axes[tables.rank - 1], tables.sources[tables.rank - 1]);
  }
  return tables;
}

template <class T, int64_t repeats>
void Repeat(const T* x, T* y, int64_t in) {
  for (int64_t i = 0; i < in; ++i) {
    for (int64_t k = 0; k < repeats; ++k) y[i * repeats + k] = x[i];
  }
}

template <class T>
void PickAlong(const ResizeAxis& axis, const NearestTables& tables, const T* x, T* y,
               const T& outside) {
  const int32_t* sources = tables.sources[tables.rank - 1];
  const int64_t inner = tables.inner;
  if (inner == 1 && tables.repeats == 2) return Repeat<T, 2>(x, y, axis.in);
  if (inner == 1 && tables.repeats == 4) return Repeat<T, 4>(x, y, axis.in);
  if (inner == 1) {
    for (int64_t o = 0; o < axis.out; ++o) y[o] = sources[o] < 0 ? outside : x[sources[o]];
    return;
  }
  for (int64_t o = 0; o < axis.out; ++o) {
    if (sources[o] < 0) {
      std::fill_n(y + o * inner, inner, outside);
    } else {
      std::copy_n(x + sources[o] * inner, inner, y + o * inner);
    }
  }
}

// The element of the input's first `axes` axes from which element `index` of the output's comes; -1
// if it is extrapolated.
int64_t SourceOf(const ResizePlan& plan, const NearestTables& tables, size_t axes, int64_t index) {
  int64_t source = 0, stride = 1;
  for (size_t i = axes; i-- > 0;) {
    const int32_t element = tables.sources[i][index % plan.axes[i].out];
    if (element < 0) return -1;
    source += element * stride;
    stride *= plan.axes[i].in;
    index /= plan.axes[i].out;
  }
  return source;
}

// The sources of the output's rows from one on. It divides once a frame, the rows of one axis.
class SourceRows {
 public:
  SourceRows(const ResizePlan& plan, const NearestTables& tables, int64_t first)
      : plan_(plan), tables_(tables) {
    if (axes_ == 0) return;
    const int64_t out = plan.axes[axes_ - 1].out;
    row_ = first % out;
    MoveTo(first / out);
  }

  // The input's row; -1 if it is extrapolated.
  int64_t Next() {
    if (axes_ == 0) return 0;
    const ResizeAxis& axis = plan_.axes[axes_ - 1];
    if (row_ == axis.out) {
      row_ = 0;
      MoveTo(frame_ + 1);
    }
    const int64_t element = tables_.sources[axes_ - 1][row_++];
    return source_ < 0 || element < 0 ? -1 : source_ * axis.in + element;
  }

 private:
  void MoveTo(int64_t frame) {
    frame_ = frame;
    source_ = SourceOf(plan_, tables_, axes_ - 1, frame);
  }

  const ResizePlan& plan_;
  const NearestTables& tables_;
  const size_t axes_ = tables_.rank - 1;  // that rows are along
  int64_t frame_ = 0, source_ = 0;        // of the output, and of the input
  int64_t row_ = 0;
};

template <class T>
void PickRows(const ResizePlan& plan, const NearestTables& tables, const T* x, T* y,
              const T& outside, ThreadPool& threads) {
  const ResizeAxis& last = plan.axes[tables.rank - 1];
  const int64_t in_row = last.in * tables.inner, out_row = last.out * tables.inner;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < tables.rank; ++i) rows *= plan.axes[i].out;
  const size_t grain = CopyGrain(static_cast<size_t>(out_row) * sizeof(T));
  threads.ParallelFor(static_cast<size_t>(rows), grain, [&](size_t begin, size_t end) {
    SourceRows sources(plan, tables, static_cast<int64_t>(begin));
    int64_t before = -1;  // the source of the previous row, which is faster to copy
    for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
      const int64_t source = sources.Next();
      T* to = y + row * out_row;
      if (source < 0) {
        std::fill_n(to, out_row, outside);
      } else if (source == before) {
        std::copy_n(to - out_row, out_row, to);
      } else {
        PickAlong(last, tables, x + source * in_row, to, outside);
      }
      before = source;
    }
  });
}

// The bits of the extrapolation value as an element.
template <class T>
T ElementOf(DataType type, float value) {
  T element{};
  if constexpr (!std::is_same_v<T, std::string>) {
    if (type == DataType::kComplex64) type = DataType::kFloat;
    if (type == DataType::kComplex128) type = DataType::kDouble;
    VisitNumber(type, [&]<class N>(N) {
      const auto number = static_cast<N>(value);
      if constexpr (sizeof(N) <= sizeof(T)) std::memcpy(&element, &number, sizeof(N));
    });
  }
  return element;
}

}  // namespace

Status RunNearest(const ResizePlan& plan, KernelContext& context) {
  const Tensor& input = context.Input(0);
  size_t entries = 0;
  for (size_t i = 0; i < plan.rank; ++i) entries += static_cast<size_t>(plan.axes[i].out);
  auto* memory = static_cast<int32_t*>(context.Scratch((entries + 1) * sizeof(int32_t)));
  if (memory == nullptr) return RuntimeException("out of memory for {} positions", entries);
  const NearestTables tables = MakeTables(plan, memory);
  VisitElement(input.type(), [&]<class T>(T) {
    const T* x = input.data<T>();
    T* y = context.Output(0).data<T>();
    if (tables.rank == 0) {
      std::copy_n(x, input.size(), y);
    } else {
      const T outside = ElementOf<T>(input.type(), plan.extrapolation_value);
      PickRows(plan, tables, x, y, outside, context.threads());
    }
  });
  return OkStatus();
}

}  // namespace tenon
