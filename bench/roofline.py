"""Says how much of each model's run its products need at the rate of the fastest product.

    python bench/roofline.py [--models PATTERN ...]

Runs each model of bench/cases.py on one thread: once as it is written, to count the multiplications
of its products and convolutions, then as it is optimized. Prints for each

    run       median milliseconds of a run
    products  milliseconds that all its multiplications would take at the best rate: that of a
              product of 768 x 768 x 768 floats, twice of it for bfloat16, four times for int8
    share     of the products in the run; above 100 % where Winograd's filtering saves some
    weights   MB of constants that a run reads, at most once
    others    share of the run that is spent in operators that multiply no matrices

A run cannot be shorter than its products (without Winograd), nor than reading what does not fit in
the caches. So the products' share is how far the model could still go, whatever is done to it.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
import tenon
from compare import available_cases
from onnx import helper

# What the names of optimized operators have in them that multiply matrices.
PRODUCTS = ("MatMul", "Gemm", "Conv", "Attention", "LSTM", "GRU", "RNN")
Shapes = list[tuple[str, list[int]]]


def session_of(
    model: Any, level: tenon.GraphOptimizationLevel, prefix: str = ""
) -> tenon.InferenceSession:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    if prefix:
        options.enable_profiling = True
        options.profile_file_prefix = prefix
    return tenon.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def events_of(session: tenon.InferenceSession) -> Iterator[tuple[str, float, Shapes, Shapes]]:
    """Operator, microseconds, and the types and shapes of inputs and outputs of all nodes."""
    for event in json.loads(pathlib.Path(session.end_profiling()).read_text()):
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            given = event["args"]
            both = [
                [(kind, shape) for each in given[key] for kind, shape in each.items()]
                for key in ("input_type_shape", "output_type_shape")
            ]
            yield given["op_name"], event["dur"], both[0], both[1]


def of_recurrences(inputs: Shapes, _: int) -> int:
    steps, batch, columns = inputs[0][1]
    directions, rows, hidden = inputs[2][1]
    return steps * batch * directions * rows * (columns + hidden)


# Multiplications of a node of the model as it is written, from its inputs and the elements of its
# first output.
COUNTS: dict[str, Callable[[Shapes, int], int]] = {
    "Conv": lambda inputs, size: size * math.prod(inputs[1][1][1:]),
    "ConvInteger": lambda inputs, size: size * math.prod(inputs[1][1][1:]),
    "QLinearConv": lambda inputs, size: size * math.prod(inputs[3][1][1:]),
    "ConvTranspose": lambda inputs, _: math.prod(inputs[0][1]) * math.prod(inputs[1][1][1:]),
    # m k, k n and m n make (m n k) squared, whatever is transposed.
    "Gemm": lambda inputs, size: math.isqrt(
        math.prod(inputs[0][1]) * math.prod(inputs[1][1]) * size
    ),
    **dict.fromkeys(
        ("MatMul", "MatMulInteger", "MatMulNBits", "DynamicQuantizeMatMul", "QLinearMatMul"),
        lambda inputs, size: size * inputs[0][1][-1],
    ),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), of_recurrences),
}


def multiplications(op: str, inputs: Shapes, outputs: Shapes) -> int:
    """Of one node of the model as it is written."""
    return COUNTS[op](inputs, math.prod(outputs[0][1])) if op in COUNTS else 0


def best_rate() -> float:
    """Multiplications in a second, of floats."""
    size = 768
    array = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", 1, [size, size])],
        [helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(array, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    level = tenon.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = session_of(model.SerializeToString(), level)
    times = times_of(session, {"x": array}, 2)
    return size**3 / min(times)


def times_of(
    session: tenon.InferenceSession, feeds: Mapping[str, np.ndarray], seconds: float
) -> list[float]:
    for _ in range(3):
        session.run(None, feeds)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - begin)
    return times


def speed_of(content: onnx.ModelProto) -> float:
    """How many multiplications are done in the time of one of floats."""
    operators = {node.op_type for node in content.graph.node}
    if "MatMulNBits" in operators:
        # Of float activations in two or three parts, or rounded to int8 ones.
        levels = {
            attribute.i
            for node in content.graph.node
            for attribute in node.attribute
            if attribute.name == "accuracy_level"
        }
        return 4 if 4 in levels else 4 / 3
    quantized = ("QuantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearConv")
    return 4 if operators & set(quantized) else 1


def print_row(name: str, model: pathlib.Path, feeds: Any, rate: float, folder: str) -> None:
    levels = tenon.GraphOptimizationLevel
    written = session_of(str(model), levels.ORT_DISABLE_ALL, f"{folder}/written")
    written.run(None, feeds)
    counted = sum(multiplications(op, ins, outs) for op, _, ins, outs in events_of(written))
    run = statistics.median(times_of(session_of(str(model), levels.ORT_ENABLE_ALL), feeds, 1.5))
    profiled = session_of(str(model), levels.ORT_ENABLE_ALL, f"{folder}/optimized")
    times_of(profiled, feeds, 0.5)
    by_kind: collections.defaultdict[bool, float] = collections.defaultdict(float)
    for op, duration, _, _ in events_of(profiled):
        by_kind[any(part in op for part in PRODUCTS)] += duration
    content = onnx.load(model, load_external_data=False)
    weights = sum(
        math.prod(each.dims) * helper.tensor_dtype_to_np_dtype(each.data_type).itemsize
        for each in content.graph.initializer
    )
    least = counted / rate / speed_of(content)
    others = by_kind[False] / max(1, sum(by_kind.values()))
    print(
        f"| {name} | {run * 1e3:.3g} | {least * 1e3:.3g} | {least / run:.0%} "
        f"| {weights / 1e6:.3g} | {others:.0%} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=[], metavar="PATTERN")
    arguments = parser.parse_args()
    rate = best_rate()
    print(f"the fastest product: {2e-9 * rate:.0f} GFLOP/s\n")
    print("| model | run, ms | products, ms | share | weights, MB | others |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for case, root in available_cases(arguments.models):
            print_row(case.name, root / case.path, case.inputs(root), rate, folder)


if __name__ == "__main__":
    main()
