// Fuses matrix products with what surrounds them: scale, transposition, bias, residual, activation.
#include <algorithm>
#include <tuple>

#include "ir/graph.h"
#include "ops/framework/widen_narrow.h"
#include "ops/fusion/fuse_epilogue.h"
#include "ops/fusion/fusion.h"

namespace tenon {
namespace {

constexpr const char* kTenon = "com.tenon";

// A matrix product, fused or not, of these operands.
Pattern MatMulOf(const Pattern& a, const Pattern& b, std::vector<Pattern> epilogue) {
  std::vector<Pattern> inputs = {a, b};
  inputs.insert(inputs.end(), epilogue.begin(), epilogue.end());
  return OneOf({Op("MatMul", {a, b}).As("matmul"),
                Op("FusedMatMul", inputs).In(kTenon).Where(HasNoActivation).As("matmul")});
}

// The same patterns as roots: a rule needs a single node at its root.
std::vector<Pattern> RootsOf(const Pattern& a, const Pattern& b) {
  return {Op("MatMul", {a, b}).As("matmul"),
          Op("FusedMatMul", {a, b, Maybe("bias"), Maybe("residual")}).In(kTenon).As("matmul")};
}

// MatMul treats operands of rank 1 differently.
bool AreMatrices(const Match& match) {
  const SymbolicShape* a = match.shape("A");
  const SymbolicShape* b = match.shape("B");
  return a && b && a->rank() >= 2 && b->rank() >= 2;
}

ValueId MakeFusedMatMul(Replacement& r, std::vector<Attribute> attributes) {
  return r.Op("FusedMatMul", {r["A"], r["B"], r["bias"], r["residual"]}, std::move(attributes),
              kTenon);
}

// --- Scale ---

double FactorOf(const Match& match) {
  return match.constant("divisor") ? 1 / match.scalar("divisor") : match.scalar("factor");
}

bool HasFactor(const Match& match) {
  return AreMatrices(match) && !(match.constant("divisor") && match.scalar("divisor") == 0);
}

// `x` multiplied or divided by a scalar.
std::vector<Pattern> Scaled(const Pattern& x) {
  return {Op("Mul", {x, Scalar("factor")}), Op("Div", {x, Scalar("divisor")})};
}

ValueId MultiplyAlpha(Replacement& r) {
  const double alpha = r.node("matmul").GetFloat("alpha", 1) * FactorOf(r);
  std::vector<Attribute> attributes = r.AttributesOf("matmul");
  SetAttribute(attributes, "alpha", static_cast<float>(alpha));
  return MakeFusedMatMul(r, std::move(attributes));
}

// --- Transposition ---

// Whether the permutation exchanges the last two axes and nothing else.
bool SwapsLastTwo(const Node& transpose, size_t rank) {
  std::vector<int64_t> permutation = transpose.GetInts("perm");
  if (permutation.empty()) return rank == 2;
  if (permutation.size() != rank || rank < 2) return false;
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  for (size_t i = 0; i < rank; ++i) {
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

std::function<bool(const Match&)> Transposes(std::string_view operand) {
  return [operand](const Match& match) {
    return AreMatrices(match) &&
           SwapsLastTwo(match.node("transpose"), match.shape(operand)->rank());
  };
}

std::function<ValueId(Replacement&)> Toggle(const char* attribute) {
  return [attribute](Replacement& r) {
    std::vector<Attribute> attributes = r.AttributesOf("matmul");
    SetAttribute(attributes, attribute, int64_t{r.node("matmul").GetInt(attribute, 0) == 0});
    return MakeFusedMatMul(r, std::move(attributes));
  };
}

// --- Bias, residual, activation ---

// Whether `bias` adds one number to each column of the product and leaves its shape: [n], or a
// constant [1, ..., n].
bool IsColumnVector(const Match& match, std::string_view product) {
  const SymbolicShape* bias = match.shape("bias");
  const auto& shape = match.graph().value(match.node(product).outputs[0]).type.shape;
  if (!bias || !shape || bias->rank() == 0 || shape->rank() < 2) return false;
  const bool leads_with_ones =
      bias->rank() <= shape->rank() &&
      std::all_of(bias->begin(), bias->end() - 1, [](const Dim& dim) { return dim == Dim(1); });
  return leads_with_ones && (bias->rank() == 1 || match.constant("bias")) &&
         bias->dims().back() == shape->dims().back();
}

bool AddsBias(const Match& match) { return AreMatrices(match) && IsColumnVector(match, "matmul"); }

ValueId BiasVector(Replacement& r) {
  const Tensor* constant = r.graph().StoredConstantOf(r["bias"]);
  if (!constant || constant->rank() == 1) return r["bias"];
  return r.Constant("bias", constant->Reshaped(Shape({constant->size()})));
}

ValueId AddBias(Replacement& r) {
  return r.Op("FusedMatMul", {r["A"], r["B"], BiasVector(r), r["residual"]},
              r.AttributesOf("matmul"), kTenon);
}

ValueId AddMatMulResidual(Replacement& r) { return MakeFusedMatMul(r, r.AttributesOf("matmul")); }

ValueId AddMatMulActivation(Replacement& r) {
  std::vector<Attribute> attributes = r.AttributesOf("matmul");
  AddActivation(r, attributes);
  return MakeFusedMatMul(r, std::move(attributes));
}

// --- Gemm ---

bool IsGemmWithVector(const Match& match) {
  if (match["bias"] == ValueId::kNone) return true;
  return match.node("gemm").GetFloat("beta", 1) == 1 && IsColumnVector(match, "gemm");
}

ValueId FromGemm(Replacement& r) {
  std::vector<Attribute> attributes = r.AttributesOf("gemm");
  std::erase_if(attributes, [](const Attribute& attribute) { return attribute.name == "beta"; });
  const ValueId bias = r["bias"] == ValueId::kNone ? ValueId::kNone : BiasVector(r);
  return r.Op("FusedMatMul", {r["A"], r["B"], bias}, std::move(attributes), kTenon);
}

// --- Operands of bfloat16 ---

// Whether the operand, which a cast widens, is of bfloat16, and the product rounds to such numbers
// anyway: its kernel reads them as they are.
std::function<bool(const Match&)> IsNarrow(std::string_view operand) {
  return [operand](const Match& match) {
    const Node& matmul = match.node("matmul");
    return matmul.GetInt(kFromBfloat16, 0) != 0 && matmul.GetInt("transBatchA", 0) == 0 &&
           matmul.GetInt("transBatchB", 0) == 0 && AreMatrices(match) &&
           match.type(operand).element_type == DataType::kBfloat16;
  };
}

ValueId ReadNarrow(Replacement& r) {
  std::vector<Attribute> attributes = r.AttributesOf("matmul");
  std::erase_if(attributes, [](const Attribute& attribute) {
    return attribute.name == "transBatchA" || attribute.name == "transBatchB";
  });
  return MakeFusedMatMul(r, std::move(attributes));
}

}  // namespace

std::vector<Fusion> MatMulFusions() {
  const Pattern a = Any("A"), b = Any("B"), bias = Maybe("bias"), residual = Maybe("residual");
  std::vector<Fusion> fusions;
  const auto add = [&](Rule rule) { fusions.push_back({kTenon, "FusedMatMul", std::move(rule)}); };

  add({.name = "gemm",
       .pattern = Op("Gemm", {a, b, bias}).As("gemm"),
       .when = IsGemmWithVector,
       .replace = FromGemm});
  for (const Pattern& scaled : Scaled(MatMulOf(a, b, {}))) {
    add({.name = "matmul scale", .pattern = scaled, .when = HasFactor, .replace = MultiplyAlpha});
  }
  for (const Pattern& scaled : Scaled(a)) {
    for (const Pattern& root : RootsOf(scaled, b)) {
      add({.name = "scaled A", .pattern = root, .when = HasFactor, .replace = MultiplyAlpha});
    }
  }
  for (const Pattern& scaled : Scaled(b)) {
    for (const Pattern& root : RootsOf(a, scaled)) {
      add({.name = "scaled B", .pattern = root, .when = HasFactor, .replace = MultiplyAlpha});
    }
  }
  for (const Pattern& root : RootsOf(Op("Transpose", {a}).As("transpose"), b)) {
    add({.name = "transposed A",
         .pattern = root,
         .when = Transposes("A"),
         .replace = Toggle("transA")});
  }
  for (const Pattern& root : RootsOf(a, Op("Transpose", {b}).As("transpose"))) {
    add({.name = "transposed B",
         .pattern = root,
         .when = Transposes("B"),
         .replace = Toggle("transB")});
  }
  for (const auto& [name, narrow_a, narrow_b] : {std::tuple("A", Op("Cast", {a}).Shared(), b),
                                                 std::tuple("B", a, Op("Cast", {b}).Shared())}) {
    std::vector<Pattern> roots = RootsOf(narrow_a, narrow_b);
    roots.push_back(Op("FusedMatMul", {narrow_a, narrow_b}).In("com.microsoft").As("matmul"));
    for (const Pattern& root : roots) {
      add({.name = "narrow operand",
           .pattern = root,
           .when = IsNarrow(name),
           .replace = ReadNarrow});
    }
  }
  add({.name = "matmul bias",
       .pattern = Op("Add", {MatMulOf(a, b, {}), Any("bias")}),
       .when = AddsBias,
       .replace = AddBias});
  add({.name = "matmul residual",
       .pattern = Op("Add", {MatMulOf(a, b, {bias}), Any("residual")}),
       .when =
           [](const Match& m) {
             return AreMatrices(m) && AddsItsOwnShape(m, "residual", "matmul");
           },
       .replace = AddMatMulResidual});
  for (const Pattern& pattern : ActivationsOf(MatMulOf(a, b, {bias, residual}))) {
    add({.name = "matmul activation",
         .pattern = pattern,
         .when = [](const Match& m) { return AreMatrices(m) && HasKnownParameters(m); },
         .replace = AddMatMulActivation});
  }
  return fusions;
}

}  // namespace tenon
