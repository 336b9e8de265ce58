"""Writes webnn_cases.json: operators of WebNN with operands and results.

The results are computed in double by NumPy, SciPy, PyTorch and ONNX's reference, which have nothing
to do with web/webnn-reference. Operands are short in decimal, and exact in float16.

Run as: python tests/web/make_webnn_cases.py
"""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx.helper
import onnx.reference
import scipy.special
import torch
from torch.nn import functional

random = np.random.default_rng(1729)
cases: list[dict[str, Any]] = []

FLOAT = "float32"
INTEGERS = ("int32", "uint32", "int64", "uint64", "int8", "uint8")


def number(value: Any) -> float | int | str:
    if isinstance(value, (int, np.integer)):
        return int(value) if abs(int(value)) < 2**53 else str(int(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 and math.copysign(1, value) < 0:
        return "-0"
    short = float(f"{value:.12g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


class Tensor:
    """An operand: an array, of doubles where the type is a float, and the type of WebNN."""

    def __init__(self, array: Any, data_type: str = FLOAT) -> None:
        self.array = np.asarray(array, np.float64 if data_type == FLOAT else data_type)
        self.data_type = data_type

    def json(self) -> dict[str, Any]:
        return {
            "dataType": self.data_type,
            "shape": list(self.array.shape),
            "data": [number(x) for x in self.array.flatten().tolist()],
        }


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return {"operand": value.json()}
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(member) for member in value]
    if isinstance(value, float):
        return number(value)
    return value


def case(operator: str, args: list[Any], *outputs: Tensor, **more: Any) -> None:
    cases.append(
        {
            "operator": operator,
            "args": plain(args),
            "outputs": [output.json() for output in outputs],
            **more,
        }
    )


def floats(*shape: int, scale: float = 2.0) -> np.ndarray:
    return np.round(random.uniform(-scale, scale, shape) * 16) / 16


def integers(data_type: str, *shape: int, low: int = -100, high: int = 100) -> np.ndarray:
    low = max(low, int(np.iinfo(data_type).min))
    return random.integers(low, min(high, int(np.iinfo(data_type).max)), shape).astype(data_type)


def of(value: Any) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(value))


def onnx_reference(operator: str, *inputs: np.ndarray, outputs: int = 1, **attributes: Any) -> list:
    """One operator of ONNX on arrays."""
    names = [f"x{i}" for i in range(len(inputs))]
    results = [f"y{i}" for i in range(outputs)]
    given = [name if x is not None else "" for name, x in zip(names, inputs, strict=True)]
    node = onnx.helper.make_node(operator, given, results, **attributes)
    declare = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [
            declare(name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(names, inputs, strict=True)
            if x is not None
        ],
        [declare(name, onnx.TensorProto.UNDEFINED, None) for name in results],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    feeds = {name: x for name, x in zip(names, inputs, strict=True) if x is not None}
    return onnx.reference.ReferenceEvaluator(model).run(None, feeds)


def elementwise() -> None:
    x = np.concatenate([floats(12, scale=4), [0.0, -0.0, 1.0, -6.0]]).reshape(2, 8)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, 3.0])
    positive = np.abs(x) + 0.125
    functions: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "abs": np.abs,
        "ceil": np.ceil,
        "cos": np.cos,
        "erf": scipy.special.erf,
        "exp": np.exp,
        "floor": np.floor,
        "identity": lambda x: x,
        "neg": lambda x: -x,
        "roundEven": np.rint,
        "sign": lambda x: (x > 0) * 1.0 - (x < 0) * 1.0,
        "sin": np.sin,
        "tan": np.tan,
        "tanh": np.tanh,
        "relu": lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)),
        "sigmoid": scipy.special.expit,
        "softplus": lambda x: np.logaddexp(0, x),
        "softsign": lambda x: x / (1 + np.abs(x)),
        "gelu": lambda x: x * scipy.special.ndtr(x),
        "hardSwish": lambda x: functional.hardswish(of(x)).numpy(),
    }
    with np.errstate(all="ignore"):
        for name, function in functions.items():
            case(name, [Tensor(x)], Tensor(function(x)))
            if name not in ("softsign", "gelu", "hardSwish"):
                case(name, [Tensor(special)], Tensor(function(special)))
        for name, function in {
            "log": np.log,
            "reciprocal": np.reciprocal,
            "sqrt": np.sqrt,
        }.items():
            case(name, [Tensor(positive)], Tensor(function(positive)))
            case(name, [Tensor([-1.0, np.inf])], Tensor(function(np.array([-1.0, np.inf]))))
    wide = np.array([-9.0, -5.5, -3.0, -1.75, 2.5, 5.0, 7.0])
    case("erf", [Tensor(wide)], Tensor(scipy.special.erf(wide)))
    case("gelu", [Tensor(wide)], Tensor(wide * scipy.special.ndtr(wide)))
    ties = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5])
    case("roundEven", [Tensor(ties)], Tensor(np.rint(ties)))
    for data_type in ("int32", "int64", "int8"):
        y = integers(data_type, 2, 3)
        case("abs", [Tensor(y, data_type)], Tensor(np.abs(y), data_type))
        case("neg", [Tensor(y, data_type)], Tensor(-y, data_type))
        case("sign", [Tensor(y, data_type)], Tensor(np.sign(y), data_type))
        case("relu", [Tensor(y, data_type)], Tensor(np.maximum(y, 0), data_type))
    scalar = Tensor(0.5)
    case("exp", [scalar], Tensor(math.exp(0.5)))

    default = float(np.float32(0.01))
    alpha, beta = 0.25, 0.75
    case("elu", [Tensor(x)], Tensor(functional.elu(of(x)).numpy()))
    elu = functional.elu(of(x), alpha=2.5).numpy()
    case("elu", [Tensor(x), {"alpha": 2.5}], Tensor(elu))
    leaky = Tensor(functional.leaky_relu(of(x), default).numpy())
    case("leakyRelu", [Tensor(x)], leaky, only=FLOAT)
    leaky = Tensor(functional.leaky_relu(of(x), alpha).numpy())
    case("leakyRelu", [Tensor(x), {"alpha": alpha}], leaky)
    case("linear", [Tensor(x)], Tensor(1 * x + 0))
    case("linear", [Tensor(x), {"alpha": alpha, "beta": beta}], Tensor(alpha * x + beta))
    hard = Tensor(np.clip(alpha * x + beta, 0, 1))
    case("hardSigmoid", [Tensor(x), {"alpha": alpha, "beta": beta}], hard)
    hard = Tensor(np.clip(float(np.float32(0.2)) * x + 0.5, 0, 1))
    case("hardSigmoid", [Tensor(x)], hard, only=FLOAT)
    case("clamp", [Tensor(x)], Tensor(x))
    case("clamp", [Tensor(x), {"minValue": -1.5}], Tensor(np.maximum(x, -1.5)))
    both = {"minValue": -0.5, "maxValue": 1.25}
    case("clamp", [Tensor(x), both], Tensor(np.clip(x, -0.5, 1.25)))
    y = integers("uint8", 6)
    limits = {"minValue": -7.5, "maxValue": 50.5}
    case("clamp", [Tensor(y, "uint8"), limits], Tensor(np.clip(y, 0, 50), "uint8"))
    slope = floats(2, 1)
    prelu = Tensor(np.where(x < 0, x * slope, x))
    case("prelu", [Tensor(x), Tensor(slope)], prelu)
    a, b = integers("int32", 3, 1, low=-9, high=9), integers("int32", 1, 2, low=-9, high=9)
    prelu = Tensor(np.where(a < 0, a * b, a), "int32")
    case("prelu", [Tensor(a, "int32"), Tensor(b, "int32")], prelu)


