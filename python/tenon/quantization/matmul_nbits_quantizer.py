"""Constant matrices in blocks of few bits: MatMul becomes MatMulNBits.

On a command line: python -m tenon.quantization.matmul_nbits_quantizer --input_model IN
--output_model OUT
"""

from __future__ import annotations

import argparse
import functools
import logging
import os
from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, version_converter

from .._session import InferenceSession
from ._blocks import Blocks, blocks_of, by_half_squares, by_range, by_rounding, by_weighted_squares
from ._gptq import Gptq
from ._graph import add_opsets, inner_graphs
from ._loading import MODEL_SIZE_THRESHOLD, get_opset_version, infer_shapes
from ._names import CONTRIB, ONNX_DOMAINS
from ._nbits_nodes import (
    Weight,
    few_bits,
    pairs,
    product_nodes,
    table_of_4_bits,
    weight_of,
)
from ._types import QuantFormat
from ._weight_only import (
    DefaultWeightOnlyQuantConfig,
    GPTQWeightOnlyQuantConfig,
    HQQWeightOnlyQuantConfig,
    KQuantWeightOnlyQuantConfig,
    NVAWQWeightOnlyQuantConfig,
    RTNWeightOnlyQuantConfig,
    WeightOnlyQuantConfig,
    checked_block_size,
)
from .onnx_model import ONNXModel

__all__ = [
    "DefaultWeightOnlyQuantConfig",
    "GPTQWeightOnlyQuantConfig",
    "HQQWeightOnlyQuantConfig",
    "KQuantWeightOnlyQuantConfig",
    "MatMulNBitsQuantizer",
    "NVAWQWeightOnlyQuantConfig",
    "RTNWeightOnlyQuantConfig",
    "WeightOnlyQuantConfig",
]

# The opset and the IR version that have integers of so many bits.
OPSETS, IR_VERSIONS = {2: 25, 4: 21, 8: 21}, {2: 13, 4: 10, 8: 10}


