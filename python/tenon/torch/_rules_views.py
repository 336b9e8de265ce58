"""Views by strides, and windows along an axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ._graph import GraphBuilder
from ._lowering import arguments, rule, shape_of, size_hint

aten = torch.ops.aten

# A view of more elements that are not together costs more than it saves.
_MOST_SINGLE = 1 << 20


class _Strided:
    """A view by strides of a tensor that fills its memory, made of rows of that memory."""

    def __init__(self, node: torch.fx.Node) -> None:
        first = 2 if node.target is aten.as_strided_scatter.default else 1
        sizes, strides, at = [*arguments(node)[first:], None][:3]
        value = arguments(node)[0].meta["val"]
        own = [size_hint(each) for each in value.stride()]
        shape = shape_of(arguments(node)[0])
        self.order = sorted(range(len(own)), key=lambda axis: (-own[axis], shape[axis] == 1))
        self.stored = [shape[axis] for axis in self.order]
        count, self.is_filled = 1, True
        for axis in reversed(self.order):
            self.is_filled &= shape[axis] == 1 or own[axis] == count
            count *= shape[axis]
        self.sizes = [size_hint(size) for size in sizes]
        steps = [size_hint(stride) for stride in strides]
        start = 0 if at is None else size_hint(at) - size_hint(value.storage_offset())
        last = start + sum((n - 1) * step for n, step in zip(self.sizes, steps, strict=True))
        self.is_inside = 0 <= start and last < count
        # The longest rows that the view has as a whole, and which of them these are.
        axes = [(n, step) for n, step in zip(self.sizes, steps, strict=True) if n > 1]
        self.length = 1
        while axes and axes[-1][1] == self.length:
            self.length *= axes.pop()[0]
        self.length = math.gcd(self.length, count, start, *(step for _, step in axes))
        places = np.asarray(start)
        for n, step in zip(self.sizes, steps, strict=True):
            places = places[..., None] + np.arange(n) * step
        self.places = places.reshape(-1, self.length)[:, 0] // self.length

    def rows(self, graph: GraphBuilder, name: str) -> str:
        """The tensor's memory."""
        return graph.reshape(graph.transpose(name, self.order), [-1, self.length])


def _unless_view(node: torch.fx.Node) -> str:
    if any(size_hint(stride) < 0 for stride in arguments(node)[-2 if len(node.args) > 3 else -1]):
        return "a stride is negative"
    view = _Strided(node)
    if not view.is_filled:
        return "its input is a part of its memory"
    if not view.is_inside:
        return "it reads beyond its input"
    is_large = view.length == 1 and len(view.places) > _MOST_SINGLE
    return "its elements are apart" if is_large else ""


@rule(aten.as_strided.default, unless=_unless_view)
def _strided(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    view = _Strided(node)
    name = view.rows(graph, graph.value(arguments(node)[0]))
    first, count = int(view.places[0]), len(view.places)
    if np.array_equal(view.places, np.arange(first, first + count)):
        bounds = ([first], [first + count], [0])
        name = graph.op("Slice", name, *map(graph.constant, bounds))
    else:
        name = graph.op("Gather", name, graph.constant(view.places), axis=0)
    return graph.reshape(name, view.sizes)


@rule(aten.as_strided_scatter.default, unless=_unless_view)
def _strided_scatter(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    view = _Strided(node)
    source, part = (graph.value(each) for each in arguments(node)[:2])
    places = graph.constant(view.places.reshape(-1, 1))
    part = graph.reshape(part, [-1, view.length])
    name = graph.op("ScatterND", view.rows(graph, source), places, part)
    back = sorted(range(len(view.order)), key=view.order.__getitem__)
    return graph.transpose(graph.reshape(name, view.stored), back)


@rule(aten.unfold.default)
def _windows(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, axis, size, step = arguments(node)
    rank = len(shape_of(source))
    if rank == 0:
        return graph.reshape(graph.value(source), [1])
    axis %= rank
    count = shape_of(node)[axis]
    places = np.arange(count).reshape(-1, 1) * step + np.arange(size)
    name = graph.op("Gather", graph.value(source), graph.constant(places), axis=axis)
    # The axis of a window is the last one.
    order = [i for i in range(rank + 1) if i != axis + 1]
    return graph.transpose(name, [*order, axis + 1])
