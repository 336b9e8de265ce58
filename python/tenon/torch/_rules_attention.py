"""Attention and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import argument, arguments, keyword, rule, shape_of, size_hint, unless_single

aten = torch.ops.aten

_SWAP = [0, 2, 1, 3]  # the heads and the rows


def _rows(graph: GraphBuilder, node: Any) -> str:
    """A tensor [batch, heads, length, size] as [batch, length, heads * size]."""
    batch, heads, length, size = shape_of(node)
    name = graph.transpose(graph.value(node), _SWAP)
    return graph.reshape(name, [batch, length, heads * size])


def _heads(graph: GraphBuilder, name: str, shape: Sequence[int]) -> str:
    """A tensor [batch, length, heads * size] as one of the shape [batch, heads, length, size]."""
    batch, heads, length, size = shape
    return graph.transpose(graph.reshape(name, [batch, length, heads, size]), _SWAP)


class _Attention:
    """What attention, or its gradient, gets."""

    def __init__(self, node: torch.fx.Node) -> None:
        given = arguments(node)
        is_forward = node.target is aten._scaled_dot_product_flash_attention_for_cpu.default
        # The gradient has dY first, and the results before the settings.
        self.tensors = given[0 if is_forward else 1 :][:3]
        settings = 3 if is_forward else 6
        query, key, _ = self.tensors
        self.keys = shape_of(key)[2]
        self.dropout = argument(node, settings, "dropout_p", 0.0)
        self.mask = keyword(node, "attn_mask")
        self.attributes: dict[str, Any] = {
            "q_num_heads": shape_of(query)[1],
            "kv_num_heads": shape_of(key)[1],
            "is_causal": int(argument(node, settings + 1, "is_causal", False)),
        }
        if (scale := keyword(node, "scale")) is not None:
            self.attributes["scale"] = float(scale)

    def inputs(self, graph: GraphBuilder) -> list[str]:
        """The tensors, and the mask if there is one."""
        names = [_rows(graph, each) for each in self.tensors]
        if self.mask is not None:
            shape = shape_of(self.mask)
            four_axes = [1] * (4 - len(shape)) + shape
            names.append(graph.reshape(graph.value(self.mask), four_axes))
        return names


def _unless_other(node: torch.fx.Node) -> str:
    attention = _Attention(node)
    if attention.dropout != 0:
        return "it draws random numbers"
    if attention.mask is not None and shape_of(attention.mask)[-1] != attention.keys:
        return "its mask is broadcast along the keys"
    return unless_single(node)


@rule(aten._scaled_dot_product_flash_attention_for_cpu.default, unless=_unless_other)
def _attention(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    attention = _Attention(node)
    y, log_sums = graph.contrib(
        "ScaledDotProductAttention", *attention.inputs(graph), outputs=2, **attention.attributes
    )
    return _heads(graph, y, [size_hint(size) for size in node.meta["val"][0].shape]), log_sums


@rule(aten._scaled_dot_product_flash_attention_for_cpu_backward.default, unless=_unless_other)
def _attention_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    attention = _Attention(node)
    inputs = [_rows(graph, arguments(node)[0]), *attention.inputs(graph)]
    gradients = graph.contrib(
        "ScaledDotProductAttentionGrad", *inputs, outputs=3, **attention.attributes
    )
    return tuple(
        _heads(graph, gradient, shape_of(each))
        for gradient, each in zip(gradients, attention.tensors, strict=True)
    )
