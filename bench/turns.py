"""Runs Tenon and onnxruntime in turns in one process, for benchmarks of single operators."""

from __future__ import annotations

import time
import types
from typing import Any

import numpy as np
import onnxruntime
import tenon

ROUNDS, ROUND_SECONDS = 4, 0.08


def session(module: types.ModuleType, content: bytes, threads: int) -> Any:
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    return module.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def least_time(run: Any, feeds: dict[str, np.ndarray], seconds: float = ROUND_SECONDS) -> float:
    least, end = float("inf"), time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        run.run(None, feeds)
        least = min(least, time.perf_counter() - begin)
    return least


def print_row(name: str, content: bytes, threads: int, feeds: dict[str, np.ndarray]) -> None:
    """Prints a row: the least time of a run of each, in microseconds, and Tenon's share."""
    runtimes = [session(module, content, threads) for module in (tenon, onnxruntime)]
    times = [[least_time(runtime, feeds) for runtime in runtimes] for _ in range(ROUNDS)]
    ours, theirs = (min(column) * 1e6 for column in zip(*times, strict=True))
    print(f"| {name} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} |", flush=True)


__all__ = ["ROUNDS", "least_time", "print_row", "session"]
