"""Batcher: joins the requests of many callers to one session in batches."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from queue import Full
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _tenon
from ._stateful import STORED

if TYPE_CHECKING:
    from ._session import Session

Outputs = list[np.ndarray]


class Request:
    """One caller's feeds, and the future that gets its outputs."""

    __slots__ = ("arrival", "deadline", "feeds", "future", "key", "names", "rows")

    def __init__(
        self, names: list[str], feeds: dict[str, np.ndarray], timeout: float | None
    ) -> None:
        self.names = names
        self.feeds = feeds
        self.arrival = time.monotonic()
        self.deadline = None if timeout is None else self.arrival + timeout
        self.future: Future[Outputs] = Future()
        self.rows = 1
        self.key: object = self  # equal for requests that may be joined

    def is_late(self, now: float) -> bool:
        return self.deadline is not None and self.deadline <= now

    def settle(self, outcome: Outputs | BaseException) -> None:
        """Gives the caller the outcome, unless it has one or cancelled the request."""
        try:
            if isinstance(outcome, BaseException):
                self.future.set_exception(outcome)
            else:
                self.future.set_result(outcome)
        except InvalidStateError:
            pass

    def settle_late(self) -> None:
        self.settle(TimeoutError("the request passed its deadline"))


class Group:
    """Queued requests that may be joined, oldest first."""

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.rows = 0

    def add(self, request: Request) -> None:
        self.requests.append(request)
        self.rows += request.rows

    def take(self, max_batch_size: int) -> list[Request]:
        """The next batch: at least one request, and no more rows than that with several."""
        batch = [self.requests.popleft()]
        rows = batch[0].rows
        while self.requests and rows + self.requests[0].rows <= max_batch_size:
            batch.append(self.requests.popleft())
            rows += batch[-1].rows
        self.rows -= rows
        return batch


