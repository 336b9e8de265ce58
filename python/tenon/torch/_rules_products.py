"""Matrix products."""

from __future__ import annotations

from typing import Any

import torch

from ._graph import CONTRIB, GraphBuilder
from ._lowering import (
    arguments,
    keyword,
    product,
    rule,
    shape_of,
    type_of,
    unless_float,
)

aten = torch.ops.aten


@rule(aten.mm.default, aten.bmm.default, unless=unless_float)
def _multiply(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    names = [graph.value(each) for each in arguments(node)]
    sources = [graph.before_transposition(name) for name in names]
    if type_of(node) != torch.float32 or sources == [None, None]:
        return product(graph, node, "MatMul", *names)
    # As a fusion would write it, but at this place. Gradients of weights, which only leave the
    # graph, would else be the last nodes, and what they read would wait in memory.
    return product(
        graph,
        node,
        "FusedMatMul",
        *(source or name for source, name in zip(sources, names, strict=True)),
        domain=CONTRIB,
        transA=int(sources[0] is not None),
        transB=int(sources[1] is not None),
    )


def _scales(node: torch.fx.Node) -> tuple[float, float]:
    alpha, beta = (float(keyword(node, name, 1)) for name in ("alpha", "beta"))
    return alpha, beta


def _unless_exact(node: torch.fx.Node) -> str:
    # The attributes of Gemm are in single precision.
    is_exact = type_of(node) == torch.float32 or _scales(node) == (1, 1)
    return unless_float(node) if is_exact else "it scales in double precision"


@rule(aten.addmv.default, unless=unless_float)
def _matrix_by_vector(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    c, a, b = (graph.value(each) for each in arguments(node)[:3])
    alpha, beta = (graph.constant(scale, type_of(node)) for scale in _scales(node))
    result = graph.op("Mul", product(graph, node, "MatMul", a, b), alpha)
    return graph.op("Add", result, graph.op("Mul", c, beta))


@rule(aten.addmm.default, unless=_unless_exact)
def _gemm(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    c, a, b = (graph.value(each) for each in arguments(node))
    alpha, beta = _scales(node)
    return product(graph, node, "Gemm", a, b, c, alpha=alpha, beta=beta)


def _labels(node: torch.fx.Node) -> tuple[list[str], str]:
    """A letter for each axis of the factors and of the result, of a product that is summed."""
    *factors, first, second, third, summed = arguments(node)[:7]
    rank = len(shape_of(factors[0])) + len(first)
    letters = "abcdefghijklmnopqrstuvwxyz"[:rank]
    terms = [
        "".join(letter for axis, letter in enumerate(letters) if axis not in absent)
        for absent in (first, second, third)
    ]
    return terms, "".join(letter for axis, letter in enumerate(letters) if axis not in summed)


def _unless_equal(node: torch.fx.Node) -> str:
    sizes: dict[str, int] = {}
    for factor, term in zip(arguments(node), _labels(node)[0], strict=False):
        for size, letter in zip(shape_of(factor), term, strict=True):
            if sizes.setdefault(letter, size) != size:
                return "an axis is broadcast"
    is_whole = set(_labels(node)[1]) <= sizes.keys()
    return unless_float(node) if is_whole else "an axis has no size"


@rule(aten._trilinear.default, unless=_unless_equal)
def _product_of_three(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    terms, result = _labels(node)
    names = [graph.value(each) for each in arguments(node)[:3]]
    return graph.op("Einsum", *names, equation=f"{','.join(terms)}->{result}")
