"""Values quantized by ranges that are known ahead: operators that take and give integers."""

from __future__ import annotations

from collections.abc import Callable

import onnx
from onnx import helper

from ._graph import CONTRIB, attributes_of
from ._settings import Quantized
from ._static import PASSING, StaticQuantizer
from .quant_utils import QuantType

# Of one value, and of two: operator -> its counterpart of domain com.microsoft.
UNARY = {
    "AveragePool": "QLinearAveragePool",
    "GlobalAveragePool": "QLinearGlobalAveragePool",
    "LeakyRelu": "QLinearLeakyRelu",
    "Sigmoid": "QLinearSigmoid",
    "Softmax": "QLinearSoftmax",
}
BINARY = {"Add": "QLinearAdd", "Mul": "QLinearMul"}


class QOperatorQuantizer(StaticQuantizer):
    """Replaces operators; what has no counterpart gets and gives numbers."""

    softmax_reach = 255 / 256  # QLinearSoftmax has steps of 1 / 256

    @property
    def symmetric_constants(self) -> bool:
        """Those of signed types have."""
        is_signed = self.settings.activation_type in (QuantType.QInt8, QuantType.QInt16)
        return is_signed or self.settings.symmetric_activations

    def quantize(self) -> onnx.ModelProto:
        """The model, quantized."""
        self.result: list[onnx.NodeProto] = []
        self.values: dict[str, Quantized] = {}  # quantized values by name
        self.numbers = set(self.graph.initializers)  # values that exist as numbers
        self.numbers |= {value.name for value in self.graph.graph.input}
        rewrites: dict[str, Callable[[onnx.NodeProto], bool]] = {
            "Conv": self._convolution,
            "MatMul": self._product,
            "Gemm": self._gemm,
            "Concat": self._concat,
            **dict.fromkeys(UNARY, self._unary),
            **dict.fromkeys(BINARY, self._binary),
            **dict.fromkeys(PASSING, self._pass),
        }
        for node in self.graph.nodes:
            rewrite = rewrites.get(node.op_type)
            if rewrite is None or not self.settings.takes(node) or not rewrite(node):
                self._keep(node)
        for name in self.graph.outputs:
            self._number(name)
        self.graph.finish(self.result, {CONTRIB: 1})
        return self.graph.model

    def _keep(self, node: onnx.NodeProto) -> None:
        """A node as it is, given numbers."""
        for name in node.input:
            self._number(name)
        self.result.append(node)
        self.numbers.update(node.output)

    def _number(self, name: str) -> None:
        """Makes sure that a value exists as numbers."""
        if name in self.numbers or name not in self.values:
            return
        value = self.values[name]
        inputs = [value.name, value.scale, value.zero_point]
        self.result.append(
            helper.make_node("DequantizeLinear", inputs, [name], name=f"{name}_DequantizeLinear")
        )
        self.numbers.add(name)

    def _value(self, name: str) -> Quantized | None:
        """The quantized value; None if its range is not known."""
        if name in self.values:
            return self.values[name]
        if name in self.graph.initializers:
            self.values[name] = self.constant_value(name)
            return self.values[name]
        names = self.parameter_names(name)
        if names is None or not self.graph.is_float(name):
            return None
        value = Quantized(f"{name}_quantized", *names)
        inputs = [name, value.scale, value.zero_point]
        self.result.append(
            helper.make_node("QuantizeLinear", inputs, [value.name], name=f"{name}_QuantizeLinear")
        )
        self.values[name] = value
        return value

    def _made(self, name: str) -> Quantized | None:
        """What a node will make; None if its range is not known."""
        names = self.parameter_names(name)
        return None if names is None else Quantized(f"{name}_quantized", *names)

    def _replace(
        self,
        node: onnx.NodeProto,
        op_type: str,
        inputs: list[str],
        output: Quantized,
        domain: str = "",
    ) -> bool:
        """Adds the counterpart of a node, with its attributes."""
        base = node.name or node.output[0]
        made = helper.make_node(op_type, inputs, [output.name], name=f"{base}_quant", domain=domain)
        made.attribute.extend(node.attribute)
        self.result.append(made)
        self.values[node.output[0]] = output
        return True

    def _weighted(self, node: onnx.NodeProto) -> tuple[Quantized, Quantized, Quantized] | None:
        """Value, weight and result; None if one of them cannot be."""
        if self.graph.constant(node.input[1]) is None or not self.graph.is_float(node.input[1]):
            return None
        output = self._made(node.output[0])
        value = self._value(node.input[0]) if output is not None else None
        if value is None or output is None:
            return None
        return value, self.weight(node, node.input[1])[0], output

    def _convolution(self, node: onnx.NodeProto) -> bool:
        found = self._weighted(node)
        if found is None:
            return False
        value, weight, output = found
        bias = self.bias(node, weight)
        if bias is None and len(node.input) > 2 and node.input[2]:
            return False
        inputs = [value.name, value.scale, value.zero_point]
        inputs += [weight.name, weight.scale, weight.zero_point]
        inputs += [output.scale, output.zero_point]
        if bias is not None:
            inputs.append(bias.name)
        return self._replace(node, "QLinearConv", inputs, output)

    def _product(self, node: onnx.NodeProto) -> bool:
        found = self._weighted(node)
        if found is None:
            return False
        value, weight, output = found
        inputs = [value.name, value.scale, value.zero_point]
        inputs += [weight.name, weight.scale, weight.zero_point]
        inputs += [output.scale, output.zero_point]
        return self._replace(node, "QLinearMatMul", inputs, output)

    def _gemm(self, node: onnx.NodeProto) -> bool:
        found = self._weighted(node)
        attributes = attributes_of(node)
        if found is None or attributes.get("beta", 1.0) != 1.0:
            return False
        value, weight, output = found
        bias = self.bias(node, weight)
        if bias is None and len(node.input) > 2 and node.input[2]:
            return False
        inputs = [value.name, value.scale, value.zero_point]
        inputs += [weight.name, weight.scale, weight.zero_point]
        inputs += ["" if bias is None else bias.name, output.scale, output.zero_point]
        self._replace(node, "QGemm", inputs, output, CONTRIB)
        # QGemm has no beta.
        made = self.result[-1]
        kept = [one for one in made.attribute if one.name != "beta"]
        del made.attribute[:]
        made.attribute.extend(kept)
        return True

    def _unary(self, node: onnx.NodeProto) -> bool:
        output = self._made(node.output[0])
        value = self._value(node.input[0]) if output is not None else None
        if value is None or output is None:
            return False
        inputs = [value.name, value.scale, value.zero_point, output.scale, output.zero_point]
        self._replace(node, UNARY[node.op_type], inputs, output, CONTRIB)
        if node.op_type == "Softmax":
            opsets = {one.domain: one.version for one in self.graph.model.opset_import}
            version = opsets.get("", opsets.get("ai.onnx", 0))
            self.result[-1].attribute.append(helper.make_attribute("opset", version))
        return True

    def _binary(self, node: onnx.NodeProto) -> bool:
        output = self._made(node.output[0])
        if output is None or not all(self.graph.is_float(name) for name in node.input):
            return False
        inputs: list[str] = []
        for name in node.input:
            value = self._value(name)
            if value is None:
                return False
            inputs += [value.name, value.scale, value.zero_point]
        inputs += [output.scale, output.zero_point]
        return self._replace(node, BINARY[node.op_type], inputs, output, CONTRIB)

    def _concat(self, node: onnx.NodeProto) -> bool:
        output = self._made(node.output[0])
        if output is None:
            return False
        inputs = [output.scale, output.zero_point]
        for name in node.input:
            value = self._value(name)
            if value is None:
                return False
            inputs += [value.name, value.scale, value.zero_point]
        return self._replace(node, "QLinearConcat", inputs, output, CONTRIB)

    def _pass(self, node: onnx.NodeProto) -> bool:
        """The same node over integers, where its input is one already."""
        value = self.values.get(node.input[0])
        if value is None or node.input[0] in self.graph.initializers:
            return False
        if node.op_type == "Pad" and len(node.input) > 2 and node.input[2]:
            return False  # what it adds is a number
        for name in node.output:
            self.values[name] = Quantized(f"{name}_quantized", value.scale, value.zero_point)
        inputs = [value.name, *node.input[1:]]
        outputs = [self.values[name].name for name in node.output]
        same = helper.make_node(node.op_type, inputs, outputs, name=node.name)
        same.attribute.extend(node.attribute)
        self.result.append(same)
        return True
