"""The constants of a model, and their quantized numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ._arithmetic import quantize_nparray
from ._names import TENSOR_NAME_QUANT_SUFFIX
from ._types import FLOATS


def tensor_proto_to_array(initializer: TensorProto) -> np.ndarray:
    """The elements of a floating-point constant."""
    if initializer.data_type not in FLOATS:
        kind = TensorProto.DataType.Name(initializer.data_type)
        raise ValueError(f"'{initializer.name}': expected FLOAT or FLOAT16, got {kind}")
    return numpy_helper.to_array(initializer)


def broadcast_along(values: np.ndarray, axis: int | None, rank: int) -> np.ndarray:
    """One value for each index of an axis, shaped for broadcasting to a tensor of that rank."""
    if axis is None or values.ndim != 1:
        return values
    return values.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def spread_blocks(values: np.ndarray, axis: int, block_size: int, length: int) -> np.ndarray:
    """One value for each block of an axis, repeated for each index of that axis."""
    return np.repeat(values, block_size, axis).take(range(length), axis)


def quantize_onnx_initializer(
    weight: TensorProto,
    quant_type: int,
    zero_point: np.ndarray,
    scale: np.ndarray,
    axis: int | None = None,
    quant_weight_name: str | None = None,
    block_size: int = 0,
) -> TensorProto:
    """The quantized constant.

    axis         has a scale and a zero point for each of its indices; None: there is one
    block_size   the number of indices of the axis that share theirs; 0: none do
    """
    data = tensor_proto_to_array(weight)
    zero, steps = np.asarray(zero_point), np.asarray(scale)
    if axis is not None and block_size > 0:
        zero, steps = (spread_blocks(x, axis, block_size, data.shape[axis]) for x in (zero, steps))
    else:
        zero, steps = (broadcast_along(x, axis, data.ndim) for x in (zero, steps))
    numbers = quantize_nparray(quant_type, data, steps, zero)
    name = quant_weight_name or weight.name + TENSOR_NAME_QUANT_SUFFIX
    return tensor_of(numbers.reshape(data.shape), name)


def tensor_of(array: Any, name: str) -> TensorProto:
    """A constant."""
    return numpy_helper.from_array(np.asarray(array), name)


def number_of(array: Any, kind: int, name: str) -> TensorProto:
    """A constant whose numbers are in the message's field for its type, where tools read them."""
    numbers = np.asarray(array)
    return helper.make_tensor(name, kind, numbers.shape, numbers.reshape(-1).astype(object))


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Attributes by name."""
    return {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}


def attribute_to_kwarg(attribute: onnx.AttributeProto) -> dict[str, Any]:
    """One attribute by its name, for helper.make_node."""
    if attribute.type == onnx.AttributeProto.UNDEFINED:
        raise ValueError(f"attribute {attribute.name} does not have type specified.")
    return {attribute.name: onnx.helper.get_attribute_value(attribute)}
