"""Weights are packed as they are read in a session's first run, and kept packed after it.

Results do not show it: a run on packed weights has the same bits as one that reads the model's.
"""

import pathlib
import subprocess
import sys
from collections.abc import Callable

import graphs
import numpy as np
import onnx
import onnxruntime
import pytest
import tenon
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from saturation import saturates

Case = tuple[bytes, dict[str, np.ndarray]]


def random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def built(nodes: list, weights: dict[str, np.ndarray], x: np.ndarray) -> Case:
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    ends = [graphs.tensor("x", shape=["n", *x.shape[1:]])], [graphs.tensor("y")]
    return graphs.model(nodes, *ends, initializers=initializers), {"x": x}


def convolution(
    batch: int, channels: int, side: int, filters: int, kernel: int, group: int = 1, **attributes
) -> Case:
    """y = Relu(BatchNormalization(Conv(x))) + Conv(x)."""
    weights = {
        "w": random(1, filters, channels // group, kernel, kernel),
        "b": random(2, filters),
        "scale": random(3, filters),
        "shift": random(4, filters),
        "mean": random(5, filters),
        "variance": np.square(random(6, filters)) + 1,
        "v": random(7, filters, channels // group, kernel, kernel),
    }
    attributes |= {"group": group, "pads": 4 * [kernel // 2]}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Conv", ["x", "v"], ["d"], **attributes),
        helper.make_node("Add", ["r", "d"], ["y"]),
    ]
    return built(nodes, weights, random(8, batch, channels, side, side))


def product(rows: int, depth: int, columns: int, transposed: bool = False) -> Case:
    """y = Gelu(x w + b) + c, as a Gemm with a transposed weight or as a MatMul."""
    shape = (columns, depth) if transposed else (depth, columns)
    weights = {"w": random(1, *shape), "b": random(2, columns), "c": random(3, rows, columns)}
    first = [helper.make_node("Gemm", ["x", "w", "b"], ["p"], transB=1)]
    if not transposed:
        first = [
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node("Add", ["m", "b"], ["p"]),
        ]
    last = [
        helper.make_node("Sigmoid", ["p"], ["s"]),
        helper.make_node("Mul", ["p", "s"], ["a"]),
        helper.make_node("Add", ["a", "c"], ["y"]),
    ]
    return built(first + last, weights, random(4, rows, depth))


def dynamic_product(rows: int, depth: int, columns: int, matrices: int = 0) -> Case:
    """y = x w + b with weights of int8 that are zero at zero points of their columns, as dynamic
    quantization makes it; with several matrices, x is a stack and so is w."""
    stack = [matrices] if matrices else []
    line = (*stack, 1, columns) if matrices else columns
    weights = {
        "w": np.random.default_rng(1).integers(-128, 128, (*stack, depth, columns), np.int8),
        "w_scale": np.abs(random(2, columns)) / 100,
        "w_zero": np.random.default_rng(3).integers(-9, 9, line, np.int8),
        "b": random(4, columns),
    }
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "q_scale", "q_zero"]),
        helper.make_node("MatMulInteger", ["q", "w", "q_zero", "w_zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["floats"], to=1),
        helper.make_node("Mul", ["q_scale", "w_scale"], ["scales"]),
        helper.make_node("Mul", ["floats", "scales"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["y"]),
    ]
    return built(nodes, weights, random(5, *stack, rows, depth))


CASES: dict[str, Callable[[], Case]] = {
    "3x3_of_few_pixels": lambda: convolution(1, 256, 14, 256, 3),
    "3x3_of_a_batch": lambda: convolution(3, 160, 7, 272, 3),
    "3x3_with_strides": lambda: convolution(1, 192, 14, 264, 3, strides=[2, 2]),
    "pointwise": lambda: convolution(2, 320, 9, 300, 1),
    "groups": lambda: convolution(1, 256, 7, 512, 3, group=4),
    "one_row": lambda: product(1, 1536, 700, transposed=True),
    "deep_row": lambda: product(1, 12000, 260),
    "some_rows": lambda: product(37, 384, 1536),
    "bytes_one_row": lambda: dynamic_product(1, 768, 1030),
    "bytes_some_rows": lambda: dynamic_product(33, 300, 100),
    "bytes_many_rows": lambda: dynamic_product(300, 520, 1030),
    "bytes_stack": lambda: dynamic_product(130, 260, 515, matrices=2),
    "many_rows": lambda: product(300, 520, 1031, transposed=True),
}


def opened(model: bytes, threads: int, entries: dict[str, str]) -> tenon.InferenceSession:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    return tenon.InferenceSession(model, options)


@pytest.mark.parametrize("name", CASES)
def test_all_runs_give_the_same_bits(name: str) -> None:
    model, feeds = CASES[name]()
    unfused = onnxruntime.SessionOptions()  # DynamicQuantizeMatMul gives other sums for stacks
    unfused.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if name.startswith("bytes") and saturates():
        expected = ReferenceEvaluator(onnx.load_from_string(model)).run(None, feeds)[0]
    else:
        expected = onnxruntime.InferenceSession(model, unfused).run(None, feeds)[0]
    # Packed at once, after one run, never.
    policies = (
        {"tenon.runs_before_packing": "0"},
        {},
        {"session.disable_prepacking": "1"},
    )
    results = {
        opened(model, threads, entries).run(None, feeds)[0].tobytes()
        for threads in (1, 3)
        for entries in policies
    }
    session = opened(model, 2, {})
    runs = [session.run(None, feeds)[0] for _ in range(3)]
    results |= {run.tobytes() for run in runs}
    assert len(results) == 1
    np.testing.assert_allclose(runs[0], expected, rtol=1e-4, atol=2e-5 * np.abs(expected).max())


# Prints how many MiB of memory of its own the first run adds to the process, and then 40 others:
# how many of these pack depends on how long that takes.
CHILD = """
import pathlib, sys
import numpy as np, tenon

def own_memory():
    lines = pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) // 1024

options = tenon.SessionOptions()
options.intra_op_num_threads = 1
for entry in sys.argv[2:]:
    options.add_session_config_entry(*entry.split("="))
session = tenon.InferenceSession(sys.argv[1], options)
shape = [1, *session.get_inputs()[0].shape[1:]]
feeds = {"x": np.ones(shape, np.float32)}
for runs in (1, 40):
    before = own_memory()
    for _ in range(runs):
        session.run(None, feeds)
    print(own_memory() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "case, entries, packing",
    [
        ("product", [], 1),
        ("product", ["tenon.runs_before_packing=0"], 0),
        ("product", ["session.disable_prepacking=1"], None),
        ("strides", [], 1),
        ("3x3", [], 1),
    ],
)
def test_weights_are_copied_when_they_are_packed(
    case: str, entries: list[str], packing: int | None, tmp_path: pathlib.Path
) -> None:
    make = {
        "product": lambda: product(1, 2048, 8192),
        "strides": lambda: convolution(1, 512, 14, 2048, 3, strides=[2, 2]),
        "3x3": lambda: convolution(1, 512, 14, 1024, 3),
    }
    path = tmp_path / "model.onnx"
    path.write_bytes(make[case]()[0])  # at least 64 MiB once packed
    command = [sys.executable, "-c", CHILD, str(path), *entries]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    added = [int(line) for line in printed.split()]
    assert [mib > 48 for mib in added] == [part == packing for part in range(2)], added


def test_the_number_of_runs_before_packing_is_checked() -> None:
    model, _ = product(1, 8, 8)
    with pytest.raises(Exception, match=r"tenon\.runs_before_packing.*'soon'"):
        opened(model, 1, {"tenon.runs_before_packing": "soon"})
