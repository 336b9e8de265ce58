"""Writes recurrent_gradients.npz, with PyTorch: derivatives of the standard's formulas."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import torch
from recurrent_cases import CASES, GATES, differentiated, inputs_of, outputs_of

FUNCTIONS = {
    "Sigmoid": torch.sigmoid,
    "Tanh": torch.tanh,
    "Relu": torch.relu,
    "Elu": torch.nn.functional.elu,
    "Softsign": torch.nn.functional.softsign,
    "Softplus": torch.nn.functional.softplus,
    "HardSigmoid": lambda x: (float(np.float32(0.2)) * x + 0.5).clamp(0, 1),
}
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
Tensors = dict[str, Any]


def clipped(function: Any, bound: float) -> Any:
    return lambda x: function(x.clamp(-bound, bound))


class Direction:
    """One direction of a layer, whose states are batches of rows."""

    def __init__(self, kind: str, options: dict[str, Any], values: Tensors, d: int) -> None:
        self.kind, self.options = kind, options
        self.functions = [FUNCTIONS[f] for f in options.get("activations", DEFAULTS[kind])]
        if "clip" in options:
            of_gates = [clipped(f, options["clip"]) for f in self.functions[:2]]
            self.functions = of_gates + self.functions[2:]
        self.w, self.r = values["W"][d], values["R"][d]
        rows = self.w.shape[0]
        zeros = torch.zeros(2 * rows, dtype=torch.double)
        self.input_bias, self.bias = (values["B"][d] if "B" in values else zeros).split(rows)
        hidden = self.r.shape[1]
        peepholes = values["P"][d] if "P" in values else zeros.new_zeros(3 * hidden)
        self.peepholes = peepholes.split(hidden)

    def step(self, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
        hidden = self.r.shape[1]
        inputs = (x @ self.w.T + self.input_bias).split(hidden, 1)
        recurrences = (h @ self.r.T + self.bias).split(hidden, 1)
        f, *others = self.functions
        if self.kind == "RNN":
            return f(inputs[0] + recurrences[0]), c
        first, second, third = (a + b for a, b in zip(inputs[:3], recurrences[:3], strict=True))
        if self.kind == "LSTM":
            in_peephole, out_peephole, forget_peephole = self.peepholes
            i = f(first + in_peephole * c)
            kept = 1 - i if self.options.get("input_forget") else f(third + forget_peephole * c)
            c = kept * c + i * others[0](inputs[3] + recurrences[3])
            return f(second + out_peephole * c) * others[1](c), c
        z, r = f(first), f(second)
        if self.options.get("linear_before_reset"):
            n = others[0](inputs[2] + r * recurrences[2])
        else:
            n = others[0](inputs[2] + (r * h) @ self.r[2 * hidden :].T + self.bias[2 * hidden :])
        return (1 - z) * n + z * h, c


def gradients(name: str) -> dict[str, Any]:
    kind, _, options = CASES[name]
    raw = inputs_of(name)
    values = {
        key: torch.tensor(value, requires_grad=key in differentiated(name))
        for key, value in raw.items()
    }
    is_batch_first = options.get("layout")
    x = values["X"].transpose(0, 1) if is_batch_first else values["X"]
    steps, batch, _ = x.shape
    directions, rows, _ = values["W"].shape
    lens = values.get("lens", torch.full((batch,), steps))
    every, last = [], []
    for d in range(directions):
        layer = Direction(kind, options, values, d)

        def start(key: str, d: int = d) -> Any:
            if key not in values:
                return torch.zeros(batch, rows // GATES[kind], dtype=torch.double)
            state = values[key][:, d] if is_batch_first else values[key][d]
            return torch.where((lens > 0).unsqueeze(1), state, 0.0)

        h, c = start("initial_h"), start("initial_c")
        shown = [h] * steps
        is_reversed = d == 1 or options.get("direction") == "reverse"
        for time in reversed(range(steps)) if is_reversed else range(steps):
            is_active = (time < lens).unsqueeze(1)
            new_h, new_c = layer.step(x[time], h, c)
            h, c = torch.where(is_active, new_h, h), torch.where(is_active, new_c, c)
            shown[time] = torch.where(is_active, new_h, 0.0)
        every.append(torch.stack(shown, 1 if is_batch_first else 0))
        last.append((h, c))
    axis = 1 if is_batch_first else 0
    results = {
        "Y": torch.stack(every, axis + 1),
        "Y_h": torch.stack([h for h, _ in last], axis),
        "Y_c": torch.stack([c for _, c in last], axis),
    }
    loss = sum((results[y] * values[f"to_{y}"]).sum() for y in outputs_of(name))
    slopes = torch.autograd.grad(loss, [values[x] for x in differentiated(name)])
    return {
        f"{name}/{x}": slope.numpy() for x, slope in zip(differentiated(name), slopes, strict=True)
    }


if __name__ == "__main__":
    found: dict[str, Any] = {}
    for name in CASES:
        found |= gradients(name)
    np.savez_compressed(pathlib.Path(__file__).with_name("recurrent_gradients.npz"), **found)
