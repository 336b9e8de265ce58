"""Measures what a trace costs the runs that it records, and runs of sessions without one.

Usage: profiling.py [--models build/models] [--threads 1] [--seconds 3] [NAME...]

Three sessions of each model take turns, run by run: one without a trace, one whose trace has
ended, and one that is traced. Prints CPU times of a run in microseconds, and how much more the
second and the third take than the first. Other work on the machine still affects the figures.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

import cases
import numpy as np
import tenon
from onnx import helper

NAMES = ["chain_1000", "mobilenet_v2", "resnet18", "minilm_l6", "gpt2_decode"]
STATES = ("none", "ended", "traced")


def chain(length: int) -> bytes:
    """y = x through nodes that do almost nothing, and of which none can be removed."""
    names = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    nodes = [helper.make_node("Neg", [names[i]], [names[i + 1]]) for i in range(length)]
    value = [helper.make_tensor_value_info(name, 1, [1]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "chain", value[:1], value[1:])
    return helper.make_model(
        graph, ir_version=9, opset_imports=[helper.make_opsetid("", 19)]
    ).SerializeToString()


def source(name: str, folder: pathlib.Path) -> tuple[str | bytes, cases.Feeds]:
    if name == "chain_1000":
        return chain(1000), {"x": np.ones(1, np.float32)}
    (case,) = [one for one in cases.GENERATED if one.name == name]
    return str(folder / case.path), case.inputs(folder)


def open_session(
    model: str | bytes, state: str, threads: int, folder: str
) -> tenon.InferenceSession:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    if isinstance(model, bytes):  # prevents that the chain becomes one node
        options.graph_optimization_level = tenon.GraphOptimizationLevel.ORT_DISABLE_ALL
    if state != "none":
        options.enable_profiling = True
        options.profile_file_prefix = f"{folder}/{state}"
        options.add_session_config_entry("tenon.profiling.max_events", "0")
    session = tenon.InferenceSession(model, options)
    if state == "ended":
        session.end_profiling()
    return session


def measure(name: str, folder: pathlib.Path, threads: int, seconds: float) -> str:
    model, feeds = source(name, folder)
    times: dict[str, list[float]] = {state: [] for state in STATES}
    with tempfile.TemporaryDirectory() as traces:
        sessions = {state: open_session(model, state, threads, traces) for state in STATES}
        for _ in range(3):
            for session in sessions.values():
                session.run(None, feeds)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for state, session in sessions.items():
                start = time.process_time_ns()
                session.run(None, feeds)
                times[state].append((time.process_time_ns() - start) / 1e3)
        del sessions, session
    cells = [name, str(threads)]
    for summary in (statistics.median, min):
        figures = {state: summary(values) for state, values in times.items()}
        cells.append(f"{figures['none']:.1f}")
        cells += [f"{100 * (figures[s] / figures['none'] - 1):+.1f} %" for s in STATES[1:]]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--models", type=pathlib.Path, default=root / "build" / "models")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    print("| model | threads | median, us | ended | traced | least, us | ended | traced |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.names or NAMES:
        row = measure(name, arguments.models, arguments.threads, arguments.seconds)
        print(row, flush=True)


if __name__ == "__main__":
    main()
