"""Scales and zero points of a model's values and constants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from ._arithmetic import (
    compute_scale_zp,
    compute_scale_zp_blocked,
    compute_scale_zp_float8,
    normalize_axis,
    snap_zero_point_to_uint8,
)
from ._calibration_data import TensorData
from ._graph import Graph
from ._settings import Settings
from ._tensors import broadcast_along, number_of, tensor_proto_to_array
from ._types import DTYPES, ONNX_INT_TYPE_RANGE, get_qmin_qmax_for_qType, tensor_type_of

Override = Mapping[str, Any]
INT32 = np.iinfo(np.int32)


@dataclass
class Scale:
    """The quantization of a tensor."""

    zero_point: np.ndarray
    scale: np.ndarray
    kind: int  # the number of the integers' ONNX type
    axis: int | None = None  # None: one scale and one zero point
    block_size: int = 0  # the number of indices of the axis that share theirs; 0: none do

    def real_range(self) -> tuple[float, float]:
        """The range to which numbers are clipped."""
        low, high = ONNX_INT_TYPE_RANGE[self.kind]
        zero, scale = float(self.zero_point), float(self.scale)
        return (float(low) - zero) * scale, (float(high) - zero) * scale


@dataclass
class Scales:
    """The quantization of a value, and that with which some of its readers get it."""

    original: Scale
    converted: Scale | None = None
    readers: Collection[str] | None = None  # names of nodes; None: all

    def of_reader(self, name: str) -> Scale:
        """The quantization with which the node gets the value."""
        is_converted = self.readers is None or name in self.readers
        return self.converted if self.converted is not None and is_converted else self.original


def scale_of_value(settings: Settings, data: TensorData, override: Override) -> Scale:
    """By the range of a value, or by its overrides."""
    kind = tensor_type_of(override.get("quant_type", settings.activation_type))
    if "scale" in override and "zero_point" in override:
        real = np.asarray(getattr(data, "lowest", np.float32(0))).dtype
        zero = np.asarray(override["zero_point"]).astype(DTYPES[kind])
        return Scale(zero.reshape(()), np.asarray(override["scale"], real).reshape(()), kind)
    if kind == TensorProto.FLOAT8E4M3FN:
        zero, scale = compute_scale_zp_float8(kind, np.squeeze(data.avg_std[1]))
        return Scale(zero, scale, kind)
    seen = data.range_value
    low = np.min(override.get("rmin", seen[0]))
    high = np.max(override.get("rmax", seen[1]))
    symmetric = override.get("symmetric", settings.symmetric_activations)
    limits = get_qmin_qmax_for_qType(kind, override.get("reduce_range", False), symmetric)
    least = settings.option("MinimumRealRange")
    is_snapped = settings.option("ActivationRestrictedAsymmetric") and kind == TensorProto.UINT8
    if is_snapped and not symmetric:
        zero, scale = snap_zero_point_to_uint8(low, high, int(limits[0]), int(limits[1]), least)
    else:
        zero, scale = compute_scale_zp(low, high, *limits, symmetric, least)
    return Scale(zero, scale, kind)


def scale_of_constant(
    settings: Settings,
    tensor: TensorProto,
    kind: int,
    symmetric: bool,
    axis: int | None,
    reduce_range: bool,
    overrides: Sequence[Override] = (),
) -> Scale:
    """By the numbers of a constant, or by its overrides.

    symmetric, reduce_range  the defaults without overrides
    overrides                one for all indices of the axis, or one for each
    """
    first: Override = overrides[0] if overrides else {}
    kind = tensor_type_of(first.get("quant_type", kind))
    axis = checked_axis(tensor, first.get("axis", axis))
    numbers = tensor_proto_to_array(tensor)
    symmetric = first.get("symmetric", symmetric)
    if "scale" in first and "zero_point" in first:
        zero = _each(overrides, "zero_point", tensor, axis).astype(DTYPES[kind])
        return Scale(
            zero, _each(overrides, "scale", tensor, axis).astype(numbers.dtype), kind, axis
        )
    others = None if axis is None else tuple(i for i in range(numbers.ndim) if i != axis)
    if kind == TensorProto.FLOAT8E4M3FN:
        zero, scale = compute_scale_zp_float8(kind, np.std(numbers, axis=others))
        return Scale(np.full(scale.shape, zero), scale, kind, axis)
    low, high = numbers.min(others, initial=0), numbers.max(others, initial=0)
    if "rmin" in first or "rmax" in first:
        low = _each(overrides, "rmin", tensor, axis) if "rmin" in first else low
        high = _each(overrides, "rmax", tensor, axis) if "rmax" in first else high
        low, high = low.astype(numbers.dtype), high.astype(numbers.dtype)
    limits = get_qmin_qmax_for_qType(kind, first.get("reduce_range", reduce_range), symmetric)
    least = settings.option("MinimumRealRange")
    zero, scale = compute_scale_zp(low, high, *limits, symmetric, least)
    return Scale(zero, scale, kind, axis)


def _each(
    overrides: Sequence[Override], key: str, tensor: TensorProto, axis: int | None
) -> np.ndarray:
    """One number, or one for each index of the axis."""
    if axis is None:
        return np.asarray(overrides[0][key]).reshape(())
    given = np.array([np.asarray(one[key]).item() for one in overrides])
    return np.broadcast_to(given, (tensor.dims[axis],)).copy()


def scale_of_blocks(tensor: TensorProto, kind: int, symmetric: bool, axis: int, size: int) -> Scale:
    """One scale for each block along an axis of a matrix."""
    axis = checked_axis(tensor, axis) or 0
    zero, scale = compute_scale_zp_blocked(
        tensor_proto_to_array(tensor), kind, axis, size, symmetric
    )
    return Scale(zero, scale, kind, axis, size)


def checked_axis(tensor: TensorProto, axis: int | None) -> int | None:
    """The axis, counted from the first one."""
    if axis is None:
        return None
    is_axis, counted = normalize_axis(axis, len(tensor.dims))
    if not is_axis:
        raise ValueError(
            f"Weight '{tensor.name}' has a per-channel axis with value {axis} that is "
            f"out-of-bounds for rank {len(tensor.dims)}"
        )
    return counted


def add_scale(graph: Graph, name: str, scale: Scale, suffix: str = "") -> tuple[str, str]:
    """Adds the constants of a tensor's scale and zero point. Returns their names."""
    zero = graph.add_constant(number_of(scale.zero_point, scale.kind, f"{name}_zero_point{suffix}"))
    kind = helper.np_dtype_to_tensor_dtype(scale.scale.dtype)
    return graph.add_constant(number_of(scale.scale, kind, f"{name}_scale{suffix}")), zero


