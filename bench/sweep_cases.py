"""Single operators for sweep.py, each with PyTorch's expression for the same.

Types, ranks and axes take turns, so that every operator meets several of each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from onnx import helper
from operators import RNG, Case, case

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
F32, F64, F16 = np.dtype("float32"), np.dtype("float64"), np.dtype("float16")
I64, I32, I8, U8 = np.dtype("int64"), np.dtype("int32"), np.dtype("int8"), np.dtype("uint8")
BOOL = np.dtype("bool")
FLOATS = (F32, F64, F16, BFLOAT16)
INTEGERS = (I64, I32, U8, I8)

# Some 200,000 elements in 1 to 5 axes.
SHAPES = ((200_000,), (400, 500), (20, 100, 100), (8, 32, 28, 28), (4, 8, 16, 20, 20))


class Sample(NamedTuple):
    """`expression` takes the node's inputs, first those that are fed, then the constants."""

    name: str
    model: Case
    expression: Callable[..., Any] | None


def make(dtype: np.dtype, *shape: int, low: float = -3, high: float = 3) -> np.ndarray:
    """Uniform values of a type; whole numbers of types that have no others."""
    if dtype == BOOL:
        return RNG.random(shape) < 0.5
    if dtype in INTEGERS:
        low = max(low, 0) if dtype == U8 else low
        return RNG.integers(int(low), int(high) + 1, shape).astype(dtype)
    return RNG.uniform(low, high, shape).astype(dtype)


def as_torch(array: np.ndarray) -> torch.Tensor:
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def torch_type(dtype: np.dtype) -> torch.dtype:
    return as_torch(np.zeros(1, dtype)).dtype


def sample(
    op_type: str,
    feeds: list[np.ndarray],
    expression: Callable[..., Any] | None,
    *constants: Any,
    note: str = "",
    **attributes: Any,
) -> Sample:
    shapes = " by ".join("x".join(map(str, x.shape)) or "1" for x in feeds)
    name = " ".join(filter(None, [op_type, str(feeds[0].dtype), shapes, note]))
    return Sample(name, case(op_type, feeds, *constants, **attributes), expression)


# ---- element by element ------------------------------------------------------------------------

# Operator, PyTorch's function, and the range of values.
UNARY: tuple[tuple[str, Callable[..., Any], float, float], ...] = (
    ("Abs", torch.abs, -3, 3),
    ("Acos", torch.acos, -1, 1),
    ("Acosh", torch.acosh, 1, 4),
    ("Asin", torch.asin, -1, 1),
    ("Asinh", torch.asinh, -3, 3),
    ("Atan", torch.atan, -3, 3),
    ("Atanh", torch.atanh, -0.9, 0.9),
    ("Ceil", torch.ceil, -3, 3),
    ("Celu", F.celu, -3, 3),
    ("Cos", torch.cos, -9, 9),
    ("Cosh", torch.cosh, -3, 3),
    ("Elu", F.elu, -3, 3),
    ("Erf", torch.erf, -3, 3),
    ("Exp", torch.exp, -3, 3),
    ("Floor", torch.floor, -3, 3),
    ("Gelu", F.gelu, -3, 3),
    ("HardSigmoid", lambda x: torch.clamp(0.2 * x + 0.5, 0, 1), -3, 3),
    ("HardSwish", F.hardswish, -4, 4),
    ("IsInf", torch.isinf, -3, 3),
    ("IsNaN", torch.isnan, -3, 3),
    ("LeakyRelu", F.leaky_relu, -3, 3),
    ("Log", torch.log, 0.1, 9),
    ("Mish", F.mish, -3, 3),
    ("Neg", torch.neg, -3, 3),
    ("Reciprocal", torch.reciprocal, 0.1, 3),
    ("Relu", torch.relu, -3, 3),
    ("Round", torch.round, -3, 3),
    # With the constants of the standard, which are floats.
    ("Selu", lambda x: 1.0507010221481323 * F.elu(x, 1.6732631921768188), -3, 3),
    ("Sigmoid", torch.sigmoid, -3, 3),
    ("Sign", torch.sign, -3, 3),
    ("Sin", torch.sin, -9, 9),
    ("Sinh", torch.sinh, -3, 3),
    ("Softplus", F.softplus, -3, 3),
    ("Softsign", F.softsign, -3, 3),
    ("Sqrt", torch.sqrt, 0, 9),
    ("Tan", torch.tan, -1.4, 1.4),
    ("Tanh", torch.tanh, -3, 3),
    ("ThresholdedRelu", lambda x: F.threshold(x, 1.0, 0.0), -3, 3),
)


def unary():
    shapes = itertools.cycle(SHAPES)
    for (op_type, function, low, high), narrow in zip(
        UNARY, itertools.cycle(FLOATS[1:]), strict=False
    ):
        for dtype in (F32, narrow):
            attributes = {"alpha": 0.01} if op_type == "LeakyRelu" else {}
            x = make(dtype, *next(shapes), low=low, high=high)
            yield sample(op_type, [x], function, **attributes)
    for dtype in INTEGERS:
        yield sample("Abs", [make(dtype, *next(shapes))], torch.abs)
        yield sample("Sign", [make(dtype, *next(shapes))], torch.sign)
        yield sample("BitwiseNot", [make(dtype, *next(shapes))], torch.bitwise_not)
    for dtype in (I64, I32, I8):
        yield sample("Neg", [make(dtype, *next(shapes))], torch.neg)
    yield sample("Relu", [make(I32, *SHAPES[1])], torch.relu)
    yield sample("Not", [make(BOOL, *SHAPES[2])], torch.logical_not)
    for dtype in (F32, BFLOAT16, F16):
        x = make(dtype, *next(shapes))
        tanh = lambda x: F.gelu(x, approximate="tanh")
        yield sample("Gelu", [x], tanh, approximate="tanh", note="tanh")
    for dtype in (F32, F64, I64, I32, U8, I8):
        low, high = np.array(0, dtype), np.array(2, dtype)
        clamp = lambda x, *_: torch.clamp(x, 0, 2)
        yield sample("Clip", [make(dtype, *next(shapes))], clamp, low, high)
    shrink = lambda x: F.hardshrink(x, 0.5)
    yield sample("Shrink", [make(F32, *SHAPES[0])], shrink, lambd=0.5)


# Two shapes that broadcast, one for every place in which an axis of size 1 can be.
PAIRS = (
    ((200_000,), (200_000,)),
    ((400, 500), ()),
    ((400, 500), (500,)),
    ((400, 500), (400, 1)),
    ((400, 1), (1, 500)),
    ((64, 50, 64), (64, 1, 64)),
    ((64, 50, 64), (1, 50, 1)),
    ((1, 64, 56, 56), (64, 1, 1)),
    ((8, 12, 48, 48), (8, 1, 1, 48)),
    ((8, 1, 48, 48), (1, 12, 48, 1)),
    ((4, 8, 16, 20, 20), (4, 1, 16, 1, 20)),
    ((4, 1, 16, 1, 20), (1, 8, 1, 20, 1)),
    ((20, 3, 1000, 3), (3,)),
    ((50_000, 4), (50_000, 1)),
)


