// ScatterElements and ScatterND: write elements at indices.
#include <algorithm>
#include <complex>
#include <cstring>

#include "ops/framework/element.h"
#include "ops/framework/indices.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum class Reduction : uint8_t { kNone, kAdd, kMul, kMax, kMin };

Result<Reduction> ReductionFromName(std::string_view name) {
  if (name.empty() || name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  return InvalidArgument("attribute 'reduction': expected none, add, mul, max or min, got '{}'",
                         name);
}

template <class T>
void Combine(Reduction reduction, T update, T& into) {
  const auto a = Widen(into);
  const auto b = Widen(update);
  using W = std::remove_const_t<decltype(a)>;
  switch (reduction) {
    case Reduction::kAdd:
      into = static_cast<T>(static_cast<W>(a + b));
      return;
    case Reduction::kMul:
      into = static_cast<T>(static_cast<W>(a * b));
      return;
    case Reduction::kMax:
      into = static_cast<T>(std::max(a, b));
      return;
    case Reduction::kMin:
      into = static_cast<T>(std::min(a, b));
      return;
    case Reduction::kNone:
      into = update;
  }
}

// Strings are concatenated, and their order is that of code points.
[[gnu::noinline]] void CombineTexts(Reduction reduction, const std::string& update,
                                    std::string& into) {
  const bool is_better = reduction == Reduction::kMax ? into < update : update < into;
  if (reduction == Reduction::kAdd) {
    into += update;
  } else if (is_better) {
    into = update;
  }
}

template <class T>
[[gnu::noinline]] void CombineComplex(bool adds, std::complex<T> update, std::complex<T>& into) {
  const T re = into.real(), im = into.imag();
  into = adds ? into + update
              : std::complex<T>(re * update.real() - im * update.imag(),
                                re * update.imag() + im * update.real());
}

template <class T, class Visit>
Status VisitComplex(Reduction reduction, const Visit& visit) {
  if (reduction == Reduction::kMax || reduction == Reduction::kMin) {
    return InvalidArgument("complex numbers have no order");
  }
  const bool adds = reduction == Reduction::kAdd;
  visit(std::complex<T>(), [adds](const std::complex<T>& update, std::complex<T>& into) {
    CombineComplex(adds, update, into);
  });
  return OkStatus();
}

// Calls visit(T(), combine), where combine(update, into) is the reduction. Integers are unsigned if
// only bits matter, so that they wrap around.
template <class Visit>
Status VisitReduction(Reduction reduction, DataType type, const Visit& visit) {
  if (reduction == Reduction::kNone) {
    VisitElement(type, [&](auto element) {
      using T = decltype(element);
      visit(element, [](const T& update, T& into) { into = update; });
    });
    return OkStatus();
  }
  if (type == DataType::kString) {
    if (reduction == Reduction::kMul) return InvalidArgument("strings have no product");
    visit(std::string(), [reduction](const std::string& update, std::string& into) {
      CombineTexts(reduction, update, into);
    });
    return OkStatus();
  }
  if (type == DataType::kComplex64) return VisitComplex<float>(reduction, visit);
  if (type == DataType::kComplex128) return VisitComplex<double>(reduction, visit);
  if (type == DataType::kBool) {  // sums are true where one of the two is, products where both are
    type = DataType::kUint8;
    if (reduction == Reduction::kAdd) reduction = Reduction::kMax;
    if (reduction == Reduction::kMul) reduction = Reduction::kMin;
  }
  if (!kNumbers.Contains(type)) {
    return NotImplemented("attribute 'reduction' on {}", DataTypeName(type));
  }
  const bool wraps = reduction == Reduction::kAdd || reduction == Reduction::kMul;
  if (wraps && kSignedInts.Contains(type)) {
    type = type == DataType::kInt8    ? DataType::kUint8
           : type == DataType::kInt16 ? DataType::kUint16
           : type == DataType::kInt32 ? DataType::kUint32
                                      : DataType::kUint64;
  }
  if (type == DataType::kFloat && reduction == Reduction::kAdd) {  // as graph networks have it
    visit(0.0f, [](const float& update, float& into) { into += update; });
    return OkStatus();
  }
  VisitNumber(type, [&](auto number) {
    using T = decltype(number);
    visit(number, [reduction](const T& update, T& into) { Combine(reduction, update, into); });
  });
  return OkStatus();
}

void CopyData(const Tensor& data, Tensor& output) {
  if (data.raw() == output.raw() || data.size() == 0) return;
  if (data.type() == DataType::kString) {
    std::copy_n(data.data<std::string>(), data.size(), output.data<std::string>());
  } else {
    std::memcpy(output.raw(), data.raw(), data.bytes());
  }
}

// ScatterElements-18, and Scatter-9, its former name.
struct ScatterElementsAttrs {
  int64_t axis = 0;
  std::string reduction;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &ScatterElementsAttrs::axis),
                      Field("reduction", &ScatterElementsAttrs::reduction));
  }
};

