"""Types of quantization, and its arithmetic."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
from onnx import TensorProto


class ParsedEnum(enum.Enum):
    """Enumerations whose members have their names on command lines."""

    def __str__(self) -> str:
        return self.name

    @classmethod
    def from_string(cls, name: str) -> Any:
        """The member of that name."""
        if name not in cls.__members__:
            raise ValueError(f"expected one of {', '.join(cls.__members__)}, got '{name}'")
        return cls[name]


class QuantizationMode(ParsedEnum):
    """What becomes of operators."""

    IntegerOps = 0
    QLinearOps = 1


class QuantFormat(ParsedEnum):
    """Whether operators are replaced, or stand between pairs of (de)quantization."""

    QOperator = 0
    QDQ = 1


class QuantType(ParsedEnum):
    """Element types that stand for floating-point numbers."""

    QInt8 = 0
    QUInt8 = 1
    QFLOAT8E4M3FN = 2
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6

    @property
    def tensor_type(self) -> int:
        """The number of the ONNX type."""
        return TENSOR_TYPES[self]


TENSOR_TYPES = {
    QuantType.QInt8: TensorProto.INT8,
    QuantType.QUInt8: TensorProto.UINT8,
    QuantType.QInt16: TensorProto.INT16,
    QuantType.QUInt16: TensorProto.UINT16,
}
DTYPES: dict[int, Any] = {
    TensorProto.INT8: np.int8,
    TensorProto.UINT8: np.uint8,
    TensorProto.INT16: np.int16,
    TensorProto.UINT16: np.uint16,
}
# Smallest and largest number: all of the type, those used if zero lies in the middle, and those
# used to keep sums of products in 16 bits.
RANGES: dict[int, tuple[tuple[int, int], tuple[int, int], tuple[int, int]]] = {
    TensorProto.INT8: ((-128, 127), (-127, 127), (-64, 64)),
    TensorProto.UINT8: ((0, 255), (0, 254), (0, 127)),
    TensorProto.INT16: ((-32768, 32767), (-32767, 32767), (-16384, 16384)),
    TensorProto.UINT16: ((0, 65535), (0, 65534), (0, 32767)),
}


def tensor_type_of(quant_type: QuantType) -> int:
    """The number of the ONNX type. Raises ValueError for those that weights cannot have here."""
    if quant_type not in TENSOR_TYPES:
        known = ", ".join(str(one) for one in TENSOR_TYPES)
        raise ValueError(f"expected one of {known}, got {quant_type}")
    return TENSOR_TYPES[quant_type]


def get_qmin_qmax_for_qType(  # noqa: N802 - the name that it has in onnxruntime
    qType: int,  # noqa: N803
    reduce_range: bool = False,
    symmetric: bool = False,
) -> tuple[int, int]:
    """Smallest and largest number that is used."""
    if qType not in RANGES:
        raise ValueError(f"expected an integer type of 8 or 16 bits, got {qType}")
    full, middle, reduced = RANGES[qType]
    if reduce_range:
        return reduced
    return middle if symmetric and qType in (TensorProto.INT8, TensorProto.INT16) else full


def compute_scale_zp(
    rmin: Any,
    rmax: Any,
    qmin: int,
    qmax: int,
    symmetric: bool = False,
    min_real_range: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Zero point and scale that map [rmin, rmax] to [qmin, qmax]. Zero is always exact."""
    low = np.minimum(np.asarray(rmin, np.float32), np.float32(0))
    high = np.maximum(np.asarray(rmax, np.float32), np.float32(0))
    if min_real_range is not None:
        high = np.maximum(high, low + np.float32(min_real_range))
    if symmetric:
        high = np.maximum(np.abs(low), np.abs(high))
        low = -high
    with np.errstate(over="ignore"):
        scale = np.asarray((high - low).astype(np.float64) / (qmax - qmin), np.float64)
    is_tiny = scale < np.finfo(np.float32).tiny
    scale = np.where(is_tiny, 1, scale).astype(np.float32)
    if symmetric:
        zero_point = np.full(scale.shape, np.round((qmin + qmax) / 2), np.float64)
    else:
        zero_point = np.round(qmin - low.astype(np.float64) / scale)
    zero_point = np.where(is_tiny, 0 if qmin < 0 else zero_point, zero_point)
    return zero_point.astype(np.int64), scale


def quantize_nparray(
    data: np.ndarray,
    scale: np.ndarray,
    zero_point: np.ndarray,
    tensor_type: int,
    limits: tuple[int, int] | None = None,
) -> np.ndarray:
    """round(data / scale) + zero_point, saturated; scale and zero point are broadcast."""
    low, high = limits or RANGES[tensor_type][0]
    numbers = np.round(data.astype(np.float32) / scale) + zero_point
    return np.clip(numbers, low, high).astype(DTYPES[tensor_type])


def quantize_data(
    data: np.ndarray,
    tensor_type: int,
    symmetric: bool,
    reduce_range: bool = False,
    axis: int | None = None,
    min_real_range: float | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quantized data, zero point and scale; with an axis, one of these for each index of it."""
    others = None if axis is None else tuple(i for i in range(data.ndim) if i != axis % data.ndim)
    is_empty = data.size == 0
    low = np.float32(0) if is_empty else data.min(axis=others)
    high = np.float32(0) if is_empty else data.max(axis=others)
    limits = get_qmin_qmax_for_qType(tensor_type, reduce_range, symmetric)
    zero_point, scale = compute_scale_zp(low, high, *limits, symmetric, min_real_range)
    shape = [1] * data.ndim
    if axis is not None:
        shape[axis] = -1
    wide_scale, wide_zero = (scale, zero_point)
    if axis is not None:
        wide_scale, wide_zero = scale.reshape(shape), zero_point.reshape(shape)
    numbers = quantize_nparray(data, wide_scale, wide_zero, tensor_type, limits)
    return numbers, zero_point.astype(DTYPES[tensor_type]), scale