def pair(dtype: np.dtype, index: int, low: float, high: float) -> list[np.ndarray]:
    return [make(dtype, *shape, low=low, high=high) for shape in PAIRS[index % len(PAIRS)]]


def binary():
    types = itertools.cycle((*FLOATS, *INTEGERS))
    for index in range(len(PAIRS)):
        yield sample("Add", pair(F32, index, -3, 3), torch.add)
        yield sample("Mul", pair(next(types), index, -3, 3), torch.mul)
    index = 0
    numbers = (
        ("Sub", torch.sub, (F32, F64, F16, BFLOAT16, I64, I32, U8)),
        ("Div", torch.div, (F32, F64, F16, BFLOAT16)),
        ("Div", lambda x, y: torch.div(x, y, rounding_mode="trunc"), (I64, I32, U8, I8)),
        ("Max", torch.maximum, (F32, F64, F16, BFLOAT16, I64, I32, U8, I8)),
        ("Min", torch.minimum, (F32, F64, F16, I64, I32)),
        ("Sum", torch.add, (F32, F64)),
        ("Mean", lambda x, y: (x + y) / 2, (F32, F64)),
        ("Equal", torch.eq, (F32, F16, I64, I32, U8, BOOL)),
        ("Greater", torch.gt, (F32, F64, BFLOAT16, I64, I32, I8)),
        ("GreaterOrEqual", torch.ge, (F32, I64)),
        ("Less", torch.lt, (F32, F16, I64, U8)),
        ("LessOrEqual", torch.le, (F32, I32)),
        ("Mod", torch.remainder, (I64, I32, U8)),
        ("And", torch.logical_and, (BOOL,)),
        ("Or", torch.logical_or, (BOOL,)),
        ("Xor", torch.logical_xor, (BOOL,)),
        ("BitwiseAnd", torch.bitwise_and, (I64, I32, U8)),
        ("BitwiseOr", torch.bitwise_or, (I64, U8)),
        ("BitwiseXor", torch.bitwise_xor, (I32, I8)),
    )
    for op_type, function, dtypes in numbers:
        for dtype in dtypes:
            low = 1 if op_type in ("Div", "Mod") else -3
            yield sample(op_type, pair(dtype, index, low, 9), function)
            index += 1
    for dtype, exponent in ((F32, 2.0), (F32, 0.5), (F32, 1.7), (F64, 1.7), (F16, 2.0)):
        x = make(dtype, *SHAPES[2], low=0.1)
        yield sample("Pow", [x], torch.pow, np.array(exponent, dtype), note=f"to {exponent}")
    for index in (0, 3, 5):
        yield sample("Pow", pair(F32, index, 0.1, 3), torch.pow)
    yield sample("Pow", pair(I64, 2, 1, 3), torch.pow)
    for dtype in (F32, F64, F16):
        yield sample("Mod", pair(dtype, 3, 1, 9), torch.fmod, fmod=1)
    for dtype in (F32, F16):
        x = make(dtype, 1, 64, 56, 56)
        prelu = lambda x, slope: F.prelu(x, slope.flatten())
        yield sample("PRelu", [x], prelu, make(dtype, 64, 1, 1))
    for dtype, index in ((U8, 0), (U8, 1)):
        shift = sample(
            "BitShift", pair(dtype, index, 0, 6), torch.bitwise_left_shift, direction="LEFT"
        )
        yield shift
    for index, dtype in enumerate((F32, F64, F16, I64, U8, BOOL)):
        first, second = PAIRS[2 * index]
        shape = np.broadcast_shapes(first, second)
        feeds = [make(BOOL, *shape), make(dtype, *first), make(dtype, *second)]
        yield sample("Where", feeds, torch.where)
    for dtype in (F32, I64):
        feeds = [make(BOOL, 1, 1, 200, 200), make(dtype, 4, 3, 200, 200)]
        zero = np.array(0, dtype)
        yield sample("Where", feeds, torch.where, zero, note="or zero")


CASTS = (
    *itertools.permutations((F32, F64, F16, BFLOAT16), 2),
    *((F32, to) for to in (I64, I32, U8, I8, BOOL)),
    *((source, F32) for source in (I64, I32, U8, I8, BOOL)),
    *(
        (I64, I32),
        (I32, I64),
        (U8, I64),
        (I64, BOOL),
        (BOOL, I64),
        (F64, I64),
        (I64, F16),
        (U8, F16),
    ),
)


def casts():
    for (source, target), shape in zip(CASTS, itertools.cycle(SHAPES), strict=False):
        to = torch_type(target)
        x = make(source, *shape, low=0, high=9)
        code = helper.np_dtype_to_tensor_dtype(target)
        yield sample("Cast", [x], lambda x, to=to: x.to(to), to=code, note=f"to {target}")


# ---- reductions --------------------------------------------------------------------------------

REDUCTIONS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("ReduceSum", lambda x, axes, keep: torch.sum(x, axes, keep, dtype=x.dtype)),
    ("ReduceMean", torch.mean),
    ("ReduceMax", torch.amax),
    ("ReduceMin", torch.amin),
    ("ReduceL1", lambda x, axes, keep: torch.linalg.vector_norm(x, 1, axes, keep)),
    ("ReduceL2", lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep)),
    ("ReduceSumSquare", lambda x, axes, keep: torch.sum(x * x, axes, keep)),
    ("ReduceLogSum", lambda x, axes, keep: torch.log(torch.sum(x, axes, keep))),
    ("ReduceLogSumExp", torch.logsumexp),
)
AXES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((200_000,), (0,)),
    ((400, 500), (1,)),
    ((400, 500), (0,)),
    ((50_000, 4), (1,)),
    ((64, 50, 64), (1,)),
    ((64, 50, 64), (0, 2)),
    ((8, 32, 28, 28), (2, 3)),
    ((8, 32, 28, 28), (0, 2, 3)),
    ((8, 32, 28, 28), (1,)),
    ((8, 32, 28, 28), (1, 3)),
    ((4, 8, 16, 20, 20), (0, 2, 4)),
    ((4, 8, 16, 20, 20), (2, 3, 4)),
)


def reduction(op_type: str, function: Any, dtype: np.dtype, index: int) -> Sample:
    shape, axes = AXES[index % len(AXES)]
    keep = index % 2
    x = make(dtype, *shape, low=0 if dtype == F16 or op_type == "ReduceLogSum" else -3)
    expression = lambda x, _: function(x, axes, bool(keep))
    note = "over " + ",".join(map(str, axes))
    return sample(op_type, [x], expression, list(axes), keepdims=keep, note=note)


