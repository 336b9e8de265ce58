"""Batcher: requests of many callers, joined in batches."""

import asyncio
import gc
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import graphs
import long_kernels
import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper


class Gate:
    """A session whose runs wait until they may go on, and are counted."""

    def __init__(self, session: tenon.InferenceSession, is_open: bool = False) -> None:
        self._session = session
        self.rows: list[int] = []
        self.open = threading.Event()
        self.started = threading.Semaphore(0)
        if is_open:
            self.open.set()
        self.get_inputs = session.get_inputs
        self.get_outputs = session.get_outputs

    def run(self, names, feeds, options=None):
        self.rows.append(len(next(iter(feeds.values()))))
        self.started.release()
        assert self.open.wait(60)
        return self._session.run(names, feeds, options)


def doubling(shape: list | None = None) -> tenon.InferenceSession:
    return tenon.InferenceSession(graphs.double(shape or ["n", 3]))


def rows(count: int, value: float) -> np.ndarray:
    return np.full((count, 3), value, np.float32)


# SRV-2
def test_requests_that_wait_together_are_one_batch() -> None:
    gate = Gate(doubling())
    with tenon.Batcher(gate, max_batch_size=8) as batcher:
        futures = [batcher.submit(None, {"x": rows(1, 0)})]
        gate.started.acquire()
        futures += [batcher.submit(["y"], {"x": rows(1 + i % 2, i)}) for i in range(1, 7)]
        gate.open.set()
        for i, future in enumerate(futures):
            (y,) = future.result(60)
            expected = 1 if i == 0 else 1 + i % 2
            np.testing.assert_array_equal(y, rows(expected, 2 * i))
    assert gate.rows == [1, 8, 1]
    assert (batcher.batches, batcher.requests) == (3, 7)


def test_only_requests_of_like_inputs_are_joined() -> None:
    gate = Gate(doubling(["n", "m"]))
    with tenon.Batcher(gate) as batcher:
        first = batcher.submit(None, {"x": np.zeros((1, 1), np.float32)})
        gate.started.acquire()
        inputs = [np.full((2, 2 + i % 2), i, np.float32) for i in range(6)]
        futures = [batcher.submit(None, {"x": x}) for x in inputs]
        gate.open.set()
        first.result(60)
        for x, future in zip(inputs, futures, strict=True):
            np.testing.assert_array_equal(future.result(60)[0], 2 * x)
    assert gate.rows == [1, 6, 6]


def scaled(output_shape: list) -> tenon.InferenceSession:
    """y = x * rate."""
    return tenon.InferenceSession(
        graphs.model(
            [helper.make_node("Mul", ["x", "rate"], ["y"])],
            [graphs.tensor("x", shape=["n", 3]), graphs.tensor("rate", shape=[])],
            [graphs.tensor("y", shape=output_shape)],
        )
    )


def test_inputs_without_a_batch_are_shared() -> None:
    gate = Gate(scaled(["n", 3]))
    with tenon.Batcher(gate) as batcher:
        first = batcher.submit(None, {"x": rows(1, 1), "rate": 1.0})
        gate.started.acquire()
        futures = [batcher.submit(None, {"x": rows(1, 1), "rate": float(i % 2)}) for i in range(4)]
        gate.open.set()
        first.result(60)
        results = [future.result(60)[0][0, 0] for future in futures]
    assert results == [0, 1, 0, 1]
    assert gate.rows == [1, 2, 2]


@pytest.mark.parametrize("shape", [[], None])
def test_outputs_without_a_batch_are_not_joined(shape: list | None) -> None:
    summed = tenon.InferenceSession(
        graphs.model(
            [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)],
            [graphs.tensor("x", shape=["n", 3])],
            [graphs.tensor("y", shape=shape)],
        )
    )
    gate = Gate(summed)
    with tenon.Batcher(gate) as batcher:
        first = batcher.submit(None, {"x": rows(1, 0)})
        gate.started.acquire()
        futures = [batcher.submit(None, {"x": rows(1, i)}) for i in range(4)]
        gate.open.set()
        first.result(60)
        assert [float(future.result(60)[0]) for future in futures] == [0, 3, 6, 9]


def test_an_error_fails_the_request_that_causes_it() -> None:
    # A row of the table for each index; one is outside.
    table = numpy_helper.from_array(np.arange(10, dtype=np.float32), "table")
    model = graphs.model(
        [helper.make_node("Gather", ["table", "i"], ["y"])],
        [graphs.tensor("i", TensorProto.INT64, ["n"])],
        [graphs.tensor("y", shape=["n"])],
        initializers=[table],
    )
    gate = Gate(tenon.InferenceSession(model))
    with tenon.Batcher(gate) as batcher:
        first = batcher.submit(None, {"i": [0]})
        gate.started.acquire()
        futures = [batcher.submit(None, {"i": [i]}) for i in (1, 99, 3)]
        gate.open.set()
        assert first.result(60)[0] == [0]
        assert futures[0].result(60)[0] == [1]
        with pytest.raises(Exception, match="99"):
            futures[1].result(60)
        assert futures[2].result(60)[0] == [3]
        with pytest.raises(Exception, match="'j'"):
            batcher.run(None, {"j": [1]})
    assert gate.rows == [1, 3, 1, 1, 1, 1]


