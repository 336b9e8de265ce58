"""Inputs and attributes with which each operator can be called, for the generated tests.

A recipe gets a Maker and returns a Call, or a list of them. Operators with one to several inputs of
one shape need none: see `plain`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx

FLOATS = {"float", "double", "float16", "bfloat16"}


@dataclasses.dataclass
class Call:
    """One use of an operator. An input that is None is left out."""

    inputs: list[Any]
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    outputs: int = 1


class Maker:
    """Arrays of the element type under test, always the same for the same operator."""

    def __init__(self, version: int, dtype: np.dtype, name: str) -> None:
        self.version = version
        self.dtype = dtype
        self.is_float = name in FLOATS or name.startswith("float")
        self.is_string = dtype == np.dtype(object)
        self._random = np.random.default_rng(7)

    def __call__(self, *shape: int, low: float = -4, high: float = 4) -> np.ndarray:
        """Values in [low, high), whole numbers unless the type has others."""
        if self.is_string:
            return self._random.choice(np.array(["", "a", "Zapfen", "日本"], object), shape)
        if self.dtype == np.bool_:
            return self._random.integers(0, 2, shape).astype(bool)
        if np.issubdtype(self.dtype, np.complexfloating):
            real, imaginary = self._random.uniform(low, high, (2, *shape))
            return (real + 1j * imaginary).astype(self.dtype)
        if self.is_float:
            return self._random.uniform(low, high, shape).astype(self.dtype)
        least, most = integer_range(self.dtype)
        low, high = max(int(low), least), min(int(high), most + 1)
        return self._random.integers(low, high, shape).astype(self.dtype)

    def distinct(self, *shape: int) -> np.ndarray:
        """Values without ties."""
        values = self._random.permutation(int(np.prod(shape))).reshape(shape)
        return values.astype(self.dtype)

    def of(self, *values: float) -> np.ndarray:
        return np.array(values).astype(self.dtype)

    def scalar(self, value: float) -> np.ndarray:
        return np.array(value).astype(self.dtype)


def integer_range(dtype: np.dtype) -> tuple[int, int]:
    info = np.iinfo(dtype) if dtype.isbuiltin == 1 else ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def by_input(version: int, since: int, name: str, values: list[int]) -> tuple[list, dict]:
    """What became an input in `since`: as further inputs, or as attributes."""
    return ([ints(*values)], {}) if version >= since else ([], {name: values})


def window(t: Maker, **attributes: Any) -> Call:
    return Call([t(1, 2, 5, 6)], {"kernel_shape": [3, 2], **attributes})


def pool(t: Maker) -> list[Call]:
    calls = [window(t), window(t, strides=[2, 1], pads=[1, 0, 1, 1])]
    calls.append(Call([t(2, 1, 7)], {"kernel_shape": [3]}))
    calls.append(Call([t(1, 1, 3, 4, 3)], {"kernel_shape": [2, 2, 2]}))
    return calls


def conv(t: Maker) -> list[Call]:
    return [
        Call([t(1, 2, 5, 4), t(3, 2, 3, 2), t(3)], {"kernel_shape": [3, 2], "pads": [1, 0, 1, 0]}),
        Call([t(2, 4, 6), t(2, 2, 3)], {"kernel_shape": [3], "group": 2, "strides": [2]}),
        Call([t(1, 1, 3, 3, 3), t(1, 1, 2, 2, 2)], {"kernel_shape": [2, 2, 2]}),
    ]


def conv_transpose(t: Maker) -> list[Call]:
    return [
        Call([t(1, 2, 3, 3), t(2, 3, 3, 2), t(3)], {"kernel_shape": [3, 2], "strides": [2, 1]}),
        Call([t(1, 2, 4), t(2, 1, 3)], {"kernel_shape": [3], "group": 2, "pads": [1, 0]}),
    ]


def recurrent(gates: int, outputs: int) -> Callable[[Maker], list[Call]]:
    def recipe(t: Maker) -> list[Call]:
        def inputs(directions: int) -> list[np.ndarray]:
            w = t(directions, gates * 3, 2, low=-1, high=1)
            r = t(directions, gates * 3, 3, low=-1, high=1)
            return [t(4, 2, 2), w, r, t(directions, 2 * gates * 3)]

        return [
            Call(inputs(1), {"hidden_size": 3}, outputs),
            Call(inputs(1), {"hidden_size": 3, "direction": "reverse"}, outputs),
        ]

    return recipe


def reduce_axes(since: int) -> Callable[[Maker], list[Call]]:
    def recipe(t: Maker) -> list[Call]:
        more, attributes = by_input(t.version, since, "axes", [1])
        return [
            Call([t(2, 3, 4, low=1)]),
            Call([t(2, 3, 2, low=1), *more], {**attributes, "keepdims": 0}),
        ]

    return recipe


def squeeze(t: Maker) -> Call:
    more, attributes = by_input(t.version, 13, "axes", [1])
    return Call([t(2, 1, 3), *more], attributes)


def unsqueeze(t: Maker) -> Call:
    more, attributes = by_input(t.version, 13, "axes", [0, 2])
    return Call([t(2, 3), *more], attributes)


def reshape(t: Maker) -> Call:
    more, attributes = by_input(t.version, 5, "shape", [3, -1])
    return Call([t(2, 3, 2), *more], attributes)


def slice_(t: Maker) -> Call:
    if t.version < 10:
        return Call([t(4, 5)], {"axes": [0, 1], "starts": [1, 0], "ends": [3, -1]})
    return Call([t(4, 5), ints(3, 0), ints(0, 5), ints(0, 1), ints(-2, 2)])


def pad(t: Maker) -> list[Call]:
    pads = [0, 1, 2, 0]
    if t.version < 11:
        name = "paddings" if t.version < 2 else "pads"
        return [Call([t(2, 3)], {name: pads, "value": 1.0})]
    modes = ["constant", "edge", "reflect"] + (["wrap"] if t.version >= 19 else [])
    x = t(3, 3)
    calls = [Call([x, ints(*pads)], {"mode": mode}) for mode in modes]
    calls[0].inputs.append(t(1).reshape(()))
    return calls


def split(t: Maker) -> Call:
    more, attributes = by_input(t.version, 13, "split", [1, 3])
    if t.version == 1:
        more, attributes = [], {"split": [1, 3]}
    return Call([t(4, 2), *more], {**attributes, "axis": 0}, 2)


def top_k(t: Maker) -> Call:
    if t.version < 10:
        return Call([t.distinct(3, 5)], {"k": 2}, 2)
    return Call([t.distinct(3, 5), ints(2)], {}, 2)


def clip(t: Maker) -> list[Call]:
    if t.version < 11:
        return [Call([t(3, 4)], {"min": -1.0, "max": 2.0})]
    return [Call([t(3, 4), t.scalar(1), t.scalar(3)]), Call([t(3, 4), None, t.scalar(2)])]


def tile(t: Maker) -> Call:
    if t.version < 6:
        return Call([t(2, 3), t.scalar(2), t.scalar(1)])
    return Call([t(2, 3), ints(2, 1)])


def one_hot(t: Maker) -> Call:
    indices = np.array([[0, 2], [1, 3]], t.dtype)
    return Call([indices, np.array(4, t.dtype), np.array([2, 5], np.float32)])


def batch_norm(t: Maker) -> Call:
    attributes = {"is_test": 1} if t.version < 7 else {}
    if t.version < 6:
        attributes["consumed_inputs"] = [0, 0, 0, 1, 1]
    return Call([t(2, 3, 4), t(3), t(3), t(3), t(3, low=1)], attributes)


def gemm(t: Maker) -> list[Call]:
    c = t(2, 4)
    calls = [Call([t(2, 3), t(3, 4), c]), Call([t(3, 2), t(4, 3), c], {"transA": 1, "transB": 1})]
    if t.version >= 11:
        calls.append(Call([t(2, 3), t(3, 4)]))
    return calls


def old_binary(t: Maker) -> list[Call]:
    b = t(3, 4, low=1)
    if t.version >= 7:
        return [
            Call([t(3, 4), b]),
            Call([t(2, 3, 4), t(3, 1, low=1)]),
            Call([t(0, 4), t(4, low=1)]),
        ]
    return [Call([t(3, 4), b]), Call([t(2, 3, 4), t(4, low=1)], {"broadcast": 1})]


def attention(t: Maker) -> list[Call]:
    q, k, v = t(1, 2, 3, 4), t(1, 2, 5, 4), t(1, 2, 5, 2)
    return [Call([q, k, v]), Call([q, k, v], {"is_causal": 1})]


def dropout(t: Maker) -> Call:
    return Call([t(2, 3)], {"is_test": 1} if t.version < 7 else {})


def constant_of_shape(t: Maker) -> Call:
    value = onnx.numpy_helper.from_array(t(1))
    return Call([ints(2, 3)], {"value": value})


def scatter(t: Maker) -> Call:
    return Call([t(3, 3), np.array([[1, 0, 2]]), t(1, 3)], {"axis": 0})


def where(t: Maker) -> Call:
    return Call([np.array([[True], [False]]), t(2, 3), t(3)])


def norm(parameters: int, rank: int = 3) -> Callable[[Maker], Call]:
    return lambda t: Call([t(2, *[4, 3][: rank - 1]), *(t(4) for _ in range(parameters))])


def cast(t: Maker) -> Call:
    x = np.array(["1", "-2.5", "1e3"], object) if t.is_string else t(2, 3)
    return Call([x], {"to": "FLOAT"} if t.version < 6 else {"to": onnx.TensorProto.FLOAT})


def cast_like(t: Maker) -> Call:
    return Call([cast(t).inputs[0], np.zeros(1, np.float32)])


def softmax(t: Maker) -> list[Call]:
    axes = [1] if t.version < 11 else [1, -1]
    return [Call([t(2, 3, 2)], {"axis": axis}) for axis in axes] + [Call([t(2, 0, 2)])]


def quantize(t: Maker) -> list[Call]:
    scale = np.array(0.5, np.float32).astype(t.dtype if t.is_float else np.float32)
    calls = [Call([t(2, 3), scale, np.array(3, np.uint8)])]
    if t.version >= 13:
        scales = np.array([0.5, 0.25, 2]).astype(scale.dtype)
        calls.append(Call([t(2, 3), scales, np.array([1, -2, 0], np.int8)], {"axis": -1}))
    return calls


def dequantize(t: Maker) -> list[Call]:
    scale = np.array(0.5, np.float32)
    calls = [Call([t(2, 3), scale])]
    if t.version >= 13:
        calls.append(Call([t(2, 3), np.array([0.5, 0.25, 2], np.float32), t(3)], {"axis": 1}))
    return calls


def grid_sample(t: Maker) -> list[Call]:
    x = t(1, 2, 3, 5)
    # On elements, where integers and strings have values; then between them.
    whole = np.array([[[-1, -1], [0.5, 0]], [[1, 1], [0, -1]], [[-0.5, 1], [-1.5, 0]]], np.float32)
    if t.is_string:  # onnx.reference pads with the number 0
        whole = whole.clip(-1, 1)
    calls = [Call([x, whole[np.newaxis]], {"mode": "nearest", "align_corners": 1})]
    if not t.is_string:
        calls.append(Call([x, whole[np.newaxis]], {"align_corners": 1}))
    if t.is_float or np.issubdtype(t.dtype, np.complexfloating):
        # Eighths, so that positions are exact in float32, in which onnx.reference computes them.
        between = np.random.default_rng(7).integers(-8, 9, (1, 2, 3, 2)) / 8
        calls.append(Call([x, between.astype(np.float32)]))
    return calls


def resize(t: Maker) -> list[Call]:
    x, scales = t(1, 1, 2, 3), np.array([1, 1, 2, 2], np.float32)
    if t.version < 11:
        return [Call([x, scales])]
    calls = [Call([x, np.zeros(0, np.float32) if t.version < 13 else None, scales])]
    if t.is_float:
        calls.append(Call([*calls[0].inputs], {"mode": "linear"}))
    return calls


def upsample(t: Maker) -> Call:
    x = t(1, 1, 2, 2)
    if t.version == 1:
        return Call([x], {"height_scale": 2.0, "width_scale": 3.0})
    if t.version < 9:
        return Call([x], {"scales": [1.0, 1.0, 2.0, 3.0]})
    return Call([x, np.array([1, 1, 2, 3], np.float32)])


def unique(t: Maker) -> list[Call]:
    return [Call([t(3, 4)], {}, 4), Call([t(4, 2)], {"axis": 0, "sorted": 1}, 4)]


def window_function(t: Maker) -> list[Call]:
    return [Call([t.scalar(6)]), Call([t.scalar(5)], {"periodic": 0})]


RECIPES: dict[str, Callable[[Maker], Call | list[Call]]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Equal", "Less", "Greater"), old_binary),
    **dict.fromkeys(("And", "Or", "Xor"), old_binary),
    **dict.fromkeys(("LSTM",), recurrent(4, 3)),
    **dict.fromkeys(("GRU",), recurrent(3, 2)),
    **dict.fromkeys(("RNN",), recurrent(1, 2)),
    **dict.fromkeys(("ReduceSum",), reduce_axes(13)),
    **dict.fromkeys(
        (
            "ReduceMax ReduceMin ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceLogSum "
            "ReduceLogSumExp ReduceSumSquare"
        ).split(),
        reduce_axes(18),
    ),
    **dict.fromkeys(("ArgMax", "ArgMin"), lambda t: Call([t.distinct(3, 4)], {"axis": 1})),
    "Acosh": lambda t: Call([t(3, 4, low=1, high=4)]),
    "Asin": lambda t: Call([t(3, 4, low=-1, high=1)]),
    "Acos": lambda t: Call([t(3, 4, low=-1, high=1)]),
    "Atanh": lambda t: Call([t(3, 4, low=-0.9, high=0.9)]),
    "Attention": attention,
    "AveragePool": pool,
    "BatchNormalization": batch_norm,
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), window_function),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), softmax),
    "BitShift": lambda t: Call([t(3, 4), t(3, 4, low=0)], {"direction": "LEFT"}),
    "Cast": cast,
    "CastLike": cast_like,
    "CausalConvWithState": lambda t: Call([t(1, 2, 5), t(2, 1, 3)], {}, 2),
    "CenterCropPad": lambda t: Call([t(3, 5), ints(4, 2)]),
    "Col2Im": lambda t: Call([t(1, 8, 6), ints(3, 4), ints(2, 2)]),
    "Compress": lambda t: Call([t(3, 4), np.array([True, False, True])], {"axis": 0}),
    "CumProd": lambda t: Call([t(2, 3), np.array(1, np.int64)]),
    "DFT": lambda t: Call([t(1, 6, 1)]),
    "DeformConv": lambda t: Call([t(1, 1, 3, 3), t(1, 1, 2, 2), t(1, 8, 2, 2)]),
    "DequantizeLinear": dequantize,
    "Det": lambda t: [Call([t(3, 3)]), Call([t(2, 2, 2)])],
    "DynamicQuantizeLinear": lambda t: Call([t(3, 4)], {}, 3),
    "Einsum": lambda t: Call([t(2, 3), t(3, 4)], {"equation": "ij,jk->ik"}),
    "GridSample": grid_sample,
    "LpNormalization": lambda t: Call([t(3, 4, low=1)], {"axis": 1}),
    "MeanVarianceNormalization": lambda t: Call([t(2, 3, 2, 2)]),
    "QuantizeLinear": quantize,
    "RegexFullMatch": lambda t: Call([t(2, 3)], {"pattern": "Z?a[a-z]*|.{2}"}),
    "Resize": resize,
    "ReverseSequence": lambda t: Call([t(4, 2), ints(2, 3)]),
    "RoiAlign": lambda t: Call(
        [t(1, 2, 4, 5), t.of(0, 0, 3, 3).reshape(1, 4), ints(0)], {"output_height": 2}
    ),
    "StringSplit": lambda t: Call([np.array(["a b", " c"], object)], {}, 2),
    "SwiGLU": lambda t: Call([t(2, 4), t(2, 4)]),
    "TensorScatter": lambda t: Call([t(1, 4, 2), t(1, 1, 2), ints(2)], {"axis": 1}),
    "Unique": unique,
    "Upsample": upsample,
    "Clip": clip,
    "Concat": lambda t: [
        Call([t(2, 3), t(1, 3)], {"axis": 0}),
        Call([t(2, 3), t(2, 0), t(2, 1)], {"axis": 1}),
    ],
    "ConstantOfShape": constant_of_shape,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "CumSum": lambda t: Call([t(2, 3), np.array(1, np.int64)], {"reverse": 1}),
    "DepthToSpace": lambda t: Call([t(1, 8, 2, 3)], {"blocksize": 2}),
    "Dropout": dropout,
    "Expand": lambda t: Call([t(3, 1), ints(2, 1, 4)]),
    "EyeLike": lambda t: Call([t(3, 4)], {"k": 1}),
    "Flatten": lambda t: Call([t(2, 3, 4)], {"axis": 2}),
    "Gather": lambda t: Call([t(3, 4), np.array([[2, 0]])], {"axis": 1}),
    "GatherElements": lambda t: Call([t(3, 3), np.array([[1, 0, 2]])], {"axis": 0}),
    "GatherND": lambda t: Call([t(2, 3, 2), np.array([[0, 2], [1, 0]])]),
    "Gemm": gemm,
    "GlobalAveragePool": lambda t: Call([t(2, 3, 4, 2)]),
    "GlobalLpPool": lambda t: Call([t(2, 3, 4, 2)]),
    "GlobalMaxPool": lambda t: Call([t(2, 3, 4, 2)]),
    "GroupNormalization": lambda t: Call(
        [t(2, 4, 3), *(t(2 if t.version < 21 else 4) for _ in range(2))], {"num_groups": 2}
    ),
    "InstanceNormalization": norm(2),
    "LRN": lambda t: Call([t(1, 5, 2, 2)], {"size": 3}),
    "LayerNormalization": lambda t: Call([t(2, 3, 4), t(4), t(4)]),
    "LpPool": pool,
    "Log": lambda t: Call([t(3, 4, low=1)]),
    "MatMul": lambda t: [
        Call([t(2, 3), t(3, 4)]),
        Call([t(2, 1, 2, 3), t(3, 3, 2)]),
        Call([t(3), t(3)]),
    ],
    "MaxPool": pool,
    "Mod": lambda t: Call([t(3, 4), t(3, 4, low=1)], {"fmod": int(t.is_float)}),
    "NonZero": lambda t: Call([t(3, 4)]),
    "OneHot": one_hot,
    "PRelu": lambda t: Call([t(2, 3), t(3)]),
    "Pad": pad,
    "Pow": lambda t: Call([t(3, 4, low=0.5), t(3, 4, low=0, high=3)]),
    "RMSNormalization": lambda t: Call([t(2, 3, 4), t(4)]),
    "Range": lambda t: Call([t.scalar(1), t.scalar(8), t.scalar(2)]),
    "Reshape": reshape,
    "Scatter": scatter,
    "ScatterElements": scatter,
    "ScatterND": lambda t: Call([t(4, 2), np.array([[3], [0]]), t(2, 2)]),
    "Slice": slice_,
    "SpaceToDepth": lambda t: Call([t(1, 2, 4, 6)], {"blocksize": 2}),
    "Split": split,
    "Sqrt": lambda t: Call([t(3, 4, low=0)]),
    "Squeeze": squeeze,
    "Tile": tile,
    "TopK": top_k,
    "Transpose": lambda t: [Call([t(2, 3, 4)]), Call([t(2, 3)], {"perm": [1, 0]})],
    "Trilu": lambda t: Call([t(3, 4)], {"upper": 0}),
    "Unsqueeze": unsqueeze,
    "Where": where,
}


def plain(t: Maker, schema: onnx.defs.OpSchema) -> list[Call]:
    """For operators whose inputs are of one type and may be of one shape, of every rank."""
    count = max(schema.min_input, 1)
    shapes = [
        (),
        (5,),
        (2, 0),
        (2, 3),
        (1, 2, 3),
        (2, 1, 1, 3),
        (1, 2, 1, 2, 2),
        (2, 1, 1, 2, 1, 3),
    ]
    return [Call([t(*shape) for _ in range(count)]) for shape in shapes]
