"""Runs the test suite of the onnx package on Tenon and on onnxruntime: docs/conformance.md.

    python scripts/conformance [--list]

Runs all of the suite's cases for the CPU, with the suite's tolerances. Every engine runs in
separate processes. If a process dies, the case that it was running has failed.
"""

from __future__ import annotations

import argparse
import collections
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import threading
import warnings

import engines
import suite_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "conformance.md"
CASE_TIMEOUT_S = 180

Result = dict[str, str]


def run_engine(engine: str, count: int) -> list[Result]:
    """The results of all cases on an engine, in order."""
    results: list[Result] = []
    while len(results) < count:
        results += run_worker(engine, len(results))
    return results


def run_worker(engine: str, first: int) -> list[Result]:
    """Results from case `first` on, up to the case at which the process ended."""
    worker = pathlib.Path(__file__).with_name("suite_worker.py")
    command = [sys.executable, str(worker), engine, str(first)]
    results: list[Result] = []
    started = first - 1
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        timed_out = False

        def stop() -> None:
            nonlocal timed_out
            timed_out = True
            process.kill()

        timer = threading.Timer(CASE_TIMEOUT_S, stop)
        timer.start()
        for line in process.stdout:
            message = json.loads(line)
            if "start" not in message:
                results.append(message)
                continue
            started = message["start"]
            timer.cancel()
            timer = threading.Timer(CASE_TIMEOUT_S, stop)
            timer.start()
        timer.cancel()
    if started < first:
        raise SystemExit(f"{engine}: the worker did not start: {' '.join(command)}")
    if first + len(results) <= started:
        outcome = "timed out" if timed_out else "crashed"
        results.append({"outcome": outcome, "detail": f"exit status {process.returncode}"})
    return results


def table(header: list[str], rows: list[list[object]]) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def share(passed: int, total: int) -> str:
    return f"{passed} ({100 * passed / total:.1f} %)" if total else "0"


def report(names: list[tuple[str, str]], results: dict[str, list[Result]]) -> str:
    """The document: counts by category and by outcome."""
    totals = collections.Counter(category for _, category in names)
    passed = {
        engine: collections.Counter(
            category
            for (_, category), result in zip(names, of_engine, strict=True)
            if result["outcome"] == "passed"
        )
        for engine, of_engine in results.items()
    }
    rows: list[list[object]] = []
    for category in suite_cases.CATEGORIES:
        total = totals[category]
        rows.append([category, total, *(share(passed[e][category], total) for e in results)])
    everything = [share(passed[engine].total(), len(names)) for engine in results]
    rows.append(["**all**", len(names), *everything])
    outcomes = {
        engine: collections.Counter(result["outcome"] for result in of_engine)
        for engine, of_engine in results.items()
    }
    reasons = sorted(set().union(*outcomes.values()) - {"passed"})
    reason_rows: list[list[object]] = [
        [reason, *(outcomes[engine][reason] for engine in results)] for reason in reasons
    ]
    onnx, ort = importlib.metadata.version("onnx"), importlib.metadata.version("onnxruntime")
    return f"""# Conformance

`./dev conformance` runs all cases of `onnx.backend.test` of onnx {onnx} on Tenon and, in the same
run, on onnxruntime {ort}, and writes this page. No case is left out and every tolerance is the
suite's. Cases run on the CPU. Both engines get the unchanged models, and arrays of every element
type.

Cases passed:

{table(["category", "cases", *results], rows)}

The other cases, by their outcome:

{table(["outcome", *results], reason_rows) if reason_rows else "There are none."}

- *not implemented*: the engine says that it lacks an operator, a type or an attribute.
- *model refused*: another error before the first run, such as an IR version or opset that the
  engine does not know.
- *run failed*: an error in the run; *other values*, *other type or shape*: a result that is not the
  expected one.

An engine can pass seven cases only by chance. The expected outputs of `test_bernoulli`,
`test_bernoulli_double`, `test_bernoulli_seed` and their expanded forms were drawn from NumPy's
global generator, right after the input. The models do not say so: the operator leaves the choice of
numbers to the engine, even with a seed. In `test_loop16_seq_none` the runner takes the length of a
sequence's first element, which is a scalar, and fails; `tests/conformance/test_suite.py` makes that
comparison itself.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print Tenon's cases that do not pass")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")  # about the suite's own arithmetic
    names = [(case.name, case.category) for case in suite_cases.load(engines.OnnxRuntimeBackend)]
    results = {engine: run_engine(engine, len(names)) for engine in engines.ENGINES}
    DOCUMENT.write_text(report(names, results))
    for engine, of_engine in results.items():
        passed = sum(result["outcome"] == "passed" for result in of_engine)
        print(f"{engine}: {passed} of {len(names)} cases pass")
    if options.list:
        for (name, _), result in zip(names, results["tenon"], strict=True):
            if result["outcome"] != "passed":
                print(f"{name}: {result['outcome']}: {result['detail'][:200]}")


if __name__ == "__main__":
    main()
