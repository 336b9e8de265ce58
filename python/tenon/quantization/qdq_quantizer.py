"""Values and constants that stand between pairs of QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from ._graph import add_opsets, sign
from ._names import (
    CONTRIB,
    DEQUANT_OP_NAME,
    QUANT_OP_NAME,
    TENSOR_NAME_QUANT_SUFFIX,
    add_dequant_output_suffix,
    add_dequant_suffix,
    add_quant_input_suffix,
    add_quant_output_suffix,
    add_quant_suffix,
)
from ._qdq_rules import apply_rule
from ._scales import (
    Scale,
    Scales,
    add_scale,
    checked_axis,
    quantized_bias,
    scale_of_blocks,
    scale_of_constant,
    scale_of_value,
    scale_wide_enough,
)
from ._tensors import quantize_onnx_initializer, tensor_of, tensor_proto_to_array
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
    """A constant that is to become sums of products."""

    node: str
    value: str
    weight: str
    factor: float


@dataclass
class Written:
    """Names of the scale and zero point of what is quantized, and of those that some read."""

    original: tuple[str, str]
    converted: tuple[str, str] | None = None
    readers: Collection[str] | None = None

    def of_reader(self, name: str) -> tuple[str, str]:
        """The names with which a node gets the value."""
        is_converted = self.readers is None or name in self.readers
        return self.converted if self.converted is not None and is_converted else self.original


class QDQQuantizer(BaseQuantizer):
    """Rules of operators mark what is to be quantized; then all of it is.

    The methods quantize_... are what rules call.
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
        self._written: dict[str, Written] = {}
        self._added: list[NodeProto] = []
        self._present = {  # what the model itself dequantizes
            name: node
            for name, node in self.graph.producers.items()
            if node.op_type == DEQUANT_OP_NAME
        }
        self.adjust_tensor_ranges()
        self.quantization_params = {
            name: self._scales_of(name) for name in self.tensors_range or {}
        }
        self.initializer_quant_params: dict[str, Scale] = {}

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

    # What rules ask and tell.

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
        """Marks a weight, or a value that is one."""
        if self._is_quantizable(tensor_name):
            self.tensors_to_quantize.setdefault(tensor_name, Mark(is_weight=True))

    def quantize_weight_tensor_per_channel(self, tensor_name: str, axis: int) -> None:
        """Marks a weight with a scale for each index of an axis."""
        if self.graph.is_float_constant(tensor_name):
            self.tensors_to_quantize[tensor_name] = Mark(is_weight=True, axis=axis)

    def quantize_bias_tensor(
        self, node_name: str, bias_name: str, input_name: str, weight_name: str, beta: float = 1.0
    ) -> bool:
        """Marks a bias, times beta. Returns whether it is one that will be quantized as such."""
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
        if bias_name in self.bias_to_quantize or not self.reads_alone(bias_name):
            # Its scale follows from the node, so each node has one of its own.
            name = self._copy_for(node_name, bias_name)
        self.bias_to_quantize[name] = Bias(node_name, input_name, weight_name, beta)
        return True

    def _copy_for(self, node_name: str, bias_name: str) -> str:
        count = 0
        while (name := f"{bias_name}{count}") in self.graph.initializers:
            count += 1
        copy = TensorProto()
        copy.CopyFrom(self.graph.initializers[bias_name])
        copy.name = name
        self.graph.add_constant(copy)
        self.graph.replace_readers(bias_name, name, {node_name})
        return name

    def fold_into_producer(self, node: NodeProto) -> bool:
        """Lets the producer of a node's input make its output, if saturation does the rest."""
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
            or source in self._present
            or not self.reads_alone(source)
            or scales.original.kind == TensorProto.FLOAT8E4M3FN
            or not self.saturates(node, scales.original.kind, scales.original.real_range())
        ):
            return False
        self.graph.remove(node)
        self.graph.rename_output(source, result)
        self.tensors_to_quantize.pop(source, None)
        return True

    # What is done with what was marked.

    def quantize_model(self) -> ModelProto:
        """Quantizes the model, and returns it."""
        for node in list(self.graph.nodes):
            if self.should_quantize_node(node):
                apply_rule(self, node)
                for name in dict.fromkeys(node.input):
                    self.tensor_to_its_receiving_nodes.setdefault(name, []).append(node)
        self._find_constants_scales()
        self._quantize_tensors()
        for name, bias in self.bias_to_quantize.items():
            self._quantize_bias(name, bias)
        keeps = bool(self.settings.option("AddQDQPairToWeight"))
        self.graph.finish([*self._added, *self.graph.nodes], keeps)
        if self.domain == CONTRIB:
            add_opsets(self.model.model, {CONTRIB: 1})
        return sign(self.model.model)

    def _find_constants_scales(self) -> None:
        for name, mark in self.tensors_to_quantize.items():
            tensor = self.graph.initializers.get(name)
            if tensor is not None:
                self.initializer_quant_params[name] = self._scale_of_constant(tensor, mark)
        if not self.settings.option("QDQDisableWeightAdjustForInt32Bias"):
            for name, bias in self.bias_to_quantize.items():
                self._widen_for(name, bias)

    def _scale_of_constant(self, tensor: TensorProto, mark: Mark) -> Scale:
        settings = self.settings
        kind = settings.weight_type if mark.is_weight else settings.activation_type
        overrides = self.tensor_quant_overrides.get(tensor.name) or [{}]
        quant_type = overrides[0].get("quant_type")
        kind = kind if quant_type is None else quant_type.tensor_type
        axis = overrides[0].get("axis", mark.axis)
        is_symmetric = (
            settings.symmetric_weights(kind) if mark.is_weight else settings.symmetric_activations
        )
        # Kernels that take a weight by channels want one zero point for all of them.
        is_symmetric = is_symmetric or axis is not None
        size = settings.option("BlockSize")
        if mark.is_weight and size > 0 and "scale" not in overrides[0]:
            is_symmetric = overrides[0].get("symmetric", is_symmetric)
            return scale_of_blocks(tensor, kind, is_symmetric, axis or 0, size)
        return scale_of_constant(
            settings, tensor, kind, is_symmetric, axis, settings.reduce_range, overrides
        )

    def _widen_for(self, name: str, bias: Bias) -> None:
        """Makes the scale of a weight large enough for its bias."""
        scale = self.initializer_quant_params.get(bias.weight)
        values = self.quantization_params.get(bias.value)
        if scale is None or values is None or bias.value not in self.tensors_to_quantize:
            return
        is_signed = scale.kind in (TensorProto.INT8, TensorProto.INT16)
        if not is_signed or scale.block_size or np.any(scale.zero_point):
            return
        numbers = tensor_proto_to_array(self.graph.initializers[name]) * bias.factor
        scale.scale = scale_wide_enough(values.of_reader(bias.node).scale, scale.scale, numbers)

    def _quantize_tensors(self) -> None:
        waiting: dict[str, Mark] = {}
        for name, mark in self.tensors_to_quantize.items():
            if mark.shared is not None and mark.shared[0] not in self._present:
                waiting[name] = mark
            elif name in self.graph.initializers:
                self._quantize_constant(name)
            elif name not in self._present:
                self._quantize_value(name)
        while waiting:
            ready = [name for name in waiting if self._written_of(waiting[name]) is not None]
            if not ready:
                name, mark = next(iter(waiting.items()))
                raise ValueError(f"'{name}' is to have the scale of {mark.shared}, which has none")
            for name in ready:
                self._quantize_alike(name, waiting.pop(name))

    def _written_of(self, mark: Mark) -> tuple[str, str] | None:
        """The names of a shared scale, once it is there."""
        assert mark.shared is not None
        source, reader = mark.shared
        return self._written[source].of_reader(reader) if source in self._written else None

    def _quantize_constant(self, name: str) -> None:
        """Replaces a constant by integers, or puts a pair behind it."""
        tensor, scale = self.graph.initializers[name], self.initializer_quant_params[name]
        names = add_scale(self.graph, name, scale)
        more: dict[str, Any] = {} if scale.axis is None else {"axis": scale.axis}
        if scale.block_size:
            more["block_size"] = scale.block_size
        result = add_dequant_output_suffix(name)
        self.graph.replace_readers(name, result)
        if self.settings.option("AddQDQPairToWeight"):
            quantized = add_quant_output_suffix(name)
            self._add(QUANT_OP_NAME, name, names, quantized, add_quant_suffix(name), **more)
        else:
            integers = quantize_onnx_initializer(
                tensor, scale.kind, scale.zero_point, scale.scale, scale.axis, None, scale.block_size
            )
            quantized = self.graph.add_constant(integers)
        self._add(DEQUANT_OP_NAME, quantized, names, result, add_dequant_suffix(name), **more)
        self._written[name] = Written(names)

    def _quantize_value(self, name: str) -> None:
        scales = self.quantization_params.get(name)
        if scales is None:
            raise ValueError(
                f"Quantization parameters are not specified for param {name}: calibration has not "
                "seen it. Were all types of operators calibrated that are to be quantized?"
            )
        original = add_scale(self.graph, name, scales.original)
        self._surround(name, original, self._converted(name))

    def _quantize_alike(self, name: str, mark: Mark) -> None:
        names = self._written_of(mark)
        assert names is not None
        self._surround(name, names, self._converted(name))

    def _converted(self, name: str) -> tuple[tuple[str, str], Collection[str] | None] | None:
        """The scale with which some nodes read a value, and their names."""
        scales = self.quantization_params.get(name)
        if scales is None or scales.converted is None:
            return None
        return add_scale(self.graph, name, scales.converted, "_convert"), scales.readers

    def _surround(
        self,
        name: str,
        names: tuple[str, str],
        converted: tuple[tuple[str, str], Collection[str] | None] | None,
    ) -> None:
        """Puts a pair, or two, between a value and those who read it."""
        readers = self.tensor_to_its_receiving_nodes.get(name, [])
        is_dedicated = self.settings.option("DedicatedQDQPair") and len(readers) > 1
        if converted is not None:
            if is_dedicated:
                raise ValueError(f"'{name}': DedicatedQDQPair does not go with 'convert'")
            self._convert(name, names, *converted)
        elif is_dedicated:
            for index, node in enumerate(readers):
                result = f"{add_dequant_output_suffix(name)}_{index + 1}"
                self.graph.replace_input(node, name, result)
                self._add_pair(name, name, names, result, f"_{index + 1}")
            self._written[name] = Written(names)
        else:
            source, result = self._ends(name)
            self.graph.replace_readers(name, result)
            self._add_pair(name, source, names, result)
            self._written[name] = Written(names)

    def _ends(self, name: str) -> tuple[str, str]:
        """What the first node of a pair reads, and what the last one makes.

        An output of the model keeps its name, so that what makes it gets another one.
        """
        if name not in self.graph.outputs or name not in self.graph.producers:
            return name, add_dequant_output_suffix(name)
        source = add_quant_input_suffix(name)
        self.graph.rename_output(name, source)
        return source, name

    def _convert(
        self,
        name: str,
        names: tuple[str, str],
        wanted: tuple[str, str],
        readers: Collection[str] | None,
    ) -> None:
        """Two pairs: the first has the type of the value, the second that of some readers.

        Each reader of the first has a DequantizeLinear that no QuantizeLinear shares, by which
        providers know what belongs together.
        """
        receivers = {node.name for node in self.tensor_to_its_receiving_nodes.get(name, ())}
        readers = receivers if readers is None else readers
        is_for_all = len(readers) == len(receivers)
        source, result = self._ends(name)
        other = add_dequant_output_suffix(f"{name}_convert")
        is_output = result == name
        if is_output and is_for_all:
            result, other = add_dequant_output_suffix(name), name
        if not is_output:
            self.graph.replace_readers(name, result, receivers - set(readers))
        if other != name:
            self.graph.replace_readers(name, other, readers)
        middle = add_quant_output_suffix(name)
        self._add(QUANT_OP_NAME, source, names, middle, add_quant_suffix(name))
        self._add(DEQUANT_OP_NAME, middle, names, result, add_dequant_suffix(name))
        between = result
        if not is_for_all:
            between = add_quant_input_suffix(f"{name}_convert")
            clone = add_dequant_suffix(f"{name}_convert_clone")
            self._add(DEQUANT_OP_NAME, middle, names, between, clone)
        self._add_pair(f"{name}_convert", between, wanted, other)
        self._written[name] = Written(names, wanted, readers)

    def _add_pair(
        self, name: str, source: str, names: tuple[str, str], result: str, suffix: str = ""
    ) -> None:
        middle = add_quant_output_suffix(name) + suffix
        self._add(QUANT_OP_NAME, source, names, middle, add_quant_suffix(name) + suffix)
        self._add(DEQUANT_OP_NAME, middle, names, result, add_dequant_suffix(name) + suffix)

    def _add(
        self,
        op_type: str,
        source: str,
        names: tuple[str, str],
        result: str,
        node_name: str,
        **attributes: Any,
    ) -> None:
        inputs = [source, *names]
        self._added.append(
            helper.make_node(
                op_type, inputs, [result], name=node_name, domain=self.domain, **attributes
            )
        )

    def _constant_scale(self, name: str, reader: str) -> np.ndarray | None:
        """The scale with which a node gets a value or constant."""
        if name in self._written:
            return self.graph.constant(self._written[name].of_reader(reader)[0])
        present = self._present.get(name)
        return None if present is None else self.graph.constant(present.input[1])

    def _quantize_bias(self, name: str, bias: Bias) -> None:
        """Puts sums of products under the bias' own name, so that its reader stays as it is."""
        tensor = self.graph.initializers[name]
        numbers = tensor_proto_to_array(tensor)
        quantized = name + TENSOR_NAME_QUANT_SUFFIX
        if self.settings.weight_type == TensorProto.FLOAT8E4M3FN:
            self._store(name, (numbers * bias.factor).astype(np.float32))
            self._added.append(
                helper.make_node(
                    "Cast", [quantized], [name], name=add_dequant_suffix(name), to=tensor.data_type
                )
            )
            return
        value, weight = (
            self._constant_scale(one, bias.node) for one in (bias.value, bias.weight)
        )
        if value is None or weight is None or weight.ndim > 1:
            logging.warning("bias '%s' stays: its node's inputs have no constant scales", name)
            if bias.factor != 1.0:
                scaled = (numbers * bias.factor).astype(numbers.dtype)
                self.graph.initializers[name] = tensor_of(scaled, name)
            return
        sums, scale, axis = quantized_bias(numbers, value, weight, bias.factor)
        self._store(name, sums)
        zero = np.zeros(scale.shape, np.int32)
        names = (
            self.graph.add_constant(tensor_of(scale, f"{quantized}_scale")),
            self.graph.add_constant(tensor_of(zero, f"{quantized}_zero_point")),
        )
        more = {} if axis is None else {"axis": axis}
        self._add(DEQUANT_OP_NAME, quantized, names, name, add_dequant_suffix(name), **more)

    def _store(self, name: str, numbers: np.ndarray) -> None:
        del self.graph.initializers[name]
        self.graph.add_constant(tensor_of(numbers, name + TENSOR_NAME_QUANT_SUFFIX))


