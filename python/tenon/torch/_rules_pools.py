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


def _unless_plain(node: torch.fx.Node) -> str:
    first = 1 if node.target is aten.avg_pool2d.default else 2
    rounds_up, _, divisor = [*arguments(node)[first + 3 :], *[None] * 3][:3]
    if divisor is not None:
        return "it has a divisor of its own"
    condition = unless_float if first == 1 else unless_single
    return "it rounds sizes up" if rounds_up else condition(node)


@rule(aten.avg_pool2d.default, unless=_unless_plain)
def _average_pool(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, kernel, strides, padding, _, counts_pads = [*arguments(node), *[None] * 5][:6]
    result = graph.op(
        "AveragePool",
        graph.reshape(graph.value(source), _images(source)),
        count_include_pad=int(counts_pads is not False),
        **_window(kernel, strides, padding),
    )
    return graph.reshape(result, shape_of(node))


@rule(aten.avg_pool2d_backward.default, unless=_unless_plain)
def _average_pool_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source, kernel, strides, padding, _, counts_pads = [*arguments(node), *[None] * 5][:7]
    return _spread(
        graph,
        node,
        (upper, source),
        count_include_pad=int(counts_pads is not False),
        **_window(kernel, strides, padding),
    )


def _spread(graph: GraphBuilder, node: torch.fx.Node, inputs: Any, **attributes: Any) -> Any:
    upper, source = inputs
    upper = graph.reshape(graph.value(upper), _images(upper))
    result = graph.op("AveragePoolGrad", upper, **attributes)
    graph.declare(result, _images(source), type_of(node))
    return graph.reshape(result, shape_of(node))


def _unless_divisible(node: torch.fx.Node) -> str:
    is_forward = node.target is aten._adaptive_avg_pool2d.default
    small = shape_of(node if is_forward else arguments(node)[0])[-2:]
    large = shape_of(arguments(node)[0] if is_forward else arguments(node)[1])[-2:]
    is_even = all(n % m == 0 for n, m in zip(large, small, strict=True))
    condition = unless_float if is_forward else unless_single
    return condition(node) if is_even else "its windows have several sizes"


def _even_windows(small: Any, large: Any) -> dict[str, Any]:
    sizes = zip(shape_of(large)[-2:], shape_of(small)[-2:], strict=True)
    kernel = [n // m for n, m in sizes]
    return _window(kernel, kernel, 0)


@rule(aten._adaptive_avg_pool2d.default, unless=_unless_divisible)
def _adaptive_pool(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source = arguments(node)[0]
    name = graph.reshape(graph.value(source), _images(source))
    return graph.reshape(
        graph.op("AveragePool", name, **_even_windows(node, source)), shape_of(node)
    )


@rule(aten._adaptive_avg_pool2d_backward.default, unless=_unless_divisible)
def _adaptive_pool_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source = arguments(node)[:2]
    return _spread(graph, node, (upper, source), **_even_windows(upper, source))
