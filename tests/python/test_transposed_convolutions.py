"""Transposed convolutions, whose strides of 1 make them convolutions. Beside onnxruntime."""

from __future__ import annotations

import pathlib

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from traces import profiled


def transposed(
    random: np.random.Generator, strides: list[int], **attributes: list[int] | str
) -> tuple[onnx.ModelProto, np.ndarray]:
    """A normalized and activated ConvTranspose of random channels, taps and pads, and its input."""
    rank = len(strides)
    group = int(random.choice([1, 1, 2, 6]))
    width = int(random.integers(1, 4))
    kernel = [int(k) for k in random.integers(1, 6, rank)]
    dilations = [int(d) for d in random.integers(1, 3, rank)]
    reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    size = [int(n) + r for n, r in zip(random.integers(5, 12, rank), reach, strict=True)]
    channels = group * width
    floats = {
        "w": random.standard_normal((6, width, *kernel)),
        "b": random.standard_normal(channels),
        **{name: random.standard_normal(channels) for name in ("gamma", "beta", "mean")},
        "variance": random.random(channels) + 0.5,
    }
    inputs = ["x", "w", "b"][: int(random.integers(2, 4))]
    if "output_shape" in attributes:
        attributes["output_shape"] = size
    if not attributes:
        attributes["pads"] = [int(random.integers(0, r + 1)) for r in 2 * reach]
    nodes = [
        helper.make_node(
            "ConvTranspose",
            inputs,
            ["c"],
            strides=strides,
            dilations=dilations,
            group=group,
            **attributes,
        ),
        helper.make_node("BatchNormalization", ["c", "gamma", "beta", "mean", "variance"], ["n"]),
        helper.make_node("Relu", ["n"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "transposed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6, *size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v.astype(np.float32), name) for name, v in floats.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, random.standard_normal((2, 6, *size)).astype(np.float32)


def check(model: onnx.ModelProto, x: np.ndarray, folder: pathlib.Path) -> list[str]:
    """Compares with onnxruntime, and returns the operators that ran."""
    content = model.SerializeToString()
    reference = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (expected,) = reference.run(None, {"x": x})
    (y,), ran = profiled(content, {"x": x}, folder)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=0, atol=2e-6 * np.abs(expected).max())
    return ran


@pytest.mark.parametrize("seed", range(30))
def test_strides_of_1_make_a_convolution(seed: int, tmp_path: pathlib.Path) -> None:
    random = np.random.default_rng(seed)
    model, x = transposed(random, [1] * (1 + seed % 3))
    assert not any("Transpose" in operator for operator in check(model, x, tmp_path))


@pytest.mark.parametrize("seed", range(30))
def test_other_strides(seed: int, tmp_path: pathlib.Path) -> None:
    random = np.random.default_rng(seed)
    model, x = transposed(random, [int(s) for s in random.integers(2, 4, 1 + seed % 3)])
    assert "ConvTranspose" in check(model, x, tmp_path)


@pytest.mark.parametrize(
    "attributes",
    [{"auto_pad": "SAME_UPPER"}, {"output_shape": []}],
    ids=lambda attributes: next(iter(attributes)),
)
def test_what_says_the_output_stays(
    attributes: dict[str, list[int] | str], tmp_path: pathlib.Path
) -> None:
    model, x = transposed(np.random.default_rng(3), [1, 1], **attributes)
    assert "ConvTranspose" in check(model, x, tmp_path)
