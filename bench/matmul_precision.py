"""Times products with a constant in each precision that a session may ask for, in turns.

    python bench/matmul_precision.py [--threads 1]

Prints GFLOP/s, from the median of the rounds, and the greatest difference from the product in
float64, of the largest element.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import tenon
from onnx import TensorProto, helper, numpy_helper

PRECISIONS = ("highest", "high", "medium")
SHAPES = [
    (128, 768, 768),
    (128, 768, 3072),
    (128, 3072, 768),
    (512, 1024, 1024),
    (1024, 1024, 1024),
    (8, 768, 768),
    (1, 768, 3072),
]


def product(b: np.ndarray) -> bytes:
    k, n = b.shape
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"])],
        "product",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, ["m", k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", n])],
        [numpy_helper.from_array(b, "b")],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def session_of(model: bytes, precision: str, threads: int) -> tenon.InferenceSession:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.matmul_precision", precision)
    return tenon.InferenceSession(model, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    print("| m, k, n | " + " | ".join(PRECISIONS) + " |\n| --- | --- | --- | --- |")
    for m, k, n in SHAPES:
        a = random.standard_normal((m, k)).astype(np.float32)
        b = random.standard_normal((k, n)).astype(np.float32)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        model = product(b)
        sessions = [session_of(model, p, arguments.threads) for p in PRECISIONS]
        times: list[list[float]] = [[] for _ in sessions]
        for _ in range(3 + arguments.rounds):
            for session, taken in zip(sessions, times, strict=True):
                start = time.perf_counter()
                session.run(None, {"a": a})
                taken.append(time.perf_counter() - start)
        cells = []
        for session, taken in zip(sessions, times, strict=True):
            rate = 2e-9 * m * k * n / float(np.median(taken[3:]))
            difference = np.abs(session.run(None, {"a": a})[0] - exact).max() / np.abs(exact).max()
            cells.append(f"{rate:.0f} ({difference:.0e})")
        print(f"| {m}, {k}, {n} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
