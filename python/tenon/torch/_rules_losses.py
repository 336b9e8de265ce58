"""Losses and their gradients."""

from __future__ import annotations

from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import (
    arguments,
    rule,
    shape_of,
    type_of,
    unless_float,
)

aten = torch.ops.aten

_REDUCTIONS = ("none", "mean", "sum")  # as PyTorch numbers them


def _unless_batched(node: torch.fx.Node) -> str:
    is_forward = "forward" in str(node.target)
    source = arguments(node)[0 if is_forward else 1]
    return unless_float(node) if len(shape_of(source)) > 1 else "its input has no batch"


@rule(aten.nll_loss_forward.default, aten.nll_loss2d_forward.default, unless=_unless_batched)
def _nll_loss(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, target, weight, reduction, ignored = arguments(node)
    dtype = type_of(source)
    inputs = [graph.value(each) for each in (source, target, weight) if each is not None]
    loss = graph.op(
        "NegativeLogLikelihoodLoss",
        *inputs,
        reduction=_REDUCTIONS[reduction],
        ignore_index=ignored,
    )
    if reduction == 0:
        return loss, graph.constant(0, dtype)
    weights, _ = _weights(graph, target, weight, ignored, dtype)
    return loss, graph.op("ReduceSum", weights, keepdims=0)


def _weights(
    graph: GraphBuilder, target: Any, weight: Any, ignored: Any, dtype: torch.dtype
) -> tuple[str, str]:
    """The weight of each element, and the class of each, 0 for those that are ignored."""
    name = graph.value(target)
    is_ignored = graph.op("Equal", name, graph.constant(ignored))
    classes = graph.op("Where", is_ignored, graph.constant(0), name)
    one = graph.constant(1, dtype)
    weights = one if weight is None else graph.op("Gather", graph.value(weight), classes)
    return graph.op("Where", is_ignored, graph.constant(0, dtype), weights), classes


@rule(aten.nll_loss_backward.default, aten.nll_loss2d_backward.default, unless=_unless_batched)
def _nll_loss_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source, target, weight, reduction, ignored, total = arguments(node)
    dtype = type_of(source)
    weights, classes = _weights(graph, target, weight, ignored, dtype)
    share = graph.value(upper)
    if reduction == 1:
        share = graph.op("Div", share, graph.value(total))
    # A total of 0, where all elements are ignored, must not reach those elements as NaN.
    zero = graph.constant(0, dtype)
    is_counted = graph.op("Not", graph.op("Equal", weights, zero))
    product = graph.op("Neg", graph.op("Mul", share, weights))
    product = graph.op("Where", is_counted, product, zero)
    axis = graph.constant([1])
    return graph.op(
        "ScatterElements",
        graph.expand(zero, shape_of(source)),
        graph.op("Unsqueeze", classes, axis),
        graph.op("Unsqueeze", product, axis),
        axis=1,
    )
