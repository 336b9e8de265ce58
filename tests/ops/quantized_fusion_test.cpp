// Where each fusion of quantized operators applies. tests/python/test_quantized_graphs.py compares
// their results.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "kernels/dispatch.h"
#include "ops/fusion_cases.h"

namespace tenon {
namespace {

using B = GraphBuilder;

ValueId Zero(B& b, DataType type) {
  return type == DataType::kInt8 ? b.Constant(Tensor::Of<int8_t>({}, {0}))
                                 : b.Constant(Tensor::Of<uint8_t>({}, {uint8_t{128}}));
}

ValueId Quantize(B& b, ValueId x, float scale = 0.5F, DataType type = DataType::kUint8) {
  return b.Op("QuantizeLinear", {x, b.Scalar(scale), Zero(b, type)});
}

ValueId Dequantize(B& b, ValueId x, float scale = 0.5F, DataType type = DataType::kUint8) {
  return b.Op("DequantizeLinear", {x, b.Scalar(scale), Zero(b, type)});
}

// A dequantized input of the graph.
ValueId Operand(B& b, const char* name, SymbolicShape shape, DataType type = DataType::kUint8) {
  return Dequantize(b, b.Input(name, type, std::move(shape)), 0.5F, type);
}

// Dequantized weights with one scale, or one for each index of `axis`.
ValueId Weights(B& b, Shape shape, std::optional<int64_t> axis = std::nullopt) {
  const std::vector<int8_t> values(static_cast<size_t>(shape.NumElements()), 3);
  const ValueId integers = b.Constant(Tensor::Of<int8_t>(shape, values));
  if (!axis) return Dequantize(b, integers, 0.25F, DataType::kInt8);
  const int64_t count = shape[static_cast<size_t>(*axis)];
  const std::vector<float> scales(static_cast<size_t>(count), 0.25F);
  return b.Op("DequantizeLinear", {integers, b.Constant(Tensor::Of<float>(Shape({count}), scales))},
              MakeAttributes(Attr("axis", *axis)));
}

ValueId ConvOf(B& b, ValueId weights) {
  return b.Op("Conv", {Operand(b, "a", {Dim(1), Dim(4), Dim(5), Dim(5)}), weights});
}
ValueId MatrixOf(B& b, const char* name = "a", DataType type = DataType::kUint8) {
  return Operand(b, name, {Dim(2), Dim(4)}, type);
}
ValueId FloatMatrix(B& b) {
  return b.Input("floats", DataType::kFloat, SymbolicShape{Dim(2), Dim(4)});
}

TEST(QuantizedFusionTest, ProductsAreOfIntegers) {
  const RuleCase cases[] = {
      {"quantized conv", true,
       [](B& b, ValueId) {
         return Quantize(b, ConvOf(b, Weights(b, {6, 4, 1, 1})));
       }},
      {"quantized conv", true,
       [](B& b, ValueId) {
         return Quantize(b, ConvOf(b, Weights(b, {6, 4, 1, 1}, 0)));
       }},
      {"quantized conv", true,
       [](B& b, ValueId) {
         return Quantize(b, b.Op("Relu", {ConvOf(b, Weights(b, {6, 4, 1, 1}))}));
       }},
      // Scales along another axis, an activation that is no bound, float weights, not quantized.
      {"quantized conv", false,
       [](B& b, ValueId) {
         return Quantize(b, ConvOf(b, Weights(b, {6, 4, 1, 1}, 1)));
       }},
      {"quantized conv", false,
       [](B& b, ValueId) {
         return Quantize(b, b.Op("Sigmoid", {ConvOf(b, Weights(b, {6, 4, 1, 1}))}));
       }},
      {"quantized conv", false,
       [](B& b, ValueId) {
         const std::vector<float> floats(24, 1);
         return Quantize(b, ConvOf(b, b.Constant(Tensor::Of<float>({6, 4, 1, 1}, floats))));
       }},
      {"quantized conv", false,
       [](B& b, ValueId) {
         return ConvOf(b, Weights(b, {6, 4, 1, 1}));
       }},
      {"quantized matmul", true,
       [](B& b, ValueId) {
         return Quantize(b, b.Op("MatMul", {MatrixOf(b), Weights(b, {4, 3}, 1)}));
       }},
      {"quantized matmul", true,
       [](B& b, ValueId) {
         const ValueId right = Operand(b, "b", {Dim(4), Dim(3)});
         return Quantize(b, b.Op("MatMul", {MatrixOf(b), right}));
       }},
      {"quantized matmul", false,
       [](B& b, ValueId) {
         return Quantize(b, b.Op("MatMul", {MatrixOf(b), Weights(b, {4, 3}, 0)}));
       }},
      {"quantized gemm", true,
       [](B& b, ValueId) {
         return Quantize(b, b.Op("Gemm", {MatrixOf(b), Weights(b, {3, 4}, 0)},
                                 MakeAttributes(Attr("transB", int64_t{1}))));
       }},
      {"quantized gemm", false,
       [](B& b, ValueId) {
         return Quantize(b, b.Op("Gemm", {MatrixOf(b), Weights(b, {3, 4}, 1)},
                                 MakeAttributes(Attr("transB", int64_t{1}))));
       }},
  };
  CheckRules(RulesOf(QuantizedProductFusions()), cases, InferForFusions);
}

TEST(QuantizedFusionTest, TransposedConvolutionsAreOfIntegers) {
  using Ints = std::vector<int64_t>;
  const auto transposed = [](Shape weights, std::optional<int64_t> axis, Ints strides,
                             int64_t groups = 1, Ints more = {0, 0}) {
    return [=](B& b, ValueId) {
      const ValueId image = Operand(b, "a", {Dim(1), Dim(4), Dim(5), Dim(5)});
      return Quantize(b, b.Op("ConvTranspose", {image, Weights(b, weights, axis)},
                              MakeAttributes(Attr("strides", strides), Attr("group", groups),
                                             Attr("output_padding", more))));
    };
  };
  const RuleCase cases[] = {
      {"quantized transposed conv", true, transposed({4, 6, 2, 2}, std::nullopt, {2, 2})},
      {"quantized transposed conv", true, transposed({4, 6, 3, 4}, 1, {2, 2})},
      // Scales along another axis, strides that differ or are 1, groups, outputs of no input,
      // mostly zeros, not quantized.
      {"quantized transposed conv", false, transposed({4, 6, 2, 2}, 0, {2, 2})},
      {"quantized transposed conv", false, transposed({4, 6, 2, 2}, 1, {2, 1})},
      {"quantized transposed conv", false, transposed({4, 6, 2, 2}, 1, {1, 1})},
      {"quantized transposed conv", false, transposed({4, 3, 2, 2}, 1, {2, 2}, 2)},
      {"quantized transposed conv", false, transposed({4, 6, 2, 2}, 1, {2, 2}, 1, {1, 0})},
      {"quantized transposed conv", false, transposed({4, 6, 1, 1}, 1, {2, 2})},
      {"quantized transposed conv", false,
       [](B& b, ValueId) {
         const ValueId image = Operand(b, "a", {Dim(1), Dim(4), Dim(5), Dim(5)});
         return b.Op("ConvTranspose", {image, Weights(b, {4, 6, 2, 2})},
                     MakeAttributes(Attr("strides", Ints{2, 2})));
       }},
  };
  CheckRules(RulesOf(QuantizedConvTransposeFusions()), cases, InferForFusions);
}

TEST(QuantizedFusionTest, ElementsAreIntegers) {
  const auto binary = [](const char* op_type, DataType other) {
    return [=](B& b, ValueId) {
      return Quantize(b, b.Op(op_type, {MatrixOf(b), MatrixOf(b, "b", other)}));
    };
  };
  const auto unary = [](const char* op_type, bool is_quantized) {
    return [=](B& b, ValueId) {
      const ValueId a = Operand(b, "a", {Dim(1), Dim(4), Dim(5), Dim(5)});
      const ValueId y = b.Op(op_type, {a});
      return is_quantized ? Quantize(b, y) : y;
    };
  };
  const RuleCase cases[] = {
      {"quantized sum or product", true, binary("Add", DataType::kUint8)},
      {"quantized sum or product", true, binary("Mul", DataType::kUint8)},
      {"quantized sum or product", false, binary("Add", DataType::kInt8)},
      {"quantized sum or product", false, binary("Sub", DataType::kUint8)},
      {"quantized activation", true, unary("HardSwish", true)},
      {"quantized activation", false, unary("HardSwish", false)},
      {"requantize", true, [](B& b, ValueId) { return Quantize(b, MatrixOf(b), 0.25F); }},
      {"requantize", true, [](B& b, ValueId) { return Quantize(b, MatrixOf(b)); }},
      {"requantize", false, [](B& b, ValueId) { return Quantize(b, FloatMatrix(b)); }},
      {"quantized global pool", true, unary("GlobalAveragePool", true)},
      {"quantized global pool", false, unary("GlobalAveragePool", false)},
      {"quantized pool", true, unary("AveragePool", true)},
      {"quantized pool", false,
       [](B& b, ValueId) {
         const ValueId a = Operand(b, "a", {Dim(1), Dim(4), Dim(5), Dim(5)});
         return Quantize(b, b.Op("AveragePool", {a},
                                 MakeAttributes(Attr("dilations", std::vector<int64_t>{2, 2}))));
       }},
      {"quantized softmax", true, unary("Softmax", true)},
      {"quantized softmax", false, unary("Softmax", false)},
      {"quantized concat", true,
       [](B& b, ValueId) {
         return Quantize(b, b.Op("Concat", {MatrixOf(b), MatrixOf(b, "b")},
                                 MakeAttributes(Attr("axis", int64_t{0}))));
       }},
      {"quantized concat", false,
       [](B& b, ValueId) {
         return Quantize(b, b.Op("Concat", {MatrixOf(b), FloatMatrix(b)},
                                 MakeAttributes(Attr("axis", int64_t{0}))));
       }},
      {"moved integers", true,
       [](B& b, ValueId) {
         return b.Op("Transpose", {MatrixOf(b)},
                     MakeAttributes(Attr("perm", std::vector<int64_t>{1, 0})));
       }},
      {"moved integers", false,
       [](B& b, ValueId) {
         return b.Op("Transpose", {FloatMatrix(b)},
                     MakeAttributes(Attr("perm", std::vector<int64_t>{1, 0})));
       }},
      {"padded integers", true,
       [](B& b, ValueId) {
         return b.Op("Pad", {MatrixOf(b), b.Ints({1, 1, 0, 0})});
       }},
      {"padded integers", false,
       [](B& b, ValueId) {
         return b.Op("Pad", {MatrixOf(b), b.Ints({1, 1, 0, 0}), b.Scalar(1)});
       }},
      {"transposed integers", true,
       [](B& b, ValueId) {
         return b.Op("Transpose", {Weights(b, {3, 4}, 0)},
                     MakeAttributes(Attr("perm", std::vector<int64_t>{1, 0})));
       }},
      {"transposed integers", false,
       [](B& b, ValueId) {
         return b.Op("Transpose", {Weights(b, {3, 4, 1}, 0)},
                     MakeAttributes(Attr("perm", std::vector<int64_t>{1, 0, 2})));
       }},
  };
  CheckRules(RulesOf(QuantizedElementFusions()), cases, InferForFusions);
}

// A product of MatMulInteger scaled to floats, as quantize_dynamic writes it.
ValueId DynamicProduct(B& b, DataType to) {
  const ValueId a = b.Input("a", DataType::kUint8, SymbolicShape{Dim(2), Dim(4)});
  const ValueId weights = b.Constant(Tensor::Of<int8_t>({4, 3}, std::vector<int8_t>(12, 3)));
  const ValueId scale = b.Input("scale", DataType::kFloat, SymbolicShape{});
  const ValueId sums = b.Op("MatMulInteger", {a, weights});
  const ValueId floats = b.Op("Cast", {sums}, MakeAttributes(Attr("to", static_cast<int64_t>(to))));
  return b.Op("Mul", {floats, b.Op("Mul", {scale, b.Scalar(0.25F)})});
}

TEST(QuantizedFusionTest, ProductsThatStayFloatsAreOfIntegers) {
  const auto with_bias = [](int64_t size) {
    return [=](B& b, ValueId) {
      const std::vector<float> bias(static_cast<size_t>(size), 1);
      return b.Op("Add", {DynamicProduct(b, DataType::kFloat),
                          b.Constant(Tensor::Of<float>(Shape({size}), bias))});
    };
  };
  const RuleCase cases[] = {
      {"integer matmul", true,
       [](B& b, ValueId) {
         return b.Op("MatMul", {MatrixOf(b), Weights(b, {4, 3}, 1)});
       }},
      {"integer matmul", false,
       [](B& b, ValueId) {
         return b.Op("MatMul", {FloatMatrix(b), Weights(b, {4, 3}, 1)});
       }},
      {"integer gemm", true,
       [](B& b, ValueId) {
         return b.Op("Gemm", {MatrixOf(b), Weights(b, {4, 3})});
       }},
      {"integer gemm", false,
       [](B& b, ValueId) {
         const ValueId bias = b.Input("bias", DataType::kFloat, SymbolicShape{Dim(3)});
         return b.Op("Gemm", {MatrixOf(b), Weights(b, {4, 3}), bias});
       }},
      {"dynamically quantized matmul", true,
       [](B& b, ValueId) { return DynamicProduct(b, DataType::kFloat); }},
      {"dynamically quantized matmul", false,
       [](B& b, ValueId) { return DynamicProduct(b, DataType::kDouble); }},
      {"integer matmul bias", true, with_bias(3)},
      {"integer matmul bias", false, with_bias(1)},
  };
  CheckRules(RulesOf(IntegerProductFusions()), cases, InferForFusions);
}

// An image and what DynamicQuantizeLinear makes of it: its bytes, their scale and zero point.
std::vector<ValueId> DynamicImage(B& b) {
  const ValueId x =
      b.Input("image", DataType::kFloat, SymbolicShape{Dim(1), Dim(4), Dim(5), Dim(5)});
  return b.OpN("DynamicQuantizeLinear", {x}, 3);
}

// A convolution of bytes whose sums are scaled to floats, as quantize_dynamic writes it. `addend`:
// what is added to the sums, if anything. `scale_shape`: that of the weights' scale, or none if it
// is no constant.
ValueId DynamicConv(B& b, std::optional<Shape> addend = std::nullopt,
                    std::optional<Shape> scale_shape = Shape()) {
  const std::vector<ValueId> image = DynamicImage(b);
  const ValueId weights = b.Constant(Tensor::Of<int8_t>({6, 4, 1, 1}, std::vector<int8_t>(24, 3)));
  ValueId sums = b.Op("ConvInteger", {image[0], weights, image[2]});
  if (addend) {
    const std::vector<int32_t> values(static_cast<size_t>(addend->NumElements()), 7);
    sums = b.Op("Add", {sums, b.Constant(Tensor::Of<int32_t>(*addend, values))});
  }
  const ValueId floats =
      b.Op("Cast", {sums}, MakeAttributes(Attr("to", static_cast<int64_t>(DataType::kFloat))));
  const ValueId scale = scale_shape ? b.Constant(Tensor::Of<float>(*scale_shape, {0.25F}))
                                    : b.Input("scale", DataType::kFloat, SymbolicShape{});
  return b.Op("Mul", {floats, b.Op("Mul", {image[1], scale})});
}

TEST(QuantizedFusionTest, DynamicConvolutionsAreOfFloatsWhereTheseAreFaster) {
  const std::span<const kernels::Target> targets = kernels::SupportedTargets();
  const auto avx2 = std::find(targets.begin(), targets.end(), kernels::Target::kAvx2);
  if (avx2 == targets.end()) GTEST_SKIP() << "bytes are convolved faster";
  kernels::SetActiveTarget(*avx2);
  const RuleCase cases[] = {
      {"dynamically quantized conv", true, [](B& b, ValueId) { return DynamicConv(b); }},
      {"dynamically quantized conv", true,
       [](B& b, ValueId) {
         return DynamicConv(b, Shape({1, 6, 1, 1}));
       }},
      // One addend for each pixel, a scale that is no constant, or that adds an axis.
      {"dynamically quantized conv", false,
       [](B& b, ValueId) {
         return DynamicConv(b, Shape({1, 1, 5, 5}));
       }},
      {"dynamically quantized conv", false,
       [](B& b, ValueId) { return DynamicConv(b, std::nullopt, std::nullopt); }},
      {"dynamically quantized conv", false,
       [](B& b, ValueId) {
         return DynamicConv(b, std::nullopt, Shape({1, 1, 1, 1, 1}));
       }},
      {"dynamic fake quantization", true,
       [](B& b, ValueId) { return b.Op("DequantizeLinear", DynamicImage(b)); }},
      {"dynamic fake quantization", false,
       [](B& b, ValueId) {
         const std::vector<ValueId> image = DynamicImage(b);
         return b.Op("DequantizeLinear", {image[0], b.Scalar(0.5F), image[2]});
       }},
  };
  CheckRules(RulesOf(DynamicConvFusions()), cases, InferForFusions);
  kernels::SetActiveTarget(targets.back());
}

TEST(QuantizedFusionTest, BlocksStayAsTheyAreStored) {
  const auto product = [](int64_t block_size, int64_t axis) {
    return [=](B& b, ValueId) {
      const ValueId integers = b.Constant(Tensor::Of<int8_t>({64, 3}, std::vector<int8_t>(192, 3)));
      const int64_t blocks = 64 / block_size;
      const std::vector<float> scales(static_cast<size_t>(blocks * 3), 0.25F);
      std::vector<Attribute> attributes = MakeAttributes(Attr("axis", axis));
      attributes.emplace_back("block_size", block_size);
      const ValueId weights =
          b.Op("DequantizeLinear", {integers, b.Constant(Tensor::Of<float>({blocks, 3}, scales))},
               std::move(attributes));
      const ValueId a = b.Input("a", DataType::kFloat, SymbolicShape{Dim(2), Dim(64)});
      return b.Op("MatMul", {a, weights});
    };
  };
  const RuleCase cases[] = {
      {"matmul of blocks", true, product(32, 0)},
      {"matmul of blocks", false, product(32, 1)},
      {"matmul of blocks", false, product(8, 0)},
  };
  CheckRules(RulesOf(BlockQuantizedFusions()), cases, InferForFusions);
}

}  // namespace
}  // namespace tenon