def reductions():
    narrow = itertools.cycle((F64, F16, BFLOAT16))
    for index in range(len(AXES)):
        yield reduction(*REDUCTIONS[0], F32, index)
        yield reduction(*REDUCTIONS[1], next(narrow), index)
        yield reduction(*REDUCTIONS[2], F32, index)
    index = 0
    for op_type, function in REDUCTIONS[3:]:
        for dtype in (F32, F32, next(narrow)):
            yield reduction(op_type, function, dtype, index)
            index += 5
    for dtype, index in ((I64, 1), (I64, 2), (I32, 6), (I32, 4)):
        yield reduction(*REDUCTIONS[0], dtype, index)
    for dtype, index in ((I64, 1), (I32, 2), (U8, 1), (I8, 5), (U8, 8)):
        yield reduction(*REDUCTIONS[2], dtype, index)
    for axis, dtype in ((0, F32), (1, F32), (2, F64), (1, I64)):
        x = make(dtype, 64, 50, 64, low=1, high=1.01)
        product = lambda x, _, axis=axis: torch.prod(x, axis, True)
        yield sample("ReduceProd", [x], product, [axis], note=f"over {axis}")


def along_axes():
    along = (
        ("Softmax", torch.softmax, 11),
        ("LogSoftmax", torch.log_softmax, 7),
    )
    for op_type, function, count in along:
        places = [(shape, axis) for shape in SHAPES[1:] for axis in range(len(shape))]
        for (shape, axis), dtype in zip(
            places[:count], itertools.cycle((F32, F64, F32, F16, F32, BFLOAT16)), strict=False
        ):
            expression = lambda x, axis=axis, function=function: function(x, axis)
            yield sample(op_type, [make(dtype, *shape)], expression, axis=axis, note=f"over {axis}")
    yield sample("Softmax", [make(F32, 20_000, 10)], lambda x: torch.softmax(x, 1), axis=1)
    for op_type, function in (("ArgMax", torch.argmax), ("ArgMin", torch.argmin)):
        for (shape, axis), dtype in zip(
            (
                ((400, 500), 1),
                ((400, 500), 0),
                ((64, 50, 64), 1),
                ((8, 21, 40, 40), 1),
                ((200_000,), 0),
            ),
            (F32, F32, I64, F16 if op_type == "ArgMin" else F32, U8),
            strict=True,
        ):
            expression = lambda x, axis=axis, function=function: function(x, axis)
            x = RNG.permuted(
                np.arange(np.prod(shape)) % 251 if dtype == U8 else np.arange(np.prod(shape))
            ).reshape(shape)
            if dtype == F16:
                x = x % 2048
                x[...] = np.argsort(x, axis=axis)
            if dtype == U8:
                x = np.minimum(np.maximum(x, 1), 250)
                x[77], x[99] = 0, 255
            yield sample(
                op_type, [x.astype(dtype)], expression, axis=axis, keepdims=0, note=f"over {axis}"
            )
    for shape, axis, dtype, attributes in (
        ((200_000,), 0, F32, {}),
        ((400, 500), 1, F32, {}),
        ((400, 500), 0, F32, {}),
        ((64, 50, 64), 1, F64, {}),
        ((400, 500), 1, I64, {}),
        ((64, 50, 64), 0, I32, {}),
        ((400, 500), 1, F32, {"reverse": 1}),
    ):

        def sums(
            x: torch.Tensor, _: Any, axis: int = axis, reverse: bool = bool(attributes)
        ) -> torch.Tensor:
            return (
                x.flip(axis).cumsum(axis).flip(axis) if reverse else x.cumsum(axis, dtype=x.dtype)
            )

        note = f"over {axis}{' backwards' if attributes else ''}"
        yield sample("CumSum", [make(dtype, *shape)], sums, np.array(axis), note=note, **attributes)
    x = make(F32, 64, 50, 64, low=1, high=1.01)
    yield sample("CumProd", [x], lambda x, _: x.cumprod(1), np.array(1), note="over 1", opset=26)
    for shape, axis, count, dtype in (
        ((200_000,), 0, 10, F32),
        ((200_000,), 0, 1000, F32),
        ((400, 500), 1, 5, F32),
        ((400, 500), 1, 500, F32),
        ((500, 400), 0, 5, F32),
        ((400, 500), 1, 10, I64),
        ((1, 80, 8400), 1, 1, F32),
        ((400, 500), 1, 50, F64),
        ((4, 50_000), 1, 300, F32),
    ):
        x = RNG.permuted(np.arange(np.prod(shape))).reshape(shape).astype(dtype)
        largest = lambda x, _, axis=axis, count=count: torch.topk(x, count, axis)
        yield sample(
            "TopK", [x], largest, [count], axis=axis, outputs=2, note=f"{count} over {axis}"
        )


# ---- moving elements ---------------------------------------------------------------------------

PERMUTATIONS = (
    ((400, 500), (1, 0)),
    ((3, 65_536), (1, 0)),
    ((65_536, 3), (1, 0)),
    ((64, 50, 64), (0, 2, 1)),
    ((64, 50, 64), (1, 0, 2)),
    ((64, 50, 64), (2, 1, 0)),
    ((64, 50, 64), (2, 0, 1)),
    ((1, 128, 12, 64), (0, 2, 1, 3)),
    ((8, 32, 28, 28), (0, 2, 3, 1)),
    ((8, 28, 28, 32), (0, 3, 1, 2)),
    ((8, 32, 28, 28), (3, 2, 1, 0)),
    ((1, 128, 12, 64), (0, 2, 3, 1)),
    ((4, 8, 16, 20, 20), (0, 2, 1, 4, 3)),
    ((4, 8, 16, 20, 20), (4, 3, 2, 1, 0)),
    ((4, 8, 16, 20, 20), (0, 3, 4, 1, 2)),
    ((2, 4, 4, 64, 64), (0, 3, 1, 4, 2)),
)