def binary() -> None:
    a, b = floats(2, 1, 3), floats(4, 1)
    b[b == 0] = 1
    functions = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "max": np.maximum,
        "min": np.minimum,
    }
    for name, function in functions.items():
        case(name, [Tensor(a), Tensor(b)], Tensor(function(a, b)))
        case(name, [Tensor(a), Tensor(np.array(1.5))], Tensor(function(a, 1.5)))
    case("max", [Tensor([np.nan, 1.0]), Tensor([1.0, np.nan])], Tensor([np.nan, np.nan]))
    base, power = np.abs(a) + 0.5, floats(4, 1)
    case("pow", [Tensor(base), Tensor(power)], Tensor(np.power(base, power)))
    case("pow", [Tensor([-2.0, -3.0]), Tensor([3.0, 2.0])], Tensor([-8.0, 9.0]))
    for data_type in INTEGERS:
        c = integers(data_type, 2, 3)
        d = integers(data_type, 3)
        d[d == 0] = 7
        with np.errstate(over="ignore"):
            for name, function in functions.items():
                result = function(c, d)
                if name == "div":
                    result = np.array([math.trunc(x) for x in (c / d).flatten()])
                    result = result.astype(data_type).reshape(c.shape)
                case(name, [Tensor(c, data_type), Tensor(d, data_type)], Tensor(result, data_type))
            e = integers(data_type, 3, low=0, high=5)
            args = [Tensor(c, data_type), Tensor(e, data_type)]
            case("pow", args, Tensor(np.power(c, e), data_type))
    big = np.array([2**62 + 1, -(2**62) - 3], np.int64)
    with np.errstate(over="ignore"):
        for name in ("add", "sub", "mul"):
            other = np.array([2**62 - 5, 3], np.int64)
            result = Tensor(functions[name](big, other), "int64")
            case(name, [Tensor(big, "int64"), Tensor(other, "int64")], result)

    comparisons = {
        "equal": np.equal,
        "notEqual": np.not_equal,
        "greater": np.greater,
        "greaterOrEqual": np.greater_equal,
        "lesser": np.less,
        "lesserOrEqual": np.less_equal,
    }
    x = np.array([[1.0, 2.0, 3.0, np.nan]])
    y = np.array([[2.0], [np.nan]])
    c = np.array([2**60, 2**60 + 1, 5], np.int64)
    d = np.array(2**60, np.int64)
    for name, function in comparisons.items():
        case(name, [Tensor(x), Tensor(y)], Tensor(function(x, y), "uint8"))
        result = Tensor(function(c, d), "uint8")
        case(name, [Tensor(c, "int64"), Tensor(d, "int64")], result)
    p, q = np.array([[0, 1, 200]], np.uint8), np.array([[0], [3]], np.uint8)
    for name, function in {
        "logicalAnd": np.logical_and,
        "logicalOr": np.logical_or,
        "logicalXor": np.logical_xor,
    }.items():
        case(name, [Tensor(p, "uint8"), Tensor(q, "uint8")], Tensor(function(p, q), "uint8"))
    case("logicalNot", [Tensor(p, "uint8")], Tensor(np.logical_not(p), "uint8"))
    special = np.array([np.nan, np.inf, -np.inf, 0.0, 3.0])
    case("isNaN", [Tensor(special)], Tensor(np.isnan(special), "uint8"))
    case("isInfinite", [Tensor(special)], Tensor(np.isinf(special), "uint8"))
    condition = np.array([[1], [0]], np.uint8)
    t, f = floats(3), floats(2, 1, 1)
    where = Tensor(np.where(condition != 0, t, f))
    case("where", [Tensor(condition, "uint8"), Tensor(t), Tensor(f)], where)
    t, f = integers("int64", 2, 2), integers("int64", 1)
    where = Tensor(np.where(condition != 0, t, f), "int64")
    args = [Tensor(condition, "uint8"), Tensor(t, "int64"), Tensor(f, "int64")]
    case("where", args, where)


