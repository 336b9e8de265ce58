"""Convolutions of dynamically quantized images, as onnxruntime.quantization writes them, beside the
reference of onnx: of bytes or of floats, as is faster, with the same results."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import tenon
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from traces import profiled


def node(op: str, inputs: str, outputs: str, **attributes) -> NodeProto:
    names = [name.strip("_") for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), **attributes)


class Weights:
    """Integers with one scale and one zero point, and a bias for each output channel."""

    def __init__(self, dtype: type, zero: int, shape: tuple[int, ...], seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        limits = np.iinfo(dtype)
        self.w = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        channels = (1, shape[0], *[1] * (len(shape) - 2))
        self.constants = {
            "w": self.w,
            "wz": np.array(zero, dtype),
            "ws": np.array(0.004, np.float32),
            "b": random.standard_normal(channels).astype(np.float32),
            "half": np.array(0.5, np.float32),
        }


def convolution(x: str, y: str, **attributes) -> list[NodeProto]:
    """The form of today's quantizers: the bias is added to floats."""
    return [
        node("DynamicQuantizeLinear", x, f"{y}q {y}s {y}z"),
        node("Mul", f"{y}s ws", f"{y}ss"),
        node("ConvInteger", f"{y}q w {y}z wz", f"{y}i", **attributes),
        node("Cast", f"{y}i", f"{y}f", to=TensorProto.FLOAT),
        node("Mul", f"{y}f {y}ss", f"{y}m"),
        node("Add", f"{y}m b", y),
    ]


def with_integer_bias(x: str, y: str, **attributes) -> list[NodeProto]:
    """The form of the first quantizers: the bias is quantized as the sums are."""
    return [
        node("DynamicQuantizeLinear", x, f"{y}q {y}s {y}z"),
        node("Mul", f"{y}s ws", f"{y}ss"),
        node("ConvInteger", f"{y}q w {y}z wz", f"{y}i", **attributes),
        node("Div", f"b {y}ss", f"{y}b0"),
        node("Add", f"{y}b0 half", f"{y}b1"),
        node("Floor", f"{y}b1", f"{y}b2"),
        node("Cast", f"{y}b2", f"{y}b3", to=TensorProto.INT32),
        node("Add", f"{y}i {y}b3", f"{y}c"),
        node("Cast", f"{y}c", f"{y}f", to=TensorProto.FLOAT),
        node("Mul", f"{y}ss {y}f", y),
    ]


def model_of(nodes: list[NodeProto], shape: tuple[int, ...], constants: dict) -> bytes:
    used = {name for n in nodes for name in n.input}
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v, k) for k, v in constants.items() if k in used],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


CASES = {
    "uint8, zero point within": (np.uint8, 113, (16, 8, 3, 3), (1, 8, 13, 11), {"pads": [1] * 4}),
    "int8": (np.int8, 0, (32, 32, 3, 3), (2, 32, 14, 14), {"pads": [1] * 4}),
    "int8, zero point": (np.int8, -7, (24, 40, 1, 1), (1, 40, 9, 9), {}),
    "strides": (np.uint8, 128, (16, 16, 5, 5), (1, 16, 20, 17), {"strides": [2, 2]}),
    "depthwise": (np.uint8, 120, (32, 1, 3, 3), (1, 32, 12, 12), {"pads": [1] * 4, "group": 32}),
    "groups": (np.int8, 0, (16, 4, 3, 3), (1, 8, 10, 10), {"group": 2, "dilations": [2, 2]}),
    "sequences": (np.uint8, 99, (16, 8, 5), (1, 8, 60), {"pads": [2, 2]}),
    "frames": (np.int8, 0, (8, 4, 2, 3, 3), (1, 4, 5, 9, 9), {}),
}


@pytest.mark.parametrize("form", [convolution, with_integer_bias])
@pytest.mark.parametrize("name", CASES)
def test_gives_the_same_results(name: str, form, tmp_path: pathlib.Path) -> None:
    dtype, zero, weights, shape, attributes = CASES[name]
    constants = Weights(dtype, zero, weights).constants
    model = model_of(form("x", "y", **attributes), shape, constants)
    feeds = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    expected = ReferenceEvaluator(model).run(None, feeds)[0]
    (got,), ran = profiled(model, feeds, tmp_path)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=2e-6 * np.abs(expected).max())
    assert ("ConvInteger" in ran) != ("DynamicFakeQuantize" in ran or "DequantizeLinear" in ran)


def test_a_chain_keeps_its_layout(tmp_path: pathlib.Path) -> None:
    """Convolutions one after another, and two that share a quantized image."""
    constants = Weights(np.int8, 0, (32, 32, 3, 3)).constants
    pads = [1] * 4
    nodes = [
        *convolution("x", "a", pads=pads),
        node("Relu", "a", "r"),
        *convolution("r", "d", pads=pads),
        node("ConvInteger", "dq w dz wz", "ei", pads=pads),
        node("Cast", "ei", "ef", to=TensorProto.FLOAT),
        node("Mul", "ef dss", "e"),
        node("Add", "d e", "y"),
    ]
    model = model_of(nodes, (1, 32, 24, 24), constants)
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 32, 24, 24)).astype(np.float32)}
    expected = ReferenceEvaluator(model).run(None, feeds)[0]
    (got,), ran = profiled(model, feeds, tmp_path)
    # A tie that is rounded the other way is one step of an input: 127 * 0.004 * its scale.
    np.testing.assert_allclose(got, expected, atol=5e-3 * np.abs(expected).max())
    assert np.mean(np.abs(got - expected)) < 1e-4 * np.abs(expected).max()
    if "ConvInteger" not in ran:
        assert ran.count("NchwcConv") == 3


def test_what_is_no_such_convolution_stays(tmp_path: pathlib.Path) -> None:
    """Sums that something else reads, and scales that are no constants."""
    constants = Weights(np.int8, 0, (16, 16, 3, 3)).constants | {"one": np.ones(1, np.int32)}
    nodes = convolution("x", "m")
    sums = [*nodes, node("Add", "mi one", "h"), node("Cast", "h", "g", to=TensorProto.FLOAT)]
    sums.append(node("Add", "m g", "y"))
    shape = (1, 16, 8, 8)
    feeds = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    model = model_of(sums, shape, constants)
    expected = ReferenceEvaluator(model).run(None, feeds)[0]
    (got,), ran = profiled(model, feeds, tmp_path)
    assert "ConvInteger" in ran
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_integers_are_kept_where_they_are_wanted(tmp_path: pathlib.Path) -> None:
    constants = Weights(np.int8, 0, (16, 16, 3, 3)).constants
    model = model_of(convolution("x", "y"), (1, 16, 8, 8), constants)
    options = tenon.SessionOptions()
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    feeds = {"x": np.ones((1, 16, 8, 8), np.float32)}
    _, ran = profiled(model, feeds, tmp_path, options)
    assert "ConvInteger" in ran