class MatMulNBitsQuantizer:
    """Rewrites `model` itself. `model.model` is the result of process().

    bits, block_size, ...  of a DefaultWeightOnlyQuantConfig, if there is no algo_config;
                           of its own, RTN, k-quant and GPTQ have none
    nodes_to_include       names of nodes that are quantized even if their type is not requested
    """

    def __init__(
        self,
        model: ModelProto | str | os.PathLike[str],
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
        loaded = model if isinstance(model, ModelProto) else onnx.load(os.fspath(model))
        self.model = ONNXModel(loaded)
        self.bits = bits
        self.block_size = checked_block_size(block_size)
        self.is_symmetric = is_symmetric
        self.accuracy_level = accuracy_level
        self.nodes_to_exclude = set(nodes_to_exclude or ())
        self.nodes_to_include = set(nodes_to_include or ())
        self.algo_config = algo_config or DefaultWeightOnlyQuantConfig(
            block_size,
            is_symmetric,
            accuracy_level,
            quant_format,
            op_types_to_quantize,
            quant_axes,
            bits,
            channel_wised_quantize,
        )
        self._squares: dict[str, np.ndarray] = {}

    def process(self) -> None:
        """Quantizes all products with constant matrices that are not left out."""
        config = self.algo_config
        if config.quant_format == QuantFormat.QDQ:
            bits = getattr(config, "bits", 4)
            self._raise_version(OPSETS[bits], IR_VERSIONS[bits])
        elif "Gather" in config.op_types_to_quantize:
            self._raise_version(OPSETS[4], IR_VERSIONS[4])
        if isinstance(config, GPTQWeightOnlyQuantConfig):
            self._squares = self._squares_of_values(config)
        self._rewrite([self.model.graph()])
        if config.quant_format == QuantFormat.QOperator:
            add_opsets(self.model.model, {CONTRIB: 1})
        self.model.clean_initializers()

    def _raise_version(self, opset: int, ir_version: int) -> None:
        """Converts the model to an opset that has the integers."""
        model = self.model.model
        if get_opset_version(model) < opset:
            try:
                is_large = model.ByteSize() >= MODEL_SIZE_THRESHOLD // 2
                converted = None if is_large else version_converter.convert_version(model, opset)
            except RuntimeError as error:
                logging.warning("the model cannot be converted to opset %d: %s", opset, error)
                converted = None
            if converted is not None:
                model.CopyFrom(converted)
            else:
                logging.warning("the model is said to have opset %d. Please verify it.", opset)
                for one in model.opset_import:
                    one.version = opset if one.domain in ONNX_DOMAINS else one.version
        model.ir_version = max(model.ir_version, ir_version)

    def _takes(self, node: NodeProto) -> bool:
        is_wanted = node.op_type in self.algo_config.op_types_to_quantize
        is_wanted = is_wanted or node.name in self.nodes_to_include
        return is_wanted and node.name not in self.nodes_to_exclude

    def _rewrite(self, graphs: list[GraphProto]) -> None:
        """Quantizes the innermost of some graphs, and those of its nodes."""
        nodes: list[NodeProto] = []
        for node in graphs[-1].node:
            for inner in inner_graphs(node):
                self._rewrite([*graphs, inner])
            made = self._replacement(node, graphs) if self._takes(node) else None
            nodes += [node] if made is None else made
        del graphs[-1].node[:]
        graphs[-1].node.extend(nodes)

    def _replacement(self, node: NodeProto, graphs: list[GraphProto]) -> list[NodeProto] | None:
        """The nodes that replace one. None: it stays."""
        if node.op_type == "Gather":
            return self._gather(node, graphs)
        weight = weight_of(node, graphs) if node.op_type == "MatMul" else None
        if weight is None:
            return None
        rank = self._ranks.get(node.input[0]) if weight.rank > 2 else None
        opset = get_opset_version(self.model.model)
        return product_nodes(
            node, weight, rank, opset, lambda output: self._product(node, weight, output)
        )

    @functools.cached_property
    def _ranks(self) -> dict[str, int]:
        """The ranks of the values of the model, as far as they are known."""
        graph = infer_shapes(self.model.model).graph
        values = (*graph.value_info, *graph.output, *graph.input)
        kinds = {one.name: one.type.tensor_type for one in values}
        return {name: len(one.shape.dim) for name, one in kinds.items() if one.HasField("shape")}

    def _gather(self, node: NodeProto, graphs: list[GraphProto]) -> list[NodeProto] | None:
        config = self.algo_config
        if not isinstance(config, DefaultWeightOnlyQuantConfig):
            raise NotImplementedError(f"Gather '{node.name}': {config.algorithm} has no tables")
        if config.quant_format != QuantFormat.QOperator or config.bits != 4:
            logging.error("Gather '%s' stays: tables have 4 bits, in QOperator format", node.name)
            return None
        axis = config.quant_axes.get("Gather", 1)
        made = table_of_4_bits(node, graphs, axis, config.block_size, config.is_symmetric)
        return None if made is None else [made]

    def _product(self, node: NodeProto, weight: Weight, output: str) -> list[NodeProto]:
        config = self.algo_config
        if isinstance(config, DefaultWeightOnlyQuantConfig):
            by_columns = config.channel_wised_quantize
            size = weight.array.shape[0] if by_columns else config.block_size
            blocks = by_range(blocks_of(weight.array, size), config.bits, config.is_symmetric)
            if config.quant_format == QuantFormat.QDQ:
                return pairs(node, weight, blocks, output, by_columns)
            level, names = config.accuracy_level, (f"_Q{config.bits}", "_scales", "_zero_points")
        elif isinstance(config, HQQWeightOnlyQuantConfig):
            blocks = by_half_squares(blocks_of(weight.array, config.block_size), config.bits)
            level, names = None, (f"_Q{config.bits}", "_scales", "_zero_points")
        else:
            blocks = self._by_algorithm(node, weight)
            size = blocks.numbers.shape[-1]
            level, names = self.accuracy_level, (f"_Q{blocks.bits}G{size}", "_scale", "_zp")
        return few_bits(node, weight, blocks, names, output, level)

    def _by_algorithm(self, node: NodeProto, weight: Weight) -> Blocks:
        """Quantizes by another quantizer, whose settings may differ by node."""
        config = self.algo_config
        own = (config.customized_weight_config or {}).get(node.name, {})
        bits, size = own.get("bits", self.bits), own.get("group_size", self.block_size)
        size = checked_block_size(size) if size != -1 else weight.array.shape[0]
        symmetric = own.get("scheme", "sym" if self.is_symmetric else "asym") == "sym"
        if isinstance(config, GPTQWeightOnlyQuantConfig):
            way = Gptq(
                bits,
                size,
                symmetric,
                config.percdamp,
                config.block_size,
                config.actorder,
                config.mse,
                config.perchannel,
            )
            k = weight.array.shape[0]
            squares = self._squares.get(node.input[0])
            return way.quantize(weight.array, np.eye(k) if squares is None else squares)
        values = blocks_of(weight.array, size)
        if isinstance(config, KQuantWeightOnlyQuantConfig):
            return by_weighted_squares(values, bits)
        if isinstance(config, RTNWeightOnlyQuantConfig):
            return by_rounding(values, bits, symmetric, config.ratios.get(node.input[1], 1.0))
        raise ValueError(f"unknown algorithm '{config.algorithm}'")

    def _squares_of_values(self, config: GPTQWeightOnlyQuantConfig) -> dict[str, np.ndarray]:
        """For each value that a product reads, sums over the data of products of its columns."""
        reader = config.calibration_data_reader
        if reader is None:
            raise ValueError("GPTQ: expected a calibration_data_reader")
        graph = self.model.graph()
        names = {
            node.input[0]: None
            for node in graph.node
            if self._takes(node) and node.op_type == "MatMul" and weight_of(node, [graph])
        }
        watched = ModelProto()
        watched.CopyFrom(self.model.model)
        del watched.graph.output[:]
        given = {one.name for one in graph.input}
        made = [name for name in names if name not in given]
        watched.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
        if not made:
            watched.graph.output.extend(graph.output)
        session = InferenceSession(watched)
        sums: dict[str, np.ndarray] = {}
        while feed := reader.get_next():
            values = dict(zip(made, session.run(made, feed), strict=True)) if made else {}
            for name in names:
                value = np.asarray(values[name] if name in values else feed[name])
                rows = value.reshape(-1, value.shape[-1]).astype(np.float64)
                sums[name] = sums.get(name, 0) + rows.T @ rows
        if names and not sums:
            raise ValueError("No data is collected.")
        return sums


ALGORITHMS: dict[str, Callable[[argparse.Namespace], WeightOnlyQuantConfig]] = {
    "default": lambda given: DefaultWeightOnlyQuantConfig(
        given.block_size,
        given.symmetric,
        given.accuracy_level,
        QuantFormat[given.quant_format],
        given.op_types_to_quantize,
        given.quant_axes,
        given.bits,
    ),
    "hqq": lambda given: HQQWeightOnlyQuantConfig(
        given.block_size,
        given.bits,
        op_types_to_quantize=given.op_types_to_quantize,
        quant_axes=given.quant_axes,
    ),
    "k_quant": lambda given: KQuantWeightOnlyQuantConfig(
        op_types_to_quantize=given.op_types_to_quantize
    ),
    "rtn": lambda given: RTNWeightOnlyQuantConfig(op_types_to_quantize=given.op_types_to_quantize),
}


def is_true(text: str) -> bool:
    """Parses a word."""
    return text.lower() in ("true", "1")


def axis_of(text: str) -> tuple[str, int]:
    """Parses an operator and an axis, as in 'Gather:1'."""
    name, _, axis = text.partition(":")
    return name, int(axis)


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input_model", required=True, help="the model")
    parser.add_argument("--output_model", required=True, help="where the result goes")
    parser.add_argument("--block_size", type=int, default=32, help="rows that share a scale")
    parser.add_argument("--quant_method", default="default", choices=sorted(ALGORITHMS), help="how")
    parser.add_argument("--bits", type=int, default=4, help="of each number: 2, 4 or 8")
    parser.add_argument(
        "--symmetric", type=is_true, nargs="?", const=True, default=True, help="no zero points"
    )
    parser.add_argument("--accuracy_level", type=int, help="the type in which products are made")
    parser.add_argument("-v", "--verbose", action="store_true", help="say what is done")
    parser.add_argument("--nodes_to_exclude", nargs="+", default=[], help="names")
    parser.add_argument("--nodes_to_include", nargs="+", help="names")
    parser.add_argument("--quant_format", default="QOperator", choices=["QOperator", "QDQ"])
    parser.add_argument("--op_types_to_quantize", nargs="+", choices=["MatMul", "Gather"])
    parser.add_argument("--quant_axes", type=axis_of, nargs="+", help="such as Gather:1")
    given = parser.parse_args(arguments)
    if given.verbose:
        logging.basicConfig(level=logging.INFO)
    if os.path.exists(given.output_model):
        parser.error(f"file {given.output_model} already exists")
    quantizer = MatMulNBitsQuantizer(
        given.input_model,
        given.bits,
        given.block_size,
        given.symmetric,
        given.accuracy_level,
        given.nodes_to_exclude,
        given.nodes_to_include,
        algo_config=ALGORITHMS[given.quant_method](given),
    )
    quantizer.process()
    quantizer.model.save_model_to_file(given.output_model, True)


if __name__ == "__main__":
    main()