def moves():
    types = itertools.cycle((F32, F32, U8, F32, I64, F16, F32))
    for (shape, permutation), dtype in zip(PERMUTATIONS, types, strict=False):
        transposed = lambda x, order=permutation: x.permute(order).contiguous()
        note = "to " + "".join(map(str, permutation))
        yield sample("Transpose", [make(dtype, *shape)], transposed, perm=permutation, note=note)
    joined = (
        (F32, (100, 500), 0, 4),
        (F32, (400, 100), 1, 4),
        (I64, (50_000, 1), 1, 4),
        (F16, (8, 16, 28, 28), 1, 2),
        (U8, (64, 50, 32), 2, 2),
        (F32, (64, 50, 64), 1, 2),
        (F32, (4, 8, 16, 20, 10), 4, 2),
    )
    for dtype, shape, axis, count in joined:
        feeds = [make(dtype, *shape) for _ in range(count)]
        concat = lambda *xs, axis=axis: torch.cat(xs, axis)
        yield sample("Concat", feeds, concat, axis=axis, note=f"on {axis}")
    for dtype, shape, axis, count in (
        (F32, (400, 500), 0, 4),
        (F32, (400, 500), 1, 5),
        (F16, (8, 32, 28, 28), 1, 2),
        (I64, (50_000, 4), 1, 4),
        (U8, (64, 50, 64), 2, 2),
    ):
        split = lambda x, axis=axis, count=count: [part.clone() for part in x.chunk(count, axis)]
        yield sample(
            "Split",
            [make(dtype, *shape)],
            split,
            axis=axis,
            num_outputs=count,
            outputs=count,
            note=f"on {axis}",
        )
    slices = (
        (F32, (400_000,), (slice(0, 200_000),)),
        (F32, (400_000,), (slice(0, 400_000, 2),)),
        (F32, (800, 500), (slice(0, 800, 2),)),
        (F32, (400, 1000), (slice(0, 400), slice(0, 1000, 2))),
        (F32, (400, 1000), (slice(0, 400), slice(1, 1000, 3))),
        (I64, (400, 1000), (slice(0, 400), slice(0, 1000, 2))),
        (U8, (400, 1000), (slice(0, 400), slice(0, 1000, 2))),
        (F16, (8, 64, 28, 28), (slice(0, 8), slice(16, 48))),
        (F32, (8, 32, 56, 56), (slice(0, 8), slice(0, 32), slice(0, 56, 2), slice(1, 56, 2))),
        (
            F32,
            (4, 8, 16, 20, 20),
            (slice(0, 4), slice(0, 8), slice(2, 14), slice(1, 19), slice(1, 19)),
        ),
    )
    for dtype, shape, parts in slices:
        starts, ends = [p.start for p in parts], [p.stop for p in parts]
        axes, steps = list(range(len(parts))), [p.step or 1 for p in parts]
        cut = lambda x, *_, parts=parts: x[parts].clone(memory_format=torch.contiguous_format)
        note = " ".join(f"{p.start}:{p.stop}:{p.step or 1}" for p in parts)
        yield sample("Slice", [make(dtype, *shape)], cut, starts, ends, axes, steps, note=note)
    for dtype, shape, axes in (
        (F32, (200_000,), [0]),
        (F32, (400, 500), [0]),
        (I64, (400, 500), [1]),
        (U8, (3, 256, 256), [2]),
        (F32, (20, 100, 100), [0, 1, 2]),
    ):
        far = np.iinfo(np.int64).min
        starts, ends, steps = [-1] * len(axes), [far] * len(axes), [-1] * len(axes)
        flip = lambda x, *_, axes=axes: x.flip(axes)
        note = "backwards on " + ",".join(map(str, axes))
        yield sample("Slice", [make(dtype, *shape)], flip, starts, ends, axes, steps, note=note)
    pads = (
        (F32, (1, 64, 56, 56), (1, 1, 1, 1), "constant"),
        (F32, (1, 64, 56, 56), (0, 1, 0, 1), "constant"),
        (F16, (1, 64, 56, 56), (1, 1, 1, 1), "constant"),
        (U8, (1, 3, 224, 224), (3, 3, 3, 3), "constant"),
        (I64, (400, 500), (0, 12), "constant"),
        (F32, (1, 64, 56, 56), (1, 1, 1, 1), "reflect"),
        (F32, (1, 64, 56, 56), (2, 2, 2, 2), "edge"),
        (F32, (1, 64, 56, 56), (2, 2, 2, 2), "wrap"),
        (F32, (16, 32, 400), (8, 8), "reflect"),
        (F32, (16, 32, 400), (8, 8), "edge"),
        (F64, (1, 64, 56, 56), (1, 1, 1, 1), "reflect"),
        (F32, (1, 8, 16, 40, 40), (1, 1, 1, 1, 1, 1), "constant"),
        (F32, (1, 8, 16, 40, 40), (1, 1, 1, 1, 1, 1), "reflect"),
        (F32, (1, 8, 16, 40, 40), (1, 1, 1, 1, 1, 1), "edge"),
    )
    names = {"edge": "replicate", "wrap": "circular"}
    for dtype, shape, sizes, mode in pads:
        rank, half = len(shape), len(sizes) // 2
        before, after = list(sizes[:half]), list(sizes[half:])
        zeros = [0] * (rank - half)
        torch_pads = [x for axis in range(half)[::-1] for x in (before[axis], after[axis])]
        torch_mode = names.get(mode, mode)
        pad = lambda x, _, pads=torch_pads, mode=torch_mode: F.pad(x, pads, mode)
        yield sample(
            "Pad",
            [make(dtype, *shape)],
            pad,
            [*zeros, *before, *zeros, *after],
            mode=mode,
            note=mode,
        )
    tiles = (
        (F32, (100, 500), (4, 1)),
        (F32, (400, 50), (1, 10)),
        (I64, (50_000, 1), (1, 4)),
        (U8, (8, 32, 14, 14), (1, 1, 2, 2)),
        (F32, (4, 8, 8, 10, 10), (1, 1, 2, 2, 2)),
    )
    for dtype, shape, repeats in tiles:
        tile = lambda x, _, repeats=repeats: x.repeat(repeats)
        yield sample("Tile", [make(dtype, *shape)], tile, list(repeats), note=f"{repeats}")
    for dtype, first, second in (
        (F32, (400, 1), (400, 500)),
        (F32, (1, 500), (400, 500)),
        (I64, (64, 1, 64), (64, 50, 64)),
        (BOOL, (1, 1, 64, 64), (8, 8, 64, 64)),
        (F16, (4, 1, 16, 1, 20), (4, 8, 16, 20, 20)),
        (F32, (1,), (20, 100, 100)),
    ):
        expand = lambda x, _, shape=second: x.expand(shape).contiguous()
        yield sample("Expand", [make(dtype, *first)], expand, list(second), note=f"to {second}")
    for dtype in (F32, U8, F16):
        x = make(dtype, 1, 64, 56, 56)
        crd = lambda x: F.pixel_shuffle(x, 2)
        yield sample("DepthToSpace", [x], crd, blocksize=2, mode="CRD")
        dcr = lambda x: (
            x.view(1, 2, 2, 16, 56, 56).permute(0, 3, 4, 1, 5, 2).reshape(1, 16, 112, 112)
        )
        yield sample("DepthToSpace", [x], dcr, blocksize=2, mode="DCR", note="DCR")
        back = lambda x: (
            x.view(1, 64, 28, 2, 28, 2).permute(0, 3, 5, 1, 2, 4).reshape(1, 256, 28, 28)
        )
        yield sample("SpaceToDepth", [x], back, blocksize=2)
    for dtype, shape, upper in (
        (F32, (500, 400), 1),
        (I64, (500, 400), 0),
        (BOOL, (8, 160, 160), 0),
    ):
        trilu = torch.triu if upper else torch.tril
        yield sample(
            "Trilu", [make(dtype, *shape)], trilu, upper=upper, note="upper" if upper else "lower"
        )
    lengths = RNG.integers(1, 400, 500)
    yield sample("ReverseSequence", [make(F32, 400, 500), lengths], None)


