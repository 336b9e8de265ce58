"""Runs cases of the suite on one engine: suite_worker.py ENGINE FIRST

FIRST is the position of the first case to run. Writes one JSON object a line: {"start": position}
before a case, then {"outcome": ..., "detail": ...}. So the output shows where a process died.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile
import unittest
import warnings

import engines
import suite_cases


class Stage:
    """Records how far a case came, to distinguish a refused model from one that fails to run."""

    name = ""


def watched(backend: type) -> type:
    """The backend, with its steps recorded in Stage."""

    class Watched(backend):  # type: ignore[misc]
        @classmethod
        def prepare(cls, *arguments, **options):
            Stage.name = "prepare"
            model = super().prepare(*arguments, **options)
            run = model.run

            def noted(*inputs, **run_options):
                Stage.name = "run"
                outputs = run(*inputs, **run_options)
                Stage.name = "compare"
                return outputs

            model.run = noted
            return model

    return Watched


def outcome_of(error: BaseException) -> str:
    text = str(error)
    if type(error).__name__ == "NotImplemented" or "NOT_IMPLEMENTED" in text:
        return "not implemented"
    if Stage.name == "prepare":
        return "model refused"
    if Stage.name == "run":
        return "run failed"
    return "other type or shape" if "shape" in text or "dtype" in text else "other values"


def main() -> None:
    warnings.filterwarnings("ignore")
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the engines' own output is not a result
    engine, first = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ONNX_HOME"] = str(pathlib.Path(folder))
        run_cases(watched(engines.load(engine)), first, lines)


def run_cases(backend: type, first: int, lines) -> None:
    for position, case in enumerate(suite_cases.load(backend)):
        if position < first:
            continue
        print(json.dumps({"start": position}), file=lines, flush=True)
        Stage.name = ""
        result = {"outcome": "passed", "detail": ""}
        try:
            case.run()
        except unittest.SkipTest as reason:
            result = {"outcome": "skipped", "detail": str(reason)}
        except Exception as error:
            result = {"outcome": outcome_of(error), "detail": str(error)[:500]}
        print(json.dumps(result), file=lines, flush=True)


if __name__ == "__main__":
    main()
