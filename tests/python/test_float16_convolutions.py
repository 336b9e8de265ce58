"""Convolutions with weights of float16, which stay as the model has them until they are packed.
Beside onnxruntime on the same numbers in float32."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import onnxruntime
import pytest
import tenon
from onnx import NodeProto, helper, numpy_helper

HALF = np.float16
RUNS = 4  # the first ones read the weights, or pack some of them


def build(nodes: list[NodeProto], arrays: dict[str, np.ndarray], dtype: type, dims: list) -> bytes:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes,
        "convolutions",
        [helper.make_tensor_value_info("x", element, dims)],
        [helper.make_tensor_value_info("y", element, None)],
        [numpy_helper.from_array(a.astype(dtype), k) for k, a in arrays.items() if k != "x"],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return model.SerializeToString()


def check(
    nodes: list[NodeProto], arrays: dict[str, np.ndarray], dims: list | None = None, **options: Any
) -> None:
    x = arrays["x"]
    dims = dims or list(x.shape)
    wide = build(nodes, arrays, np.float32, dims)
    (expected,) = onnxruntime.InferenceSession(wide).run(None, {"x": x.astype(np.float32)})
    session_options = tenon.SessionOptions()
    for name, value in options.items():
        setattr(session_options, name, value)
    session = tenon.InferenceSession(build(nodes, arrays, HALF, dims), session_options)
    results = [session.run(None, {"x": x})[0] for _ in range(RUNS)]
    scale = np.abs(expected).max()
    for result in results:
        assert result.dtype == HALF
        np.testing.assert_array_equal(result, results[0])
    np.testing.assert_allclose(
        results[0].astype(np.float32), expected, rtol=1e-3, atol=1e-3 * scale
    )


def halves(*shape: int, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(shape)
    return (values / np.sqrt(np.prod(shape[1:]))).astype(HALF)


# Weights and input, and the attributes of the convolution.
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "3x3": ((96, 96, 3, 3), (1, 96, 14, 14), {"pads": [1] * 4}),
    "3x3, stride 2": ((96, 96, 3, 3), (2, 96, 15, 14), {"pads": [1] * 4, "strides": [2, 2]}),
    "1x1": ((256, 512, 1, 1), (1, 512, 7, 7), {}),
    "1x1 on one pixel": ((256, 512, 1, 1), (1, 512, 1, 1), {}),
    "5x5, 40 channels": ((40, 72, 5, 5), (1, 72, 9, 9), {"pads": [2] * 4}),
    "7x7 of few channels": ((192, 8, 7, 7), (1, 8, 30, 30), {"strides": [2, 2]}),
    "two groups": ((128, 128, 3, 3), (1, 256, 8, 8), {"group": 2}),
    "one axis": ((256, 128, 3), (1, 128, 20), {}),
    "three axes": ((64, 64, 3, 3, 3), (1, 64, 5, 5, 5), {"pads": [1] * 6}),
}


@pytest.mark.parametrize("level", ["DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_ALL"])
@pytest.mark.parametrize("name", CASES)
def test_weights_of_float16(name: str, level: str) -> None:
    weights, shape, attributes = CASES[name]
    arrays = {
        "x": halves(*shape, seed=1),
        "w": halves(*weights, seed=2),
        "b": halves(weights[0], seed=3),
    }
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], **attributes)
    check(
        [node],
        arrays,
        graph_optimization_level=getattr(tenon.GraphOptimizationLevel, f"ORT_{level}"),
    )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(1, 96, 14, 14), (1, 96, 2, 3)])
def test_what_follows_is_fused(shape: tuple[int, ...], threads: int) -> None:
    """A normalization, a residual and an activation, whose factors the packed weights have."""
    arrays = {
        "x": halves(*shape, seed=1),
        "w": halves(96, 96, 3, 3, seed=2),
        "v": halves(96, 96, 3, 3, seed=3),
        **{name: halves(96, seed=i) for i, name in enumerate(("scale", "shift", "mean"))},
        "variance": np.abs(halves(96, seed=9)) + HALF(0.5),
    }
    pads = [1] * 4
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=pads),
        helper.make_node("BatchNormalization", ["a", "scale", "shift", "mean", "variance"], ["b"]),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Conv", ["c", "v"], ["d"], pads=pads),
        helper.make_node("Add", ["d", "x"], ["e"]),
        helper.make_node("Relu", ["e"], ["y"]),
    ]
    check(nodes, arrays, intra_op_num_threads=threads)


def test_sums_of_convolutions() -> None:
    """As RepVGG has them: one convolution with the sum of the weights."""
    arrays = {
        "x": halves(1, 96, 8, 8, seed=1),
        "w": halves(96, 96, 3, 3, seed=2),
        "v": halves(96, 96, 1, 1, seed=3),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        helper.make_node("Conv", ["x", "v"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    check(nodes, arrays)


def test_weights_with_two_readers() -> None:
    """One of them reads the weights as numbers."""
    arrays = {
        "x": halves(1, 96, 96, 3, seed=1),
        "w": halves(96, 96, 3, 3, seed=2),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        helper.make_node("ReduceSum", ["w"], ["b"], keepdims=0),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    check(nodes, arrays)


def test_images_of_any_size() -> None:
    arrays = {"x": halves(1, 96, 9, 11, seed=1), "w": halves(96, 96, 3, 3, seed=2)}
    check([helper.make_node("Conv", ["x", "w"], ["y"])], arrays, ["n", 96, "h", "w"])


# Prints how much memory of its own, in MiB, the creation of a session takes: convolutions with 32
# MiB of weights.
COSTS = """
import pathlib, sys
import numpy as np, onnx, tenon

count, channels = 16, 1024
def weights(name):
    values = np.ones((channels, channels, 1, 1), np.float16)
    return onnx.numpy_helper.from_array(values, name)

value = onnx.helper.make_tensor_value_info
graph = onnx.helper.make_graph(
    [onnx.helper.make_node("Conv", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(count)], "g",
    [value("v0", 10, [1, channels, 8, 8])], [value(f"v{count}", 10, None)],
    [weights(f"w{i}") for i in range(count)])
opsets = [onnx.helper.make_opsetid("", 17)]
onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9), sys.argv[1])
del graph

def own():
    status = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("RssAnon")).split()[1]) / 1024

before = own()
session = tenon.InferenceSession(sys.argv[1])
print(own() - before)
"""


def test_creating_a_session_widens_no_weights(tmp_path) -> None:
    command = [sys.executable, "-c", COSTS, str(tmp_path / "model.onnx")]
    assert float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) < 4
