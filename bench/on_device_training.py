"""Times steps of on-device training: a perceptron of 784, 500 and 10 units with AdamW.

Tenon trains it from artifacts that this script makes (tenon.training.api), PyTorch as it is, with
fused AdamW. The two take turns in one process, with the same parameters and batches, and must agree
on the losses. Prints medians in milliseconds and their ratio, which is above 1 where Tenon is
faster. Needs PyTorch (requirements-torch.txt).
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import tempfile
import time
from typing import Any

import numpy as np
import tenon
import torch
from onnx import NodeProto, TensorProto, ValueInfoProto, helper
from tenon.training.api import CheckpointState, Module, Optimizer
from torch import nn

SHAPES = {"fc1.weight": (500, 784), "fc1.bias": (500,), "fc2.weight": (10, 500), "fc2.bias": (10,)}


def node(
    op_type: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: Any
) -> NodeProto:
    return helper.make_node(op_type, inputs, outputs, domain=domain, **attributes)


def value(name: str, shape: list | tuple, kind: int = TensorProto.FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def save(
    path: pathlib.Path,
    nodes: list[NodeProto],
    inputs: list[ValueInfoProto],
    outputs: list[ValueInfoProto],
) -> None:
    graph = helper.make_graph(nodes, path.stem, inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    path.write_bytes(model.SerializeToString())


def make_artifacts(folder: pathlib.Path) -> None:
    nodes = [
        node("Constant", [], ["one"], value_float=1.0),
        node("Constant", [], ["rows"], value_ints=[0]),
        node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["h"], transB=1),
        node("Relu", ["h"], ["a"]),
        node("Gemm", ["a", "fc2.weight", "fc2.bias"], ["scores"], transB=1),
        node("SoftmaxCrossEntropyLoss", ["scores", "labels"], ["loss", "log_prob"]),
        node("SoftmaxCrossEntropyLossGrad", ["one", "log_prob", "labels"], ["ds"], "com.microsoft"),
        node("ReduceSum", ["ds", "rows"], ["fc2.bias_grad"], keepdims=0),
        node("Gemm", ["ds", "a"], ["fc2.weight_grad"], transA=1),
        node("Gemm", ["ds", "fc2.weight"], ["da"]),
        node("ReluGrad", ["da", "a"], ["dh"], "com.microsoft"),
        node("ReduceSum", ["dh", "rows"], ["fc1.bias_grad"], keepdims=0),
        node("Gemm", ["dh", "x"], ["fc1.weight_grad"], transA=1),
    ]
    inputs = [value("x", ["n", 784]), value("labels", ["n"], TensorProto.INT64)]
    inputs += [value(name, shape) for name, shape in SHAPES.items()]
    outputs = [value("loss", [])]
    for name, shape in SHAPES.items():
        buffer, out = f"{name}_grad.accumulation.buffer", f"{name}_grad.accumulation.out"
        operands = [buffer, f"{name}_grad", "lazy_reset_grad"]
        nodes.append(node("InPlaceAccumulatorV2", operands, [out], "com.microsoft"))
        inputs.append(value(buffer, shape))
        outputs.append(value(out, [1], TensorProto.BOOL))
    inputs.append(value("lazy_reset_grad", [1], TensorProto.BOOL))
    save(folder / "training.onnx", nodes, inputs, outputs)
    lists = ["params", "gradients", "first_order_moments", "second_order_moments"]
    update = node("AdamWOptimizer", ["learning_rate", "step", *lists], ["done"], "com.microsoft")
    states = [helper.make_tensor_sequence_value_info(x, TensorProto.FLOAT, None) for x in lists]
    scalars = [value("learning_rate", [1]), value("step", [1], TensorProto.INT64)]
    done = [value("done", [1], TensorProto.BOOL)]
    save(folder / "adamw.onnx", [update], scalars + states, done)


def compare(batch: int, threads: int, steps: int) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    reference = nn.Sequential(nn.Linear(784, 500), nn.ReLU(), nn.Linear(500, 10))
    adamw = torch.optim.AdamW(reference.parameters(), fused=True)
    values = dict(zip(SHAPES, reference.parameters(), strict=True))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_artifacts(folder)
        state = CheckpointState.from_parameters({k: v.detach().numpy() for k, v in values.items()})
        options = tenon.SessionOptions()
        options.intra_op_num_threads = threads
        module = Module(folder / "training.onnx", state, session_options=options)
        optimizer = Optimizer(folder / "adamw.onnx", module)
        x = torch.randn(batch, 784)
        labels = torch.randint(0, 10, (batch,))
        arrays = x.numpy(), labels.numpy()

        def ours() -> float:
            loss = module(*arrays)
            optimizer.step()
            module.lazy_reset_grad()
            return float(loss)

        def theirs() -> float:
            loss = nn.functional.cross_entropy(reference(x), labels)
            adamw.zero_grad()
            loss.backward()
            adamw.step()
            return float(loss.detach())

        times: dict[str, list[float]] = {"tenon": [], "torch": []}
        for step in range(steps):
            losses = []
            for key, run in (("tenon", ours), ("torch", theirs)):
                begin = time.perf_counter()
                losses.append(run())
                times[key].append(time.perf_counter() - begin)
            np.testing.assert_allclose(losses[0], losses[1], 1e-3, 1e-5, err_msg=f"step {step}")
    mine, peer = (1000 * statistics.median(times[key][5:]) for key in ("tenon", "torch"))
    print(f"| {batch} | {threads} | {mine:.2f} | {peer:.2f} | **{peer / mine:.2f}** |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    steps = parser.parse_args().steps
    print(
        "| batch | threads | Tenon ms | PyTorch ms | ratio |\n| ---: | ---: | ---: | ---: | ---: |"
    )
    for batch in (1, 16, 64, 256):
        for threads in (1, 2):
            compare(batch, threads, steps)


if __name__ == "__main__":
    main()
