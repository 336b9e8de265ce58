"""Operators that move elements."""

from __future__ import annotations

import math
from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import (
    argument,
    arguments,
    is_empty,
    rule,
    shape_of,
    type_of,
    unless_number,
    why_not,
)

aten = torch.ops.aten

# They cost nothing in a region either.
RESHAPES = {
    aten.view.default,
    aten.squeeze.dims,
    aten.unsqueeze.default,
}
_EMPTY = {
    aten.empty.memory_format,
    aten.empty_permuted.default,
    aten.new_empty_strided.default,
}
# Views of all elements of a tensor. They cost nothing in PyTorch.
DENSE_VIEWS = {
    *RESHAPES,
    aten.permute.default,
    aten.expand.default,
    aten.alias.default,
}
# A region of nothing but these is not worth a session.
FREE = {
    *DENSE_VIEWS,
    *_EMPTY,
    aten.as_strided.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.split_with_sizes.default,
    aten.unfold.default,
    aten.full.default,
    aten.scalar_tensor.default,
    aten.arange.start_step,
}

_LAST = 2**63 - 1


def _unless_overwritten(node: torch.fx.Node) -> str:
    is_lowered = all(user.op != "output" and not why_not(user) for user in node.users)
    return "" if is_lowered else "it only reserves memory"


