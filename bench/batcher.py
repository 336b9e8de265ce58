"""Many threads that call one session, with and without a Batcher.

PYTHONPATH=build/release/python python bench/batcher.py
"""

import threading
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
import tenon
from onnx import helper, numpy_helper

MODELS = {"3 of 256 x 256": (256, 3), "4 of 1024 x 1024": (1024, 4), "2 of 4096 x 4096": (4096, 2)}


def products(size: int, count: int) -> bytes:
    """y = x * W0 * W1 * ..., of [n, size] and [size, size]."""
    names = ["x", *(f"t{i}" for i in range(count - 1)), "y"]
    nodes = [helper.make_node("MatMul", [names[i], f"W{i}"], [names[i + 1]]) for i in range(count)]
    weights = [
        numpy_helper.from_array(np.full((size, size), (i + 1) / size, np.float32), f"W{i}")
        for i in range(count)
    ]
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", size])
        for name in ("x", "y")
    ]
    graph = helper.make_graph(nodes, "products", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def measure(call: Callable[[], object], threads: int, seconds: float) -> str:
    """Requests per second, and the times of requests."""
    times: list[list[float]] = [[] for _ in range(threads)]
    start = threading.Barrier(threads)

    def ask(mine: list[float]) -> None:
        start.wait()
        end = time.perf_counter() + seconds
        while (begin := time.perf_counter()) < end:
            call()
            mine.append(time.perf_counter() - begin)

    callers = [threading.Thread(target=ask, args=(mine,)) for mine in times]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    every = 1e3 * np.concatenate(times)
    median, late = np.percentile(every, [50, 99])
    return f"{len(every) / seconds:8.0f}/s, p50 {median:.2f} ms, p99 {late:.2f} ms"


def main() -> None:
    """Prints a line for each model, number of threads and way to call it."""
    for name, (size, count) in MODELS.items():
        session = tenon.InferenceSession(products(size, count))
        request = (None, {"x": np.ones((1, size), np.float32)})
        for _ in range(3):
            session.run(*request)
        for threads in (1, 4, 16):
            plain = measure(partial(session.run, *request), threads, 3)
            print(f"{name}, {threads} threads, session: {plain}", flush=True)
            for wait in (0.0, 0.001):
                with tenon.Batcher(session, max_wait=wait) as batcher:
                    line = measure(partial(batcher.run, *request), threads, 3)
                    rows = batcher.requests / max(1, batcher.batches)
                    print(
                        f"{name}, {threads} threads, max_wait={wait}: {line}, "
                        f"{rows:.1f} rows in a batch",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
