"""Matrix products, convolutions and pools."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ._graph import GraphBuilder
from ._lowering import rule, shape_of, type_of
from ._rules_elementwise import _unless_float

aten = torch.ops.aten


@rule(aten.mm.default, aten.bmm.default, unless=_unless_float)
def _multiply(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("MatMul", *(graph.value(each) for each in node.args))


@rule(aten.addmm.default, unless=_unless_float)
def _gemm(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    c, a, b = (graph.value(each) for each in node.args)
    scales = {"alpha": node.kwargs.get("alpha", 1), "beta": node.kwargs.get("beta", 1)}
    return graph.op("Gemm", a, b, c, **{k: float(v) for k, v in scales.items()})  # type: ignore[arg-type]


def _unless_plain(node: torch.fx.Node) -> str:
    return "it is a transposed convolution" if node.args[6] else _unless_float(node)


@rule(aten.convolution.default, unless=_unless_plain)
def _convolution(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, weight, bias, strides, padding, dilations, _, _, groups = node.args
    inputs = [graph.value(each) for each in (source, weight, bias) if each is not None]
    return graph.op(
        "Conv",
        *inputs,
        strides=strides,
        pads=[*padding, *padding],  # type: ignore[misc]
        dilations=dilations,
        group=groups,
    )


def _unless_one_group(node: torch.fx.Node) -> str:
    if node.args[7]:
        return "it is a transposed convolution"
    return "" if node.args[9] == 1 else "it has several groups"


@rule(aten.convolution_backward.default, unless=_unless_one_group)
def _convolution_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source, weight = node.args[:3]
    strides, padding, dilations = (list(each) for each in node.args[4:7])  # type: ignore[arg-type]
    wanted: Any = node.args[10]
    gradient, rank = graph.value(upper), len(strides)
    sizes, kernel = shape_of(source)[2:], shape_of(weight)[2:]
    swapped = [1, 0, *range(2, rank + 2)]
    results: list[Any] = [None, None, None]
    if wanted[0]:
        # What the strides left out at the end gets its gradient, zero or not, through the padding.
        rest = [
            (size + 2 * pad - dilation * (taps - 1) - 1) % stride
            for size, pad, dilation, taps, stride in zip(
                sizes, padding, dilations, kernel, strides, strict=True
            )
        ]
        results[0] = graph.op(
            "ConvTranspose",
            gradient,
            graph.value(weight),
            strides=strides,
            pads=[*padding, *padding],
            dilations=dilations,
            output_padding=rest,
        )
    if wanted[1]:
        product = graph.op(
            "Conv",
            graph.op("Transpose", graph.value(source), perm=swapped),
            graph.op("Transpose", gradient, perm=swapped),
            strides=dilations,
            pads=[*padding, *padding],
            dilations=strides,
        )
        cut = graph.op(
            "Slice",
            product,
            graph.constant([0] * rank),
            graph.constant(kernel),
            graph.constant(list(range(2, rank + 2))),
        )
        results[1] = graph.op("Transpose", cut, perm=swapped)
    if wanted[2]:
        axes = graph.constant([0, *range(2, rank + 2)])
        results[2] = graph.op("ReduceSum", gradient, axes, keepdims=0)
    return tuple(results)


def _pool_settings(node: torch.fx.Node, first: int) -> tuple[list[int], ...]:
    given = [*node.args[first:], *[None] * 5]
    kernel = _pair(given[0])
    strides = _pair(given[1]) if given[1] else kernel
    return kernel, strides, _pair(given[2] or 0), _pair(given[3] or 1)


def _pair(value: Any) -> list[int]:
    sizes = [value] if isinstance(value, int) else list(value)
    return sizes * 2 if len(sizes) == 1 else sizes


def _unless_batched(node: torch.fx.Node) -> str:
    if len(node.args) > 5 and node.args[5]:
        return "it rounds sizes up"
    return "" if len(shape_of(node.args[0])) == 4 else "its input has no batch"


@rule(aten.max_pool2d_with_indices.default, unless=_unless_batched)
def _max_pool(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    kernel, strides, padding, dilations = _pool_settings(node, 1)
    values, places = graph.op(
        "MaxPool",
        graph.value(node.args[0]),
        outputs=2,
        kernel_shape=kernel,
        strides=strides,
        pads=padding * 2,
        dilations=dilations,
    )
    # ONNX counts in the whole tensor, PyTorch in each plane.
    batch, channels, height, width = shape_of(node.args[0])
    starts = np.arange(batch * channels).reshape(batch, channels, 1, 1) * (height * width)
    return values, graph.op("Sub", places, graph.constant(starts))


@rule(aten.max_pool2d_with_indices_backward.default)
def _max_pool_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source, indices = node.args[0], node.args[1], node.args[-1]
    shape = shape_of(source)
    planes = [math.prod(shape[:-2])]
    zero = graph.constant(0, type_of(node))
    zeros = graph.op("Expand", zero, graph.constant([*planes, shape[-2] * shape[-1]]))
    flat = (graph.reshape(graph.value(each), [*planes, -1]) for each in (indices, upper))
    return graph.reshape(graph.op("ScatterElements", zeros, *flat, axis=1, reduction="add"), shape)
