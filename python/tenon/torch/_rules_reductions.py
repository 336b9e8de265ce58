"""Reductions, sums along an axis, and what finds the largest."""

from __future__ import annotations

import math
from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import (
    argument,
    arguments,
    keyword,
    packet_of,
    rule,
    shape_of,
    type_of,
    unless_float,
    unless_number,
)

aten = torch.ops.aten

_REDUCTIONS = {
    aten.sum: "ReduceSum",
    aten.mean: "ReduceMean",
    aten.amax: "ReduceMax",
    aten.amin: "ReduceMin",
    aten.max: "ReduceMax",
    aten.min: "ReduceMin",
    aten.prod: "ReduceProd",
}


def _axes(node: torch.fx.Node, given: Any) -> list[int]:
    """The axes of an argument, where none means all."""
    rank = len(shape_of(arguments(node)[0]))
    if isinstance(given, int):
        given = [given]
    if rank == 0:
        return []
    return [axis % rank for axis in given] if given else list(range(rank))


def reduce(
    graph: GraphBuilder, op_type: str, name: str, axes: list[int], keeps: bool = False
) -> Any:
    """Adds a reduction along `axes`. Without any it is the identity."""
    if not axes:
        return name
    return graph.op(op_type, name, graph.constant(axes), keepdims=int(keeps))


