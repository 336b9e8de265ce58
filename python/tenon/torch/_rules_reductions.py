"""Reductions and normalizations."""

from __future__ import annotations

from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import argument, rule, shape_of, type_of
from ._rules_elementwise import _unless_float, _unless_number

aten = torch.ops.aten


def _reduce(
    graph: GraphBuilder, node: torch.fx.Node, op_type: str, name: str, axes: Any, keep: bool
) -> Any:
    rank = len(shape_of(node.args[0]))
    if rank == 0:
        return name
    axes = [axes] if isinstance(axes, int) else list(axes or range(rank))
    return graph.op(op_type, name, graph.constant(axes), keepdims=int(keep))


@rule(
    aten.sum.dim_IntList,
    aten.mean.dim,
    aten.amax.default,
    aten.amin.default,
    aten.sum.default,
    aten.mean.default,
    unless=_unless_number,
)
def _reduction(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    packet = node.target.overloadpacket  # type: ignore[union-attr]
    op_type = {
        aten.sum: "ReduceSum",
        aten.mean: "ReduceMean",
        aten.amax: "ReduceMax",
        aten.amin: "ReduceMin",
    }[packet]
    name = graph.value(node.args[0], type_of(node))
    return _reduce(
        graph, node, op_type, name, argument(node, 1, "dim"), argument(node, 2, "keepdim", False)
    )


def _variance(graph: GraphBuilder, node: torch.fx.Node) -> tuple[Any, Any]:
    axes, keep = argument(node, 1, "dim"), node.kwargs.get("keepdim", False)
    source = node.args[0]
    shape = shape_of(source)
    dims = [axes] if isinstance(axes, int) else list(axes or range(len(shape)))
    count = 1
    for axis in dims:
        count *= shape[axis]
    name = graph.value(source)
    mean = _reduce(graph, node, "ReduceMean", name, dims, True)
    distance = graph.op("Sub", name, mean)
    squares = graph.op("Mul", distance, distance)
    total = _reduce(graph, node, "ReduceSum", squares, dims, bool(keep))
    correction = node.kwargs.get("correction", 1)
    divisor = count - (1 if correction is None else correction)  # type: ignore[operator]
    variance = graph.op("Div", total, graph.constant(divisor, type_of(source)))
    if not keep:
        mean = graph.op("Squeeze", mean, graph.constant(dims))
    return variance, mean


def _unless_varied(node: torch.fx.Node) -> str:
    if len(shape_of(node.args[0])) == 0:
        return "it has no axes"
    return ""


@rule(aten.var_mean.correction, unless=_unless_varied)
def _var_mean(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _variance(graph, node)


@rule(aten.var.correction, unless=_unless_varied)
def _var(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _variance(graph, node)[0]


@rule(aten._softmax.default, unless=_unless_float)
def _softmax(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("Softmax", graph.value(node.args[0]), axis=node.args[1])


def _unless_affine(node: torch.fx.Node) -> str:
    return "" if node.args[2] is not None else "it has no weight"


@rule(aten.native_layer_norm.default, unless=_unless_affine)
def _layer_norm(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, normalized, weight, bias, epsilon = node.args
    inputs = [graph.value(each) for each in (source, weight, bias) if each is not None]
    axis = -len(normalized)  # type: ignore[arg-type]
    return graph.op("LayerNormalization", *inputs, outputs=3, axis=axis, epsilon=epsilon)