def scale_wide_enough(
    input_scale: np.ndarray, weight_scale: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    """The weight's scale, or a larger one with which the bias does not overflow 32-bit sums."""
    largest = np.abs(bias.astype(np.float64)).reshape(-1)
    if largest.size % max(weight_scale.size, 1):
        largest = np.full(weight_scale.size, largest.max(initial=0))
    # Groups of channels may share the scales.
    largest = largest.reshape(-1, *weight_scale.shape).max(0, initial=0)
    # A little more than needed, because rounding takes a little away.
    least = 1.0001 * 2 * largest / (2.0**32 - 2)
    present = float(input_scale) * weight_scale.astype(np.float64)
    is_small = (present < least) & (present > 0)
    widened = np.where(
        is_small, weight_scale * least / np.where(is_small, present, 1), weight_scale
    )
    return widened.astype(weight_scale.dtype)


def quantized_bias(
    bias: np.ndarray, input_scale: np.ndarray, weight_scale: np.ndarray, factor: float = 1.0
) -> tuple[np.ndarray, np.ndarray, int | None]:
    """A bias times a factor as 32-bit sums of products, their scale, and its axis if it has one.

    The scale is that of a product. Groups of channels may share those of a weight.
    """
    steps = np.asarray(input_scale.astype(np.float64) * weight_scale.astype(np.float64))
    axis = None
    if steps.size > 1:
        axis = bias.ndim - 1
        steps = np.tile(steps.reshape(-1), bias.shape[axis] // steps.size)
    else:
        steps = steps.reshape(())
    steps = steps.astype(bias.dtype)
    wide = np.round(
        bias.astype(np.float64)
        * factor
        / broadcast_along(steps.astype(np.float64), axis, bias.ndim)
    )
    return np.clip(wide, INT32.min, INT32.max).astype(np.int32), steps, axis
