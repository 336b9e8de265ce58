"""Computes scales and zero points from ranges, and quantized numbers from numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto

from ._types import DTYPES, ONNX_INT_TYPE_RANGE, get_qmin_qmax_for_qType

FLOAT8_MAX = 448.0  # the largest number of FLOAT8E4M3FN


def _as_float(value: Any) -> np.ndarray:
    """A number or an array of 16 or 32 bits."""
    array = np.asarray(value)
    return array if array.dtype in (np.float16, np.float32) else array.astype(np.float32)


def compute_scale_zp(
    rmin: Any,
    rmax: Any,
    qmin: Any,
    qmax: Any,
    symmetric: bool = False,
    min_real_range: float | None = None,
) -> list[np.ndarray]:
    """Zero point and scale that map [rmin, rmax] to [qmin, qmax]. Zero is always exact.

    rmin, rmax: numbers, or arrays of as many ranges; the scale has their type.
    qmin, qmax: of the integer type; the zero point has that type.
    """
    bottom, top = np.asarray(qmin), np.asarray(qmax)
    if bottom > 0 or top < 0:
        raise ValueError(f"expected qmin <= 0 <= qmax, got qmin = {qmin}, qmax = {qmax}")
    low, high = _as_float(rmin), _as_float(rmax)
    real = high.dtype
    low = np.minimum(low, low.dtype.type(0)).astype(np.float64)
    high = np.maximum(high, real.type(0)).astype(np.float64)
    if min_real_range is not None:
        high = np.maximum(high, (low + min_real_range).astype(real))
    if symmetric:
        high = np.maximum(-low, high)
        low = -high
    lowest, highest = bottom.astype(np.float64), top.astype(np.float64)
    scale = np.asarray((high - low) / (highest - lowest))
    is_tiny = scale < np.finfo(real).tiny
    scale = np.where(is_tiny, 1.0, scale)
    # The middle of the integers does not depend on the range, so all channels of a weight share it.
    zero = np.full(scale.shape, (lowest + highest) / 2) if symmetric else lowest - low / scale
    zero = np.where(is_tiny, 0, np.round(zero))
    return [zero.astype(bottom.dtype), scale.astype(real)]


def compute_scale_zp_float8(element_type: int, std: Any) -> list[np.ndarray]:
    """Zero, and the scale that maps the deviation std to that of all float 8 numbers."""
    if element_type != TensorProto.FLOAT8E4M3FN:
        raise ValueError(f"Quantization to element_type={element_type} not implemented.")
    every = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    deviation = np.asarray(std)
    scale = deviation / np.std(every[np.isfinite(every)])
    return [np.array(0, ml_dtypes.float8_e4m3fn), np.asarray(scale, deviation.dtype)]


def snap_zero_point_to_uint8(
    rmin: Any, rmax: Any, qmin: int = 0, qmax: int = 255, min_real_range: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Zero point and scale for [rmin, rmax], where zero is either the first or the middle number.

    The scale is the least that clips neither side.
    """
    first, last = int(qmin), int(qmax)
    middle = (first + last + 1) // 2
    low = min(float(np.squeeze(rmin)), 0.0)
    high = max(float(np.squeeze(rmax)), 0.0)
    least = min_real_range if min_real_range is not None and min_real_range > 0 else 0.0
    high = max(high, low + least)
    if low >= 0:
        zero, scale = first, (high or 1.0) / (last - first)
    else:
        zero, scale = middle, max(-low / (middle - first), high / (last - middle))
    scale = max(scale, least / (last - first))
    return np.array(zero, np.uint8), np.array(scale, np.float32)


