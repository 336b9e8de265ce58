"""Operators that work element by element."""

from __future__ import annotations

from typing import Any

import torch

from ._graph import TYPES, GraphBuilder
from ._lowering import argument, rule, shape_of, type_of

aten = torch.ops.aten

_UNARY = {
    aten.abs: "Abs",
    aten.acos: "Acos",
    aten.asin: "Asin",
    aten.atan: "Atan",
    aten.ceil: "Ceil",
    aten.cos: "Cos",
    aten.cosh: "Cosh",
    aten.erf: "Erf",
    aten.exp: "Exp",
    aten.floor: "Floor",
    aten.log: "Log",
    aten.neg: "Neg",
    aten.reciprocal: "Reciprocal",
    aten.relu: "Relu",
    aten.sigmoid: "Sigmoid",
    aten.sign: "Sign",
    aten.sin: "Sin",
    aten.sinh: "Sinh",
    aten.sqrt: "Sqrt",
    aten.tan: "Tan",
    aten.tanh: "Tanh",
    aten.logical_not: "Not",
    aten.isnan: "IsNaN",
}
_BINARY = {
    aten.mul: "Mul",
    aten.div: "Div",
    aten.maximum: "Max",
    aten.minimum: "Min",
    aten.pow: "Pow",
}
_COMPARISONS = {
    aten.eq: "Equal",
    aten.lt: "Less",
    aten.le: "LessOrEqual",
    aten.gt: "Greater",
    aten.ge: "GreaterOrEqual",
}


def _is_float(dtype: torch.dtype) -> bool:
    return dtype in (torch.float32, torch.float64)


def _unless_float(node: torch.fx.Node) -> str:
    return "" if _is_float(type_of(node)) else f"it computes in {type_of(node)}"


def _unless_number(node: torch.fx.Node) -> str:
    return "it computes in torch.bool" if type_of(node) == torch.bool else ""


def _common_type(*arguments: Any) -> torch.dtype:
    """The type in which PyTorch computes with the arguments."""
    values = [
        torch.empty([1] * each.meta["val"].dim(), dtype=type_of(each))
        if isinstance(each, torch.fx.Node)
        else each
        for each in arguments
    ]
    dtype = torch.result_type(values[0], values[1])
    return dtype


def _register() -> None:
    for packet, op_type in _UNARY.items():
        special = packet in (aten.logical_not, aten.isnan)

        def unary(graph: GraphBuilder, node: torch.fx.Node, op_type: str = op_type) -> str:
            dtype = {"Not": torch.bool, "IsNaN": None}.get(op_type, type_of(node))
            name: str = graph.op(op_type, graph.value(node.args[0], dtype))
            return name

        rule(packet.default, unless=None if special else _unless_float)(unary)
    for packet, op_type in _BINARY.items():

        def binary(graph: GraphBuilder, node: torch.fx.Node, op_type: str = op_type) -> str:
            left, right = (graph.value(each, type_of(node)) for each in node.args[:2])
            name: str = graph.op(op_type, left, right)
            return name

        for overload in packet.overloads():
            if overload in ("Tensor", "Scalar", "default", "Tensor_Tensor", "Tensor_Scalar"):
                is_exact = packet in (aten.div, aten.pow)
                condition = _unless_float if is_exact else _unless_number
                rule(getattr(packet, overload), unless=condition)(binary)
    for packet, op_type in _COMPARISONS.items():

        def compare(graph: GraphBuilder, node: torch.fx.Node, op_type: str = op_type) -> str:
            return _compare(graph, node, op_type)

        rule(packet.Tensor, packet.Scalar, unless=_unless_comparable)(compare)


def _unless_comparable(node: torch.fx.Node) -> str:
    dtype = _common_type(*node.args[:2])
    return "it compares " + str(dtype) if dtype not in TYPES or dtype == torch.bool else ""


def _compare(graph: GraphBuilder, node: torch.fx.Node, op_type: str) -> str:
    dtype = _common_type(*node.args[:2])
    left, right = (graph.value(each, dtype) for each in node.args[:2])
    name: str = graph.op(op_type, left, right)
    return name


_register()


@rule(aten.ne.Tensor, aten.ne.Scalar, unless=_unless_comparable)
def _not_equal(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("Not", _compare(graph, node, "Equal"))


@rule(aten.add.Tensor, aten.add.Scalar, unless=_unless_number)
def _add(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _sum(graph, node, "Add")


@rule(aten.sub.Tensor, aten.sub.Scalar, unless=_unless_number)
def _subtract(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _sum(graph, node, "Sub")


def _sum(graph: GraphBuilder, node: torch.fx.Node, op_type: str) -> Any:
    dtype = type_of(node)
    left, right = (graph.value(each, dtype) for each in node.args[:2])
    alpha = argument(node, 2, "alpha", 1)
    if alpha != 1:
        right = graph.op("Mul", right, graph.constant(alpha, dtype))
    return graph.op(op_type, left, right)


@rule(aten.rsqrt.default, unless=_unless_float)
def _rsqrt(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("Reciprocal", graph.op("Sqrt", graph.value(node.args[0], type_of(node))))


@rule(aten.gelu.default, unless=_unless_float)
def _gelu(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    approximate = argument(node, 1, "approximate", "none")
    return graph.op("Gelu", graph.value(node.args[0]), approximate=approximate)


@rule(aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default, unless=_unless_number)
def _clamp(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    low, high = argument(node, 1, "min"), argument(node, 2, "max")
    if node.target is aten.clamp_max.default:
        low, high = None, argument(node, 1, "max")
    name = graph.value(node.args[0], type_of(node))
    if low is not None:
        name = graph.op("Max", name, graph.constant(low, type_of(node)))
    return name if high is None else graph.op("Min", name, graph.constant(high, type_of(node)))


@rule(aten.where.self)
def _where(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    condition = graph.value(node.args[0], torch.bool)
    return graph.op("Where", condition, *(graph.value(v, type_of(node)) for v in node.args[1:]))


def _unless_bool(node: torch.fx.Node) -> str:
    return "" if all(type_of(n) == torch.bool for n in node.all_input_nodes) else "it takes numbers"


@rule(aten.logical_and.default, aten.bitwise_and.Tensor, unless=_unless_bool)
def _and(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("And", *(graph.value(each, torch.bool) for each in node.args))


@rule(aten.logical_or.default, aten.bitwise_or.Tensor, unless=_unless_bool)
def _or(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("Or", *(graph.value(each, torch.bool) for each in node.args))


@rule(aten.bitwise_not.default, unless=_unless_bool)
def _not(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("Not", graph.value(node.args[0]))


@rule(
    aten._to_copy.default,
    aten.clone.default,
    aten.alias.default,
    aten.detach.default,
    torch.ops.prims.convert_element_type.default,
)
def _copy(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.value(node.args[0], type_of(node))


@rule(
    aten.full.default,
    aten.full_like.default,
    aten.scalar_tensor.default,
)
def _full(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    index = 0 if node.target is aten.scalar_tensor.default else 1
    value = graph.constant(node.args[index], type_of(node))
    return graph.op("Expand", value, graph.constant(shape_of(node)))
