"""Tensors with more elements around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import _circular  # noqa: F401  (defines the operators)
from ._graph import GraphBuilder
from ._lowering import (
    argument,
    arguments,
    is_float,
    packet_of,
    rule,
    shape_of,
    type_of,
    unless_number,
)

aten = torch.ops.aten

_MODES = {"reflection": "reflect", "replication": "edge", "circular": "wrap"}


def _mode(node: torch.fx.Node) -> str:
    """ONNX's name of it, for operators that have theirs in their names."""
    return _MODES[str(packet_of(node)).split(".")[1].split("_")[0]]


def _pads(graph: GraphBuilder, node: torch.fx.Node, given: Sequence[int]) -> str:
    """Those of all axes. PyTorch names the last axis first, with both of its ends."""
    rank = len(shape_of(node))
    pads = [0] * (2 * rank)
    for i, pad in enumerate(given):
        pads[rank - 1 - i // 2 + (i % 2) * rank] = pad
    return graph.constant(pads)


@rule(aten.constant_pad_nd.default, unless=unless_number)
def _constant(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, given = arguments(node)[:2]
    value = graph.constant(argument(node, 2, "value", 0) or 0, type_of(node))
    return graph.op("Pad", graph.value(source), _pads(graph, node, given), value)


def _unless_widened(node: torch.fx.Node) -> str:
    if not is_float(type_of(node)):
        return f"it computes in {type_of(node)}"
    return "" if min(arguments(node)[-1]) >= 0 else "it cuts elements off"


@rule(
    aten.reflection_pad1d.default,
    aten.reflection_pad2d.default,
    aten.reflection_pad3d.default,
    aten.replication_pad1d.default,
    aten.replication_pad2d.default,
    aten.replication_pad3d.default,
    torch.ops.tenon.circular_pad.default,
    unless=_unless_widened,
)
def _repeated(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, given = arguments(node)
    return graph.op("Pad", graph.value(source), _pads(graph, node, given), mode=_mode(node))


@rule(
    aten.reflection_pad1d_backward.default,
    aten.reflection_pad2d_backward.default,
    aten.reflection_pad3d_backward.default,
    aten.replication_pad1d_backward.default,
    aten.replication_pad2d_backward.default,
    aten.replication_pad3d_backward.default,
    torch.ops.tenon.circular_pad_backward.default,
    unless=_unless_widened,
)
def _gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, *_, given = arguments(node)
    shape = graph.constant(shape_of(node))
    pads = _pads(graph, node, given)
    return graph.contrib("PadGrad", graph.value(upper), shape, pads, mode=_mode(node))
