"""Names of the nodes and values that quantization adds, by which tools find them."""

from __future__ import annotations

QUANT_OP_NAME = "QuantizeLinear"
DEQUANT_OP_NAME = "DequantizeLinear"
QUANT_INPUT_SUFFIX = "_QuantizeLinear_Input"
QUANT_OUTPUT_SUFFIX = "_QuantizeLinear_Output"
DEQUANT_INPUT_SUFFIX = "_DequantizeLinear_Input"
DEQUANT_OUTPUT_SUFFIX = "_DequantizeLinear_Output"
TENSOR_NAME_QUANT_SUFFIX = "_quantized"
PRODUCER = "onnx.quantize"
PRODUCER_VERSION = "0.1.0"
ONNX_DOMAINS = ("", "ai.onnx")
CONTRIB = "com.microsoft"


def add_quant_suffix(tensor_name: str) -> str:
    """The node that quantizes a tensor."""
    return f"{tensor_name}_{QUANT_OP_NAME}"


def add_quant_input_suffix(tensor_name: str) -> str:
    """The input of that node, if the tensor's name is the model's output."""
    return tensor_name + QUANT_INPUT_SUFFIX


def add_quant_output_suffix(tensor_name: str) -> str:
    """The output of that node."""
    return tensor_name + QUANT_OUTPUT_SUFFIX


def add_dequant_suffix(tensor_name: str) -> str:
    """The node that dequantizes a tensor."""
    return f"{tensor_name}_{DEQUANT_OP_NAME}"


def add_dequant_input_suffix(tensor_name: str) -> str:
    """The input of that node."""
    return tensor_name + DEQUANT_INPUT_SUFFIX


def add_dequant_output_suffix(tensor_name: str) -> str:
    """The output of that node."""
    return tensor_name + DEQUANT_OUTPUT_SUFFIX
