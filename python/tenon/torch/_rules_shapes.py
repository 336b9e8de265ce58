"""Operators that move elements."""

from __future__ import annotations

import math
from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import argument, rule, shape_of, type_of

aten = torch.ops.aten

# These cost nothing in PyTorch.
VIEWS = {
    aten.view.default,
    aten._unsafe_view.default,
    aten.permute.default,
    aten.transpose.int,
    aten.t.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.unsqueeze.default,
    aten.expand.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.alias.default,
    aten.detach.default,
    aten.full.default,
    aten.scalar_tensor.default,
}


@rule(
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.squeeze.default,
    aten.unsqueeze.default,
)
def _reshape(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.reshape(graph.value(node.args[0]), shape_of(node))


@rule(aten.permute.default)
def _permute(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    rank = len(shape_of(node))
    order = [axis % rank for axis in node.args[1]]  # type: ignore[union-attr, operator]
    return graph.op("Transpose", graph.value(node.args[0]), perm=order)


@rule(aten.transpose.int, aten.t.default)
def _transpose(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    rank = len(shape_of(node))
    order = list(range(rank))
    if rank > 1:
        first, second = argument(node, 1, "dim0", 0), argument(node, 2, "dim1", 1)
        order[first], order[second] = order[second], order[first]
    return graph.op("Transpose", graph.value(node.args[0]), perm=order)


@rule(aten.expand.default)
def _expand(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("Expand", graph.value(node.args[0]), graph.constant(shape_of(node)))


@rule(aten.cat.default)
def _concatenate(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    names = [graph.value(each, type_of(node)) for each in node.args[0]]  # type: ignore[union-attr]
    return graph.op("Concat", *names, axis=argument(node, 1, "dim", 0))


@rule(aten.slice.Tensor)
def _slice(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    bounds = (
        argument(node, 2, "start") or 0,
        2**62 if argument(node, 3, "end") is None else argument(node, 3, "end"),
        argument(node, 1, "dim", 0),
        argument(node, 4, "step", 1),
    )
    return graph.op("Slice", graph.value(node.args[0]), *(graph.constant([n]) for n in bounds))


@rule(aten.select.int)
def _select(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, axis, index = node.args
    return graph.op("Gather", graph.value(source), graph.constant(index), axis=axis)


@rule(aten.split_with_sizes.default)
def _split(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, sizes = node.args[:2]
    names = graph.op(
        "Split",
        graph.value(source),
        graph.constant(sizes),
        outputs=len(sizes),  # type: ignore[arg-type]
        axis=argument(node, 2, "dim", 0),
    )
    return names if isinstance(names, tuple) else (names,)


@rule(aten.embedding.default)
def _embedding(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("Gather", graph.value(node.args[0]), graph.value(node.args[1]), axis=0)


def _unless_ranked(node: torch.fx.Node) -> str:
    return "" if shape_of(node.args[0]) else "it has no axes"


@rule(aten.gather.default, unless=_unless_ranked)
def _gather(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, axis, index = node.args[:3]
    return graph.op(
        "GatherElements", graph.value(source), graph.value(index, torch.int64), axis=axis
    )


@rule(aten.scatter.value, unless=_unless_ranked)
def _scatter(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, axis, index, value = node.args[:4]
    filling = graph.constant(value, type_of(node))
    updates = graph.op("Expand", filling, graph.constant(shape_of(index)))
    names = graph.value(source), graph.value(index, torch.int64), updates
    return graph.op("ScatterElements", *names, axis=axis)


def _unless_first_axis(node: torch.fx.Node) -> str:
    indices: Any = node.args[1]
    values: Any = node.args[2]
    if len(indices) != 1 or indices[0] is None or type_of(indices[0]) == torch.bool:
        return "it has other indices than one tensor for the first axis"
    shape = shape_of(indices[0]) + shape_of(node)[1:]
    return "" if shape_of(values) == shape else "its values are broadcast"


@rule(aten.index_put.default, aten._unsafe_index_put.default, unless=_unless_first_axis)
def _index_put(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, indices, values = node.args[:3]
    index = indices[0]  # type: ignore[index]
    where = graph.reshape(graph.value(index, torch.int64), [*shape_of(index), 1])
    reduction = "add" if argument(node, 3, "accumulate", False) else "none"
    return graph.op(
        "ScatterND", graph.value(source), where, graph.value(values), reduction=reduction
    )


@rule(aten.arange.start_step)
def _arange(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    start, _, step = node.args[0], node.args[1], argument(node, 2, "step", 1)
    numbers = [start + step * i for i in range(math.prod(shape_of(node)))]
    return graph.constant(numbers, type_of(node))
