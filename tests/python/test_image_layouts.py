"""Convolutions and what surrounds them, in the layouts that are chosen for their sizes, beside
onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import tenon
from onnx import NodeProto, TensorProto, helper, numpy_helper


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def conv(x: str, w: str, y: str, rank: int, **attributes) -> NodeProto:
    return helper.make_node("Conv", [x, w], [y], pads=[1] * 2 * rank, **attributes)


def node(op: str, inputs: str, output: str, **attributes) -> NodeProto:
    return helper.make_node(op, inputs.split(), [output], **attributes)


VIDEO = {"w": random(32, 32, 3, 3, 3), "v": random(32, 32, 3, 3, 3)}
IMAGE = {"w": random(40, 40, 3, 3), "c": random(40, 1, 1), "d": random(1, 40, 1, 1)}
STATISTICS = {"g": random(40), "b": random(40), "m": random(40), "s": np.abs(random(40)) + 1}
POOL = {"kernel_shape": [3, 3], "pads": [1] * 4}

CASES: dict[str, tuple[tuple[int, ...], dict[str, np.ndarray], list[NodeProto]]] = {
    "residual over frames": (
        (2, 32, 5, 20, 18),
        VIDEO,
        [
            conv("x", "w", "a", 3),
            node("Relu", "a", "r"),
            conv("r", "v", "e", 3),
            node("Add", "e x", "f"),
            node("Relu", "f", "y"),
        ],
    ),
    "strides and dilations over frames": (
        (1, 32, 9, 16, 16),
        VIDEO,
        [
            conv("x", "w", "a", 3, strides=[2, 1, 1]),
            conv("a", "v", "y", 3, dilations=[2, 1, 1]),
        ],
    ),
    "scales of channels": (
        (1, 40, 28, 28),
        IMAGE | STATISTICS,
        [
            conv("x", "w", "a", 2),
            node("AveragePool", "a", "p", **POOL),
            node("Sub", "p a", "e"),
            node("BatchNormalization", "e g b m s", "n"),
            node("Mul", "c n", "f"),
            node("Sub", "f d", "h"),
            node("Add", "h a", "y"),
        ],
    ),
    "normalizations with sums and functions": (
        (2, 40, 14, 14),
        IMAGE | STATISTICS,
        [
            conv("x", "w", "a", 2),
            node("Relu", "a", "r"),
            node("BatchNormalization", "r g b m s", "n"),
            node("Add", "n x", "e"),
            node("Relu", "e", "f"),
            node("BatchNormalization", "f g b m s", "h"),
            node("Sigmoid", "h", "i"),
            node("Mul", "i f", "j"),
            node("BatchNormalization", "j g b m s", "k"),
            conv("k", "w", "y", 2),
        ],
    ),
    "average of small planes": ((2, 50, 14, 14), {}, [node("AveragePool", "x", "y", **POOL)]),
    "average with counted pads": (
        (1, 9, 7, 21),
        {},
        [node("AveragePool", "x", "y", strides=[1, 2], count_include_pad=1, **POOL)],
    ),
    "maxima in steps of three": (
        (1, 9, 31, 33),
        {},
        [node("MaxPool", "x", "y", strides=[3, 3], **POOL)],
    ),
    "products of 7 x 7 pixels": (
        (1, 512, 7, 7),
        {"w": random(300, 512, 1, 1)},
        [node("Conv", "x w", "y")],
    ),
    "products of every other pixel": (
        (3, 200, 14, 14),
        {"w": random(700, 200, 1, 1)},
        [node("Conv", "x w", "y", strides=[2, 2])],
    ),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_gives_what_onnxruntime_gives(name: str, threads: int) -> None:
    shape, constants, nodes = CASES[name]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, key) for key, value in constants.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()
    feeds = {"x": random(*shape)}
    expected = onnxruntime.InferenceSession(model).run(None, feeds)[0]
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    session = tenon.InferenceSession(model, options)
    for _ in range(3):
        got = session.run(None, feeds)[0]
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=3e-5 * np.abs(expected).max())
