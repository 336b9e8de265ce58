"""Runs the tests on mutants: finds small changes of the sources that no test detects.

Usage: mutate.py [--sample N] [--seed N] [--list] [--jobs N] [--log FILE] PLACE...

A PLACE is a room (src/kernels), a folder or a file of one, or a line (src/kernels/copy.cpp:12). N
mutants of each place are selected at random, the same ones for the same seed; --list prints them.
Each mutant replaces its source and is compiled in build/mutate. Then the room's tests in TESTS
below run, and the source is restored. A mutant that does not compile is replaced by another. It is
killed if a test fails, crashes or does not end. Prints a table in Markdown and every survivor;
progress goes to standard error. The exit status is 1 if a mutant survived.

--log appends what became of each mutant to a file. The mutants of that file are not run again, so
that a run continues where one was interrupted.

Sources are changed temporarily: commit first, and build nothing else in the same folder meanwhile.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from mutations import Mutation, mutations

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/mutate"

# Without the stubs of the package, which say nothing of results and take a build of their own.
PYTHON = "tests/python --ignore=tests/python/test_stubs.py"

# The tests of each room, the quickest first: programs of GoogleTest, which are targets of the same
# name, in tests/<room> unless another folder is named; and arguments of pytest, which need the
# Python package.
TESTS = {
    "base": ("base_test", "base_hosted_test", "parse_double_strtod_test"),
    "tensor": ("tensor_test",),
    # Kernels of one operator are tested as that operator.
    "kernels": ("kernels_test", "ops/ops_test"),
    "ir": ("ir_test",),
    "runtime": ("runtime_test", "capi/capi_test", "plugin/plugin_test", "ops/ops_test", PYTHON),
    # Hostile models are to end in errors; they take long and say nothing of results.
    "ops": ("ops_test", "tests/conformance --ignore=tests/conformance/test_hostile.py", PYTHON),
    "training": ("training_test",),
    "capi": (
        *("capi_internal_test", "capi_fallback_test", "capi_test"),
        *("plugin/plugin_internal_test", "plugin/plugin_environment_test", "plugin/plugin_test"),
        PYTHON,
    ),
    "plugin": ("plugin_internal_test", "plugin_environment_test", "plugin_test"),
    "webnn": ("webnn_test",),
}
PYTHON_PACKAGE = ("tenon_python", "tenon_python_files")

LEAST_LIMIT = 30.0  # seconds that a program may take, however short it was without a mutant
MOST_MEMORY = 12 << 30  # bytes of address space, so that no mutant takes the machine down


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A mutation of a file."""

    path: pathlib.Path
    mutation: Mutation

    def __str__(self) -> str:
        source = self.path.read_text()
        path = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        what = self.mutation.described_in(source)
        return f"{path}:{self.mutation.line_in(source)}: {self.mutation.kind}: {what}"


@dataclasses.dataclass
class Step:
    """What runs some tests, and what builds them."""

    build: list[str]
    run: list[str]
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    limit: float = LEAST_LIMIT  # seconds


@dataclasses.dataclass
class Count:
    """What became of the mutants of a place."""

    place: str
    killed: int = 0
    survivors: list[str] = dataclasses.field(default_factory=list)
    discarded: int = 0  # did not compile

    @property
    def total(self) -> int:
        """Those that ran."""
        return self.killed + len(self.survivors)


# ---- which mutants ----------------------------------------------------------------------------


def room_of(path: pathlib.Path) -> str:
    """The room that a path in src/ belongs to."""
    return path.resolve().relative_to(ROOT / "src").parts[0]


def mutants_of(place: str) -> list[Mutant]:
    """All of a place, in the order of files and lines."""
    name, _, line = place.partition(":")
    path = (ROOT / name).resolve()
    if not path.exists():
        raise SystemExit(f"mutate.py: no such file or folder: {name}")
    found = []
    for file in sorted(path.rglob("*.cpp")) if path.is_dir() else [path]:
        source = file.read_text()
        for mutation in mutations(source):
            if not line or mutation.line_in(source) == int(line):
                found.append(Mutant(file, mutation))
    return found


def drawn(mutants: list[Mutant], seed: int, place: str) -> list[Mutant]:
    """In an order of chance, which a seed and a place repeat."""
    order = mutants.copy()
    random.Random(f"{seed} {place}").shuffle(order)
    return order


# ---- running them -----------------------------------------------------------------------------


