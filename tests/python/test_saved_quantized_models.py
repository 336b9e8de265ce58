"""Saved models have QLinearConv and QLinearMatMul where those mean what was quantized."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
import tenon
from onnx.numpy_helper import from_array
from onnx.reference import ReferenceEvaluator
from saturation import exact_session

X_SCALE = np.float32(0.05)


class Operand:
    """A DequantizeLinear of an input or a constant."""

    def __init__(
        self,
        name: str,
        scale: np.ndarray,
        zero: np.ndarray | None,
        values: np.ndarray | None = None,
    ) -> None:
        self.constants = [from_array(np.asarray(scale), f"{name}_scale")]
        inputs = [f"{name}_q", f"{name}_scale"]
        if zero is not None:
            self.constants.append(from_array(np.asarray(zero), f"{name}_zero"))
            inputs.append(f"{name}_zero")
        if values is not None:
            self.constants.append(from_array(values, f"{name}_q"))
        axis = {"axis": 0} if np.ndim(scale) else {}
        self.node = onnx.helper.make_node("DequantizeLinear", inputs, [name], **axis)


def quantized_model(
    operator: str, operands: Sequence[Operand], x: np.ndarray, **attributes: int
) -> onnx.ModelProto:
    names = [operand.node.output[0] for operand in operands]
    zero = np.array(3, x.dtype)
    nodes = [operand.node for operand in operands]
    nodes.append(onnx.helper.make_node(operator, names, ["sum"], **attributes))
    nodes.append(onnx.helper.make_node("QuantizeLinear", ["sum", "y_scale", "y_zero"], ["y"]))
    element = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = onnx.helper.make_graph(
        nodes,
        "quantized",
        [onnx.helper.make_tensor_value_info("x_q", element, x.shape)],
        [onnx.helper.make_tensor_value_info("y", element, None)],
        [constant for operand in operands for constant in operand.constants]
        + [from_array(np.array(0.4, np.float32), "y_scale"), from_array(zero, "y_zero")],
    )
    opset = onnx.helper.make_opsetid("", 21)
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10)


def saved(model: onnx.ModelProto, path: pathlib.Path, level: str = "ORT_ENABLE_ALL") -> list[str]:
    """Its operators."""
    options = tenon.SessionOptions()
    options.graph_optimization_level = getattr(tenon.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(path)
    tenon.InferenceSession(model.SerializeToString(), options)
    written = onnx.load(path)
    onnx.checker.check_model(written, full_check=True)
    return [node.op_type for node in written.graph.node]


def check_same(
    model: onnx.ModelProto, path: pathlib.Path, x: np.ndarray, open_genuine=exact_session
) -> None:
    (expected,) = ReferenceEvaluator(model).run(None, {"x_q": x})
    genuine = open_genuine(path.read_bytes(), onnxruntime.SessionOptions())
    for session in (tenon.InferenceSession(str(path)), genuine):
        (y,) = session.run(None, {"x_q": x})
        assert y.dtype == expected.dtype
        # Sums are rounded in another place.
        assert np.abs(y.astype(int) - expected.astype(int)).max() <= 1
        assert (y != expected).mean() < 0.05


def image(dtype: type) -> np.ndarray:
    limits = np.iinfo(dtype)
    size = (2, 4, 6, 7)
    return np.random.default_rng(0).integers(limits.min, limits.max + 1, size).astype(dtype)


def conv_operands(
    x: np.ndarray, *, channels: bool, bias: str = "", zero: np.ndarray | None = None
) -> list[Operand]:
    rng = np.random.default_rng(1)
    w = rng.integers(-128, 128, (5, 4, 3, 3)).astype(np.int8)
    w_scale = rng.uniform(0.01, 0.03, 5).astype(np.float32) if channels else np.float32(0.02)
    x_zero = None if zero is None else zero.astype(x.dtype)
    operands = [Operand("x", X_SCALE, x_zero), Operand("w", w_scale, None, w)]
    if not bias:
        return operands
    scale = X_SCALE * w_scale * np.float32(2 if bias == "of another scale" else 1)
    values = rng.integers(-5000, 5000, 5).astype(np.int32)
    shift = {"zero": np.zeros_like(scale, np.int32), "shifted": np.full_like(scale, 7, np.int32)}
    operands.append(Operand("b", scale, shift.get(bias), values))
    return operands


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("bias", ["", "plain", "zero"])
def test_convolutions(bias: str, dtype: type, channels: bool, tmp_path: pathlib.Path) -> None:
    x = image(dtype)
    operands = conv_operands(x, channels=channels, bias=bias, zero=np.array(9))
    model = quantized_model("Conv", operands, x, group=1)
    path = tmp_path / "saved.onnx"
    assert saved(model, path) == ["QLinearConv"]
    check_same(model, path, x)


def test_zero_points_that_are_left_out(tmp_path: pathlib.Path) -> None:
    x = image(np.uint8)
    model = quantized_model("Conv", conv_operands(x, channels=True), x)
    path = tmp_path / "saved.onnx"
    assert saved(model, path) == ["QLinearConv"]
    check_same(model, path, x)


@pytest.mark.parametrize("bias", ["of another scale", "shifted"])
def test_a_bias_that_the_operator_cannot_have(bias: str, tmp_path: pathlib.Path) -> None:
    x = image(np.uint8)
    operands = conv_operands(x, channels=True, bias=bias, zero=np.array(9))
    model = quantized_model("Conv", operands, x)
    path = tmp_path / "saved.onnx"
    assert "Conv" in saved(model, path)
    check_same(model, path, x, onnxruntime.InferenceSession)  # which does not round products


def test_basic_saves_what_was_given(tmp_path: pathlib.Path) -> None:
    x = image(np.uint8)
    model = quantized_model("Conv", conv_operands(x, channels=False), x)
    operators = saved(model, tmp_path / "saved.onnx", "ORT_ENABLE_BASIC")
    assert sorted(operators) == ["Conv", "DequantizeLinear", "DequantizeLinear", "QuantizeLinear"]


def test_products(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 256, (3, 6)).astype(np.uint8)
    w = rng.integers(-128, 128, (6, 5)).astype(np.int8)
    operands = [
        Operand("x", X_SCALE, np.array(128, np.uint8)),
        Operand("w", np.float32(0.02), np.array(0, np.int8), w),
    ]
    model = quantized_model("MatMul", operands, x)
    path = tmp_path / "saved.onnx"
    assert saved(model, path) == ["QLinearMatMul"]
    check_same(model, path, x)
