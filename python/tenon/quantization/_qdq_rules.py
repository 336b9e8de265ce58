"""Which values of an operator stand between pairs of (de)quantization.

A rule is called with the quantizer and a node, and marks values in the quantizer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto

from ._tensors import attributes_of

if TYPE_CHECKING:
    from ._qdq_marks import MarkingQuantizer

Rule = Callable[["MarkingQuantizer", NodeProto], Any]


def everything(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """All inputs and outputs."""
    for name in (*node.input, *quantizer.outputs_of(node)):
        quantizer.quantize_activation_tensor(name)


def passing(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """The outputs have the scale of the input, because they have the same numbers."""
    if quantizer.forces:
        quantizer.quantize_activation_tensor(node.input[0])
    if quantizer.is_tensor_quantized(node.input[0]):
        for name in quantizer.outputs_of(node)[:1]:
            quantizer.quantize_output_same_as_input(name, node.input[0], node.name)


def resizing(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """Resize, whose behaviour at borders is not defined before version 11."""
    if quantizer.opset_version >= 11:
        passing(quantizer, node)


def max_pool(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """MaxPool, which takes integers of 8 bits since version 12, and never float 8."""
    is_float8 = quantizer.settings.activation_type == TensorProto.FLOAT8E4M3FN
    if quantizer.opset_version >= 12 and not is_float8:
        passing(quantizer, node)


def split(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """All parts have the scale of the whole."""
    quantizer.quantize_activation_tensor(node.input[0])
    for name in quantizer.outputs_of(node):
        quantizer.quantize_output_same_as_input(name, node.input[0], node.name)


def gather(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """The table is quantized; other values only if they are anyway."""
    if quantizer.is_valid_quantize_weight(node.input[0]) or quantizer.forces:
        quantizer.quantize_activation_tensor(node.input[0])
    if quantizer.is_tensor_quantized(node.input[0]):
        for name in quantizer.outputs_of(node):
            quantizer.quantize_output_same_as_input(name, node.input[0], node.name)


def where(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """The chosen values, if both are quantized anyway."""
    if quantizer.forces:
        for name in node.input[1:]:
            quantizer.quantize_activation_tensor(name)
    if all(quantizer.is_tensor_quantized(name) for name in node.input[1:]):
        for name in quantizer.outputs_of(node):
            quantizer.quantize_activation_tensor(name)


def pad(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """The input's scale is enough if the padding lies in its range, as zero always does."""
    for name in node.input:
        quantizer.quantize_activation_tensor(name)
    is_same = attributes_of(node).get("mode", b"constant") != b"constant" or _pads_zero(
        quantizer, node
    )
    for name in quantizer.outputs_of(node):
        if is_same:
            quantizer.quantize_output_same_as_input(name, node.input[0], node.name)
        else:
            quantizer.quantize_activation_tensor(name)


def _pads_zero(quantizer: MarkingQuantizer, node: NodeProto) -> bool:
    if quantizer.opset_version < 11:
        return float(attributes_of(node).get("value", 0.0)) == 0.0
    if len(node.input) < 3 or not node.input[2]:
        return True
    added = quantizer.graph.constant(node.input[2])
    return added is not None and not np.any(added)


def weight(quantizer: MarkingQuantizer, node: NodeProto, name: str, axis: int) -> None:
    """A constant weight, by its channels if requested; other values like any value."""
    if not quantizer.is_input_a_initializer(name):
        quantizer.quantize_activation_tensor(name)
        return
    is_per_channel, channels = quantizer.is_tensor_per_channel(name, axis, node.op_type)
    if is_per_channel and channels is not None:
        quantizer.quantize_weight_tensor_per_channel(name, channels)
    else:
        quantizer.quantize_weight_tensor(name)


def convolution(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """Conv and ConvTranspose."""
    ends(quantizer, node)
    weight(quantizer, node, node.input[1], 0 if node.op_type == "Conv" else 1)
    if len(node.input) > 2 and node.input[2]:
        quantizer.quantize_bias_tensor(node.name, node.input[2], node.input[0], node.input[1])


def gemm(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """Gemm. beta becomes a part of the bias."""
    ends(quantizer, node)
    attributes = attributes_of(node)
    weight(quantizer, node, node.input[1], 0 if attributes.get("transB", 0) else 1)
    if len(node.input) < 3 or not node.input[2]:
        return
    if not quantizer.is_input_a_initializer(node.input[2]):
        logging.warning("Gemm '%s': its bias is no constant, and stays as it is", node.name)
        return
    beta = attributes.get("beta", 1.0)
    if quantizer.quantize_bias_tensor(node.name, node.input[2], node.input[0], node.input[1], beta):
        for attribute in node.attribute:
            if attribute.name == "beta":
                attribute.f = 1.0


def product(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """MatMul."""
    const_only = quantizer.settings.option("MatMulConstBOnly")
    if const_only and not quantizer.is_input_a_initializer(node.input[1]):
        return
    for name in node.input:
        weight(quantizer, node, name, 1)
    for name in quantizer.outputs_of(node):
        quantizer.quantize_activation_tensor(name)


def normalization(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """Normalizations: the scale is a weight, the shift a bias."""
    quantizer.quantize_activation_tensor(node.input[0])
    weight(quantizer, node, node.input[1], 1)
    if len(node.input) > 2 and node.input[2]:
        quantizer.quantize_bias_tensor(node.name, node.input[2], node.input[0], node.input[1])
    for name in quantizer.outputs_of(node):
        quantizer.quantize_activation_tensor(name)


def removable(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """Relu and Clip: if saturation has the same effect, the node is removed."""
    if not quantizer.is_tensor_quantized(node.input[0]):
        return
    if not quantizer.fold_into_producer(node):
        quantizer.quantize_activation_tensor(node.input[0])
    for name in quantizer.outputs_of(node):
        quantizer.quantize_activation_tensor(name)


def ends(quantizer: MarkingQuantizer, node: NodeProto) -> None:
    """The first input and the outputs."""
    for name in (node.input[0], *quantizer.outputs_of(node)):
        quantizer.quantize_activation_tensor(name)


# Operators without a rule here have all inputs and outputs quantized.
QDQRegistry: dict[str, Rule] = {
    "AveragePool": passing,
    "BatchNormalization": normalization,
    "Clip": removable,
    "Conv": convolution,
    "ConvTranspose": convolution,
    "CumSum": everything,
    "Flatten": passing,
    "Gather": gather,
    "GatherElements": gather,
    "Gemm": gemm,
    "InstanceNormalization": normalization,
    "LayerNormalization": normalization,
    "MatMul": product,
    "MaxPool": max_pool,
    "Pad": pad,
    "Relu": removable,
    "Reshape": passing,
    "Resize": resizing,
    "Slice": passing,
    "Split": split,
    "Squeeze": passing,
    "TopK": passing,
    "Transpose": passing,
    "Unsqueeze": passing,
    "Where": where,
}


def apply_rule(quantizer: MarkingQuantizer, node: onnx.NodeProto) -> None:
    """Calls the rule of a node. Classes that users registered are instantiated and called."""
    made = QDQRegistry.get(node.op_type, everything)(quantizer, node)
    if hasattr(made, "quantize"):
        made.quantize()
