"""Runs on other threads.

A run keeps its feeds and names: the caller may change the mapping and the list after the call, but
not the arrays.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _tenon


def with_callback(
    session: _tenon.Session,
    output_names: Sequence[str] | None,
    feed: Mapping[str, Any],
    callback: Callable[[list[Any], Any, str], None],
    user_data: Any,
    options: _tenon.RunOptions | None,
) -> None:
    """Calls back once, with the outputs or with an error."""
    output_names, feed = _kept(output_names, feed)

    def run() -> None:
        outputs, error = [], ""
        try:
            outputs = session.run(output_names, feed, options)
        except Exception as exception:  # the callback gets every error
            error = str(exception)
        callback(outputs, user_data, error)

    try:
        threading.Thread(target=run).start()
    except RuntimeError as error:  # no more threads, or the interpreter ends: since Python 3.12
        callback([], user_data, str(error))


def awaitable(
    session: _tenon.Session,
    output_names: Sequence[str] | None,
    feed: Mapping[str, Any],
    options: _tenon.RunOptions | None,
) -> asyncio.Future[list[Any]]:
    """A future of the running event loop. Cancelling it terminates the run."""
    output_names, feed = _kept(output_names, feed)
    loop = asyncio.get_running_loop()
    future: asyncio.Future[list[Any]] = loop.create_future()
    options = options or _tenon.RunOptions()

    def settle(outputs: list[Any] | None, error: Exception | None) -> None:
        if future.cancelled():
            options.terminate = False  # other runs may use the caller's options
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(outputs)  # type: ignore[arg-type]

    def run() -> None:
        outcome: tuple[list[Any] | None, Exception | None]
        try:
            outcome = session.run(output_names, feed, options), None
        except Exception as exception:  # the awaiting coroutine gets every error
            outcome = None, exception
        try:
            loop.call_soon_threadsafe(settle, *outcome)
        except RuntimeError:
            pass  # the loop is closed, so nothing waits for the result

    def stop(done: asyncio.Future[list[Any]]) -> None:
        if done.cancelled():
            options.terminate = True

    future.add_done_callback(stop)
    threading.Thread(target=run).start()
    return future


def _kept(
    output_names: Sequence[str] | None, feed: Mapping[str, Any]
) -> tuple[list[str] | None, dict[str, Any]]:
    return None if output_names is None else list(output_names), dict(feed)
