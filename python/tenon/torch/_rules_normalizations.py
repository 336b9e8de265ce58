"""Normalizations and their gradients."""

from __future__ import annotations

import math
from typing import Any

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


# The statistics of LayerNormalization are in single precision.
@rule(aten.native_layer_norm.default, unless=unless_single)
def _layer_norm(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, normalized, weight, bias, epsilon = arguments(node)
    inputs = [graph.value(source), _scale(graph, weight, normalized, type_of(source))]
    if bias is not None:
        inputs.append(graph.value(bias))
    axis = -len(normalized)
    return graph.op("LayerNormalization", *inputs, outputs=3, axis=axis, epsilon=epsilon)


def _scale(graph: GraphBuilder, weight: Any, shape: Any, dtype: torch.dtype) -> str:
    if weight is not None:
        return graph.value(weight)
    return graph.expand(graph.constant(1, dtype), shape)


@rule(aten.native_layer_norm_backward.default, unless=unless_single)
def _layer_norm_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source, normalized, mean, rstd, weight, _, _ = arguments(node)
    return graph.contrib(
        "LayerNormalizationGrad",
        graph.value(upper),
        graph.value(source),
        _scale(graph, weight, normalized, type_of(source)),
        graph.value(mean),
        graph.value(rstd),
        outputs=3,
        axis=-len(normalized),
    )


@rule(aten.native_group_norm.default, unless=unless_single)
def _group_norm(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, weight, bias, batch, channels, size, groups, epsilon = arguments(node)
    dtype, shape = type_of(source), shape_of(source)
    length = channels * size // groups
    result, mean, rstd = graph.op(
        "LayerNormalization",
        graph.reshape(graph.value(source), [batch * groups, length]),
        _scale(graph, None, [length], dtype),
        outputs=3,
        epsilon=epsilon,
    )
    result = graph.reshape(result, shape)
    per_channel = [channels, *[1] * (len(shape) - 2)]
    if weight is not None:
        result = graph.op("Mul", result, graph.reshape(graph.value(weight), per_channel))
    if bias is not None:
        result = graph.op("Add", result, graph.reshape(graph.value(bias), per_channel))
    statistics = [batch, groups]
    return result, graph.reshape(mean, statistics), graph.reshape(rstd, statistics)


class _Channels:
    """What is computed for each channel of a tensor [N, C, ...]."""

    def __init__(self, graph: GraphBuilder, source: Any) -> None:
        self._graph = graph
        self.shape = shape_of(source)
        self.count = math.prod(self.shape) // self.shape[1]
        self._dtype = type_of(source)
        self._axes = [axis for axis in range(len(self.shape)) if axis != 1]

    def spread(self, name: str) -> str:
        """A tensor [C] that can be broadcast."""
        return self._graph.reshape(name, [self.shape[1], *[1] * (len(self.shape) - 2)])

    def total(self, name: str) -> Any:
        """Sums of a tensor [N, C, ...]."""
        return self._graph.op("ReduceSum", name, self._graph.constant(self._axes), keepdims=0)

    def mean(self, name: str) -> Any:
        """Means of a tensor [N, C, ...]."""
        return self._graph.op("ReduceMean", name, self._graph.constant(self._axes), keepdims=0)

    def mean_square(self, name: str) -> Any:
        """Means of the squares of a tensor [N, C, ...]."""
        axes = self._graph.constant(self._axes)
        return self.scaled(
            self._graph.op("ReduceSumSquare", name, axes, keepdims=0), 1 / self.count
        )

    def line(self, name: str, factor: str, mean: str) -> Any:
        """factor * (name - mean) for a tensor [N, C, ...], in one pass."""
        zeros, ones = self.parameter(None, 0), self.parameter(None, 1)
        return self._graph.op("BatchNormalization", name, factor, zeros, mean, ones, epsilon=0.0)

    def scaled(self, name: str, factor: float) -> Any:
        """A tensor times a number."""
        return self._graph.op("Mul", name, self._graph.constant(factor, self._dtype))

    def rstd(self, variance: str, epsilon: float) -> Any:
        """1 / sqrt(variance + epsilon)."""
        total = self._graph.op("Add", variance, self._graph.constant(epsilon, self._dtype))
        return self._graph.op("Reciprocal", self._graph.op("Sqrt", total))

    def parameter(self, argument: Any, default: float) -> str:
        """An argument [C] that may be None."""
        if argument is not None:
            return self._graph.value(argument)
        return self._graph.expand(self._graph.constant(default, self._dtype), [self.shape[1]])


@rule(aten._native_batch_norm_legit_no_training.default, unless=unless_float, ignores_empty=True)
def _batch_norm(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, weight, bias, mean, variance, _, epsilon = arguments(node)
    channels = _Channels(graph, source)
    result = graph.op(
        "BatchNormalization",
        graph.value(source),
        channels.parameter(weight, 1),
        channels.parameter(bias, 0),
        graph.value(mean),
        graph.value(variance),
        epsilon=epsilon,
    )
    return result, None, None


def _normalize(
    graph: GraphBuilder, channels: _Channels, arguments: Any, epsilon: Any
) -> tuple[str, str, str]:
    """Normalizes by the statistics of the tensor. Returns the result and the statistics."""
    source, weight, bias = arguments
    name = graph.value(source)
    mean = channels.mean(name)
    distance = graph.op("Sub", name, channels.spread(mean))
    variance = channels.mean_square(distance)
    result = graph.op(
        "BatchNormalization",
        name,
        channels.parameter(weight, 1),
        channels.parameter(bias, 0),
        mean,
        variance,
        epsilon=epsilon,
    )
    return result, mean, variance


@rule(aten._native_batch_norm_legit.no_stats, unless=unless_float)
def _instance_norm(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, weight, bias, _, _, epsilon = arguments(node)
    channels = _Channels(graph, source)
    result, mean, variance = _normalize(graph, channels, (source, weight, bias), epsilon)
    return result, mean, channels.rstd(variance, epsilon)


def _unless_training(node: torch.fx.Node) -> str:
    return unless_float(node) if arguments(node)[5] else "it has statistics of its own"


@rule(aten._native_batch_norm_legit_functional.default, unless=_unless_training)
def _batch_norm_in_training(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, weight, bias, running_mean, running_variance, _, momentum, epsilon = arguments(node)
    channels = _Channels(graph, source)
    result, mean, variance = _normalize(graph, channels, (source, weight, bias), epsilon)
    unbiased = channels.scaled(variance, channels.count / max(1, channels.count - 1))
    updated = []
    for running, new in [(running_mean, mean), (running_variance, unbiased)]:
        kept = channels.scaled(graph.value(running), 1 - momentum)
        updated.append(graph.op("Add", kept, channels.scaled(new, momentum)))
    return result, mean, channels.rstd(variance, epsilon), *updated


@rule(aten.native_batch_norm_backward.default, unless=unless_float, ignores_empty=True)
def _batch_norm_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source, weight, running_mean, running_variance, mean, rstd, trains, epsilon = arguments(
        node
    )[:9]
    channels = _Channels(graph, source)
    dy, x = graph.value(upper), graph.value(source)
    if trains and type_of(source) == torch.float32:
        scale = channels.parameter(weight, 1)
        statistics = [graph.value(mean), graph.value(rstd)]
        return graph.contrib("BatchNormalizationGrad", dy, x, scale, *statistics, outputs=3)
    if trains:
        mean_name, rstd_name = graph.value(mean), graph.value(rstd)
    else:
        mean_name = graph.value(running_mean)
        rstd_name = channels.rstd(graph.value(running_variance), epsilon)
    distance = graph.op("Sub", x, channels.spread(mean_name))
    d_bias = channels.total(dy)
    product = channels.total(graph.op("Mul", dy, distance))
    d_weight = graph.op("Mul", product, rstd_name)
    factor = graph.op("Mul", channels.parameter(weight, 1), rstd_name)
    if not trains:
        return graph.op("Mul", dy, channels.spread(factor)), d_weight, d_bias
    # dx = factor * (dy - mean(dy)) - factor * rstd^2 * mean(dy * (x - mean)) * (x - mean)
    slope = graph.op("Mul", graph.op("Mul", d_weight, rstd_name), factor)
    slope = channels.spread(channels.scaled(slope, 1 / channels.count))
    dx = channels.line(dy, factor, channels.scaled(d_bias, 1 / channels.count))
    return graph.op("Sub", dx, graph.op("Mul", distance, slope)), d_weight, d_bias


@rule(aten._weight_norm_interface_backward.default, unless=unless_float)
def _weight_norm_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    dw, v, g, norms = (graph.value(each) for each in arguments(node)[:4])
    rank, kept = len(shape_of(arguments(node)[1])), arguments(node)[4]
    axes = graph.constant([axis for axis in range(rank) if axis != kept % rank])
    along = graph.op("Div", graph.op("ReduceSum", graph.op("Mul", dw, v), axes), norms)
    # Along v the length is fixed: w = g v / norm.
    rest = graph.op("Sub", dw, graph.op("Mul", v, graph.op("Div", along, norms)))
    return graph.op("Mul", rest, graph.op("Div", g, norms)), along
