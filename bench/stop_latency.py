"""Measures how soon a run returns after its deadline, inside kernels that take a second or so.

    python bench/stop_latency.py [--deadline MS] [--rounds N]

The models are those of tests/python/long_kernels.py. Prints for each the time of a whole run, and
the median and the greatest time from the deadline to the return, in milliseconds on one thread.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import time
from typing import Any

import tenon

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tests/python"))
import long_kernels


def run_time(session: Any, feeds: dict[str, Any], deadline_ms: int | None) -> float:
    """Milliseconds of a run, which ends at its deadline if it has one."""
    options = tenon.RunOptions()
    if deadline_ms is not None:
        options.add_run_config_entry("tenon.run_timeout_ms", str(deadline_ms))
    begin = time.perf_counter()
    try:
        session.run(None, feeds, options)
    except tenon.capi.onnxruntime_pybind11_state.Fail:
        pass
    return (time.perf_counter() - begin) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deadline", type=int, default=50, help="milliseconds")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    options = tenon.SessionOptions()
    options.intra_op_num_threads = 1
    print("| kernel | whole run, ms | returned late by, ms | at most |")
    print("| --- | ---: | ---: | ---: |")
    for case in long_kernels.CASES:
        content, inputs = case()
        session = tenon.InferenceSession(content, options)
        feeds = {x.name: inputs[int(x.name[1:])] for x in session.get_inputs()}
        whole = run_time(session, feeds, None)
        late = [
            run_time(session, feeds, arguments.deadline) - arguments.deadline
            for _ in range(arguments.rounds)
        ]
        name = case.__name__.replace("_", " ")
        print(f"| {name} | {whole:.0f} | {statistics.median(late):.1f} | {max(late):.1f} |")


if __name__ == "__main__":
    main()
