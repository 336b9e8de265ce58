"""Recipes of the operators of com.microsoft."""

from __future__ import annotations

import contrib_layer_recipes
import contrib_search_recipes
import contrib_tensor_recipes
import numpy as np
from recipes import Call, Maker, Sparse, ints, quantized

SCALES = [np.array(value, np.float32) for value in (0.05, 0.02, 0.7)]


def small(t: Maker, *shape: int) -> np.ndarray:
    return t(*shape, low=-1, high=1)


def fused_matmul(t: Maker) -> list[Call]:
    return [
        Call([t(2, 3), t(3, 4)]),
        Call([t(3, 2), t(4, 3)], {"transA": 1, "transB": 1, "alpha": 0.5}),
        Call([t(2, 2, 3), t(2, 3, 4)]),
    ]


def matmul_integer_to_float(t: Maker) -> list[Call]:
    calls = []
    for u in t.others("T2"):
        for s in t.others("T3"):
            scales = [s.scalar(0.5), s.of(0.25, 1, 2, 0.5)]
            inputs = [quantized(t, 2, 3), quantized(u, 3, 4), *scales]
            calls += [Call(inputs), Call([*inputs, t.scalar(3), u(4, low=0, high=5), s(4)])]
    return calls


def q_gemm(t: Maker) -> list[Call]:
    calls, bias = [], np.array([100, -50, 0, 7], np.int32)
    for u in t.others("TB"):
        inputs = [quantized(t, 2, 3), SCALES[0], t.scalar(3)]
        inputs += [quantized(u, 3, 4), SCALES[1], u.scalar(2)]
        calls += [Call([*inputs, bias]), Call(inputs, {"alpha": 0.5})]
        calls += [Call([*inputs, bias, SCALES[2], t.scalar(5)])]
    return calls


def q_linear_binary(t: Maker) -> list[Call]:
    a = [quantized(t, 2, 3), SCALES[0], t.scalar(3)]
    others = [quantized(t, 2, 3), quantized(t, 3), quantized(t, 1)]
    return [Call([*a, b, SCALES[1], t.scalar(1), SCALES[2], t.scalar(5)]) for b in others]


def q_linear_unary(t: Maker) -> list[Call]:
    return [Call([quantized(t, 2, 5), SCALES[0], t.scalar(3), SCALES[1], t.scalar(1)])]


def q_linear_pool(t: Maker) -> list[Call]:
    inputs = [
        quantized(t, 1, 2, 4, 5),
        SCALES[0],
        t.scalar(3),
        np.array(0.07, np.float32),
        t.scalar(2),
    ]
    return [Call(inputs, {"kernel_shape": [2, 2]} if "Global" not in t.schema.name else {})]


def q_linear_softmax(t: Maker) -> list[Call]:
    y = [np.array(1 / 256, np.float32), t.scalar(0 if t.name == "uint8" else -128)]
    given = {"axis": -1, "opset": 13}
    return [Call([quantized(t, 2, 5), SCALES[0], t.scalar(3), *y], given)]


def q_linear_where(t: Maker) -> list[Call]:
    choice = np.array([[True, False, True]])
    x, y = ([quantized(t, 2, 3), scale, t.scalar(3)] for scale in SCALES[:2])
    return [Call([choice, *x, *y, SCALES[2], t.scalar(1)])]


def q_linear_concat(t: Maker) -> list[Call]:
    parts = [quantized(t, 2, 3), SCALES[0], t.scalar(3), quantized(t, 2, 1), SCALES[1], t.scalar(0)]
    return [Call([SCALES[2], t.scalar(1), *parts], {"axis": axis}) for axis in (1, -1)]


def quantize(t: Maker) -> list[Call]:
    zeros = [(y.of(1, 0, 1), y.scalar(1)) for y in t.others("T2")]
    calls = [Call([t(2, 3), t.scalar(0.5), zero]) for _, zero in zeros]
    return calls + [Call([t(2, 3), t.of(0.5, 2, 1), zero], {"axis": 1}) for zero, _ in zeros]


def dequantize(t: Maker) -> list[Call]:
    zero = t.scalar(0 if t.name == "int32" else 1)
    return [Call([t(2, 3), scale.scalar(0.5), zero]) for scale in t.others("T2")]


def skip_norm(parameters: int) -> object:
    def recipe(t: Maker) -> list[Call]:
        x, skip, rows = t(2, 3, 8), t(2, 3, 8), [t(8) for _ in range(parameters + 1)]
        return [Call([x, skip, *rows[:parameters]]), Call([x, skip, *rows])]

    return recipe


def murmur_hash(t: Maker) -> list[Call]:
    return [Call([t(2, 3)], {"seed": 5, "positive": flag}) for flag in (0, 1)]


