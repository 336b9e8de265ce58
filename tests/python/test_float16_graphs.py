"""Graphs of float16 run in float32 where there is no kernel for 16 bits, as in onnxruntime: what is
between two such operators is neither rounded nor cast."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import tenon
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


# Products by matrices that are large enough to be read as they are.
PRODUCTS = {
    "MatMul": node("MatMul", "x w", "y"),
    "Gemm": node("Gemm", "x w", "y"),
    "Gemm, scaled": node("Gemm", "x w v", "y", alpha=0.5),
    "Gemm, transposed": node("Gemm", "x t v", "y", transB=1),
    "Gemm with a scaled vector": node("Gemm", "x w v", "y", beta=0.25),
    "Gemm with a matrix": node("Gemm", "x w c", "y"),
}


def product(name: str, rows: int, wide: bool) -> tuple[bytes, np.ndarray]:
    """A product that may be of the same numbers in float32, and its input."""
    w, dtype = random(520, 300, scale=0.1), np.float32 if wide else HALF
    constants = {"w": w, "t": np.ascontiguousarray(w.T), "v": random(300), "c": random(1, 300)}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [PRODUCTS[name]],
        "graph",
        [helper.make_tensor_value_info("x", kind, [rows, 520])],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(v.astype(dtype), k) for k, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model.SerializeToString(), random(rows, 520).astype(dtype)


@pytest.mark.parametrize("rows", [1, 3, 20, 130])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_by_halves_are_those_of_the_same_floats(name: str, rows: int) -> None:
    """Of onnxruntime, rounded once at the end: in the first run, which packs nothing, and after."""
    (half, x), (wide, wide_x) = (product(name, rows, is_wide) for is_wide in (False, True))
    expected = onnxruntime.InferenceSession(wide).run(None, {"x": wide_x})[0]
    session = tenon.InferenceSession(half)
    for _ in range(4):
        actual = session.run(None, {"x": x})[0].astype(np.float32)
        # A result between two halves may be rounded either way: the last columns are added up in
        # another order.
        np.testing.assert_allclose(actual, expected, rtol=1.01 * 2**-11, atol=1e-5)


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_products_by_halves_are_as_exact_as_asked(precision: str) -> None:
    half, x = product("MatMul", 40, False)
    options = tenon.SessionOptions()
    options.add_session_config_entry("session.matmul_precision", precision)
    actual = tenon.InferenceSession(half, options).run(None, {"x": x})[0]
    expected = x.astype(np.float64) @ random(520, 300, scale=0.1).astype(np.float64)
    np.testing.assert_allclose(actual, expected, atol=2e-2 * np.abs(expected).max())


MEMORY = """
import sys, numpy as np, tenon
def resident():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1])
x = np.ones((1, 2048), sys.argv[2])
before = resident()
session = tenon.InferenceSession(sys.argv[1])
for _ in range(20):
    session.run(None, {"x": x})
print(resident() - before)
"""


def test_weights_of_halves_take_half_the_memory(tmp_path: pathlib.Path) -> None:
    """H-1: at most 0.6 of the float32 twin's, of weights that all runs have made ready."""
    grown = {}
    for dtype in (np.float32, HALF):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        weights = [np.full((2048, 2048), i / 4096, dtype) for i in range(6)]
        nodes = [
            node("MatMul", f"{'x' if i == 0 else f'h{i}'} w{i}", f"h{i + 1}") for i in range(6)
        ]
        graph = helper.make_graph(
            nodes,
            "graph",
            [helper.make_tensor_value_info("x", kind, [1, 2048])],
            [helper.make_tensor_value_info("h6", kind, None)],
            [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)],
        )
        path = tmp_path / f"{np.dtype(dtype)}.onnx"
        opsets = [helper.make_opsetid("", 17)]
        path.write_bytes(
            helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
        )
        command = [sys.executable, "-c", MEMORY, str(path), str(np.dtype(dtype))]
        grown[dtype] = int(subprocess.run(command, capture_output=True, check=True).stdout)
    assert grown[HALF] < 0.6 * grown[np.float32]
