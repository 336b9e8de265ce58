"""Values quantized by ranges that are known ahead, in pairs of QuantizeLinear and its inverse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ._graph import Graph
from ._settings import Quantized, Settings, quantize_bias, quantize_weight
from .calibrate import TensorData
from .quant_utils import DTYPES, compute_scale_zp, get_qmin_qmax_for_qType

# They pass their first input on, and so does its scale.
PASSING = (
    "Flatten",
    "Gather",
    "MaxPool",
    "Pad",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)
WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")
CONTRIB_QDQ = {"com.microsoft": 1}
OTHERS = (
    "Add",
    "AveragePool",
    "Clip",
    "Concat",
    "GlobalAveragePool",
    "LeakyRelu",
    "Mul",
    "Relu",
    "Resize",
    "Sigmoid",
    "Softmax",
    "Where",
)
STATIC_OPS = (*WEIGHTED, *PASSING, *OTHERS)
# Index of the weight's axis for which each index may have a scale of its own.
CHANNEL_AXIS = {"Conv": 0, "ConvTranspose": 1, "MatMul": 1}


def channel_axis(node: onnx.NodeProto, rank: int) -> int | None:
    """The axis of a weight that counts output channels."""
    if node.op_type == "Gemm":
        is_transposed = any(one.name == "transB" and one.i for one in node.attribute)
        return 0 if is_transposed else 1
    axis = CHANNEL_AXIS.get(node.op_type)
    return axis if axis is not None and rank > axis else None


class StaticQuantizer:
    """What both formats of the result share."""

    softmax_reach = 1.0  # the largest number that Softmax gives

    @property
    def symmetric_constants(self) -> bool:
        """Whether constants that are no weights have their zero in the middle."""
        return self.settings.symmetric_activations

    def __init__(
        self, model: onnx.ModelProto, settings: Settings, ranges: Mapping[str, TensorData]
    ) -> None:
        self.graph = Graph(model)
        self.settings = settings
        self.ranges = ranges
        self.shared: dict[str, str] = {}  # value -> that whose scale it has
        self._share_scales()
        self._drop_activations()

    def _share_scales(self) -> None:
        """What passes values on has the scale of what it is given."""
        for node in self.graph.nodes:
            if node.op_type in PASSING and self.settings.takes(node):
                for output in node.output:
                    self.shared[output] = node.input[0]

    def _drop_activations(self) -> None:
        """Relu and Clip that saturation does: their node goes, its producer makes their output."""
        kept = []
        if self.settings.symmetric_activations:
            return
        for node in self.graph.nodes:
            source = self.graph.producers.get(node.input[0]) if node.input else None
            may_go = (
                node.op_type in ("Relu", "Clip")
                and self.settings.takes(node)
                and source is not None
                and self.settings.takes(source)
                and source.op_type in (*WEIGHTED, "Add", "Mul")
                and len(self.graph.readers[node.input[0]]) == 1
                and node.input[0] not in self.graph.outputs
                and self._saturates(node)
            )
            if not may_go:
                kept.append(node)
                continue
            assert source is not None
            source.output[0] = node.output[0]
        self.graph.nodes = kept
        self.graph.refresh()

    def _saturates(self, node: onnx.NodeProto) -> bool:
        """Whether the smallest and largest number stand for the bounds of Relu or Clip."""
        known = self.ranges.get(node.output[0])
        if known is None:
            return False
        if node.op_type == "Relu":
            return True
        bounds = [self.graph.constant(name) for name in node.input[1:]]
        low = bounds[0] if bounds else None
        return low is not None and float(low) == 0.0

    def parameters(self, name: str) -> tuple[np.ndarray, np.ndarray] | None:
        """Zero point and scale of a value; None if its range is not known."""
        name = self.origin(name)
        producer = self.graph.producers.get(name)
        symmetric = self.settings.symmetric_activations
        limits = get_qmin_qmax_for_qType(self.settings.activation_tensor_type, False, symmetric)
        if producer is not None and producer.op_type == "Softmax" and self.settings.takes(producer):
            low, high = np.zeros(()), np.asarray(self.softmax_reach)
        elif name in self.ranges:
            low, high = self.ranges[name].range_value
        else:
            return None
        least = self.settings.extra.get("MinimumRealRange")
        zero_point, scale = compute_scale_zp(low, high, *limits, symmetric, least)
        return zero_point.astype(DTYPES[self.settings.activation_tensor_type]), scale

    def origin(self, name: str) -> str:
        """The value whose scale a value has."""
        while name in self.shared and self._is_quantizable(self.shared[name]):
            name = self.shared[name]
        return name

    def _is_quantizable(self, name: str) -> bool:
        return name not in self.graph.initializers and self.graph.is_float(name)

    def parameter_names(self, name: str) -> tuple[str, str] | None:
        """Names of scale and zero point of a value, as constants."""
        found = self.parameters(name)
        if found is None:
            return None
        origin = self.origin(name)
        zero_point, scale = found
        return (
            self.graph.add_constant(f"{origin}_scale", scale),
            self.graph.add_constant(f"{origin}_zero_point", zero_point),
        )

    def weight(self, node: onnx.NodeProto, name: str) -> tuple[Quantized, int | None]:
        """A quantized weight, and the axis of its scales if there are several."""
        data = self.graph.constant(name)
        assert data is not None
        axis = channel_axis(node, data.ndim) if self.settings.per_channel else None
        return quantize_weight(self.graph, name, self.settings, axis), axis

    def constant_value(self, name: str) -> Quantized:
        """A constant that is no weight, with the type of values."""
        as_value = Settings(
            self.settings.activation_type,
            self.settings.activation_type,
            extra={"WeightSymmetric": self.symmetric_constants},
        )
        return quantize_weight(self.graph, name, as_value)

    def bias(self, node: onnx.NodeProto, weight: Quantized) -> Quantized | None:
        """The quantized bias of a weighted operator; None if it has none that can be."""
        if node.op_type == "MatMul" or len(node.input) < 3 or node.input[2] == "":
            return None
        found = self.parameters(node.input[0])
        if found is None or self.graph.constant(node.input[2]) is None:
            return None
        return quantize_bias(self.graph, node.input[2], found[1], weight.scale)


class QdqQuantizer(StaticQuantizer):
    """Puts pairs of QuantizeLinear and DequantizeLinear around values."""

    def __init__(
        self, model: onnx.ModelProto, settings: Settings, ranges: Mapping[str, TensorData]
    ) -> None:
        super().__init__(model, settings, ranges)
        self.added: list[onnx.NodeProto] = []
        self.wanted: dict[str, None] = {}  # values to be quantized
        self.constants: dict[str, str] = {}  # constant -> what stands for it

    def quantize(self) -> onnx.ModelProto:
        """The model, quantized."""
        replaced: dict[int, dict[int, str]] = {}
        for i, node in enumerate(self.graph.nodes):
            if self.settings.takes(node) and self._has_float(node):
                replaced[i] = self._visit(node)
        for i, inputs in replaced.items():
            for index, name in inputs.items():
                self.graph.nodes[i].input[index] = name
        self._surround()
        domain = CONTRIB_QDQ if self.settings.extra.get("UseQDQContribOps") else {}
        self.graph.finish([*self.added, *self.graph.nodes], domain)
        return self.graph.model

    def _has_float(self, node: onnx.NodeProto) -> bool:
        return len(node.output) > 0 and self.graph.is_float(node.output[0])

    def _visit(self, node: onnx.NodeProto) -> dict[int, str]:
        """Notes the node's values, and says which inputs are to be replaced by constants."""
        inputs: dict[int, str] = {}
        for index, name in enumerate(node.input):
            if not name or not self.graph.is_float(name) or not self._is_data(node, index):
                continue
            if name not in self.graph.initializers:
                self.wanted[name] = None
            elif node.op_type in WEIGHTED and index == 2:
                self._bias(node)
            elif node.op_type in WEIGHTED and index == 1:
                weight, axis = self.weight(node, name)
                inputs[index] = self._dequantize(name, weight, axis)
            elif node.op_type != "Clip":
                inputs[index] = self._dequantize(name, self.constant_value(name), None)
        for name in node.output:
            if name and self.graph.is_float(name):
                self.wanted[name] = None
        return inputs

    @staticmethod
    def _is_data(node: onnx.NodeProto, index: int) -> bool:
        """Not a setting, such as the bounds of Clip."""
        return index == 0 or node.op_type in (*WEIGHTED, "Add", "Mul", "Concat", "Where")

    def _bias(self, node: onnx.NodeProto) -> None:
        """The quantized bias, under the bias' own name: all who read it read that."""
        name = node.input[2]
        if name in self.constants:
            return
        weight, axis = self.weight(node, node.input[1])
        bias = self.bias(node, weight)
        if bias is None:
            return
        self.constants[name] = name
        del self.graph.initializers[name]
        self._add_dequantize(name, bias, name, 0 if axis is not None else None)

    def _dequantize(self, name: str, constant: Quantized, axis: int | None) -> str:
        if name not in self.constants:
            self.constants[name] = f"{name}_DequantizeLinear_Output"
            self._add_dequantize(name, constant, self.constants[name], axis)
        return self.constants[name]

    def _add_dequantize(self, name: str, one: Quantized, output: str, axis: int | None) -> None:
        more = {} if axis is None else {"axis": axis}
        inputs = [one.name, one.scale, one.zero_point]
        self._add("DequantizeLinear", inputs, output, f"{name}_DequantizeLinear", **more)

    def _add(self, op_type: str, inputs: list[str], output: str, name: str, **more: Any) -> None:
        domain = "com.microsoft" if self.settings.extra.get("UseQDQContribOps") else ""
        self.added.append(
            helper.make_node(op_type, inputs, [output], name=name, domain=domain, **more)
        )

    def _surround(self) -> None:
        """Puts the pairs between values and those who read them."""
        for name in self.wanted:
            names = self.parameter_names(name)
            if names is None:
                continue
            parameters = list(names)
            source = name
            if name in self.graph.outputs:
                # The output keeps its name; what makes it gets another one.
                source = f"{name}_QuantizeLinear_Input"
                producer = self.graph.producers[name]
                outputs = list(producer.output)
                producer.output[outputs.index(name)] = source
            middle = f"{name}_QuantizeLinear_Output"
            self._add("QuantizeLinear", [source, *parameters], middle, f"{name}_QuantizeLinear")
            is_output = name in self.graph.outputs
            final = name if is_output else f"{name}_DequantizeLinear_Output"
            self._add("DequantizeLinear", [middle, *parameters], final, f"{name}_DequantizeLinear")
            if is_output:
                continue
            for node in self.graph.nodes:
                for index, read in enumerate(node.input):
                    if read == name:
                        node.input[index] = final