def sparse_product(t: Maker) -> list[Call]:
    """With dense operands of every rank from 1 to 6, and without elements."""
    a, empty = t(3, 4), t(3, 4) * t.scalar(0)
    a[1], a[:, 2] = 0, 0
    calls = []
    for is_csr in (False, True):
        shapes = [(4,), (4, 5), (4, 0), (2, 4, 3), (0, 4, 3), (2, 1, 4, 2), (2, 1, 1, 4, 2)]
        for shape in [*shapes, (2, 1, 2, 1, 4, 3)]:
            calls += [Call([Sparse(a, is_csr), t(*shape)], {"alpha": 2.5})]
        transposed = Call([Sparse(a, is_csr), t(5, 3)], {"transA": 1, "transB": 1})
        calls += [Call([Sparse(a, is_csr), t(4, 5)]), transposed]
        calls += [Call([Sparse(empty, is_csr), t(4, 5)])]
        calls += [Call([Sparse(a[:0], is_csr), t(4, 5)])]
        calls += [Call([Sparse(a[:, :0], is_csr), t(0, 5)])]
    return calls


def range_(t: Maker) -> list[Call]:
    return [Call([t.scalar(1), t.scalar(7), t.scalar(2)]), Call([t.scalar(1), t.scalar(5)])]


def matmul_integer16(t: Maker) -> list[Call]:
    return [Call([t(2, 3), u(3, 4)]) for u in t.others("T2") if u.name == t.name]


RECIPES = {
    **contrib_layer_recipes.RECIPES,
    **contrib_search_recipes.RECIPES,
    **contrib_tensor_recipes.RECIPES,
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul"), fused_matmul),
    **dict.fromkeys(("Gelu", "QuickGelu"), lambda t: [Call([t(2, 3)]), Call([t(0, 3)])]),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), q_linear_binary),
    **dict.fromkeys(("QLinearAveragePool", "QLinearGlobalAveragePool"), q_linear_pool),
    **dict.fromkeys(("QLinearLeakyRelu", "QLinearSigmoid"), q_linear_unary),
    "BiasGelu": lambda t: [Call([t(2, 3, 4), t(4)])],
    "CDist": lambda t: [
        Call([t(3, 4), t(5, 4)], {"metric": m})
        for m in ("euclidean", "sqeuclidean", "cosine", "mahalanobis", "seuclidean")
    ],
    "CropAndResize": lambda t: [
        Call(
            [
                t(1, 2, 5, 5),
                t.of(0, 0, 1, 1)[None],
                np.zeros(1, np.int32),
                np.array([3, 2], np.int32),
            ]
        )
    ],
    "DequantizeLinear": dequantize,
    "DynamicQuantizeMatMul": lambda t: [
        Call([t(2, 3), u(3, 4), t.scalar(0.5), u.scalar(1)]) for u in t.others("T2")
    ],
    "ExpandDims": lambda t: [Call([t(2, 3), np.array(axis, np.int32)]) for axis in (0, 2, -1)],
    "FastGelu": lambda t: [Call([t(2, 4)]), Call([t(2, 4), t(4)])],
    "FusedGemm": lambda t: [Call([t(2, 3), t(3, 4), t(4)], {"activation": "Relu"})],
    "GatherND": lambda t: [
        Call([t(2, 3, 2), i.of(0, 2, 1, 0).reshape(2, 2)]) for i in t.others("Tind")
    ],
    "Inverse": lambda t: [Call([np.eye(3)[None].repeat(2, 0).astype(t.dtype) * t.scalar(2)])],
    "MatMulInteger16": matmul_integer16,
    "MatMulIntegerToFloat": matmul_integer_to_float,
    "MurmurHash3": murmur_hash,
    "NhwcMaxPool": lambda t: [Call([t(1, 4, 5, 2)], {"kernel_shape": [2, 2]})],
    "Pad": lambda t: [Call([t(2, 3), ints(0, 1, 2, 0), t.of(1)], {"mode": "constant"})],
    "QGemm": q_gemm,
    "QLinearConcat": q_linear_concat,
    "QLinearSoftmax": q_linear_softmax,
    "QLinearWhere": q_linear_where,
    "QuantizeLinear": quantize,
    "Range": range_,
    "SampleOp": lambda t: [Call([t(2, 3)])],
    "SkipLayerNormalization": skip_norm(2),
    "SkipSimplifiedLayerNormalization": skip_norm(1),
    "SparseToDenseMatMul": sparse_product,
    "Trilu": lambda t: [Call([t(3, 4)]), Call([t(2, 3, 3), np.array(1)], {"upper": 0})],
    "UnfoldTensor": lambda t: [Call([t(2, 6)], {"dim": -1, "size": 3, "step": 2})],
    "Unique": lambda t: [Call([t(6)], {}, 3)],
}
