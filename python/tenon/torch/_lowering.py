"""The rules that turn operators of PyTorch into operators of ONNX."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from ._decompositions import draws_random_numbers
from ._graph import TYPES, GraphBuilder, wide

Rule = Callable[[GraphBuilder, torch.fx.Node], Any]
Condition = Callable[[torch.fx.Node], str]

_rules: dict[Any, Rule] = {}
_conditions: dict[Any, Condition] = {}
_ignore_empty: set[Any] = set()


def rule(
    *overloads: Any, unless: Condition | None = None, ignores_empty: bool = False
) -> Callable[[Rule], Rule]:
    """Registers a function that lowers `overloads`, or operators of other packages by their names.

    unless         gives a reason not to lower a node, or ""
    ignores_empty  the function reads no input and defines no output that has no elements
    """

    def register(function: Rule) -> Rule:
        for overload in overloads:
            _rules[overload] = function
            if ignores_empty:
                _ignore_empty.add(overload)
            if unless is not None:
                _conditions[overload] = unless
        return function

    return register


def target_of(node: torch.fx.Node) -> Any:
    """The operator, one overload of it."""
    return node.target


def packet_of(node: torch.fx.Node) -> Any:
    """The operator, whatever the overload."""
    return target_of(node).overloadpacket


def arguments(node: torch.fx.Node) -> list[Any]:
    """The arguments by position: nodes, numbers, lists, None."""
    return list(node.args)


def keyword(node: torch.fx.Node, name: str, default: Any = None) -> Any:
    """An argument that has no position."""
    return node.kwargs.get(name, default)


def argument(node: torch.fx.Node, index: int, name: str, default: Any = None) -> Any:
    """An argument by position or by name."""
    return node.args[index] if index < len(node.args) else node.kwargs.get(name, default)


def shape_of(node: Any) -> list[int]:
    """The shape of a node's value. Of sizes that vary, those at the time of tracing."""
    return [size_hint(size) for size in node.meta["val"].shape]


def size_hint(size: Any) -> int:
    """A size as a number. Asking for it restricts no size that varies."""
    return int(size.node.hint) if isinstance(size, torch.SymInt) else size


def type_of(node: Any) -> torch.dtype:
    """The type in which a node's value is computed."""
    return wide(node.meta["val"].dtype)


def result_type(node: torch.fx.Node) -> torch.dtype:
    """The type in which a node's value, or the first of several, is computed."""
    value = node.meta["val"]
    if isinstance(value, tuple | list):
        value = next(each for each in value if each is not None)
    return wide(value.dtype)


def product(
    graph: GraphBuilder, node: torch.fx.Node, op_type: str, *names: str, **keywords: Any
) -> Any:
    """A product, of bfloat16 numbers if PyTorch multiplies those. No processor gains by float16."""
    value = node.meta["val"]
    values = value if isinstance(value, tuple | list) else [value]
    dtype = next(each.dtype for each in values if each is not None)
    if dtype != torch.bfloat16:
        return graph.op(op_type, *names, **keywords)
    rounded = [graph.cast(name, wide(dtype), dtype) if name else "" for name in names]
    results = graph.op(op_type, *rounded, **keywords)
    if isinstance(results, str):
        return graph.cast(results, dtype, wide(dtype))
    return tuple(name and graph.cast(name, dtype, wide(dtype)) for name in results)


def is_float(dtype: torch.dtype) -> bool:
    """Whether regions compute in the type, and it is floating."""
    return dtype in TYPES and dtype.is_floating_point


def unless_float(node: torch.fx.Node) -> str:
    """For rules whose result is floating."""
    dtype = result_type(node)
    return "" if is_float(dtype) else f"it computes in {dtype}"


def unless_single(node: torch.fx.Node) -> str:
    """For rules of operators that compute in single precision alone, as those of gradients do."""
    dtype = result_type(node)
    return "" if dtype == torch.float32 else f"it computes in {dtype}"


def unless_number(node: torch.fx.Node) -> str:
    """For rules whose result is no truth value."""
    return "it computes in torch.bool" if type_of(node) == torch.bool else ""


def why_not(node: torch.fx.Node) -> str:
    """Why the node stays in PyTorch; "" if Tenon computes it."""
    if node.target is operator.getitem:
        return why_not(arguments(node)[0])
    reason = _why_no_rule(node) or _why_no_values(node)
    condition = _conditions.get(_key(node))
    return condition(node) if condition and not reason else reason


def _why_no_rule(node: torch.fx.Node) -> str:
    if node.op != "call_function":
        return "it is no operator"
    if draws_random_numbers(node.target):
        return "it draws random numbers"
    return "" if _key(node) in _rules else "there is no rule for it"


def _key(node: torch.fx.Node) -> Any:
    """What its rule is registered for, if there is one."""
    return node.target if node.target in _rules else str(node.target)


def _why_no_values(node: torch.fx.Node) -> str:
    for value in [*_used_results(node), *(each.meta.get("val") for each in node.all_input_nodes)]:
        if reason := _why_no_value(value):
            return reason
        if is_empty(value) and _key(node) not in _ignore_empty:
            return "a tensor has no elements"
    return ""


def is_empty(value: Any) -> bool:
    """Whether the value is a tensor without elements."""
    return isinstance(value, torch.Tensor) and 0 in map(size_hint, value.shape)


def _used_results(node: torch.fx.Node) -> list[Any]:
    """The node's value. Of several values, those that something uses."""
    value = node.meta.get("val")
    if not isinstance(value, tuple | list):
        return [value]
    users = [user for user in node.users if user.target is operator.getitem]
    return [value[arguments(user)[1]] for user in users]


def _why_no_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, torch.Tensor):
        return _why_no_tensor(value)
    if isinstance(value, torch.SymInt):
        return "" if value.node.has_hint() else "a size depends on data"
    return "" if isinstance(value, int) else "a number varies"


def _why_no_tensor(value: torch.Tensor) -> str:
    if value.dtype not in TYPES:
        return f"a tensor is of type {value.dtype}"
    if value.device.type != "cpu":
        return f"a tensor is on the device {value.device}"
    if value.layout != torch.strided:
        return f"a tensor has the layout {value.layout}"
    if any(isinstance(size, torch.SymInt) and not size.node.has_hint() for size in value.shape):
        return "a size depends on data"
    return ""


def lower(graph: GraphBuilder, node: torch.fx.Node) -> None:
    """Adds what computes the node."""
    if node.target is operator.getitem:
        source, index = arguments(node)
        graph.define(node, graph.names_of(source)[index])
    else:
        graph.define(node, _rules[_key(node)](graph, node))