class Work:
    """The queue and the threads that empty it; they do not keep the Batcher alive."""

    def __init__(
        self,
        run: Callable[..., Outputs],
        batched_inputs: frozenset[str],
        max_batch_size: int,
        max_wait: float,
        max_queue: int,
    ) -> None:
        self._run = run
        self._batched_inputs = batched_inputs
        self._max_batch_size = max_batch_size
        self._max_wait = max_wait
        self._max_queue = max_queue
        self._changed = threading.Condition()
        self._groups: dict[object, Group] = {}
        self._queued = 0
        self._is_closed = False
        self._run_time = 0.0  # of the last batch
        self._not_joined: set[object] = set()  # keys whose outputs do not have the batch's rows
        self._threads: list[threading.Thread] = []
        self.batches = 0
        self.requests = 0

    def start(self, workers: int) -> None:
        for i in range(workers):
            thread = threading.Thread(target=self._work, name=f"tenon-batcher-{i}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """Fails what is queued, and waits for the batches in progress."""
        with self._changed:
            self._is_closed = True
            left = [request for group in self._groups.values() for request in group.requests]
            self._groups.clear()
            self._queued = 0
            self._changed.notify_all()
        for request in left:
            request.settle(RuntimeError("the Batcher is closed"))
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def put(self, request: Request) -> None:
        if request.key in self._not_joined:
            request.key = request
        with self._changed:
            if self._is_closed:
                raise RuntimeError("the Batcher is closed")
            if self._queued >= self._max_queue:
                raise Full(f"{self._queued} requests are queued: as many as max_queue allows")
            group = self._groups.get(request.key)
            if group is None:
                group = self._groups[request.key] = Group()
            group.add(request)
            self._queued += 1
            self._changed.notify()

    def _leave_at(self, group: Group) -> float:
        """The time at which the group is run, whether or not a batch is full."""
        if group.rows >= self._max_batch_size:
            return 0.0
        last = group.requests[0].arrival + self._max_wait
        if self._max_wait:
            for request in group.requests:
                if request.deadline is not None:  # half of the time is for the run at least
                    last = min(
                        last,
                        (request.arrival + request.deadline) / 2,
                        request.deadline - 2 * self._run_time,
                    )
        return last

    def _next(self) -> list[Request] | None:
        """Waits for a batch. None: the Batcher is closed."""
        with self._changed:
            while not self._is_closed:
                if not self._groups:
                    self._changed.wait()
                    continue
                now = time.monotonic()
                times = {key: self._leave_at(group) for key, group in self._groups.items()}
                ready = [key for key, leaves in times.items() if leaves <= now]
                if not ready:
                    self._changed.wait(min(times.values()) - now)
                    continue
                key = min(ready, key=lambda one: self._groups[one].requests[0].arrival)
                group = self._groups[key]
                batch = group.take(self._max_batch_size)
                self._queued -= len(batch)
                if not group.requests:
                    del self._groups[key]
                return batch
        return None

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            now = time.monotonic()
            for request in batch:
                if request.is_late(now):
                    request.settle_late()
            alive = [request for request in batch if not request.future.done()]
            del batch
            if alive:
                self._answer(alive)
            del alive  # a request that was answered is not kept until the next one

    def _answer(self, batch: list[Request]) -> None:
        begin = time.monotonic()
        try:
            outcomes: Sequence[Outputs | BaseException] = self._split(batch, self._run_once(batch))
        except Exception as error:
            outcomes = [error] if len(batch) == 1 else [self._alone(one) for one in batch]
        end = time.monotonic()
        self._run_time = end - begin
        self.batches += 1
        self.requests += len(batch)
        for request, outcome in zip(batch, outcomes, strict=True):
            if request.is_late(end):
                request.settle_late()
            request.settle(outcome)

    def _alone(self, request: Request) -> Outputs | BaseException:
        if request.future.done() or request.is_late(time.monotonic()):
            return TimeoutError("the request passed its deadline")
        try:
            return self._run_once([request])
        except Exception as error:
            return error

    def _run_once(self, batch: list[Request]) -> Outputs:
        """Runs the requests as one; ends the run when none of them waits any more."""
        options = _tenon.RunOptions()
        if all(request.deadline is not None for request in batch):
            left = max(request.deadline or 0 for request in batch) - time.monotonic()
            milliseconds = max(1, round(1000 * left))
            options.add_run_config_entry("tenon.run_timeout_ms", str(milliseconds))
        waiting = len(batch)
        lock = threading.Lock()

        def leave(future: Future[Outputs]) -> None:
            nonlocal waiting
            with lock:
                waiting -= 1
                if not waiting and (future.cancelled() or future.exception() is not None):
                    options.terminate = True

        for request in batch:
            request.future.add_done_callback(leave)
        feeds = batch[0].feeds
        if len(batch) > 1:
            feeds = {
                name: np.concatenate([request.feeds[name] for request in batch])
                if name in self._batched_inputs
                else value
                for name, value in feeds.items()
            }
        return self._run(batch[0].names, feeds, options)

    def _split(self, batch: list[Request], outputs: Outputs) -> list[Outputs]:
        """The rows of each request. Raises ValueError if the outputs do not have them all."""
        if len(batch) == 1:
            return [outputs]
        ends = np.cumsum([request.rows for request in batch])
        if any(np.ndim(output) == 0 or len(output) != ends[-1] for output in outputs):
            self._not_joined.add(batch[0].key)
            raise ValueError("outputs without the batch's rows")
        return [
            [output[end - request.rows : end] for output in outputs]
            for request, end in zip(batch, ends, strict=True)
        ]


class Batcher:
    """Runs the requests of many threads or tasks in batches.

    Requests whose inputs have the same types, and the same sizes after the first axis, are joined
    along the first axis; nothing is padded. Each gets its rows of the outputs. Inputs whose first
    axis has a fixed size are not joined: requests that are must have equal ones. Requests of
    outputs whose first axis has a fixed size, or that turn out not to have the rows of the inputs,
    are run by themselves.
    """

    def __init__(
        self,
        session: Session,
        max_batch_size: int = 32,
        max_wait: float = 0.0,
        max_queue: int = 1024,
        workers: int = 1,
    ) -> None:
        """Starts the threads that run the batches.

        max_batch_size  most rows of a batch of several requests
        max_wait        seconds that a request may wait for others while a worker is free; requests
                        that come while all workers are busy are joined in any case
        max_queue       most requests that wait; further ones raise queue.Full
        workers         batches that run at a time
        """
        for name, value, least in (
            ("max_batch_size", max_batch_size, 1),
            ("max_wait", max_wait, 0),
            ("max_queue", max_queue, 1),
            ("workers", workers, 1),
        ):
            if value < least:
                raise ValueError(f"{name}: expected at least {least}, got {value}")
        self._inputs = {value.name: value for value in session.get_inputs()}
        self._outputs = {value.name: value for value in session.get_outputs()}
        batched = frozenset(name for name, one in self._inputs.items() if is_batched(one))
        self._batched_inputs = batched
        self._max_batch_size = max_batch_size
        self._work = Work(session.run, batched, max_batch_size, max_wait, max_queue)
        self._work.start(workers)
        self._close = weakref.finalize(self, self._work.close)

    def submit(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        timeout: float | None = None,
    ) -> Future[Outputs]:
        """A future of the outputs. The arrays must not change before it is done.

        timeout  seconds after which the request fails with a TimeoutError, run or not

        Cancelling the future takes the request out of the queue; a run that nobody waits for any
        more ends. Raises queue.Full if too many requests wait.
        """
        names = list(output_names or self._outputs)
        feeds = {name: self._array(name, value) for name, value in input_feed.items()}
        request = Request(names, feeds, timeout)
        self._classify(request)
        self._work.put(request)
        return request.future

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        timeout: float | None = None,
    ) -> Outputs:
        """As InferenceSession.run; see submit."""
        future = self.submit(output_names, input_feed, timeout)
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise TimeoutError(f"the request passed its deadline of {timeout} s") from None

    async def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        timeout: float | None = None,
    ) -> Outputs:
        """As run, for coroutines. Cancelling the task cancels the request."""
        future = self.submit(output_names, input_feed, timeout)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), timeout)
        except TimeoutError:
            future.cancel()
            raise TimeoutError(f"the request passed its deadline of {timeout} s") from None

    @property
    def batches(self) -> int:
        """The batches that have been run."""
        return self._work.batches

    @property
    def requests(self) -> int:
        """The requests in these batches."""
        return self._work.requests

    def close(self) -> None:
        """Fails what is queued, waits for the batches in progress, and refuses new requests."""
        self._close()

    def __enter__(self) -> Batcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _array(self, name: str, value: Any) -> np.ndarray:
        if isinstance(value, np.ndarray):
            return value
        if isinstance(value, _tenon.OrtValue):
            return value.numpy()
        if isinstance(value, list | tuple | int | float) and name in self._inputs:
            element = self._inputs[name].type.removeprefix("tensor(").removesuffix(")")
            if element in STORED and element != "bfloat16":
                return np.asarray(value, STORED[element][1])
        return np.asarray(value)

    def _classify(self, request: Request) -> None:
        """Finds the rows of the request, and which others it may be joined with."""
        rows = set()
        key: list[object] = [tuple(request.names)]
        for name, array in sorted(request.feeds.items()):
            if name in self._batched_inputs and array.ndim:
                rows.add(array.shape[0])
                key.append((name, array.dtype, array.shape[1:]))
            elif array.dtype.hasobject:
                return
            else:
                key.append((name, array.dtype, array.shape, array.tobytes()))
        joins = all(
            name in self._outputs and is_batched(self._outputs[name]) for name in request.names
        )
        if len(rows) != 1:
            return
        (request.rows,) = rows
        if joins and 0 < request.rows < self._max_batch_size:
            request.key = tuple(key)


def is_batched(value: _tenon.NodeArg) -> bool:
    """Whether its first axis may have any size."""
    shape = value.shape
    return (
        value.type.startswith("tensor(")
        and (shape is None or bool(shape))
        and (not shape or not isinstance(shape[0], int))
    )