@contextlib.contextmanager
def written(mutant: Mutant) -> Iterator[None]:
    """With the mutant in its file, which is as it was afterwards, whatever happens in between."""
    original = mutant.path.read_bytes()
    stops = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    try:
        mutant.path.write_text(mutant.mutation.applied_to(original.decode()))
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, stops)
        mutant.path.write_bytes(original)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def run(command: Sequence[str], environment: dict[str, str], limit: float | None) -> str:
    """Why the command failed; empty if it did not. After `limit` seconds it is ended."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=limit_memory if limit else None,  # noqa: PLW1509 (we have one thread)
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return reason_of(status, output.read())


def reason_of(status: int, output: str) -> str:
    """The first test that failed, as GoogleTest or pytest say it, or how the program ended."""
    if status == 0:
        return ""
    if status < 0:
        return signal.Signals(-status).name
    failed = re.search(r"^(?:\[  FAILED  \]|FAILED) (\S+?),?(?: .*)?$", output, re.MULTILINE)
    return failed[1] if failed else f"exit status {status}"


def verdict(mutant: Mutant, steps: list[Step]) -> str | None:
    """What killed a mutant; empty if it survives, None if it does not compile."""
    with written(mutant):
        for step in steps:
            if run(step.build, {}, None):
                return None
            if reason := run(step.run, step.environment, step.limit):
                return reason
    return ""


def steps_of(room: str, jobs: int) -> list[Step]:
    """What builds and runs the tests of a room."""
    ninja = ["ninja", "-C", str(BUILD), "-j", str(jobs)]
    steps = []
    for name in TESTS[room]:
        if name.startswith("tests/"):
            path = os.pathsep.join(filter(None, [f"{BUILD}/python", os.getenv("PYTHONPATH")]))
            pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
            environment = {"PYTHONPATH": path, "TENON_BUILD": str(BUILD)}
            steps.append(Step([*ninja, *PYTHON_PACKAGE], [*pytest, *name.split()], environment))
        else:
            folder, _, target = name.rpartition("/")
            program = f"{BUILD}/tests/{folder or room}/{target}"
            steps.append(Step([*ninja, target], [program, "--gtest_brief=1", "--gtest_fail_fast"]))
    return steps


def prepare(room: str, jobs: int) -> list[Step]:
    """The steps of a room, which succeed without a mutant and say how long that takes."""
    python = f"-DPython_EXECUTABLE={sys.executable}"
    options = ["-DTENON_BUILD_BENCHMARKS=OFF", python, "--log-level=WARNING"]
    configure = ["cmake", "--preset", "release", "-B", str(BUILD), *options]
    steps = steps_of(room, jobs)
    for command in [configure, *(step.build for step in steps)]:
        if run(command, {}, None):
            raise SystemExit(f"mutate.py: failed without any mutant: {' '.join(command)}")
    for step in steps:
        begin = time.monotonic()
        if reason := run(step.run, step.environment, 3600):
            raise SystemExit(f"mutate.py: fails without any mutant: {' '.join(step.run)}: {reason}")
        # Other programs may take the processor meanwhile.
        step.limit = max(LEAST_LIMIT, 4 * (time.monotonic() - begin))
    return steps


class Log:
    """What became of mutants, in a file of JSON lines; without a file, it forgets."""

    def __init__(self, path: pathlib.Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.known: dict[str, str | None] = dict(map(json.loads, lines))

    def verdict(self, mutant: Mutant, steps: list[Step]) -> str | None:
        """That of the file, or else what a run says, which is appended."""
        key = f"{mutant} at {mutant.mutation.begin}"  # a line may have two of the same
        if key in self.known:
            return self.known[key]
        killer = verdict(mutant, steps)
        if self.path:
            with self.path.open("a") as file:
                print(json.dumps([key, killer]), file=file)
        return killer


def examine(count: Count, mutants: list[Mutant], sample: int, steps: list[Step], log: Log) -> None:
    """Runs the first `sample` of the mutants that compile, and counts them."""
    for mutant in mutants:
        if count.total == sample:
            break
        text, begin = str(mutant), time.monotonic()
        killer = log.verdict(mutant, steps)
        if killer is None:
            count.discarded += 1
            continue
        if killer:
            count.killed += 1
        else:
            count.survivors.append(text)
        said = f"killed by {killer}" if killer else "SURVIVED"
        progress = f"{count.total}/{sample} {time.monotonic() - begin:.0f} s"
        print(f"{progress}: {said}: {text}", file=sys.stderr, flush=True)


# ---- saying it --------------------------------------------------------------------------------


def table(counts: list[Count]) -> str:
    """The counts in Markdown, and the survivors."""
    lines = [
        "| place | mutants | killed | survived | share killed | did not compile |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for count in counts:
        share = f"{100 * count.killed / count.total:.0f} %" if count.total else "-"
        cells = [count.total, count.killed, len(count.survivors), share, count.discarded]
        lines.append(f"| {count.place} | {' | '.join(map(str, cells))} |")
    survivors = [survivor for count in counts for survivor in count.survivors]
    return "\n".join([*lines, *(["", "Survivors:", ""] if survivors else []), *survivors])


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="run the tests on mutants of the sources")
    parser.add_argument(
        "places", nargs="+", metavar="PLACE", help="room, folder, file or file:line"
    )
    parser.add_argument("--sample", type=int, default=30, help="mutants of each place")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true", help="print the sample, run nothing")
    parser.add_argument("--log", type=pathlib.Path, help="results to continue from and add to")
    options = parser.parse_args()
    samples = {place: drawn(mutants_of(place), options.seed, place) for place in options.places}
    if options.list:
        for mutants in samples.values():
            print(*mutants[: options.sample], sep="\n")
        return 0
    for stop in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, lambda number, _: sys.exit(128 + number))
    counts: list[Count] = []
    log = Log(options.log)
    try:
        for place, mutants in samples.items():
            steps = prepare(room_of(ROOT / place.partition(":")[0]), options.jobs)
            counts.append(Count(place))
            examine(counts[-1], mutants, options.sample, steps, log)
    finally:  # also of those that ran before an interrupt
        print(table(counts), flush=True)
    return int(any(count.survivors for count in counts))


if __name__ == "__main__":
    sys.exit(main())