def casts() -> None:
    x = np.array([-3.75, -1.0, -0.5, 0.0, 0.5, 1.99, 100.25])
    for data_type in ("int32", "int64", "int8"):
        case("cast", [Tensor(x), data_type], Tensor(np.trunc(x), data_type))
    case("cast", [Tensor(np.abs(x)), "uint8"], Tensor(np.trunc(np.abs(x)), "uint8"))
    case("cast", [Tensor(x), FLOAT], Tensor(x))
    values = np.array([-1, 127, -128, 300, -(2**31)], np.int64)
    for data_type in INTEGERS:
        args = [Tensor(values, "int64"), data_type]
        case("cast", args, Tensor(values.astype(data_type), data_type))
    # Rounded to double first, the second would become a tie, and round down.
    values = np.array([2**24 + 1, 2**54 + 2**30 + 1, -(2**60)], np.int64)
    result = [2**24, 2**54 + 2**31, -(2**60)]
    cases.append(
        {
            "operator": "cast",
            "args": plain([Tensor(values, "int64"), FLOAT]),
            "outputs": [{"dataType": FLOAT, "shape": [3], "data": [str(x) for x in result]}],
            "only": FLOAT,
        }
    )


def quantization() -> None:
    x = floats(4, 6, scale=4)
    for data_type in ("uint8", "int8", "int32", "uint32"):
        info = np.iinfo(data_type)
        scale = np.full((1, 1), 0.0625)
        zero = np.full((1, 1), 3 if info.min < 0 else 60, data_type)
        result = np.clip(np.rint(x / scale) + zero, info.min, info.max)
        args = [Tensor(x), Tensor(scale), Tensor(zero, data_type)]
        case("quantizeLinear", args, Tensor(result, data_type))
        y = integers(data_type, 4, 6)
        result = (y.astype(np.float64) - zero) * scale
        args = [Tensor(y, data_type), Tensor(scale), Tensor(zero, data_type)]
        case("dequantizeLinear", args, Tensor(result))
    scale = np.abs(floats(2, 3)) + 0.5
    zero = integers("int8", 2, 3, low=-5, high=5)
    blocks = [np.repeat(np.repeat(some, 2, 0), 2, 1) for some in (scale, zero)]
    y = integers("int8", 4, 6)
    args = [Tensor(y, "int8"), Tensor(scale), Tensor(zero, "int8")]
    case("dequantizeLinear", args, Tensor((y.astype(np.float64) - blocks[1]) * blocks[0]))
    scale = np.array([[0.5], [0.125], [0.25], [1.0]])
    zero = integers("int8", 4, 1, low=-5, high=5)
    result = np.clip(np.rint(x / scale) + zero, -128, 127)
    args = [Tensor(x), Tensor(scale), Tensor(zero, "int8")]
    case("quantizeLinear", args, Tensor(result, "int8"))


