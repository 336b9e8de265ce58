"""What the package costs: time of small runs beside onnxruntime's, memory of many sessions."""

import gc
import pathlib
import time
from collections.abc import Callable

import graphs
import numpy as np
import onnxruntime
import tenon

X = np.zeros(4, np.float32)


def microseconds(function: Callable[[], object], runs: int = 2000) -> float:
    """Processor time of a call: the least of some rounds, so that other programs do not count."""
    rounds = []
    for _ in range(7):
        begin = time.thread_time()
        for _ in range(runs):
            function()
        rounds.append((time.thread_time() - begin) / runs * 1e6)
    return min(rounds)


def test_a_run_costs_no_more_than_onnxruntimes() -> None:
    model = graphs.identity(shape=[4])
    ours = tenon.InferenceSession(model)
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    cost = microseconds(lambda: ours.run(None, {"x": X}))
    assert cost <= microseconds(lambda: theirs.run(None, {"x": X}))


def test_python_adds_little_to_a_run() -> None:
    """At most 3 us more than the library, whose share the run with bound values shows."""
    session = tenon.InferenceSession(graphs.identity(shape=[4]))
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    bound = microseconds(lambda: session.run_with_iobinding(binding))
    assert microseconds(lambda: session.run(None, {"x": X})) - bound <= 3


def test_a_session_of_a_tiny_model_is_ready_at_once() -> None:
    model = graphs.identity(shape=[4])
    assert microseconds(lambda: tenon.InferenceSession(model), runs=10) <= 1000


def resident() -> float:
    """MiB."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / (1 << 20)


def test_sessions_give_their_memory_back() -> None:
    model, x = graphs.product_chain(64, 4), np.ones((64, 64), np.float32)

    def make_and_run(count: int) -> None:
        for _ in range(count):
            tenon.InferenceSession(model).run(None, {"x": x})
        gc.collect()

    make_and_run(50)
    before = resident()
    make_and_run(500)
    assert resident() - before <= 8
