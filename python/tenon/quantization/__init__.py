"""Quantization of models, as onnxruntime.quantization does it. Needs the package onnx."""

from .calibrate import (
    CalibraterBase,
    CalibrationDataReader,
    CalibrationMethod,
    EntropyCalibrater,
    MinMaxCalibrater,
    PercentileCalibrater,
    TensorData,
    TensorsData,
    create_calibrator,
    load_tensors_data,
    save_tensors_data,
)
from .quant_utils import QuantFormat, QuantizationMode, QuantType
from .quantize import (
    DynamicQuantConfig,
    QuantConfig,
    StaticQuantConfig,
    get_qdq_config,
    quantize,
    quantize_dynamic,
    quantize_static,
)
from .shape_inference import quant_pre_process

__all__ = [
    "CalibraterBase",
    "CalibrationDataReader",
    "CalibrationMethod",
    "DynamicQuantConfig",
    "EntropyCalibrater",
    "MinMaxCalibrater",
    "PercentileCalibrater",
    "QuantConfig",
    "QuantFormat",
    "QuantType",
    "QuantizationMode",
    "StaticQuantConfig",
    "TensorData",
    "TensorsData",
    "create_calibrator",
    "get_qdq_config",
    "load_tensors_data",
    "quant_pre_process",
    "quantize",
    "quantize_dynamic",
    "quantize_static",
    "save_tensors_data",
]
