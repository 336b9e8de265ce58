"""Runs from several threads, and the interpreter's lock."""

import concurrent.futures
import pathlib
import subprocess
import sys
import threading
import time

import graphs
import numpy as np
import tenon


def test_one_session_runs_in_many_threads() -> None:
    session = tenon.InferenceSession(graphs.product_chain(32, 4))
    rng = np.random.default_rng(1)
    inputs = [rng.uniform(-0.1, 0.1, (32, 32)).astype(np.float32) for _ in range(8)]
    expected = [session.run(None, {"x": x})[0] for x in inputs]

    def run(i: int) -> bool:
        return np.array_equal(session.run(None, {"x": inputs[i % 8]})[0], expected[i % 8])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(400)))


FIRST_RUNS = """
import sys, threading
import tenon

assert "numpy" not in sys.modules
session = tenon.InferenceSession(sys.argv[1])
start = threading.Barrier(4)
outputs = []

def run():
    start.wait()
    outputs.extend(session.run(None, {"x": [[1.0, 2.0, 3.0]]}))

threads = [threading.Thread(target=run) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(outputs) == 4
"""


def test_the_first_runs_of_threads_import_numpy_at_once(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(graphs.double())
    subprocess.run([sys.executable, "-c", FIRST_RUNS, str(path)], check=True, timeout=60)


def test_other_threads_run_while_a_model_does() -> None:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = 1
    session = tenon.InferenceSession(graphs.product_chain(512, 20), options)
    x = np.zeros((512, 512), np.float32)
    session.run(None, {"x": x})
    ticks_during_run = 0
    running = threading.Event()
    ended = threading.Event()

    def count() -> None:
        nonlocal ticks_during_run
        running.wait()
        while not ended.is_set():
            ticks_during_run += 1
            time.sleep(1e-4)

    counter = threading.Thread(target=count)
    counter.start()
    # A switch can only happen within the run: until the interval is over, no Python code yields.
    running.set()
    for _ in range(5):
        session.run(None, {"x": x})
    ended.set()
    counter.join()
    assert ticks_during_run > 10


def test_terminate_reaches_a_run_from_another_thread() -> None:
    session = tenon.InferenceSession(graphs.product_chain(256, 2000))
    options = tenon.RunOptions()
    timer = threading.Timer(0.05, lambda: setattr(options, "terminate", True))
    timer.start()
    try:
        session.run(None, {"x": np.zeros((256, 256), np.float32)}, options)
        raise AssertionError("the run was not ended")
    except tenon.capi.onnxruntime_pybind11_state.Fail:
        pass
    finally:
        timer.join()


def test_async_runs_tell_of_results_and_errors() -> None:
    session = tenon.InferenceSession(graphs.double())
    told: list[tuple] = []
    done = threading.Semaphore(0)

    def callback(outputs: list, user_data: object, error: str) -> None:
        told.append((outputs, user_data, error))
        done.release()

    session.run_async(None, {"x": np.ones(3, np.float32)}, callback, "first")
    assert done.acquire(timeout=60)
    session.run_async(None, {"x": np.ones(3)}, callback, "second")
    assert done.acquire(timeout=60)
    (outputs, name, error), (no_outputs, other_name, other_error) = told
    np.testing.assert_array_equal(outputs[0], np.full(3, 2, np.float32))
    assert (name, error, no_outputs, other_name) == ("first", "", [], "second")
    assert "INVALID_ARGUMENT" in other_error
