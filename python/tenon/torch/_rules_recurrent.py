"""Recurrent layers and their gradients, as _recurrent defines them."""

from __future__ import annotations

from typing import Any

import torch

from . import _recurrent
from ._graph import CONTRIB, GraphBuilder
from ._lowering import arguments, product, rule, unless_single

tenon = torch.ops.tenon


def _attributes(r: Any) -> dict[str, Any]:
    return _recurrent.attributes_of(r.meta["val"])


def _values(graph: GraphBuilder, nodes: list[Any]) -> list[str]:
    return [graph.value(node) for node in nodes]


@rule(tenon.lstm.default, unless=unless_single)
def _lstm(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    x, w, r, b, *states = _values(graph, arguments(node))
    attributes = _attributes(arguments(node)[2])
    inputs = [x, w, r, b, "", *states]
    return product(graph, node, "LSTMTraining", *inputs, domain=CONTRIB, outputs=5, **attributes)


@rule(tenon.lstm_backward.default, unless=unless_single)
def _lstm_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    dy, dh, dc, x, w, r, _, h, c, y, cells, gates = _values(graph, arguments(node))
    attributes = _attributes(arguments(node)[5])
    inputs = [x, w, r, "", h, c, y, cells, gates, dy, dh, dc]
    return product(graph, node, "LSTMGrad", *inputs, domain=CONTRIB, outputs=6, **attributes)


@rule(tenon.gru.default, unless=unless_single)
def _gru(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    x, w, r, b, h = _values(graph, arguments(node))
    attributes = _attributes(arguments(node)[2]) | {"linear_before_reset": 1}
    inputs = [x, w, r, b, "", h]
    return product(graph, node, "GRUTraining", *inputs, domain=CONTRIB, outputs=3, **attributes)


@rule(tenon.gru_backward.default, unless=unless_single)
def _gru_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    dy, dh, x, w, r, b, h, y, gates = _values(graph, arguments(node))
    attributes = _attributes(arguments(node)[4]) | {"linear_before_reset": 1}
    inputs = [x, w, r, b, "", h, y, gates, dy, dh]
    return product(graph, node, "GRUGrad", *inputs, domain=CONTRIB, outputs=5, **attributes)
