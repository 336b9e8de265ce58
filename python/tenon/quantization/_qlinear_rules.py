"""Rules for operators that take and return integers, with ranges that are known ahead."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from ._names import CONTRIB
from ._passing_rules import PASSING_RULES
from ._rewriter import Quantized, Rewriter, Rule
from ._scales import Scale
from ._tensors import attributes_of
from ._types import DTYPES

STEPS_OF_ONE = 256  # by which QLinearSoftmax divides numbers from 0 to 1


def _weighted(
    rewriter: Rewriter, node: NodeProto, axis: int | None, kind: int | None = None
) -> tuple[Quantized, Quantized, Quantized] | None:
    """Value, weight and result; None if one of them cannot be quantized."""
    value, weight = node.input[:2]
    if not rewriter.is_float(value) or not rewriter.is_float(weight):
        return None
    output = rewriter.made(node.output[0])
    if output is None or not _has_scale(rewriter, value):
        return None
    if rewriter.constant(weight) is None and not _has_scale(rewriter, weight):
        return None
    left, right = rewriter.activation(value), rewriter.weight(weight, axis, kind)
    return (left, right, output) if left is not None and right is not None else None


def _has_scale(rewriter: Rewriter, name: str) -> bool:
    """Whether a value or constant can be quantized, to avoid useless work."""
    is_constant = rewriter.constant(name) is not None
    known = name in rewriter.plan.scales or rewriter.present(name) is not None
    return is_constant or (known and rewriter.is_float(name))


def _per_channel(rewriter: Rewriter, name: str) -> bool:
    is_constant = rewriter.constant(name) is not None
    has_axis = rewriter.plan.overrides.has_per_channel_overrides(name)
    return is_constant and (rewriter.settings.per_channel or has_axis)


def convolution(rewriter: Rewriter, node: NodeProto) -> bool:
    """Conv. Channels with separate scales all have the zero point 0, as kernels require."""
    is_per_channel = _per_channel(rewriter, node.input[1])
    has_bias = len(node.input) > 2 and node.input[2] != ""
    if has_bias and rewriter.constant(node.input[2]) is None:
        return False
    if is_per_channel:
        found = _weighted(rewriter, node, 0, TensorProto.INT8)
    else:
        found = _weighted(rewriter, node, None)
    if found is None:
        return False
    value, weight, output = found
    inputs = [*value.names, *weight.names, output.scale, output.zero_point]
    if has_bias:
        bias = rewriter.bias(node.input[2], node, value, weight)
        if bias is None:
            return False
        inputs.append(bias)
    return rewriter.replace(node, "QLinearConv", inputs, output)


def product(rewriter: Rewriter, node: NodeProto) -> bool:
    """MatMul."""
    weight = rewriter.constant(node.input[1])
    if weight is None and rewriter.settings.option("MatMulConstBOnly"):
        return False
    is_matrix = weight is not None and len(weight.dims) > 1
    axis = -1 if is_matrix and _per_channel(rewriter, node.input[1]) else None
    found = _weighted(rewriter, node, axis)
    if found is None:
        return False
    left, right, output = found
    inputs = [*left.names, *right.names, output.scale, output.zero_point]
    is_float8 = rewriter.settings.weight_type == TensorProto.FLOAT8E4M3FN
    return rewriter.replace(node, "QLinearMatMul", inputs, output, CONTRIB if is_float8 else "")


def gemm(rewriter: Rewriter, node: NodeProto) -> bool:
    """Gemm. QGemm has no beta, and its bias has the scale of the product times alpha."""
    attributes = attributes_of(node)
    has_bias = len(node.input) > 2 and node.input[2] != ""
    if has_bias and rewriter.constant(node.input[2]) is None:
        return False
    axis = 0 if attributes.get("transB", 0) else 1
    found = _weighted(rewriter, node, axis if _per_channel(rewriter, node.input[1]) else None)
    if found is None:
        return False
    value, weight, output = found
    bias: str | None = ""
    if has_bias:
        factor = attributes.get("beta", 1.0) / attributes.get("alpha", 1.0)
        bias = rewriter.bias(node.input[2], node, value, weight, factor)
    if bias is None:
        return False
    inputs = [*value.names, *weight.names, bias, output.scale, output.zero_point]
    return rewriter.replace(node, "QGemm", inputs, output, CONTRIB, ["beta"])


def of_one(rewriter: Rewriter, node: NodeProto, scale: Scale | None = None) -> bool:
    """An operator of one value."""
    source = node.input[0]
    if not rewriter.is_float(source) or not _has_scale(rewriter, source):
        return False
    output, value = rewriter.made(node.output[0], scale), rewriter.activation(source)
    if output is None or value is None:
        return False
    inputs = [*value.names, output.scale, output.zero_point]
    return rewriter.replace(node, f"QLinear{node.op_type}", inputs, output, CONTRIB)


def _of_one_at_most(rewriter: Rewriter, lowest: int) -> Scale:
    """The scale of numbers from 0 to 1, if the lowest integer stands for 0."""
    kind = rewriter.settings.activation_type
    zero = np.array(lowest, DTYPES[kind])
    return Scale(zero, np.array(1 / STEPS_OF_ONE, np.float32), kind)


def softmax(rewriter: Rewriter, node: NodeProto) -> bool:
    """Softmax, whose result has the scale that its kernel assumes."""
    if rewriter.plan.scales.get(node.output[0]) is None:
        return False
    is_unsigned = rewriter.settings.activation_type == TensorProto.UINT8
    if not of_one(rewriter, node, _of_one_at_most(rewriter, 0 if is_unsigned else -128)):
        return False
    opset = rewriter.result[-1].attribute.add(name="opset", i=rewriter.plan.opset_version)
    opset.type = 2  # AttributeProto.INT
    return True


def sigmoid(rewriter: Rewriter, node: NodeProto) -> bool:
    """Sigmoid; Android's NNAPI requires a certain scale."""
    if rewriter.settings.option("extra.Sigmoid.nnapi"):
        return of_one(rewriter, node, _of_one_at_most(rewriter, 0))
    return of_one(rewriter, node)


