"""Compares Tenon with onnxruntime: same machine, model, inputs and number of threads.

Every measurement is a separate process (worker.py), and the two runtimes run in short turns. A full
comparison writes its table to docs/performance.md; one that is narrowed by an option only prints
it. The figures of every round go to build/bench/compare.json.
"""

import argparse
import contextlib
import dataclasses
import fnmatch
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence

import numpy as np
from cases import GENERATED, REAL, Case
from report import Result, Round, cell, compare, markdown, replace_between_markers
from worker import save_arrays

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "performance.md"
FIGURES = ROOT / "build" / "bench" / "compare.json"
WORKER_TIMEOUT_S = 900  # for both workers of a round
TURNS = 7  # of each worker in a round


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to measure and how long: in each of `rounds`, either runs the model for `seconds`."""

    candidate: str
    reference: str
    rounds: int
    seconds: float


class WorkerError(Exception):
    """A worker failed; the text is the last line that it wrote."""


class Worker:
    """A process of worker.py whose model is warm. It runs only in its turns."""

    def __init__(self, module: str, *arguments: object) -> None:
        script = pathlib.Path(__file__).with_name("worker.py")
        self._module = module
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, str(script), module, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        turns, output = self._process.stdin, self._process.stdout
        assert turns and output
        self._turns, self._output = turns, output
        self._timer = threading.Timer(WORKER_TIMEOUT_S, self._process.kill)
        self._timer.daemon = True
        self._timer.start()
        self._line("warm")

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._process.kill()
        self._process.wait()
        self._output.close()
        self._errors.close()

    def _line(self, beginning: str) -> str:
        """The next line that begins so: a runtime may write others."""
        for line in self._output:
            if line.startswith(beginning):
                return line
        self._timer.cancel()
        status = self._process.wait()
        self._errors.seek(0)
        last = (self._errors.read().strip().splitlines() or [f"exit status {status}"])[-1]
        raise WorkerError(f"{self._module}: {last[:200].replace('|', '/')}")

    def take_turn(self) -> None:
        self._turns.write("\n")
        self._turns.flush()
        self._line("done")

    def figures(self) -> dict[str, float]:
        """Ends the process."""
        self._turns.close()
        return json.loads(self._line("{"))


def measure_round(
    plan: Plan, arguments: Sequence[object], outputs: Sequence[pathlib.Path]
) -> Round:
    """Creates one session after the other and warms it up, then runs them in turns, so that other
    work on the machine slows down both."""
    with contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(Worker(module, *arguments, plan.seconds / TURNS, path))
            for module, path in zip((plan.candidate, plan.reference), outputs, strict=True)
        ]
        for _ in range(TURNS):
            for worker in workers:
                worker.take_turn()
        return Round(*(worker.figures() for worker in workers))


def greatest_difference(ours: pathlib.Path, theirs: pathlib.Path) -> float | None:
    """See Result.difference. Infinite where shapes differ or only one has a NaN."""
    with np.load(ours) as first, np.load(theirs) as second:
        if set(first) != set(second):
            return float("inf")
        pairs = [
            (first[name], second[name])
            for name in first
            if np.issubdtype(second[name].dtype, np.number) and second[name].size
        ]
    return max((relative_difference(*pair) for pair in pairs), default=None)


def relative_difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    if ours.shape != theirs.shape or not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return float("inf")
    ours, theirs = (np.nan_to_num(array.astype(np.float64)) for array in (ours, theirs))
    scale = np.abs(theirs).max() or 1.0
    return float(np.abs(ours - theirs).max() / scale)


def measure_case(case: Case, folder: pathlib.Path, threads: int, plan: Plan) -> Result:
    model = folder / case.path
    with tempfile.TemporaryDirectory() as scratch:
        inputs, ours, theirs = (
            pathlib.Path(scratch) / name for name in ("inputs.npz", "ours.npz", "theirs.npz")
        )
        save_arrays(inputs, case.inputs(folder))
        warm_page_cache(model)
        try:
            rounds = [
                measure_round(plan, (model, inputs, threads), (ours, theirs))
                for _ in range(plan.rounds)
            ]
        except WorkerError as error:
            return Result(case.name, threads, error=str(error))
        return Result(case.name, threads, rounds, greatest_difference(ours, theirs))


def warm_page_cache(path: pathlib.Path) -> None:
    """Reads the file, so that the first process to load it has no disadvantage."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


