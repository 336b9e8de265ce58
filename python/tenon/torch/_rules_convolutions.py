"""Convolutions and their gradients."""

from __future__ import annotations

from typing import Any

import torch

from ._graph import CONTRIB, GraphBuilder
from ._lowering import (
    arguments,
    product,
    rule,
    shape_of,
    unless_float,
    unless_single,
)

aten = torch.ops.aten


class _Settings:
    """The settings of a convolution, or of one whose gradient a node computes."""

    def __init__(self, node: torch.fx.Node) -> None:
        given = arguments(node)
        is_forward = node.target is aten.convolution.default
        settings = given[3 if is_forward else 4 :]
        rank = len(shape_of(given[1 if is_forward else 2])) - 2
        # One number stands for all axes.
        self.strides, self.padding, self.dilations, self.output_padding = (
            list(settings[i]) * (rank if len(settings[i]) == 1 else 1) for i in (0, 1, 2, 4)
        )
        self.is_transposed, self._group = settings[3], settings[5]

    def attributes(self) -> dict[str, Any]:
        """The attributes of Conv, ConvTranspose and ConvGrad."""
        return {
            "strides": self.strides,
            "pads": self.padding * 2,
            "dilations": self.dilations,
            "group": self._group,
        }


def _unless_batched(node: torch.fx.Node) -> str:
    source, weight = (shape_of(each) for each in arguments(node)[:2])
    return unless_float(node) if len(source) == len(weight) else "its input has no batch"


@rule(aten.convolution.default, unless=_unless_batched)
def _convolution(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    inputs = [graph.value(each) for each in arguments(node)[:3] if each is not None]
    settings = _Settings(node)
    attributes = settings.attributes()
    if not settings.is_transposed:
        return product(graph, node, "Conv", *inputs, **attributes)
    return graph.op("ConvTranspose", *inputs, output_padding=settings.output_padding, **attributes)


def _unless_matched(node: torch.fx.Node) -> str:
    settings = _Settings(node)
    sizes = zip(settings.strides, settings.padding, settings.output_padding, strict=True)
    # What the padding of the output has beyond the padding is less than a step of the convolution.
    if settings.is_transposed and any(more - pad >= stride for stride, pad, more in sizes):
        return "the padding of its output reaches its strides"
    return unless_single(node)


@rule(aten.convolution_backward.default, unless=_unless_matched)
def _convolution_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source, weight = (graph.value(each) for each in arguments(node)[:3])
    wanted: Any = arguments(node)[10]
    settings = _Settings(node)
    attributes = settings.attributes()
    if not settings.is_transposed:
        inputs = upper, source, weight
        return product(
            graph, node, "ConvGrad", *inputs, domain=CONTRIB, outputs=list(wanted), **attributes
        )
    # The transposed convolution is the gradient of a convolution from `upper` to `source`.
    sizes = zip(settings.padding, settings.output_padding, strict=True)
    attributes["pads"] = settings.padding + [pad - min(pad, more) for pad, more in sizes]
    d_source = d_weight = d_bias = None
    if wanted[0]:
        d_source = graph.op("Conv", upper, weight, **attributes)
    if wanted[1]:
        inputs = source, upper, weight
        outputs = [False, True, False]
        d_weight = graph.contrib("ConvGrad", *inputs, outputs=outputs, **attributes)[1]
    if wanted[2]:
        axes = [axis for axis in range(len(shape_of(arguments(node)[0]))) if axis != 1]
        d_bias = graph.op("ReduceSum", upper, graph.constant(axes), keepdims=0)
    return d_source, d_weight, d_bias