def test_max_wait_gathers_requests() -> None:
    gate = Gate(doubling(), is_open=True)
    with tenon.Batcher(gate, max_batch_size=4, max_wait=60) as batcher:
        futures = [batcher.submit(None, {"x": rows(1, i)}) for i in range(4)]
        for future in futures:  # before the minute is over, since the batch is full
            future.result(30)
        assert gate.rows == [4]
        begin = time.monotonic()
        with pytest.raises(TimeoutError):
            batcher.run(None, {"x": rows(1, 1)}, timeout=0)
        assert time.monotonic() - begin < 10


def test_a_deadline_ends_the_wait_for_others() -> None:
    with tenon.Batcher(doubling(), max_wait=60) as batcher:
        batcher.run(None, {"x": rows(32, 1)})
        (y,) = batcher.run(None, {"x": rows(1, 2)}, timeout=1)
    np.testing.assert_array_equal(y, rows(1, 4))


def test_a_queued_request_past_its_deadline_is_not_run() -> None:
    gate = Gate(doubling())
    with tenon.Batcher(gate) as batcher:
        first = batcher.submit(None, {"x": rows(1, 0)})
        gate.started.acquire()
        late = batcher.submit(None, {"x": rows(1, 1)}, timeout=0.01)
        with pytest.raises(TimeoutError, match=r"deadline of 0\.01 s"):
            batcher.run(None, {"x": rows(1, 1)}, timeout=0.01)
        cancelled = batcher.submit(None, {"x": rows(1, 2)})
        assert cancelled.cancel()
        time.sleep(0.02)
        gate.open.set()
        first.result(60)
        with pytest.raises(TimeoutError, match="deadline"):
            late.result(60)
    assert gate.rows == [1]


def test_a_run_that_nobody_waits_for_ends() -> None:
    model, inputs = long_kernels.matmul()
    feeds = {f"x{i}": value for i, value in enumerate(inputs)}
    session = tenon.InferenceSession(model)
    with tenon.Batcher(session) as batcher:
        with pytest.raises(TimeoutError):
            batcher.run(None, feeds, timeout=0.05)
        begin = time.monotonic()
    # Closing waited for the run, which takes a second or so.
    assert time.monotonic() - begin < 0.5


def test_the_queue_is_bounded() -> None:
    gate = Gate(doubling())
    with tenon.Batcher(gate, max_queue=2) as batcher:
        futures = [batcher.submit(None, {"x": rows(1, 0)})]
        gate.started.acquire()
        futures += [batcher.submit(None, {"x": rows(1, 0)}) for _ in range(2)]
        with pytest.raises(queue.Full, match="2 requests"):
            batcher.submit(None, {"x": rows(1, 0)})
        gate.open.set()
        for future in futures:
            future.result(60)


def test_closing_fails_what_is_queued() -> None:
    gate = Gate(doubling())
    batcher = tenon.Batcher(gate)
    running = batcher.submit(None, {"x": rows(1, 1)})
    gate.started.acquire()
    queued = batcher.submit(None, {"x": rows(1, 1)})
    closing = threading.Thread(target=batcher.close)
    closing.start()
    with pytest.raises(RuntimeError, match="closed"):
        queued.result(60)
    gate.open.set()
    closing.join(60)
    np.testing.assert_array_equal(running.result(0)[0], rows(1, 2))
    with pytest.raises(RuntimeError, match="closed"):
        batcher.run(None, {"x": rows(1, 1)})
    batcher.close()


def test_a_forgotten_batcher_ends_its_threads() -> None:
    before = threading.active_count()
    batcher = tenon.Batcher(doubling(), workers=3)
    batcher.run(None, {"x": rows(1, 1)})
    assert threading.active_count() == before + 3
    del batcher
    gc.collect()
    assert threading.active_count() == before


@pytest.mark.parametrize("workers", [1, 2])
def test_many_threads_get_their_own_rows(workers: int) -> None:
    with tenon.Batcher(doubling(), max_batch_size=8, workers=workers) as batcher:

        def ask(i: int) -> bool:
            (y,) = batcher.run(None, {"x": rows(1 + i % 3, i)})
            return np.array_equal(y, rows(1 + i % 3, 2 * i))

        with ThreadPoolExecutor(16) as threads:
            assert all(threads.map(ask, range(2000)))
        assert batcher.requests == 2000


def test_tasks_await_their_rows_and_may_be_cancelled() -> None:
    gate = Gate(doubling())

    async def main() -> None:
        with tenon.Batcher(gate) as batcher:
            tasks = [
                asyncio.create_task(batcher.run_async(None, {"x": rows(1, i)})) for i in range(5)
            ]
            await asyncio.sleep(0.01)
            tasks[4].cancel()
            with pytest.raises(TimeoutError):
                await batcher.run_async(None, {"x": rows(1, 9)}, timeout=0.01)
            gate.open.set()
            for i, task in enumerate(tasks[:4]):
                np.testing.assert_array_equal((await task)[0], rows(1, 2 * i))
            with pytest.raises(asyncio.CancelledError):
                await tasks[4]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "value"), [("max_batch_size", 0), ("max_wait", -1), ("max_queue", 0), ("workers", 0)]
)
def test_wrong_limits_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected at least"):
        tenon.Batcher(doubling(), **{name: value})
