"""Quantization of whole models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from ._calibration_data import CalibrationDataReader, CalibrationMethod
from ._configuration import (
    DynamicQuantConfig,
    QuantConfig,
    StaticQuantConfig,
    get_qdq_config,
)
from ._loading import ModelLike, has_float16, infer_shapes, load, update_opset_version
from ._ranges import ranges_of
from ._settings import DEFAULTS, checked
from ._smooth import copied, smooth
from ._types import SIXTEEN_BITS, QuantFormat, QuantizationMode, QuantType, tensor_type_of
from .matmul_nbits_quantizer import MatMulNBitsQuantizer, WeightOnlyQuantConfig
from .onnx_quantizer import ONNXQuantizer
from .qdq_quantizer import QDQQuantizer
from .registry import IntegerOpsRegistry, QDQRegistry, QLinearOpsRegistry

__all__ = [
    "DynamicQuantConfig",
    "QuantConfig",
    "QuantizationMode",
    "StaticQuantConfig",
    "check_static_quant_arguments",
    "get_qdq_config",
    "quantize",
    "quantize_dynamic",
    "quantize_static",
]

FLOAT8 = QuantType.QFLOAT8E4M3FN


def check_static_quant_arguments(
    quant_format: QuantFormat, activation_type: QuantType, weight_type: QuantType
) -> None:
    """Raises ValueError for types that cannot be combined."""
    asked = f"activation_type={activation_type}, weight_type={weight_type}"
    if activation_type == QuantType.QInt8 and weight_type == QuantType.QUInt8:
        raise ValueError(f"signed values have signed weights, got {asked}")
    if (activation_type == FLOAT8) != (weight_type == FLOAT8):
        raise ValueError(f"values and weights are QFLOAT8E4M3FN both or neither, got {asked}")
    kinds = {tensor_type_of(activation_type), tensor_type_of(weight_type)}
    if kinds & SIXTEEN_BITS and quant_format != QuantFormat.QDQ:
        raise ValueError(f"Only QuantFormat.QDQ supports 16-bit quantization types, got {asked}")


def quantize_static(
    model_input: ModelLike,
    model_output: str | os.PathLike[str],
    calibration_data_reader: CalibrationDataReader | None = None,
    quant_format: QuantFormat = QuantFormat.QDQ,
    op_types_to_quantize: Sequence[str] | None = None,
    per_channel: bool = False,
    reduce_range: bool = False,
    activation_type: QuantType = QuantType.QInt8,
    weight_type: QuantType = QuantType.QInt8,
    nodes_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str] | None = None,
    use_external_data_format: bool = False,
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    calibration_providers: Sequence[Any] | None = None,
    extra_options: Mapping[str, Any] | None = None,
    calibration_cache_path: str | os.PathLike[str] | None = None,
) -> None:
    """Quantizes weights, and values by their ranges on given data.

    calibration_cache_path  a file of ranges. If it exists it is read, and no data is needed;
                            otherwise it is written.
    extra_options           see the guide
    """
    if FLOAT8 in (activation_type, weight_type) and (
        calibrate_method != CalibrationMethod.Distribution
    ):
        raise ValueError(
            "Only Distribution calibration method is supported for float quantization, "
            f"got {calibrate_method.name}"
        )
    check_static_quant_arguments(quant_format, activation_type, weight_type)
    extra = checked(extra_options)
    op_types = list(op_types_to_quantize or {**QLinearOpsRegistry, **QDQRegistry})
    loaded = load(model_input)
    excluded = list(nodes_to_exclude or ())
    if extra.get("SmoothQuant"):
        loaded, added = _smoothed(loaded, calibration_data_reader, extra, excluded)
        excluded += added
    is_standard = quant_format == QuantFormat.QDQ and not extra.get("UseQDQContribOps")
    # QuantizeLinear has an axis since version 13, and float16 since version 19.
    least = 19 if has_float16(loaded) else 13 if per_channel else 0
    model = update_opset_version(
        loaded,
        weight_type,
        activation_type,
        extra.get("TensorQuantOverrides"),
        extra.get("BlockSize") or 0,
        least=least if is_standard else 0,
    )
    ranges = ranges_of(
        model,
        calibration_data_reader,
        calibrate_method,
        op_types,
        calibration_providers,
        extra,
        calibration_cache_path,
    )
    given = (weight_type, activation_type, ranges, nodes_to_quantize, excluded)
    quantizer: QDQQuantizer | ONNXQuantizer
    if quant_format == QuantFormat.QDQ:
        quantizer = QDQQuantizer(model, per_channel, reduce_range, *given, op_types, extra)
    else:
        mode = QuantizationMode.QLinearOps
        quantizer = ONNXQuantizer(
            model, per_channel, reduce_range, mode, True, *given, op_types, extra
        )
    quantizer.quantize_model()
    quantizer.model.save_model_to_file(model_output, use_external_data_format)


def _smoothed(
    model: onnx.ModelProto,
    reader: CalibrationDataReader | None,
    extra: Mapping[str, Any],
    excluded: Sequence[str],
) -> tuple[onnx.ModelProto, list[str]]:
    """The model with equalized channels, and the names of nodes that this adds."""
    if reader is None:
        raise ValueError("SmoothQuant: expected a calibration_data_reader, a cache will not do")
    alpha, folding = (
        extra.get(key, DEFAULTS[key]) for key in ("SmoothQuantAlpha", "SmoothQuantFolding")
    )
    added = smooth(model, copied(reader), alpha, folding, excluded)
    return infer_shapes(model), added


def quantize_dynamic(
    model_input: ModelLike,
    model_output: str | os.PathLike[str],
    op_types_to_quantize: Sequence[str] | None = None,
    per_channel: bool = False,
    reduce_range: bool = False,
    weight_type: QuantType = QuantType.QInt8,
    nodes_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str] | None = None,
    use_external_data_format: bool = False,
    extra_options: Mapping[str, Any] | None = None,
) -> None:
    """Quantizes weights ahead, and values in each run. No data is needed."""
    quantizer = ONNXQuantizer(
        update_opset_version(load(model_input), weight_type, least=11),  # DynamicQuantizeLinear
        per_channel,
        reduce_range,
        QuantizationMode.IntegerOps,
        False,
        weight_type,
        QuantType.QUInt8,
        None,
        nodes_to_quantize,
        nodes_to_exclude,
        op_types_to_quantize or list(IntegerOpsRegistry),
        {"MatMulConstBOnly": True, **(extra_options or {})},
    )
    quantizer.quantize_model()
    quantizer.model.save_model_to_file(model_output, use_external_data_format)


def quantize(
    model_input: ModelLike,
    model_output: str | os.PathLike[str],
    quant_config: QuantConfig | WeightOnlyQuantConfig,
) -> None:
    """Quantizes by a configuration: that of quantize_static, quantize_dynamic or few bits."""
    if isinstance(quant_config, WeightOnlyQuantConfig):
        few = MatMulNBitsQuantizer(model_input, algo_config=quant_config)
        few.process()
        few.model.save_model_to_file(model_output, True)
        return
    if not isinstance(quant_config, StaticQuantConfig | DynamicQuantConfig):
        raise TypeError(
            "Invalid quantization config type, it must be either StaticQuantConfig, "
            f"DynamicQuantConfig, or WeightOnlyQuantConfig, got {type(quant_config).__name__}"
        )
    given = dict(vars(quant_config))
    if isinstance(quant_config, StaticQuantConfig):
        quantize_static(model_input, model_output, **given)
    else:
        del given["activation_type"]
        quantize_dynamic(model_input, model_output, **given)
