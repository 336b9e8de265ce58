"""Operators that work element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._graph import TYPES, GraphBuilder
from ._lowering import (
    argument,
    arguments,
    keyword,
    packet_of,
    rule,
    shape_of,
    size_hint,
    type_of,
    unless_float,
    unless_number,
)

aten = torch.ops.aten

_FLOATING = {
    aten.acos: "Acos",
    aten.acosh: "Acosh",
    aten.asin: "Asin",
    aten.asinh: "Asinh",
    aten.atan: "Atan",
    aten.atanh: "Atanh",
    aten.ceil: "Ceil",
    aten.cos: "Cos",
    aten.cosh: "Cosh",
    aten.erf: "Erf",
    aten.exp: "Exp",
    aten.floor: "Floor",
    aten.log: "Log",
    aten.reciprocal: "Reciprocal",
    aten.round: "Round",
    aten.sin: "Sin",
    aten.sinh: "Sinh",
    aten.sqrt: "Sqrt",
    aten.tan: "Tan",
}
_NUMERIC = {aten.abs: "Abs", aten.neg: "Neg"}
_TESTS = {aten.isnan: "IsNaN", aten.isinf: "IsInf"}
_BINARY = {aten.mul: "Mul", aten.maximum: "Max", aten.minimum: "Min"}
_COMPARISONS = {
    aten.eq: "Equal",
    aten.lt: "Less",
    aten.le: "LessOrEqual",
    aten.gt: "Greater",
    aten.ge: "GreaterOrEqual",
}


def common_type(*arguments: Any) -> torch.dtype:
    """The type in which PyTorch computes with two arguments."""
    first, second = (
        torch.empty([1] * each.meta["val"].dim(), dtype=type_of(each), device="meta")
        if isinstance(each, torch.fx.Node)
        else each
        for each in arguments
    )
    return torch.result_type(first, second)


def _numbers(node: torch.fx.Node) -> bool:
    """Whether all arguments that are no tensors are numbers."""
    return all(
        isinstance(each, torch.fx.Node | int | float | bool | None) for each in arguments(node)
    ) and all(isinstance(each.meta["val"], torch.Tensor) for each in node.all_input_nodes)


def _unless_float(node: torch.fx.Node) -> str:
    return unless_float(node) if _numbers(node) else "an argument is a size that varies"


def _unless_number(node: torch.fx.Node) -> str:
    return unless_number(node) if _numbers(node) else "an argument is a size that varies"


def _unless_comparable(node: torch.fx.Node) -> str:
    if not _numbers(node):
        return "an argument is a size that varies"
    dtype = common_type(*arguments(node)[:2])
    is_possible = dtype in TYPES and dtype != torch.bool
    return "" if is_possible else f"it compares {dtype}"


def _unary(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    packet = packet_of(node)
    op_type = (_FLOATING | _NUMERIC)[packet]
    return graph.op(op_type, graph.value(arguments(node)[0], type_of(node)))


rule(*(packet.default for packet in _FLOATING), unless=unless_float)(_unary)
rule(*(packet.default for packet in _NUMERIC), unless=unless_number)(_unary)


@rule(aten.sign.default, unless=unless_number)
def _sign(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    name, dtype = graph.value(arguments(node)[0]), type_of(node)
    if dtype.is_floating_point:
        # PyTorch's sign of NaN is 0.
        is_nan = graph.op("IsNaN", name)
        name = graph.op("Where", is_nan, graph.constant(0, dtype), name)
    return graph.op("Sign", name)


def _unless_tested(node: torch.fx.Node) -> str:
    dtype = type_of(arguments(node)[0])
    return "" if dtype.is_floating_point else f"it tests {dtype}"


@rule(*(packet.default for packet in _TESTS), unless=_unless_tested)
def _test(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    packet = packet_of(node)
    return graph.op(_TESTS[packet], graph.value(arguments(node)[0]))


def _both(graph: GraphBuilder, node: torch.fx.Node, dtype: torch.dtype) -> tuple[str, str]:
    return graph.value(arguments(node)[0], dtype), graph.value(arguments(node)[1], dtype)


def _unless_numbers(node: torch.fx.Node) -> str:
    return "" if _numbers(node) else "an argument is a size that varies"


@rule(
    aten.mul.Tensor, aten.mul.Scalar, aten.maximum.default, aten.minimum.default,
    unless=_unless_numbers,
)  # fmt: skip
def _binary(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    packet = packet_of(node)
    if type_of(node) == torch.bool:
        op_type = "Or" if packet is aten.maximum else "And"
        return graph.op(op_type, *_both(graph, node, torch.bool))
    return graph.op(_BINARY[packet], *_both(graph, node, type_of(node)))


@rule(aten.div.Tensor, aten.div.Scalar, unless=_unless_float)
def _divide(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("Div", *_both(graph, node, type_of(node)))


@rule(aten.div.Tensor_mode, unless=_unless_number)
def _divide_and_round(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    one, two = _both(graph, node, type_of(node))
    mode = keyword(node, "rounding_mode")
    if not type_of(node).is_floating_point:
        # Integers are cut towards 0.
        if mode == "floor":
            one = graph.op("Sub", one, graph.op("Mod", one, two))
        return graph.op("Div", one, two)
    quotient = graph.op("Div", one, two)
    if mode == "floor":
        return graph.op("Floor", quotient)
    return quotient if mode is None else _truncated(graph, quotient)


@rule(aten.trunc.default, unless=unless_float)
def _truncate(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return _truncated(graph, graph.value(arguments(node)[0]))


def _truncated(graph: GraphBuilder, name: str) -> Any:
    return graph.op("Mul", graph.op("Sign", name), graph.op("Floor", graph.op("Abs", name)))


@rule(aten.remainder.Tensor, aten.remainder.Scalar, unless=_unless_number)
def _remainder(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    one, two = _both(graph, node, type_of(node))
    if not type_of(node).is_floating_point:
        return graph.op("Mod", one, two)
    # Has the sign of the divisor, Mod that of the dividend.
    rest, zero = graph.op("Mod", one, two, fmod=1), graph.constant(0, type_of(node))
    differs = graph.op("Less", graph.op("Mul", graph.op("Sign", rest), two), zero)
    return graph.op("Where", differs, graph.op("Add", rest, two), rest)


@rule(aten.fmod.Tensor, aten.fmod.Scalar, unless=_unless_number)
def _fmod(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("Mod", *_both(graph, node, type_of(node)), fmod=1)


def _unless_powers(node: torch.fx.Node) -> str:
    if type_of(node).is_floating_point:
        return _unless_float(node)
    exponent = arguments(node)[1]
    # Others may be negative, which PyTorch rounds in its own way.
    is_square = isinstance(exponent, int) and exponent in (2, 3)
    return _unless_number(node) if is_square else f"it computes in {type_of(node)}"


@rule(aten.pow.Tensor_Tensor, aten.pow.Tensor_Scalar, aten.pow.Scalar, unless=_unless_powers)
def _power(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    base, exponent = arguments(node)[:2]
    if exponent in (2, 3):
        name = graph.value(base, type_of(node))
        square = graph.op("Mul", name, name)
        return square if exponent == 2 else graph.op("Mul", square, name)
    return graph.op("Pow", *_both(graph, node, type_of(node)))


def _compare(graph: GraphBuilder, node: torch.fx.Node, op_type: str) -> Any:
    return graph.op(op_type, *_both(graph, node, common_type(*arguments(node)[:2])))


@rule(
    *(packet.Tensor for packet in _COMPARISONS),
    *(packet.Scalar for packet in _COMPARISONS),
    unless=_unless_comparable,
)
def _comparison(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    packet = packet_of(node)
    return _compare(graph, node, _COMPARISONS[packet])


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
    left, right = _both(graph, node, type_of(node))
    alpha = argument(node, 2, "alpha", 1)
    if alpha != 1:
        right = graph.op("Mul", right, graph.constant(alpha, type_of(node)))
    return graph.op(op_type, left, right)


@rule(aten.rsqrt.default, unless=unless_float)
def _rsqrt(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op("Reciprocal", graph.op("Sqrt", graph.value(arguments(node)[0], type_of(node))))


@rule(aten.log2.default, aten.log10.default, unless=unless_float)
def _logarithm(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    base = 2 if node.target is aten.log2.default else 10
    name = graph.op("Log", graph.value(arguments(node)[0], type_of(node)))
    factor = 1 / torch.log(torch.tensor(base, dtype=torch.float64)).item()
    return graph.op("Mul", name, graph.constant(factor, type_of(node)))


@rule(aten.log1p.default, unless=unless_float)
def _log1p(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    # log(u) * x / (u - 1) with u = 1 + x loses nothing near 0, where u - 1 is not x.
    one = graph.constant(1, type_of(node))
    x = graph.value(arguments(node)[0], type_of(node))
    u = graph.op("Add", one, x)
    quotient = graph.op("Div", x, graph.op("Sub", u, one))
    is_exact = graph.op("Or", graph.op("Equal", u, one), graph.op("IsInf", u))
    product = graph.op("Mul", graph.op("Log", u), quotient)
    return graph.op("Where", is_exact, x, product)


@rule(aten.expm1.default, unless=unless_float)
def _expm1(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    # tanh(x / 2) * (exp(x) + 1) loses nothing near 0.
    x, one = graph.value(arguments(node)[0], type_of(node)), graph.constant(1, type_of(node))
    half = graph.op("Mul", x, graph.constant(0.5, type_of(node)))
    return graph.op("Mul", graph.op("Tanh", half), graph.op("Add", graph.op("Exp", x), one))


@rule(aten.clamp.default, unless=_unless_number)
def _clamp(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    low, high = _bounds(node)
    name = graph.value(arguments(node)[0], type_of(node))
    if low is not None:
        name = graph.op("Max", name, graph.constant(low, type_of(node)))
    return name if high is None else graph.op("Min", name, graph.constant(high, type_of(node)))


@rule(aten.clamp.Tensor, unless=unless_number)
def _clamp_by_tensors(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    name = graph.value(arguments(node)[0], type_of(node))
    for op_type, bound in zip(("Max", "Min"), _bounds(node), strict=True):
        if bound is not None:
            name = graph.op(op_type, name, graph.value(bound, type_of(node)))
    return name


def _bounds(node: torch.fx.Node) -> list[Any]:
    return [argument(node, 1, "min"), argument(node, 2, "max")]


@rule(aten.exp2.default, unless=unless_float)
def _exp2(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    two = graph.constant(2, type_of(node))
    return graph.op("Pow", two, graph.value(arguments(node)[0], type_of(node)))


@rule(aten.where.self)
def _where(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    condition = graph.value(arguments(node)[0], torch.bool)
    return graph.op(
        "Where", condition, *(graph.value(v, type_of(node)) for v in arguments(node)[1:])
    )


_LOGICAL = {aten.logical_and: "And", aten.logical_or: "Or", aten.logical_xor: "Xor"}
_BITWISE = {aten.bitwise_and: "And", aten.bitwise_or: "Or", aten.bitwise_xor: "Xor"}


def _unless_bool(node: torch.fx.Node) -> str:
    return "" if all(type_of(n) == torch.bool for n in node.all_input_nodes) else "it takes numbers"


@rule(*(packet.default for packet in _LOGICAL), unless=_unless_bool)
def _logical(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.op(_LOGICAL[packet_of(node)], *_both(graph, node, torch.bool))


@rule(
    *(packet.Tensor for packet in _BITWISE),
    *(packet.Scalar for packet in _BITWISE),
    unless=_unless_numbers,
)
def _bitwise(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    dtype, op_type = type_of(node), _BITWISE[packet_of(node)]
    names = _both(graph, node, dtype)
    return graph.op(op_type if dtype == torch.bool else f"Bitwise{op_type}", *names)


@rule(aten.bitwise_not.default)
def _not(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    op_type = "Not" if type_of(node) == torch.bool else "BitwiseNot"
    return graph.op(op_type, graph.value(arguments(node)[0]))


@rule(aten.logical_not.default)
def _logical_not(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    dtype = type_of(arguments(node)[0])
    if dtype == torch.bool:
        return _not(graph, node)
    return graph.op("Equal", graph.value(arguments(node)[0]), graph.constant(0, dtype))


@rule(
    aten._to_copy.default,
    aten.clone.default,
    aten.alias.default,
    aten.lift_fresh_copy.default,
)
def _copy(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.value(arguments(node)[0], type_of(node))


@rule(aten.copy.default)
def _copy_into(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.expand(graph.value(arguments(node)[1], type_of(node)), shape_of(node))


def _unless_constant(node: torch.fx.Node) -> str:
    index = 0 if node.target is aten.scalar_tensor.default else 1
    is_number = isinstance(arguments(node)[index], int | float | bool)
    return "" if is_number else "its value varies"


@rule(
    aten.full.default, aten.full_like.default, aten.scalar_tensor.default, unless=_unless_constant
)
def _full(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    index = 0 if node.target is aten.scalar_tensor.default else 1
    value = graph.constant(arguments(node)[index], type_of(node))
    return graph.expand(value, shape_of(node))


@rule(aten.arange.start_step)
def _arange(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    start, step = size_hint(arguments(node)[0]), argument(node, 2, "step", 1)
    (count,) = shape_of(node)
    return graph.constant([start + step * i for i in range(count)], type_of(node))


@rule(aten._efficientzerotensor.default)
def _zeros(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    return graph.expand(graph.constant(0, type_of(node)), shape_of(node))


@rule(aten.eye.default, aten.eye.m, unless=unless_number)
def _identity(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    dtype = type_of(node)
    zeros = graph.expand(graph.constant(0, dtype), shape_of(node))
    return graph.op("EyeLike", zeros)


@rule(aten.tril_indices.default, aten.triu_indices.default)
def _triangle(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    rows, columns = (size_hint(size) for size in arguments(node)[:2])
    offset = size_hint(argument(node, 2, "offset", 0))
    is_lower = node.target is aten.tril_indices.default
    places: Any = (np.tril_indices if is_lower else np.triu_indices)(rows, offset, columns)
    return graph.constant(places, type_of(node))
