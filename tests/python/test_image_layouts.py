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
    "long windows of signals": (
        (2, 1, 2000),
        {"w": random(70, 1, 130), "b": random(70)},
        [node("Conv", "x w b", "a", strides=[37]), node("Relu", "a", "y")],
    ),
    "long windows that touch the end": (
        (1, 1, 128 + 30 * 64),
        {"w": random(17, 1, 128)},
        [node("Conv", "x w", "y", strides=[64])],
    ),
    "long windows of several signals": (
        (2, 3, 1500),
        {"w": random(12, 1, 100)},
        [node("Conv", "x w", "y", strides=[20], group=3)],
    ),
    "long windows with pads": (
        (1, 1, 1000),
        {"w": random(20, 1, 100)},
        [node("Conv", "x w", "y", strides=[25], pads=[50, 50])],
    ),
    "products of every other pixel": (
        (3, 200, 14, 14),
        {"w": random(700, 200, 1, 1)},
        [node("Conv", "x w", "y", strides=[2, 2])],
    ),
}


PYRAMID = {
    "w": random(64, 3, 3, 3),
    "v": random(32, 32, 3, 3),
    "u": random(40, 64, 1, 1),
    "empty": np.zeros(0, np.float32),
    "scales": np.array([1, 1, 2, 2], np.float32),
    "halves": np.array([32, 32]),
}


def pyramid(opset: int) -> list[NodeProto]:
    """What detectors have between convolutions, in the forms of this opset."""
    if opset < 13:
        split = helper.make_node("Split", ["a"], ["b", "c"], axis=1, split=[32, 32])
    else:
        split = helper.make_node("Split", ["a", "halves"], ["b", "c"], axis=1)
    if opset < 11:
        resize = helper.make_node("Resize", ["d", "scales"], ["e"], mode="nearest")
    else:
        region = "empty" if opset < 13 else ""
        resize = helper.make_node(
            "Resize",
            ["d", region, "scales"],
            ["e"],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
    return [
        conv("x", "w", "a", 2),
        split,
        conv("c", "v", "d", 2, strides=[2, 2]),
        resize,
        node("Concat", "b e", "f", axis=1),
        node("Conv", "f u", "y"),
    ]


@pytest.mark.parametrize("opset", [8, 10, 11, 12, 13, 18, 19, 21])
def test_pieces_and_sizes_in_every_form(opset: int) -> None:
    """Layouts give Split and Resize the forms of later opsets."""
    nodes = [n for n in pyramid(opset) if opset > 9 or n.op_type != "Resize"]
    if opset < 10:
        nodes[2] = conv("c", "v", "e", 2)
    compare(nodes, (1, 3, 24, 28), PYRAMID, opset, 1)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_gives_what_onnxruntime_gives(name: str, threads: int) -> None:
    shape, constants, nodes = CASES[name]
    compare(nodes, shape, constants, 17, threads)


def compare(
    nodes: list[NodeProto],
    shape: tuple[int, ...],
    constants: dict[str, np.ndarray],
    opset: int,
    threads: int,
) -> None:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, key) for key, value in constants.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8
    ).SerializeToString()
    feeds = {"x": random(*shape)}
    expected = onnxruntime.InferenceSession(model).run(None, feeds)[0]
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    session = tenon.InferenceSession(model, options)
    for _ in range(3):
        got = session.run(None, feeds)[0]
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=3e-5 * np.abs(expected).max())
