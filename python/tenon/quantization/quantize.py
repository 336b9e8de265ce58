"""Quantization of whole models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

from ._dynamic import DYNAMIC_OPS, DynamicQuantizer
from ._graph import ModelLike, load, save
from ._qoperator import QOperatorQuantizer
from ._settings import Settings
from ._static import STATIC_OPS, QdqQuantizer
from .calibrate import (
    CalibrationDataReader,
    CalibrationMethod,
    TensorsData,
    create_calibrator,
)
from .quant_utils import QuantFormat, QuantType

# Options of onnxruntime's that are parameters of calibrators here.
CALIBRATION = {
    "CalibTensorRangeSymmetric": "symmetric",
    "CalibMovingAverage": "moving_average",
    "CalibMovingAverageConstant": "averaging_constant",
    "CalibPercentile": "percentile",
    "CalibNumBins": "num_bins",
    "CalibNumQuantizedBins": "num_quantized_bins",
}


class QuantConfig:
    """What quantize is to do."""

    def __init__(
        self,
        activation_type: QuantType = QuantType.QUInt8,
        weight_type: QuantType = QuantType.QInt8,
        op_types_to_quantize: Sequence[str] | None = None,
        nodes_to_quantize: Sequence[str] | None = None,
        nodes_to_exclude: Sequence[str] | None = None,
        per_channel: bool = False,
        reduce_range: bool = False,
        use_external_data_format: bool = False,
    ) -> None:
        self.activation_type = activation_type
        self.weight_type = weight_type
        self.op_types_to_quantize = op_types_to_quantize
        self.nodes_to_quantize = nodes_to_quantize
        self.nodes_to_exclude = nodes_to_exclude
        self.per_channel = per_channel
        self.reduce_range = reduce_range
        self.use_external_data_format = use_external_data_format


class StaticQuantConfig(QuantConfig):
    """For quantize_static."""

    def __init__(
        self,
        calibration_data_reader: CalibrationDataReader,
        calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
        quant_format: QuantFormat = QuantFormat.QDQ,
        activation_type: QuantType = QuantType.QInt8,
        weight_type: QuantType = QuantType.QInt8,
        op_types_to_quantize: Sequence[str] | None = None,
        nodes_to_quantize: Sequence[str] | None = None,
        nodes_to_exclude: Sequence[str] | None = None,
        per_channel: bool = False,
        reduce_range: bool = False,
        use_external_data_format: bool = False,
        calibration_providers: Sequence[str] | None = None,
        extra_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            activation_type,
            weight_type,
            op_types_to_quantize,
            nodes_to_quantize,
            nodes_to_exclude,
            per_channel,
            reduce_range,
            use_external_data_format,
        )
        self.calibration_data_reader = calibration_data_reader
        self.calibrate_method = calibrate_method
        self.quant_format = quant_format
        self.calibration_providers = calibration_providers
        self.extra_options = dict(extra_options or {})


class DynamicQuantConfig(QuantConfig):
    """For quantize_dynamic."""

    def __init__(
        self,
        weight_type: QuantType = QuantType.QInt8,
        op_types_to_quantize: Sequence[str] | None = None,
        nodes_to_quantize: Sequence[str] | None = None,
        nodes_to_exclude: Sequence[str] | None = None,
        per_channel: bool = False,
        reduce_range: bool = False,
        use_external_data_format: bool = False,
        extra_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            weight_type=weight_type,
            op_types_to_quantize=op_types_to_quantize,
            nodes_to_quantize=nodes_to_quantize,
            nodes_to_exclude=nodes_to_exclude,
            per_channel=per_channel,
            reduce_range=reduce_range,
            use_external_data_format=use_external_data_format,
        )
        self.extra_options = dict(extra_options or {})


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
    """Quantizes weights ahead and values in each run: no data is needed."""
    settings = Settings(
        weight_type,
        per_channel=per_channel,
        reduce_range=reduce_range,
        op_types=tuple(op_types_to_quantize or DYNAMIC_OPS),
        nodes=tuple(nodes_to_quantize or ()),
        excluded=tuple(nodes_to_exclude or ()),
        extra=dict(extra_options or {}),
    )
    model = DynamicQuantizer(load(model_input), settings).quantize()
    save(model, model_output, use_external_data_format)


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
    calibration_providers: Sequence[str] | None = None,
    extra_options: Mapping[str, Any] | None = None,
    calibration_cache_path: str | os.PathLike[str] | None = None,
) -> None:
    """Quantizes weights and values by the ranges that the values have on given data."""
    extra = dict(extra_options or {})
    model = load(model_input)
    settings = Settings(
        weight_type,
        activation_type,
        per_channel,
        reduce_range,
        tuple(op_types_to_quantize or STATIC_OPS),
        tuple(nodes_to_quantize or ()),
        tuple(nodes_to_exclude or ()),
        extra,
    )
    if calibration_data_reader is None:
        raise ValueError("expected a reader of calibration data")
    ranges = calibrate(model, calibration_data_reader, calibrate_method, settings)
    quantizer = QdqQuantizer if quant_format == QuantFormat.QDQ else QOperatorQuantizer
    save(quantizer(model, settings, ranges).quantize(), model_output, use_external_data_format)


def calibrate(
    model: onnx.ModelProto,
    reader: CalibrationDataReader,
    method: CalibrationMethod,
    settings: Settings,
) -> TensorsData:
    """The ranges of the model's values."""
    extra = settings.extra
    options = {name: extra[key] for key, name in CALIBRATION.items() if key in extra}
    calibrator = create_calibrator(
        model, settings.op_types, calibrate_method=method, extra_options=options
    )
    calibrator.collect_data(reader)
    return calibrator.compute_data()


