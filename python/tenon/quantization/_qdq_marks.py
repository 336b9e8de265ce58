"""Which values and constants of a model are to be quantized, and how."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto

from ._names import CONTRIB, DEQUANT_OP_NAME
from ._scales import Scales, checked_axis, scale_of_value
from ._types import FOUR_BITS, SIXTEEN_BITS
from .base_quantizer import BaseQuantizer, Ranges

OPSET_OF_ALL_TYPES = 21  # whose QuantizeLinear has integers of 4 and 16 bits


@dataclass
class Mark:
    """A value or constant that is to be quantized."""

    is_weight: bool = False
    axis: int | None = None  # of a weight with a scale for each of its indices
    shared: tuple[str, str] | None = None  # the value whose scale it has, and the node between


@dataclass
class Bias:
    """A constant that is to become int32 sums of products."""

    node: str
    value: str
    weight: str
    factor: float


class MarkingQuantizer(BaseQuantizer):
    """The interface for rules of operators, with which they query and mark values."""

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
        super().__init__(
            model,
            per_channel,
            reduce_range,
            weight_qType,
            activation_qType,
            tensors_range,
            nodes_to_quantize,
            nodes_to_exclude,
            op_types_to_quantize,
            extra_options,
        )
        option = self.settings.option
        self.forces = bool(option("ForceQuantizeNoInputCheck"))
        self.domain = CONTRIB if option("UseQDQContribOps") or self._needs_contrib() else ""
        if option("EnableSubgraph"):
            logging.warning("EnableSubgraph: only dynamic quantization enters inner graphs")
        self.tensors_to_quantize: dict[str, Mark] = {}
        self.bias_to_quantize: dict[str, Bias] = {}
        self.tensor_to_its_receiving_nodes: dict[str, list[NodeProto]] = {}
        self.dequantized = {  # values that the model itself has quantized
            name: node
            for name, node in self.graph.producers.items()
            if node.op_type == DEQUANT_OP_NAME
        }
        self.adjust_tensor_ranges()
        self.quantization_params = {
            name: self._scales_of(name) for name in self.tensors_range or {}
        }

    def _needs_contrib(self) -> bool:
        kinds = {one.tensor_type for one in self.tensor_quant_overrides.get_quant_types()}
        kinds |= {self.settings.activation_type, self.settings.weight_type}
        return self.opset_version < OPSET_OF_ALL_TYPES and bool(kinds & (SIXTEEN_BITS | FOUR_BITS))

    def _scales_of(self, name: str) -> Scales:
        assert self.tensors_range is not None
        data = self.tensors_range[name]
        override = self.tensor_quant_overrides.get_per_tensor_overrides(name) or {}
        original = scale_of_value(self.settings, data, override)
        if "convert" not in override:
            return Scales(original)
        convert = override["convert"]
        return Scales(
            original, scale_of_value(self.settings, data, convert), convert.get("recv_nodes")
        )

    def outputs_of(self, node: NodeProto) -> list[str]:
        """The outputs of a node that may be quantized."""
        left_out = self.settings.option("OpTypesToExcludeOutputQuantization")
        return [] if node.op_type in left_out else [name for name in node.output if name]

    def is_tensor_quantized(self, tensor_name: str) -> bool:
        """Whether a value or constant is marked."""
        return tensor_name in self.tensors_to_quantize or tensor_name in self.bias_to_quantize

    def is_tensor_per_channel(
        self, tensor_name: str, default_axis: int, op_type: str | None = None
    ) -> tuple[bool, int | None]:
        """Whether a constant gets scales along an axis, and that axis."""
        tensor = self.graph.initializers.get(tensor_name)
        overrides = self.tensor_quant_overrides
        if tensor is None or overrides.has_per_tensor_overrides(tensor_name):
            return False, None
        axes = self.settings.option("QDQOpTypePerChannelSupportToAxis")
        axis = int(axes.get(op_type, default_axis))
        if overrides.has_per_channel_overrides(tensor_name):
            axis = overrides[tensor_name][0]["axis"]
        elif not self.settings.per_channel:
            return False, None
        try:
            return True, checked_axis(tensor, axis)
        except ValueError as error:
            logging.warning("%s: it gets one scale", error)
            return False, None

    def _is_quantizable(self, name: str) -> bool:
        if name and self.graph.kind(name) is None:
            logging.warning("the type of '%s' is not known: it is not quantized", name)
        return self.graph.is_float(name)

    def quantize_activation_tensor(self, tensor_name: str) -> None:
        """Marks a value, or a constant that is to have the type of values."""
        if self._is_quantizable(tensor_name):
            self.tensors_to_quantize.setdefault(tensor_name, Mark())

    def quantize_output_same_as_input(
        self, output_name: str, input_name: str, node_name: str
    ) -> None:
        """Marks a value that has the scale of another."""
        if self._is_quantizable(output_name):
            self.tensors_to_quantize[output_name] = Mark(shared=(input_name, node_name))

    def quantize_weight_tensor(self, tensor_name: str) -> None:
        """Marks a weight, or a value in the place of one."""
        if self._is_quantizable(tensor_name):
            self.tensors_to_quantize.setdefault(tensor_name, Mark(is_weight=True))

    def quantize_weight_tensor_per_channel(self, tensor_name: str, axis: int) -> None:
        """Marks a weight with a scale for each index of an axis."""
        if self.graph.is_float_constant(tensor_name):
            self.tensors_to_quantize[tensor_name] = Mark(is_weight=True, axis=axis)

    def quantize_bias_tensor(
        self, node_name: str, bias_name: str, input_name: str, weight_name: str, beta: float = 1.0
    ) -> bool:
        """Marks a bias, times beta. Returns whether it will be quantized as a bias."""
        if not self.settings.option("QuantizeBias"):
            return False
        if self.tensor_quant_overrides.get(bias_name):
            is_per_channel, axis = self.is_tensor_per_channel(bias_name, 0)
            if is_per_channel and axis is not None:
                self.quantize_weight_tensor_per_channel(bias_name, axis)
            else:
                self.quantize_weight_tensor(bias_name)
            return False
        if not self.graph.is_float_constant(bias_name):
            logging.warning("bias '%s' is no floating-point constant, and stays", bias_name)
            return False
        name = bias_name
        is_scaled = beta != 1.0 and not self.reads_alone(bias_name)
        if bias_name in self.bias_to_quantize or is_scaled:
            # Its scale follows from the node, so each node has its own bias.
            name = self._copy_for(node_name, bias_name)
        self.bias_to_quantize[name] = Bias(node_name, input_name, weight_name, beta)
        return True

    def _copy_for(self, node_name: str, bias_name: str) -> str:
        taken = (self.graph.initializers, self.graph.producers, self.graph.values)
        count = 0
        while any((name := f"{bias_name}{count}") in names for names in taken):
            count += 1
        copy = TensorProto()
        copy.CopyFrom(self.graph.initializers[bias_name])
        copy.name = name
        self.graph.add_constant(copy)
        self.graph.replace_readers(bias_name, name, {node_name})
        return name

    def fold_into_producer(self, node: NodeProto) -> bool:
        """Lets the producer of a node's input write its output, if saturation does the same."""
        source, result = node.input[0], node.output[0]
        scales = self.quantization_params.get(result)
        if (
            self.settings.symmetric_activations
            or self.settings.option("QDQKeepRemovableActivations")
            or scales is None
            or scales.converted is not None
            or source not in self.quantization_params
            or self.quantization_params[source].converted is not None
            or source not in self.graph.producers
            or source in self.dequantized
            or not self.reads_alone(source)
            or scales.original.kind == TensorProto.FLOAT8E4M3FN
            or not self.saturates(node, scales.original.kind, scales.original.real_range())
        ):
            return False
        self.graph.remove(node)
        self.graph.rename_output(source, result)
        self.tensors_to_quantize.pop(source, None)
        return True
