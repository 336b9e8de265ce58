"""The types of quantized values, their element types and their ranges."""

from __future__ import annotations

import enum
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto


class NamedEnum(enum.Enum):
    """Base of enumerations whose members are named on command lines."""

    def __str__(self) -> str:
        return self.name

    @classmethod
    def from_string(cls, name: str) -> Any:
        """The member of that name."""
        if name not in cls.__members__:
            raise ValueError(f"expected one of {', '.join(cls.__members__)}, got '{name}'")
        return cls[name]


class QuantizationMode(NamedEnum):
    """The operators of the quantized model."""

    IntegerOps = 0
    QLinearOps = 1


class QuantizedValueType(NamedEnum):
    """Where a quantized value comes from."""

    Input = 0
    Initializer = 1


class QuantFormat(NamedEnum):
    """Whether operators are replaced, or surrounded by pairs of (de)quantization."""

    QOperator = 0
    QDQ = 1


class QuantType(NamedEnum):
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


TENSOR_TYPES: dict[QuantType, int] = {
    QuantType.QInt8: TensorProto.INT8,
    QuantType.QUInt8: TensorProto.UINT8,
    QuantType.QFLOAT8E4M3FN: TensorProto.FLOAT8E4M3FN,
    QuantType.QInt16: TensorProto.INT16,
    QuantType.QUInt16: TensorProto.UINT16,
    QuantType.QInt4: TensorProto.INT4,
    QuantType.QUInt4: TensorProto.UINT4,
}
DTYPES: dict[int, np.dtype[Any]] = {
    TensorProto.INT8: np.dtype(np.int8),
    TensorProto.UINT8: np.dtype(np.uint8),
    TensorProto.INT16: np.dtype(np.int16),
    TensorProto.UINT16: np.dtype(np.uint16),
    TensorProto.FLOAT8E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    TensorProto.INT4: np.dtype(ml_dtypes.int4),
    TensorProto.UINT4: np.dtype(ml_dtypes.uint4),
}
# Signed types have their zero point in the middle by default.
SIGNED = frozenset(
    (TensorProto.INT4, TensorProto.INT8, TensorProto.INT16, TensorProto.FLOAT8E4M3FN)
)
SIXTEEN_BITS = frozenset((TensorProto.INT16, TensorProto.UINT16))
FOUR_BITS = frozenset((TensorProto.INT4, TensorProto.UINT4))
FLOATS = frozenset((TensorProto.FLOAT, TensorProto.FLOAT16))


Range = tuple[np.ndarray, np.ndarray]


def _range(tensor_type: int, low: int, high: int) -> Range:
    return np.array(low, DTYPES[tensor_type]), np.array(high, DTYPES[tensor_type])


# Smallest and largest number: of the whole type; with the zero point in the middle; with sums of
# products kept to 16 bits.
ONNX_INT_TYPE_RANGE: dict[int, Range] = {
    one: _range(one, *bounds)
    for one, bounds in {
        TensorProto.UINT8: (0, 255),
        TensorProto.INT8: (-128, 127),
        TensorProto.UINT16: (0, 65535),
        TensorProto.INT16: (-32768, 32767),
        TensorProto.UINT4: (0, 15),
        TensorProto.INT4: (-8, 7),
    }.items()
}
ONNX_INT_TYPE_SYMMETRIC_RANGE: dict[int, Range] = {
    one: _range(one, -limit, limit)
    for one, limit in {TensorProto.INT8: 127, TensorProto.INT16: 32767}.items()
}
ONNX_INT_TYPE_REDUCED_RANGE: dict[int, Range] = {
    one: _range(one, *bounds)
    for one, bounds in {
        TensorProto.UINT8: (0, 127),
        TensorProto.INT8: (-64, 64),
        TensorProto.UINT16: (0, 32767),
        TensorProto.INT16: (-16384, 16384),
        TensorProto.UINT4: (0, 7),
        TensorProto.INT4: (-4, 3),
    }.items()
}


def tensor_type_of(quant_type: Any) -> int:
    """The number of the ONNX type, of a QuantType or of such a number."""
    return int(getattr(quant_type, "tensor_type", quant_type))


def get_qmin_qmax_for_qType(  # noqa: N802 - the name that it has in onnxruntime
    qType: int,  # noqa: N803
    reduce_range: bool = False,
    symmetric: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest number that is used, of the element type itself."""
    if qType == TensorProto.FLOAT8E4M3FN:
        raise NotImplementedError("FLOAT8E4M3FN has no range of integers")
    if qType not in ONNX_INT_TYPE_RANGE:
        known = ", ".join(TensorProto.DataType.Name(one) for one in ONNX_INT_TYPE_RANGE)
        raise ValueError(f"Unexpected data type {qType} requested: expected one of {known}")
    if reduce_range:
        return ONNX_INT_TYPE_REDUCED_RANGE[qType]
    if symmetric and qType in ONNX_INT_TYPE_SYMMETRIC_RANGE:
        return ONNX_INT_TYPE_SYMMETRIC_RANGE[qType]
    return ONNX_INT_TYPE_RANGE[qType]


def get_qrange_for_qType(  # noqa: N802
    qType: int,  # noqa: N803
    reduce_range: bool = False,
    symmetric: bool = False,
) -> int:
    """The distance of the largest number from the smallest."""
    low, high = get_qmin_qmax_for_qType(qType, reduce_range, symmetric)
    return int(high) - int(low)
