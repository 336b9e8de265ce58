"""Times models in each precision that a session may ask for, in turns, beside onnxruntime.

    python bench/model_precision.py [--threads 1] [MODEL ...]

MODEL is the name of a generated model of bench/cases.py. Prints the median milliseconds of a run
and, in brackets, the greatest difference of `medium` from `highest`, of the largest element.
"""

from __future__ import annotations

import argparse
import pathlib
import time

import numpy as np
import onnxruntime
import tenon
from cases import GENERATED, Case, Feeds

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "build" / "models"

MODELS = (
    "bert_base",
    "vit_b_16",
    "gpt2_prefill",
    "gpt2_decode",
    "minilm_l6_short",
    "convnext_tiny",
    "resnet50",
    "resnet18",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "efficientnet_b0",
    "squeezenet",
    "vgg11",
)


def session_of(module, path: pathlib.Path, precision: str, threads: int):
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.matmul_precision", precision)
    return module.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def measure(case: Case, feeds: Feeds, threads: int, rounds: int) -> str:
    path = FOLDER / case.path
    sessions = {
        "highest": session_of(tenon, path, "highest", threads),
        "medium": session_of(tenon, path, "medium", threads),
        "onnxruntime": session_of(onnxruntime, path, "highest", threads),
    }
    times: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(rounds):
        for name, session in sessions.items():
            runs: list[float] = []
            end = time.perf_counter() + 0.3
            while len(runs) < 3 or time.perf_counter() < end:
                start = time.perf_counter()
                session.run(None, feeds)
                runs.append(time.perf_counter() - start)
            times[name].append(1e3 * float(np.median(runs)))
    exact = sessions["highest"].run(None, feeds)[0]
    rounded = sessions["medium"].run(None, feeds)[0]
    difference = np.abs(exact - rounded).max() / np.abs(exact).max()
    highest, medium, reference = (float(np.median(times[name])) for name in sessions)
    return (
        f"| {case.name} | {highest:.3g} | {medium:.3g} ({difference:.0e}) |"
        f" {highest / medium:.2f} | {reference:.3g} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    cases = {case.name: case for case in GENERATED}
    print("| model | highest, ms | medium, ms | gain | onnxruntime, ms |")
    print("| --- | --- | --- | --- | --- |")
    for name in arguments.models:
        case = cases[name]
        print(measure(case, case.inputs(FOLDER), arguments.threads, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
