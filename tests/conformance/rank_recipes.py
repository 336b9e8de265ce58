"""Calls with tensors of every rank from 0 to 6, without elements too, along every axis.

Of operators that take any rank: what one of them is called with for a shape, by its name. Those of
few types are enough, as what depends on the rank does not on the type.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from recipes import SHAPES, Call, Maker, by_input, ints

TYPES = ("float", "int64", "bool", "string")
Shape = tuple[int, ...]
OfShape = Callable[[Maker, Shape], Iterator[Call]]


def axes_of(shape: Shape) -> list[int]:
    """From the front and from the back."""
    return list(range(-len(shape), len(shape)))


def unary(low: float = -4, high: float = 4, **attributes: Any) -> OfShape:
    def calls(t: Maker, shape: Shape) -> Iterator[Call]:
        yield Call([t(*shape, low=low, high=high)], attributes)

    return calls


def partners(shape: Shape) -> list[Shape]:
    """Shapes that broadcast with `shape`, in either direction."""
    ones = tuple(1 if i % 2 else n for i, n in enumerate(shape))
    others = tuple(n if i % 2 else 1 for i, n in enumerate(shape))
    wider = (2, *shape) if len(shape) < len(SHAPES) - 2 else shape
    return list(dict.fromkeys([shape, (), (1,), shape[1:], ones, others, wider]))


def binary(low: float = -4, **attributes: Any) -> OfShape:
    def calls(t: Maker, shape: Shape) -> Iterator[Call]:
        second = partners(shape) if t.version >= 7 else [shape]
        for other in second:
            yield Call([t(*shape, low=low), t(*other, low=max(low, 1))], attributes)
        if t.version >= 7:
            yield Call([t(*second[-1], low=low), t(*shape, low=max(low, 1))], attributes)

    return calls


def prelu(t: Maker, shape: Shape) -> Iterator[Call]:
    """The slope broadcasts to the input alone."""
    slopes = partners(shape)[:-1] if t.version >= 7 else []
    for slope in slopes:
        yield Call([t(*shape), t(*slope)])


def where(t: Maker, shape: Shape) -> Iterator[Call]:
    condition = np.random.default_rng(7).integers(0, 2, shape).astype(bool)
    for a, b in itertools.product(partners(shape)[:-1], repeat=2):
        yield Call([condition, t(*a), t(*b)])
    yield Call([np.array(True), t(*shape), t(*shape[1:])])


# Of whole numbers.
UNDEFINED_OF_NOTHING = ("ReduceMean", "ReduceLogSum", "ReduceLogSumExp")


def reduce(since: int) -> OfShape:
    def calls(t: Maker, shape: Shape) -> Iterator[Call]:
        if not t.is_float and 0 in shape and t.schema.name in UNDEFINED_OF_NOTHING:
            return
        x, axes = t(*shape, low=1), axes_of(shape)
        for keeps in (0, 1):
            yield Call([x], {"keepdims": keeps})
            lists = [[axis] for axis in axes] + ([[0, -1]] if len(shape) > 1 else [])
            for given in lists:
                if t.version < 11 and min(given) < 0:
                    continue
                more, attributes = by_input(t.version, since, "axes", given)
                yield Call([x, *more], {**attributes, "keepdims": keeps})
            if t.version >= since:
                yield Call([x, ints()], {"keepdims": keeps})
                yield Call([x, ints()], {"keepdims": keeps, "noop_with_empty_axes": 1})

    return calls


def along_axis(since_negative: int, **attributes: Any) -> OfShape:
    """Operators with an attribute `axis`, which may be negative from a version on."""

    def calls(t: Maker, shape: Shape) -> Iterator[Call]:
        for axis in axes_of(shape):
            if axis >= 0 or t.version >= since_negative:
                yield Call([t.distinct(*shape)], {**attributes, "axis": axis})

    return calls


def arg(t: Maker, shape: Shape) -> Iterator[Call]:
    for call, keeps in itertools.product(along_axis(11)(t, shape), (0, 1)):
        if shape[call.attributes["axis"]] > 0:
            yield Call(call.inputs, {**call.attributes, "keepdims": keeps})


def flatten(t: Maker, shape: Shape) -> Iterator[Call]:
    first = -len(shape) if t.version >= 11 else 0
    for axis in range(first, len(shape) + 1):
        yield Call([t(*shape)], {"axis": axis})


def concat(t: Maker, shape: Shape) -> Iterator[Call]:
    for axis in axes_of(shape):
        if axis >= 0 or t.version >= 11:
            other = list(shape)
            other[axis] += 1
            yield Call([t(*shape), t(*other)], {"axis": axis})


def gather(t: Maker, shape: Shape) -> Iterator[Call]:
    for axis in axes_of(shape):
        if shape[axis] > 0:
            for at in (ints(0)[0], ints(0, 0), ints(0)[None], ints()):
                yield Call([t(*shape), np.asarray(at)], {"axis": axis})


def gather_elements(t: Maker, shape: Shape) -> Iterator[Call]:
    for axis in axes_of(shape):
        if 0 not in shape:
            yield Call([t(*shape), np.zeros(shape, np.int64)], {"axis": axis})


def gather_nd(t: Maker, shape: Shape) -> Iterator[Call]:
    for depth in range(1, len(shape) + 1):
        if 0 not in shape:
            yield Call([t(*shape), np.zeros((2, depth), np.int64)])


def scatter_elements(t: Maker, shape: Shape) -> Iterator[Call]:
    for axis in axes_of(shape):
        if axis >= 0 or t.version >= 11:
            at = np.zeros([1 if n else 0 for n in shape], np.int64)
            yield Call([t(*shape), at, t(*at.shape)], {"axis": axis})


def scatter_nd(t: Maker, shape: Shape) -> Iterator[Call]:
    for depth in range(1, len(shape) + 1):
        if 0 not in shape:
            yield Call([t(*shape), np.zeros((1, depth), np.int64), t(1, *shape[depth:])])


def cumulative(t: Maker, shape: Shape) -> Iterator[Call]:
    for axis, flag in itertools.product(axes_of(shape), ("exclusive", "reverse")):
        yield Call([t(*shape), np.array(axis)], {flag: 1})


def top_k(t: Maker, shape: Shape) -> Iterator[Call]:
    for axis in axes_of(shape):
        if shape[axis] == 0:
            continue
        if t.version < 10:
            yield from [Call([t.distinct(*shape)], {"k": 1, "axis": axis}, 2)] if axis >= 0 else []
        elif axis >= 0 or t.version >= 11:
            for more in ({}, {"largest": 0}) if t.version >= 11 else ({},):
                yield Call([t.distinct(*shape), ints(1)], {**more, "axis": axis}, 2)


def split(t: Maker, shape: Shape) -> Iterator[Call]:
    for axis in axes_of(shape):
        if t.version > 1 and (axis >= 0 or t.version >= 11):
            parts = [shape[axis], 0]
            more, attributes = by_input(t.version, 13, "split", parts)
            yield Call([t(*shape), *more], {**attributes, "axis": axis}, 2)


def squeeze(t: Maker, shape: Shape) -> Iterator[Call]:
    yield Call([t(*shape)])
    for axis in axes_of(shape):
        if shape[axis] == 1 and (axis >= 0 or t.version >= 11):
            more, attributes = by_input(t.version, 13, "axes", [axis])
            yield Call([t(*shape), *more], attributes)


def unsqueeze(t: Maker, shape: Shape) -> Iterator[Call]:
    for axis in range(-len(shape) - 1, len(shape) + 1):
        if axis >= 0 or t.version >= 11:
            more, attributes = by_input(t.version, 13, "axes", [axis])
            yield Call([t(*shape), *more], attributes)


def transpose(t: Maker, shape: Shape) -> Iterator[Call]:
    yield Call([t(*shape)])
    if shape:
        yield Call([t(*shape)], {"perm": [*range(1, len(shape)), 0]})


def tile(t: Maker, shape: Shape) -> Iterator[Call]:
    if t.version >= 6:
        for first in (0, 2):
            repeats = [first, *[1, 2] * len(shape)][: len(shape)]
            yield Call([t(*shape), ints(*repeats)])


def expand(t: Maker, shape: Shape) -> Iterator[Call]:
    for target in (shape, (2, *shape), (), tuple(3 if n == 1 else n for n in shape)):
        yield Call([t(*shape), ints(*target)])


def reshape(t: Maker, shape: Shape) -> Iterator[Call]:
    """A 0 in the new shape stands for the dimension of the old one."""
    size = int(np.prod(shape))
    for target in ([size], [1, size, 1], [-1], [*([0] * len(shape)), 1]):
        if size > 0 or target[-1] == 1:
            more, attributes = by_input(t.version, 5, "shape", target)
            yield Call([t(*shape), *more], attributes)
    if t.version >= 14:
        yield Call([t(*shape), ints(size, 1)], {"allowzero": 1})


def pad(t: Maker, shape: Shape) -> Iterator[Call]:
    if t.version >= 11 and shape:
        pads = [1, 0] * len(shape)
        yield Call([t(*shape), ints(*pads), t()])
        if 0 not in shape:
            yield Call([t(*shape), ints(*pads)], {"mode": "edge"})


def slice_(t: Maker, shape: Shape) -> Iterator[Call]:
    for axis in axes_of(shape):
        if t.version >= 10:
            yield Call([t(*shape), ints(0), ints(1), ints(axis)])
            yield Call([t(*shape), ints(-1), ints(-1000), ints(axis), ints(-1)])
        elif axis >= 0:
            yield Call([t(*shape)], {"starts": [0], "ends": [1], "axes": [axis]})


def compress(t: Maker, shape: Shape) -> Iterator[Call]:
    size = int(np.prod(shape))
    yield Call([t(*shape), np.arange(size) % 2 == 0])
    for axis in axes_of(shape):
        if axis >= 0 or t.version >= 11:
            yield Call([t(*shape), np.arange(shape[axis]) % 2 == 0], {"axis": axis})


def unique(t: Maker, shape: Shape) -> Iterator[Call]:
    if 0 not in shape and not t.is_string:
        yield Call([t(*shape)], {}, 4)
        for axis in axes_of(shape):
            yield Call([t(*shape)], {"axis": axis}, 4)


def one_hot(t: Maker, shape: Shape) -> Iterator[Call]:
    for axis in range(-len(shape) - 1, len(shape) + 1):
        if shape or t.version >= 11:
            indices = np.zeros(shape, t.dtype)
            yield Call([indices, np.array(3, t.dtype), ints(5, 7)], {"axis": axis})


def normalization(parameters: int) -> OfShape:
    def calls(t: Maker, shape: Shape) -> Iterator[Call]:
        for axis in axes_of(shape):
            if 0 not in shape:
                sizes = shape[axis:]
                yield Call([t(*shape), *(t(*sizes) for _ in range(parameters))], {"axis": axis})

    return calls


def quantize(t: Maker, shape: Shape) -> Iterator[Call]:
    one = np.array(0.5, np.float32)
    yield Call([t(*shape), one, np.array(3, np.uint8)])
    for axis in axes_of(shape) if t.version >= 13 else []:
        scales = np.linspace(0.5, 2, shape[axis]).astype(np.float32)
        yield Call([t(*shape), scales, np.zeros(shape[axis], np.int8)], {"axis": axis})


def batch_norm(t: Maker, shape: Shape) -> Iterator[Call]:
    if len(shape) > 1 and t.version >= 9:
        rows = [t(shape[1], low=1) for _ in range(4)]
        yield Call([t(*shape), *rows])


def global_pool(t: Maker, shape: Shape) -> Iterator[Call]:
    if len(shape) > 2:
        yield Call([t(*shape)])


def matmul(t: Maker, shape: Shape) -> Iterator[Call]:
    if shape:
        yield Call([t(*shape), t(shape[-1])])
        yield Call([t(*shape), t(shape[-1], 2)])
    if len(shape) > 1:
        yield Call([t(shape[-2]), t(*shape)])
        yield Call([t(*shape), t(*(1 for _ in shape[:-2]), shape[-1], 2)])


def trilu(t: Maker, shape: Shape) -> Iterator[Call]:
    if len(shape) > 1 and not t.is_string:
        yield Call([t(*shape)])
        yield Call([t(*shape), np.array(1)], {"upper": 0})


def bit_cast(t: Maker, shape: Shape) -> Iterator[Call]:
    to = {"float": onnx.TensorProto.INT32, "int64": onnx.TensorProto.DOUBLE}
    if t.name in to:
        yield Call([t(*shape)], {"to": to[t.name]})


def cast(t: Maker, shape: Shape) -> Iterator[Call]:
    if t.version >= 6 and not t.is_string:
        yield Call([t(*shape)], {"to": onnx.TensorProto.INT32})


def clip(t: Maker, shape: Shape) -> Iterator[Call]:
    if t.version < 11:
        yield Call([t(*shape)], {"min": -1.0, "max": 2.0})
    else:
        yield Call([t(*shape), t.scalar(-1), t.scalar(2)])
        yield Call([t(*shape), None, t.scalar(2)])
        yield Call([t(*shape)])


COMPARISONS = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
RECIPES: dict[str, OfShape] = {
    **dict.fromkeys(("Acos", "Asin"), unary(-1, 1)),
    **dict.fromkeys(("ArgMax", "ArgMin"), arg),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", *COMPARISONS), binary()),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Max", "Min"), binary()),
    **dict.fromkeys(("Mean", "Sum"), binary()),
    **dict.fromkeys(("CumProd", "CumSum"), cumulative),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), global_pool),
    **dict.fromkeys(("Scatter", "ScatterElements"), scatter_elements),
    **dict.fromkeys(
        (
            "ReduceMax ReduceMin ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceLogSum "
            "ReduceLogSumExp ReduceSumSquare"
        ).split(),
        reduce(18),
    ),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), along_axis(11)),
    "Acosh": unary(1),
    "Atanh": unary(-0.9, 0.9),
    "BatchNormalization": batch_norm,
    "BitCast": bit_cast,
    "Cast": cast,
    "Clip": clip,
    "Compress": compress,
    "Concat": concat,
    "DynamicQuantizeLinear": lambda t, shape: [Call([t(*shape)], {}, 3)] if 0 not in shape else [],
    "Expand": expand,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "LayerNormalization": normalization(2),
    "Log": unary(1),
    "LpNormalization": along_axis(1),
    "MatMul": matmul,
    "Mod": binary(1, fmod=1),
    "NonZero": unary(),
    "OneHot": one_hot,
    "PRelu": prelu,
    "Pad": pad,
    "Pow": binary(1),
    "QuantizeLinear": quantize,
    "RMSNormalization": normalization(1),
    "ReduceSum": reduce(13),
    "Reshape": reshape,
    "ScatterND": scatter_nd,
    "Slice": slice_,
    "Split": split,
    "Sqrt": unary(0),
    "Squeeze": squeeze,
    "SwiGLU": lambda t, shape: [Call([t(*shape), t(*shape)])],
    "Tile": tile,
    "TopK": top_k,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unique": unique,
    "Unsqueeze": unsqueeze,
    "Where": where,
}


def calls_of(schema: onnx.defs.OpSchema, type_name: str) -> list[Call]:
    """Of every shape, for a few types."""
    recipe = RECIPES.get(schema.name)
    if recipe is None or type_name not in TYPES or schema.domain:
        return []
    maker = Maker(schema, type_name)
    return [call for shape in SHAPES for call in recipe(maker, shape)]
