"""Matrix products."""

from __future__ import annotations

from typing import Any

import torch

from ._graph import CONTRIB, GraphBuilder
from ._lowering import (
    argument,
    arguments,
    keyword,
    product,
    rule,
    shape_of,
    type_of,
    unless_float,
    unless_single,
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


_LAST = [0, 2, 1]  # the axes of transposed matrices


def _rows_of_groups(
    graph: GraphBuilder, a: str, b: str, ends: str, is_transposed: bool = False
) -> str:
    """The rows of each group by the group's matrix, or by its transposed one."""
    if source := graph.before_transposition(b):
        b, is_transposed = source, not is_transposed
    result: str = graph.contrib("GroupedMatMul", a, b, ends, transB=int(is_transposed))
    return result


def _unless_products(node: torch.fx.Node) -> str:
    has_bias = argument(node, 3, "bias") is not None
    return "it adds a bias" if has_bias else unless_single(node)


@rule(aten._grouped_mm.default, unless=_unless_products)
def _groups(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    ranks = [len(shape_of(each)) for each in arguments(node)[:2]]
    a, b = (graph.value(each) for each in arguments(node)[:2])
    if ranks == [3, 3]:
        return graph.op("MatMul", a, b)
    ends = graph.value(argument(node, 2, "offs"))
    if ranks == [2, 2]:
        return graph.contrib("GroupedMatMul", graph.transpose(a, [1, 0]), b, ends)
    if ranks == [2, 3]:
        return _rows_of_groups(graph, a, b, ends)
    columns = _rows_of_groups(graph, graph.transpose(b, [1, 0]), a, ends, is_transposed=True)
    return graph.transpose(columns, [1, 0])


# Those of the package transformers, for models with experts.
@rule("transformers.grouped_mm_fallback.default", unless=unless_single)
def _experts(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    x, w, ends = (graph.value(each) for each in arguments(node))
    return _rows_of_groups(graph, x, w, ends)


@rule("transformers.grouped_mm_fallback_backward.default", unless=unless_single)
def _experts_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    x, w, ends, dy = (graph.value(each) for each in arguments(node))
    dx = _rows_of_groups(graph, dy, w, ends, is_transposed=True)
    if graph.before_transposition(w):
        return dx, graph.transpose(graph.contrib("GroupedMatMul", dy, x, ends), _LAST)
    return dx, graph.contrib("GroupedMatMul", x, dy, ends)
