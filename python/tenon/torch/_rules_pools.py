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
    type_of,
    unless_float,
    unless_single,
)

aten = torch.ops.aten


def _pair(value: Any) -> list[int]:
    sizes = [value] if isinstance(value, int) else list(value)
    return sizes * 2 if len(sizes) == 1 else sizes


def _window(kernel: Any, strides: Any, padding: Any) -> dict[str, Any]:
    """The attributes that all pools have."""
    return {
        "kernel_shape": _pair(kernel),
        "strides": _pair(strides or kernel),
        "pads": _pair(padding or 0) * 2,
    }


def _images(source: Any) -> list[int]:
    """The shape, with a batch."""
    shape = shape_of(source)
    return [math.prod(shape[:-3]), *shape[-3:]]


def _plane_starts(graph: GraphBuilder, source: Any) -> str:
    """Where each plane begins: ONNX counts in the whole tensor, PyTorch in each plane."""
    batch, channels, height, width = _images(source)
    starts = np.arange(batch * channels).reshape(batch, channels, 1, 1) * (height * width)
    return graph.constant(starts)


@rule(aten.max_pool2d_with_indices.default, unless=unless_float)
def _max_pool(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, kernel, strides, padding, dilations, rounds_up = [*arguments(node), *[None] * 4][:6]
    values, places = graph.op(
        "MaxPool",
        graph.reshape(graph.value(source), _images(source)),
        outputs=2,
        dilations=_pair(dilations or 1),
        ceil_mode=int(bool(rounds_up)),
        **_window(kernel, strides, padding),
    )
    shape = list(node.meta["val"][0].shape)
    places = graph.op("Sub", places, _plane_starts(graph, source))
    return graph.reshape(values, shape), graph.reshape(places, shape)


@rule(aten.max_pool2d_with_indices_backward.default, unless=unless_single)
def _max_pool_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source, indices = arguments(node)[0], arguments(node)[1], arguments(node)[-1]
    places = graph.reshape(graph.value(indices), _images(indices))
    places = graph.op("Add", places, _plane_starts(graph, source))
    result = graph.op("MaxPoolGrad", graph.reshape(graph.value(upper), _images(upper)), places)
    graph.declare(result, _images(source), type_of(node))
    return graph.reshape(result, shape_of(node))


class _Averages:
    """The arguments of avg_pool2d and its gradient."""

    def __init__(self, node: torch.fx.Node) -> None:
        first = 0 if node.target is aten.avg_pool2d.default else 1
        given = [*arguments(node)[first:], *[None] * 5]
        self.source, kernel, strides, padding, rounds_up, counts, self.divisor = given[:7]
        self.window = _window(kernel, strides, padding)
        pads: list[int] = self.window["pads"]
        steps = zip(
            shape_of(self.source)[-2:],
            shape_of(node if first == 0 else arguments(node)[0])[-2:],
            self.window["kernel_shape"],
            self.window["strides"],
            pads[:2],
            strict=True,
        )
        # How far the last windows reach beyond the pads, where sizes are rounded up.
        beyond = [max(0, (m - 1) * step + size - n - 2 * pad) for n, m, size, step, pad in steps]
        self.window["pads"] = [*pads[:2], pads[0] + beyond[0], pads[1] + beyond[1]]
        counts = counts is not False and any(pads)
        varies = any(isinstance(n, torch.SymInt) for n in self.source.meta["val"].shape[-2:])
        self.counts_some_pads = counts and rounds_up and (varies or any(beyond))
        self.window["count_include_pad"] = int(counts)


def _unless_plain(node: torch.fx.Node) -> str:
    averages = _Averages(node)
    if averages.divisor is not None:
        return "it has a divisor of its own"
    condition = unless_float if node.target is aten.avg_pool2d.default else unless_single
    return "it rounds sizes up" if averages.counts_some_pads else condition(node)


@rule(aten.avg_pool2d.default, unless=_unless_plain)
def _average_pool(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    averages = _Averages(node)
    images = graph.reshape(graph.value(averages.source), _images(averages.source))
    return graph.reshape(graph.op("AveragePool", images, **averages.window), shape_of(node))


@rule(aten.avg_pool2d_backward.default, unless=_unless_plain)
def _average_pool_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    averages = _Averages(node)
    return _spread(graph, node, (arguments(node)[0], averages.source), **averages.window)


def _spread(graph: GraphBuilder, node: torch.fx.Node, inputs: Any, **attributes: Any) -> Any:
    upper, source = inputs
    upper = graph.reshape(graph.value(upper), _images(upper))
    result = graph.op("AveragePoolGrad", upper, **attributes)
    graph.declare(result, _images(source), type_of(node))
    return graph.reshape(result, shape_of(node))


def _is_even(small: Any, large: Any) -> bool:
    """Whether all windows have one size."""
    sizes = zip(shape_of(large)[-2:], shape_of(small)[-2:], strict=True)
    return all(n % m == 0 for n, m in sizes)


def _shares(small: Any, large: Any) -> list[np.ndarray[Any, Any]]:
    """The share of each row in each row of means, and that of columns: [large, small]."""
    both = []
    for n, m in zip(shape_of(large)[-2:], shape_of(small)[-2:], strict=True):
        shares = np.zeros((n, m))
        for i in range(m):
            window = slice(i * n // m, -(-(i + 1) * n // m))
            shares[window, i] = 1 / (window.stop - window.start)
        both.append(shares)
    return both


def _even_windows(small: Any, large: Any) -> dict[str, Any]:
    sizes = zip(shape_of(large)[-2:], shape_of(small)[-2:], strict=True)
    kernel = [n // m for n, m in sizes]
    return _window(kernel, kernel, 0)


@rule(aten._adaptive_avg_pool2d.default, unless=unless_float)
def _adaptive_pool(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source = arguments(node)[0]
    name = graph.reshape(graph.value(source), _images(source))
    if not _is_even(node, source):
        rows, columns = _shares(node, source)
        name = graph.op("MatMul", name, graph.constant(columns, type_of(node)))
        name = graph.op("MatMul", graph.constant(rows.T, type_of(node)), name)
        return graph.reshape(name, shape_of(node))
    return graph.reshape(
        graph.op("AveragePool", name, **_even_windows(node, source)), shape_of(node)
    )


@rule(aten._adaptive_avg_pool2d_backward.default, unless=unless_single)
def _adaptive_pool_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source = arguments(node)[:2]
    if not _is_even(upper, source):
        rows, columns = _shares(upper, source)
        name = graph.reshape(graph.value(upper), _images(upper))
        name = graph.op("MatMul", name, graph.constant(columns.T, type_of(node)))
        name = graph.op("MatMul", graph.constant(rows, type_of(node)), name)
        return graph.reshape(name, shape_of(node))
    return _spread(graph, node, (upper, source), **_even_windows(upper, source))