def compute_scale_zp_blocked(
    weight: np.ndarray, quant_type: int, axis: int, block_size: int, symmetric: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Zero points and scales of blocks along an axis of a matrix, the last one perhaps shorter.

    Both have the rank of the weight, as DequantizeLinear-21 requires.
    """
    if weight.ndim != 2:
        raise NotImplementedError(
            f"blocks of weights of rank 2: expected a matrix, got the shape {weight.shape}"
        )
    moved = np.moveaxis(weight, axis, 0)
    blocks = -(-moved.shape[0] // block_size)
    missing = blocks * block_size - moved.shape[0]
    # Zeros do not change a range, because each is widened to hold zero anyway.
    padded = np.pad(moved, [(0, missing), (0, 0)])
    grouped = padded.reshape(blocks, block_size, moved.shape[1])
    limits = get_qmin_qmax_for_qType(quant_type, False, symmetric)
    zero, scale = compute_scale_zp(grouped.min(1), grouped.max(1), *limits, symmetric)
    return np.moveaxis(zero, 0, axis), np.moveaxis(scale, 0, axis)


def compute_data_quant_params(
    data: np.ndarray,
    quant_type: int,
    symmetric: bool,
    reduce_range: bool = False,
    min_real_range: float | None = None,
    rmin_override: float | None = None,
    rmax_override: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Zero point and scale for data."""
    if not isinstance(data, np.ndarray):
        raise TypeError(f"Weight must be given as an array not {type(data)}.")
    if quant_type == TensorProto.FLOAT8E4M3FN:
        if reduce_range:
            raise RuntimeError("Unsupported option reduce_range=True for float 8.")
        zero, scale = compute_scale_zp_float8(quant_type, np.std(data))
        return zero, scale
    low = rmin_override if rmin_override is not None else data.min(initial=0)
    high = rmax_override if rmax_override is not None else data.max(initial=0)
    limits = get_qmin_qmax_for_qType(quant_type, reduce_range, symmetric)
    if not data.size:
        return np.array(0, limits[0].dtype), np.array(1, data.dtype)
    ends = (np.asarray(low, data.dtype), np.asarray(high, data.dtype))
    zero, scale = compute_scale_zp(*ends, *limits, symmetric, min_real_range)
    return zero, scale


def quantize_nparray(
    qType: int,  # noqa: N803 - the name that it has in onnxruntime
    arr: np.ndarray,
    scale: Any,
    zero_point: Any,
    low: int | None = None,
    high: int | None = None,
) -> np.ndarray:
    """round(arr / scale) + zero_point, saturated; scale and zero point are broadcast."""
    if qType not in DTYPES:
        raise ValueError(f"Unexpected data type {qType} requested: no type of quantized values")
    if qType == TensorProto.FLOAT8E4M3FN:
        if np.any(np.asarray(zero_point).astype(np.float32) != 0):
            raise NotImplementedError(f"float 8: expected the zero point 0, got {zero_point!r}")
        real = arr.astype(np.float32) / np.asarray(scale, np.float32)
        return np.clip(real, -FLOAT8_MAX, FLOAT8_MAX).astype(DTYPES[qType])
    bottom, top = (int(limit) for limit in ONNX_INT_TYPE_RANGE[qType])
    bottom = bottom if low is None else max(bottom, int(low))
    top = top if high is None else min(top, int(high))
    zero = np.asarray(zero_point).astype(np.float32)
    numbers = np.round(arr.astype(np.float32) / np.asarray(scale, np.float32)) + zero
    return np.clip(numbers, bottom, top).astype(DTYPES[qType])


def quantize_data(
    data: np.ndarray,
    qType: int,  # noqa: N803
    symmetric: bool,
    reduce_range: bool = False,
    min_real_range: float | None = None,
    rmin_override: float | None = None,
    rmax_override: float | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Zero point, scale and quantized data."""
    zero, scale = compute_data_quant_params(
        data, qType, symmetric, reduce_range, min_real_range, rmin_override, rmax_override
    )
    return zero, scale, quantize_nparray(qType, data, scale, zero)


def normalize_axis(axis: int, rank: int) -> tuple[bool, int]:
    """The axis, counted from the first one, and whether a tensor of that rank has it."""
    counted = axis + rank if axis < 0 else axis
    return 0 <= counted < rank, counted


def smooth_distribution(p: np.ndarray, eps: float = 0.0001) -> np.ndarray | None:
    """Moves a little weight from positive entries to zero ones; None if there are no positive ones.

    Also None if the entries are so small that the result would not be positive.
    """
    present = p != 0
    count = np.count_nonzero(present)
    if count == 0:
        return None
    taken = eps * (p.size - count) / count
    smoothed = p.astype(np.float32) + np.where(present, -taken, eps).astype(np.float32)
    return smoothed if (smoothed > 0).all() else None


def pack_bytes_to_4bit(src_8bit: bytes) -> bytearray:
    """Joins 4-bit numbers in pairs, the first one in the lower half of a byte."""
    numbers = np.frombuffer(src_8bit, np.uint8) & 0xF
    even = np.pad(numbers, (0, numbers.size % 2)).reshape(-1, 2)
    return bytearray((even[:, 0] | even[:, 1] << 4).tobytes())