@rule(*_EMPTY, unless=_unless_overwritten)
def _empty(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.expand(graph.constant(0, type_of(node)), shape_of(node))


@rule(*RESHAPES)
def _reshape(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.reshape(graph.value(arguments(node)[0]), shape_of(node))


@rule(aten.permute.default)
def _permute(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    axes: Any = arguments(node)[1]
    order = [axis % len(axes) for axis in axes]
    return graph.transpose(graph.value(arguments(node)[0]), order)


@rule(aten.expand.default)
def _expand(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.expand(graph.value(arguments(node)[0]), shape_of(node))


@rule(aten.repeat.default)
def _repeat(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source = arguments(node)[0]
    shape, counts = shape_of(source), list(arguments(node)[1])
    name = graph.reshape(graph.value(source), [1] * (len(counts) - len(shape)) + shape)
    return graph.op("Tile", name, graph.constant(counts))


@rule(aten.flip.default)
def _flip(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    axes = list(arguments(node)[1])
    bounds = [[-1] * len(axes), [-_LAST] * len(axes), axes, [-1] * len(axes)]
    return graph.op("Slice", graph.value(arguments(node)[0]), *map(graph.constant, bounds))


@rule(aten.roll.default)
def _roll(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    name, shape = graph.value(arguments(node)[0]), shape_of(node)
    axes = argument(node, 2, "dims")
    if not axes:
        # All elements are one line.
        name, shape, axes = graph.reshape(name, [-1]), [math.prod(shape)], [0]
    for shift, axis in zip(arguments(node)[1], axes, strict=True):
        size = shape[axis]
        at = -shift % size
        if at > 0:
            parts = _cut(graph, name, axis, at, size), _cut(graph, name, axis, 0, at)
            name = graph.op("Concat", *parts, axis=axis)
    return name if argument(node, 2, "dims") else graph.reshape(name, shape_of(node))


@rule(aten.cat.default, ignores_empty=True)
def _concatenate(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    parts = [each for each in arguments(node)[0] if not is_empty(each.meta["val"])]
    if not parts:
        return None
    names = [graph.value(each, type_of(node)) for each in parts]
    return graph.op("Concat", *names, axis=argument(node, 1, "dim", 0))


def _bounds(node: torch.fx.Node, first: int) -> tuple[int, int, int, int]:
    """Axis, start, end and step of a slice, none of them negative."""
    source = node if node.target is aten.slice_backward.default else arguments(node)[0]
    shape = shape_of(source)
    axis = argument(node, first, "dim", 0) % len(shape)
    size = shape[axis]
    start, end = argument(node, first + 1, "start"), argument(node, first + 2, "end")
    start, end = 0 if start is None else start, _LAST if end is None else end
    start, end = (min(max(n + size if n < 0 else n, 0), size) for n in (start, end))
    return axis, start, max(start, end), argument(node, first + 3, "step", 1)


def _cut(graph: GraphBuilder, name: str, axis: int, start: int, end: int, step: int = 1) -> Any:
    return graph.op("Slice", name, *(graph.constant([n]) for n in (start, end, axis, step)))


@rule(aten.slice.Tensor)
def _slice(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    axis, start, end, step = _bounds(node, 1)
    return _cut(graph, graph.value(arguments(node)[0]), axis, start, end, step)


@rule(aten.select.int)
def _select(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, axis, index = arguments(node)
    return graph.op("Gather", graph.value(source), graph.constant(index), axis=axis)


@rule(aten.split_with_sizes.default)
def _split(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, sizes = arguments(node)[:2]
    names = graph.op(
        "Split",
        graph.value(source),
        graph.constant(list(sizes)),
        outputs=len(sizes),
        axis=argument(node, 2, "dim", 0),
    )
    return names if isinstance(names, tuple) else (names,)


def _surrounded(
    graph: GraphBuilder, name: str, axis: int, before: int, after: int, rank: int
) -> Any:
    """The value with zeros before and after it."""
    pads = [0] * (2 * rank)
    pads[axis], pads[axis + rank] = before, after
    return graph.op("Pad", name, graph.constant(pads))


@rule(aten.slice_backward.default, unless=unless_number)
def _slice_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper = arguments(node)[0]
    axis, start, end, step = _bounds(node, 2)
    name, shape, part = graph.value(upper), shape_of(node), shape_of(upper)
    if step > 1:
        # Each element becomes `step` elements, of which the others are 0.
        end = start + part[axis] * step
        name = graph.reshape(name, [*part[: axis + 1], 1, *part[axis + 1 :]])
        name = _surrounded(graph, name, axis + 1, 0, step - 1, len(shape) + 1)
        name = graph.reshape(name, [*part[:axis], end - start, *part[axis + 1 :]])
    return _surrounded(graph, name, axis, start, shape[axis] - end, len(shape))


def _unless_step_1(node: torch.fx.Node) -> str:
    return unless_number(node) if argument(node, 5, "step", 1) == 1 else "its step is not 1"


@rule(aten.select_backward.default, unless=unless_number)
def _select_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, _, axis, index = arguments(node)
    shape = shape_of(node)
    axis, size = axis % len(shape), shape[axis]
    index = index % size
    name = graph.op("Unsqueeze", graph.value(upper), graph.constant([axis]))
    return _surrounded(graph, name, axis, index, size - 1 - index, len(shape))


def _replaced(graph: GraphBuilder, base: str, part: str, place: tuple[int, int, int, int]) -> Any:
    """The base with its elements from `start` to `end` replaced."""
    axis, start, end, size = place
    pieces = [_cut(graph, base, axis, 0, start)] if start > 0 else []
    pieces.append(part)
    if end < size:
        pieces.append(_cut(graph, base, axis, end, size))
    return graph.op("Concat", *pieces, axis=axis)


@rule(aten.slice_scatter.default, unless=_unless_step_1)
def _slice_scatter(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    base, part = (graph.value(each, type_of(node)) for each in arguments(node)[:2])
    axis, start, end, _ = _bounds(node, 2)
    return _replaced(graph, base, part, (axis, start, end, shape_of(node)[axis]))


@rule(aten.select_scatter.default)
def _select_scatter(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    base, part = (graph.value(each, type_of(node)) for each in arguments(node)[:2])
    axis, index = arguments(node)[2:]
    shape = shape_of(node)
    axis, size = axis % len(shape), shape[axis]
    start = index % size
    part = graph.op("Unsqueeze", part, graph.constant([axis]))
    return _replaced(graph, base, part, (axis, start, start + 1, size))


def _diagonal_places(node: torch.fx.Node) -> tuple[list[int], list[int], list[int]]:
    """The order of axes in which those of a diagonal are the last two, their sizes, and where in
    the two, as one axis, its elements are."""
    at = 1 if node.target is aten.diagonal.default else 2
    shape = shape_of(arguments(node)[0])
    offset = argument(node, at, "offset", 0)
    first = argument(node, at + 1, "dim1", 0) % len(shape)
    second = argument(node, at + 2, "dim2", 1) % len(shape)
    order = [axis for axis in range(len(shape)) if axis not in (first, second)]
    rows, columns = shape[first], shape[second]
    places = [i * columns + i + offset for i in range(rows) if 0 <= i + offset < columns]
    return [*order, first, second], [rows, columns], places


@rule(aten.diagonal.default)
def _diagonal(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    order, sizes, places = _diagonal_places(node)
    name = graph.transpose(graph.value(arguments(node)[0]), order)
    name = graph.reshape(name, [*shape_of(node)[:-1], math.prod(sizes)])
    return graph.op("Gather", name, graph.constant(places), axis=-1)


@rule(aten.diagonal_scatter.default)
def _diagonal_scatter(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    order, sizes, places = _diagonal_places(node)
    source, part = arguments(node)[:2]
    shape = shape_of(part)
    name = graph.transpose(graph.value(source), order)
    name = graph.reshape(name, [*shape[:-1], math.prod(sizes)])
    where = graph.expand(graph.constant(places), shape)
    name = graph.op("ScatterElements", name, where, graph.value(part), axis=-1)
    name = graph.reshape(name, [*shape[:-1], *sizes])
    return graph.transpose(name, sorted(range(len(order)), key=order.__getitem__))


@rule(aten.tril.default, aten.triu.default)
def _triangle(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    offset = graph.constant(argument(node, 1, "diagonal", 0))
    upper = int(node.target is aten.triu.default)
    return graph.op("Trilu", graph.value(arguments(node)[0]), offset, upper=upper)