def movement() -> None:
    x = floats(2, 3, 4)
    y = integers("int64", 2, 3)
    case("concat", [[Tensor(x), Tensor(x[:, :1])], 1], Tensor(np.concatenate([x, x[:, :1]], 1)))
    parts = [Tensor(y, "int64"), Tensor(y[:1], "int64"), Tensor(y, "int64")]
    case("concat", [parts, 0], Tensor(np.concatenate([y, y[:1], y], 0), "int64"))
    expanded = np.broadcast_to(x[:, :1], (5, 2, 3, 4))
    case("expand", [Tensor(x[:, :1]), [5, 2, 3, 4]], Tensor(expanded))
    case("reshape", [Tensor(x), [6, 4]], Tensor(x.reshape(6, 4)))
    case("reshape", [Tensor(np.array([[1.5]])), []], Tensor(1.5))
    case("reverse", [Tensor(x)], Tensor(np.flip(x)))
    case("reverse", [Tensor(x), {"axes": [2, 0]}], Tensor(np.flip(x, (0, 2))))
    case("reverse", [Tensor(x), {"axes": []}], Tensor(x))
    case("slice", [Tensor(x), [0, 1, 0], [2, 2, 3]], Tensor(x[:, 1:3, :3]))
    strides = {"strides": [1, 2, 3]}
    case("slice", [Tensor(x), [1, 0, 0], [1, 3, 4], strides], Tensor(x[1:, ::2, ::3]))
    case("split", [Tensor(x), [1, 3], {"axis": 2}], Tensor(x[..., :1]), Tensor(x[..., 1:]))
    case("split", [Tensor(x), 2], Tensor(x[:1]), Tensor(x[1:]))
    case("tile", [Tensor(y, "int64"), [2, 3]], Tensor(np.tile(y, (2, 3)), "int64"))
    case("transpose", [Tensor(x)], Tensor(x.T))
    permuted = Tensor(np.transpose(x, (1, 2, 0)))
    case("transpose", [Tensor(x), {"permutation": [1, 2, 0]}], permuted)
    for diagonal in (-1, 0, 2):
        options: dict[str, Any] = {"diagonal": diagonal}
        case("triangular", [Tensor(x), options], Tensor(np.triu(x, diagonal)))
        options = {"upper": False, "diagonal": diagonal}
        case("triangular", [Tensor(x), options], Tensor(np.tril(x, diagonal)))
    before, after = [1, 2], [0, 2]
    widths = list(zip(before, after, strict=True))
    z = floats(3, 3)
    case("pad", [Tensor(z), before, after], Tensor(np.pad(z, widths)))
    filled = np.pad(z, widths, constant_values=2.5)
    case("pad", [Tensor(z), before, after, {"value": 2.5}], Tensor(filled))
    for mode, name in (("edge", "edge"), ("reflection", "reflect")):
        padded = Tensor(np.pad(z, widths, name))
        case("pad", [Tensor(z), before, after, {"mode": mode}], padded)
    filled = np.pad(y, widths, constant_values=-7)
    case("pad", [Tensor(y, "int64"), before, after, {"value": -7}], Tensor(filled, "int64"))


def indexing() -> None:
    x = floats(4, 3, 2)
    indices = np.array([[3, -1], [0, -4]], np.int32)
    for axis, type_ in ((0, "int32"), (0, "int64")):
        result = Tensor(np.take(x, indices, axis))
        case("gather", [Tensor(x), Tensor(indices, type_), {"axis": axis}], result)
    case("gather", [Tensor(x), Tensor(np.array(1), "uint32")], Tensor(x[1]))
    result = Tensor(np.take(x, [2, 0], 1))
    case("gather", [Tensor(x), Tensor([2, 0], "uint32"), {"axis": 1}], result)
    result = Tensor(x[[3, 0, 0]])  # clamped
    case("gather", [Tensor(x), Tensor([9, -9, 0], "int32")], result)
    for axis in (0, 2):
        shape = [4, 3, 2]
        shape[axis] = 2
        at = random.integers(-x.shape[axis], x.shape[axis], shape).astype(np.int64)
        (gathered,) = onnx_reference("GatherElements", x, at, axis=axis)
        args = [Tensor(x), Tensor(at, "int64"), {"axis": axis}]
        case("gatherElements", args, Tensor(gathered))
        # Each place is written once.
        along = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(3)])
        at = random.permuted(np.broadcast_to(along, x.shape), axis=axis)
        at = np.take(at, [0, 1], axis).astype(np.int64)
        updates = floats(*at.shape)
        (scattered,) = onnx_reference("ScatterElements", x, at, updates, axis=axis)
        args = [Tensor(x), Tensor(at, "int64"), Tensor(updates), {"axis": axis}]
        case("scatterElements", args, Tensor(scattered))
    for coordinates in ([[0, 2, 1], [-1, 0, 0]], [[[1, 1]], [[3, -3]]], [[2], [1], [2]]):
        at = np.array(coordinates, np.int64)
        (gathered,) = onnx_reference("GatherND", x, at)
        case("gatherND", [Tensor(x), Tensor(at, "int64")], Tensor(gathered))
    for coordinates in ([[0, 2, 1], [-1, 0, 0]], [[[1, 1]], [[3, -3]]], [[2], [0]]):
        at = np.array(coordinates, np.int64)
        updates = floats(*at.shape[:-1], *x.shape[at.shape[-1] :])
        positive = np.where(at < 0, at + np.array(x.shape[: at.shape[-1]]), at)
        (scattered,) = onnx_reference("ScatterND", x, positive, updates)
        args = [Tensor(x), Tensor(at, "int64"), Tensor(updates)]
        case("scatterND", args, Tensor(scattered))


