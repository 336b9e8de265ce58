"""Operators that read or write where indices say."""

from __future__ import annotations

import math
from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import (
    argument,
    arguments,
    keyword,
    rule,
    shape_of,
    type_of,
    unless_float,
    unless_number,
    unless_single,
)

aten = torch.ops.aten

_INTEGERS = (torch.int32, torch.int64)


def _unless_integer(index: int) -> Any:
    def condition(node: torch.fx.Node) -> str:
        dtype = type_of(arguments(node)[index])
        return "" if dtype in _INTEGERS else f"its indices are of type {dtype}"

    return condition


@rule(aten.embedding.default, unless=_unless_integer(1))
def _embedding(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op(
        "Gather", graph.value(arguments(node)[0]), graph.value(arguments(node)[1]), axis=0
    )


def _unless_plain_sum(node: torch.fx.Node) -> str:
    return "it scales by frequency" if arguments(node)[4] else unless_single(node)


@rule(aten.embedding_dense_backward.default, unless=_unless_plain_sum)
def _embedding_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, indices, _, padding, _ = arguments(node)
    name, where = graph.value(upper), graph.value(indices, torch.int64)
    if padding >= 0:
        is_padding = graph.op("Equal", where, graph.constant(padding))
        is_padding = graph.op("Unsqueeze", is_padding, graph.constant([-1]))
        name = graph.op("Where", is_padding, graph.constant(0, type_of(node)), name)
    return graph.contrib("GatherGrad", graph.constant(shape_of(node)), where, name, axis=0)


@rule(aten.index_select.default, unless=_unless_integer(2))
def _index_select(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, axis, index = arguments(node)
    name, where = graph.value(source), graph.reshape(graph.value(index), [-1])
    if not shape_of(source):
        return graph.reshape(graph.op("Gather", graph.reshape(name, [1]), where), [])
    return graph.op("Gather", name, where, axis=axis)


def _unless_ranked(node: torch.fx.Node) -> str:
    return "" if shape_of(arguments(node)[0]) else "it has no axes"


@rule(aten.gather.default, unless=_unless_ranked)
def _gather(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, axis, index = arguments(node)[:3]
    name = graph.value(index, torch.int64)
    return graph.op("GatherElements", graph.value(source), name, axis=axis)


def _scatter(graph: GraphBuilder, node: torch.fx.Node, updates: str, reduction: str) -> Any:
    source, axis, index = arguments(node)[:3]
    names = graph.value(source), graph.value(index, torch.int64), updates
    return graph.op("ScatterElements", *names, axis=axis, reduction=reduction)


@rule(aten.scatter.value, unless=_unless_ranked)
def _scatter_value(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    filling = graph.constant(arguments(node)[3], type_of(node))
    return _scatter(graph, node, graph.expand(filling, shape_of(arguments(node)[2])), "none")


def _unless_fitting(node: torch.fx.Node) -> str:
    index, updates = (shape_of(each) for each in arguments(node)[2:4])
    return _unless_ranked(node) if index == updates else "it reads a part of its values"


@rule(aten.scatter.src, unless=_unless_fitting)
def _scatter_values(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _scatter(graph, node, graph.value(arguments(node)[3]), "none")


def _unless_added(node: torch.fx.Node) -> str:
    return _unless_fitting(node) or unless_number(node)


@rule(aten.scatter_add.default, unless=_unless_added)
def _scatter_add(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _scatter(graph, node, graph.value(arguments(node)[3]), "add")


def _unless_put(node: torch.fx.Node) -> str:
    accumulates = argument(node, 3, "accumulate", False)
    return unless_number(node) if accumulates else ""


@rule(aten.put.default, unless=_unless_put)
def _put(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, index, values = arguments(node)[:3]
    names = [
        graph.reshape(graph.value(source), [-1]),
        graph.reshape(graph.value(index, torch.int64), [-1]),
        graph.reshape(graph.value(values), [-1]),
    ]
    reduction = "add" if argument(node, 3, "accumulate", False) else "none"
    name = graph.op("ScatterElements", *names, axis=0, reduction=reduction)
    return graph.reshape(name, shape_of(node))


# The operator's name for the reduction, and the number that changes no result.
_REDUCTIONS = {
    "sum": ("add", lambda _: 0),
    "mean": ("add", lambda _: 0),
    "prod": ("mul", lambda _: 1),
    "amax": ("max", lambda dtype: _limits(dtype)[0]),
    "amin": ("min", lambda dtype: _limits(dtype)[1]),
}


def _limits(dtype: torch.dtype) -> tuple[float, float]:
    if dtype.is_floating_point:
        return -math.inf, math.inf
    return torch.iinfo(dtype).min, torch.iinfo(dtype).max


def _unless_reduced(node: torch.fx.Node) -> str:
    is_mean = arguments(node)[4] == "mean"
    if is_mean and not type_of(node).is_floating_point:
        return "its means are of integers"
    return _unless_added(node)


@rule(aten.scatter_reduce.two, unless=_unless_reduced)
def _scatter_reduce(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, axis, index, updates, kind = arguments(node)
    dtype, keeps = type_of(node), bool(keyword(node, "include_self", True))
    reduction, neutral = _REDUCTIONS[kind]
    where = graph.value(index, torch.int64)

    def scattered(base: str, number: float, how: str) -> Any:
        numbers = graph.expand(graph.constant(number, dtype), shape_of(index))
        return graph.op("ScatterElements", base, where, numbers, axis=axis, reduction=how)

    base = graph.value(source, dtype)
    if not keeps:
        base = scattered(base, neutral(dtype), "none")
    name = graph.value(updates, dtype)
    name = graph.op("ScatterElements", base, where, name, axis=axis, reduction=reduction)
    if kind != "mean":
        return name
    shape = shape_of(node)
    counts = scattered(graph.expand(graph.constant(int(keeps), dtype), shape), 1, "add")
    return graph.op("Div", name, graph.op("Max", counts, graph.constant(1, dtype)))


def _unless_bounded(node: torch.fx.Node) -> str:
    low, high = argument(node, 2, "min", 0), argument(node, 3, "max", 0)
    return unless_float(node) if low < high else "its bounds are those of the data"


@rule(aten.histc.default, unless=_unless_bounded)
def _histogram(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    dtype, bins = type_of(node), argument(node, 1, "bins", 100)
    low, high = argument(node, 2, "min", 0), argument(node, 3, "max", 0)
    name = graph.reshape(graph.value(arguments(node)[0]), [-1])
    first, last = graph.constant(low, dtype), graph.constant(high, dtype)
    counts = graph.op(
        "And", graph.op("GreaterOrEqual", name, first), graph.op("LessOrEqual", name, last)
    )
    place = graph.op("Mul", graph.op("Sub", name, first), graph.constant(bins, dtype))
    place = graph.op("Div", place, graph.constant(high - low, dtype))
    # The last bin has the upper bound, too.
    place = graph.op("Min", place, graph.constant(bins - 1, dtype))
    place = graph.op("Where", counts, place, graph.constant(0, dtype))
    names = (
        graph.expand(graph.constant(0, dtype), [bins]),
        graph.cast(place, dtype, torch.int64),
        graph.cast(counts, torch.bool, dtype),
    )
    return graph.op("ScatterElements", *names, axis=0, reduction="add")


def _places_of(graph: GraphBuilder, mask: str) -> str:
    """Of each element of a mask that has one axis, how many before it are true; 0 if none is."""
    count = graph.op("CumSum", graph.cast(mask, torch.bool, torch.int64), graph.constant(0))
    last = graph.op("Sub", count, graph.constant(1))
    return str(graph.op("Max", last, graph.constant(0)))


@rule(aten.masked_scatter.default)
def _masked_scatter(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, mask, updates = (graph.value(each) for each in arguments(node))
    shape = shape_of(node)
    mask = graph.reshape(graph.expand(mask, shape), [-1])
    updates = graph.op("Gather", graph.reshape(updates, [-1]), _places_of(graph, mask), axis=0)
    name = graph.op("Where", mask, updates, graph.reshape(graph.expand(source, shape), [-1]))
    return graph.reshape(name, shape)


@rule(aten.masked_scatter_backward.default, unless=unless_number)
def _masked_scatter_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, mask = (graph.value(each) for each in arguments(node)[:2])
    shape, dtype = shape_of(arguments(node)[0]), type_of(node)
    mask = graph.reshape(graph.expand(mask, shape), [-1])
    kept = graph.op("Where", mask, graph.reshape(upper, [-1]), graph.constant(0, dtype))
    zeros = graph.expand(graph.constant(0, dtype), [math.prod(shape_of(node))])
    places = _places_of(graph, mask)
    name = graph.op("ScatterElements", zeros, places, kept, axis=0, reduction="add")
    return graph.reshape(name, shape_of(node))


class _Places:
    """What index and index_put do, with one index tensor for each of some axes."""

    def __init__(self, graph: GraphBuilder, node: torch.fx.Node) -> None:
        indices: Any = arguments(node)[1]
        self._graph = graph
        self.shape = shape_of(arguments(node)[0])
        self.axes = [axis for axis, each in enumerate(indices) if each is not None]
        self._indices = [each for each in indices if each is not None]
        shapes = [shape_of(each) for each in self._indices]
        self.broadcast = list(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
        others = [axis for axis in range(len(self.shape)) if axis not in self.axes]
        # The indexed axes first.
        self.order = [*self.axes, *others]
        first, count = self.axes[0], len(self.broadcast)
        is_together = self.axes == list(range(first, first + len(self.axes)))
        rank = count + len(others)
        # PyTorch puts the axes of the indices where the indexed ones were, if these are together.
        at = first if is_together else 0
        rest = list(range(count, rank))
        self.result_order = [*rest[:at], *range(count), *rest[at:]]
        self.is_product = is_together and self._is_product(shapes)

    def _is_product(self, shapes: list[list[int]]) -> bool:
        """Whether each index tensor has an axis of its own, as for a grid."""
        rank = len(self.broadcast)
        if len(shapes) != rank:
            return False
        padded = [[1] * (rank - len(shape)) + shape for shape in shapes]
        return all(
            size == 1 or i == axis
            for i, shape in enumerate(padded)
            for axis, size in enumerate(shape)
        )

    def names(self) -> list[str]:
        """The index tensors."""
        return [self._graph.value(each, torch.int64) for each in self._indices]

    def flat_names(self) -> list[str]:
        """The index tensors of a grid, with one axis each."""
        return [self._graph.reshape(name, [-1]) for name in self.names()]

    def together(self) -> str:
        """The index tensors as one, as GatherND and ScatterND take them."""
        last = self._graph.constant([-1])
        parts = [
            self._graph.op("Unsqueeze", self._graph.expand(name, self.broadcast), last)
            for name in self.names()
        ]
        together: str = self._graph.op("Concat", *parts, axis=-1)
        return together


def _unless_integers(node: torch.fx.Node) -> str:
    indices: Any = arguments(node)[1]
    types = {type_of(each) for each in indices if each is not None}
    if odd := [dtype for dtype in types if dtype not in _INTEGERS]:
        return f"its indices are of type {odd[0]}"
    return "" if types else "it has no indices"


@rule(aten.index.Tensor, unless=_unless_integers)
def _index(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    places = _Places(graph, node)
    name = graph.value(arguments(node)[0])
    if len(places.axes) == 1:
        return graph.op("Gather", name, *places.names(), axis=places.axes[0])
    if places.is_product:
        for axis, index in zip(places.axes, places.flat_names(), strict=True):
            name = graph.op("Gather", name, index, axis=axis)
        return name
    name = graph.transpose(name, places.order)
    return graph.transpose(graph.op("GatherND", name, places.together()), places.result_order)


def _is_masked(node: torch.fx.Node) -> bool:
    """Whether one number goes where a mask is true."""
    indices: Any = arguments(node)[1]
    is_mask = len(indices) == 1 and type_of(indices[0]) == torch.bool
    is_number = math.prod(shape_of(arguments(node)[2])) == 1
    return is_mask and is_number and not argument(node, 3, "accumulate", False)


def _unless_putting(node: torch.fx.Node) -> str:
    accumulates = argument(node, 3, "accumulate", False)
    if _is_masked(node):
        return ""
    return _unless_integers(node) or (unless_number(node) if accumulates else "")


def _put_number(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, (mask,), value = arguments(node)[:3]
    shape = shape_of(mask) + [1] * (len(shape_of(source)) - len(shape_of(mask)))
    number = graph.reshape(graph.value(value), [])
    return graph.op("Where", graph.reshape(graph.value(mask), shape), number, graph.value(source))


@rule(aten.index_put.default, unless=_unless_putting)
def _index_put(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    if _is_masked(node):
        return _put_number(graph, node)
    places = _Places(graph, node)
    source, values = graph.value(arguments(node)[0]), graph.value(arguments(node)[2])
    accumulates = argument(node, 3, "accumulate", False)
    kept = [places.shape[axis] for axis in places.order[len(places.axes) :]]
    gathered = [*places.broadcast, *kept]
    values = graph.expand(values, [gathered[axis] for axis in places.result_order])
    is_single = len(places.axes) == 1
    if accumulates and type_of(node) == torch.float32 and (is_single or places.is_product):
        indices = places.names() if is_single else places.flat_names()
        sizes = list(places.shape)
        for axis, index in reversed(list(zip(places.axes, indices, strict=True))):
            # Axes before this one are still those of the values.
            for i, before in enumerate(places.axes):
                if before < axis:
                    sizes[before] = places.broadcast[i]
            shape = graph.constant(sizes)
            values = graph.contrib("GatherGrad", shape, index, values, axis=axis)
            sizes = list(places.shape)
        return graph.op("Add", source, values)
    back = sorted(range(len(places.result_order)), key=places.result_order.__getitem__)
    result = graph.op(
        "ScatterND",
        graph.transpose(source, places.order),
        places.together(),
        graph.transpose(values, back),
        reduction="add" if accumulates else "none",
    )
    order = sorted(range(len(places.order)), key=places.order.__getitem__)
    return graph.transpose(result, order)
