"""The angle and the length of a vector in a plane.

They are made of arithmetic alone, which is one loop over the elements.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import arguments, rule, type_of, unless_float

aten = torch.ops.aten


class _Plane:
    """Arithmetic with the two numbers of a vector."""

    def __init__(self, graph: GraphBuilder, node: torch.fx.Node) -> None:
        self._graph = graph
        self._dtype = type_of(node)
        self.first, self.second = (graph.value(each, self._dtype) for each in arguments(node))
        # Infinities become the largest number, so that no quotient is NaN.
        limits = torch.finfo(self._dtype)
        first, second = (
            self.op("Min", self.op("Abs", each), limits.max) for each in (self.first, self.second)
        )
        high, low = self.op("Max", first, second), self.op("Min", first, second)
        # The smaller one divided by the greater one; 0 if both are.
        self.ratio = self.op("Div", low, self.op("Max", high, limits.tiny))
        # 1 where the first one is greater, else 0.
        self.is_steep = self.op("Relu", self.op("Sign", self.op("Sub", first, second)))

    def op(self, op_type: str, *values: Any) -> Any:
        """Adds an operator on values and numbers."""
        names = [
            each if isinstance(each, str) else self._graph.constant(each, self._dtype)
            for each in values
        ]
        return self._graph.op(op_type, *names)

    def sign(self, name: str) -> Any:
        """1 or -1, also of zeros and infinities."""
        return self.op("Sign", self.op("Add", name, self.op("Reciprocal", name)))

    def mirrored(self, angle: str, where: str, twice: float) -> Any:
        """Half of `twice`, minus what the angle differs from it, where `where` is 1 and not 0."""
        return self.op(
            "Add", angle, self.op("Mul", where, self.op("Sub", twice, self.op("Add", angle, angle)))
        )


@rule(aten.atan2.default, unless=unless_float)
def _angle(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    plane = _Plane(graph, node)
    angle = plane.mirrored(plane.op("Atan", plane.ratio), plane.is_steep, math.pi / 2)
    is_behind = plane.op("Relu", plane.op("Neg", plane.sign(plane.second)))
    angle = plane.mirrored(angle, is_behind, math.pi)
    return plane.op("Mul", plane.sign(plane.first), angle)


@rule(aten.hypot.default, unless=unless_float)
def _length(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    plane = _Plane(graph, node)
    square = plane.op("Add", plane.op("Mul", plane.ratio, plane.ratio), 1)
    high = plane.op("Max", plane.op("Abs", plane.first), plane.op("Abs", plane.second))
    return plane.op("Mul", high, plane.op("Sqrt", square))
