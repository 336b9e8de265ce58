"""Distances between the rows of two matrices."""

from __future__ import annotations

import math
from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import arguments, rule, shape_of, type_of, unless_float
from ._rules_reductions import reduce

aten = torch.ops.aten

# Beyond that many differences of elements, which PyTorch does not keep, it is faster.
_MOST_DIFFERENCES = 1 << 22


def _rows(node: torch.fx.Node) -> tuple[Any, Any, float]:
    """The matrices and the norm."""
    first = 0 if node.target is aten._cdist_forward.default else 1
    return arguments(node)[first], arguments(node)[first + 1], arguments(node)[first + 2]


def _unless_many(node: torch.fx.Node) -> str:
    left, right, _ = _rows(node)
    count = math.prod(shape_of(left)) * shape_of(right)[-2]
    return "its differences take much memory" if count > _MOST_DIFFERENCES else unless_float(node)


def _differences(graph: GraphBuilder, left: Any, right: Any) -> str:
    """[..., rows of the left, rows of the right, elements]"""
    names = (
        graph.op("Unsqueeze", graph.value(each), graph.constant([axis]))
        for each, axis in ((left, -2), (right, -3))
    )
    difference: str = graph.op("Sub", *names)
    return difference


@rule(aten._cdist_forward.default, unless=_unless_many)
def _distances(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    left, right, p = _rows(node)
    difference, axes, dtype = _differences(graph, left, right), [-1], type_of(node)
    if p == 0:
        is_zero = graph.op("Equal", difference, graph.constant(0, dtype))
        differs = graph.cast(graph.op("Not", is_zero), torch.bool, dtype)
        return reduce(graph, "ReduceSum", differs, axes)
    if p == 1:
        return reduce(graph, "ReduceL1", difference, axes)
    if p == 2:
        return reduce(graph, "ReduceL2", difference, axes)
    distance = graph.op("Abs", difference)
    if p == math.inf:
        return reduce(graph, "ReduceMax", distance, axes)
    total = reduce(graph, "ReduceSum", graph.op("Pow", distance, graph.constant(p, dtype)), axes)
    return graph.op("Pow", total, graph.constant(1 / p, dtype))


@rule(aten._cdist_backward.default, unless=_unless_many)
def _distances_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    left, right, p = _rows(node)
    upper, distances, dtype = arguments(node)[0], arguments(node)[4], type_of(node)
    last, zero = graph.constant([-1]), graph.constant(0, dtype)
    upper, distance = (
        graph.op("Unsqueeze", graph.value(each), last) for each in (upper, distances)
    )
    difference = _differences(graph, left, right)
    if p == 0:
        return graph.op("Mul", graph.value(left), zero)

    def unless_zero(value: str, other: str) -> Any:
        return graph.op("Where", graph.op("Equal", value, zero), zero, other)

    if p == 2:
        slopes = graph.op(
            "Mul", unless_zero(distance, graph.op("Div", upper, distance)), difference
        )
        return reduce(graph, "ReduceSum", slopes, [-2])
    slopes = graph.op("Mul", upper, graph.op("Sign", difference))
    size = graph.op("Abs", difference)
    if p == math.inf:
        slopes = graph.op("Where", graph.op("Equal", size, distance), slopes, zero)
    elif p != 1:
        exponent = graph.constant(p - 1, dtype)
        ratio = graph.op("Pow", graph.op("Div", size, distance), exponent)
        slopes = unless_zero(size, unless_zero(distance, graph.op("Mul", slopes, ratio)))
    return reduce(graph, "ReduceSum", slopes, [-2])
