#include <gtest/gtest.h>

#include "ir/passes.h"
#include "ir/rule_cases.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

auto Cast(DataType to) { return MakeAttributes(Attr("to", static_cast<int64_t>(to))); }
auto Perm(Ints perm) { return MakeAttributes(Attr("perm", std::move(perm))); }

// Op(op_type, {x}) with the shape `shape`.
auto Unary(const char* op, SymbolicShape shape = {Dim(2), Dim(3)}) {
  return [=](GraphBuilder& b, ValueId x) { return b.Shaped(b.Op(op, {x}), shape); };
}
auto WithScalar(const char* op, float value) {
  return [=](GraphBuilder& b, ValueId x) { return b.Op(op, {x, b.Scalar(value)}); };
}
auto CastTwice(DataType from, DataType through, DataType to) {
  return [=](GraphBuilder& b, ValueId) {
    const ValueId y = b.Input("y", from, SymbolicShape{Dim(2)});
    const ValueId inner = b.Shaped(b.Op("Cast", {y}, Cast(through)), {Dim(2)}, through);
    return b.Op("Cast", {inner}, Cast(to));
  };
}
auto Reshapes(SymbolicShape first, Ints second, SymbolicShape result) {
  return [=](GraphBuilder& b, ValueId x) {
    const ValueId inner = b.Shaped(b.Op("Reshape", {x, b.Ints({6, 1})}), first);
    return b.Shaped(b.Op("Reshape", {inner, b.Ints(second)}), result);
  };
}
auto Slice(Ints steps, SymbolicShape result) {
  return [=](GraphBuilder& b, ValueId x) {
    return b.Shaped(
        b.Op("Slice", {x, b.Ints({0}), b.Ints({INT64_MAX}), b.Ints({0}), b.Ints(steps)}), result);
  };
}
auto Dropout(bool training) {
  return [=](GraphBuilder& b, ValueId x) {
    return b.Op("Dropout", {x, b.Scalar(0.5), b.Constant(Tensor::Of<bool>({}, {training}))});
  };
}

