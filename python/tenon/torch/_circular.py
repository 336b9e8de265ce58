"""Circular padding as one operator, with its gradient. PyTorch takes it apart into many copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ._graph import TYPES


@torch.library.custom_op("tenon::circular_pad", mutates_args=())
def circular_pad(x: Tensor, pads: Sequence[int]) -> Tensor:
    """What torch.nn.functional.pad makes of it."""
    return torch.nn.functional.pad(x, list(pads), mode="circular")


@torch.library.custom_op("tenon::circular_pad_backward", mutates_args=())
def circular_pad_backward(dy: Tensor, pads: Sequence[int]) -> Tensor:
    """The gradient of x."""
    with torch.enable_grad():
        x = dy.new_zeros(_sizes(dy, [-pad for pad in pads]), requires_grad=True)
        y = torch.nn.functional.pad(x, list(pads), mode="circular")
    return torch.autograd.grad(y, x, dy)[0]


def _sizes(x: Tensor, pads: Sequence[int]) -> list[int]:
    """Those of x with more elements. The pads of the last axis come first."""
    sizes = list(x.shape)
    for i, pad in enumerate(pads):
        sizes[-1 - i // 2] += pad
    return sizes


@circular_pad.register_fake
def _(x: Tensor, pads: Sequence[int]) -> Tensor:
    return x.new_empty(_sizes(x, pads))


@circular_pad_backward.register_fake
def _(dy: Tensor, pads: Sequence[int]) -> Tensor:
    return dy.new_empty(_sizes(dy, [-pad for pad in pads]))


def _save(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.pads = inputs[1]


def _gradient(ctx: Any, dy: Tensor) -> Any:
    return torch.ops.tenon.circular_pad_backward(dy, ctx.pads), None


circular_pad.register_autograd(_gradient, setup_context=_save)


def _pad(x: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    axes = len(pad) // 2
    is_whole = (
        mode == "circular"
        and value in (None, 0)
        and x.dim() == axes + 2
        and x.dtype in TYPES
        and x.device.type == "cpu"
        and all(0 <= n <= x.shape[-1 - i // 2] for i, n in enumerate(pad))
    )
    if is_whole:
        return torch.ops.tenon.circular_pad(x, pad)  # type: ignore[no-any-return]
    return torch.nn.functional.pad(x, pad, mode, value)


def keep_pads_whole(module: torch.fx.GraphModule) -> None:
    """Makes calls of torch.nn.functional.pad that pad circularly calls of the operator here."""
    target = torch._C._nn.pad  # type: ignore[attr-defined]
    found = [
        node
        for node in module.graph.find_nodes(op="call_function", target=target)
        if "circular" in (*node.args, *node.kwargs.values())
    ]
    for node in found:
        node.target = _pad
    if found:
        module.recompile()
