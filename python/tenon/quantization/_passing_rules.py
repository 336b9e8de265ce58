"""Rules for operators that only move values and can move integers instead."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from ._arithmetic import quantize_nparray
from ._names import CONTRIB, TENSOR_NAME_QUANT_SUFFIX
from ._rewriter import Quantized, Rewriter, Rule
from ._tensors import attributes_of, tensor_of


def passing(rewriter: Rewriter, node: NodeProto) -> bool:
    """The same node for integers, if its input is or must be quantized."""
    if rewriter.settings.option("ForceQuantizeNoInputCheck") and rewriter.is_float(node.input[0]):
        value = rewriter.activation(node.input[0])
    else:
        value = rewriter.present(node.input[0])
    return value is not None and pass_on(rewriter, node, value)


def pass_on(rewriter: Rewriter, node: NodeProto, value: Quantized, *others: str) -> bool:
    """Adds the node with integer inputs; its outputs have the scale of its input."""
    outputs = []
    for name in node.output:
        quantized = f"{name}{TENSOR_NAME_QUANT_SUFFIX}"
        rewriter.values[name] = Quantized(quantized, value.scale, value.zero_point)
        outputs.append(quantized)
    inputs = [value.name, *(others or node.input[1:])]
    for name in inputs[1:]:
        rewriter.number(name)
    rewriter.add(node.op_type, inputs, outputs, node.name, node.domain, node.attribute)
    return True


def since(version: int) -> Rule:
    """The same for operators that support integers since a certain version."""

    def rule(rewriter: Rewriter, node: NodeProto) -> bool:
        return rewriter.plan.opset_version >= version and passing(rewriter, node)

    return rule


def gather(rewriter: Rewriter, node: NodeProto) -> bool:
    """The table becomes smaller, and so do the elements that are read from it."""
    if rewriter.constant(node.input[0]) is None:
        return False
    value = rewriter.activation(node.input[0])
    return value is not None and value.axis is None and pass_on(rewriter, node, value)


def split(rewriter: Rewriter, node: NodeProto) -> bool:
    """All parts have the scale of the whole."""
    if not rewriter.is_float(node.input[0]):
        return False
    value = rewriter.activation(node.input[0])
    return value is not None and pass_on(rewriter, node, value)


def pad(rewriter: Rewriter, node: NodeProto) -> bool:
    """The padding value gets the scale of the input; zero is its zero point."""
    value = rewriter.present(node.input[0])
    if value is None or rewriter.plan.opset_version < 11:
        return False
    rest = list(node.input[1:])
    if attributes_of(node).get("mode", b"constant") == b"constant":
        added = _added(rewriter, rest[1] if len(rest) > 1 else "", value)
        if added is None:
            return False
        rest = [rest[0], added, *rest[2:]]
    return pass_on(rewriter, node, value, *rest)


def _added(rewriter: Rewriter, name: str, value: Quantized) -> str | None:
    if not name:
        return value.zero_point
    quantized = f"{name}{TENSOR_NAME_QUANT_SUFFIX}_{value.name}"
    number, scale = rewriter.owner(name).graph.constant(name), rewriter.scale_of(value)
    if number is None or scale is None:
        rewriter.number(name)
        inputs = [rewriter.owner(name).as_float32(name), value.scale, value.zero_point]
        return rewriter.add("QuantizeLinear", inputs, [quantized], f"{quantized}_QuantizeLinear")
    integer = quantize_nparray(scale.kind, number, scale.scale, scale.zero_point)
    return rewriter.graph.add_constant(tensor_of(integer, quantized))


def arg_max(rewriter: Rewriter, node: NodeProto) -> bool:
    """The largest integer stands for the largest number."""
    value = rewriter.present(node.input[0])
    if value is None:
        return False
    inputs = [value.name, *node.input[1:]]
    rewriter.add(node.op_type, inputs, list(node.output), node.name, copied=node.attribute)
    rewriter.numbers.update(node.output)
    return True


def embedding(rewriter: Rewriter, node: NodeProto) -> bool:
    """EmbedLayerNormalization: three tables, a factor and a summand."""
    is_narrow = rewriter.kind(node.input[2]) != TensorProto.FLOAT
    if is_narrow or len([name for name in node.output if name]) > 2:
        return False
    found = []
    for name in node.input[2:7]:
        value = rewriter.activation(name) if name else Quantized("", "", "")
        if value is None:
            return False
        found.append(value)
    mask = node.input[7] if len(node.input) > 7 else ""
    inputs = [*node.input[:2], *(one.name for one in found), mask]
    inputs += [one.scale for one in found]
    inputs += [one.zero_point for one in found]
    name = f"{node.name}_quant" if node.name else ""
    rewriter.add(
        "QEmbedLayerNormalization", inputs, list(node.output), name, CONTRIB, node.attribute
    )
    rewriter.numbers.update(node.output)
    return True


PASSING_RULES: dict[str, Rule] = {
    "ArgMax": arg_max,
    "EmbedLayerNormalization": embedding,
    "Flatten": passing,
    "Gather": gather,
    "MaxPool": since(12),
    "Pad": pad,
    "Reshape": passing,
    "Resize": since(11),
    "Split": split,
    "Squeeze": passing,
    "Transpose": passing,
    "Unsqueeze": passing,
}
