"""Replaces operators by integer operators."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from ._graph import Graph, add_opsets, all_nodes, sign
from ._integer_rules import IntegerOpsRegistry
from ._loading import infer_shapes
from ._names import CONTRIB, DEQUANT_OP_NAME, QUANT_OP_NAME
from ._qlinear_rules import QLinearOpsRegistry
from ._rewriter import Plan, Rewriter
from ._scales import scale_of_value
from ._types import QuantizationMode
from .base_quantizer import BaseQuantizer, Ranges, name_nodes
from .onnx_model import ONNXModel


class ONNXQuantizer(BaseQuantizer):
    """Quantizes by ranges that are known ahead (`static`), or by the ranges of each run.

    mode  IntegerOps: products become integer products, other nodes do not change
          QLinearOps: operators take and return integers
    """

    def __init__(
        self,
        model: ModelProto,
        per_channel: bool,
        reduce_range: bool,
        mode: QuantizationMode,
        static: bool,
        weight_qType: Any,  # noqa: N803 - the names that they have in onnxruntime
        activation_qType: Any,  # noqa: N803
        tensors_range: Ranges | None,
        nodes_to_quantize: Sequence[str] | None,
        nodes_to_exclude: Sequence[str] | None,
        op_types_to_quantize: Sequence[str] | None,
        extra_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            model,
            per_channel,
            reduce_range,
            weight_qType,
            activation_qType,
            tensors_range,
            nodes_to_quantize,
            nodes_to_exclude,
            op_types_to_quantize,
            extra_options,
        )
        if not isinstance(mode, QuantizationMode):
            raise ValueError(f"unsupported quantization mode {mode}")
        self.mode = mode
        self.static = static
        if not static:
            self.model.replace_gemm_with_matmul()
            self.model = ONNXModel(infer_shapes(self.model.model))
            name_nodes(self.model.graph())
            self.graph = Graph(self.model.graph())
        self.adjust_tensor_ranges()
        overrides = self.tensor_quant_overrides
        self.quantization_params = {
            name: scale_of_value(
                self.settings, data, overrides.get_per_tensor_overrides(name) or {}
            )
            for name, data in (self.tensors_range or {}).items()
        }
        for scale in self.quantization_params.values():
            scale.scale = scale.scale.astype(np.float32)  # integer operators take no others

    def has_QDQ_nodes(self) -> bool:  # noqa: N802
        """Whether the model has quantized values."""
        return any(node.op_type in (QUANT_OP_NAME, DEQUANT_OP_NAME) for node in self.graph.nodes)

    def quantize_model(self) -> ModelProto:
        """Quantizes the model, and returns it."""
        if self.has_QDQ_nodes():
            logging.warning("the model has quantized values already")
        is_integer = self.mode == QuantizationMode.IntegerOps
        plan = Plan(
            self.settings,
            self.tensor_quant_overrides,
            self.opset_version,
            self.static,
            IntegerOpsRegistry if is_integer else QLinearOpsRegistry,
            self.quantization_params,
            self.saturates,
        )
        Rewriter(self.graph, plan).rewrite()
        if any(node.domain == CONTRIB for node in all_nodes(self.model.graph())):
            add_opsets(self.model.model, {CONTRIB: 1})
        return sign(self.model.model)
