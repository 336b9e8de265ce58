"""Times single operators of every kind, type and rank on Tenon, PyTorch and onnxruntime, in turns.

    python bench/sweep.py [--match Softmax] [--threads 1] [--worst 20] [--all]

after: pip install -r requirements-torch.txt. Each result is compared with PyTorch's. Prints how the
times compare, and the operators that are slowest beside PyTorch: the least time of a run of each in
microseconds, and how many times faster Tenon is. Fails if a result differs.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
import tenon
import torch
from onnx import numpy_helper
from sweep_cases import BFLOAT16, Sample, as_torch, samples
from turns import least_time, session

ROUNDS, ROUND_SECONDS = 5, 0.015
# Relative to the greatest magnitude, by the bits of a type's fraction.
TOLERANCES = {np.dtype("float64"): 1e-9, np.dtype("float32"): 2e-5, np.dtype("float16"): 4e-3}


class Eager:
    """PyTorch's expression, called as a session is."""

    def __init__(self, sample: Sample) -> None:
        content, feeds = sample.model
        constants = onnx.load_from_string(content).graph.initializer
        arrays = [*feeds.values(), *map(numpy_helper.to_array, constants)]
        self._inputs = [as_torch(np.ascontiguousarray(x).reshape(x.shape)) for x in arrays]
        self._expression = sample.expression

    def run(self, _names: None, _feeds: dict[str, np.ndarray]) -> Any:
        return self._expression(*self._inputs)  # type: ignore[misc]


class Row(NamedTuple):
    """Least times in microseconds; NaN where a library cannot do it."""

    name: str
    tenon: float
    torch: float
    onnxruntime: float
    difference: str

    def speed(self, other: float) -> float:
        return other / self.tenon


def difference(ours: Sequence[np.ndarray], theirs: Any) -> str:
    """What differs, or nothing."""
    if isinstance(theirs, torch.Tensor):
        theirs = [theirs]
    for index, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        tolerance = TOLERANCES.get(a.dtype, 4e-2 if a.dtype == BFLOAT16 else 0)
        expected = b.to(torch.float64).numpy() if a.dtype.kind not in "iub" else b.numpy()
        if a.shape != expected.shape:
            return f"output {index}: shape {a.shape}, PyTorch {expected.shape}"
        if a.dtype.kind in "iub":
            wrong = np.count_nonzero(a != expected)
        else:
            scale = np.max(np.abs(expected), initial=1e-30)
            wrong = np.count_nonzero(
                ~(np.abs(a.astype(np.float64) - expected) <= tolerance * scale)
            )
        if wrong:
            return f"output {index}: {wrong} of {a.size} elements differ"
    return ""


def attempt(make: Any) -> Any:
    """A runtime that has done one run, and its results; None if it cannot."""
    try:
        runtime, feeds = make()
        return runtime, runtime.run(None, feeds)
    except Exception as error:  # what it raises is each library's own
        return None, error


def measure(sample: Sample, threads: int) -> Row:
    content, feeds = sample.model
    ours, results = attempt(lambda: (session(tenon, content, threads), feeds))
    if ours is None:
        return Row(sample.name, math.nan, math.nan, math.nan, str(results))
    eager = attempt(lambda: (Eager(sample), feeds)) if sample.expression else (None, None)
    others = [eager, attempt(lambda: (session(onnxruntime, content, threads), feeds))]
    wrong = difference(results, eager[1]) if eager[0] else ""
    runtimes = [ours, *(runtime for runtime, _ in others)]
    times = [
        [least_time(each, feeds, ROUND_SECONDS) if each else math.nan for each in runtimes]
        for _ in range(ROUNDS)
    ]
    least = [min(column) * 1e6 for column in zip(*times, strict=True)]
    return Row(sample.name, least[0], least[1], least[2], wrong)


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def print_table(rows: list[Row]) -> None:
    print("| operator | tenon, us | PyTorch, us | onnxruntime, us | times PyTorch's speed |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for row in rows:
        figures = [row.tenon, row.torch, row.onnxruntime]
        cells = ["" if math.isnan(x) else f"{x:.1f}" for x in figures]
        speed = row.speed(row.torch)
        cells.append("" if math.isnan(speed) else f"{speed:.2f}")
        print(f"| {row.name} | {' | '.join(cells)} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--match", default="", help="only the operators with this in their row")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worst", type=int, default=20, help="rows of the table")
    parser.add_argument("--all", action="store_true", help="every row, as they are measured")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    onnxruntime.set_default_logger_severity(4)
    rows = [
        measure(sample, arguments.threads) for sample in samples() if arguments.match in sample.name
    ]
    with_torch = [row for row in rows if not math.isnan(row.torch / row.tenon)]
    speeds = [row.speed(row.torch) for row in with_torch]
    beside = [row.speed(row.onnxruntime) for row in rows if not math.isnan(row.onnxruntime)]
    print(
        f"{len(rows)} operators. {len(speeds)} beside PyTorch: {mean(speeds):.2f} times its speed,"
        f" {sum(x < 0.5 for x in speeds)} at less than half of it."
        f" {len(beside)} beside onnxruntime: {mean(beside):.2f} times its speed,"
        f" {sum(x < 1 for x in beside)} slower.\n"
    )
    if arguments.all:
        print_table(rows)
    else:
        print_table(sorted(with_torch, key=lambda row: row.speed(row.torch))[: arguments.worst])
    wrong = [row for row in rows if row.difference]
    for row in wrong:
        print(f"{row.name}: {row.difference}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