Status InferScatterElements(const ScatterElementsAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape data, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape indices, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape updates, context.Input(2));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, data.rank()));
  TENON_RETURN_IF_ERROR(CheckIndicesFit(data, indices, axis));
  const auto a = indices.ToShape();
  const auto b = updates.ToShape();
  if (indices.rank() != updates.rank() || (a && b && !(*a == *b))) {
    return InvalidArgument("expected updates of the indices' shape {}, got {}", indices, updates);
  }
  return context.SetOutput(0, std::move(data));
}

Status RunScatterElements(const ScatterElementsAttrs& attrs, KernelContext& context) {
  const Tensor& data = context.Input(0);
  const Tensor& indices = context.Input(1);
  const Tensor& updates = context.Input(2);
  Tensor& output = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const Reduction reduction, ReductionFromName(attrs.reduction));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, data.rank()));
  TENON_RETURN_IF_ERROR(CheckIndices(indices, data.shape()[axis], axis));
  TENON_ASSIGN_OR_RETURN(const AxisIndexer indexer,
                         AxisIndexer::Make(data.shape(), indices.shape(), axis));
  CopyData(data, output);
  return VisitReduction(reduction, data.type(), [&](auto element, const auto& combine) {
    using T = decltype(element);
    // In order: of several updates of one element the last one stays.
    VisitIndices(indices, [&](const auto* values) {
      indexer.ForEach(0, indexer.rows(), values, [&](size_t i, size_t offset) {
        combine(updates.data<T>()[i], output.data<T>()[offset]);
      });
    });
  });
}

// ScatterND-18.
struct ScatterNDAttrs {
  std::string reduction;
  static constexpr auto Fields() {
    return std::tuple(Field("reduction", &ScatterNDAttrs::reduction));
  }
};

Status InferScatterND(const ScatterNDAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape data, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape indices, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape updates, context.Input(2));
  if (indices.rank() == 0) return InvalidArgument("input 1: expected rank >= 1, got a scalar");
  const Dim depth = indices[indices.rank() - 1];
  if (depth.is_number()) {
    if (depth.value() < 0 || depth.value() > static_cast<int64_t>(data.rank())) {
      return InvalidArgument("expected up to {} coordinates in the last axis of indices {}",
                             data.rank(), indices);
    }
    Dims expected(indices.begin(), indices.end() - 1);
    expected.insert(expected.end(), data.begin() + depth.value(), data.end());
    bool fits = updates.rank() == expected.size();
    for (size_t i = 0; fits && i < expected.size(); ++i) {
      fits = !expected[i].is_number() || !updates[i].is_number() || expected[i] == updates[i];
    }
    if (!fits) {
      return InvalidArgument("expected updates of shape {}, got {}",
                             SymbolicShape(std::move(expected)), updates);
    }
  }
  return context.SetOutput(0, std::move(data));
}

Status RunScatterND(const ScatterNDAttrs& attrs, KernelContext& context) {
  const Tensor& data = context.Input(0);
  const Tensor& updates = context.Input(2);
  Tensor& output = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const Reduction reduction, ReductionFromName(attrs.reduction));
  TENON_ASSIGN_OR_RETURN(const CoordinateIndexer indexer,
                         CoordinateIndexer::Make(data.shape(), context.Input(1), 0));
  CopyData(data, output);
  return VisitReduction(reduction, data.type(), [&](auto element, const auto& combine) {
    using T = decltype(element);
    const size_t slice = indexer.slice();
    for (size_t i = 0; i < indexer.count(); ++i) {
      const T* from = updates.data<T>() + i * slice;
      T* to = output.data<T>() + indexer.OffsetOf(i);
      for (size_t j = 0; j < slice; ++j) combine(from[j], to[j]);
    }
  });
}

constexpr KernelTraits kScatterTraits = {.in_place_input = 0};

constexpr OpRow kRows[] = {
    Op<InferScatterElements, RunScatterElements>(
        "ScatterElements", {.since = 11, .types = kWholeByteTypes, .traits = kScatterTraits}),
    Op<InferScatterElements, RunScatterElements>(
        "Scatter", {.since = 9, .types = kWholeByteTypes, .traits = kScatterTraits}),
    Op<InferScatterND, RunScatterND>(
        "ScatterND", {.since = 11, .types = kWholeByteTypes, .traits = kScatterTraits}),
};

}  // namespace

TENON_OP_FAMILY(Scatter, kRows);

}  // namespace tenon
