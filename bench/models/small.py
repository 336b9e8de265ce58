"""Recurrent networks, multilayer perceptrons, and graphs that measure overheads."""

import math
from itertools import pairwise

import onnx

from .graph import GraphBuilder

GATES = {"LSTM": 4, "GRU": 3}


def recurrent(
    name: str, op_type: str, inputs: int, hidden: int, layers: int, bidirectional: bool
) -> onnx.ModelProto:
    """nn.LSTM or nn.GRU with batch_first: [batch, sequence, inputs] to [batch, sequence,
    directions * hidden], the initial states zero."""
    g = GraphBuilder(name, 14)
    directions = 2 if bidirectional else 1
    x = g.input("input", ["batch", "sequence", inputs])
    batch = g.size(x, 0)
    zeros = g.op("ConstantOfShape", g.vector(layers * directions, batch, hidden))
    x = g.transpose(x, 1, 0, 2)
    width = inputs
    for layer in range(layers):
        start, end = layer * directions, (layer + 1) * directions
        state = g.op("Slice", zeros, g.ints(start), g.ints(end), g.ints(0))
        x = _recurrent_layer(g, op_type, x, width, hidden, directions, state)
        width = directions * hidden
    g.output("output", g.transpose(x, 1, 0, 2), ["batch", "sequence", width])
    return g.model()


def _recurrent_layer(
    g: GraphBuilder, op_type: str, x: str, inputs: int, hidden: int, directions: int, state: str
) -> str:
    rows, std = GATES[op_type] * hidden, 1 / math.sqrt(3 * hidden)
    weights = (
        g.normal(directions, rows, inputs, std=std),
        g.normal(directions, rows, hidden, std=std),
        g.normal(directions, 2 * rows, std=std),
    )
    attributes: dict[str, object] = {"hidden_size": hidden}
    if directions == 2:
        attributes["direction"] = "bidirectional"
    if op_type == "GRU":
        attributes["linear_before_reset"] = 1
    states = [state] * (2 if op_type == "LSTM" else 1)
    outputs = g.ops(op_type, 1 + len(states), x, *weights, "", *states, **attributes)
    if directions == 1:
        return g.op("Squeeze", outputs[0], g.ints(1))
    return g.reshape(g.transpose(outputs[0], 0, 2, 1, 3), 0, 0, -1)


def perceptron(name: str, widths: tuple[int, ...]) -> onnx.ModelProto:
    g = GraphBuilder(name, 13)
    x = g.input("input", ["batch", widths[0]])
    for layer, (inputs, outputs) in enumerate(pairwise(widths)):
        x = g.gemm(g.op("Relu", x) if layer else x, inputs, outputs)
    g.output("output", x, ["batch", widths[-1]])
    return g.model()


def identity(name: str) -> onnx.ModelProto:
    """The smallest model, which measures the cost of a call."""
    g = GraphBuilder(name, 13)
    g.output("output", g.op("Identity", g.input("input", [1, 4])), [1, 4])
    return g.model()


def chain(name: str, length: int, size: int, rectified: bool = False) -> onnx.ModelProto:
    """Additions and multiplications with scalars, in turn, which algebra makes one of each. If
    `rectified`, every third node is Relu, which keeps them apart: measures the cost of a node."""
    g = GraphBuilder(name, 13)
    x = g.input("input", [size])
    for i in range(length):
        if rectified and i % 3 == 2:
            x = g.op("Relu", x)
        else:
            x = g.op("Mul", x, g.scalar(0.99)) if i % 2 else g.op("Add", x, g.scalar(0.01 * i))
    g.output("output", x, [size])
    return g.model()