def reductions() -> None:
    x = floats(2, 3, 4)
    positive = np.abs(x) + 0.5
    functions: dict[str, Callable[..., Any]] = {
        "reduceL1": lambda x, axes: np.abs(x).sum(axes),
        "reduceL2": lambda x, axes: np.sqrt((x * x).sum(axes)),
        "reduceLogSum": lambda x, axes: np.log(x.sum(axes)),
        "reduceLogSumExp": scipy.special.logsumexp,
        "reduceMax": np.max,
        "reduceMean": np.mean,
        "reduceMin": np.min,
        "reduceProduct": np.prod,
        "reduceSum": np.sum,
        "reduceSumSquare": lambda x, axes: (x * x).sum(axes),
    }
    for name, function in functions.items():
        data = positive if name == "reduceLogSum" else x
        case(name, [Tensor(data)], Tensor(function(data, (0, 1, 2))))
        case(name, [Tensor(data), {"axes": [2, 0]}], Tensor(function(data, (0, 2))))
        kept = np.expand_dims(function(data, (1,)), 1)
        case(name, [Tensor(data), {"axes": [1], "keepDimensions": True}], Tensor(kept))
        each = function(data[..., None], (3,))
        case(name, [Tensor(data), {"axes": []}], Tensor(each))
    large = np.array([1000.0, 999.0, 998.0])
    result = Tensor(scipy.special.logsumexp(large))
    case("reduceLogSumExp", [Tensor(large)], result)
    for data_type in ("int32", "uint32", "int64", "uint64"):
        y = integers(data_type, 2, 3)
        for name in ("reduceL1", "reduceProduct", "reduceSum", "reduceSumSquare", "reduceMax"):
            with np.errstate(over="ignore"):
                result = np.asarray(functions[name](y, (1,))).astype(data_type)
            case(name, [Tensor(y, data_type), {"axes": [1]}], Tensor(result, data_type))
    y = integers("int8", 2, 3)
    case("reduceMin", [Tensor(y, "int8")], Tensor(y.min(), "int8"))
    ties = np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 0.0]])
    for name, function in (("argMax", np.argmax), ("argMin", np.argmin)):
        case(name, [Tensor(x), 1], Tensor(function(x, 1), "int32"))
        kept = np.expand_dims(function(ties, 1), 1)
        options = {"keepDimensions": True, "outputDataType": "int64"}
        case(name, [Tensor(ties), 1, options], Tensor(kept, "int64"))
        case(name, [Tensor(y, "int8"), 0], Tensor(function(y, 0), "int32"))
    for axis in (0, 1, 2):
        case("softmax", [Tensor(x), axis], Tensor(scipy.special.softmax(x, axis)))
        case("cumulativeSum", [Tensor(x), axis], Tensor(np.cumsum(x, axis)))
    case("softmax", [Tensor([1000.0, 1000.0]), 0], Tensor([0.5, 0.5]))
    flipped = np.flip(np.cumsum(np.flip(x, 1), 1), 1)
    case("cumulativeSum", [Tensor(x), 1, {"reversed": True}], Tensor(flipped))
    case("cumulativeSum", [Tensor(x), 1, {"exclusive": True}], Tensor(np.cumsum(x, 1) - x))
    both = {"exclusive": True, "reversed": True}
    case("cumulativeSum", [Tensor(x), 1, both], Tensor(flipped - x))
    y = integers("int64", 2, 3)
    case("cumulativeSum", [Tensor(y, "int64"), 1], Tensor(np.cumsum(y, 1), "int64"))


def normalizations() -> None:
    x = floats(2, 3, 2, 2)
    epsilon = 2.0**-10
    mean, variance, scale, bias = floats(3), np.abs(floats(3)) + 0.5, floats(3), floats(3)
    result = functional.batch_norm(
        of(x), of(mean), of(variance), of(scale), of(bias), eps=epsilon
    ).numpy()
    options = {"scale": Tensor(scale), "bias": Tensor(bias), "epsilon": epsilon}
    args = [Tensor(x), Tensor(mean), Tensor(variance), options]
    case("batchNormalization", args, Tensor(result))
    nhwc = np.moveaxis(x, 1, 3)
    args = [Tensor(nhwc), Tensor(mean), Tensor(variance), {**options, "axis": 3}]
    case("batchNormalization", args, Tensor(np.moveaxis(result, 1, 3)))
    default = float(np.float32(1e-5))
    result = functional.batch_norm(of(x), of(mean), of(variance), eps=default).numpy()
    args = [Tensor(x), Tensor(mean), Tensor(variance)]
    case("batchNormalization", args, Tensor(result), only=FLOAT)

    result = functional.instance_norm(of(x), weight=of(scale), bias=of(bias), eps=epsilon).numpy()
    case("instanceNormalization", [Tensor(x), options], Tensor(result))
    args = [Tensor(nhwc), {**options, "layout": "nhwc"}]
    case("instanceNormalization", args, Tensor(np.moveaxis(result, 1, 3)))
    result = functional.instance_norm(of(x), eps=default).numpy()
    case("instanceNormalization", [Tensor(x)], Tensor(result), only=FLOAT)

    scale, bias = floats(3, 2, 2), floats(3, 2, 2)
    options = {"scale": Tensor(scale), "bias": Tensor(bias), "epsilon": epsilon}
    result = functional.layer_norm(of(x), (3, 2, 2), of(scale), of(bias), epsilon).numpy()
    case("layerNormalization", [Tensor(x), options], Tensor(result))
    # Axes out of order: scale and bias have their dimensions in that order.
    axes = [3, 1]
    scale, bias = floats(2, 3), floats(2, 3)
    moved = np.transpose(x, (0, 2, 3, 1))
    result = functional.layer_norm(of(moved), (2, 3), of(scale), of(bias), epsilon).numpy()
    options = {"axes": axes, "scale": Tensor(scale), "bias": Tensor(bias), "epsilon": epsilon}
    args = [Tensor(x), options]
    case("layerNormalization", args, Tensor(np.transpose(result, (0, 3, 1, 2))))
    args = [Tensor(x), {"axes": [], "bias": Tensor(1.5)}]
    case("layerNormalization", args, Tensor(np.full(x.shape, 1.5)))


