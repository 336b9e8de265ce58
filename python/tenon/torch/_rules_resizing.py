"""Images in other sizes, where each element is a mean of several: products with two matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ._graph import GraphBuilder
from ._lowering import arguments, product, rule, shape_of, size_hint, type_of, unless_float

aten = torch.ops.aten

_FORWARD = {
    aten._upsample_bilinear2d_aa_backward.default: aten._upsample_bilinear2d_aa.default,
    aten._upsample_bicubic2d_aa_backward.default: aten._upsample_bicubic2d_aa.default,
}


def _weights(resize: Any, size: int, to: int, aligned: bool, scale: float | None) -> np.ndarray:
    """The matrix [to, size] of the resizing along one axis."""
    with unset_fake_temporarily():
        # Of two columns: PyTorch's function does not resize a single one.
        image = torch.eye(size, dtype=torch.float64).reshape(1, size, size, 1).repeat(1, 1, 1, 2)
        resized = resize(image, [to, 2], aligned, scale, None)
        weights: np.ndarray = resized[0, :, :, 0].T.numpy()
    return weights


def _matrices(
    node: torch.fx.Node, resize: Any, sizes: list[int], to: list[int], settings: list[Any]
) -> list[np.ndarray]:
    aligned, *scales = [*settings, None, None][:3]
    return [
        _weights(resize, size, target, aligned, scale)
        for size, target, scale in zip(sizes, to, scales, strict=True)
    ]


# Beyond that, PyTorch's sums of the few elements with a weight are faster.
_LARGEST_SIDE = 64


def _unless_large(node: torch.fx.Node) -> str:
    sides = [*shape_of(node)[2:], *shape_of(arguments(node)[0])[2:]]
    return "its image is large" if max(sides) > _LARGEST_SIDE else unless_float(node)


@rule(*_FORWARD.values(), unless=_unless_large)
def _resized(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, to, *settings = arguments(node)
    to = [size_hint(size) for size in to]
    rows, columns = _matrices(node, node.target, shape_of(source)[2:], to, settings)
    return _between(graph, node, source, rows, columns)


@rule(*_FORWARD, unless=_unless_large)
def _resized_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, to, sizes, *settings = arguments(node)
    to, sizes = ([size_hint(size) for size in each] for each in (to, sizes))
    rows, columns = _matrices(node, _FORWARD[node.target], sizes[2:], to, settings)
    return _between(graph, node, upper, rows.T, columns.T)


def _between(
    graph: GraphBuilder, node: torch.fx.Node, image: Any, rows: np.ndarray, columns: np.ndarray
) -> Any:
    left, right = (graph.constant(each, type_of(node)) for each in (rows, columns.T))
    # Smaller images first.
    if len(columns) < columns.shape[1]:
        name = product(graph, node, "MatMul", graph.value(image), right)
        return product(graph, node, "MatMul", left, name)
    name = product(graph, node, "MatMul", left, graph.value(image))
    return product(graph, node, "MatMul", name, right)
