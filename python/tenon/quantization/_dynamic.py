"""Weights quantized ahead, values in each run: products of integers."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from ._graph import Graph, replace_gemm
from ._settings import Quantized, Settings, quantize_weight

DYNAMIC_OPS = ("Conv", "MatMul", "Gather")


class DynamicQuantizer:
    """Rewrites one model."""

    def __init__(self, model: onnx.ModelProto, settings: Settings) -> None:
        self.graph = Graph(model)
        self.settings = settings
        self.result: list[onnx.NodeProto] = []
        self.values: dict[str, Quantized] = {}  # quantized in the run, by name

    def quantize(self) -> onnx.ModelProto:
        """The model, quantized."""
        replace_gemm(self.graph)
        rewrites = {"MatMul": self._product, "Conv": self._convolution, "Gather": self._gather}
        for node in self.graph.nodes:
            rewrite = rewrites.get(node.op_type)
            if rewrite is None or not self.settings.takes(node) or not rewrite(node):
                self.result.append(node)
        self.graph.finish(self.result, {})
        return self.graph.model

    def _add(self, op_type: str, inputs: list[str], outputs: list[str], name: str, **more) -> str:
        self.result.append(helper.make_node(op_type, inputs, outputs, name=name, **more))
        return outputs[0]

    def _value(self, name: str) -> Quantized:
        """The value, quantized by its range in the run."""
        if name not in self.values:
            names = (f"{name}_quantized", f"{name}_scale", f"{name}_zero_point")
            self.values[name] = Quantized(*names)
            self._add("DynamicQuantizeLinear", [name], list(names), f"{name}_QuantizeLinear")
        return self.values[name]

    def _integer_op(self, node: onnx.NodeProto, op_type: str, weight: Quantized, out: str) -> None:
        """The product of integers, and what makes numbers of it again."""
        value = self._value(node.input[0])
        # Node names make those of the new values unique; unnamed nodes have outputs of their own.
        base = f"{node.name or node.output[0]}_quant"
        scale = self._add(
            "Mul", [value.scale, weight.scale], [f"{base}_scales_mul:0"], f"{base}_scales_mul"
        )
        raw = f"{node.output[0]}_output_quantized"
        inputs = [value.name, weight.name, value.zero_point, weight.zero_point]
        integer = helper.make_node(op_type, inputs, [raw], name=base)
        integer.attribute.extend(node.attribute)
        self.result.append(integer)
        cast = self._add("Cast", [raw], [f"{raw}_cast_output"], f"{raw}_cast", to=TensorProto.FLOAT)
        self._add("Mul", [cast, scale], [out], f"{base}_output_scale_mul")

    def _product(self, node: onnx.NodeProto) -> bool:
        weight = self.graph.constant(node.input[1])
        if weight is None or not self.graph.is_float(node.input[1]):
            return False
        axis = 1 if self.settings.per_channel and weight.ndim == 2 else None
        quantized = quantize_weight(self.graph, node.input[1], self.settings, axis)
        self._integer_op(node, "MatMulInteger", quantized, node.output[0])
        return True

    def _convolution(self, node: onnx.NodeProto) -> bool:
        weight = self.graph.constant(node.input[1])
        if weight is None or not self.graph.is_float(node.input[1]):
            return False
        # ConvInteger knows one zero point for all channels, and one scale.
        quantized = quantize_weight(self.graph, node.input[1], self.settings)
        has_bias = len(node.input) > 2 and node.input[2] != ""
        out = f"{node.output[0]}quant_scaled_output" if has_bias else node.output[0]
        if has_bias:
            shape = self.graph.add_constant(
                f"{node.output[0]}_bias_reshape_shape",
                np.array([1, -1, *([1] * (weight.ndim - 2))], np.int64),
            )
            name = f"{node.output[0]}_bias_reshape_output"
            bias = self._add("Reshape", [node.input[2], shape], [name], name)
        self._integer_op(node, "ConvInteger", quantized, out)
        if has_bias:
            self._add("Add", [out, bias], [node.output[0]], f"{node.output[0]}_bias_add")
        return True

    def _gather(self, node: onnx.NodeProto) -> bool:
        if self.graph.constant(node.input[0]) is None or not self.graph.is_float(node.input[0]):
            return False
        weight = quantize_weight(self.graph, node.input[0], self.settings)
        gathered = f"{node.output[0]}_quantized"
        inner = helper.make_node(
            "Gather", [weight.name, node.input[1]], [gathered], name=f"{node.name}_quant"
        )
        inner.attribute.extend(node.attribute)
        self.result.append(inner)
        inputs = [gathered, weight.scale, weight.zero_point]
        self._add(
            "DequantizeLinear", inputs, [node.output[0]], f"{node.output[0]}_DequantizeLinear"
        )
        return True