TEST(SimplifyTest, EachRuleFiresWhereItMayAndNowhereElse) {
  const SymbolicShape same = {Dim(2), Dim(3)};
  const RuleCase cases[] = {
      {"identity", true, Unary("Identity"), "v_2 = Abs(x)\nreturn v_2"},
      {"identity", false, Unary("Neg")},
      {"dropout", true, Unary("Dropout")},
      {"dropout", true, Dropout(false)},
      {"dropout", false, Dropout(true)},
      {"one of one", true, Unary("Sum")},
      {"one of one", false,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("Max", {x, x});
       }},
      {"sum of two", true,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("Sum", {x, b.Input("z")});
       },
       "v = Add(x, z)\nv_3 = Abs(v)\nreturn v_3"},
      {"sum of two", false,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("Sum", {x, x, x});
       }},
      {"not not", true,
       [](GraphBuilder& b, ValueId) {
         return b.Op("Not", {b.Op("Not", {b.Input("flag", DataType::kBool)})});
       }},
      {"not not", false,
       [](GraphBuilder& b, ValueId) { return b.Op("Not", {b.Input("flag", DataType::kBool)}); }},
      {"neg neg", true, [](GraphBuilder& b, ValueId x) { return b.Op("Neg", {b.Op("Neg", {x})}); }},
      {"neg neg", false,
       [](GraphBuilder& b, ValueId x) { return b.Op("Neg", {b.Op("Abs", {x})}); }},

      {"cast to itself", true,
       [](GraphBuilder& b, ValueId x) { return b.Op("Cast", {x}, Cast(DataType::kFloat)); }},
      {"cast to itself", false,
       [](GraphBuilder& b, ValueId x) { return b.Op("Cast", {x}, Cast(DataType::kDouble)); }},
      {"cast cast", true, CastTwice(DataType::kInt32, DataType::kInt64, DataType::kFloat),
       "v_3 = Cast<to=1>(y)\nv_4 = Abs(v_3)\nreturn v_4"},
      {"cast cast", true, CastTwice(DataType::kFloat16, DataType::kFloat, DataType::kInt8)},
      {"cast cast", true, CastTwice(DataType::kBool, DataType::kFloat, DataType::kInt8)},
      {"cast cast", false, CastTwice(DataType::kFloat, DataType::kFloat16, DataType::kDouble)},
      {"cast cast", false, CastTwice(DataType::kFloat, DataType::kBool, DataType::kFloat)},
      {"cast cast", false, CastTwice(DataType::kInt64, DataType::kFloat, DataType::kInt64)},
      {"cast cast", false, CastTwice(DataType::kFloat16, DataType::kBfloat16, DataType::kFloat)},
      {"cast cast", false, CastTwice(DataType::kInt8, DataType::kUint16, DataType::kFloat)},
      {"cast cast", false, CastTwice(DataType::kInt32, DataType::kDouble, DataType::kString)},
      {"cast like a known type", true,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("CastLike", {x, b.Input("i", DataType::kInt64)},
                     MakeAttributes(Attr("saturate", int64_t{0})));
       },
       "v = Cast<saturate=0, to=7>(x)\nv_3 = Abs(v)\nreturn v_3"},
      {"cast like a known type", false,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("CastLike", {x, b.Input("i", DataType::kUndefined)});
       }},

      {"view to the same shape", true, Unary("Squeeze")},
      {"view to the same shape", false, Unary("Flatten", {Dim(6)})},
      {"view to the same shape", false, Unary("Flatten", {Dim(2), Dim::Unknown()})},
      {"view back", true, Reshapes({Dim(6)}, {0, 1}, same)},
      {"view back", false, Reshapes({Dim(6)}, {0, 1}, {Dim(6), Dim(1)})},
      {"reshape of a view", true, Reshapes({Dim(6)}, {3, -1}, {Dim(3), Dim(2)}),
       "v_4 = Reshape(x, {3, -1})\nv_5 = Abs(v_4)\nreturn v_5"},
      {"reshape of a view", false, Reshapes({Dim(6)}, {0, 1}, {Dim(6), Dim(1)})},

      {"transpose that keeps the order", true,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("Transpose", {x}, Perm({0, 1}));
       }},
      {"transpose that keeps the order", false, Unary("Transpose", {Dim(3), Dim(2)})},
      {"transpose transpose", true,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("Transpose", {b.Op("Transpose", {x})}, Perm({1, 0}));
       },
       "v_3 = Abs(x)\nreturn v_3"},
      {"transpose transpose", true,
       [](GraphBuilder& b, ValueId) {
         const ValueId y = b.Input("y", DataType::kFloat, SymbolicShape{Dim(2), Dim(3), Dim(4)});
         return b.Op("Transpose", {b.Op("Transpose", {y}, Perm({1, 2, 0}))}, Perm({0, 2, 1}));
       },
       "v_3 = Transpose<perm=[1, 0, 2]>(y)\nv_4 = Abs(v_3)\nreturn v_4"},
      {"transpose transpose", false,
       [](GraphBuilder& b, ValueId) {
         const ValueId y = b.Input("y");  // of unknown rank
         return b.Op("Transpose", {b.Op("Transpose", {y})});
       }},

      {"slice of everything", true, Slice({1}, same)},
      {"slice of everything", false, Slice({-1}, same)},
      {"slice of everything", false, Slice({1}, {Dim(1), Dim(3)})},
      {"expand to the same shape", true,
       [=](GraphBuilder& b, ValueId x) {
         return b.Shaped(b.Op("Expand", {x, b.Input("shape", DataType::kInt64)}), same);
       }},
      {"expand to the same shape", false,
       [](GraphBuilder& b, ValueId x) {
         return b.Shaped(b.Op("Expand", {x, b.Input("shape", DataType::kInt64)}),
                         {Dim(1), Dim(2), Dim(3)});
       }},
      {"tile once", true,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("Tile", {x, b.Ints({1, 1})});
       }},
      {"tile once", false,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("Tile", {x, b.Ints({1, 2})});
       }},
      {"pad by nothing", true,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("Pad", {x, b.Ints({0, 0, 0, 0})});
       }},
      {"pad by nothing", false,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("Pad", {x, b.Ints({0, 0, 0, 1})});
       }},

      {"add zero", true, WithScalar("Add", 0)},
      {"add zero", false, WithScalar("Add", 1e-9F)},
      {"add zero", false,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("Add", {x, b.Constant(Tensor::Of<float>({1, 1, 1}, {0}))});
       }},
      {"subtract zero", true, WithScalar("Sub", 0)},
      {"subtract zero", false,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("Sub", {b.Scalar(0), x});
       }},
      {"multiply by one", true, WithScalar("Mul", 1)},
      {"multiply by one", false, WithScalar("Mul", 1.0000001F)},
      {"divide by one", true, WithScalar("Div", 1)},
      {"divide by one", false,
       [](GraphBuilder& b, ValueId x) {
         return b.Op("Div", {b.Scalar(1), x});
       }},
      {"first power", true,
       [=](GraphBuilder& b, ValueId x) {
         return b.Shaped(b.Op("Pow", {x, b.Scalar(1)}), same);
       }},
      {"first power", false, WithScalar("Pow", 2)},
      {"divide by a power of two", true, WithScalar("Div", -8),
       "v = Mul(x, {-0.125})\nv_3 = Abs(v)\nreturn v_3"},
      {"divide by a power of two", false, WithScalar("Div", 3)},
      {"divide by a power of two", false, WithScalar("Div", 1e30F)},
      {"divide by a power of two", false, WithScalar("Div", 0)},
  };
  CheckRules(SimplifyingRules(), cases);
}

