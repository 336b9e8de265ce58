"""Measures how long requests take where threads share processors: Tenon and onnxruntime in turns.

    python bench/scheduling.py [--models NAME ...] [--seconds S] [--rounds N]

Each scenario runs in processes of its own. Prints the median and the 99th percentile of a request's
time in milliseconds, medians over the rounds, and onnxruntime's divided by Tenon's.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import multiprocessing
import pathlib
import subprocess
import sys
import threading
import time

import numpy as np
from cases import GENERATED

MODELS = pathlib.Path(__file__).resolve().parent.parent / "build" / "models"
RUNTIMES = ["tenon", "onnxruntime"]


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    threads: int  # of the session
    clients: int = 1  # threads that call run()
    processes: int = 1
    neighbours: int = 0  # other processes that are always busy


SCENARIOS = [
    Scenario("one client, 2 threads", 2),
    Scenario("four clients, 1 thread", 1, clients=4),
    Scenario("four clients, 2 threads", 2, clients=4),
    Scenario("two processes of 2 threads", 2, processes=2),
    Scenario("2 threads and a busy neighbour", 2, neighbours=1),
    Scenario("16 threads", 16),
]


def serve(module: str, model: str, threads: int, clients: int, seconds: float) -> list[float]:
    """The seconds that each request took."""
    case = next(case for case in GENERATED if case.name == model)
    runtime = importlib.import_module(module)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session = runtime.InferenceSession(
        str(MODELS / case.path), options, providers=["CPUExecutionProvider"]
    )
    feeds = case.inputs(MODELS)
    for _ in range(3):
        session.run(None, feeds)
    times: list[list[float]] = [[] for _ in range(clients)]
    end = time.perf_counter() + seconds

    def request(mine: list[float]) -> None:
        while (begin := time.perf_counter()) < end:
            session.run(None, feeds)
            mine.append(time.perf_counter() - begin)

    callers = [threading.Thread(target=request, args=(mine,)) for mine in times]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return [t for mine in times for t in mine]


def spin() -> None:
    while True:
        pass


def measure(scenario: Scenario, module: str, model: str, seconds: float) -> tuple[float, float]:
    """The median and the 99th percentile, in milliseconds."""
    command = [sys.executable, __file__, "--serve", module, model]
    command += [str(scenario.threads), str(scenario.clients), str(seconds)]
    neighbours = [multiprocessing.Process(target=spin) for _ in range(scenario.neighbours)]
    for neighbour in neighbours:
        neighbour.start()
    try:
        servers = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            for _ in range(scenario.processes)
        ]
        times = [t for server in servers for t in json.loads(server.communicate()[0])]
    finally:
        for neighbour in neighbours:
            neighbour.kill()
    median, late = np.percentile(times, [50, 99]) * 1e3
    return float(median), float(late)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["mobilenet_v2", "minilm_l6_short"])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        module, model, threads, clients, seconds = arguments.serve
        json.dump(serve(module, model, int(threads), int(clients), float(seconds)), sys.stdout)
        return
    print("| model | scenario | median, ms | 99th percentile, ms |\n| --- | --- | --- | --- |")
    for model in arguments.models:
        for scenario in SCENARIOS:
            rounds = [
                [measure(scenario, module, model, arguments.seconds) for module in RUNTIMES]
                for _ in range(arguments.rounds)
            ]
            ours, theirs = np.median(np.array(rounds), axis=0)
            cells = [
                f"{a:.3g} / {b:.3g} (**{b / a:.2f}**)" for a, b in zip(ours, theirs, strict=True)
            ]
            print(f"| {model} | {scenario.name} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
