"""Gradients that QuantizeLinear passes straight through; test_gradient_of_torch.py has others."""

from __future__ import annotations

import numpy as np
import pytest
import tenon
from onnx import TensorProto, parser

TRAINING = "ai.onnx.preview.training"
HEADER = (
    '<ir_version: 13, opset_import: ["": 25, "com.microsoft": 1, "ai.onnx.preview.training": 1]>\n'
)
RANGES = {
    "UINT2": (0, 3),
    "INT2": (-2, 1),
    "UINT4": (0, 15),
    "INT4": (-8, 7),
    "UINT8": (0, 255),
    "INT8": (-128, 127),
    "UINT16": (0, 65535),
    "INT16": (-32768, 32767),
}
X = np.linspace(-3, 3, 25, dtype=np.float32).reshape(5, 5) ** 5 / 3
SCALE = np.array([0.4, 0.003, 0.01, 1, 0.2], np.float32)


def session_of(nodes: str, outputs: str, gradient: str) -> tenon.InferenceSession:
    declared = "float[5, 5] x, float[5] scale, float[5, 5] other"
    results = ", ".join(f"float {output}" for output in outputs.split())
    text = f"{HEADER}g ({declared}) => ({results}) {{\n{nodes}\n{gradient}\n}}"
    model = parser.parse_model(text)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return tenon.InferenceSession(model.SerializeToString())


def run(nodes: str, outputs: str = "dx ds", inputs: str = "x, scale") -> list[np.ndarray]:
    gradient = f'dx, ds = {TRAINING}.Gradient <xs=["x", "scale"], y="y"> ({inputs})'
    session = session_of(nodes, outputs, gradient)
    return session.run(outputs.split(), {"x": X, "scale": SCALE, "other": X[::-1].copy()})


def straight(low: int, high: int, x: np.ndarray = X) -> tuple[np.ndarray, np.ndarray]:
    """The gradients of y = the sum of what comes back, for zero points of 0."""
    ratio = x.astype(float) / SCALE
    level = np.round(x / SCALE)
    is_inside = (level >= low) & (level <= high)
    of_scale = np.where(is_inside, level - ratio, np.clip(level, low, high))
    return is_inside.astype(float), of_scale.sum(0)


@pytest.mark.parametrize("name", RANGES)
def test_every_type_of_integers(name: str) -> None:
    to = getattr(TensorProto, name)
    dx, ds = run(
        f"""q = QuantizeLinear <axis=-1, output_dtype={to}> (x, scale)
        y = DequantizeLinear <axis=-1> (q, scale)"""
    )
    of_x, of_scale = straight(*RANGES[name])
    assert of_x.any()
    assert "16" in name or not of_x.all()
    np.testing.assert_allclose(dx, of_x, rtol=1e-6)
    # What both operators add is a difference of large numbers.
    magnitude = np.clip(np.abs(X / SCALE), 0, max(RANGES[name])).sum(0).max()
    np.testing.assert_allclose(ds, of_scale, rtol=1e-5, atol=2e-7 * magnitude)


def test_the_domain_of_microsoft() -> None:
    dx, ds = run(
        """zero = Constant <value = int8[5] {0, 0, 0, 0, 0}> ()
        q = com.microsoft.QuantizeLinear <axis=1> (x, scale, zero)
        y = com.microsoft.DequantizeLinear <axis=1> (q, scale, zero)"""
    )
    of_x, of_scale = straight(-128, 127)
    np.testing.assert_allclose(dx, of_x, rtol=1e-6)
    np.testing.assert_allclose(ds, of_scale, rtol=1e-5)


def test_other_readers_of_the_integers_pass_nothing_on() -> None:
    dx, _ = run(
        """q = QuantizeLinear <axis=1> (x, scale)
        whole = Cast <to=1> (q)
        back = DequantizeLinear <axis=1> (q, scale)
        raised = Pow (other, q)
        y = Sum (back, whole, raised)"""
    )
    np.testing.assert_allclose(dx, straight(0, 255)[0], rtol=1e-6)


def test_at_another_place() -> None:
    dx, ds = run(
        """q = QuantizeLinear <axis=1> (x, scale)
        y = DequantizeLinear <axis=1> (q, scale)""",
        inputs="other, scale",
    )
    of_x, of_scale = straight(0, 255, X[::-1])
    np.testing.assert_allclose(dx, of_x, rtol=1e-6)
    np.testing.assert_allclose(ds, of_scale, rtol=1e-5)


def test_weights_that_are_integers_train_their_scales() -> None:
    weights = np.arange(-12, 13, dtype=np.int8).reshape(5, 5)
    _, ds = run(
        f"""w = Constant <value = int8[5, 5] {{{", ".join(map(str, weights.ravel()))}}}> ()
        wide = DequantizeLinear <axis=0> (w, scale)
        y = MatMul (x, wide)"""
    )
    expected = (X.astype(float).sum(0)[:, None] * weights).sum(1)
    np.testing.assert_allclose(ds, expected, rtol=1e-4, atol=1e-3)


def test_types_without_a_gradient_are_named() -> None:
    with pytest.raises(Exception, match=r"QuantizeLinear.*no gradient yet for float8e4m3fn"):
        run(
            f"""q = QuantizeLinear <axis=1, output_dtype={TensorProto.FLOAT8E4M3FN}> (x, scale)
            y = DequantizeLinear <axis=1> (q, scale)"""
        )


def test_a_network_in_qdq_format_is_trained() -> None:
    """Steps of gradient descent on weights that are quantized in the graph."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((64, 5)).astype(np.float32)
    target = inputs @ (np.round(rng.uniform(-1, 1, (5, 5)) * 7) / 7).astype(np.float32)
    declared = "float[64, 5] a, float[64, 5] t, float[5, 5] w"
    text = f"""{HEADER}g ({declared}) => (float loss, float dw) {{
        scale = Constant <value_float={1 / 7}> ()
        q = QuantizeLinear <output_dtype={TensorProto.INT4}> (w, scale)
        back = DequantizeLinear (q, scale)
        y = MatMul (a, back)
        error = Sub (y, t)
        squares = Mul (error, error)
        loss = ReduceMean <keepdims=0> (squares)
        dw = {TRAINING}.Gradient <xs=["w"], y="loss"> (w)
    }}"""
    model = parser.parse_model(text)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    session = tenon.InferenceSession(model.SerializeToString())
    weights = np.zeros((5, 5), np.float32)
    losses = []
    for _ in range(200):
        loss, slope = session.run(None, {"a": inputs, "t": target, "w": weights})
        weights -= np.float32(0.2) * slope
        losses.append(float(loss))
    assert losses[0] > 0.5
    assert losses[-1] < 1e-6, "the weights are multiples of the scale, so rounding finds them"
