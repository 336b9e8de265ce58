"""Times an iteration of Loop on Tenon and on onnxruntime, in turns in one process.

    python bench/loop.py

Prints, for each body, what an iteration costs in nanoseconds on one thread: the difference of the
least times of runs of 100 and 600 iterations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import tenon
from onnx import NodeProto, TensorProto, helper
from turns import ROUNDS, least_time, session

FEW, MANY = 100, 600
BODIES = {
    "Identity": [helper.make_node("Identity", ["state"], ["next"])],
    "Add of scalars": [helper.make_node("Add", ["state", "one"], ["next"])],
    "ten Adds of scalars": [
        helper.make_node(
            "Add", [f"s{i}" if i else "state", "one"], [f"s{i + 1}" if i < 9 else "next"]
        )
        for i in range(10)
    ],
}


def loop(body: list[NodeProto]) -> bytes:
    scalar = [("i", TensorProto.INT64), ("go", TensorProto.BOOL), ("state", TensorProto.FLOAT)]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["going"]), *body],
        "body",
        [helper.make_tensor_value_info(name, element, []) for name, element in scalar],
        [
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, []),
        ],
    )
    whole = helper.make_graph(
        [helper.make_node("Loop", ["count", "", "first"], ["last"], body=graph)],
        "graph",
        [
            helper.make_tensor_value_info("count", TensorProto.INT64, []),
            helper.make_tensor_value_info("first", TensorProto.FLOAT, []),
            helper.make_tensor_value_info("one", TensorProto.FLOAT, []),
        ],
        [helper.make_tensor_value_info("last", TensorProto.FLOAT, [])],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(whole, opset_imports=opsets, ir_version=8).SerializeToString()


def feeds(count: int) -> dict[str, np.ndarray]:
    return {
        "count": np.array(count),
        "first": np.array(0, np.float32),
        "one": np.array(1, np.float32),
    }


def main() -> None:
    print("| body | tenon, ns | onnxruntime, ns |\n| --- | --- | --- |")
    for name, body in BODIES.items():
        runtimes = [session(module, loop(body), 1) for module in (tenon, onnxruntime)]
        least: dict[Any, float] = {}
        for _ in range(ROUNDS):
            for runtime in runtimes:
                for count in (FEW, MANY):
                    key = runtimes.index(runtime), count
                    spent = least_time(runtime, feeds(count))
                    least[key] = min(spent, least.get(key, spent))
        costs = [(least[i, MANY] - least[i, FEW]) / (MANY - FEW) * 1e9 for i in range(2)]
        print(f"| {name} | {costs[0]:.0f} | {costs[1]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
