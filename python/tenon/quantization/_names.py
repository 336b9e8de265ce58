"""Names of what quantization adds to a graph, by which tools find it again."""

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
    """What that node reads, if the tensor's name is the model's output."""
    return tensor_name + QUANT_INPUT_SUFFIX


def add_quant_output_suffix(tensor_name: str) -> str:
    """What that node makes."""
    return tensor_name + QUANT_OUTPUT_SUFFIX


def add_dequant_suffix(tensor_name: str) -> str:
    """The node that makes numbers of a quantized tensor."""
    return f"{tensor_name}_{DEQUANT_OP_NAME}"


def add_dequant_input_suffix(tensor_name: str) -> str:
    """What that node reads."""
    return tensor_name + DEQUANT_INPUT_SUFFIX


def add_dequant_output_suffix(tensor_name: str) -> str:
    """What that node makes."""
    return tensor_name + DEQUANT_OUTPUT_SUFFIX