@rule(
    aten.sum.dim_IntList,
    aten.mean.dim,
    aten.mean.default,
    aten.amax.default,
    aten.amin.default,
    aten.max.default,
    aten.min.default,
    aten.prod.default,
    aten.prod.dim_int,
    unless=unless_number,
)
def _reduction(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    op_type = _REDUCTIONS[packet_of(node)]
    axes = _axes(node, argument(node, 1, "dim"))
    keeps = bool(argument(node, 2, "keepdim", False))
    return reduce(graph, op_type, graph.value(arguments(node)[0], type_of(node)), axes, keeps)


@rule(aten.any.default, aten.any.dim, aten.any.dims)
def _any(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source = arguments(node)[0]
    truth = graph.value(source)
    if type_of(source) != torch.bool:
        truth = graph.op("Not", graph.op("Equal", truth, graph.constant(0, type_of(source))))
    axes = _axes(node, argument(node, 1, "dim"))
    keeps = bool(argument(node, 2, "keepdim", False))
    number = graph.cast(truth, torch.bool, torch.int32)
    number = reduce(graph, "ReduceMax", number, axes, keeps)
    return graph.cast(number, torch.int32, torch.bool)


def _unless_varied(node: torch.fx.Node) -> str:
    rank = len(shape_of(arguments(node)[0]))
    return unless_float(node) if rank > 0 else "it has no axes"


def _variance(graph: GraphBuilder, node: torch.fx.Node) -> tuple[Any, Any]:
    source = arguments(node)[0]
    axes = _axes(node, argument(node, 1, "dim"))
    keeps = bool(keyword(node, "keepdim", False))
    correction: Any = keyword(node, "correction")
    count = math.prod(shape_of(source)[axis] for axis in axes)
    name = graph.value(source)
    mean = reduce(graph, "ReduceMean", name, axes, True)
    distance = graph.op("Sub", name, mean)
    total = reduce(graph, "ReduceSum", graph.op("Mul", distance, distance), axes, keeps)
    divisor = max(0, count - (1 if correction is None else correction))
    variance = graph.op("Div", total, graph.constant(divisor, type_of(source)))
    return variance, mean if keeps else graph.op("Squeeze", mean, graph.constant(axes))


@rule(aten.var_mean.correction, unless=_unless_varied)
def _var_mean(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _variance(graph, node)


@rule(aten.var.correction, unless=_unless_varied)
def _var(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _variance(graph, node)[0]


def _unless_axes(node: torch.fx.Node) -> str:
    return "" if shape_of(arguments(node)[0]) else "it has no axes"


def _unless_ranked(node: torch.fx.Node) -> str:
    is_bool = type_of(arguments(node)[0]) == torch.bool
    return "it computes in torch.bool" if is_bool else _unless_axes(node)


@rule(aten.cumsum.default, unless=_unless_axes)
def _cumulative_sum(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    name = graph.value(arguments(node)[0], type_of(node))
    return graph.op("CumSum", name, graph.constant(arguments(node)[1]))


def _unless_multiplied(node: torch.fx.Node) -> str:
    dtype = type_of(node)
    return _unless_axes(node) if dtype != torch.bool else f"it computes in {dtype}"


@rule(aten.cumprod.default, unless=_unless_multiplied)
def _cumulative_product(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    graph.need_opset(26)
    name = graph.value(arguments(node)[0], type_of(node))
    return graph.op("CumProd", name, graph.constant(arguments(node)[1]))


@rule(aten.argmax.default, aten.argmin.default, unless=_unless_ranked)
def _place(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    op_type = "ArgMax" if node.target is aten.argmax.default else "ArgMin"
    name, axis = graph.value(arguments(node)[0]), argument(node, 1, "dim")
    keeps = bool(argument(node, 2, "keepdim", False))
    if axis is not None:
        return graph.op(op_type, name, axis=axis, keepdims=int(keeps))
    flat = graph.op(op_type, graph.reshape(name, [-1]), axis=0)
    return graph.reshape(flat, shape_of(node))


@rule(aten.max.dim, aten.min.dim, unless=_unless_axes)
def _largest(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    kind = "Max" if node.target is aten.max.dim else "Min"
    dtype = type_of(arguments(node)[0])
    number = torch.int32 if dtype == torch.bool else dtype
    name, axis = graph.value(arguments(node)[0], number), argument(node, 1, "dim")
    keeps = int(bool(argument(node, 2, "keepdim", False)))
    value = graph.op(f"Reduce{kind}", name, graph.constant([axis]), keepdims=keeps)
    place = graph.op(f"Arg{kind}", name, axis=axis, keepdims=keeps)
    return graph.cast(value, number, dtype), place


@rule(aten.topk.default, unless=_unless_ranked)
def _largest_few(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op(
        "TopK",
        graph.value(arguments(node)[0]),
        graph.constant([arguments(node)[1]]),
        outputs=2,
        axis=argument(node, 2, "dim", -1),
        largest=int(argument(node, 3, "largest", True)),
    )


# Up to such a part of an axis is at least as fast sorted as PyTorch finds one of its elements.
_SORTED_PART = 16


def _rank_from_ends(node: torch.fx.Node) -> tuple[int, int]:
    """Which element kthvalue finds, counted from the smallest and from the largest."""
    size, k = shape_of(arguments(node)[0])[argument(node, 2, "dim", -1)], arguments(node)[1]
    return k, size - k + 1


def _unless_near_an_end(node: torch.fx.Node) -> str:
    reason = _unless_ranked(node)
    if not reason and min(_rank_from_ends(node)) * _SORTED_PART > sum(_rank_from_ends(node)):
        return "PyTorch is faster"
    return reason


@rule(aten.kthvalue.default, unless=_unless_near_an_end)
def _near_an_end(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    axis, keeps = argument(node, 2, "dim", -1), argument(node, 3, "keepdim", False)
    ranks = _rank_from_ends(node)
    count = min(ranks)
    results = graph.op(
        "TopK",
        graph.value(arguments(node)[0]),
        graph.constant([count]),
        outputs=2,
        axis=axis,
        largest=int(count != ranks[0]),
    )
    last = graph.constant([count - 1] if keeps else count - 1)
    return tuple(graph.op("Gather", each, last, axis=axis) for each in results)


@rule(aten.sort.default, aten.sort.stable, unless=_unless_ranked)
def _sort(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    is_plain = node.target is aten.sort.default
    axis = argument(node, 1, "dim", -1) if is_plain else keyword(node, "dim", -1)
    falls = argument(node, 2, "descending", False) if is_plain else keyword(node, "descending")
    return graph.op(
        "TopK",
        graph.value(arguments(node)[0]),
        graph.constant([shape_of(arguments(node)[0])[axis]]),
        outputs=2,
        axis=axis,
        largest=int(bool(falls)),
    )
