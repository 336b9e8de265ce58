"""Matrix products."""

from __future__ import annotations

from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import rule, unless_float

aten = torch.ops.aten


@rule(aten.mm.default, aten.bmm.default, unless=unless_float)
def _multiply(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("MatMul", *(graph.value(each) for each in node.args))


@rule(aten.addmm.default, unless=unless_float)
def _gemm(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    c, a, b = (graph.value(each) for each in node.args)
    alpha, beta = (float(node.kwargs.get(name, 1)) for name in ("alpha", "beta"))  # type: ignore[arg-type]
    return graph.op("Gemm", a, b, c, alpha=alpha, beta=beta)
