"""Calls of com.microsoft's operators with operands of every rank, without elements too, along every
axis, and with every pair of shapes that go together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from contrib_layer_recipes import int32s, scale
from recipes import SHAPES, Call, Maker, ints, quantized

Shape = tuple[int, ...]


def over(shapes: list[Shape], call: Callable[[Maker, Shape], Call]) -> Callable:
    def recipe(t: Maker) -> Iterator[Call]:
        for shape in shapes:
            yield call(t, shape)

    return recipe


def unary(t: Maker, shape: Shape) -> Call:
    return Call([t(*shape)])


# Of operands whose last axis has elements.
ROWS = [shape for shape in SHAPES if shape and shape[-1]]
# Two operands of a product.
PRODUCTS = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((3,), (2, 3, 4)),
    ((2, 2, 3), (3,)),
    ((2, 3), (2, 3, 4)),
    ((2, 2, 3), (3, 4)),
    ((2, 1, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (4, 2, 1, 3, 2)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((2, 3), (3, 0)),
    ((0, 2, 3), (0, 3, 4)),
]
# Those that onnxruntime multiplies if they are quantized: with nothing to add up it leaves memory
# as it was.
MATRICES = [(a, b) for a, b in PRODUCTS if len(b) > 1 and a[-1]]
# Two operands of which one is broadcast to the other, or both are.
BROADCAST = [
    ((), (2, 3)),
    ((2, 3), ()),
    ((1,), (2, 3)),
    ((3,), (2, 3)),
    ((2, 1), (1, 3)),
    ((2, 3), (2, 1)),
    ((2, 1, 3), (4, 1)),
    ((0, 3), (3,)),
    ((), ()),
    ((2, 1, 2, 1, 3), (5, 1, 2, 1)),
]


def product(t: Maker) -> Iterator[Call]:
    for a, b in PRODUCTS:
        yield Call([t(*a), t(*b)], {"alpha": 0.5})


def transposed_product(t: Maker) -> Iterator[Call]:
    yield from product(t)
    for flags in {"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1}:
        yield Call([t(2, 3, 3), t(2, 3, 3)], flags)


def fused_matmul(t: Maker) -> Iterator[Call]:
    """Batch axes lie between the first and the last axis where they are split."""
    yield from transposed_product(t)
    names = ("transBatchA", "transBatchB", "transA", "transB")
    for values in itertools.product((0, 1), repeat=4):
        yield Call([t(3, 3, 3, 3), t(3, 3, 3, 3)], dict(zip(names, values, strict=True)))


def to_float(t: Maker) -> Iterator[Call]:
    for (a, b), u in itertools.product(MATRICES, t.others("T2")):
        yield Call([quantized(t, *a), quantized(u, *b), scale(0.5), scale(0.25)])


def dynamic_product(t: Maker) -> Iterator[Call]:
    for (a, b), u in itertools.product(MATRICES, t.others("T2")):
        yield Call([t(*a), quantized(u, *b), scale(0.25), u.scalar(1)])


def integer_product(t: Maker) -> Iterator[Call]:
    for (a, b), u in itertools.product(PRODUCTS, t.others("T2")):
        if u.name == t.name:
            yield Call([t(*a), u(*b)])


def quantized_binary(t: Maker) -> Iterator[Call]:
    for a, b in BROADCAST:
        left = [quantized(t, *a), scale(0.05), t.scalar(3)]
        right = [quantized(t, *b), scale(0.02), t.scalar(1)]
        yield Call([*left, *right, scale(0.7), t.scalar(5)])
        yield Call([*left, quantized(t, *b), scale(0.02), None, scale(0.7)])


def quantized_where(t: Maker) -> Iterator[Call]:
    for a, b in BROADCAST:
        for condition in {a, b, ()}:
            choice = np.arange(int(np.prod(condition))).reshape(condition) % 2 == 0
            x = [quantized(t, *a), scale(0.05), t.scalar(3)]
            y = [quantized(t, *b), scale(0.02), t.scalar(1)]
            yield Call([choice, *x, *y, scale(0.7), t.scalar(1)])


def quantized_unary(t: Maker) -> Iterator[Call]:
    for shape in SHAPES:
        yield Call([quantized(t, *shape), scale(0.05), t.scalar(3), scale(0.02), t.scalar(1)])
        yield Call([quantized(t, *shape), scale(0.05), None, scale(0.02), t.scalar(1)])


def quantized_softmax(t: Maker) -> Iterator[Call]:
    y = [scale(0.004), t.scalar(0 if t.name == "uint8" else -128)]
    for shape in ROWS:
        for axis, opset in itertools.product(range(-len(shape), len(shape)), (12, 13)):
            # The probability 1 overflows in onnxruntime.
            if (shape[axis] if opset == 13 else np.prod(shape[axis:])) > 1:
                inputs = [quantized(t, *shape), scale(0.05), t.scalar(3), *y]
                yield Call(inputs, {"axis": axis, "opset": opset})


def quantized_concat(t: Maker) -> Iterator[Call]:
    for shape in SHAPES[1:]:
        for axis in range(-len(shape), len(shape)):
            other = list(shape)
            other[axis] += 2
            parts = [quantized(t, *shape), scale(0.05), t.scalar(3)]
            parts += [quantized(t, *other), scale(0.02), t.scalar(0)]
            yield Call([scale(0.7), t.scalar(1), *parts], {"axis": axis})


def quantize(t: Maker) -> Iterator[Call]:
    for u in t.others("T2"):
        for shape in SHAPES:
            yield Call([t(*shape), t.scalar(0.5), u.scalar(1)])
            for axis in range(-len(shape), len(shape)):
                n = shape[axis]
                yield Call([t(*shape), t(n, low=0.1, high=1), u(n, low=0, high=3)], {"axis": axis})


def dequantize(t: Maker) -> Iterator[Call]:
    for u in t.others("T2"):
        for shape in SHAPES:
            yield Call([t(*shape), u.scalar(0.5), t.scalar(0)])
            for axis in range(-len(shape), len(shape)):
                n = shape[axis]
                zeros = t(n, low=0, high=1 if t.name == "int32" else 3)
                yield Call([t(*shape), u(n, low=0.1, high=1), zeros], {"axis": axis})


def expand_dims(t: Maker) -> Iterator[Call]:
    for shape in SHAPES[:-1]:
        for axis in range(-len(shape) - 1, len(shape) + 1):
            yield Call([t(*shape), np.array(axis, np.int32)])


def trilu(t: Maker) -> Iterator[Call]:
    for shape in SHAPES[2:]:
        for k, upper in itertools.product((-7, -1, 0, 2, 9), (0, 1)):
            yield Call([t(*shape), np.array(k)], {"upper": upper})


def unfold(t: Maker) -> Iterator[Call]:
    for shape in ROWS:
        for axis in range(-len(shape), len(shape)):
            for size in range(1, shape[axis] + 1):
                yield Call([t(*shape)], {"dim": axis, "size": size, "step": 2})


def gather_nd(t: Maker) -> Iterator[Call]:
    for shape in SHAPES[1:]:
        for depth in range(1, len(shape) + 1):
            if 0 not in shape:
                yield Call([t(*shape), np.zeros((2, depth), np.int64)])
                yield Call([t(*shape), np.zeros((1, 2, depth), np.int32) - 1])


def inverse(t: Maker) -> Iterator[Call]:
    for batch in ((), (1,), (2,), (2, 3), (0,)):
        eye = np.eye(3) * 4 + np.arange(9).reshape(3, 3)
        yield Call([np.broadcast_to(eye, (*batch, 3, 3)).astype(t.dtype)])


def pad(t: Maker) -> Iterator[Call]:
    for mode in ("constant", "edge", "reflect"):
        for shape in SHAPES[1:]:
            ends = [0, 1] * len(shape)
            if mode == "constant" or (0 not in shape and 1 not in shape):
                yield Call([t(*shape), ints(*ends)], {"mode": mode})
                yield Call([t(*shape), ints(*ends)[None]], {"mode": mode})
                yield Call([t(*shape), ints(*ends[::-1]), t.of(2)], {"mode": mode})
        yield Call([t(4, 5), ints(-1, 1, 2, -2)], {"mode": mode})


def unique(t: Maker) -> Iterator[Call]:
    for n in (0, 1, 9):
        yield Call([t(n)], {}, 3)


def murmur_hash(t: Maker) -> Iterator[Call]:
    for shape in SHAPES:
        yield Call([t(*shape)], {"seed": 3})


def skip_norm(parameters: int) -> Callable:
    def recipe(t: Maker) -> Iterator[Call]:
        rows = [t(8) for _ in range(parameters + 1)]
        for shape in ((3, 8), (2, 3, 8), (1, 1, 8), (0, 3, 8)):
            x, skips = t(*shape), [t(*shape)]
            if len(shape) == 3:
                skips += [t(*shape[1:]), t(1, *shape[1:])]
            for skip in skips:
                yield Call([x, skip, *rows[:parameters]])
                yield Call([x, skip, *rows], {"epsilon": 0.1}, 4)
        yield Call([t(2, 3, 8), t(2, 3, 8), t(8)])

    return recipe


def bias_activation(t: Maker) -> Iterator[Call]:
    for shape in ROWS:
        yield Call([t(*shape), t(shape[-1])])


def fast_gelu(t: Maker) -> Iterator[Call]:
    yield from bias_activation(t)
    yield from over(ROWS, unary)(t)


GEMM_ACTIVATIONS = (
    *("Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"),
    *("Elu", "ParametricSoftplus", "ScaledTanh", "Softplus", "Softsign", "ThresholdedRelu"),
)


def fused_gemm(t: Maker) -> Iterator[Call]:
    for c in ((), (1,), (4,), (1, 4), (2, 1), (2, 4), (1, 1)):
        yield Call([t(2, 3), t(3, 4), t(*c)], {"activation": "Relu", "beta": 0.5})
    for name in GEMM_ACTIVATIONS if t.is_float else GEMM_ACTIVATIONS[:4]:
        # Parameters that an activation does not have are ignored.
        values = {"activation": name, "activation_alpha": 0.25, "activation_beta": 0.5}
        yield Call([t(3, 2), t(4, 3)], {**values, "transA": 1, "transB": 1})


def q_gemm(t: Maker) -> Iterator[Call]:
    for u in t.others("TB"):
        for left, right in itertools.product((0, 1), repeat=2):
            a = quantized(t, *((3, 2) if left else (2, 3)))
            b = quantized(u, *((4, 3) if right else (3, 4)))
            x, w = [a, scale(0.05), t.scalar(3)], [b, scale(0.02), u.scalar(2)]
            flags = {"transA": left, "transB": right, "alpha": 0.5}
            yield Call([*x, *w], flags)
            columns = [b, np.full(4, 0.02, np.float32), u.of(1, 2, 0, 1)]
            yield Call([*x, *columns], flags)


def matmul_nbits(t: Maker) -> Iterator[Call]:
    packed = np.random.default_rng(7).integers(0, 256, (4, 2, 8)).astype(np.uint8)
    scales, sizes = t(4, 2, low=0.1, high=1), {"K": 32, "N": 4, "bits": 4, "block_size": 16}
    # More rows, of blocks as small as these, are rounded to 8 bits with AVX2.
    for shape in ((32,), (1, 32), (3, 32), (2, 2, 32), (1, 2, 1, 32), (0, 32)):
        x = t(*shape, low=-1, high=1)
        yield Call([x, packed, scales], sizes)
        yield Call([x, packed, scales, None, None, t(4)], sizes)
        yield Call([x, packed, scales.reshape(-1)], {**sizes, "accuracy_level": 4})


def cdist(t: Maker) -> Iterator[Call]:
    for a, b in (((0, 4), (3, 4)), ((3, 4), (0, 4)), ((2, 0), (3, 0)), ((1, 1), (1, 1))):
        for metric in ("euclidean", "sqeuclidean"):
            yield Call([t(*a), t(*b)], {"metric": metric})


def crop(t: Maker) -> Iterator[Call]:
    boxes = t.of(0, 0, 1, 1, 0.1, 0.2, 0.8, 0.9, 0.9, 0.8, 0.1, 0.2, -1, -1, 2, 2).reshape(4, 4)
    for size, mode in itertools.product((int32s(1, 1), int32s(3, 2)), ("bilinear", "nearest")):
        attributes = {"mode": mode, "extrapolation_value": 2.0}
        yield Call([t(2, 3, 5, 4), boxes, int32s(0, 1, 1, 0), size], attributes)


def range_(t: Maker) -> Iterator[Call]:
    for start, limit, step in ((0, 5, 1), (5, 0, -2), (3, 3, 1), (3, 1, 1), (-4, 4, 3)):
        yield Call([t.scalar(start), t.scalar(limit), t.scalar(step)])
        yield Call([t.of(start), t.of(limit), t.of(step)])
    yield Call([t.scalar(1), t.scalar(5)])


def pools(t: Maker) -> Iterator[Call]:
    quantization = [scale(0.05), t.scalar(3), scale(0.07), t.scalar(2)]
    if "Global" in t.schema.name:
        shapes: list[Any] = [((1, 2, 4), {}), ((1, 2, 4, 5), {}), ((1, 2, 3, 4, 5), {})]
    else:
        shapes = [
            ((1, 2, 9), {"kernel_shape": [3], "pads": [1, 1], "count_include_pad": 1}),
            ((1, 2, 5, 5), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
            ((1, 2, 5, 5), {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER"}),
            ((1, 2, 5, 5), {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
            ((1, 2, 4, 5, 3), {"kernel_shape": [2, 2, 2], "strides": [1, 2, 1]}),
        ]
    for shape, attributes in shapes:
        x = quantized(t, *shape)
        yield Call([x, *quantization], attributes)
        last = np.moveaxis(x, 1, -1).copy()
        yield Call([last, *quantization], {**attributes, "channels_last": 1})


def nhwc_max_pool(t: Maker) -> Iterator[Call]:
    for shape, attributes in (
        ((1, 9, 2), {"kernel_shape": [3], "strides": [2]}),
        ((1, 5, 4, 2), {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "dilations": [2, 1]}),
        ((1, 5, 5, 2), {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
        ((1, 5, 5, 2), {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((1, 3, 4, 3, 2), {"kernel_shape": [2, 2, 2]}),
    ):
        yield Call([t(*shape, low=0, high=100)], attributes)


RECIPES: dict[str, Callable[[Maker], Iterator[Call]]] = {
    **dict.fromkeys(("Gelu", "QuickGelu", "SampleOp", "ScaledSiLU"), over(SHAPES, unary)),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), quantized_binary),
    **dict.fromkeys(("QLinearAveragePool", "QLinearGlobalAveragePool"), pools),
    **dict.fromkeys(("QLinearLeakyRelu", "QLinearSigmoid"), quantized_unary),
    "BiasGelu": bias_activation,
    "CDist": cdist,
    "CropAndResize": crop,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeMatMul": dynamic_product,
    "ExpandDims": expand_dims,
    "FastGelu": fast_gelu,
    "FusedGemm": fused_gemm,
    "FusedMatMul": fused_matmul,
    "GatedAdd": over(ROWS, lambda t, s: Call([t(*s), t(*s), t(*s[:-1], 1)])),
    "GatherND": gather_nd,
    "GatedRMSNorm": over(ROWS, lambda t, s: Call([t(*s), t(s[-1]), t(*s)])),
    "Inverse": inverse,
    "MatMulInteger16": integer_product,
    "MatMulIntegerToFloat": to_float,
    "MatMulNBits": matmul_nbits,
    "MurmurHash3": murmur_hash,
    "NhwcMaxPool": nhwc_max_pool,
    "Pad": pad,
    "QGemm": q_gemm,
    "QLinearConcat": quantized_concat,
    "QLinearSoftmax": quantized_softmax,
    "QLinearWhere": quantized_where,
    "QuantizeLinear": quantize,
    "Range": range_,
    "SkipLayerNormalization": skip_norm(2),
    "SkipSimplifiedLayerNormalization": skip_norm(1),
    "TransposeMatMul": transposed_product,
    "Trilu": trilu,
    "UnfoldTensor": unfold,
    "Unique": unique,
}
