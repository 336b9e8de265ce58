"""Pools and their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ._graph import GraphBuilder
from ._lowering import (
    arguments,
    rule,
    shape_of,
    size_hint,
    type_of,
    unless_float,
    unless_single,
)

aten = torch.ops.aten


def _axes_of(node: torch.fx.Node) -> int:
    """The number of axes that windows move along."""
    return 3 if "3d" in str(node.target) else 2


def _sizes(node: torch.fx.Node, value: Any) -> list[int]:
    """A size for each of these axes."""
    sizes = [value] if isinstance(value, int) else list(value)
    return sizes * _axes_of(node) if len(sizes) == 1 else sizes


def _window(node: torch.fx.Node, kernel: Any, strides: Any, padding: Any) -> dict[str, Any]:
    """The attributes that all pools have."""
    return {
        "kernel_shape": _sizes(node, kernel),
        "strides": _sizes(node, strides or kernel),
        "pads": _sizes(node, padding or 0) * 2,
    }


def _images(node: torch.fx.Node, source: Any) -> list[int]:
    """The shape of what a pool reads or makes, with a batch."""
    shape, axes = shape_of(source), _axes_of(node)
    return [math.prod(shape[: -axes - 1]), *shape[-axes - 1 :]]


def _plane_starts(graph: GraphBuilder, node: torch.fx.Node, source: Any) -> str:
    """Where each plane begins: ONNX counts in the whole tensor, PyTorch in each plane."""
    batch, channels, *sizes = _images(node, source)
    starts = np.arange(batch * channels) * math.prod(sizes)
    return graph.constant(starts.reshape(batch, channels, *[1] * len(sizes)))


@rule(
    aten.max_pool2d_with_indices.default,
    aten.max_pool3d_with_indices.default,
    unless=unless_float,
)
def _max_pool(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    kernel, strides, padding, dilations, rounds_up = [*arguments(node)[1:], *[None] * 4][:5]
    return _largest(
        graph,
        node,
        dilations=_sizes(node, dilations or 1),
        ceil_mode=int(bool(rounds_up)),
        **_window(node, kernel, strides, padding),
    )


def _largest(graph: GraphBuilder, node: torch.fx.Node, **attributes: Any) -> Any:
    source = arguments(node)[0]
    images = graph.reshape(graph.value(source), _images(node, source))
    values, places = graph.op("MaxPool", images, outputs=2, **attributes)
    shape = list(node.meta["val"][0].shape)
    places = graph.op("Sub", places, _plane_starts(graph, node, source))
    return graph.reshape(values, shape), graph.reshape(places, shape)


@rule(
    aten.max_pool2d_with_indices_backward.default,
    aten.max_pool3d_with_indices_backward.default,
    aten.adaptive_max_pool2d_backward.default,
    aten.adaptive_max_pool3d_backward.default,
    unless=unless_single,
)
def _max_pool_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source, indices = arguments(node)[0], arguments(node)[1], arguments(node)[-1]
    places = graph.reshape(graph.value(indices), _images(node, indices))
    places = graph.op("Add", places, _plane_starts(graph, node, source))
    upper = graph.reshape(graph.value(upper), _images(node, upper))
    result = graph.op("MaxPoolGrad", upper, places)
    graph.declare(result, _images(node, source), type_of(node))
    return graph.reshape(result, shape_of(node))


def _is_forward(node: torch.fx.Node) -> bool:
    return "backward" not in str(node.target)


class _Averages:
    """The arguments of a pool of averages, or of its gradient."""

    def __init__(self, node: torch.fx.Node) -> None:
        first = 0 if _is_forward(node) else 1
        given = [*arguments(node)[first:], *[None] * 5]
        self.source, kernel, strides, padding, rounds_up, counts, self.divisor = given[:7]
        self.window = _window(node, kernel, strides, padding)
        axes = _axes_of(node)
        pads: list[int] = self.window["pads"][:axes]
        steps = zip(
            shape_of(self.source)[-axes:],
            shape_of(node if first == 0 else arguments(node)[0])[-axes:],
            self.window["kernel_shape"],
            self.window["strides"],
            pads,
            strict=True,
        )
        # How far the last windows reach beyond the pads, where sizes are rounded up.
        beyond = [max(0, (m - 1) * step + size - n - 2 * pad) for n, m, size, step, pad in steps]
        self.window["pads"] = [*pads, *(sum(both) for both in zip(pads, beyond, strict=True))]
        counts = counts is not False and any(pads)
        varies = any(isinstance(n, torch.SymInt) for n in self.source.meta["val"].shape[-axes:])
        self.counts_some_pads = counts and rounds_up and (varies or any(beyond))
        self.window["count_include_pad"] = int(counts)


def _unless_plain(node: torch.fx.Node) -> str:
    averages = _Averages(node)
    if averages.divisor is not None:
        return "it has a divisor of its own"
    condition = unless_float if _is_forward(node) else unless_single
    return "it rounds sizes up" if averages.counts_some_pads else condition(node)


@rule(aten.avg_pool2d.default, aten.avg_pool3d.default, unless=_unless_plain)
def _average_pool(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    averages = _Averages(node)
    images = graph.reshape(graph.value(averages.source), _images(node, averages.source))
    return graph.reshape(graph.op("AveragePool", images, **averages.window), shape_of(node))


@rule(aten.avg_pool2d_backward.default, aten.avg_pool3d_backward.default, unless=_unless_plain)
def _average_pool_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    averages = _Averages(node)
    return _spread(graph, node, (arguments(node)[0], averages.source), **averages.window)


def _spread(graph: GraphBuilder, node: torch.fx.Node, inputs: Any, **attributes: Any) -> Any:
    upper, source = inputs
    upper = graph.reshape(graph.value(upper), _images(node, upper))
    result = graph.op("AveragePoolGrad", upper, **attributes)
    graph.declare(result, _images(node, source), type_of(node))
    return graph.reshape(result, shape_of(node))


def _sizes_of_axes(node: torch.fx.Node) -> list[tuple[int, int]]:
    """Of an adaptive pool or its gradient: the large size and the small one of each axis."""
    axes, first = _axes_of(node), arguments(node)[0]
    if not _is_forward(node):
        return list(zip(*(shape_of(each)[-axes:] for each in arguments(node)[1::-1]), strict=True))
    small = node.meta["val"]
    small = small[0] if isinstance(small, tuple) else small
    sizes = [size_hint(size) for size in small.shape[-axes:]]
    return list(zip(shape_of(first)[-axes:], sizes, strict=True))


def _even_windows(node: torch.fx.Node) -> dict[str, Any] | None:
    """The attributes of a pool whose windows have one size, if they do."""
    sizes = _sizes_of_axes(node)
    if any(large % small for large, small in sizes):
        return None
    kernel = [large // small for large, small in sizes]
    return _window(node, kernel, kernel, 0)


def _unless_even(node: torch.fx.Node) -> str:
    return unless_float(node) if _even_windows(node) else "its windows have different sizes"


@rule(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default, unless=_unless_even)
def _adaptive_max_pool(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _largest(graph, node, **_even_windows(node) or {})


def _by_shares(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    """An adaptive pool, or its gradient: a product with a matrix for each axis, which has the share
    of each element in each mean."""
    name = graph.value(arguments(node)[0])
    rank = len(shape_of(node))
    for back, (large, small) in enumerate(reversed(_sizes_of_axes(node))):
        shares = np.zeros((large, small))
        for i in range(small):
            window = slice(i * large // small, -(-(i + 1) * large // small))
            shares[window, i] = 1 / (window.stop - window.start)
        order = list(range(rank))
        order[-1], order[-1 - back] = order[-1 - back], order[-1]
        matrix = graph.constant(shares if _is_forward(node) else shares.T, type_of(node))
        name = graph.op("MatMul", graph.transpose(name, order), matrix)
        name = graph.transpose(name, order)
    return name


@rule(aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default, unless=unless_float)
def _adaptive_pool(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, windows = arguments(node)[0], _even_windows(node)
    if windows is None:
        return _by_shares(graph, node)
    name = graph.reshape(graph.value(source), _images(node, source))
    return graph.reshape(graph.op("AveragePool", name, **windows), shape_of(node))


@rule(
    aten._adaptive_avg_pool2d_backward.default,
    aten._adaptive_avg_pool3d_backward.default,
    unless=unless_single,
)
def _adaptive_pool_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source = arguments(node)[:2]
    windows = _even_windows(node)
    if windows is None:
        return _by_shares(graph, node)
    return _spread(graph, node, (upper, source), **windows)