def gathers():
    places = (
        (F32, (30_000, 64), 0, (4000,)),
        (F32, (1000, 768), 0, (1, 128)),
        (F16, (1000, 768), 0, (1, 128)),
        (F32, (400, 500), 1, (400,)),
        (I64, (200_000,), 0, (100_000,)),
        (F32, (64, 50, 64), 1, (50,)),
        (U8, (64, 50, 64), 2, (64,)),
        (F32, (8, 32, 28, 28), 3, (28,)),
        (F32, (200_000,), 0, (100_000,)),
    )
    for dtype, shape, axis, count in places:
        indices = RNG.integers(0, shape[axis], count)

        def gather(x: torch.Tensor, i: torch.Tensor, axis: int = axis) -> torch.Tensor:
            rows = torch.index_select(x, axis, i.flatten())
            return rows.unflatten(axis, i.shape) if i.dim() > 1 else rows

        yield sample("Gather", [make(dtype, *shape), indices], gather, axis=axis, note=f"on {axis}")
    elements = (
        (F32, (400, 500), 0),
        (F32, (400, 500), 1),
        (I64, (64, 50, 64), 1),
        (F16, (8, 32, 28, 28), 2),
        (F32, (4, 8, 16, 20, 20), 4),
    )
    for dtype, shape, axis in elements:
        x, indices = make(dtype, *shape), RNG.integers(0, shape[axis], shape)
        take = lambda x, i, axis=axis: torch.gather(x, axis, i)
        yield sample("GatherElements", [x, indices], take, axis=axis, note=f"on {axis}")
        unique = np.argsort(RNG.random(shape), axis=axis)
        put = lambda x, i, y, axis=axis: torch.scatter(x, axis, i, y)
        yield sample(
            "ScatterElements", [x, unique, make(dtype, *shape)], put, axis=axis, note=f"on {axis}"
        )
    feeds = [make(F32, 400, 500), RNG.integers(0, 400, (400, 500)), make(F32, 400, 500)]
    for axis in (0, 1):
        add = lambda x, i, y, axis=axis: torch.scatter_add(x, axis, i, y)
        yield sample(
            "ScatterElements", feeds, add, axis=axis, reduction="add", note=f"add on {axis}"
        )
    for dtype, shape, count, depth in (
        (F32, (400, 500), 20_000, 2),
        (F32, (1000, 200), 900, 1),
        (I64, (64, 50, 64), 20_000, 3),
        (F16, (8, 32, 28, 28), 2000, 3),
    ):
        cells = RNG.choice(np.prod(shape[:depth]), count, replace=count > np.prod(shape[:depth]))
        indices = np.stack(np.unravel_index(cells, shape[:depth]), -1)
        x, updates = make(dtype, *shape), make(dtype, count, *shape[depth:])
        yield sample("GatherND", [x, indices], lambda x, i: x[tuple(i.unbind(-1))])
        put_nd = lambda x, i, y: x.index_put(tuple(i.unbind(-1)), y)
        yield sample("ScatterND", [x, indices, updates], put_nd)
        add_nd = lambda x, i, y: x.index_put(tuple(i.unbind(-1)), y, accumulate=True)
        if dtype == F32:
            yield sample("ScatterND", [x, indices, updates], add_nd, reduction="add", note="add")
    for dtype in (F32, BOOL, I64):
        x = make(dtype, *SHAPES[1])
        yield sample("NonZero", [x], lambda x: torch.nonzero(x).T.contiguous())
    yield sample("NonZero", [make(BOOL, *SHAPES[3])], lambda x: torch.nonzero(x).T.contiguous())
    for dtype, high in ((I64, 1000), (I32, 100_000), (F32, 3)):
        x = make(dtype, 50_000, low=0, high=high)
        yield sample("Unique", [x], lambda x: torch.unique(x, sorted=True))
    for dtype, axis in ((F32, -1), (I64, -1), (F32, 0)):
        one_hot = (
            (lambda i, *_: F.one_hot(i, 100).to(torch.float32))
            if dtype == F32
            else (lambda i, *_: F.one_hot(i, 100))
        )
        expression = (
            (lambda i, *_: F.one_hot(i, 100).T.to(torch.float32).contiguous())
            if axis == 0
            else one_hot
        )
        yield sample(
            "OneHot",
            [RNG.integers(0, 100, 2000)],
            expression,
            np.array(100),
            np.array([0, 1], dtype),
            axis=axis,
            note=f"{dtype}",
        )
    for shape, axis in (((400, 500), 0), ((400, 500), 1)):
        kept = RNG.random(shape[axis]) < 0.5
        compress = lambda x, k, axis=axis: torch.index_select(x, axis, k.nonzero().flatten())
        yield sample("Compress", [make(F32, *shape), kept], compress, axis=axis, note=f"on {axis}")
    for dtype in (I64, F32):
        limit = np.array(100_000, dtype)
        count_up = lambda end, *_: torch.arange(0, 100_000, 1, dtype=end.dtype)
        yield Sample(
            f"Range {dtype} 100000",
            case("Range", [np.array(0, dtype)], limit, np.array(1, dtype)),
            count_up,
        )


# ---- images ------------------------------------------------------------------------------------


