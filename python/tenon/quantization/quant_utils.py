"""Quantization types and arithmetic, and other names that programs import from here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import onnx
from onnx import NodeProto, TensorProto, helper

from ._arithmetic import (
    compute_data_quant_params,
    compute_scale_zp,
    compute_scale_zp_blocked,
    compute_scale_zp_float8,
    normalize_axis,
    pack_bytes_to_4bit,
    quantize_data,
    quantize_nparray,
    smooth_distribution,
    snap_zero_point_to_uint8,
)
from ._calibration_table import read_calibration_table, write_calibration_table
from ._loading import (
    MODEL_SIZE_THRESHOLD,
    add_infer_metadata,
    add_pre_process_metadata,
    generate_identified_filename,
    get_opset_version,
    load_model_with_shape_infer,
    model_has_external_data,
    model_has_infer_metadata,
    model_has_pre_process_metadata,
    save_and_reload_model_with_shape_infer,
    update_opset_version,
)
from ._names import CONTRIB as ms_domain  # noqa: N811 - the name that it has in onnxruntime
from ._names import (
    DEQUANT_OP_NAME,
    DEQUANT_OUTPUT_SUFFIX,
    QUANT_INPUT_SUFFIX,
    QUANT_OP_NAME,
    TENSOR_NAME_QUANT_SUFFIX,
    add_dequant_input_suffix,
    add_dequant_output_suffix,
    add_dequant_suffix,
    add_quant_input_suffix,
    add_quant_output_suffix,
    add_quant_suffix,
)
from ._tensors import attribute_to_kwarg, quantize_onnx_initializer, tensor_proto_to_array
from ._types import (
    DTYPES as ONNX_TYPE_TO_NP_TYPE,
)
from ._types import (
    ONNX_INT_TYPE_RANGE,
    ONNX_INT_TYPE_REDUCED_RANGE,
    ONNX_INT_TYPE_SYMMETRIC_RANGE,
    QuantFormat,
    QuantizationMode,
    QuantizedValueType,
    QuantType,
    get_qmin_qmax_for_qType,
    get_qrange_for_qType,
)
from .onnx_model import find_by_name
from .shape_inference import optimize

__all__ = [
    "DEQUANT_OP_NAME",
    "DEQUANT_OUTPUT_SUFFIX",
    "FLOAT8_TYPES",
    "MODEL_SIZE_THRESHOLD",
    "ONNX_INT_TYPE_RANGE",
    "ONNX_INT_TYPE_REDUCED_RANGE",
    "ONNX_INT_TYPE_SYMMETRIC_RANGE",
    "ONNX_TYPE_TO_NP_TYPE",
    "QUANT_INPUT_SUFFIX",
    "QUANT_OP_NAME",
    "TENSOR_NAME_QUANT_SUFFIX",
    "QuantFormat",
    "QuantType",
    "QuantizationMode",
    "QuantizedValueType",
    "add_dequant_input_suffix",
    "add_dequant_output_suffix",
    "add_dequant_suffix",
    "add_infer_metadata",
    "add_pre_process_metadata",
    "add_quant_input_suffix",
    "add_quant_output_suffix",
    "add_quant_suffix",
    "attribute_to_kwarg",
    "compute_data_quant_params",
    "compute_scale_zp",
    "compute_scale_zp_blocked",
    "compute_scale_zp_float8",
    "find_by_name",
    "generate_identified_filename",
    "get_elem_index",
    "get_mul_node",
    "get_opset_version",
    "get_qmin_qmax_for_qType",
    "get_qrange_for_qType",
    "load_model_with_shape_infer",
    "model_has_external_data",
    "model_has_infer_metadata",
    "model_has_pre_process_metadata",
    "ms_domain",
    "normalize_axis",
    "onnx_domain",
    "optimize_model",
    "pack_bytes_to_4bit",
    "quantize_data",
    "quantize_nparray",
    "quantize_onnx_initializer",
    "read_calibration_table",
    "save_and_reload_model_with_shape_infer",
    "smooth_distribution",
    "snap_zero_point_to_uint8",
    "tensor_proto_to_array",
    "type_to_name",
    "update_opset_version",
    "write_calibration_table",
]

onnx_domain = "ai.onnx"
FLOAT8_TYPES = {
    TensorProto.FLOAT8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ,
    TensorProto.FLOAT8E5M2,
    TensorProto.FLOAT8E5M2FNUZ,
}
type_to_name = {number: name for name, number in TensorProto.DataType.items()}


def get_elem_index(elem_name: str, elem_list: Sequence[str]) -> int:
    """The last index of an element, or -1."""
    return max((i for i, one in enumerate(elem_list) if one == elem_name), default=-1)


def get_mul_node(inputs: Sequence[str], output: str, name: str) -> NodeProto:
    """A product."""
    return helper.make_node("Mul", inputs, [output], name)


def optimize_model(model_path: Any, opt_model_path: Any) -> None:
    """Writes the model after a session's basic rewrites."""
    onnx.save(optimize(onnx.load(os.fspath(model_path))), os.fspath(opt_model_path))
