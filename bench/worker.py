"""Measures one model in one runtime, in a separate process, and prints the figures as JSON.

Usage: worker.py MODULE MODEL INPUTS.npz THREADS SECONDS [OUTPUTS.npz]

MODULE is any Python package with the API of onnxruntime. Times are milliseconds, memory is MB.
The outputs of the first run are saved in OUTPUTS.npz. When the model is warm, the worker prints a
line. For each line that it reads then, it runs the model for SECONDS and prints another, so that
two workers can take turns. The figures follow at the end of the input.
"""

import importlib
import json
import pathlib
import statistics
import sys
import time

import numpy as np

# At least so many runs and seconds, so many times the time of the first run, and the time in which
# a slow system supplies the memory for a second copy of the weights.
WARM_UP_RUNS = 2
WARM_UP_SECONDS = 1.5  # for weights that the file does not have, such as constants of one value
WARM_UP_TIMES_FIRST = 8
WARM_UP_BYTES_PER_SECOND = 200e6
MAXIMUM_RUNS = 50_000


def milliseconds(start_ns: int) -> float:
    return (time.perf_counter_ns() - start_ns) / 1e6


def status_mb(field: str) -> float:
    """A memory figure of this process, VmHWM (peak) or VmRSS (now), of Linux."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    raise LookupError(field)


def mapped_libraries() -> set[str]:
    """Shared libraries in this process, except those of the system and of Python."""
    system = (sys.base_prefix + "/lib", "/lib", "/usr/lib")
    paths = {
        line.split(maxsplit=5)[5]
        for line in pathlib.Path("/proc/self/maps").read_text().splitlines()
        if ".so" in line
    }
    return {path for path in paths if not path.startswith(system)}


def save_arrays(path: str | pathlib.Path, arrays: dict[str, np.ndarray]) -> None:
    np.savez(path, **arrays)  # type: ignore[arg-type]  # names are taken for savez's own options


def timed_runs(run, seconds: float, least: int = 1) -> list[float]:
    """Times of single runs, for about `seconds`, and at least so many."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < MAXIMUM_RUNS and (len(times) < least or time.perf_counter() < end):
        start = time.perf_counter_ns()
        run()
        times.append(milliseconds(start))
    return times


def measure(
    module: str, model: str, inputs: str, threads: int, seconds: float, outputs_path: str | None
) -> dict[str, float]:
    with np.load(inputs) as archive:
        feeds = dict(archive)
    libraries_before = mapped_libraries()
    before_mb = status_mb("VmRSS")

    start = time.perf_counter_ns()
    runtime = importlib.import_module(module)
    import_ms = milliseconds(start)

    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    start = time.perf_counter_ns()
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    create_ms = milliseconds(start)

    start = time.perf_counter_ns()
    outputs = session.run(None, feeds)
    first_ms = milliseconds(start)
    if outputs_path:
        arrays = {str(i): value for i, value in enumerate(outputs) if isinstance(value, np.ndarray)}
        save_arrays(outputs_path, arrays)

    weights_seconds = pathlib.Path(model).stat().st_size / WARM_UP_BYTES_PER_SECOND
    warm_up_seconds = max(WARM_UP_SECONDS, WARM_UP_TIMES_FIRST * first_ms / 1e3, weights_seconds)
    timed_runs(lambda: session.run(None, feeds), warm_up_seconds, WARM_UP_RUNS)
    times = []
    print("warm", flush=True)
    for _ in sys.stdin:
        session.run(None, feeds)  # reads into the caches what the other one has evicted
        times += timed_runs(lambda: session.run(None, feeds), seconds)
        print("done", flush=True)
    new_libraries = mapped_libraries() - libraries_before
    return {
        "import_ms": import_ms,
        "create_ms": create_ms,
        "first_ms": first_ms,
        "ready_ms": create_ms + first_ms,
        "steady_ms": statistics.median(times),
        "steady_min_ms": min(times),
        "runs": len(times),
        "before_mb": before_mb,
        "peak_mb": status_mb("VmHWM"),
        "library_mb": sum(pathlib.Path(path).stat().st_size for path in new_libraries) / 1e6,
    }


def main() -> None:
    module, model, inputs, threads, seconds, *outputs = sys.argv[1:]
    figures = measure(
        module, model, inputs, int(threads), float(seconds), outputs[0] if outputs else None
    )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
