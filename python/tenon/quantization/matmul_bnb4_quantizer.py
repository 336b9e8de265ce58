"""Constant matrices in 4-bit floating-point numbers: MatMul becomes MatMulBnb4.

On a command line: python -m tenon.quantization.matmul_bnb4_quantizer --input_model IN
--output_model OUT
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, helper

from ._graph import add_opsets, inner_graphs
from ._names import CONTRIB
from ._nbits_nodes import weight_of
from .onnx_model import ONNXModel

BLOCK_SIZES = (16, 32, 64, 128, 256)
# The value of each code, as a share of the largest number of a block. FP4 has a sign, two bits of
# an exponent and one of a fraction; its smallest numbers are those of bitsandbytes.
MAGNITUDES = (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
FP4_NUMBERS = np.array([*MAGNITUDES, *(-one for one in MAGNITUDES)])
# Codes without a sign by their numbers, and the borders between these, as bitsandbytes rounds them.
FP4_ORDER = np.argsort(MAGNITUDES)
FP4_BORDERS = np.array(
    [0.00260417, 0.0859375, 0.20833333, 0.29166667, 0.4166667, 0.583333, 0.8333333], np.float32
)
# NF4: quantiles of the normal distribution, from Dettmers et al., "QLoRA".
NF4_NUMBERS = np.array(
    [
        -1.0,
        -0.6961928009986877,
        -0.5250730514526367,
        -0.39491748809814453,
        -0.28444138169288635,
        -0.18477343022823334,
        -0.09105003625154495,
        0.0,
        0.07958029955625534,
        0.16093020141124725,
        0.24611230194568634,
        0.33791524171829224,
        0.44070982933044434,
        0.5626170039176941,
        0.7229568362236023,
        1.0,
    ]
)


def quantize_blocks(
    numbers: np.ndarray, size: int, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The codes of the nearest numbers, two in a byte, the first one above; the largest of each
    block.
    """
    count = -(-numbers.size // size)
    padded = np.zeros(count * size, np.float32)
    padded[: numbers.size] = numbers.reshape(-1)
    values = padded.reshape(count, size)
    largest = np.abs(values).max(-1)
    shares = np.where(largest == 0, 0, 1 / np.where(largest == 0, 1, largest))
    parts = (values * shares.astype(np.float32)[:, None]).reshape(-1)
    if codes is FP4_NUMBERS:
        chosen = FP4_ORDER[np.searchsorted(FP4_BORDERS, np.abs(parts))] + 8 * (parts < 0)
    else:
        chosen = np.searchsorted(((codes[1:] + codes[:-1]) / 2).astype(np.float32), parts)
    chosen = chosen.astype(np.uint8)
    chosen = chosen[: numbers.size + numbers.size % 2]
    return chosen[::2] << 4 | chosen[1::2], largest


class MatMulBnb4Quantizer:
    """Rewrites `model` itself. `model.model` is the result of process().

    quant_type  FP4 or NF4
    """

    FP4 = 0
    NF4 = 1

    def __init__(
        self,
        model: ModelProto,
        quant_type: int,
        block_size: int,
        nodes_to_exclude: Sequence[str] | None = None,
    ) -> None:
        if quant_type not in (self.FP4, self.NF4):
            raise ValueError(f"expected FP4 (0) or NF4 (1), got {quant_type}")
        if block_size not in BLOCK_SIZES:
            known = ", ".join(str(one) for one in BLOCK_SIZES)
            raise ValueError(f"expected a block size of {known}, got {block_size}")
        self.model = ONNXModel(model)
        self.quant_type = quant_type
        self.block_size = block_size
        self.nodes_to_exclude = set(nodes_to_exclude or ())

    def bnb4_block_quant(self, fpweight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The packed bytes of a matrix [k, n], transposed, and the largest number of each block."""
        if fpweight.ndim != 2:
            raise ValueError(f"expected a matrix, got the shape {fpweight.shape}")
        codes = FP4_NUMBERS if self.quant_type == self.FP4 else NF4_NUMBERS
        packed, largest = quantize_blocks(
            np.ascontiguousarray(fpweight.T).astype(np.float32), self.block_size, codes
        )
        return packed, largest.astype(fpweight.dtype)

    def process(self) -> None:
        """Quantizes all products with constant matrices that are not left out."""
        self._rewrite([self.model.graph()])
        add_opsets(self.model.model, {CONTRIB: 1})
        self.model.clean_initializers()

    def _rewrite(self, graphs: list[GraphProto]) -> None:
        nodes = []
        for node in graphs[-1].node:
            for inner in inner_graphs(node):
                self._rewrite([*graphs, inner])
            nodes.append(self._replacement(node, graphs) or node)
        del graphs[-1].node[:]
        graphs[-1].node.extend(nodes)

    def _replacement(self, node: NodeProto, graphs: list[GraphProto]) -> NodeProto | None:
        is_wanted = node.op_type == "MatMul" and node.name not in self.nodes_to_exclude
        weight = weight_of(node, graphs) if is_wanted else None
        if weight is None or weight.rank != 2:
            return None
        packed, largest = self.bnb4_block_quant(weight.array)
        inputs = [node.input[0], weight.add(packed, "_Bnb4"), weight.add(largest, "_absmax")]
        return helper.make_node(
            "MatMulBnb4",
            inputs,
            list(node.output),
            f"{node.name}_Bnb4" if node.name else "",
            domain=CONTRIB,
            K=weight.array.shape[0],
            N=weight.array.shape[1],
            block_size=self.block_size,
            quant_type=self.quant_type,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input_model", required=True, help="the model")
    parser.add_argument("--output_model", required=True, help="where the result goes")
    parser.add_argument("--quant_type", type=int, default=1, choices=[0, 1], help="0 FP4, 1 NF4")
    parser.add_argument("--block_size", type=int, default=64, help="numbers that share a scale")
    parser.add_argument("-v", "--verbose", action="store_true", help="say what is done")
    parser.add_argument("--nodes_to_exclude", nargs="+", default=[], help="names")
    given = parser.parse_args(arguments)
    if given.verbose:
        logging.basicConfig(level=logging.INFO)
    if os.path.exists(given.output_model):
        parser.error(f"file {given.output_model} already exists")
    quantizer = MatMulBnb4Quantizer(
        onnx.load(given.input_model), given.quant_type, given.block_size, given.nodes_to_exclude
    )
    quantizer.process()
    quantizer.model.save_model_to_file(given.output_model, True)


if __name__ == "__main__":
    main()
