"""Models with one LSTM, GRU or RNN and its gradients, and what they are fed."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, helper

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, WIDTH, HIDDEN = 5, 3, 4, 3
TRAINING = "ai.onnx.preview.training"

# Of each case the operator, the optional inputs, and what differs from one direction forward.
ALL = ("B", "lens", "initial_h", "initial_c", "P")
CASES: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "LSTM": ("LSTM", (), {}),
    "LSTM reverse": ("LSTM", ("B", "lens"), {"direction": "reverse"}),
    "LSTM in both directions": ("LSTM", ALL, {"direction": "bidirectional"}),
    "LSTM, batch first": ("LSTM", ALL, {"direction": "bidirectional", "layout": 1}),
    "LSTM with coupled gates": ("LSTM", ("B", "initial_c", "P"), {"input_forget": 1}),
    "LSTM of other functions": ("LSTM", ("B",), {"activations": ["Softplus", "Softsign", "Elu"]}),
    "LSTM of the last states": ("LSTM", ("B",), {"last": True}),
    "GRU": ("GRU", (), {}),
    "GRU reverse": ("GRU", ("B", "lens", "initial_h"), {"direction": "reverse"}),
    "GRU in both directions": ("GRU", ALL[:3], {"direction": "bidirectional"}),
    "GRU, batch first": ("GRU", ALL[:3], {"direction": "bidirectional", "layout": 1}),
    "GRU of PyTorch": ("GRU", ("B", "initial_h"), {"linear_before_reset": 1}),
    "GRU of PyTorch in both directions": (
        "GRU",
        ALL[:3],
        {"direction": "bidirectional", "linear_before_reset": 1, "layout": 1},
    ),
    "GRU of the last states": ("GRU", ("B",), {"last": True, "linear_before_reset": 1}),
    "RNN": ("RNN", ("B", "initial_h"), {}),
    "RNN in both directions": ("RNN", ALL[:3], {"direction": "bidirectional"}),
    "RNN of Relu": ("RNN", ("B", "lens"), {"activations": ["Relu"], "layout": 1}),
    "LSTM, clipped": ("LSTM", ALL, {"direction": "bidirectional", "clip": 0.875}),
    "LSTM of other functions, clipped": (
        "LSTM",
        ("B", "initial_h", "initial_c"),
        {"activations": ["HardSigmoid", "Softsign", "Elu"], "direction": "reverse", "clip": 0.75},
    ),
    "GRU, clipped": ("GRU", ALL[:3], {"direction": "bidirectional", "clip": 0.875}),
    "GRU of PyTorch, clipped": (
        "GRU",
        ("B", "initial_h"),
        {"linear_before_reset": 1, "direction": "reverse", "clip": 0.75},
    ),
    "RNN of Softplus, clipped": ("RNN", ("B",), {"activations": ["Softplus"], "clip": 0.75}),
}


def inputs_of(name: str, sizes: tuple[int, ...] = (STEPS, BATCH, WIDTH, HIDDEN)) -> dict[str, Any]:
    """The inputs in float64, and what each output is multiplied by in the loss, such as `to_Y`."""
    kind, given, options = CASES[name]
    steps, batch, width, hidden = sizes
    directions = 2 if options.get("direction") == "bidirectional" else 1
    rows = GATES[kind] * hidden
    state = (directions, batch, hidden)
    every = (steps, directions, batch, hidden)
    first = (steps, batch, width)
    if options.get("layout"):
        state = (batch, directions, hidden)
        every = (batch, steps, directions, hidden)
        first = (batch, steps, width)
    shapes = {
        "X": first,
        "W": (directions, rows, width),
        "R": (directions, rows, hidden),
        "B": (directions, 2 * rows),
        "initial_h": state,
        "initial_c": state,
        "P": (directions, 3 * hidden),
    }
    shapes = {key: shape for key, shape in shapes.items() if key in ("X", "W", "R", *given)}
    shapes |= {f"to_{y}": every if y == "Y" else state for y in outputs_of(name)}
    # Some that repeat nowhere, and are the same for every version of NumPy.
    values: dict[str, Any] = {
        key: np.sin(1.7 * np.arange(np.prod(shape)) + 0.6 * i * i + 0.1).reshape(shape)
        for i, (key, shape) in enumerate(shapes.items())
    }
    if "lens" in given:
        values["lens"] = np.resize(np.array([steps, 2, 0], np.int32), batch)
    return values


def outputs_of(name: str) -> list[str]:
    kind, _, options = CASES[name]
    outputs = ["Y", "Y_h", "Y_c"] if kind == "LSTM" else ["Y", "Y_h"]
    return outputs[1:] if options.get("last") else outputs


def differentiated(name: str) -> list[str]:
    _, given, _ = CASES[name]
    return ["X", "W", "R", *[key for key in given if key != "lens"]]


def model_of(name: str, values: dict[str, Any]) -> ModelProto:
    """The loss is the sum of all outputs times their factors; outputs are the gradients."""
    kind, given, options = CASES[name]
    inputs = ["X", "W", "R", *[key if key in given else "" for key in ALL]]
    while not inputs[-1]:
        inputs.pop()
    outputs = outputs_of(name)
    attributes = {key: value for key, value in options.items() if key != "last"}
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    if "activations" in attributes:
        attributes["activations"] = attributes["activations"] * directions
    hidden = values["R"].shape[2]
    names = outputs if "Y" in outputs else ["", *outputs]
    nodes = [helper.make_node(kind, inputs, names, "layer", hidden_size=hidden, **attributes)]
    for y in outputs:
        nodes += [
            helper.make_node("Mul", [y, f"to_{y}"], [f"{y}_part"]),
            helper.make_node("ReduceSum", [f"{y}_part"], [f"{y}_sum"], keepdims=0),
        ]
    nodes.append(helper.make_node("Sum", [f"{y}_sum" for y in outputs], ["loss"]))
    xs = differentiated(name)
    gradients = [f"d{x}" for x in xs]
    nodes.append(helper.make_node("Gradient", xs, gradients, domain=TRAINING, xs=xs, y="loss"))
    described = [
        helper.make_tensor_value_info(
            key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for key, value in values.items()
    ]
    element_type = helper.np_dtype_to_tensor_dtype(values["X"].dtype)
    results = [helper.make_tensor_value_info(y, element_type, None) for y in gradients]
    graph = helper.make_graph(nodes, "layer", described, results)
    opsets = [helper.make_opsetid("", 22), helper.make_opsetid(TRAINING, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
