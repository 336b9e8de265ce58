"""The settings of quantize, as an object."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

from ._calibration_data import CalibrationDataReader, CalibrationMethod
from ._loading import MODEL_SIZE_THRESHOLD, ModelLike, get_opset_version
from ._names import DEQUANT_OP_NAME, QUANT_OP_NAME
from ._types import FOUR_BITS, SIXTEEN_BITS, QuantFormat, QuantType
from .tensor_quant_overrides import TensorQuantOverridesHelper

# Options of onnxruntime's that are parameters of calibrators.
CALIBRATION = {
    "CalibMaxIntermediateOutputs": "max_intermediate_outputs",
    "CalibMovingAverage": "moving_average",
    "CalibMovingAverageConstant": "averaging_constant",
    "CalibNumBins": "num_bins",
    "CalibNumQuantizedBins": "num_quantized_bins",
    "CalibPercentile": "percentile",
    "CalibTensorRangeSymmetric": "symmetric",
}
NEVER_QUANTIZED = frozenset(("Cast", DEQUANT_OP_NAME, QUANT_OP_NAME))


class QuantConfig:
    """The settings that both kinds of quantization share."""

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
        self.op_types_to_quantize = op_types_to_quantize or []
        self.nodes_to_quantize = nodes_to_quantize or []
        self.nodes_to_exclude = nodes_to_exclude or []
        self.per_channel = per_channel
        self.reduce_range = reduce_range
        self.use_external_data_format = use_external_data_format


class StaticQuantConfig(QuantConfig):
    """The settings of quantize_static."""

    def __init__(
        self,
        calibration_data_reader: CalibrationDataReader | None,
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
        calibration_providers: Sequence[Any] | None = None,
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
    """The settings of quantize_dynamic."""

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
    tensor_quant_overrides: Mapping[str, list[dict[str, Any]]] | None = None,
    calibration_providers: Sequence[Any] | None = None,
    op_types_to_quantize: Sequence[str] | None = None,
    nodes_to_exclude: Sequence[str]
    | Callable[[onnx.ModelProto, onnx.NodeProto], bool]
    | None = None,
    extra_options: Mapping[str, Any] | None = None,
) -> StaticQuantConfig:
    """A configuration that puts pairs of (de)quantization around every operator of the model.

    calibrate_args    parameters of the calibrator
    nodes_to_exclude  names, or a function that says whether a node is left out
    extra_options     take precedence over the other parameters
    """
    is_model = isinstance(model_input, onnx.ModelProto)
    model = model_input if is_model else onnx.load(os.fspath(model_input), load_external_data=False)
    assert isinstance(model, onnx.ModelProto)
    excluded: set[str] = set()
    kinds: dict[str, None] = {}
    for node in model.graph.node:
        if op_types_to_quantize and node.op_type not in op_types_to_quantize:
            continue
        if callable(nodes_to_exclude):
            is_left_out = nodes_to_exclude(model, node)
        else:
            is_left_out = node.name in (nodes_to_exclude or ())
        if is_left_out:
            excluded.add(node.name)
        elif node.op_type not in NEVER_QUANTIZED:
            kinds[node.op_type] = None
    if not callable(nodes_to_exclude):
        excluded.update(nodes_to_exclude or ())
    overrides = copy.deepcopy(dict(tensor_quant_overrides or {}))
    extra: dict[str, Any] = {
        "MinimumRealRange": min_real_range,
        "QDQKeepRemovableActivations": keep_removable_activations,
        "ActivationSymmetric": activation_symmetric,
        "WeightSymmetric": weight_symmetric,
        "ForceQuantizeNoInputCheck": True,
        "TensorQuantOverrides": overrides,
    }
    given = calibrate_args or {}
    extra |= {key: given[name] for key, name in CALIBRATION.items() if name in given}
    if _needs_contrib(model, {activation_type, weight_type}, overrides):
        extra["UseQDQContribOps"] = True
    has_external = any(
        onnx.external_data_helper.uses_external_data(one) for one in model.graph.initializer
    )
    return StaticQuantConfig(
        calibration_data_reader,
        calibrate_method,
        QuantFormat.QDQ,
        activation_type,
        weight_type,
        list(op_types_to_quantize or kinds),
        nodes_to_exclude=sorted(excluded),
        per_channel=per_channel,
        reduce_range=reduce_range,
        use_external_data_format=has_external or model.ByteSize() >= MODEL_SIZE_THRESHOLD,
        calibration_providers=calibration_providers,
        extra_options={**extra, **(extra_options or {})},
    )


def _needs_contrib(
    model: onnx.ModelProto, types: set[QuantType], overrides: dict[str, list[dict[str, Any]]]
) -> bool:
    """Whether 4-bit types are used without a reason to convert the model to opset 21."""
    types = types | TensorQuantOverridesHelper(overrides).get_quant_types()
    kinds = {one.tensor_type for one in types}
    return get_opset_version(model) < 21 and bool(kinds & FOUR_BITS) and not kinds & SIXTEEN_BITS
