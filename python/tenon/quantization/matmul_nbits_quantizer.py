"""Constant matrices in blocks of few bits: MatMul becomes MatMulNBits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ._graph import Graph
from ._loading import ModelLike
from ._names import CONTRIB
from ._saving import save
from ._tensors import tensor_of
from ._types import QuantFormat


class WeightOnlyQuantConfig:
    """How weights are quantized."""

    def __init__(
        self,
        algorithm: str,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.quant_format = quant_format
        self.op_types_to_quantize = tuple(op_types_to_quantize or ("MatMul",))


class DefaultWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Each block by its own range."""

    def __init__(
        self,
        block_size: int = 128,
        is_symmetric: bool = False,
        accuracy_level: int | None = None,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
        quant_axes: Sequence[tuple[str, int]] | None = None,
        bits: int = 4,
    ) -> None:
        super().__init__("DEFAULT", quant_format, op_types_to_quantize)
        if bits not in (2, 4, 8):
            raise ValueError(f"expected 2, 4 or 8 bits, got {bits}")
        if block_size < 16 or block_size & (block_size - 1):
            raise ValueError(f"expected a block size of 16, 32, 64, ..., got {block_size}")
        self.block_size = block_size
        self.is_symmetric = is_symmetric
        self.accuracy_level = accuracy_level
        self.bits = bits


def quantize_blocks(
    weight: np.ndarray, block_size: int, bits: int, is_symmetric: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Of a [k, n] matrix: [n, blocks, bytes] packed numbers, scales and packed zero points.

    Blocks run along k; the last one is filled up with zeros. Symmetric ones have no zero points:
    theirs is the middle of the range.
    """
    k, n = weight.shape
    blocks = -(-k // block_size)
    padded = np.zeros((n, blocks * block_size), np.float32)
    padded[:, :k] = weight.T
    values = padded.reshape(n, blocks, block_size)
    low, high = values.min(-1), values.max(-1)
    most, middle = (1 << bits) - 1, 1 << (bits - 1)
    if is_symmetric:
        # What lies farthest from zero gets the smallest number, which is farthest too.
        farthest = np.where(np.abs(low) > np.abs(high), low, high)
        scale = farthest / -middle
        zero = np.full((n, blocks), middle, np.float32)
    else:
        low, high = np.minimum(low, 0), np.maximum(high, 0)
        scale = (high - low) / most
        with np.errstate(divide="ignore", invalid="ignore"):
            zero = np.clip(np.round(np.where(scale != 0, -low / scale, 0)), 0, most)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(scale != 0, 1 / scale, 0)
    numbers = np.clip(np.round(values * inverse[..., None] + zero[..., None]), 0, most)
    numbers.reshape(n, -1)[:, k:] = 0  # nobody reads them
    packed = pack(numbers.astype(np.uint8), bits)
    zeros = None if is_symmetric else pack(zero.astype(np.uint8), bits, filler=0)
    return packed, scale.astype(weight.dtype), zeros


def pack(numbers: np.ndarray, bits: int, filler: int = 0) -> np.ndarray:
    """Joins numbers along the last axis, the first one in the lowest bits of a byte."""
    each = 8 // bits
    missing = -numbers.shape[-1] % each
    if missing:
        rest = [(0, 0)] * (numbers.ndim - 1)
        numbers = np.pad(numbers, [*rest, (0, missing)], constant_values=filler)
    grouped = numbers.reshape(*numbers.shape[:-1], -1, each)
    shifts = np.arange(each, dtype=np.uint8) * bits
    return np.bitwise_or.reduce(grouped << shifts, axis=-1).astype(np.uint8)


class MatMulNBitsQuantizer:
    """Rewrites one model; `model.model` is the result."""

    class Holder:
        """A model with a method that writes it."""

        def __init__(self, model: onnx.ModelProto) -> None:
            self.model = model

        def save_model_to_file(
            self, path: str | os.PathLike[str], use_external_data_format: bool = False
        ) -> None:
            """Writes the model."""
            save(self.model, path, use_external_data_format)

    def __init__(
        self,
        model: ModelLike,
        bits: int = 4,
        block_size: int = 128,
        is_symmetric: bool = False,
        accuracy_level: int | None = None,
        nodes_to_exclude: Sequence[str] | None = None,
        nodes_to_include: Sequence[str] | None = None,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
        quant_axes: Sequence[tuple[str, int]] | None = None,
        channel_wised_quantize: bool = False,
        algo_config: WeightOnlyQuantConfig | None = None,
    ) -> None:
        loaded = onnx.ModelProto()
        loaded.CopyFrom(model if isinstance(model, onnx.ModelProto) else onnx.load(model))
        self.model = self.Holder(loaded)
        self.nodes_to_exclude = set(nodes_to_exclude or ())
        self.nodes_to_include = set(nodes_to_include or ())
        config = algo_config or DefaultWeightOnlyQuantConfig(
            block_size, is_symmetric, accuracy_level, quant_format, op_types_to_quantize, bits=bits
        )
        if not isinstance(config, DefaultWeightOnlyQuantConfig):
            raise NotImplementedError(f"the algorithm {config.algorithm}")
        if config.quant_format != QuantFormat.QOperator:
            raise NotImplementedError("pairs of (de)quantization around matrices of few bits")
        self.config = config

    def process(self) -> None:
        """Quantizes all products with constant matrices that are not left out."""
        graph = Graph(self.model.model.graph)
        nodes = [self._rewrite(graph, node) for node in graph.nodes]
        graph.finish(nodes)
        from ._graph import add_opsets
        add_opsets(self.model.model, {CONTRIB: 1})

    def _takes(self, node: onnx.NodeProto) -> bool:
        is_named = not self.nodes_to_include or node.name in self.nodes_to_include
        is_wanted = node.op_type == "MatMul" and "MatMul" in self.config.op_types_to_quantize
        return is_wanted and is_named and node.name not in self.nodes_to_exclude

    def _rewrite(self, graph: Graph, node: onnx.NodeProto) -> onnx.NodeProto:
        weight = graph.constant(node.input[1]) if self._takes(node) else None
        if weight is None or weight.ndim != 2 or weight.dtype not in (np.float32, np.float16):
            return node
        config, name = self.config, node.input[1]
        packed, scales, zeros = quantize_blocks(
            weight, config.block_size, config.bits, config.is_symmetric
        )
        suffix = f"Q{config.bits}"
        inputs = [
            node.input[0],
            graph.add_constant(tensor_of(packed, f"{name}_{suffix}")),
            graph.add_constant(tensor_of(scales, f"{name}_scales")),
        ]
        if zeros is not None:
            inputs.append(graph.add_constant(tensor_of(zeros, f"{name}_zero_points")))
        more: dict[str, Any] = (
            {} if config.accuracy_level is None else {"accuracy_level": config.accuracy_level}
        )
        return helper.make_node(
            "MatMulNBits",
            inputs,
            list(node.output),
            name=f"{node.name}_{suffix}" if node.name else "",
            domain=CONTRIB,
            K=weight.shape[0],
            N=weight.shape[1],
            bits=config.bits,
            block_size=config.block_size,
            **more,
        )
