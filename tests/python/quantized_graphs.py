"""Makes graphs whose values are quantized between operators, and runs them."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import onnxruntime
import tenon
from onnx import TensorProto, helper, numpy_helper
from traces import profiled

# The three ways in which quantizers choose the integers of activations.
FORMS = {
    "uint8": (np.uint8, 113),
    "symmetric int8": (np.int8, 0),
    "uint8 around 128": (np.uint8, 128),
}


class Graph:
    """Makes a graph whose values are quantized between operators."""

    def __init__(self, form: str, seed: int = 0) -> None:
        self.dtype, self.zero = FORMS[form]
        self.random = np.random.default_rng(seed)
        self.nodes: list = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: dict[str, tuple] = {}
        self.feeds: dict[str, np.ndarray] = {}

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [output], output, **attributes))
        return output

    def split(self, x: str, outputs: int, **attributes: Any) -> list[str]:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node("Split", [x], names, names[0], **attributes))
        return names

    def parameters(self, scale: float, zero: int | None = None) -> tuple[str, str]:
        zero = self.zero if zero is None else zero
        return self.constant(np.float32(scale)), self.constant(self.dtype(zero))

    def quantize(self, x: str, scale: float, zero: int | None = None) -> str:
        return self.op("QuantizeLinear", x, *self.parameters(scale, zero))

    def dequantize(self, x: str, scale: float, zero: int | None = None) -> str:
        return self.op("DequantizeLinear", x, *self.parameters(scale, zero))

    def between(self, x: str, scale: float) -> str:
        return self.dequantize(self.quantize(x, scale), scale)

    def input(self, *shape: int, scale: float = 0.03, zero: int | None = None) -> str:
        """A dequantized input of the model."""
        name = f"x{len(self.inputs)}"
        limits = np.iinfo(self.dtype)
        self.feeds[name] = self.random.integers(limits.min, limits.max + 1, shape, self.dtype)
        self.inputs[name] = shape
        return self.dequantize(name, scale, zero)

    def weights(self, *shape: int, axis: int | None = None, dtype: type = np.int8) -> str:
        """Dequantized weights, with a scale for each index of `axis` if that is given."""
        limits = np.iinfo(dtype)
        values = self.random.integers(limits.min, limits.max + 1, shape, dtype)
        count = () if axis is None else (shape[axis],)
        scales = self.random.uniform(0.001, 0.01, count).astype(np.float32)
        zeros = np.zeros(count, dtype) if dtype == np.int8 else np.full(count, 131, dtype)
        attributes = {} if axis is None else {"axis": axis}
        names = (self.constant(values), self.constant(scales), self.constant(zeros))
        return self.op("DequantizeLinear", *names, **attributes)

    def bias(self, size: int, scale: float = 1e-4) -> str:
        """A dequantized bias of 32 bits."""
        values = self.random.integers(-20000, 20000, size, np.int32)
        return self.op("DequantizeLinear", self.constant(values), self.constant(np.float32(scale)))

    def model(self, result: str) -> bytes:
        is_float = self.nodes[-1].op_type != "QuantizeLinear"
        kind = (
            TensorProto.FLOAT if is_float else helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        )
        byte = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        graph = helper.make_graph(
            self.nodes,
            "graph",
            [helper.make_tensor_value_info(n, byte, s) for n, s in self.inputs.items()],
            [helper.make_tensor_value_info(result, kind, None)],
            [numpy_helper.from_array(v, n) for n, v in self.constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        return model.SerializeToString()


def conv(
    g: Graph,
    shape: tuple = (2, 6, 9, 9),
    out: int = 8,
    kernel: tuple = (3, 3),
    weights: dict | None = None,
    bias: str | None = "integers",
    **attributes: Any,
) -> str:
    x = g.input(*shape)
    w = g.weights(out, shape[1] // attributes.get("group", 1), *kernel, **(weights or {}))
    inputs = [x, w]
    if bias == "integers":
        inputs.append(g.bias(out))
    elif bias == "floats":
        inputs.append(g.constant(g.random.standard_normal(out).astype(np.float32)))
    return g.op("Conv", *inputs, **attributes)


def clipped(g: Graph, x: str, low: float, high: float) -> str:
    return g.op("Clip", x, g.constant(np.float32(low)), g.constant(np.float32(high)))


def run(
    model: bytes, feeds: dict, integers: bool, folder: pathlib.Path, **config: str
) -> tuple[np.ndarray, set[str]]:
    """The result, and the operators that ran. `config`: entries of `session.`."""
    options = tenon.SessionOptions()
    options.add_session_config_entry("session.disable_quant_qdq", str(int(not integers)))
    for name, value in config.items():
        options.add_session_config_entry(f"session.{name}", value)
    (result,), ran = profiled(model, feeds, folder, options)
    return result, set(ran)


def run_genuine(model: bytes, feeds: dict) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options).run(None, feeds)[0]


def assert_near(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    if actual.dtype == np.float32:
        # A bias is rounded to the scale of the sums.
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-4)
    else:
        np.testing.assert_allclose(actual.astype(np.int32), expected.astype(np.int32), atol=1)
        # Ties aside, which are rare.
        assert np.mean(actual != expected) < 0.02
