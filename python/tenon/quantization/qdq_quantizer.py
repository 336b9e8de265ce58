"""Puts pairs of QuantizeLinear and DequantizeLinear around values and constants."""

from __future__ import annotations

import logging
from collections.abc import Collection
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
from ._qdq_marks import Bias, Mark, MarkingQuantizer
from ._qdq_rules import apply_rule
from ._scales import (
    Scale,
    add_scale,
    quantized_bias,
    scale_of_blocks,
    scale_of_constant,
    scale_wide_enough,
)
from ._tensors import quantize_onnx_initializer, tensor_of, tensor_proto_to_array


@dataclass
class Written:
    """Names of the scale and zero point of a tensor, and of those for some readers."""

    original: tuple[str, str]
    converted: tuple[str, str] | None = None
    readers: Collection[str] | None = None

    def of_reader(self, name: str) -> tuple[str, str]:
        """The names for this node."""
        is_converted = self.readers is None or name in self.readers
        return self.converted if self.converted is not None and is_converted else self.original


class QDQQuantizer(MarkingQuantizer):
    """Calls the rules, which mark what is to be quantized, and quantizes it."""

    def quantize_model(self) -> ModelProto:
        """Quantizes the model, and returns it."""
        self.initializer_quant_params: dict[str, Scale] = {}
        self._written: dict[str, Written] = {}
        self._added: list[NodeProto] = []
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
        # Kernels that take a weight by channels require one zero point for all of them.
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
            if mark.shared is not None and mark.shared[0] not in self.dequantized:
                waiting[name] = mark
            elif name in self.graph.initializers:
                self._quantize_constant(name)
            elif name not in self.dequantized:
                self._quantize_value(name)
        while waiting:
            ready = [name for name in waiting if self._written_of(waiting[name]) is not None]
            if not ready:
                name, mark = next(iter(waiting.items()))
                raise ValueError(f"'{name}' is to have the scale of {mark.shared}, which has none")
            for name in ready:
                self._quantize_alike(name, waiting.pop(name))

    def _written_of(self, mark: Mark) -> tuple[str, str] | None:
        """The names of a shared scale, if it exists already."""
        assert mark.shared is not None
        source, reader = mark.shared
        return self._written[source].of_reader(reader) if source in self._written else None

    def _quantize_constant(self, name: str) -> None:
        """Replaces a constant by integers, or puts a pair after it."""
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
                tensor,
                scale.kind,
                scale.zero_point,
                scale.scale,
                scale.axis,
                None,
                scale.block_size,
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
        """Puts a pair, or two, between a value and its readers."""
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
        """The input of the first node of a pair, and the output of the last one.

        An output of the model keeps its name, so its original producer writes another name.
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

        Each reader of the first has a DequantizeLinear that no QuantizeLinear shares, so that
        providers recognize which nodes belong together.
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
        """The scale for a node that reads a value or constant."""
        if name in self._written:
            return self.graph.constant(self._written[name].of_reader(reader)[0])
        present = self.dequantized.get(name)
        return None if present is None else self.graph.constant(present.input[1])

    def _quantize_bias(self, name: str, bias: Bias) -> None:
        """Gives the dequantized sums the bias' own name, so that its reader does not change."""
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
        value, weight = (self._constant_scale(one, bias.node) for one in (bias.value, bias.weight))
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