def models_folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("TENON_MODELS") or ROOT.parent / "shared" / "models")


def available_cases(patterns: list[str]) -> list[tuple[Case, pathlib.Path]]:
    """The cases that match a pattern (all without patterns) and whose model exists."""
    groups = ((REAL, models_folder()), (GENERATED, ROOT / "build" / "models"))
    found = []
    for cases, folder in groups:
        wanted = [case for case in cases if is_wanted(case.name, patterns)]
        absent = [case.name for case in wanted if not (folder / case.path).exists()]
        if absent:
            print(f"skipped, not in {folder}: {', '.join(absent)}", flush=True)
        found += [(case, folder) for case in wanted if case.name not in absent]
    return found


def machine() -> str:
    """The processor, the processors that we may use, the system and the versions that matter."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "?")
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("onnxruntime", "numpy")
    )
    processors = len(os.sched_getaffinity(0))
    python = platform.python_version()
    system = f"{platform.system()}, Python {python}, {versions}"
    return f"{model}, {processors} CPUs, load {os.getloadavg()[0]:.1f} at the start, {system}"


def parser_of(documentation: str) -> argparse.ArgumentParser:
    """With the options of all programs that compare models."""
    parser = argparse.ArgumentParser(description=documentation.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=[], metavar="NAME", help="names or globs")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--quick", action="store_true", help="one short round")
    return parser


def is_wanted(name: str, patterns: list[str]) -> bool:
    """Whether the name matches a pattern; all do if there are none."""
    return not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def parse_arguments() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--candidate", default="tenon", metavar="MODULE")
    parser.add_argument("--reference", default="onnxruntime", metavar="MODULE")
    return parser.parse_args()


def is_full(arguments: argparse.Namespace) -> bool:
    """True if no option narrows the comparison, so that it may be written to the documentation."""
    narrowed = arguments.models or arguments.quick or arguments.threads != [1, 2]
    return not narrowed and arguments.candidate == "tenon"


def progress(result: Result) -> str:
    title = f"{result.case}, {result.threads} thread(s)"
    if result.error:
        return f"{title}: {result.error}"
    steady = cell(compare(result.rounds, "steady_ms"))
    created = cell(compare(result.rounds, "create_ms"))
    return f"{title}: steady {steady} ms, create {created} ms".replace("**", "")


def main() -> int:
    arguments = parse_arguments()
    plan = Plan(
        arguments.candidate,
        arguments.reference,
        rounds=1 if arguments.quick else 3,
        seconds=0.2 if arguments.quick else 1.0,
    )
    for module in (plan.candidate, plan.reference):
        if importlib.util.find_spec(module) is None:
            print(f"compare.py: Python finds no module '{module}'; build it first", file=sys.stderr)
            return 1
    where = machine()
    results = []
    for case, folder in available_cases(arguments.models):
        for threads in arguments.threads:
            result = measure_case(case, folder, threads, plan)
            results.append(result)
            print(progress(result), flush=True)
    text = markdown(results, plan.candidate, plan.reference, where)
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_text(
        json.dumps(
            {"machine": where, **dataclasses.asdict(plan)}
            | {"results": [dataclasses.asdict(result) for result in results]},
            indent=1,
        )
    )
    print(f"\n{text}\n")
    if is_full(arguments):
        DOCUMENT.write_text(replace_between_markers(DOCUMENT.read_text(), text))
        print(f"written to {DOCUMENT.relative_to(ROOT)} and {FIGURES.relative_to(ROOT)}")
    return int(any(result.error for result in results))


if __name__ == "__main__":
    sys.exit(main())
