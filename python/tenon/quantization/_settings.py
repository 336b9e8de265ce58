"""What a quantization is to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from ._graph import Graph
from .quant_utils import QuantType, quantize_data, tensor_type_of


@dataclass
class Settings:
    """Types, which nodes, and the options that onnxruntime calls extra_options."""

    weight_type: QuantType
    activation_type: QuantType = QuantType.QUInt8
    per_channel: bool = False
    reduce_range: bool = False
    op_types: Sequence[str] = ()
    nodes: Sequence[str] = ()  # empty: all
    excluded: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def takes(self, node: onnx.NodeProto) -> bool:
        """Whether a node is to be quantized."""
        is_named = not self.nodes or node.name in self.nodes
        return node.op_type in self.op_types and is_named and node.name not in self.excluded

    @property
    def weight_tensor_type(self) -> int:
        """The number of the ONNX type of weights."""
        return tensor_type_of(self.weight_type)

    @property
    def activation_tensor_type(self) -> int:
        """The number of the ONNX type of values."""
        return tensor_type_of(self.activation_type)

    @property
    def symmetric_weights(self) -> bool:
        """Whether the zero point of weights is the middle of their type."""
        is_signed = self.weight_type in (QuantType.QInt8, QuantType.QInt16)
        return bool(self.extra.get("WeightSymmetric", is_signed))

    @property
    def symmetric_activations(self) -> bool:
        """The same for values."""
        return bool(self.extra.get("ActivationSymmetric", False))


@dataclass
class Quantized:
    """Names of a quantized value, its scale and its zero point."""

    name: str
    scale: str
    zero_point: str


def quantize_weight(
    graph: Graph, name: str, settings: Settings, axis: int | None = None
) -> Quantized:
    """Adds the quantized weight, once. With an axis, each index of it has its own scale."""
    result = Quantized(f"{name}_quantized", f"{name}_scale", f"{name}_zero_point")
    if result.name in graph.initializers:
        return result
    data = graph.constant(name)
    if data is None:
        raise ValueError(f"'{name}' is no constant")
    numbers, zero_point, scale = quantize_data(
        data,
        settings.weight_tensor_type,
        settings.symmetric_weights,
        settings.reduce_range,
        axis,
        settings.extra.get("MinimumRealRange"),
    )
    graph.add_constant(result.scale, scale)
    graph.add_constant(result.zero_point, zero_point)
    graph.add_constant(result.name, numbers)
    return result


def quantize_bias(graph: Graph, name: str, input_scale: np.ndarray, weight_scale: str) -> Quantized:
    """Adds a bias as 32-bit sums of products: its scale is that of a product."""
    result = Quantized(
        f"{name}_quantized", f"{name}_quantized_scale", f"{name}_quantized_zero_point"
    )
    if result.name in graph.initializers:
        return result
    bias, weights = graph.constant(name), graph.constant(weight_scale)
    if bias is None or weights is None:
        raise ValueError(f"bias '{name}' is no constant")
    scale = np.asarray(input_scale * weights, np.float32)
    wide = np.round(bias.astype(np.float64) / scale.astype(np.float64))
    limits = np.iinfo(np.int32)
    graph.add_constant(result.name, np.clip(wide, limits.min, limits.max).astype(np.int32))
    is_one = scale.ndim == 0 or scale.size == 1
    graph.add_constant(result.scale, scale.reshape(() if is_one else -1))
    graph.add_constant(result.zero_point, np.zeros(() if is_one else scale.size, np.int32))
    return result