TEST(SimplifyTest, OutputsOfTheGraphKeepAProducer) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  b.Output(b.Op("Identity", {x}));
  EXPECT_EQ(Simplify(*b.graph, SimplifyingRules()), 0u) << "an output would become an input";
  const ValueId y = b.Op("Relu", {x});
  b.Output(y);
  b.Output(b.Op("Identity", {y}));
  EXPECT_EQ(Simplify(*b.graph, SimplifyingRules()), 0u) << "two outputs would become one value";
  b.Output(b.Op("Identity", {b.Op("Abs", {x})}));
  EXPECT_EQ(Simplify(*b.graph, SimplifyingRules()), 1u);
}

TEST(SimplifyTest, SubgraphsToo) {
  GraphBuilder b;
  GraphBuilder branch;
  const ValueId x = branch.Input("x");
  branch.Output(branch.Op("Abs", {branch.Op("Identity", {x})}));
  b.Output(b.Op("If", {b.Input("condition", DataType::kBool)},
                MakeAttributes(Attr("then_branch", std::move(branch.graph)))));
  EXPECT_EQ(Simplify(*b.graph, SimplifyingRules()), 1u);
}

TEST(SimplifyTest, MayKeepViewsOfViews) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim(1), Dim(4)});
  const ValueId axes = b.Constant(Tensor::Of<int64_t>({1}, {0}));
  const ValueId squeezed = b.Shaped(b.Op("Squeeze", {x, axes}), {Dim(4)});
  const ValueId back = b.Shaped(b.Op("Unsqueeze", {squeezed, axes}), {Dim(1), Dim(4)});
  b.Output(b.Op("Relu", {b.Op("Identity", {back})}));
  EXPECT_EQ(Simplify(*b.graph, RulesKeepingExportedPatterns()), 1u) << "the Identity";
  EXPECT_EQ(Simplify(*b.graph, SimplifyingRules()), 1u);
}

TEST(SimplifyTest, MayKeepDivisions) {
  GraphBuilder b;
  b.Output(b.Op("Div", {b.Input("x"), b.Scalar(8)}));
  EXPECT_EQ(Simplify(*b.graph, RulesKeepingExportedPatterns()), 0u);
  EXPECT_EQ(Simplify(*b.graph, SimplifyingRules()), 1u);
}

}  // namespace
}  // namespace tenon