def quantize(
    model_input: ModelLike, model_output: str | os.PathLike[str], quant_config: QuantConfig
) -> None:
    """quantize_static or quantize_dynamic, as the configuration is for one or the other."""
    if not isinstance(quant_config, StaticQuantConfig | DynamicQuantConfig):
        raise TypeError(
            "Invalid quantization config type, it must be either StaticQuantConfig or "
            "DynamicQuantConfig."
        )
    shared: dict[str, Any] = {
        "op_types_to_quantize": quant_config.op_types_to_quantize,
        "per_channel": quant_config.per_channel,
        "reduce_range": quant_config.reduce_range,
        "weight_type": quant_config.weight_type,
        "nodes_to_quantize": quant_config.nodes_to_quantize,
        "nodes_to_exclude": quant_config.nodes_to_exclude,
        "use_external_data_format": quant_config.use_external_data_format,
    }
    if isinstance(quant_config, StaticQuantConfig):
        quantize_static(
            model_input,
            model_output,
            quant_config.calibration_data_reader,
            calibrate_method=quant_config.calibrate_method,
            quant_format=quant_config.quant_format,
            activation_type=quant_config.activation_type,
            extra_options=quant_config.extra_options,
            **shared,
        )
    else:
        extra = quant_config.extra_options
        quantize_dynamic(model_input, model_output, extra_options=extra, **shared)


def get_qdq_config(
    model_input: ModelLike,
    calibration_data_reader: CalibrationDataReader,
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    calibrate_args: Mapping[str, Any] | None = None,
    activation_type: QuantType = QuantType.QUInt8,
    weight_type: QuantType = QuantType.QInt8,
    activation_symmetric: bool = False,
    weight_symmetric: bool | None = None,
    per_channel: bool = False,
    reduce_range: bool = False,
    keep_removable_activations: bool = False,
    min_real_range: float | None = None,
    tensor_quant_overrides: Mapping[str, Any] | None = None,
    calibration_providers: Sequence[str] | None = None,
    op_types_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str]
    | Callable[[onnx.ModelProto, onnx.NodeProto], bool]
    | None = None,
    extra_options: Mapping[str, Any] | None = None,
) -> StaticQuantConfig:
    """A configuration for pairs of (de)quantization around every operator of the model."""
    if tensor_quant_overrides:
        raise NotImplementedError("overrides for single tensors")
    model = model_input if isinstance(model_input, onnx.ModelProto) else onnx.load(model_input)
    excluded = nodes_to_exclude or []
    if callable(excluded):
        excluded = [node.name for node in model.graph.node if excluded(model, node)]
    extra: dict[str, Any] = {"ActivationSymmetric": activation_symmetric}
    if weight_symmetric is not None:
        extra["WeightSymmetric"] = weight_symmetric
    if min_real_range is not None:
        extra["MinimumRealRange"] = min_real_range
    names = {parameter: key for key, parameter in CALIBRATION.items()}
    extra |= {names.get(key, key): value for key, value in (calibrate_args or {}).items()}
    present = [one for one in STATIC_OPS if any(n.op_type == one for n in model.graph.node)]
    return StaticQuantConfig(
        calibration_data_reader,
        calibrate_method,
        QuantFormat.QDQ,
        activation_type,
        weight_type,
        op_types_to_quantize or present,
        nodes_to_exclude=excluded,
        per_channel=per_channel,
        reduce_range=reduce_range,
        calibration_providers=calibration_providers,
        extra_options={**extra, **(extra_options or {})},
    )