def products() -> None:
    a, b = floats(2, 3), floats(3, 4)
    case("matmul", [Tensor(a), Tensor(b)], Tensor(a @ b))
    a, b = floats(2, 1, 2, 3), floats(3, 3, 2)
    case("matmul", [Tensor(a), Tensor(b)], Tensor(a @ b))
    for a_transposed in (False, True):
        for b_transposed in (False, True):
            a, b, c = floats(2, 3), floats(3, 4), floats(4)
            result = 0.5 * (a @ b) + 1.5 * c
            options = {
                "c": Tensor(c),
                "alpha": 0.5,
                "beta": 1.5,
                "aTranspose": a_transposed,
                "bTranspose": b_transposed,
            }
            args = [
                Tensor(a.T if a_transposed else a),
                Tensor(b.T if b_transposed else b),
                options,
            ]
            case("gemm", args, Tensor(result))
    case("gemm", [Tensor(a), Tensor(b)], Tensor(a @ b))
    case("gemm", [Tensor(a), Tensor(b), {"c": Tensor(2.0)}], Tensor(a @ b + 2))


def to_layout(array: np.ndarray, layout: str, canonical: str) -> np.ndarray:
    return np.transpose(array, [canonical.index(letter) for letter in layout])


def convolutions() -> None:
    for groups, options in (
        (1, {}),
        (2, {"padding": [1, 0, 2, 1], "strides": [2, 1]}),
        (2, {"padding": [2, 2, 0, 0], "dilations": [2, 1]}),
    ):
        x, w, bias = floats(2, 4, 5, 4), floats(6, 4 // groups, 3, 2), floats(6)
        top, bottom, left, right = options.get("padding", [0, 0, 0, 0])
        result = functional.conv2d(
            functional.pad(of(x), (left, right, top, bottom)),
            of(w),
            of(bias),
            stride=tuple(options.get("strides", [1, 1])),
            dilation=tuple(options.get("dilations", [1, 1])),
            groups=groups,
        ).numpy()
        for layout, filter_layout in (
            ("nchw", "oihw"),
            ("nhwc", "ohwi"),
            ("nhwc", "hwio"),
            ("nchw", "ihwo"),
        ):
            args = [
                Tensor(to_layout(x, layout, "nchw")),
                Tensor(to_layout(w, filter_layout, "oihw")),
                {
                    **options,
                    "bias": Tensor(bias),
                    "groups": groups,
                    "inputLayout": layout,
                    "filterLayout": filter_layout,
                },
            ]
            case("conv2d", args, Tensor(to_layout(result, layout, "nchw")))
    x, w = floats(1, 3, 4, 4), floats(3, 1, 2, 2)
    result = functional.conv2d(of(x), of(w), groups=3).numpy()
    case("conv2d", [Tensor(x), Tensor(w), {"groups": 3}], Tensor(result))

    for groups, options in (
        (1, {}),
        (2, {"padding": [1, 1, 1, 1], "strides": [2, 3], "outputPadding": [1, 2]}),
        (2, {"strides": [2, 1], "dilations": [1, 2]}),
    ):
        x, w, bias = floats(1, 4, 3, 2), floats(4, 3, 3, 2), floats(3 * groups)
        padding = options.get("padding", [0, 0, 0, 0])
        result = functional.conv_transpose2d(
            of(x),
            of(w),
            of(bias),
            stride=tuple(options.get("strides", [1, 1])),
            padding=(padding[0], padding[2]),
            output_padding=tuple(options.get("outputPadding", [0, 0])),
            dilation=tuple(options.get("dilations", [1, 1])),
            groups=groups,
        ).numpy()
        for layout, filter_layout in (("nchw", "iohw"), ("nhwc", "ohwi"), ("nhwc", "hwoi")):
            common = {
                "bias": Tensor(bias),
                "groups": groups,
                "inputLayout": layout,
                "filterLayout": filter_layout,
            }
            operands = [
                Tensor(to_layout(x, layout, "nchw")),
                Tensor(to_layout(w, filter_layout, "iohw")),
            ]
            output = Tensor(to_layout(result, layout, "nchw"))
            case("convTranspose2d", [*operands, {**options, **common}], output)
        sizes = {k: v for k, v in options.items() if k != "outputPadding"}
        sizes["outputSizes"] = list(result.shape[2:])
        args = [Tensor(x), Tensor(w), {**sizes, "bias": Tensor(bias), "groups": groups}]
        case("convTranspose2d", args, Tensor(result))


def pools() -> None:
    x = floats(2, 2, 5, 6)
    window = {"windowDimensions": [3, 2], "strides": [2, 2], "padding": [1, 1, 1, 1]}
    average = functional.avg_pool2d(of(x), (3, 2), (2, 2), (1, 1), count_include_pad=False).numpy()
    highest = functional.max_pool2d(of(x), (3, 2), (2, 2), (1, 1)).numpy()
    norm = np.sqrt(
        functional.avg_pool2d(
            functional.pad(of(x) ** 2, (1, 1, 1, 1)), (3, 2), (2, 2), divisor_override=1
        ).numpy()
    )
    nhwc = Tensor(to_layout(x, "nhwc", "nchw"))
    for name, result in (("averagePool2d", average), ("maxPool2d", highest), ("l2Pool2d", norm)):
        case(name, [Tensor(x), window], Tensor(result))
        output = Tensor(to_layout(result, "nhwc", "nchw"))
        case(name, [nhwc, {**window, "layout": "nhwc"}], output)
    case("averagePool2d", [Tensor(x)], Tensor(x.mean((2, 3), keepdims=True)))
    case("maxPool2d", [Tensor(x)], Tensor(x.max((2, 3), keepdims=True)))
    case("l2Pool2d", [Tensor(x)], Tensor(np.sqrt((x * x).sum((2, 3), keepdims=True))))
    highest = functional.max_pool2d(of(x), 2, 1, dilation=(2, 3)).numpy()
    options = {"windowDimensions": [2, 2], "dilations": [2, 3]}
    case("maxPool2d", [Tensor(x), options], Tensor(highest))
    ceil = functional.max_pool2d(of(x), 3, 2, ceil_mode=True).numpy()
    options = {"windowDimensions": [3, 3], "strides": [2, 2]}
    for rounding in ("outputShapeRounding", "roundingType"):
        case("maxPool2d", [Tensor(x), {**options, rounding: "ceil"}], Tensor(ceil))
    sizes = {"outputSizes": list(ceil.shape[2:])}
    case("maxPool2d", [Tensor(x), {**options, **sizes}], Tensor(ceil))
    average = functional.avg_pool2d(of(x), 3, 2, ceil_mode=True, count_include_pad=False).numpy()
    case("averagePool2d", [Tensor(x), {**options, **sizes}], Tensor(average))
    y = integers("int64", 1, 1, 4, 4)
    result = np.max([y[..., i : i + 3, j : j + 3] for i in (0, 1) for j in (0, 1)], 0)
    options = {"windowDimensions": [2, 2]}
    case("maxPool2d", [Tensor(y, "int64"), options], Tensor(result, "int64"))


def resampling() -> None:
    x = floats(1, 2, 3, 4)
    for sizes in ([6, 8], [5, 3], [2, 7]):
        linear = functional.interpolate(of(x), sizes, mode="bilinear", align_corners=False)
        options = {"mode": "linear", "sizes": sizes}
        case("resample2d", [Tensor(x), options], Tensor(linear.numpy()))
        (nearest,) = onnx_reference(
            "Resize",
            x,
            None,
            None,
            np.array([1, 2, *sizes], np.int64),
            mode="nearest",
            coordinate_transformation_mode="half_pixel",
            nearest_mode="round_prefer_floor",
        )
        case("resample2d", [Tensor(x), {"sizes": sizes}], Tensor(nearest))
    nhwc = Tensor(to_layout(x, "nhwc", "nchw"))
    linear = functional.interpolate(of(x), [6, 8], mode="bilinear", align_corners=False).numpy()
    options = {"mode": "linear", "scales": [2, 2.0], "axes": [1, 2]}
    case("resample2d", [nhwc, options], Tensor(to_layout(linear, "nhwc", "nchw")))


def torch_network(kind: type, x: np.ndarray, hidden_size: int, directions: int) -> tuple:
    """A network of PyTorch with short weights; gates in PyTorch's order."""
    network = kind(x.shape[2], hidden_size, bidirectional=directions == 2).double()
    parameters: dict[str, list[np.ndarray]] = {
        "weight_ih": [],
        "weight_hh": [],
        "bias_ih": [],
        "bias_hh": [],
    }
    for name, parameter in network.named_parameters():
        values = floats(*parameter.shape, scale=1)
        parameter.data = of(values)
        parameters[name.split("_l0")[0]].append(values)
    return network, *(np.stack(parameters[name]) for name in parameters)


def reorder(array: np.ndarray, order: list[int], axis: int = 1) -> np.ndarray:
    gates = np.split(array, len(order), axis)
    return np.concatenate([gates[i] for i in order], axis)


def recurrent_networks() -> None:
    x, hidden_size = floats(3, 2, 2), 3
    for directions, direction in ((1, "forward"), (2, "both")):
        h, c = floats(directions, 2, hidden_size), floats(directions, 2, hidden_size)
        for kind, name in ((torch.nn.GRU, "gru"), (torch.nn.LSTM, "lstm")):
            network, *parameters = torch_network(kind, x, hidden_size, directions)
            states = of(h) if name == "gru" else (of(h), of(c))
            sequence, last = network(of(x), states)
            steps = sequence.detach().numpy().reshape(3, 2, directions, hidden_size)
            steps = np.moveaxis(steps, 2, 1)
            last = [last] if name == "gru" else list(last)
            outputs = [Tensor(one.detach().numpy()) for one in last] + [Tensor(steps)]
            # PyTorch: r z n, and i f g o.
            orders = (
                {"rzn": [0, 1, 2], "zrn": [1, 0, 2]}
                if name == "gru"
                else {"ifgo": [0, 1, 2, 3], "iofg": [0, 3, 1, 2]}
            )
            for layout, order in orders.items():
                w, r, b, rb = (Tensor(reorder(some, order)) for some in parameters)
                options = {
                    "bias": b,
                    "recurrentBias": rb,
                    "initialHiddenState": Tensor(h),
                    "direction": direction,
                    "layout": layout,
                    "returnSequence": True,
                }
                if name == "lstm":
                    options["initialCellState"] = Tensor(c)
                case(name, [Tensor(x), w, r, 3, hidden_size, options], *outputs)
    # Backward is forward on the reversed sequence.
    network, w, r, b, rb = torch_network(torch.nn.GRU, x, hidden_size, 1)
    sequence, last = network(of(x[::-1].copy()))
    options = {
        "bias": Tensor(b),
        "recurrentBias": Tensor(rb),
        "direction": "backward",
        "layout": "rzn",
        "returnSequence": True,
    }
    steps = sequence.detach().numpy()[::-1].reshape(3, 1, 2, hidden_size)
    args = [Tensor(x), Tensor(w), Tensor(r), 3, hidden_size, options]
    case("gru", args, Tensor(last.detach().numpy()), Tensor(steps))


def recurrent_cells() -> None:
    x, h, c, size = floats(2, 3), floats(2, 2), floats(2, 2), 2
    sigmoid = scipy.special.expit
    w, r, b, rb = floats(6, 3), floats(6, 2), floats(6), floats(6)
    for reset_after in (True, False):
        for activation, name in ((np.tanh, "tanh"), (lambda x: np.maximum(x, 0), "relu")):
            z, reset, _ = np.split(sigmoid(x @ w.T + b + h @ r.T + rb), 3, 1)
            wn, rn, bn, rbn = w[4:], r[4:], b[4:], rb[4:]
            if reset_after:
                n = activation(x @ wn.T + bn + reset * (h @ rn.T + rbn))
            else:
                n = activation(x @ wn.T + bn + (reset * h) @ rn.T + rbn)
            result = z * h + (1 - z) * n
            options = {
                "bias": Tensor(b),
                "recurrentBias": Tensor(rb),
                "resetAfter": reset_after,
                "activations": ["sigmoid", name],
            }
            args = [Tensor(x), Tensor(w), Tensor(r), Tensor(h), size, options]
            case("gruCell", args, Tensor(result))
    w, r, b, rb, p = floats(8, 3), floats(8, 2), floats(8), floats(8), floats(6)
    for with_peephole in (False, True):
        i, o, f, g = np.split(x @ w.T + b + h @ r.T + rb, 4, 1)
        pi, po, pf = np.split(p if with_peephole else 0 * p, 3)
        # In WebNN all three look at the cell before the step.
        i, o, f = sigmoid(i + pi * c), sigmoid(o + po * c), sigmoid(f + pf * c)
        cell = f * c + i * np.tanh(g)
        outputs = [Tensor(o * np.tanh(cell)), Tensor(cell)]
        options = {"bias": Tensor(b), "recurrentBias": Tensor(rb)}
        if with_peephole:
            options["peepholeWeight"] = Tensor(p)
        operands = [Tensor(some) for some in (x, w, r, h, c)]
        case("lstmCell", [*operands, size, options], *outputs)
        order = [0, 2, 3, 1]  # i f g o
        options = {
            **options,
            "bias": Tensor(reorder(b, order, 0)),
            "recurrentBias": Tensor(reorder(rb, order, 0)),
            "layout": "ifgo",
        }
        operands[1:3] = [Tensor(reorder(w, order, 0)), Tensor(reorder(r, order, 0))]
        case("lstmCell", [*operands, size, options], *outputs)


def main() -> None:
    elementwise()
    binary()
    casts()
    quantization()
    movement()
    indexing()
    reductions()
    normalizations()
    products()
    convolutions()
    pools()
    resampling()
    recurrent_networks()
    recurrent_cells()
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases)
    path = pathlib.Path(__file__).with_name("webnn_cases.json")
    path.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
