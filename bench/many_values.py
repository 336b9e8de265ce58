"""Times runs of models with many inputs and outputs on Tenon and on onnxruntime, in turns.

    python bench/many_values.py [--counts 8 128 512]

Each output is the Identity of an input of four floats, so that a run costs what feeds, fetches and
steps cost. Feeds are in the model's order or the reverse, or bound once, with outputs that each run
makes or that are given. The dimension of an input is a number or has a name of its own. Prints the
medians of runs on one thread in microseconds, and Tenon's share of onnxruntime's.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import tenon
from onnx import TensorProto, helper
from turns import session

ROUNDS, ROUND_SECONDS = 10, 0.05
WIDTH = 4


def model(count: int, *, is_named: bool) -> bytes:
    def values(prefix: str) -> list[Any]:
        return [
            helper.make_tensor_value_info(
                f"past_key_values.{i}.{prefix}",
                TensorProto.FLOAT,
                [f"length_{i}" if is_named else WIDTH],
            )
            for i in range(count)
        ]

    inputs, outputs = values("input"), values("output")
    nodes = [
        helper.make_node("Identity", [x.name], [y.name])
        for x, y in zip(inputs, outputs, strict=True)
    ]
    graph = helper.make_graph(nodes, "graph", inputs, outputs)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def with_feeds(runtime: Any, *, is_reversed: bool) -> Callable[[], Any]:
    names = [value.name for value in runtime.get_inputs()]
    if is_reversed:
        names.reverse()
    feeds = {name: np.full(WIDTH, i, np.float32) for i, name in enumerate(names)}
    return lambda: runtime.run(None, feeds)


def with_binding(
    runtime: Any, *, is_reversed: bool = False, are_outputs_given: bool = False
) -> Callable[[], Any]:
    module = onnxruntime if isinstance(runtime, onnxruntime.InferenceSession) else tenon
    inputs, outputs = list(runtime.get_inputs()), list(runtime.get_outputs())
    if is_reversed:
        inputs.reverse()
        outputs.reverse()
    binding = runtime.io_binding()
    for i, value in enumerate(inputs):
        binding.bind_cpu_input(value.name, np.full(WIDTH, i, np.float32))
    for value in outputs:
        if are_outputs_given:
            given = module.OrtValue.ortvalue_from_numpy(np.zeros(WIDTH, np.float32))
            binding.bind_ortvalue_output(value.name, given)
        else:
            binding.bind_output(value.name)
    return lambda: runtime.run_with_iobinding(binding)


# Whether dimensions have names, and what makes a run of a session.
CASES: dict[str, tuple[bool, Callable[[Any], Callable[[], Any]]]] = {
    "in order": (False, lambda runtime: with_feeds(runtime, is_reversed=False)),
    "reversed": (False, lambda runtime: with_feeds(runtime, is_reversed=True)),
    "bound": (False, with_binding),
    "bound, reversed": (False, lambda runtime: with_binding(runtime, is_reversed=True)),
    "bound, outputs given": (False, lambda runtime: with_binding(runtime, are_outputs_given=True)),
    "bound, dimensions named": (True, with_binding),
}


def median_time(run: Callable[[], Any]) -> float:
    times, end = [], time.perf_counter() + ROUND_SECONDS
    while (begin := time.perf_counter()) < end:
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[8, 128, 512])
    options = parser.parse_args()
    print("| inputs and outputs | feeds | tenon, us | onnxruntime, us | share |")
    print("| --- | --- | --- | --- | --- |")
    for count in options.counts:
        for name, (is_named, prepare) in CASES.items():
            content = model(count, is_named=is_named)
            runs = [prepare(session(module, content, 1)) for module in (tenon, onnxruntime)]
            rounds = [[median_time(run) for run in runs] for _ in range(ROUNDS)]
            ours, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
            print(
                f"| {count} | {name} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
