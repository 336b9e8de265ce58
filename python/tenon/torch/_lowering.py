"""The rules that turn operators of PyTorch into operators of ONNX."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from ._graph import TYPES, GraphBuilder

Rule = Callable[[GraphBuilder, torch.fx.Node], Any]
Condition = Callable[[torch.fx.Node], str]

_rules: dict[Any, Rule] = {}
_conditions: dict[Any, Condition] = {}


def rule(*overloads: Any, unless: Condition | None = None) -> Callable[[Rule], Rule]:
    """Registers a function that lowers `overloads`, unless `unless` gives a reason not to."""

    def register(function: Rule) -> Rule:
        for overload in overloads:
            _rules[overload] = function
            if unless is not None:
                _conditions[overload] = unless
        return function

    return register


def argument(node: torch.fx.Node, index: int, name: str, default: Any = None) -> Any:
    """An argument by position or by name."""
    if index < len(node.args):
        return node.args[index]
    return node.kwargs.get(name, default)


def shape_of(node: Any) -> list[int]:
    """The shape of a node's value."""
    return [int(size) for size in node.meta["val"].shape]


def type_of(node: Any) -> torch.dtype:
    """The type of a node's value."""
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


def why_not(node: torch.fx.Node) -> str:
    """Why the node stays in PyTorch; "" if Tenon computes it."""
    if node.op != "call_function":
        return f"{node.op} is no operator"
    if node.target is operator.getitem:
        return why_not(node.args[0])  # type: ignore[arg-type]
    if node.target not in _rules:
        return "there is no rule for it"
    for each in [node, *node.all_input_nodes]:
        if reason := _why_no_value(each.meta.get("val")):
            return reason
    condition = _conditions.get(node.target)
    return condition(node) if condition else ""


def _why_no_value(value: Any) -> str:
    if isinstance(value, tuple | list):
        return next(filter(None, map(_why_no_value, value)), "")
    if value is None:
        return ""
    if not isinstance(value, torch.Tensor):
        return "it has sizes that vary"
    if value.dtype not in TYPES:
        return f"it computes in {value.dtype}"
    if value.device.type != "cpu":
        return f"it is on the device {value.device}"
    if any(isinstance(size, torch.SymInt) for size in value.shape):
        return "it has sizes that vary"
    return "a tensor has no elements" if value.numel() == 0 else ""


def lower(graph: GraphBuilder, node: torch.fx.Node) -> None:
    """Adds what computes the node."""
    if node.target is operator.getitem:
        source, index = node.args
        graph.define(node, graph.names_of(source)[index])  # type: ignore[arg-type]
    else:
        graph.define(node, _rules[node.target](graph, node))
