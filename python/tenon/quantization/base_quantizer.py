"""The parameters of all quantizers, and the queries that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from ._calibration_data import TensorData, TensorsData
from ._graph import Graph
from ._loading import get_opset_version, save_and_reload_model_with_shape_infer
from ._settings import Settings, checked
from ._types import ONNX_INT_TYPE_RANGE, tensor_type_of
from .onnx_model import ONNXModel
from .tensor_quant_overrides import TensorQuantOverridesHelper

Ranges = TensorsData | Mapping[str, TensorData]


def name_nodes(graph: onnx.GraphProto) -> dict[str, str]:
    """Gives each node a unique name, which distinguishes its values.

    Returns the old names by the new ones, where names were given more than once.
    """
    taken = {node.name for node in graph.node} | {""}
    seen, changed = {""}, {}
    for index, node in enumerate(graph.node):
        if node.name in seen:
            old, new = node.name, f"{node.name or node.op_type}_{index}"
            while new in taken:
                new += "_"
            taken.add(new)
            node.name = new
            if old:
                changed[new] = old
        seen.add(node.name)
    return changed


def _with(renamed: Mapping[str, str], names: Sequence[str] | None) -> set[str]:
    """Names, and the new names of nodes that had them."""
    chosen = set(names or ())
    return chosen | {new for new, old in renamed.items() if old in chosen}


class BaseQuantizer:
    """A model that is to be quantized by a derived class.

    weight_qType, activation_qType  a QuantType, or the number of an ONNX type
    tensors_range                   the results of calibration, by value
    nodes_to_quantize               names; none: all of the types
    extra_options                   see the guide
    """

    def __init__(
        self,
        model: ModelProto,
        per_channel: bool,
        reduce_range: bool,
        weight_qType: Any,  # noqa: N803 - the names that they have in onnxruntime
        activation_qType: Any,  # noqa: N803
        tensors_range: Ranges | None,
        nodes_to_quantize: Sequence[str] | None,
        nodes_to_exclude: Sequence[str] | None,
        op_types_to_quantize: Sequence[str] | None,
        extra_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.extra_options = checked(extra_options)
        self.settings = Settings(
            tensor_type_of(weight_qType),
            tensor_type_of(activation_qType),
            per_channel,
            reduce_range,
            tuple(op_types_to_quantize or ()),
            extra=self.extra_options,
        )
        self.model = ONNXModel(save_and_reload_model_with_shape_infer(model))
        renamed = name_nodes(self.model.graph())
        self.settings.nodes = _with(renamed, nodes_to_quantize)
        self.settings.excluded = _with(renamed, nodes_to_exclude)
        self.graph = Graph(self.model.graph())
        self.opset_version = get_opset_version(self.model.model)
        for name, data in (tensors_range or {}).items():
            if not isinstance(data, TensorData):
                got = type(data).__name__
                raise TypeError(f"tensors_range['{name}']: expected TensorData, got {got}")
        self.tensors_range = None if tensors_range is None else dict(tensors_range.items())
        self.tensor_quant_overrides = TensorQuantOverridesHelper(
            self.settings.option("TensorQuantOverrides")
        )
        is_valid, problem = self.tensor_quant_overrides.is_valid(
            self.graph.initializers, self.graph.values, self.settings.activation_type
        )
        if not is_valid:
            raise ValueError(problem)

    def quantize_model(self) -> ModelProto:
        """To be overridden: quantizes the model, and returns it."""
        raise NotImplementedError

    def should_quantize_node(self, node: onnx.NodeProto) -> bool:
        """Whether a node is to be quantized."""
        return self.settings.takes(node)

    def is_input_a_initializer(self, input_name: str) -> bool:
        """Whether a name is that of a constant."""
        return input_name in self.graph.initializers

    def is_per_channel(self) -> bool:
        """Whether weights have a scale for each channel."""
        return self.settings.per_channel

    def is_valid_quantize_weight(self, weight_name: str) -> bool:
        """Whether a name is that of a constant of floating-point numbers."""
        return self.graph.is_float_constant(weight_name)

    def is_weight_symmetric(self, weight_quant_type: int) -> bool:
        """Whether the zero point of weights is the middle of their type."""
        return self.settings.symmetric_weights(weight_quant_type)

    def adjust_tensor_ranges(self) -> None:
        """Narrows ranges to the numbers that matter.

        A value that only Relu or Clip reads gets the range of their result, because saturation then
        has the same effect. If that was always zero, it gets the range that it can have. Softmax
        has the range from 0 to 1.
        """
        ranges = self.tensors_range
        if ranges is None:
            return
        for node in self.graph.nodes:
            if not self.should_quantize_node(node) or not node.input:
                continue
            source, result = node.input[0], node.output[0]
            if node.op_type in ("Clip", "Relu") and result in ranges:
                ranges[result] = self._widened(node, ranges[result])
                if source in ranges and self.reads_alone(source):
                    ranges[source] = ranges[result]
            elif node.op_type == "Softmax" and not hasattr(ranges.get(result), "std"):
                kind = np.float16 if self.graph.kind(result) == onnx.TensorProto.FLOAT16 else None
                ends = np.array([0, 1], kind or np.float32)
                ranges[result] = TensorData(lowest=ends[0], highest=ends[1])

    def _widened(self, node: onnx.NodeProto, seen: TensorData) -> TensorData:
        """All that Relu or Clip may return, at most by steps of 1, if they returned only zeros."""
        limits = self._limits(node)
        is_known = hasattr(seen, "std") or np.any(seen.range_value)
        if is_known or limits is None or self.settings.symmetric_activations:
            return seen
        low, high = ONNX_INT_TYPE_RANGE[self.settings.activation_type]
        kind = seen.range_value[0].dtype
        most = min(float(high) - float(low), float(np.finfo(kind).max))
        ends = np.clip(limits, -most, most).astype(kind)
        return TensorData(lowest=ends[0], highest=ends[1])

    def reads_alone(self, name: str) -> bool:
        """Whether a value has one reader and is not an output of the model."""
        return (
            len(self.graph.readers.get(name, ())) == 1
            and name not in self.graph.inner_reads
            and name not in self.graph.outputs
        )

    def saturates(self, node: onnx.NodeProto, kind: int, real_range: tuple[float, float]) -> bool:
        """Whether integers with this range do the same as Relu or Clip, except for less than a
        step.
        """
        limits = self._limits(node)
        if limits is None:
            return False
        low, high = ONNX_INT_TYPE_RANGE[kind]
        width = real_range[1] - real_range[0]
        # Half a step, by which the zero point is rounded, and the rounding of a scale in float32.
        slack = width / (float(high) - float(low)) / 2 + width * 1e-6
        return real_range[0] >= limits[0] - slack and real_range[1] <= limits[1] + slack

    def _limits(self, node: onnx.NodeProto) -> list[float] | None:
        """The bounds of Relu or Clip; None if they are not known."""
        limits = [0.0 if node.op_type == "Relu" else -np.inf, np.inf]
        for attribute in node.attribute:  # before version 11
            if attribute.name in ("min", "max"):
                limits[attribute.name == "max"] = attribute.f
        for index, name in enumerate(node.input[1:3]):
            bound = self.graph.constant(name) if name else None
            if name and bound is None:
                return None
            if bound is not None:
                limits[index] = float(np.squeeze(bound))
        return limits
