"""Recurrent layers of PyTorch as whole operators, with gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import tenon

from ._graph import GraphBuilder, wide

# The operators have the shapes, orders and states of ONNX: w [directions, gates * hidden, inputs],
# r [directions, gates * hidden, hidden], b [directions, 2 * gates * hidden] and states [directions,
# batch, hidden], where gates are i, o, f, c and z, r, h. y is [steps, directions, batch, hidden].


def attributes_of(r: Any) -> dict[str, Any]:
    """Those of the operator, from the shape of r."""
    directions, _, hidden = r.shape
    direction = "bidirectional" if directions == 2 else "forward"
    return {"hidden_size": int(hidden), "direction": direction}


@functools.lru_cache(maxsize=64)
def _session(op_type: str, shapes: tuple[Any, ...], outputs: int, settings: Any) -> Any:
    graph = GraphBuilder()
    names = [graph.add_input(shape, torch.float32) if shape else "" for shape in shapes]
    for name in graph.contrib(op_type, *names, outputs=outputs, **dict(settings)):
        graph.add_output(name, [], torch.float32)
    return tenon.InferenceSession(graph.model())


def _run(op_type: str, inputs: Sequence[Tensor | None], outputs: int, **settings: Any) -> Any:
    """Runs an operator by itself, for a node that is in no region."""
    shapes = tuple(None if each is None else tuple(each.shape) for each in inputs)
    session = _session(op_type, shapes, outputs, tuple(settings.items()))
    given = [each.contiguous().float().numpy() for each in inputs if each is not None]
    feeds = {each.name: value for each, value in zip(session.get_inputs(), given, strict=True)}
    dtype = next(each.dtype for each in inputs if each is not None)
    return tuple(torch.from_numpy(each).to(dtype) for each in session.run(None, feeds))


@torch.library.custom_op("tenon::lstm", mutates_args=())
def lstm(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor, h: Tensor, c: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """y, the last states h and c, and what the gradient needs: all states c, and the gates."""
    result: Any = _run("LSTMTraining", [x, w, r, b, None, h, c], 5, **attributes_of(r))
    return result  # type: ignore[no-any-return]


@torch.library.custom_op("tenon::gru", mutates_args=())
def gru(x: Tensor, w: Tensor, r: Tensor, b: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """y, the last state, and the gates, which the gradient needs."""
    settings = attributes_of(r) | {"linear_before_reset": 1}
    result: Any = _run("GRUTraining", [x, w, r, b, None, h], 3, **settings)
    return result  # type: ignore[no-any-return]


@torch.library.custom_op("tenon::lstm_backward", mutates_args=())
def lstm_backward(
    dy: Tensor,
    dh: Tensor,
    dc: Tensor,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor,
    h: Tensor,
    c: Tensor,
    y: Tensor,
    cells: Tensor,
    gates: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The gradients of x, w, r, b, h and c."""
    inputs = [x, w, r, None, h, c, y, cells, gates, dy, dh, dc]
    result: Any = _run("LSTMGrad", inputs, 6, **attributes_of(r))
    return result  # type: ignore[no-any-return]


