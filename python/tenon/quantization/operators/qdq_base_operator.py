"""A rule as a class, as in programs for onnxruntime: QDQRegistry["MyOp"] = MyRule."""

from __future__ import annotations

from onnx import NodeProto

from .._qdq_marks import MarkingQuantizer
from .._qdq_rules import everything


class QDQOperatorBase:
    """Base class: puts pairs around all inputs and outputs of a node."""

    def __init__(self, onnx_quantizer: MarkingQuantizer, onnx_node: NodeProto) -> None:
        self.quantizer = onnx_quantizer
        self.node = onnx_node
        left_out = onnx_quantizer.settings.option("OpTypesToExcludeOutputQuantization")
        self.disable_qdq_for_node_output = onnx_node.op_type in left_out

    def quantize(self) -> None:
        """Marks the values to be quantized."""
        everything(self.quantizer, self.node)