def global_pool(rewriter: Rewriter, node: NodeProto) -> bool:
    """GlobalAveragePool of a value that is quantized already."""
    value = rewriter.present(node.input[0])
    if value is None:
        return False
    output = rewriter.made(node.output[0]) or Quantized(
        f"{node.output[0]}_quantized", value.scale, value.zero_point
    )
    inputs = [*value.names, output.scale, output.zero_point]
    name = "QLinearGlobalAveragePool"
    return rewriter.replace(node, name, inputs, output, CONTRIB, channels_last=0)


def _all(rewriter: Rewriter, names: list[str]) -> list[Quantized] | None:
    """Quantized values; None if one of them cannot be quantized."""
    if not all(rewriter.is_float(name) and _has_scale(rewriter, name) for name in names):
        return None
    found = [rewriter.activation(name) for name in names]
    return [one for one in found if one is not None] if None not in found else None


def of_two(rewriter: Rewriter, node: NodeProto) -> bool:
    """An operator of two values."""
    output = rewriter.made(node.output[0])
    values = _all(rewriter, list(node.input)) if output is not None else None
    if output is None or values is None:
        return False
    inputs = [name for one in values for name in one.names]
    inputs += [output.scale, output.zero_point]
    return rewriter.replace(node, f"QLinear{node.op_type}", inputs, output, CONTRIB)


def concat(rewriter: Rewriter, node: NodeProto) -> bool:
    """Concat of values that may have different scales."""
    output = rewriter.made(node.output[0])
    values = _all(rewriter, list(node.input)) if output is not None else None
    if output is None or values is None:
        return False
    inputs = [output.scale, output.zero_point]
    inputs += [name for one in values for name in one.names]
    return rewriter.replace(node, "QLinearConcat", inputs, output, CONTRIB)


def where(rewriter: Rewriter, node: NodeProto) -> bool:
    """Where, if it has to be quantized."""
    if not rewriter.settings.option("ForceQuantizeNoInputCheck"):
        return False
    output = rewriter.made(node.output[0])
    values = _all(rewriter, list(node.input[1:])) if output is not None else None
    if output is None or values is None:
        return False
    inputs = [node.input[0], *(name for one in values for name in one.names)]
    inputs += [output.scale, output.zero_point]
    return rewriter.replace(node, "QLinearWhere", inputs, output, CONTRIB)


def removable(rewriter: Rewriter, node: NodeProto) -> bool:
    """Relu and Clip are removed if saturation has the same effect."""
    value = rewriter.present(node.input[0])
    saturates = rewriter.plan.saturates
    if value is None or saturates is None or rewriter.settings.symmetric_activations:
        return False
    scale = rewriter.scale_of(value)
    if scale is None or scale.kind == TensorProto.FLOAT8E4M3FN:
        return False
    if not saturates(node, scale.kind, scale.real_range()):
        return False
    rewriter.values[node.output[0]] = value
    return True


QLinearOpsRegistry: dict[str, Rule] = {
    **PASSING_RULES,
    "Add": of_two,
    "AveragePool": of_one,
    "Clip": removable,
    "Concat": concat,
    "Conv": convolution,
    "Gemm": gemm,
    "GlobalAveragePool": global_pool,
    "LeakyRelu": of_one,
    "MatMul": product,
    "Mul": of_two,
    "Relu": removable,
    "Sigmoid": sigmoid,
    "Softmax": softmax,
    "Where": where,
}