def resizes():
    modes = {
        "linear": ("linear", "bilinear", "trilinear"),
        "nearest": ("nearest",) * 3,
        "cubic": ("", "bicubic", ""),
    }
    for mode, dtype, shape, factor in (
        ("nearest", F32, (8, 32, 800), 2.0),
        ("nearest", F32, (1, 64, 40, 40), 2.0),
        ("nearest", U8, (1, 64, 40, 40), 2.0),
        ("nearest", F16, (1, 64, 40, 40), 2.0),
        ("nearest", F32, (1, 16, 16, 16, 16), 2.0),
        ("nearest", F32, (1, 32, 80, 80), 0.5),
        ("linear", F32, (8, 32, 800), 2.0),
        ("linear", F32, (1, 64, 40, 40), 2.0),
        ("linear", F64, (1, 64, 40, 40), 2.0),
        ("linear", F16, (1, 64, 40, 40), 2.0),
        ("linear", BFLOAT16, (1, 64, 40, 40), 2.0),
        ("linear", U8, (1, 3, 200, 200), 2.0),
        ("linear", F32, (1, 3, 448, 448), 0.5),
        ("linear", F32, (1, 16, 16, 16, 16), 2.0),
        ("linear", F32, (1, 16, 24, 24, 24), 0.5),
        ("cubic", F32, (1, 64, 40, 40), 2.0),
        ("cubic", F64, (1, 16, 40, 40), 2.0),
        ("cubic", F32, (1, 3, 448, 448), 0.5),
    ):
        axes = len(shape) - 2
        scales = np.array([1, 1, *[factor] * axes], np.float32)
        if mode == "nearest":
            attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        else:
            attributes = {"coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75}

        def resize(
            x: torch.Tensor, *_: Any, mode: str = modes[mode][axes - 1], factor: float = factor
        ) -> torch.Tensor:
            corners = None if mode == "nearest" else False
            # PyTorch rounds halves up.
            is_rounded = x.dtype == torch.uint8 and mode != "nearest"
            y = F.interpolate(
                x.to(torch.float32) if is_rounded else x,
                scale_factor=factor,
                mode=mode,
                align_corners=corners,
            )
            return y.round().to(torch.uint8) if is_rounded else y

        yield sample(
            "Resize",
            [make(dtype, *shape)],
            resize,
            None,
            scales,
            mode=mode,
            note=f"{mode} {factor}",
            **attributes,
        )


CONVOLUTION = (None, F.conv1d, F.conv2d, F.conv3d)
TRANSPOSED = (None, F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)


def convolutions():
    # Type, input, outputs, kernel, stride, dilation, pad, groups.
    for dtype, shape, outputs, kernel, stride, dilation, pad, groups in (
        (F32, (1, 64, 400), 64, 3, 1, 1, 1, 1),
        (F32, (1, 80, 500), 128, 5, 2, 1, 2, 1),
        (F32, (1, 64, 400), 64, 3, 1, 4, 4, 1),
        (F32, (1, 256, 400), 256, 31, 1, 1, 15, 256),
        (F32, (1, 1, 16_000), 64, 400, 160, 1, 0, 1),
        (F32, (1, 3, 224, 224), 32, 3, 2, 1, 1, 1),
        (F32, (1, 3, 224, 224), 64, 16, 16, 1, 0, 1),
        (F32, (1, 64, 56, 56), 64, 3, 1, 1, 1, 1),
        (F32, (1, 64, 56, 56), 128, 1, 1, 1, 0, 1),
        (F32, (1, 64, 56, 56), 128, 1, 2, 1, 0, 1),
        (F32, (1, 96, 56, 56), 96, 3, 1, 1, 1, 96),
        (F32, (1, 96, 56, 56), 96, 7, 1, 1, 3, 96),
        (F32, (1, 128, 28, 28), 128, 3, 1, 1, 1, 32),
        (F32, (1, 64, 28, 28), 64, 3, 1, 2, 2, 1),
        (F32, (1, 32, 56, 56), 32, 5, 1, 1, 2, 1),
        (F32, (8, 32, 28, 28), 32, 3, 1, 1, 1, 1),
        (F64, (1, 32, 28, 28), 32, 3, 1, 1, 1, 1),
        (F16, (1, 32, 28, 28), 32, 3, 1, 1, 1, 1),
        (BFLOAT16, (1, 32, 28, 28), 32, 3, 1, 1, 1, 1),
        (F64, (1, 32, 28, 28), 32, 3, 1, 1, 1, 32),
        (F32, (1, 16, 8, 28, 28), 16, 3, 1, 1, 1, 1),
        (F32, (1, 3, 8, 56, 56), 16, 3, 2, 1, 1, 1),
        (F32, (1, 32, 8, 28, 28), 32, 3, 1, 1, 1, 32),
        (F32, (1, 32, 8, 28, 28), 32, 1, 1, 1, 0, 1),
    ):
        axes = len(shape) - 2
        weights = make(dtype, outputs, shape[1] // groups, *[kernel] * axes, low=-0.1, high=0.1)
        bias = make(dtype, outputs)
        convolve = lambda x, w, b, axes=axes, options=(stride, pad, dilation, groups): CONVOLUTION[
            axes
        ](x, w, b, *options)
        options = {
            "strides": [stride] * axes,
            "dilations": [dilation] * axes,
            "pads": [pad] * 2 * axes,
        }
        note = f"{outputs} of {kernel}, stride {stride}, dilation {dilation}, groups {groups}"
        yield sample(
            "Conv",
            [make(dtype, *shape)],
            convolve,
            weights,
            bias,
            group=groups,
            note=note,
            **options,
        )
    for dtype, shape, outputs, kernel, stride, pad, groups in (
        (F32, (1, 64, 200), 32, 4, 2, 1, 1),
        (F32, (1, 64, 28, 28), 32, 2, 2, 0, 1),
        (F32, (1, 64, 28, 28), 32, 4, 2, 1, 1),
        (F32, (1, 64, 28, 28), 64, 3, 1, 1, 64),
        (F64, (1, 16, 28, 28), 16, 4, 2, 1, 1),
        (F16, (1, 16, 28, 28), 16, 4, 2, 1, 1),
        (F32, (1, 16, 8, 14, 14), 8, 4, 2, 1, 1),
    ):
        axes = len(shape) - 2
        weights = make(dtype, shape[1], outputs // groups, *[kernel] * axes, low=-0.1, high=0.1)
        transposed = lambda x, w, b, axes=axes, options=(stride, pad, 0, groups): TRANSPOSED[axes](
            x, w, b, *options
        )
        options = {"strides": [stride] * axes, "pads": [pad] * 2 * axes}
        note = f"{outputs} of {kernel}, stride {stride}, groups {groups}"
        yield sample(
            "ConvTranspose",
            [make(dtype, *shape)],
            transposed,
            weights,
            make(dtype, outputs),
            group=groups,
            note=note,
            **options,
        )
    maximum, average = (
        (None, F.max_pool1d, F.max_pool2d, F.max_pool3d),
        (None, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d),
    )
    for dtype, shape, kernel, stride, pad in (
        (F32, (8, 32, 800), 3, 2, 1),
        (F32, (1, 64, 112, 112), 3, 2, 1),
        (F32, (1, 64, 56, 56), 2, 2, 0),
        (F32, (1, 64, 20, 20), 5, 1, 2),
        (F64, (1, 64, 56, 56), 3, 2, 1),
        (F16, (1, 64, 56, 56), 3, 2, 1),
        (BFLOAT16, (1, 64, 56, 56), 2, 2, 0),
        (F32, (1, 16, 16, 28, 28), 3, 2, 1),
    ):
        axes = len(shape) - 2
        options = {
            "kernel_shape": [kernel] * axes,
            "strides": [stride] * axes,
            "pads": [pad] * 2 * axes,
        }
        note = f"{kernel} by {stride}"
        largest = lambda x, f=maximum[axes], options=(kernel, stride, pad): f(x, *options)
        yield sample("MaxPool", [make(dtype, *shape)], largest, note=note, **options)
        mean = lambda x, f=average[axes], options=(kernel, stride, pad): f(x, *options)
        yield sample(
            "AveragePool", [make(dtype, *shape)], mean, count_include_pad=1, note=note, **options
        )
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    # PyTorch's indices are those of a plane.
    indices = lambda x: F.max_pool2d(x, 2, 2, return_indices=True)
    yield sample("MaxPool", [make(F32, 1, 1, 448, 448)], indices, outputs=2, note="indices", **pool)
    yield sample(
        "LpPool", [make(F32, 1, 64, 56, 56)], lambda x: F.lp_pool2d(x, 2, 2, 2), p=2, **pool
    )
    for dtype, shape in (
        (F32, (8, 64, 28, 28)),
        (F16, (8, 64, 28, 28)),
        (F32, (2, 64, 8, 14, 14)),
        (F64, (8, 64, 400)),
    ):
        axes = tuple(range(2, len(shape)))
        yield sample(
            "GlobalAveragePool", [make(dtype, *shape)], lambda x, axes=axes: x.mean(axes, True)
        )
        yield sample(
            "GlobalMaxPool", [make(dtype, *shape)], lambda x, axes=axes: x.amax(axes, True)
        )
    yield sample("LRN", [make(F32, 1, 64, 56, 56)], lambda x: F.local_response_norm(x, 5), size=5)
    columns = lambda x, *_: F.fold(x, (28, 28), (3, 3), padding=1)
    yield sample("Col2Im", [make(F32, 1, 576, 784)], columns, [28, 28], [3, 3], pads=[1, 1, 1, 1])
    for dtype, mode, padding in (
        (F32, "linear", "zeros"),
        (F32, "nearest", "border"),
        (F32, "cubic", "zeros"),
        (F32, "linear", "reflection"),
        (F64, "linear", "zeros"),
    ):
        feeds = [make(dtype, 1, 32, 64, 64), make(dtype, 1, 64, 64, 2, low=-1.1, high=1.1)]
        name = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
        grid = lambda x, g, name=name, padding=padding: F.grid_sample(
            x, g, name, padding, align_corners=False
        )
        yield sample(
            "GridSample", feeds, grid, mode=mode, padding_mode=padding, note=f"{mode} {padding}"
        )
    volume = [make(F32, 1, 8, 16, 20, 20), make(F32, 1, 16, 20, 20, 3, low=-1.1, high=1.1)]
    yield sample(
        "GridSample",
        volume,
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        mode="linear",
        note="linear zeros",
    )
    theta = make(F32, 4, 2, 3)
    yield sample(
        "AffineGrid",
        [theta],
        lambda t, _: F.affine_grid(t, [4, 3, 128, 128], align_corners=False),
        [4, 3, 128, 128],
    )
    rois = np.sort(make(F32, 50, 2, 2, low=0, high=400), 1).reshape(50, 4)
    for mode in ("avg", "max"):
        yield sample(
            "RoiAlign",
            [make(F32, 1, 32, 50, 50), rois, np.zeros(50, np.int64)],
            None,
            output_height=7,
            output_width=7,
            sampling_ratio=2,
            spatial_scale=0.125,
            mode=mode,
            note=mode,
        )


def normalizations():
    for dtype in FLOATS:
        x, width = make(dtype, 256, 768), 768
        scale, bias = make(dtype, width), make(dtype, width)
        yield sample(
            "LayerNormalization", [x], lambda x, s, b: F.layer_norm(x, (768,), s, b), scale, bias
        )
        yield sample(
            "RMSNormalization", [x], lambda x, s: F.rms_norm(x, (768,), s, 1e-5), scale, opset=23
        )
    x = make(F32, 8, 32, 28, 28)
    yield sample(
        "LayerNormalization",
        [x],
        lambda x, s, b: F.layer_norm(x, (32, 28, 28), s, b),
        make(F32, 32, 28, 28),
        make(F32, 32, 28, 28),
        axis=1,
        note="over 1,2,3",
    )
    rows = make(F32, 3136, 32)
    yield sample(
        "LayerNormalization",
        [rows],
        lambda x, s, b: F.layer_norm(x, (32,), s, b),
        make(F32, 32),
        make(F32, 32),
    )
    for dtype, shape in (
        (F32, (8, 32, 28, 28)),
        (F64, (8, 32, 28, 28)),
        (F16, (8, 32, 28, 28)),
        (BFLOAT16, (8, 32, 28, 28)),
        (F32, (16, 32, 400)),
        (F32, (1, 32, 8, 28, 28)),
        (F32, (2000, 100)),
    ):
        x = make(dtype, *shape)
        channels = shape[1]
        scale, bias, mean = (make(dtype, channels) for _ in range(3))
        variance = make(dtype, channels, low=0.5)
        normalize = lambda x, s, b, m, v: F.batch_norm(x, m, v, s, b)
        yield sample("BatchNormalization", [x], normalize, scale, bias, mean, variance)
        if len(shape) > 2:
            yield sample(
                "InstanceNormalization",
                [x],
                lambda x, s, b: F.instance_norm(x, None, None, s, b),
                scale,
                bias,
            )
            yield sample(
                "GroupNormalization",
                [x],
                lambda x, s, b: F.group_norm(x, 8, s, b),
                scale,
                bias,
                num_groups=8,
            )
    for axis in (0, 1):
        yield sample(
            "LpNormalization",
            [make(F32, 400, 500)],
            lambda x, axis=axis: F.normalize(x, dim=axis),
            axis=axis,
            note=f"over {axis}",
        )
    yield sample(
        "MeanVarianceNormalization",
        [make(F32, 8, 32, 28, 28)],
        lambda x: (x - x.mean((0, 2, 3), True)) / x.std((0, 2, 3), unbiased=False, keepdim=True),
    )
    labels = RNG.integers(0, 100, 2000)
    yield sample("SoftmaxCrossEntropyLoss", [make(F32, 2000, 100), labels], F.cross_entropy)
    yield sample("NegativeLogLikelihoodLoss", [make(F32, 2000, 100), labels], F.nll_loss)


# ---- products ----------------------------------------------------------------------------------

MATRICES = (
    ((256, 256), (256, 256)),
    ((1, 1024), (1024, 1024)),
    ((1024, 1024), (1024,)),
    ((38_416, 4), (4, 4)),
    ((4000, 3), (3, 64)),
    ((8, 128, 64), (8, 64, 128)),
    ((12, 128, 128), (12, 128, 64)),
    ((1000, 4, 4), (1000, 4, 4)),
    ((500, 16, 16), (500, 16, 16)),
    ((1000, 1, 64), (1000, 64, 1)),
    ((4, 3, 32, 64), (64, 32)),
    ((8, 1, 32, 32), (1, 8, 32, 32)),
    ((2, 2, 4, 32, 48), (2, 2, 4, 48, 32)),
    ((7, 500), (500, 333)),
)


def products():
    types = itertools.cycle((F64, F16, BFLOAT16, I32, I64))
    for index, (first, second) in enumerate(MATRICES):
        for dtype in (F32, next(types)) if index % 3 != 2 else (F32, F64):
            yield sample(
                "MatMul",
                [make(dtype, *first, low=-1, high=1), make(dtype, *second, low=-1, high=1)],
                torch.matmul,
            )
    for dtype, m, k, n in (
        (F32, 128, 768, 768),
        (F16, 64, 256, 256),
        (BFLOAT16, 64, 256, 256),
        (F32, 1, 768, 768),
    ):
        weights = make(dtype, k, n, low=-1, high=1)
        yield sample(
            "MatMul",
            [make(dtype, m, k, low=-1, high=1)],
            torch.matmul,
            weights,
            note=f"by a constant {k}x{n}",
        )
    for dtype, m, k, n, a, b in (
        (F32, 128, 256, 512, 0, 1),
        (F32, 128, 256, 512, 1, 0),
        (F32, 1, 512, 1000, 0, 1),
        (F64, 128, 256, 128, 0, 0),
        (F16, 64, 256, 128, 0, 1),
        (I32, 64, 64, 64, 0, 0),
    ):
        feeds = [
            make(dtype, *((k, m) if a else (m, k))),
            make(dtype, *((n, k) if b else (k, n))),
            make(dtype, n),
        ]
        gemm = lambda x, y, c, a=a, b=b: torch.addmm(c, x.T if a else x, y.T if b else y)
        yield sample("Gemm", feeds, gemm, transA=a, transB=b, note=f"transposed {a}{b}")
    for equation, shapes in (
        ("bhid,bhjd->bhij", ((1, 8, 128, 64), (1, 8, 128, 64))),
        ("bhij,bhjd->bhid", ((1, 8, 128, 128), (1, 8, 128, 64))),
        ("bid,bjd->bij", ((4, 100, 64), (4, 100, 64))),
        ("ij,jk,kl->il", ((100, 64), (64, 100), (100, 64))),
        ("nctw,cd->ndtw", ((2, 32, 20, 20), (32, 64))),
        ("bij->bji", ((8, 160, 160),)),
        ("bii->bi", ((50, 100, 100),)),
        ("i,j->ij", ((400,), (500,))),
        ("bhwc,hkc->bhwk", ((4, 14, 14, 64), (14, 14, 64))),
    ):
        feeds = [make(F32, *shape) for shape in shapes]
        einsum = lambda *xs, equation=equation: torch.einsum(equation, *xs).contiguous()
        yield sample("Einsum", feeds, einsum, equation=equation, note=equation)
    yield sample("MatMulInteger", [make(I8, 128, 256), make(I8, 256, 256)], torch._int_mm)
    for dtype, count in ((F32, 200), (F64, 200)):
        yield sample("Det", [make(dtype, count, 8, 8)], torch.linalg.det)
    for shape in ((8, 1024, 1), (16, 400, 1), (8, 257, 1)):
        dft = lambda x: torch.view_as_real(torch.fft.fft(x.squeeze(-1), dim=1))
        yield sample("DFT", [make(F32, *shape)], dft, axis=1, opset=19)
    for dtype in FLOATS:
        feeds = [make(dtype, 1, 8, 128, 64, low=-1, high=1) for _ in range(3)]
        yield sample("Attention", feeds, F.scaled_dot_product_attention, opset=23)
    feeds = [make(F32, 1, 8, 256, 64) for _ in range(3)]
    yield sample(
        "Attention",
        feeds,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        is_causal=1,
        opset=23,
        note="causal",
    )
    long = [make(F32, 1, 6, 1500, 64) for _ in range(3)]
    yield sample("Attention", long, F.scaled_dot_product_attention, opset=23)
    one = [make(F32, 4, 8, 1, 64), make(F32, 4, 8, 512, 64), make(F32, 4, 8, 512, 64)]
    yield sample("Attention", one, F.scaled_dot_product_attention, opset=23)
    one = [make(F32, 1, 2, 400, 16), make(F32, 1, 2, 400, 16), make(F32, 1, 2, 400, 16)]
    yield sample("Attention", one, F.scaled_dot_product_attention, opset=23)


def recurrent():
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}
    # ONNX has the gates in the order i o f c and z r h; PyTorch i f c o and r z n.
    order = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
    for op_type, steps, batch, size, hidden, directions in (
        ("LSTM", 50, 1, 64, 128, 1),
        ("LSTM", 20, 8, 64, 128, 1),
        ("LSTM", 20, 8, 64, 64, 2),
        ("GRU", 50, 1, 64, 128, 1),
        ("GRU", 20, 8, 64, 128, 2),
        ("RNN", 50, 1, 64, 128, 1),
        ("RNN", 20, 8, 64, 128, 2),
    ):
        rows = gates[op_type] * hidden
        w = make(F32, directions, rows, size, low=-0.1, high=0.1)
        r = make(F32, directions, rows, hidden, low=-0.1, high=0.1)
        b = make(F32, directions, 2 * rows, low=-0.1, high=0.1)
        module = getattr(torch.nn, op_type)(size, hidden, bidirectional=directions == 2)
        swap = lambda m, op_type=op_type: np.concatenate(
            [np.split(m, gates[op_type])[i] for i in order[op_type]]
        )
        with torch.no_grad():
            for d, suffix in enumerate(("", "_reverse")[:directions]):
                for name, value in (
                    ("weight_ih", w[d]),
                    ("weight_hh", r[d]),
                    ("bias_ih", b[d, :rows]),
                    ("bias_hh", b[d, rows:]),
                ):
                    getattr(module, f"{name}_l0{suffix}").copy_(torch.from_numpy(swap(value)))

        def run(
            x: torch.Tensor, *_: Any, module: Any = module, directions: int = directions
        ) -> torch.Tensor:
            y = module(x)[0]
            return y.unflatten(2, (directions, -1)).transpose(1, 2)

        attributes = {
            "hidden_size": hidden,
            "direction": "bidirectional" if directions == 2 else "forward",
        }
        if op_type == "GRU":
            attributes["linear_before_reset"] = 1
        yield sample(
            op_type,
            [make(F32, steps, batch, size)],
            run,
            w,
            r,
            b,
            note=f"to {hidden}, {attributes['direction']}",
            **attributes,
        )


def quantized():
    for shape in ((200_000,), (8, 32, 28, 28)):
        for dtype in (U8, I8):
            to = torch_type(dtype)
            low = torch.iinfo(to).min
            scale, zero = np.float32(0.05), np.array(3, dtype)

            def quantize(
                x: torch.Tensor, s: Any, z: Any, low: int = low, to: Any = to
            ) -> torch.Tensor:
                return torch.clamp(torch.round(x / 0.05) + 3, low, low + 255).to(to)

            yield sample(
                "QuantizeLinear", [make(F32, *shape)], quantize, scale, zero, note=f"to {dtype}"
            )
            yield sample(
                "DequantizeLinear",
                [make(dtype, *shape, high=100)],
                lambda x, s, z: (x.to(torch.float32) - 3) * 0.05,
                scale,
                zero,
            )
    scales, zeros = make(F32, 32, low=0.1), make(I8, 32)
    channel = lambda x, s, z: (
        (x.to(torch.float32) - z.to(torch.float32).view(-1, 1, 1)) * s.view(-1, 1, 1)
    )
    yield sample(
        "DequantizeLinear",
        [make(I8, 8, 32, 28, 28)],
        channel,
        scales,
        zeros,
        axis=1,
        note="by channels",
    )
    forth = lambda x, s, z: torch.clamp(
        torch.round(x / s.view(-1, 1, 1)) + z.view(-1, 1, 1), -128, 127
    ).to(torch.int8)
    yield sample(
        "QuantizeLinear",
        [make(F32, 8, 32, 28, 28)],
        forth,
        scales,
        zeros,
        axis=1,
        note="by channels",
    )
    yield sample("DynamicQuantizeLinear", [make(F32, 400, 500)], None, outputs=3)


FAMILIES = (
    unary,
    binary,
    casts,
    reductions,
    along_axes,
    moves,
    gathers,
    resizes,
    convolutions,
    normalizations,
    products,
    recurrent,
    quantized,
)


def samples() -> Iterator[Sample]:
    """All of them, made one after the other."""
    for family in FAMILIES:
        yield from family()