@torch.library.custom_op("tenon::gru_backward", mutates_args=())
def gru_backward(
    dy: Tensor,
    dh: Tensor,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor,
    h: Tensor,
    y: Tensor,
    gates: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The gradients of x, w, r, b and h."""
    settings = attributes_of(r) | {"linear_before_reset": 1}
    inputs = [x, w, r, b, None, h, y, gates, dy, dh]
    result: Any = _run("GRUGrad", inputs, 5, **settings)
    return result  # type: ignore[no-any-return]


def _of_steps(x: Tensor, r: Tensor, gates: int = 1) -> Tensor:
    return x.new_empty([x.shape[0], r.shape[0], x.shape[1], gates * r.shape[2]])


@lstm.register_fake
def _(x: Tensor, w: Tensor, r: Tensor, b: Tensor, h: Tensor, c: Tensor) -> Any:
    y, cells, gates = _of_steps(x, r), _of_steps(x, r), _of_steps(x, r, 4)
    return y, h.new_empty(h.shape), c.new_empty(c.shape), cells, gates


@gru.register_fake
def _(x: Tensor, w: Tensor, r: Tensor, b: Tensor, h: Tensor) -> Any:
    return _of_steps(x, r), h.new_empty(h.shape), _of_steps(x, r, 3)


@lstm_backward.register_fake
def _(dy: Any, dh: Any, dc: Any, x: Any, w: Any, r: Any, b: Any, h: Any, c: Any, *_: Any) -> Any:
    return tuple(each.new_empty(each.shape) for each in (x, w, r, b, h, c))


@gru_backward.register_fake
def _(dy: Any, dh: Any, x: Any, w: Any, r: Any, b: Any, h: Any, *_: Any) -> Any:
    return tuple(each.new_empty(each.shape) for each in (x, w, r, b, h))


def _save_lstm(ctx: Any, inputs: Any, output: Any) -> None:
    y, _, _, cells, gates = output
    ctx.save_for_backward(*inputs, y, cells, gates)


def _save_gru(ctx: Any, inputs: Any, output: Any) -> None:
    y, _, gates = output
    ctx.save_for_backward(*inputs, y, gates)


def _lstm_gradient(ctx: Any, dy: Tensor, dh: Tensor, dc: Tensor, *_: Any) -> Any:
    return torch.ops.tenon.lstm_backward(dy, dh, dc, *ctx.saved_tensors)


def _gru_gradient(ctx: Any, dy: Tensor, dh: Tensor, _: Any) -> Any:
    return torch.ops.tenon.gru_backward(dy, dh, *ctx.saved_tensors)


lstm.register_autograd(_lstm_gradient, setup_context=_save_lstm)
gru.register_autograd(_gru_gradient, setup_context=_save_gru)


# ---- layers -------------------------------------------------------------------------------------

_LSTM_ORDER = (0, 3, 1, 2)  # of PyTorch's gates i, f, g, o
_GRU_ORDER = (1, 0, 2)  # of r, z, n


def _layers(
    run: Callable[..., Any],
    order: Sequence[int],
    x: Tensor,
    states: Sequence[Tensor],
    parameters: Sequence[Tensor],
    *settings: Any,
) -> tuple[Tensor, ...]:
    """The layers of a module, one operator each."""
    has_biases, layers, dropout, is_trained, is_bidirectional, is_batch_first = settings
    directions = 2 if is_bidirectional else 1
    count = 4 if has_biases else 2

    def ordered(weight: Tensor) -> Tensor:
        parts = weight.chunk(len(order))
        return torch.cat([parts[i] for i in order])

    if is_batch_first:
        x = x.transpose(0, 1)
    lasts = []
    for layer in range(layers):
        first = layer * directions
        own = [
            [ordered(each) for each in parameters[d * count : (d + 1) * count]]
            for d in range(first, first + directions)
        ]
        w, r = (torch.stack([weights[i] for weights in own]) for i in range(2))
        if has_biases:
            b = torch.stack([torch.cat(weights[2:]) for weights in own])
        else:
            b = w.new_zeros([directions, 2 * w.shape[1]])
        y, *last = run(x, w, r, b, *(state[first : first + directions] for state in states))
        lasts.append(last[: len(states)])
        x = y.transpose(1, 2).flatten(2)
        if dropout and is_trained and layer + 1 < layers:
            x = torch.nn.functional.dropout(x, dropout)
    final = [torch.cat(part) for part in zip(*lasts, strict=True)]
    return (x.transpose(0, 1) if is_batch_first else x, *final)


def _is_whole(given: Sequence[Any]) -> bool:
    """Whether a call is one that the operators compute: of a batch that is not packed."""
    if len(given) != 9 or not isinstance(given[2], list | tuple):
        return False
    x, _, parameters, has_biases, layers, _, _, is_bidirectional, _ = given
    expected = (4 if has_biases else 2) * layers * (2 if is_bidirectional else 1)
    tensors = [x, *parameters]
    return (
        len(parameters) == expected  # without projections
        and x.dim() == 3
        and wide(x.dtype) == torch.float32
        and all(each.dtype == x.dtype and each.device.type == "cpu" for each in tensors)
    )


def _cast(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors in the type that autocast multiplies in."""
    if not torch.is_autocast_enabled("cpu"):
        return list(tensors)
    return [each.to(torch.get_autocast_dtype("cpu")) for each in tensors]


def _lstm_layers(*given: Any) -> Any:
    if not _is_whole(given):
        return torch.lstm(*given)
    x, states, parameters, *settings = given
    tensors = _cast([x])[0], _cast(states), _cast(parameters)
    return _layers(torch.ops.tenon.lstm, _LSTM_ORDER, *tensors, *settings)


def _gru_layers(*given: Any) -> Any:
    if not _is_whole(given):
        return torch.gru(*given)
    x, state, parameters, *settings = given
    tensors = _cast([x])[0], _cast([state]), _cast(parameters)
    result = _layers(torch.ops.tenon.gru, _GRU_ORDER, *tensors, *settings)
    # As PyTorch's own, whose states stay as they are. Those of its LSTM have the type of autocast.
    return tuple(each.to(x.dtype) for each in result)


def keep_layers_whole(module: torch.fx.GraphModule) -> None:
    """Makes calls of torch.lstm and torch.gru calls of the operators here."""
    layers = {torch.lstm: _lstm_layers, torch.gru: _gru_layers}
    found = [node for node in module.graph.nodes if node.op == "call_function"]
    found = [node for node in found if node.target in layers and not node.kwargs]
    for node in found:
        node.target = layers[node.target]
    if found:
        module.recompile()
