"""Products of integers: weights are quantized ahead, values in each run."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from ._names import CONTRIB
from ._passing_rules import PASSING_RULES, embedding
from ._rewriter import Quantized, Rewriter, Rule
from ._tensors import attributes_of, tensor_of


def product(rewriter: Rewriter, node: NodeProto) -> bool:
    """MatMul."""
    left, right = node.input[:2]
    const_only = rewriter.settings.option("MatMulConstBOnly")
    if const_only and rewriter.constant(right) is None:
        return False
    rewriter.assume(left, right)
    value = rewriter.activation(left)
    weight = rewriter.weight(right, _channels(rewriter, right))
    if value is None or weight is None:
        return False
    _integer_operator(rewriter, node, "MatMulInteger", value, weight, node.output[0])
    return True


def _channels(rewriter: Rewriter, weight: str) -> int | None:
    """The axis that counts the columns of a matrix, if each of them has its own scale."""
    tensor = rewriter.constant(weight)
    is_matrix = tensor is not None and len(tensor.dims) > 1
    has_axis = rewriter.plan.overrides.has_per_channel_overrides(weight)
    is_wanted = rewriter.settings.per_channel or has_axis
    return len(tensor.dims) - 1 if tensor is not None and is_matrix and is_wanted else None


def convolution(rewriter: Rewriter, node: NodeProto) -> bool:
    """Conv. ConvInteger has one zero point and one scale for all channels."""
    rewriter.assume(node.input[1], node.input[0])
    has_bias = len(node.input) > 2 and node.input[2] != ""
    rank = rewriter.rank(node.input[1])
    if not all(rewriter.is_float(name) for name in node.input[:2]) or (has_bias and rank is None):
        return False
    value = rewriter.activation(node.input[0])
    weight = rewriter.weight(node.input[1], None)
    if value is None or weight is None:
        return False
    result = node.output[0]
    unbiased = f"{result}quant_scaled_output" if has_bias else result
    _integer_operator(rewriter, node, "ConvInteger", value, weight, unbiased)
    if has_bias and rank is not None:
        shape = np.ones(rank, np.int64)
        shape[1] = -1
        shape_name = rewriter.graph.add_constant(tensor_of(shape, f"{result}_bias_reshape_shape"))
        bias = f"{result}_bias_reshape_output"
        rewriter.number(node.input[2])
        rewriter.add("Reshape", [node.input[2], shape_name], [bias], bias)
        rewriter.add("Add", [unbiased, bias], [result], f"{result}_bias_add")
    return True


def _integer_operator(
    rewriter: Rewriter,
    node: NodeProto,
    op_type: str,
    value: Quantized,
    weight: Quantized,
    output: str,
) -> None:
    """The product of integers, and the nodes that convert it to numbers."""
    base = f"{node.name or node.output[0]}_quant"
    scales = f"{base}_scales_mul"
    scale = rewriter.add("Mul", [value.scale, weight.scale], [f"{scales}:0"], scales)
    raw = f"{node.output[0]}_output_quantized"
    inputs = [value.name, weight.name, value.zero_point, weight.zero_point]
    rewriter.add(op_type, inputs, [raw], base, copied=node.attribute)
    cast = f"{raw}_cast_output"
    rewriter.add("Cast", [raw], [cast], f"{raw}_cast", to=TensorProto.FLOAT)
    kind = rewriter.kind(node.output[0]) or rewriter.kind(node.input[1]) or TensorProto.FLOAT
    wide = output if kind == TensorProto.FLOAT else f"{output}_float"
    rewriter.add("Mul", [cast, scale], [wide], f"{base}_output_scale_mul")
    if wide != output:
        rewriter.add("Cast", [wide], [output], f"{base}_output_cast", to=kind)
    rewriter.numbers.add(node.output[0])


def attention(rewriter: Rewriter, node: NodeProto) -> bool:
    """Attention of domain com.microsoft."""
    is_plain = "qkv_hidden_sizes" not in attributes_of(node)
    if node.domain != CONTRIB or not is_plain or rewriter.kind(node.input[1]) != TensorProto.FLOAT:
        return False
    rewriter.assume(node.input[0], node.input[1])
    value = rewriter.activation(node.input[0])
    weight = rewriter.weight(node.input[1], _channels(rewriter, node.input[1]))
    if value is None or weight is None:
        return False
    inputs = [*node.input, "", "", ""]
    bias, mask, past = inputs[2], inputs[3], inputs[4]
    for name in (bias, mask, past):
        rewriter.number(name)
    given = [value.name, weight.name, bias, value.scale, weight.scale, mask]
    given += [value.zero_point, weight.zero_point, past]
    name = f"{node.name}_quant" if node.name else ""
    rewriter.add("QAttention", given, list(node.output), name, CONTRIB, node.attribute)
    rewriter.numbers.update(node.output)
    return True


def lstm(rewriter: Rewriter, node: NodeProto) -> bool:
    """LSTM: the layout of its weights begins with the rows that are multiplied."""
    tensors = [rewriter.constant(name) for name in node.input[1:3]]
    if any(one is None or len(one.dims) != 3 for one in tensors):
        return False
    if attributes_of(node).get("layout", 0) or rewriter.kind(node.input[1]) != TensorProto.FLOAT:
        return False
    weights = [_gate_weight(rewriter, name) for name in node.input[1:3]]
    rest = [*node.input[3:8], *([""] * (8 - len(node.input)))]
    for name in (node.input[0], *rest):
        rewriter.number(name)
    inputs = [node.input[0], *(one.name for one in weights), *rest]
    inputs += [name for one in weights for name in (one.scale, one.zero_point)]
    copied = [one for one in node.attribute if one.name != "layout"]
    name = f"{node.name}_quant" if node.name else ""
    rewriter.add("DynamicQuantizeLSTM", inputs, list(node.output), name, CONTRIB, copied)
    rewriter.numbers.update(node.output)
    return True


def _gate_weight(rewriter: Rewriter, name: str) -> Quantized:
    """One scale for each direction, or for each of its rows."""
    owner = rewriter.owner(name)
    if name in owner.values:
        return owner.values[name]
    tensor = owner.graph.initializers[name]
    dims = directions, rows, columns = tuple(tensor.dims)
    is_per_channel = rewriter.settings.per_channel
    if is_per_channel:
        tensor.dims[:] = [directions * rows, columns]
    result = owner.constant_of(name, TensorProto.INT8, 0, rewriter.settings.reduce_range)
    tensor.dims[:] = dims
    result.is_rearranged = True
    integers, scale, zero = (owner.graph.constant(one) for one in result.names)
    assert integers is not None and scale is not None and zero is not None
    shape = (directions, rows) if is_per_channel else (directions,)
    turned = np.ascontiguousarray(integers.reshape(dims).transpose(0, 2, 1))
    for one, array in zip(
        result.names, (turned, scale.reshape(shape), zero.reshape(shape)), strict=True
    ):
        owner.graph.initializers[one] = tensor_of(array, one)
    return result


IntegerOpsRegistry: dict[str, Rule] = {
    "Attention": attention,
    "Conv": convolution,
    "EmbedLayerNormalization": embedding,
    "Gather": PASSING_RULES["Gather"],
    "LSTM": lstm,
    "MatMul": product,
    "Transpose": PASSING_RULES["Transpose"],
}
