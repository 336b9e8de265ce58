"""Sums of convolutions of one value, as in RepVGG and MobileOne before they are deployed: one
convolution computes them. Beside onnxruntime."""

from __future__ import annotations

import pathlib

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper
from traces import profiled

CHANNELS = 12


class Block:
    """A sum of convolutions of x, each with a normalization, and of a normalization of x itself."""

    def __init__(self, rank: int, group: int, stride: int, seed: int) -> None:
        self.rank, self.group, self.stride = rank, group, stride
        self.random = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, *shape: int, positive: bool = False) -> str:
        name = f"c{len(self.constants)}"
        values = self.random.standard_normal(shape).astype(np.float32)
        self.constants[name] = np.abs(values) + 0.5 if positive else values
        return name

    def node(self, op: str, *inputs: str, **attributes) -> str:
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def normalization(self, x: str) -> str:
        vectors = [self.constant(CHANNELS) for _ in range(3)]
        return self.node("BatchNormalization", x, *vectors, self.constant(CHANNELS, positive=True))

    def conv(self, kernel: list[int], dilations: list[int], *, bias: bool, normalized: bool) -> str:
        inputs = ["x", self.constant(CHANNELS, CHANNELS // self.group, *kernel)]
        if bias:
            inputs.append(self.constant(CHANNELS))
        pads = [d * (k - 1) // 2 for k, d in zip(kernel, dilations, strict=True)]
        attributes = {
            "strides": [self.stride] * self.rank,
            "dilations": dilations,
            "pads": pads * 2,
            "group": self.group,
        }
        y = self.node("Conv", *inputs, **attributes)
        return self.normalization(y) if normalized else y

    def model(self, terms: list[str], size: list[int]) -> onnx.ModelProto:
        y = terms[0]
        for term in terms[1:]:
            y = self.node("Add", *((y, term) if self.random.random() < 0.5 else (term, y)))
        self.nodes.append(helper.make_node("Relu", [y], ["y"]))
        shape = ["n", CHANNELS, *size]
        graph = helper.make_graph(
            self.nodes,
            "sum",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        opset = helper.make_opsetid("", 17)
        return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def run(model: onnx.ModelProto, x: np.ndarray, folder: pathlib.Path) -> tuple[np.ndarray, int]:
    """The output, and how many nodes computed it."""
    (y,), ran = profiled(model.SerializeToString(), {"x": x}, folder)
    return y, sum("Reorder" not in operator for operator in ran)


@pytest.mark.parametrize("seed", range(40))
def test_sums_of_convolutions_are_one(seed: int, tmp_path: pathlib.Path) -> None:
    random = np.random.default_rng(seed)
    rank = int(random.choice([1, 2, 2, 2, 3]))
    block = Block(rank, int(random.choice([1, 1, 3, CHANNELS])), int(random.choice([1, 2])), seed)
    dilations = [int(random.choice([1, 1, 2])) for _ in range(rank)]
    kernels = [[int(random.choice([1, 3, 5])) for _ in range(rank)] for _ in range(3)]
    kernels.append([max(axis) for axis in zip(*kernels, strict=True)])  # which has all their taps
    random.shuffle(kernels)
    flags = {"bias": bool(random.integers(2)), "normalized": bool(random.integers(2))}
    terms = [block.conv(kernel, dilations, **flags) for kernel in kernels]
    if block.stride == 1:
        terms.insert(int(random.integers(len(terms))), block.normalization("x"))
    model = block.model(terms, [9, 11, 8][:rank])

    x = random.standard_normal((2, CHANNELS, *[9, 11, 8][:rank])).astype(np.float32)
    reference = onnxruntime.InferenceSession(model.SerializeToString())
    (expected,) = reference.run(None, {"x": x})
    y, nodes = run(model, x, tmp_path)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    nested = all(
        all(a <= b for a, b in zip(first, second, strict=True))
        for first, second in zip(sorted(kernels), sorted(kernels)[1:], strict=False)
    )
    if nested:
        assert nodes == 1
