"""Measures the first runs of a model with and without files of packed weights.

    python bench/packed_weights.py MODEL... [--threads N] [--rounds N]

Each session is in a process of its own, in turns without a folder ("no") and with one that has the
files ("yes"). Prints medians in milliseconds, and the memory in MB that is the process's own
afterwards (RssAnon); what is mapped from files is shared by all processes that map them.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import tenon
from worker import milliseconds, status_mb

RUNS = 32  # in the later half of them all weights are packed
ELEMENTS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float16)": np.float16}


def feeds(session: tenon.InferenceSession) -> dict[str, np.ndarray]:
    """Ones; 1 for the first unknown size of an input, and 128 for all others."""
    made = {}
    for x in session.get_inputs():
        sizes = [d if isinstance(d, int) else 128 if i else 1 for i, d in enumerate(x.shape)]
        made[x.name] = np.ones(sizes, ELEMENTS.get(x.type, np.float32))
    return made


def measure(model: str, threads: int, folder: str) -> dict[str, float]:
    """In a process of its own. `folder` may be empty."""
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("tenon.packed_weights_folder", folder)
    start = time.perf_counter_ns()
    session = tenon.InferenceSession(model, options)
    inputs = feeds(session)
    times = []
    for _ in range(RUNS):
        session.run(None, inputs)
        times.append(milliseconds(start))
        start = time.perf_counter_ns()
    return {
        "first": times[0],
        "slowest": max(times[1:]),
        "later": statistics.median(times[RUNS // 2 :]),
        "memory": status_mb("RssAnon"),
    }


def in_child(model: str, threads: int, folder: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", folder, "--threads", str(threads), model]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        print(json.dumps(measure(arguments.models[0], arguments.threads, arguments.child)))
        return
    print("| model | files | create and first run | slowest later run | later runs | own memory |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            in_child(model, arguments.threads, folder)  # writes the files
            got: dict[str, list[dict[str, float]]] = {"": [], folder: []}
            for _ in range(arguments.rounds):
                for place, results in got.items():
                    results.append(in_child(model, arguments.threads, place))
        for place, results in got.items():
            cells = [pathlib.Path(model).stem, "yes" if place else "no"]
            cells += [
                f"{statistics.median(result[name] for result in results):.0f}"
                for name in ("first", "slowest", "later", "memory")
            ]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
