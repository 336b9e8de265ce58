"""Activations and their gradients."""

from __future__ import annotations

from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import (
    argument,
    arguments,
    rule,
    target_of,
    type_of,
    unless_float,
    unless_number,
    unless_single,
)

aten = torch.ops.aten

_FORWARD = {
    aten.sigmoid.default: "Sigmoid",
    aten.tanh.default: "Tanh",
}


@rule(aten.relu.default, unless=unless_number)
def _relu(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("Relu", graph.value(arguments(node)[0]))


@rule(*_FORWARD, unless=unless_float)
def _activation(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op(_FORWARD[target_of(node)], graph.value(arguments(node)[0], type_of(node)))


def _unless_same_shape(node: torch.fx.Node) -> str:
    upper, other = (each.meta["val"].shape for each in arguments(node)[:2])
    same = len(upper) == len(other)
    return unless_single(node) if same else "its inputs are broadcast"


def _gradient(graph: GraphBuilder, node: torch.fx.Node, op_type: str, **attributes: Any) -> Any:
    upper, other = (graph.value(each, type_of(node)) for each in arguments(node)[:2])
    return graph.contrib(op_type, upper, other, **attributes)


@rule(aten.sigmoid_backward.default, unless=_unless_same_shape)
def _sigmoid_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _gradient(graph, node, "SigmoidGrad")


@rule(aten.tanh_backward.default, unless=_unless_same_shape)
def _tanh_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _gradient(graph, node, "TanhGrad")


@rule(aten.threshold_backward.default, unless=_unless_same_shape)
def _threshold_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source, threshold = arguments(node)
    if threshold == 0:
        return _gradient(graph, node, "ReluGrad")
    limit = graph.constant(threshold, type_of(source))
    is_low = graph.op("LessOrEqual", graph.value(source), limit)
    return graph.op("Where", is_low, graph.constant(0, type_of(node)), graph.value(upper))


@rule(aten.gelu.default, unless=unless_float)
def _gelu(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    approximate = argument(node, 1, "approximate", "none")
    return graph.op("Gelu", graph.value(arguments(node)[0]), approximate=approximate)


@rule(aten.gelu_backward.default, unless=_unless_same_shape)
def _gelu_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    is_exact = argument(node, 2, "approximate", "none") == "none"
    return _gradient(graph, node, "GeluGrad" if is_exact else "FastGeluGrad")


@rule(aten.silu.default, unless=unless_float)
def _silu(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    name = graph.value(arguments(node)[0])
    return graph.op("Mul", name, graph.op("Sigmoid", name))


@rule(aten.silu_backward.default, unless=_unless_same_shape)
def _silu_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _gradient(graph, node, "QuickGeluGrad", alpha=1.0)


# The attribute of the slope is in single precision.
@rule(aten.leaky_relu.default, unless=unless_single)
def _leaky_relu(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    slope = argument(node, 1, "negative_slope", 0.01)
    return graph.op("LeakyRelu", graph.value(arguments(node)[0]), alpha=float(slope))


def _unless_positive_slope(node: torch.fx.Node) -> str:
    # LeakyReluGrad asks for the sign of the result. That of the input is the same only then.
    return _unless_same_shape(node) if arguments(node)[2] > 0 else "its slope is not positive"


@rule(aten.leaky_relu_backward.default, unless=_unless_positive_slope)
def _leaky_relu_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _gradient(graph, node, "LeakyReluGrad", alpha=float(arguments(node)[2]))


@rule(aten._softmax.default, unless=unless_float)
def _softmax(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _along_axis(graph, node, "Softmax")


@rule(aten._log_softmax.default, unless=unless_float)
def _log_softmax(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _along_axis(graph, node, "LogSoftmax")


def _along_axis(graph: GraphBuilder, node: torch.fx.Node, op_type: str) -> Any:
    name = graph.value(arguments(node)[0], type_of(node))
    if node.meta["val"].dim() > 0:
        return graph.op(op_type, name, axis=arguments(node)[1])
    return graph.reshape(graph.op(op_type, graph.reshape(name, [1]), axis=0), [])


def _unless_axis(node: torch.fx.Node) -> str:
    return _unless_same_shape(node) if node.meta["val"].dim() > 0 else "it has no axes"


@rule(aten._softmax_backward_data.default, unless=_unless_axis)
def _softmax_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _gradient(graph, node, "SoftmaxGrad_13", axis=arguments(node)[2])


@rule(aten._log_softmax_backward_data.default, unless=_unless_axis)
def _log_softmax_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _gradient(graph, node, "LogSoftmaxGrad_13", axis=arguments(node)[2])


@rule(aten.native_dropout_backward.default, unless=_unless_same_shape)
def _dropout_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, mask, scale = arguments(node)
    dtype = type_of(node)
    product = graph.op("Mul", graph.value(upper, dtype), graph.constant(scale, dtype))
    return graph.op("Where", graph.value(mask), product, graph.constant(0, dtype))
