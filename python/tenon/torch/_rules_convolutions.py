"""Convolutions and their gradients."""

from __future__ import annotations

from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import (
    arguments,
    rule,
    shape_of,
    unless_float,
    unless_single,
)

aten = torch.ops.aten


def _attributes(node: torch.fx.Node, first: int) -> dict[str, Any]:
    strides, padding, dilations = (list(each) for each in arguments(node)[first : first + 3])
    return {
        "strides": strides,
        "pads": padding * 2,
        "dilations": dilations,
        "group": arguments(node)[first + 5],
    }


def _unless_batched(node: torch.fx.Node) -> str:
    source = arguments(node)[0]
    is_batched = len(shape_of(source)) == len(arguments(node)[3]) + 2
    return unless_float(node) if is_batched else "its input has no batch"


@rule(aten.convolution.default, unless=_unless_batched)
def _convolution(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    inputs = [graph.value(each) for each in arguments(node)[:3] if each is not None]
    attributes = _attributes(node, 3)
    if not arguments(node)[6]:
        return graph.op("Conv", *inputs, **attributes)
    rest = list(arguments(node)[7])
    return graph.op("ConvTranspose", *inputs, output_padding=rest, **attributes)


def _ends(node: torch.fx.Node) -> list[int]:
    """The pads at the end of the convolution of which a transposed one is the gradient."""
    padding, rest = arguments(node)[5], arguments(node)[8]
    return [pad - min(pad, more) for pad, more in zip(padding, rest, strict=True)]


def _unless_matched(node: torch.fx.Node) -> str:
    strides, padding, _, is_transposed, rest = arguments(node)[4:9]
    # What the padding of the output has beyond the padding is less than a step of the convolution.
    sizes = zip(strides, padding, rest, strict=True)
    if is_transposed and any(more - pad >= stride for stride, pad, more in sizes):
        return "the padding of its output reaches its strides"
    return unless_single(node)


@rule(aten.convolution_backward.default, unless=_unless_matched)
def _convolution_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source, weight = (graph.value(each) for each in arguments(node)[:3])
    wanted: Any = arguments(node)[10]
    attributes = _attributes(node, 4)
    if not arguments(node)[7]:
        inputs = upper, source, weight
        return graph.contrib("ConvGrad", *inputs, outputs=list(wanted), **attributes)
    # The transposed convolution is the gradient of a convolution from `upper` to `source`.
    attributes["pads"] = [*arguments(node)[5], *_ends(node)]
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
