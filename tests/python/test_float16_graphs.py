"""Graphs of float16 run in float32 where there is no kernel for 16 bits, as in onnxruntime: what is
between two such operators is neither rounded nor cast."""

from __future__ import annotations

import pathlib

import numpy as np
import onnxruntime
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from traces import profiled

HALF = np.float16


def random(*shape: int, scale: float = 1.0) -> np.ndarray:
    values = np.random.default_rng(len(shape)).uniform(-scale, scale, shape)
    return values.astype(HALF)


CONSTANTS = {
    "w": random(32, 32, 1, 1, scale=0.3),
    "m": random(32, 32, scale=0.3),
    "g": np.ones(32, HALF),
    "low": HALF(0),
    "high": HALF(6),
    "half": HALF(0.5),
    "one": HALF(1),
    "root": HALF(np.sqrt(2)),
    "scales": np.array([1, 1, 2, 2], np.float32),
    "sizes": np.array([20, 12]),
    "shape": np.array([1, 32, 8, 32]),
}


def node(op: str, inputs: str, outputs: str, **attributes) -> NodeProto:
    return helper.make_node(op, inputs.split(" "), outputs.split(" "), **attributes)


# What stands between two convolutions, and the least opset.
BETWEEN: dict[str, tuple[list[NodeProto], int]] = {
    "Relu": ([node("Relu", "a", "b")], 13),
    "HardSwish": ([node("HardSwish", "a", "b")], 14),
    "Clip": ([node("Clip", "a low high", "b")], 13),
    "Sigmoid": ([node("Sigmoid", "a", "b")], 13),
    "Concat": ([node("Concat", "a a", "b", axis=2)], 13),
    "Resize": ([node("Resize", "a  scales", "b", coordinate_transformation_mode="asymmetric")], 13),
    "Split": ([node("Split", "a sizes", "b c", axis=2)], 13),
    "Reshape": ([node("Reshape", "a shape", "b")], 13),
    "Transpose": ([node("Transpose", "a", "b", perm=[0, 1, 3, 2])], 13),
    "MaxPool": ([node("MaxPool", "a", "b", kernel_shape=[2, 2])], 13),
    "Mean": ([node("GlobalAveragePool", "a", "b")], 13),
    "Joined, then moved": (
        [node("Concat", "a a", "c", axis=3), node("Transpose", "c", "b", perm=[0, 1, 3, 2])],
        13,
    ),
    "GELU of several operators": (
        [
            node("Div", "a root", "c"),
            node("Erf", "c", "d"),
            node("Add", "d one", "e"),
            node("Mul", "a e", "f"),
            node("Mul", "f half", "b"),
        ],
        13,
    ),
}


def build(nodes: list[NodeProto], opset: int, shape: tuple[int, ...], **constants) -> bytes:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, None)],
        [numpy_helper.from_array(v, k) for k, v in (CONSTANTS | constants).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return model.SerializeToString()


def run(model: bytes, x: np.ndarray, folder: pathlib.Path) -> tuple[np.ndarray, list[str]]:
    """The result, and the operators in their order."""
    (result,), ran = profiled(model, {"x": x}, folder)
    return result, ran


def assert_near(got: np.ndarray, model: bytes, x: np.ndarray) -> None:
    (expected,) = onnxruntime.InferenceSession(model).run(None, {"x": x})
    assert np.isfinite(expected).all()
    assert got.dtype == HALF
    np.testing.assert_allclose(
        got.astype(np.float32),
        expected.astype(np.float32),
        rtol=2e-3,
        atol=1e-3 * np.abs(expected).max(),
    )


@pytest.mark.parametrize(
    ("name", "opset"),
    [
        (name, opset)
        for name, (_, least) in BETWEEN.items()
        for opset in (13, 17, 20)
        if opset >= least
    ],
)
def test_nothing_is_cast_between_wide_operators(
    name: str, opset: int, tmp_path: pathlib.Path
) -> None:
    nodes, _ = BETWEEN[name]
    model = build(
        [node("Conv", "x w", "a"), *nodes, node("Conv", "b w", "y")], opset, (1, 32, 32, 8)
    )
    x = random(1, 32, 32, 8)
    got, ran = run(model, x, tmp_path)
    assert ran.count("Cast") == 2 and ran[0] == ran[-1] == "Cast"
    assert not {"CastLike", "Constant", "FusedElements"} & set(ran)
    assert_near(got, model, x)


def test_large_numbers_between_stay_finite(tmp_path: pathlib.Path) -> None:
    """Sums of 100,000 are more than float16 holds."""
    nodes = [
        node("Conv", "x large", "a"),
        node("Concat", "a a", "b", axis=1),
        node("Conv", "b small", "y"),
    ]
    weights = {
        "large": np.full((32, 32, 1, 1), 3000, HALF),
        "small": np.full((4, 64, 1, 1), 1e-4, HALF),
    }
    model = build(nodes, 17, (1, 32, 4, 4), **weights)
    x = np.ones((1, 32, 4, 4), HALF)
    got, _ = run(model, x, tmp_path)
    assert_near(got, model, x)
    assert np.abs(got).max() > 100


def test_a_cache_of_float16_is_not_widened(tmp_path: pathlib.Path) -> None:
    """What comes from outside is joined as it is; only the new part is rounded."""
    nodes = [node("MatMul", "x m", "a"), node("Concat", "x a", "y", axis=0)]
    model = build(nodes, 17, (100, 32))
    x = random(100, 32)
    got, ran = run(model, x, tmp_path)
    assert [op for op in ran if op != "MatMul"] == ["Cast", "Cast", "Concat"]
    assert_near(got, model, x)


def test_constants_that_need_float32_are_folded(tmp_path: pathlib.Path) -> None:
    """Weights that are normalized by nodes, as some networks are exported."""
    statistics = "weights g b m v"
    nodes = [
        node("BatchNormalization", statistics, "n"),
        node("Relu", "n", "r"),
        node("Reshape", "r kernel", "k"),
        node("Conv", "x k", "y"),
    ]
    constants = {
        "weights": random(1, 32, 32),
        "b": np.full(32, 0.1, HALF),
        "m": np.zeros(32, HALF),
        "v": np.ones(32, HALF),
        "kernel": np.array([32, 32, 1, 1]),
    }
    model = build(nodes, 17, (1, 32, 8, 8), **constants)
    x = random(1, 32, 8, 8)
    got, ran = run(model, x, tmp_path)
    assert ran == ["Cast", "Conv", "Cast"]
    assert_near(got, model, x)
