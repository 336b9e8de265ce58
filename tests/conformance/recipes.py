"""Inputs and attributes with which each operator can be called, for the generated tests.

A recipe gets a Maker and returns a Call, or a list of them. Operators with one to several inputs of
one shape need none: see `plain`.
"""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Callable, Iterable
from typing import Any

import ml_dtypes
import numpy as np
import onnx

FLOATS = {"float", "double", "float16", "bfloat16"}


NUMPY_TYPES = {
    "float": np.float32,
    "double": np.float64,
    "bool": np.bool_,
    "string": np.object_,
    **{name: getattr(np, name) for name in ("float16", "complex64", "complex128")},
    **{
        f"{sign}int{bits}": getattr(np, f"{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    **{name: getattr(ml_dtypes, name) for name in ("bfloat16", "int4", "uint4", "int2", "uint2")},
    "float4e2m1": ml_dtypes.float4_e2m1fn,
    "float6e2m3": ml_dtypes.float6_e2m3fn,
    "float6e3m2": ml_dtypes.float6_e3m2fn,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu,
}


@dataclasses.dataclass
class Call:
    """One call of an operator.

    An input that is None is left out; a list is a sequence, a dict a map. Those whose places are in
    `constants` are initializers.
    """

    inputs: list[Any]
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    outputs: int = 1
    constants: tuple[int, ...] = ()


@dataclasses.dataclass
class Optional:
    """An input that is an optional: of `value`, or empty; its type is that of `like`."""

    value: Any
    like: Any


@dataclasses.dataclass
class Sparse:
    """An input that is a sparse matrix, in the format CSR or COO."""

    dense: np.ndarray
    is_csr: bool

    def made_by(self, runtime: Any) -> Any:
        """An OrtValue of it."""
        places, values = np.argwhere(self.dense), self.dense[self.dense != 0]
        dims, device = np.array(self.dense.shape), runtime.OrtDevice.make("cpu", 0)
        if self.is_csr:
            counts = np.count_nonzero(self.dense, 1)
            parts = [places[:, 1].copy(), np.append(0, np.cumsum(counts))]
            made = runtime.SparseTensor.sparse_csr_from_numpy(dims, values, *parts, device)
        else:
            flat = places.reshape(-1)
            made = runtime.SparseTensor.sparse_coo_from_numpy(dims, values, flat, device)
        return runtime.OrtValue.ort_value_from_sparse_tensor(made)


class Maker:
    """Arrays of the element type under test, always the same for the same operator."""

    def __init__(self, schema: onnx.defs.OpSchema, name: str) -> None:
        self.schema = schema
        self.version = schema.since_version
        self.name = name  # of the type, as the schema has it
        self.dtype = dtype = np.dtype(NUMPY_TYPES[name])
        self.is_float = name in FLOATS or name.startswith("float")
        self.is_string = dtype == np.dtype(object)
        self.is_signed_whole = name.startswith("int")
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

    def number(self) -> int:
        """The type as attributes give it."""
        return onnx.helper.np_dtype_to_tensor_dtype(self.dtype)

    def others(self, constraint: str) -> list[Maker]:
        """One for each tensor type that the schema allows under the name `constraint`."""
        found = [c for c in self.schema.type_constraints if c.type_param_str == constraint]
        return [
            Maker(self.schema, name) for c in found for name in element_types(c.allowed_type_strs)
        ]


def element_types(type_texts: Iterable[str]) -> list[str]:
    """Those of the tensors among types, also of tensors in sequences and optionals."""
    matches = (re.search(r"tensor\((\w+)\)", text) for text in sorted(type_texts))
    return list(dict.fromkeys(match[1] for match in matches if match))


def integer_range(dtype: np.dtype) -> tuple[int, int]:
    info = np.iinfo(dtype) if dtype.isbuiltin == 1 else ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


# Of every rank from 0 to 6, and without elements.
SHAPES = [
    (),
    (5,),
    (2, 0),
    (2, 3),
    (1, 2, 3),
    (2, 1, 1, 3),
    (1, 2, 1, 2, 2),
    (2, 1, 1, 2, 1, 3),
]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def by_input(version: int, since: int, name: str, values: list[int]) -> tuple[list, dict]:
    """The inputs that were attributes before `since`: as inputs, or as attributes."""
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

        lengths, size = np.array([4, 2], np.int32), {"hidden_size": 3}
        state = [t(1, 2, 3) for _ in range(outputs - 1)]
        peepholes = [t(1, 9)] if outputs == 3 else []
        return [
            Call(inputs(1), size, outputs),
            Call(inputs(1), {**size, "direction": "reverse"}, outputs),
            Call(inputs(2), {**size, "direction": "bidirectional"}, outputs),
            Call(inputs(1)[:3], size, outputs),
            Call([*inputs(1), lengths], size, outputs),
            Call([*inputs(1), None, *state, *peepholes], size, outputs),
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


def slice_(t: Maker) -> list[Call]:
    x = t(4, 5)
    if t.version < 10:
        few = {"starts": [-3], "ends": [1000]}
        return [Call([x], {"axes": [0, 1], "starts": [1, 0], "ends": [3, -1]}), Call([x], few)]
    calls = []
    for i in t.others("Tind"):
        calls.append(Call([x, i.of(3, 0), i.of(0, 5), i.of(0, 1), i.of(-2, 2)]))
        calls.append(Call([x, i.of(-2), i.of(1000), i.of(-1)]))
        calls.append(Call([x, i.of(2, 1), i.of(2, 3)]))
    return calls


def pad(t: Maker) -> list[Call]:
    pads = [0, 1, 2, 0]
    if t.version < 11:
        name = "paddings" if t.version < 2 else "pads"
        return [Call([t(2, 3)], {name: pads, "value": 1.0})]
    modes = ["constant", "edge", "reflect"] + (["wrap"] if t.version >= 19 else [])
    x = t(3, 3)
    calls = [Call([x, ints(*pads)], {"mode": mode}) for mode in modes]
    calls[0].inputs.append(t(1).reshape(()))
    for i in t.others("Tind"):
        calls.append(Call([x, ints(2, 1), None, i.of(-1)]))
    return calls


def split(t: Maker) -> list[Call]:
    more, attributes = by_input(t.version, 13, "split", [1, 3])
    if t.version == 1:
        given = Call([t(4, 2), t.of(3, 1)], {"axis": 0}, 2)
        return [Call([t(4, 2)], {"split": [1, 3], "axis": 0}, 2), given]
    calls = [Call([t(4, 2), *more], {**attributes, "axis": 0}, 2)]
    calls.append(Call([t(3, 4), *more], {**attributes, "axis": -1}, 2))
    if t.version < 18:
        return [*calls, Call([t(4, 2)], {}, 2)]
    return [*calls, Call([t(4, 2)], {"num_outputs": 2}, 2), Call([t(5)], {"num_outputs": 2}, 2)]


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


def one_hot(t: Maker) -> list[Call]:
    indices = t.of(0, 2, 1, 3).reshape(2, 2)
    calls = []
    for depth in t.others("T2"):
        calls.append(Call([indices, depth.scalar(4), np.array([2, 5], np.float32)]))
    for values in t.others("T3"):
        pair = np.array(["off", "on"], object) if values.is_string else values.of(0, 1)
        calls.append(Call([indices, np.array(4, t.dtype), pair], {"axis": 0}))
    return calls


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
    calls = [Call([q, k, v]), Call([q, k, v], {"is_causal": 1}), Call([q, k, v], {"softcap": 2.0})]
    heads = {"q_num_heads": 4, "kv_num_heads": 2}
    calls.append(Call([t(2, 3, 16), t(2, 5, 8), t(2, 5, 6)], heads))
    calls += [Call([q, k, v, u(3, 5, low=0, high=2)]) for u in t.others("U")]
    for other in t.others("T2"):
        values, past = other(1, 2, 5, 2), [t(1, 2, 2, 4), other(1, 2, 2, 2)]
        calls.append(Call([q, k, values, None, *past], {"scale": 0.25}, 3))
    if t.version >= 24:
        calls.append(
            Call([t(2, 2, 3, 4), t(2, 2, 5, 4), t(2, 2, 5, 2), None, None, None, ints(3, 5)])
        )
    return calls


def dropout(t: Maker) -> list[Call]:
    calls = [Call([t(2, 3)], {"is_test": 1} if t.version < 7 else {})]
    if t.version >= 12:
        ratios = [ratio.scalar(0.5) for ratio in t.others("T1")]
        calls += [Call([t(2, 3), ratio]) for ratio in ratios]
        calls.append(Call([t(2, 3), ratios[0], np.array(False)]))
        calls.append(Call([t(2, 3), ratios[0] * 0, np.array(True)], {}, 2))
    return calls


def constant_of_shape(t: Maker) -> Call:
    value = onnx.numpy_helper.from_array(t(1))
    return Call([ints(2, 3)], {"value": value})


def scatter(t: Maker) -> list[Call]:
    return [Call([t(3, 3), i.of(1, 0, 2)[None], t(1, 3)], {"axis": 0}) for i in t.others("Tind")]


def gather(t: Maker) -> list[Call]:
    calls = []
    for i in t.others("Tind"):
        places = i.of(2, 0) if t.version < 11 else i.of(-1, 0)
        calls += [Call([t(3, 4), places[None]], {"axis": 1}), Call([t(3, 4), places[0]])]
        calls += [Call([t(3), places]), Call([t(2, 3), places[:0]])]
    return calls


def gather_elements(t: Maker) -> list[Call]:
    calls = []
    for i in t.others("Tind"):
        calls.append(Call([t(3, 3), i.of(1, 0, 2)[None]], {"axis": 0}))
        calls.append(Call([t(2, 3), i.of(-1, 0)[:, None]], {"axis": -1}))
    return calls


def cumulative(t: Maker) -> list[Call]:
    calls = []
    for axis in t.others("T2"):
        calls += [Call([t(2, 3), axis.scalar(1)], {"reverse": 1}), Call([t(2, 3), axis.scalar(-2)])]
        calls.append(Call([t(4), axis.scalar(0)], {"exclusive": 1}))
    return calls


def pow_(t: Maker) -> list[Call]:
    exponents = t.others("T1") or [t]
    calls = [Call([t(3, 4, low=1), y(3, 4, low=0, high=3)]) for y in exponents]
    if t.version < 7:
        return calls
    return [*calls, Call([t(2, 1, 3, low=1), exponents[0](4, 1, low=0, high=3)])]


def trilu(t: Maker) -> list[Call]:
    calls = [Call([t(3, 4)], {"upper": 0}), Call([t(2, 3, 4)])]
    return calls + [Call([t(3, 4), np.array(k)], {"upper": u}) for k in (-1, 2) for u in (0, 1)]


def center_crop_pad(t: Maker) -> list[Call]:
    calls = [Call([t(3, 5), i.of(4, 2)]) for i in t.others("Tind")]
    return [*calls, Call([t(3, 5), ints(3)], {"axes": [-1]})]


def dft(t: Maker) -> list[Call]:
    calls = [Call([t(1, 6, 1)]), Call([t(1, 6, 2)], {"inverse": 1})]
    for i in t.others("T2"):
        calls += [Call([t(1, 6, 1), i.scalar(n)], {"onesided": 1}) for n in (4, 7)]
    axis = {"axis": 2} if t.version < 20 else {}
    more = [] if t.version < 20 else [None, np.array(-2)]
    return [*calls, Call([t(1, 2, 5, 1), *more], axis)]


def deform_conv(t: Maker) -> list[Call]:
    x, w, offset = t(1, 1, 3, 3), t(2, 1, 2, 2), t(1, 8, 2, 2)
    return [Call([x, w, offset]), Call([x, w, offset, t(2), t(1, 4, 2, 2, low=0, high=1)])]


def causal_conv(t: Maker) -> list[Call]:
    x, w = t(1, 2, 5), t(2, 1, 3)
    calls = [Call([x, w], {}, 2), Call([x, w, t(2)], {"activation": "silu"}, 2)]
    return [*calls, Call([x, w, None, t(1, 2, 2)], {"activation": "swish"}, 2)]


def where(t: Maker) -> Call:
    return Call([np.array([[True], [False]]), t(2, 3), t(3)])


def layer_norm(t: Maker) -> list[Call]:
    """With scales, and biases, that are broadcast within rows, and from row to row."""
    x = t(2, 3, 4)
    has_bias = t.schema.name == "LayerNormalization"
    shapes: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = [
        (-1, (4,), (4,)),
        (-1, (), (1,)),
        (1, (3, 4), (3, 4)),
        (1, (1, 3, 4), (4,)),
        (1, (2, 1, 4), (3, 1)),
        (2, (1, 3, 1), (2, 3, 4)),
    ]
    return [
        Call([x, t(*scale), *([t(*bias)] if has_bias else [])], {"axis": axis})
        for axis, scale, bias in shapes
    ]


def norm(parameters: int, rank: int = 3) -> Callable[[Maker], Call]:
    return lambda t: Call([t(2, *[4, 3][: rank - 1]), *(t(4) for _ in range(parameters))])


def cast(t: Maker) -> list[Call]:
    x = np.array(["1", "-2.5", "1e3"], object) if t.is_string else t(2, 3)
    if t.version < 6:
        return [Call([x], {"to": "FLOAT"})]
    calls = [Call([x], {"to": onnx.TensorProto.FLOAT})]
    few = few_numbers(t)
    return calls + [Call([few], {"to": other.number()}) for other in t.others("T2")]


def cast_like(t: Maker) -> list[Call]:
    few = few_numbers(t)
    return [Call([few, other(1)]) for other in t.others("T2")]


def few_numbers(t: Maker) -> np.ndarray:
    """Numbers that every type has."""
    if t.is_string:
        return np.array(["1", "0"], object)
    return t.of(1, 1 if t.name == "float8e8m0" else 0)


def softmax(t: Maker) -> list[Call]:
    axes = [1] if t.version < 11 else [1, -1]
    return [Call([t(2, 3, 2)], {"axis": axis}) for axis in axes] + [Call([t(2, 0, 2)])]


def quantize(t: Maker) -> list[Call]:
    x = t(2, 4)
    scales = [t if t.version >= 19 else Maker(t.schema, "float")]
    if t.version >= 23:
        scales = t.others("T2")
    results = t.others("T3" if t.version >= 23 else "T2")
    calls = []
    for i, result in enumerate(results):
        scale, zero = scales[i % len(scales)], 1 if result.is_signed_whole else 0
        steps = scale.of(0.5, 0.25, 2, 1) if scale.is_float else scale.of(1, 2, 4, 3)
        calls.append(Call([x, np.array(steps[0]), result.scalar(zero)]))
        if t.version >= 13:
            many = [steps, result.of(zero, 0, 0, zero)]
            calls.append(Call([x, *many], {"axis": -1}))
        if t.version >= 21:
            given = {"block_size": 2, "axis": 1, "output_dtype": result.number()}
            calls.append(Call([x, steps.reshape(2, 2)], given))
    return [*calls, *(Call([x, scale.scalar(1)]) for scale in scales)]


def dequantize(t: Maker) -> list[Call]:
    x = t(2, 4)
    calls = []
    for scale in t.others("T2") or [Maker(t.schema, "float")]:
        to = {"output_dtype": onnx.TensorProto.FLOAT} if scale.name == "float8e8m0" else {}
        calls.append(Call([x, scale.scalar(0.5)], to))
        calls.append(Call([x, scale.scalar(0.5), t.scalar(0 if t.name == "int32" else 1)], to))
        if t.version >= 13:
            zeros = [] if t.name == "int32" else [t(4)]
            calls.append(Call([x, scale.of(0.5, 0.25, 2, 1), *zeros], {"axis": 1, **to}))
            calls.append(Call([x, scale.of(0.5, 2)], {"axis": -2, **to}))
        if t.version >= 21:
            blocks = {"block_size": 2, "axis": 1, **to}
            calls.append(Call([x, scale.of(0.5, 1, 2, 0.25).reshape(2, 2)], blocks))
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
    return calls + [
        Call([x, whole[np.newaxis].astype(grid.dtype)], {"mode": "nearest", "align_corners": 1})
        for grid in t.others("T2")
    ]


def resize(t: Maker) -> list[Call]:
    x, scales = t(1, 1, 2, 3), np.array([1, 1, 2, 2], np.float32)
    if t.version < 11:
        return [Call([x, scales])]
    calls = [Call([x, np.zeros(0, np.float32) if t.version < 13 else None, scales])]
    if t.is_float:
        calls.append(Call([*calls[0].inputs], {"mode": "linear"}))
    no_scales = np.zeros(0, np.float32) if t.version < 13 else None
    for roi in t.others("T2"):
        area = roi.of(0, 0, 0, 0, 1, 1, 1, 1)
        calls.append(Call([x, area, no_scales, ints(1, 1, 4, 6)]))
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


def affine_grid(t: Maker) -> list[Call]:
    sizes = [ints(2, 1, 3, 4), ints(1, 2, 2, 3, 2)]
    thetas = [t(len_, rank, rank + 1) for len_, rank in ((2, 2), (1, 3))]
    pairs = list(zip(thetas, sizes, strict=True))
    return [Call([*pair], {"align_corners": i}) for pair in pairs for i in (0, 1)] + [
        Call([*pairs[0]])
    ]


def bits(name: str) -> int:
    """Of one element of the type named."""
    widths = {"float": 32, "double": 64, "bool": 8}
    return widths.get(name) or int(re.search(r"\d+", name)[0])


def bit_cast(t: Maker) -> list[Call]:
    calls = []
    for other in t.others("T2"):
        if bits(other.name) == bits(t.name):
            to_bool = other.name == "bool"
            x = t(2, 3, low=0, high=2) if to_bool and not t.is_float else t(2, 3)
            if to_bool and t.is_float:
                continue  # the standard does not define booleans of other bytes than 0 and 1
            calls += [Call([value], {"to": other.number()}) for value in (x, x[0, 0], x[:0])]
    return calls


def quantized(t: Maker, *shape: int) -> np.ndarray:
    return t(*shape, low=-8 if t.is_float else 0, high=8 if t.is_float else 120)


def conv_integer(t: Maker) -> list[Call]:
    x, calls = quantized(t, 1, 2, 5, 4), []
    for u in t.others("T2"):
        w = quantized(u, 3, 2, 3, 2)
        calls += [
            Call([x, w], {"kernel_shape": [3, 2]}),
            Call([x, w, t.scalar(3), u.scalar(2)], {"pads": [1, 0, 1, 1], "strides": [2, 1]}),
            Call([x, w, None, u.of(1)[0]], {"auto_pad": "SAME_UPPER"}),
            Call([x, quantized(u, 4, 1, 2, 2), t.scalar(1)], {"group": 2, "dilations": [2, 1]}),
            Call([quantized(t, 2, 1, 7), quantized(u, 2, 1, 3)]),
        ]
    return calls


def matmul_integer(t: Maker) -> list[Call]:
    calls = []
    for u in t.others("T2"):
        a, b = quantized(t, 2, 3), quantized(u, 3, 4)
        calls += [
            Call([a, b]),
            Call([a, b, t.scalar(3), u.scalar(2)]),
            Call([a, b, None, u(4, low=0, high=5)]),
            Call([a, b, t(2, low=0, high=5)]),
            Call([quantized(t, 2, 1, 2, 3), quantized(u, 2, 3, 2), t.scalar(1)]),
            Call([a[0], b]),
            Call([a, b[:, 0]]),
            Call([a[:, :0], b[:0]]),
        ]
    return calls


def qlinear_conv(t: Maker) -> list[Call]:
    x, bias = quantized(t, 1, 2, 5, 4), np.array([100, -200, 0], np.int32)
    x_scale, w_scale, y_scale = (np.array(value, np.float32) for value in (0.05, 0.02, 0.7))
    many = np.array([0.02, 0.01, 0.03], np.float32)
    calls = []
    for u in t.others("T2"):
        w, group = quantized(u, 3, 2, 3, 2), quantized(u, 4, 1, 2, 2)
        for v in t.others("T3"):
            first, last = [x, x_scale, t.scalar(3)], [y_scale, v.scalar(5)]
            window = {"pads": [1, 1, 1, 0], "strides": [1, 2]}
            calls += [
                Call([*first, w, w_scale, u.scalar(2), *last]),
                Call([*first, w, w_scale, u.scalar(0), *last, bias], window),
                Call([*first, w, many, u.of(0, 0, 0), *last]),
                Call([*first, group, w_scale, u.scalar(1), *last], {"group": 2}),
            ]
    return calls


def qlinear_matmul(t: Maker) -> list[Call]:
    """Of all pairs of operand types, and with all types of the result and of the scales."""
    calls, results = [], t.others("T3")
    for i, u in enumerate(t.others("T2")):
        matrices = [quantized(t, 2, 3), quantized(u, 3, 4)]
        batches = [quantized(t, 2, 2, 3), quantized(u, 2, 3, 1)]
        for j, s in enumerate(t.others("TS") or [Maker(t.schema, "float")]):
            v = results[(i + j) % len(results)]
            a_zero, b_zero, zero = (m.scalar(0 if m.is_float else 3) for m in (t, u, v))
            a_scale, b_scale, scale = (s.scalar(value) for value in (0.5, 0.25, 2))
            for a, b in (matrices, batches):
                calls.append(Call([a, a_scale, a_zero, b, b_scale, b_zero, scale, zero]))
    return calls


def linear_attention(t: Maker) -> list[Call]:
    def small(*shape: int) -> np.ndarray:
        return t(*shape, low=-1, high=1)

    q, k, v = small(2, 3, 8), small(2, 3, 4), small(2, 3, 6)
    heads = {"q_num_heads": 4, "kv_num_heads": 2}
    decay, beta = t(2, 3, 2, low=-1, high=0), t(2, 3, 2, low=0, high=1)
    calls = [
        Call([q, k, v], {**heads, "update_rule": "linear"}, 2),
        Call([q, k, v, None, t(2, 3, 4, low=-1, high=0)], {**heads, "update_rule": "gated"}, 2),
        Call([q, k, v, None, None, beta], {**heads, "update_rule": "delta", "scale": 0.5}, 2),
        Call([q, k, v, None, decay, beta[..., :1]], {**heads, "chunk_size": 2}, 2),
    ]
    for s in t.others("S"):
        calls.append(Call([q, k, v, s(2, 2, 2, 3, low=-1, high=1), decay, beta], heads, 2))
    return calls


def max_roi_pool(t: Maker) -> list[Call]:
    x, rois = t(2, 2, 4, 5), t.of(0, 0, 0, 3, 3, 1, 1, 1, 4, 2).reshape(2, 5)
    return [
        Call([x, rois], {"pooled_shape": [2, 2]}),
        Call([x, rois], {"pooled_shape": [1, 3], "spatial_scale": 0.5}),
        Call([x, rois[:0]], {"pooled_shape": [2, 2]}),
    ]


def max_unpool(t: Maker) -> list[Call]:
    x, at = t(1, 1, 2, 2), ints(5, 7, 13, 15).reshape(1, 1, 2, 2)
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    return [
        Call([x, at], window),
        Call([x, at, ints(1, 1, 5, 5)], window),
        Call(
            [t(1, 2, 3), ints(0, 3, 5, 6, 8, 10).reshape(1, 2, 3)],
            {"kernel_shape": [2], "strides": [2]},
        ),
    ]


def mel_weight_matrix(t: Maker) -> list[Call]:
    calls = []
    for edge in t.others("T2"):
        inputs = [t.scalar(4), t.scalar(16), t.scalar(8192)]
        edges = [edge.scalar(0), edge.scalar(4096)]
        calls.append(Call([*inputs, *edges]))
        for result in t.others("T3"):
            calls.append(Call([*inputs, *edges], {"output_datatype": result.number()}))
    return calls


def losses(name: str) -> Callable[[Maker], list[Call]]:
    """NegativeLogLikelihoodLoss of probabilities' logarithms, or SoftmaxCrossEntropyLoss."""

    def recipe(t: Maker) -> list[Call]:
        x, deep, weights = t(3, 5), t(2, 3, 2, 2), t(5, low=0.5, high=2)
        results = 2 if name == "SoftmaxCrossEntropyLoss" else 1
        calls = []
        for i in t.others("Tind"):
            labels, deep_labels = i.of(1, 4, 0), i.of(0, 1, 2, 0, 1, 1, 2, 2).reshape(2, 2, 2)
            for reduction in ("none", "sum", "mean"):
                given = {"reduction": reduction}
                calls += [
                    Call([x, labels], given, results),
                    Call([x, labels, weights], given, results),
                    Call([deep, deep_labels], {**given, "ignore_index": 1}, results),
                ]
            calls += [Call([x, labels]), Call([x, i.of(-1, 2, 3), weights], {"ignore_index": -1})]
        return calls

    return recipe


def non_max_suppression() -> list[Call]:
    """All inputs are of one type each."""
    random = np.random.default_rng(7)
    corners = random.uniform(0, 4, (2, 6, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + 2], 2)
    scores = random.permutation(24).reshape(2, 2, 6).astype(np.float32) / 24
    most, overlap, least = ints(3), np.array([0.4], np.float32), np.array([0.3], np.float32)
    return [
        Call([boxes, scores, most, overlap, least]),
        Call([boxes, scores]),
        Call([boxes, scores, most, None, least]),
        Call([boxes, scores, most, overlap], {"center_point_box": 1}),
        Call([boxes[:, :0], scores[..., :0], most]),
    ]


def rotary_embedding(t: Maker) -> list[Call]:
    x, cos, sin = t(2, 3, 4, 8), t(10, 4, low=-1, high=1), t(10, 4, low=-1, high=1)
    places = ints(0, 1, 2, 3, 9, 5, 6, 7).reshape(2, 4)
    packed, heads = t(2, 4, 24), {"num_heads": 3}
    some = {"rotary_embedding_dim": 4}
    return [
        Call([x, cos, sin, places]),
        Call([x, cos, sin, places], {"interleaved": 1}),
        Call([x, cos[:, :2], sin[:, :2], places], some),
        Call([x, cos[places], sin[places]]),
        Call([packed, cos[places], sin[places]], heads),
        Call([packed, cos[:, :2], sin[:, :2], places], {**heads, **some, "interleaved": 1}),
    ]


def stft(t: Maker) -> list[Call]:
    real, complex_, calls = t(2, 16, 1), t(1, 16, 2), []
    for i in t.others("T2"):
        step, length, window = i.scalar(3), i.scalar(8), t(8, low=0, high=1)
        calls += [
            Call([real, step, None, length]),
            Call([real, step, window]),
            Call([real, step, window, length], {"onesided": 0}),
            Call([complex_, step, window, length], {"onesided": 0}),
        ]
    return calls


def string_normalizer(t: Maker) -> list[Call]:
    x = np.array(["Monday", "tuesday", "WEDNESDAY", "Äpfel"], object)
    few = {"stopwords": ["monday", "WEDNESDAY"], "locale": "en_US"}
    calls = [Call([x]), Call([x[None]], few), Call([x], {**few, "is_case_sensitive": 1})]
    for action in ("LOWER", "UPPER"):
        calls += [Call([x], {**few, "case_change_action": action})]
        calls += [Call([x[None, :3]], {"case_change_action": action, "is_case_sensitive": 1})]
    everything = {"stopwords": list(x), "is_case_sensitive": 1}
    return [*calls, Call([x], everything), Call([x[None]], everything)]


def tf_idf_vectorizer(t: Maker) -> list[Call]:
    grams = np.array([2, 3, 5, 4, 5, 6, 7, 8, 6, 7])
    x = np.array([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8])
    if t.is_string:
        x = np.array([f"w{value}" for value in x], object)
        pool = {"pool_strings": [f"w{value}" for value in grams]}
    else:
        x, pool = x.astype(t.dtype), {"pool_int64s": grams.tolist()}
    pool |= {"ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6]}
    lengths = {"min_gram_length": 1, "max_gram_length": 2}
    weights = {"weights": [0.5, 1.0, 2.0, 3.0, 1.5, 2.5, 0.25]}
    calls = []
    for mode in ("TF", "IDF", "TFIDF"):
        for skips in (0, 5):
            given = {**pool, **lengths, "mode": mode, "max_skip_count": skips}
            calls += [Call([x], given), Call([x.reshape(2, 6)], {**given, **weights})]
    return [*calls, Call([x], {**calls[0].attributes, "min_gram_length": 2})]


def image_decoder(t: Maker) -> list[Call]:
    """A bitmap of 3 by 2 pixels, rows from the bottom, each padded to 12 bytes."""
    pixels = np.zeros((2, 12), np.uint8)
    pixels[:, :9] = t(2, 9, low=0, high=256)
    header = struct.pack("<2sIIIIiiHHIIIIII", b"BM", 78, 0, 54, 40, 3, 2, 1, 24, 0, 24, 0, 0, 0, 0)
    file = np.frombuffer(header + pixels.tobytes(), np.uint8)
    formats = [{}, *({"pixel_format": name} for name in ("RGB", "BGR", "Grayscale"))]
    return [Call([file], given) for given in formats]


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
    **{name: losses(name) for name in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")},
    "Acosh": lambda t: Call([t(3, 4, low=1, high=4)]),
    "Asin": lambda t: Call([t(3, 4, low=-1, high=1)]),
    "Acos": lambda t: Call([t(3, 4, low=-1, high=1)]),
    "Atanh": lambda t: Call([t(3, 4, low=-0.9, high=0.9)]),
    "AffineGrid": affine_grid,
    "Attention": attention,
    "AveragePool": pool,
    "BatchNormalization": batch_norm,
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), window_function),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), softmax),
    "BitCast": bit_cast,
    "BitShift": lambda t: Call([t(3, 4), t(3, 4, low=0)], {"direction": "LEFT"}),
    "Cast": cast,
    "CastLike": cast_like,
    "CausalConvWithState": causal_conv,
    "CenterCropPad": center_crop_pad,
    "Col2Im": lambda t: Call([t(1, 8, 6), ints(3, 4), ints(2, 2)]),
    "Compress": lambda t: Call([t(3, 4), np.array([True, False, True])], {"axis": 0}),
    "CumProd": cumulative,
    "DFT": dft,
    "DeformConv": deform_conv,
    "DequantizeLinear": dequantize,
    "Det": lambda t: [Call([t(3, 3)]), Call([t(2, 2, 2)])],
    "DynamicQuantizeLinear": lambda t: Call([t(3, 4)], {}, 3),
    "Einsum": lambda t: Call([t(2, 3), t(3, 4)], {"equation": "ij,jk->ik"}),
    "ConvInteger": conv_integer,
    "GridSample": grid_sample,
    "ImageDecoder": image_decoder,
    "LinearAttention": linear_attention,
    "MatMulInteger": matmul_integer,
    "MaxRoiPool": max_roi_pool,
    "MaxUnpool": max_unpool,
    "MelWeightMatrix": mel_weight_matrix,
    "NonMaxSuppression": lambda _: non_max_suppression(),
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
    "RotaryEmbedding": rotary_embedding,
    "STFT": stft,
    "StringNormalizer": string_normalizer,
    "TfIdfVectorizer": tf_idf_vectorizer,
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
    "CumSum": cumulative,
    "DepthToSpace": lambda t: Call([t(1, 8, 2, 3)], {"blocksize": 2}),
    "Dropout": dropout,
    "Expand": lambda t: Call([t(3, 1), ints(2, 1, 4)]),
    "EyeLike": lambda t: Call([t(3, 4)], {"k": 1}),
    "Flatten": lambda t: Call([t(2, 3, 4)], {"axis": 2}),
    "Gather": gather,
    "GatherElements": gather_elements,
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
    "LayerNormalization": layer_norm,
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
    "Pow": pow_,
    "RMSNormalization": layer_norm,
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
    "Trilu": trilu,
    "Unsqueeze": unsqueeze,
    "Where": where,
}


def plain(t: Maker) -> list[Call]:
    """For operators whose inputs are of one type and may be of one shape, of every rank."""
    count = max(t.schema.min_input, 1)
    return [Call([t(*shape) for _ in range(count)]) for shape in SHAPES]
